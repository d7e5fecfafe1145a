//! Numbers in the units that people read.

use nandscape_lab::SECTOR_BYTES;
use nandscape_lab::workload::engine::Latencies;
use nandscape_rt::Nanos;

/// Latencies, or other times, in a line.
pub(crate) fn latencies(latencies: &Latencies) -> String {
    let rank = latencies.ranks();
    let at = |share| time(rank(share));
    format!(
        "mean {}, p50 {}, p99 {}, p99.9 {}, max {}",
        time(Nanos(latencies.mean_ns() as u64)),
        at(0.5),
        at(0.99),
        at(0.999),
        time(latencies.max())
    )
}

/// To three digits, in the unit that fits: `1.90 ms`.
pub(crate) fn time(time: Nanos) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000)];
    let Some((unit, ns)) = units.into_iter().find(|(_, ns)| time.0 >= *ns) else {
        return format!("{} ns", time.0);
    };
    let number = time.0 as f64 / ns as f64;
    let decimals = if number >= 100.0 { 0 } else { 1 + usize::from(number < 10.0) };
    format!("{number:.decimals$} {unit}")
}

pub(super) fn sector_bytes(sectors: u64) -> String {
    bytes(sectors as f64 * SECTOR_BYTES as f64)
}

/// In the largest binary unit: `1.50 GiB`.
pub(crate) fn bytes(bytes: f64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let of = |shift: u32| bytes / (1u64 << shift) as f64;
    match units.into_iter().find(|(_, shift)| of(*shift) >= 1.0) {
        Some((unit, shift)) => {
            format!("{:.*} {unit}", 1 + usize::from(of(shift) < 99.995), of(shift))
        }
        None => format!("{bytes:.0} B"),
    }
}

/// A rate to three or four digits, abbreviated as in fio: `12.3k`.
pub(crate) fn count(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{:.2}M", n / 1e6),
        n if n >= 1e4 => format!("{:.1}k", n / 1e3),
        n if n >= 99.95 || n == 0.0 => format!("{n:.0}"),
        n => format!("{n:.*}", 1 + usize::from(n < 9.995)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are shown in units that people read.
    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(12_345.0), "12.3k");
        assert_eq!(count(2_345_678.0), "2.35M");
        assert_eq!(
            [8_312.4, 740.2, 73.26, 7.326, 0.0].map(count),
            ["8312", "740", "73.3", "7.33", "0"]
        );
        assert_eq!(time(Nanos(999)), "999 ns");
        assert_eq!(time(Nanos(1_900_000)), "1.90 ms");
        assert_eq!(time(Nanos::from_secs(60)), "60.0 s");
        assert_eq!(time(Nanos(123_456)), "123 µs");
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes((3u64 << 29) as f64), "1.50 GiB");
        assert_eq!(bytes((423u64 << 20) as f64), "423.0 MiB");
    }
}
