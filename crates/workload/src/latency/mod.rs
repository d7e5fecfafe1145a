//! Latencies of one kind of I/O, recorded in a few instructions: what every load measures with.
//!
//! The buckets are those of a [`Histogram`] with three significant digits from 1 ns on: exact below
//! 2,048 ns, then 1,024 an octave. They are kept in a flat array that grows with the largest latency
//! seen and is turned into a `Histogram`, without loss, when the run is over, because
//! `Histogram::record` costs more (benches/engine.rs prints both). Count, sum, minimum and maximum are
//! exact.

mod totals;

pub use totals::{IntervalLatency, LatencyTotals};

use hdrhistogram::Histogram;
use nandscape_rt::Nanos;
use std::fmt;

/// Bits that a bucket tells apart.
const DIGIT_BITS: u32 = 11;

/// Latencies with exact totals.
#[derive(Clone, PartialEq, Eq)]
pub struct Latencies {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
    min: Nanos,
    max: Nanos,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: Vec::new(), count: 0, sum_ns: 0, min: Nanos::MAX, max: Nanos::ZERO }
    }
}

impl fmt::Debug for Latencies {
    /// Without the buckets, which are thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max, mean) = (self.min(), self.max(), self.mean_ns());
        write!(f, "{} from {min} to {max}, mean {mean:.0}ns", self.count)
    }
}

/// The bucket of a latency.
#[inline]
fn bucket(ns: u64) -> usize {
    let shift = (u64::BITS - DIGIT_BITS).saturating_sub(ns.leading_zeros());
    ((shift as usize) << (DIGIT_BITS - 1)) + (ns >> shift) as usize
}

/// The smallest latency of a bucket.
fn floor_ns(bucket: usize) -> u64 {
    let half = 1 << (DIGIT_BITS - 1);
    let shift = (bucket / half).saturating_sub(1);
    ((bucket - shift * half) as u64) << shift
}

impl Latencies {
    /// One more.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        let bucket = bucket(latency.0);
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum_ns += u128::from(latency.0);
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
    }

    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize((bucket + 1).next_power_of_two(), 0);
    }

    /// Adds another's latencies, for reports that merge jobs.
    pub fn merge(&mut self, other: &Self) {
        let length = self.counts.len().max(other.counts.len());
        self.counts.resize(length, 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The shortest; zero when there is none.
    #[must_use]
    pub const fn min(&self) -> Nanos {
        if self.count == 0 { Nanos::ZERO } else { self.min }
    }

    /// The longest; zero when there is none.
    #[must_use]
    pub const fn max(&self) -> Nanos {
        self.max
    }

    /// The latency that a share of them does not exceed, as [`Latencies::ranks`]; `None` where there are too few of them for that
    /// share ([`has_rank`]).
    pub fn percentiles(&self) -> impl Fn(f64) -> Option<Nanos> + use<> {
        let (rank, count) = (self.ranks(), self.count);
        move |share| has_rank(count, share).then(|| rank(share))
    }

    /// Their exact sum in nanoseconds.
    pub(crate) const fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Counts by bucket, up to that of the longest.
    fn used_buckets(&self) -> &[u64] {
        if self.count == 0 { &[] } else { &self.counts[..=bucket(self.max.0)] }
    }

    /// The exact mean in nanoseconds; zero when there is none.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// How many there are from which latency on, up to the next entry; without those of none.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, count)| (floor_ns(bucket), *count))
    }

    /// The latency that a share of them does not exceed, to three significant digits. None lies outside the
    /// shortest and the longest, although a bucket of the histogram may.
    pub fn ranks(&self) -> impl Fn(f64) -> Nanos + use<> {
        let (histogram, min, max) = (self.histogram(), self.min().0, self.max().0);
        move |share| Nanos(histogram.value_at_quantile(share).clamp(min, max))
    }

    /// All of them as a histogram with three significant digits, for percentiles, standard
    /// deviation and export.
    #[must_use]
    pub fn histogram(&self) -> Histogram<u64> {
        let highest = self.max.0.max(2);
        let mut histogram =
            Histogram::new_with_bounds(1, highest, 3).expect("bounds 1 < 2, 3 <= 5");
        for (floor_ns, count) in self.buckets() {
            histogram.saturating_record_n(floor_ns, count);
        }
        histogram
    }
}

/// Whether so many samples have a percentile of this share: at least one of them is expected beyond it. Of fewer, it would be
/// their maximum under another name.
#[must_use]
pub fn has_rank(samples: u64, share: f64) -> bool {
    // One less a decimal fraction may be off by its last digit.
    samples as f64 * (1.0 - share) >= 1.0 - 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_rt::Stream;

    /// There are as many samples as a percentile has one beyond, or there is none.
    #[test]
    fn percentiles_have_samples_beyond_them() {
        for (share, least) in [(0.5, 2), (0.9, 10), (0.99, 100), (0.999, 1_000), (0.9999, 10_000)] {
            assert!(has_rank(least, share) && !has_rank(least - 1, share), "{share}");
        }
        assert!(!has_rank(0, 0.0) && has_rank(1, 0.0));
        let mut latencies = Latencies::default();
        (0..20).for_each(|ns| latencies.record(Nanos(ns)));
        let at = latencies.percentiles();
        assert_eq!((at(0.5).is_some(), at(0.95).is_some(), at(0.99)), (true, true, None));
    }

    /// No percentile lies outside what was recorded, however wide its bucket is.
    #[test]
    fn percentiles_lie_within_extremes() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.ranks()(0.5), Nanos::ZERO);
        [3_663_944, 3_663_945].into_iter().for_each(|ns| latencies.record(Nanos(ns)));
        let rank = latencies.ranks();
        for share in [0.0, 0.5, 0.999, 1.0] {
            assert!((latencies.min()..=latencies.max()).contains(&rank(share)), "{share}");
        }
    }

    /// Nothing is lost on the way to a histogram: it equals one that recorded the same latencies.
    #[test]
    fn buckets_are_the_histogram_s_own() {
        let mut random = Stream::new(7, "latency");
        let mut latencies = Latencies::default();
        let mut direct = Histogram::<u64>::new(3).unwrap();
        for _ in 0..20_000 {
            let ns = random.bits() >> (24 + random.below(40));
            latencies.record(Nanos(ns));
            direct.record(ns).unwrap();
        }
        for ns in [0, 1, 2_047, 2_048, 4_095, 4_096, 1 << 39] {
            assert!(direct.equivalent(floor_ns(bucket(ns)), ns), "{ns}");
        }
        let histogram = latencies.histogram();
        for quantile in [0.0, 0.01, 0.5, 0.99, 0.9999, 1.0] {
            let (got, exact) =
                (histogram.value_at_quantile(quantile), direct.value_at_quantile(quantile));
            assert!(direct.equivalent(got, exact), "{quantile}: {got} {exact}");
        }
        assert_eq!(latencies.count(), direct.len());
    }
}
