//! Bandwidth and I/O rate of a job in windows of half a second, for the spread that fio reports.
//!
//! fio (stat.c, `__add_samples`) takes a sample every `bwavgtime`, 500 ms unless set; windows without
//! I/O give none. In virtual time windows are exact. A job shorter than a window would have no sample
//! at all; it gets one, its mean.

use crate::fio::Direction;
use nandscape_rt::Nanos;

/// fio's default of `bwavgtime` and `iopsavgtime`.
const WINDOW: Nanos = Nanos::from_ms(500);

/// Samples of a rate: how many, between what, mean and deviation.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Spread {
    /// How many.
    pub samples: u64,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// The mean.
    pub mean: f64,
    /// Sum of squared differences from the mean.
    squares: f64,
}

impl Spread {
    /// One more, by Welford's method.
    pub fn add(&mut self, sample: u64) {
        let first = self.samples == 0;
        self.samples += 1;
        self.min = if first { sample } else { self.min.min(sample) };
        self.max = self.max.max(sample);
        let delta = sample as f64 - self.mean;
        self.mean += delta / self.samples as f64;
        self.squares += delta * (sample as f64 - self.mean);
    }

    /// The sample deviation; zero of a single one.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        if self.samples < 2 { 0.0 } else { (self.squares / (self.samples - 1) as f64).sqrt() }
    }

    /// Takes in a job that ran beside: everything adds up, as in fio.
    pub(super) fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        self.min += other.min;
        self.max += other.max;
        self.mean += other.mean;
        self.squares += other.squares;
    }

    /// Takes in later samples of the same job, by Chan's method.
    pub(super) fn extend(&mut self, later: &Self) {
        if self.samples == 0 || later.samples == 0 {
            *self = if self.samples == 0 { *later } else { *self };
            return;
        }
        let (before, more) = (self.samples as f64, later.samples as f64);
        let (delta, all) = (later.mean - self.mean, before + more);
        self.samples += later.samples;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.mean += delta * more / all;
        self.squares += later.squares + delta * delta * before * more / all;
    }
}

/// I/Os and bytes so far, by direction.
pub(crate) type Totals = [(u64, u64); 3];

/// The windows of one job.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    due: Nanos,
    /// At the end of the last window.
    last: Totals,
    /// KiB a second.
    bandwidth: [Spread; 3],
    iops: [Spread; 3],
}

impl Default for Rates {
    /// Windows that never begin.
    fn default() -> Self {
        let none = [Spread::default(); 3];
        Self { due: Nanos::MAX, last: Totals::default(), bandwidth: none, iops: none }
    }
}

impl Rates {
    /// The first window begins.
    pub(crate) fn begin(at: Nanos, totals: Totals) -> Self {
        Self { due: at.saturating_add(WINDOW), last: totals, ..Self::default() }
    }

    /// When the current window is over.
    #[inline]
    pub(crate) const fn due(&self) -> Nanos {
        self.due
    }

    /// The window is over; `totals` are of what completed in it and before.
    pub(crate) fn close(&mut self, now: Nanos, totals: Totals) {
        self.sample(WINDOW, totals);
        let passed = now.saturating_sub(self.due).0 / WINDOW.0 + 1;
        self.due = self.due.saturating_add(Nanos(WINDOW.0.saturating_mul(passed)));
    }

    fn sample(&mut self, time: Nanos, totals: Totals) {
        let rate = |count: u64| {
            u64::try_from(u128::from(count) * 1_000_000_000 / u128::from(time.0.max(1)))
                .unwrap_or(u64::MAX)
        };
        for (direction, (ios, bytes)) in totals.into_iter().enumerate() {
            let (ios_before, bytes_before) = self.last[direction];
            if ios > ios_before {
                self.iops[direction].add(rate(ios - ios_before));
                self.bandwidth[direction].add(rate(bytes - bytes_before) >> 10);
            }
        }
        self.last = totals;
    }

    /// The job is over: bandwidth in KiB a second and I/O rate.
    pub(crate) fn end(mut self, ran: Nanos, totals: Totals) -> ([Spread; 3], [Spread; 3]) {
        if Direction::ALL.iter().all(|direction| self.iops[*direction as usize].samples == 0) {
            self.sample(ran, totals);
        }
        (self.bandwidth, self.iops)
    }
}

/// Classes of queue depth: 1, 2 and 3, 4 to 7, and so on to 64 and more.
pub const DEPTH_CLASSES: usize = 7;

/// The class of a depth.
#[inline]
pub(crate) fn depth_class(depth: u32) -> usize {
    (depth.max(1).ilog2() as usize).min(DEPTH_CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows are half seconds, empty ones count for nothing, and a part of one at the end neither.
    #[test]
    fn windows_are_sampled() {
        let began = Nanos::from_ms(100);
        let mut rates = Rates::begin(began, Totals::default());
        let totals = |ios: u64| [(0, 0), (ios, ios * 4096), (0, 0)];
        rates.close(Nanos::from_ms(600), totals(100));
        rates.close(Nanos::from_ms(2_700), totals(400));
        assert_eq!(rates.due(), Nanos::from_ms(3_100));
        let (bandwidth, iops) = rates.end(Nanos::from_ms(2_900), totals(1_000));
        assert_eq!((iops[1].min, iops[1].max, iops[1].mean), (200, 600, 400.0));
        assert_eq!((bandwidth[1].min, bandwidth[1].samples, iops[0].samples), (800, 2, 0));
        assert!((iops[1].deviation() - 80_000f64.sqrt()).abs() < 1e-9);
    }

    /// Samples in two parts, one behind the other, are the same as in one.
    #[test]
    fn later_samples_extend_earlier_ones() {
        let of = |samples: &[u64]| {
            let mut spread = Spread::default();
            samples.iter().for_each(|sample| spread.add(*sample));
            spread
        };
        let all = [3, 9, 4, 1, 12];
        for cut in 0..=all.len() {
            let mut spread = of(&all[..cut]);
            spread.extend(&of(&all[cut..]));
            assert_eq!((spread.samples, spread.min, spread.max), (5, 1, 12));
            assert!((spread.mean - 5.8).abs() < 1e-12, "{cut}");
            assert!((spread.deviation() - of(&all).deviation()).abs() < 1e-12, "{cut}");
        }
    }

    /// A job shorter than a window has its mean for a sample.
    #[test]
    fn a_short_job_has_a_sample() {
        let rates = Rates::begin(Nanos::ZERO, Totals::default());
        let (_, iops) = rates.end(Nanos::from_ms(10), [(0, 0), (100, 409_600), (0, 0)]);
        assert_eq!((iops[1].samples, iops[1].mean), (1, 10_000.0));
    }

    /// fio's classes of depth (stat.c, `io_u_mark_depth`).
    #[test]
    fn depths_are_classed_as_in_fio() {
        let classes =
            [(1, 0), (2, 1), (3, 1), (4, 2), (31, 4), (32, 5), (63, 5), (64, 6), (9_999, 6)];
        classes.into_iter().for_each(|(depth, class)| assert_eq!(depth_class(depth), class));
    }
}
