//! Latencies until one instant, coarse enough to be kept at every point of a series.
//!
//! They are totals, as all that a series keeps: the latencies of an interval are the difference of two,
//! so points may be left out. They are taken from [`Latencies`] when a point is due, and a completion
//! pays nothing for them. Count and sum are exact. Buckets are 32 of `Latencies`' own: 32 ns wide
//! below 2,048 ns, then 32 an octave, so a percentile is at most 1/32 too high. A point takes 8 bytes
//! a bucket, up to its longest latency: 3 KB for latencies up to 1 ms, 6 KB up to 1 s.

use super::{Latencies, floor_ns, has_rank};
use nandscape_rt::Nanos;

/// Buckets of [`Latencies`] that are one here.
const MERGED: usize = 32;
/// Octaves of an interval's histogram, of which the last one has no end, and the power of two at which the first
/// one begins.
const OCTAVES: usize = 34;
const FIRST_OCTAVE: u32 = 10;

/// Latencies from the beginning to one instant.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LatencyTotals {
    buckets: Vec<u64>,
    count: u64,
    sum_ns: u128,
    max: Nanos,
}

/// The latencies of one interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IntervalLatency {
    /// How many there are; never zero.
    pub count: u64,
    /// Their mean, exact.
    pub mean_ns: f64,
    /// Their median; `None` of too few ([`has_rank`]), as of the next.
    pub p50: Option<Nanos>,
    /// One in a hundred is longer.
    pub p99: Option<Nanos>,
    /// The longest.
    pub max: Nanos,
    octaves: [u64; OCTAVES],
}

impl IntervalLatency {
    /// How many are in each octave, from the first that has any to the last: the start of the first, and counts.
    /// Shorter ones than 1,024 ns count in the octave that begins there.
    #[must_use]
    pub fn octaves(&self) -> (Nanos, &[u64]) {
        let is_used = |count: &u64| *count > 0;
        let first = self.octaves.iter().position(is_used).unwrap_or(0);
        let last = self.octaves.iter().rposition(is_used).unwrap_or(0);
        (Nanos(1 << (FIRST_OCTAVE + first as u32)), &self.octaves[first..=last])
    }
}

impl LatencyTotals {
    /// Adds all of `latencies`.
    pub(crate) fn add(&mut self, latencies: &Latencies) {
        let groups = latencies.used_buckets().chunks(MERGED);
        if self.buckets.len() < groups.len() {
            self.buckets.resize(groups.len(), 0);
        }
        self.buckets
            .iter_mut()
            .zip(groups)
            .for_each(|(sum, group)| *sum += group.iter().sum::<u64>());
        self.count += latencies.count();
        self.sum_ns += latencies.sum_ns();
        self.max = self.max.max(latencies.max());
    }

    /// Adds what another holds.
    pub(crate) fn merge(&mut self, other: &Self) {
        let length = self.buckets.len().max(other.buckets.len());
        self.buckets.resize(length, 0);
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max = self.max.max(other.max);
    }

    /// Those that came since `earlier`; `None` when there are none.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<IntervalLatency> {
        let count = self.count.checked_sub(earlier.count).filter(|count| *count > 0)?;
        let longest = self.longest_since(earlier);
        let percentile = |percent: u64| {
            let rank = (u128::from(count) * u128::from(percent)).div_ceil(100) as u64;
            has_rank(count, percent as f64 / 100.0)
                .then(|| self.at_rank(earlier, rank).min(longest))
        };
        Some(IntervalLatency {
            count,
            mean_ns: self.sum_ns.saturating_sub(earlier.sum_ns) as f64 / count as f64,
            p50: percentile(50),
            p99: percentile(99),
            max: longest,
            octaves: self.octaves_since(earlier),
        })
    }

    fn octaves_since(&self, earlier: &Self) -> [u64; OCTAVES] {
        let mut octaves = [0; OCTAVES];
        for (bucket, count) in self.new_counts(earlier).enumerate() {
            let octave = floor_ns(bucket * MERGED).max(1 << FIRST_OCTAVE).ilog2() - FIRST_OCTAVE;
            octaves[(octave as usize).min(OCTAVES - 1)] += count;
        }
        octaves
    }

    /// The longest since `earlier`: exact if it is the longest of all, else the end of its bucket.
    fn longest_since(&self, earlier: &Self) -> Nanos {
        if self.max > earlier.max {
            return self.max;
        }
        let last = self.new_counts(earlier).enumerate().filter(|(_, count)| *count > 0).last();
        last.map_or(Nanos::ZERO, |(bucket, _)| bucket_end(bucket)).min(self.max)
    }

    /// The end of the bucket of the `rank`-th shortest, from 1, since `earlier`.
    fn at_rank(&self, earlier: &Self, rank: u64) -> Nanos {
        let mut seen = 0;
        let found = self.new_counts(earlier).position(|count| {
            seen += count;
            seen >= rank
        });
        found.map_or(self.max, bucket_end)
    }

    fn new_counts<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = u64> + 'a {
        let before = earlier.buckets.iter().copied().chain(std::iter::repeat(0));
        self.buckets.iter().zip(before).map(|(now, before)| now.saturating_sub(before))
    }
}

/// The longest latency of a bucket.
fn bucket_end(bucket: usize) -> Nanos {
    Nanos(floor_ns((bucket + 1) * MERGED) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(latencies: &Latencies) -> LatencyTotals {
        let mut totals = LatencyTotals::default();
        totals.add(latencies);
        totals
    }

    /// An interval has the figures of its own latencies alone, whatever came before it.
    #[test]
    fn an_interval_is_a_difference() {
        let mut latencies = Latencies::default();
        (0..1_000).for_each(|_| latencies.record(Nanos(5_000_000)));
        let earlier = totals(&latencies);
        (1..=100).for_each(|us| latencies.record(Nanos(us * 1_000)));
        let interval = totals(&latencies).since(&earlier).unwrap();
        assert_eq!(interval.count, 100);
        assert_eq!(interval.mean_ns, 50_500.0);
        let (p50, p99) = (interval.p50.unwrap(), interval.p99.unwrap());
        for (value, exact) in [(p50, 50_000), (p99, 99_000), (interval.max, 100_000)] {
            assert!((exact..=exact * 33 / 32).contains(&value.0), "{value} for {exact}");
        }
        assert_eq!(earlier.since(&earlier), None);
    }

    /// Every latency of an interval is in the octave that it lies in, those below 1,024 ns in the first.
    #[test]
    fn octaves_hold_all_of_an_interval() {
        let mut latencies = Latencies::default();
        latencies.record(Nanos(1 << 20));
        let earlier = totals(&latencies);
        let latest = [0, 1_023, 1_024, 2_047, 2_048, 4_095, 16_384];
        latest.into_iter().for_each(|ns| latencies.record(Nanos(ns)));
        let interval = totals(&latencies).since(&earlier).unwrap();
        assert_eq!(interval.octaves(), (Nanos(1_024), &[4, 2, 0, 0, 1][..]));
    }

    /// The longest of all is exact, and no percentile lies beyond it.
    #[test]
    fn the_longest_is_exact() {
        let mut latencies = Latencies::default();
        let nothing = totals(&latencies);
        latencies.record(Nanos(12_345_678));
        let interval = totals(&latencies).since(&nothing).unwrap();
        assert_eq!((interval.p50, interval.p99), (None, None), "one is too few for any");
        (0..99).for_each(|_| latencies.record(Nanos(12_345_678)));
        let interval = totals(&latencies).since(&nothing).unwrap();
        let longest = Nanos(12_345_678);
        assert_eq!(
            (interval.p50, interval.p99, interval.max),
            (Some(longest), Some(longest), longest)
        );
    }

    /// Totals of two jobs are those of one job that did the work of both.
    #[test]
    fn merging_adds() {
        let (mut one, mut both) = (Latencies::default(), Latencies::default());
        [3, 300, 30_000].into_iter().for_each(|ns| one.record(Nanos(ns)));
        (0..2).for_each(|_| both.merge(&one));
        let mut merged = totals(&one);
        merged.merge(&totals(&one));
        assert_eq!(merged, totals(&both));
    }
}
