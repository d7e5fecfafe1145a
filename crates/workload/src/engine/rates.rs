//! Bandwidth and I/O rate of a job in windows of half a second, for the spread that fio reports.
//!
//! fio (stat.c, `__add_samples`) takes a sample every `bwavgtime`, 500 ms unless set; windows without
//! I/O give none. In virtual time windows are exact. A job shorter than a window would have no sample
//! at all; it gets one, its mean.
//!
//! fio adds up what jobs of a group sampled, whenever that was. [`Windows`] are kept beside that: what a group did in each
//! half second is the sum of what its jobs did in it.

use crate::direction::Direction;
use nandscape_rt::Nanos;
use std::collections::BTreeMap;

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

/// I/Os between two instants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Window {
    from: Nanos,
    to: Nanos,
    ios: u64,
}

impl Window {
    /// I/Os a second.
    fn rate(&self) -> u64 {
        per_second(self.ios, self.to.saturating_sub(self.from))
    }
}

/// The I/Os of a job, or of jobs that report together, by windows of half a second. Windows without any are left out.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Windows(Vec<Window>);

impl Windows {
    /// The rates of the windows from the first with I/Os to the last; one between them without any has a rate of zero.
    #[must_use]
    pub fn spread(&self) -> Spread {
        let mut spread = Spread::default();
        let mut until = None;
        for window in &self.0 {
            let gap = until.map_or(Nanos::ZERO, |until| window.from.saturating_sub(until));
            spread.extend(&Spread { samples: gap.0 / WINDOW.0, ..Spread::default() });
            spread.add(window.rate());
            until = Some(window.to);
        }
        spread
    }

    /// Takes in the I/Os of a job that ran beside, in windows from the beginning of the first on: those of a job that began at
    /// another time are divided by time. Jobs that were all shorter than a window share one.
    pub(super) fn merge(&mut self, other: &Self) {
        let all = || self.0.iter().chain(&other.0);
        let begin = all().map(|window| window.from).min().unwrap_or_default();
        let end = all().map(|window| window.to).max().unwrap_or_default();
        let length = WINDOW.0.min(end.saturating_sub(begin).0).max(1);
        let mut ios: BTreeMap<u64, u64> = BTreeMap::new();
        for window in all() {
            let (from, to) = ((window.from - begin).0, (window.to - begin).0);
            let until = |at: u64| {
                let share = u128::from(at.clamp(from, to) - from);
                let whole = u128::from((to - from).max(1));
                u64::try_from(u128::from(window.ios) * share / whole).unwrap_or(u64::MAX)
            };
            for at in from / length..to.div_ceil(length) {
                *ios.entry(at).or_default() += until((at + 1) * length) - until(at * length);
            }
        }
        let window = |(at, ios): (u64, u64)| Window {
            from: begin + Nanos(at * length),
            to: begin + Nanos((at + 1) * length),
            ios,
        };
        // A part of a window at the end counts for nothing, as in each job.
        let whole = |window: &Window| window.ios > 0 && window.to <= end;
        self.0 = ios.into_iter().map(window).filter(whole).collect();
    }

    /// Takes in later windows of the same job.
    pub(super) fn extend(&mut self, later: &Self) {
        self.0.extend(&later.0);
    }
}

/// So many in this time, a second.
fn per_second(count: u64, time: Nanos) -> u64 {
    u64::try_from(u128::from(count) * 1_000_000_000 / u128::from(time.0.max(1))).unwrap_or(u64::MAX)
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
    windows: [Windows; 3],
}

/// What the windows of a job brought, by direction.
pub(crate) struct RatesDone {
    /// KiB a second.
    pub(crate) bandwidth: [Spread; 3],
    /// I/Os a second.
    pub(crate) iops: [Spread; 3],
    /// The windows themselves.
    pub(crate) windows: [Windows; 3],
}

impl Default for Rates {
    /// Windows that never begin.
    fn default() -> Self {
        let none = [Spread::default(); 3];
        let windows = <[Windows; 3]>::default();
        Self { due: Nanos::MAX, last: Totals::default(), bandwidth: none, iops: none, windows }
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
        self.sample(WINDOW, self.due, totals);
        let passed = now.saturating_sub(self.due).0 / WINDOW.0 + 1;
        self.due = self.due.saturating_add(Nanos(WINDOW.0.saturating_mul(passed)));
    }

    /// What was done in the time `until` then.
    fn sample(&mut self, time: Nanos, until: Nanos, totals: Totals) {
        let rate = |count: u64| per_second(count, time);
        for (direction, (ios, bytes)) in totals.into_iter().enumerate() {
            let (ios_before, bytes_before) = self.last[direction];
            if ios > ios_before {
                self.iops[direction].add(rate(ios - ios_before));
                self.bandwidth[direction].add(rate(bytes - bytes_before) >> 10);
                let (from, ios) = (until.saturating_sub(time), ios - ios_before);
                self.windows[direction].0.push(Window { from, to: until, ios });
            }
        }
        self.last = totals;
    }

    /// The job is over; it has counted the time `ran`.
    pub(crate) fn end(mut self, ran: Nanos, ended: Nanos, totals: Totals) -> RatesDone {
        if Direction::ALL.iter().all(|direction| self.iops[*direction as usize].samples == 0) {
            self.sample(ran, ended, totals);
        }
        let Self { bandwidth, iops, windows, .. } = self;
        RatesDone { bandwidth, iops, windows }
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
        let ended = Nanos::from_ms(3_000);
        let RatesDone { bandwidth, iops, windows } =
            rates.end(Nanos::from_ms(2_900), ended, totals(1_000));
        let spread = windows[1].spread();
        assert_eq!(spread, iops[1]);
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
        let (ran, totals) = (Nanos::from_ms(10), [(0, 0), (100, 409_600), (0, 0)]);
        let RatesDone { iops, windows, .. } = rates.end(ran, ran, totals);
        assert_eq!((iops[1].samples, iops[1].mean), (1, 10_000.0));
        assert_eq!(windows[1].spread(), iops[1]);
    }

    fn windows(of: &[(u64, u64, u64)]) -> Windows {
        let window = |&(from, to, ios): &(u64, u64, u64)| Window {
            from: Nanos::from_ms(from),
            to: Nanos::from_ms(to),
            ios,
        };
        Windows(of.iter().map(window).collect())
    }

    /// The windows of jobs beside each other are those of the same half seconds: rates of one moment add up, and those of
    /// different moments do not.
    #[test]
    fn a_group_has_its_own_windows() {
        let mut group = windows(&[(0, 500, 10), (500, 1_000, 90), (1_000, 1_500, 50)]);
        group.merge(&windows(&[(0, 500, 90), (500, 1_000, 10), (1_000, 1_500, 50)]));
        assert_eq!(group, windows(&[(0, 500, 100), (500, 1_000, 100), (1_000, 1_500, 100)]));
        let spread = group.spread();
        assert_eq!(
            (spread.samples, spread.min, spread.max, spread.deviation()),
            (3, 200, 200, 0.0)
        );
        let mut stalls = windows(&[(0, 500, 10), (1_500, 2_000, 10)]);
        stalls.merge(&windows(&[(0, 500, 10), (1_500, 2_000, 30)]));
        let spread = stalls.spread();
        assert_eq!((spread.samples, spread.min, spread.max), (4, 0, 80));
    }

    /// Windows of jobs that began at different times are divided by time; short jobs share one window.
    #[test]
    fn windows_of_other_times_are_divided() {
        let mut group = windows(&[(0, 500, 100), (500, 1_000, 100)]);
        group.merge(&windows(&[(250, 750, 40)]));
        assert_eq!(group, windows(&[(0, 500, 120), (500, 1_000, 120)]));
        let mut short = windows(&[(0, 79, 20)]);
        short.merge(&windows(&[(0, 80, 20)]));
        assert_eq!(short, windows(&[(0, 80, 40)]));
        let mut none = windows(&[]);
        none.merge(&windows(&[]));
        assert_eq!(none.spread(), Spread::default());
    }

    /// fio's classes of depth (stat.c, `io_u_mark_depth`).
    #[test]
    fn depths_are_classed_as_in_fio() {
        let classes =
            [(1, 0), (2, 1), (3, 1), (4, 2), (31, 4), (32, 5), (63, 5), (64, 6), (9_999, 6)];
        classes.into_iter().for_each(|(depth, class)| assert_eq!(depth_class(depth), class));
    }
}
