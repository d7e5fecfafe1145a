//! Fields of a line: numbers that are checked, with errors that say which field is meant.

use crate::direction::Direction;
use nandscape_rt::Nanos;
use std::fmt::Display;
use std::str::FromStr;

/// Bytes of the sectors that blkparse, DiskSim, Tencent and SPC count in.
const DISK_SECTOR_BYTES: u64 = 512;

/// The field that should come now.
pub(super) fn field<'a>(fields: &mut impl Iterator<Item = &'a str>, what: &str) -> FieldResult<'a> {
    fields.next().ok_or_else(|| format!("{what} is missing"))
}

/// A field, or what is wrong.
pub(super) type FieldResult<'a> = Result<&'a str, String>;

/// A whole number.
pub(super) fn number<T: FromStr<Err: Display>>(text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{what} {text:?}: {error}"))
}

/// Disk sectors in bytes.
pub(super) fn sectors(text: &str, what: &str) -> Result<u64, String> {
    disk_sectors(number(text, what)?, what)
}

/// A number of disk sectors in bytes.
pub(super) fn disk_sectors(sectors: u64, what: &str) -> Result<u64, String> {
    let bytes = sectors.checked_mul(DISK_SECTOR_BYTES);
    bytes.ok_or_else(|| format!("{what} {sectors} overflows 64 bits of bytes"))
}

/// The columns of a line of CSV.
pub(super) fn columns(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim)
}

/// Whether a line of CSV names these columns, in any case.
pub(super) fn is_header(line: &str, header: &str) -> bool {
    let mut names = header.split(',');
    let named = columns(line)
        .all(|column| names.next().is_some_and(|name| name.eq_ignore_ascii_case(column)));
    named && names.next().is_none()
}

/// A direction as R or W.
pub(super) fn letter(text: &str, what: &str) -> Result<Direction, String> {
    match text {
        "R" | "r" => Ok(Direction::Read),
        "W" | "w" => Ok(Direction::Write),
        _ => Err(format!("{what} {text:?} is neither R nor W")),
    }
}

/// A time in whole units of `unit`.
pub(super) fn time(text: &str, unit: Nanos) -> Result<Nanos, String> {
    let units: u64 = number(text, "time")?;
    units.checked_mul(unit.0).map(Nanos).ok_or_else(|| format!("time {text:?} overflows 64 bits"))
}

/// A time with a decimal point, in units of `unit`, a power of ten; what is below 1 ns is cut off.
pub(super) fn decimal_time(text: &str, unit: Nanos) -> Result<Nanos, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("time {text:?}: no decimal number"));
    }
    let mut place_ns = unit.0;
    let digits = fraction.bytes().map(|byte| {
        place_ns /= 10;
        u64::from(byte - b'0') * place_ns
    });
    let rest_ns: u64 = digits.sum();
    Ok(time(whole, unit)?.saturating_add(Nanos(rest_ns)))
}

/// Refuses what stands after the last field.
pub(super) fn end<'a>(fields: &mut impl Iterator<Item = &'a str>) -> Result<(), String> {
    fields.next().map_or(Ok(()), |rest| Err(format!("{rest:?} after the last field")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times with a point are exact to the nanosecond.
    #[test]
    fn decimal_times_are_exact() {
        let seconds = |text| decimal_time(text, Nanos::from_secs(1));
        assert_eq!(seconds("0.000000001"), Ok(Nanos(1)));
        assert_eq!(seconds("12.5"), Ok(Nanos(12_500_000_000)));
        assert_eq!(seconds("3.1234567891"), Ok(Nanos(3_123_456_789)));
        assert_eq!(decimal_time("0.25", Nanos::from_ms(1)), Ok(Nanos(250_000)));
        for bad in ["", ".", ".5", "1.-5", "-1.0", "1e3", "1.5.2", "99999999999999.0"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
