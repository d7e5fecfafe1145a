//! Numbers as fio reads them. Sizes: decimal or `0x` hexadecimal, with a suffix whose meaning
//! `kb_base` decides. With the default 1024, `k`, `kb` and `ki` are 1024 and, turned around for the
//! sake of old job files, `kib` is 1000; with 1000 it is the reverse, as the standards say. Times:
//! a plain number counts in the key's own unit; suffixes are `us ms s m h d`. Decimal fractions are
//! exact: no floating point is involved.

use nandscape_rt::Nanos;

/// What sizes and addresses of I/Os are multiples of, in bytes: the smallest sector of a disk.
pub const UNIT_BYTES: u64 = 512;

/// A size, absolute or relative to something that only the run knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Hundredths of the whole.
    Percent(u64),
}

impl Amount {
    /// In bytes, where the whole has `whole` bytes.
    #[must_use]
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

/// Splits a number from its suffix: mantissa, decimal places, suffix.
fn split(text: &str) -> Option<(u128, u32, &str)> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    if let Some(digits) = hex {
        return Some((u64::from_str_radix(digits, 16).ok()?.into(), 0, ""));
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.len() > 24 {
        return None;
    }
    let mantissa = format!("{whole}{fraction}").parse().ok()?;
    Some((mantissa, fraction.len() as u32, suffix.trim()))
}

/// `mantissa / 10^places * unit`, if that fits.
fn scale(mantissa: u128, places: u32, unit: u64) -> Option<u64> {
    let scaled = mantissa.checked_mul(unit.into())? / 10u128.checked_pow(places)?;
    scaled.try_into().ok()
}

/// A size in bytes, or a plain count (counts take the same suffixes).
#[must_use]
pub(super) fn bytes(text: &str, kb_base: u64) -> Option<u64> {
    let (mantissa, places, suffix) = split(text)?;
    scale(mantissa, places, byte_unit(suffix, kb_base)?)
}

/// Bytes that a suffix stands for.
fn byte_unit(suffix: &str, kb_base: u64) -> Option<u64> {
    let suffix = suffix.to_ascii_lowercase();
    let Some(letter) = suffix.chars().next().filter(|c| *c != 'b') else {
        return matches!(suffix.as_str(), "" | "b").then_some(1);
    };
    let power = 1 + "kmgtp".find(letter)? as u32;
    let base = match &suffix[1..] {
        "" | "b" | "i" => kb_base,
        "ib" if kb_base == 1000 => 1024,
        "ib" => 1000,
        _ => return None,
    };
    base.checked_pow(power)
}

/// A size, or a percentage of one.
#[must_use]
pub(super) fn amount(text: &str, kb_base: u64) -> Option<Amount> {
    match text.strip_suffix('%') {
        Some(percent) => percent.parse().ok().filter(|p| *p <= 100).map(Amount::Percent),
        None => bytes(text, kb_base).map(Amount::Bytes),
    }
}

/// A time; a number without suffix counts in `plain`.
#[must_use]
pub fn time(text: &str, plain: Nanos) -> Option<Nanos> {
    let (mantissa, places, suffix) = split(text)?;
    let unit = match suffix.to_ascii_lowercase().as_str() {
        "" => plain,
        "us" | "usec" => Nanos::from_us(1),
        "ms" | "msec" => Nanos::from_ms(1),
        "s" | "sec" => Nanos::from_secs(1),
        "m" => Nanos::from_secs(60),
        "h" => Nanos::from_secs(3_600),
        "d" => Nanos::from_secs(86_400),
        _ => return None,
    };
    scale(mantissa, places, unit.0).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fio's reading of size suffixes, in both bases.
    #[test]
    fn sizes_follow_kb_base() {
        for (text, old, standard) in [
            ("4096", 4096, 4096),
            ("0x1000", 4096, 4096),
            ("4k", 4096, 4000),
            ("4KB", 4096, 4000),
            ("4ki", 4096, 4000),
            ("4KiB", 4000, 4096),
            ("1.5g", 3 << 29, 1_500_000_000),
            ("2m", 2 << 20, 2_000_000),
            ("1t", 1 << 40, 1_000_000_000_000),
            ("7b", 7, 7),
        ] {
            assert_eq!(bytes(text, 1024), Some(old), "{text}");
            assert_eq!(bytes(text, 1000), Some(standard), "{text}");
        }
        for text in ["", "k", "4x", "-1", "4kk", "99999999999p", "1.2.3", "9e9", "."] {
            assert_eq!(bytes(text, 1024), None, "{text}");
        }
    }

    /// A plain number counts in the key's unit, a suffix overrides it, overflow is refused.
    #[test]
    fn times_and_percentages() {
        let second = Nanos::from_secs(1);
        assert_eq!(time("10", second), Some(Nanos::from_secs(10)));
        assert_eq!(time("10", Nanos::from_us(1)), Some(Nanos::from_us(10)));
        assert_eq!(time("1.5ms", second), Some(Nanos::from_us(1500)));
        assert_eq!(time("2m", second), Some(Nanos::from_secs(120)));
        assert_eq!(time("1d", second), Some(Nanos::from_secs(86_400)));
        assert_eq!(time("999999999d", second), None);
        assert_eq!(amount("50%", 1024).map(|a| a.of(1 << 20)), Some(1 << 19));
        assert_eq!(amount("101%", 1024), None);
        assert_eq!(amount("%", 1024), None);
    }
}
