//! fio's latency bins (stat.h, `FIO_IO_U_PLAT_*`): exact below 128 ns, then 64 an octave, 1,856 in
//! all. The buckets of [`Latencies`] are finer and end where these do, so nothing is lost but detail.

use crate::latency::Latencies;
use std::collections::BTreeMap;

/// Bits that a bin tells apart, beyond the highest.
const BITS: u32 = 6;
/// Bins of an octave.
const OCTAVE: usize = 1 << BITS;
/// Bins.
pub const BINS: usize = 29 * OCTAVE;

/// The bin of a latency; the last one holds everything beyond too.
#[must_use]
pub fn bin(ns: u64) -> usize {
    let shift = (u64::BITS - 1 - BITS).saturating_sub(ns.leading_zeros());
    (((shift as usize) << BITS) + (ns >> shift) as usize).min(BINS - 1)
}

/// The latency that stands for a bin: its middle.
#[must_use]
pub fn bin_ns(bin: usize) -> u64 {
    if bin < 2 * OCTAVE {
        return bin as u64;
    }
    let shift = bin / OCTAVE - 1;
    (((bin % OCTAVE + OCTAVE) as u64) << shift) + (1 << shift) / 2
}

/// Latencies by bin, without empty ones: what stands for the bin, and how many are in it.
#[must_use]
pub fn bins(latencies: &Latencies) -> BTreeMap<u64, u64> {
    let mut bins = BTreeMap::new();
    for (ns, count) in latencies.buckets() {
        *bins.entry(bin_ns(bin(ns))).or_default() += count;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_rt::Nanos;

    /// Values that fio itself prints in json+, and its last bin.
    #[test]
    fn bins_are_fio_s() {
        let printed = [(203, 203), (256, 258), (259, 258), (510, 510), (512, 516), (1_024, 1_032)];
        printed.into_iter().for_each(|(ns, shown)| assert_eq!(bin_ns(bin(ns)), shown, "{ns}"));
        assert_eq!(bin(u64::MAX), BINS - 1);
        assert!((0..BINS).all(|index| bin(bin_ns(index)) == index));
    }

    /// No latency changes its bin on the way through the finer buckets.
    #[test]
    fn nothing_moves() {
        for ns in (0..40).flat_map(|bit| [1u64 << bit, (1u64 << bit) + 1, (3u64 << bit) - 1]) {
            let mut latencies = Latencies::default();
            latencies.record(Nanos(ns));
            assert_eq!(bins(&latencies), BTreeMap::from([(bin_ns(bin(ns)), 1)]), "{ns}");
        }
    }
}
