//! Numbers in the units that people read.

use nandscape_lab::SECTOR_BYTES;
use nandscape_lab::workload::latency::Latencies;
use nandscape_rt::Nanos;
pub(crate) use nandscape_rt::words::bytes;

/// The highest percentile of a line.
const TAIL: f64 = 0.999;

/// Latencies, or other times, in a line; a percentile of which there are too few is left open.
pub(crate) fn latencies(latencies: &Latencies) -> String {
    let rank = latencies.percentiles();
    let at = |share| rank(share).map_or_else(|| "-".to_owned(), time);
    let few = if rank(TAIL).is_some() { "" } else { " (-: too few samples)" };
    format!(
        "mean {}, p50 {}, p99 {}, p99.9 {}, max {}{few}",
        time(Nanos(latencies.mean_ns() as u64)),
        at(0.5),
        at(0.99),
        at(TAIL),
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

    /// Too few latencies for a percentile have none, and the line says why.
    #[test]
    fn percentiles_need_samples() {
        let line = |count: u64| {
            let mut all = Latencies::default();
            (0..count).for_each(|_| all.record(Nanos(700)));
            latencies(&all)
        };
        let few = "mean 700 ns, p50 700 ns, p99 -, p99.9 -, max 700 ns (-: too few samples)";
        assert_eq!(line(20), few);
        let enough = "mean 700 ns, p50 700 ns, p99 700 ns, p99.9 700 ns, max 700 ns";
        assert_eq!(line(1_000), enough);
    }

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
    }
}
