//! Totals over time, at even distances. Points are cumulative, so rates are differences, and when
//! there are too many points every second one is left out and the distance doubles.

use crate::latency::LatencyTotals;
use nandscape_rt::Nanos;

/// The totals at one instant.
#[derive(Clone, PartialEq, Debug)]
pub struct Point<S> {
    /// When.
    pub at: Nanos,
    /// I/Os completed since the beginning, by direction.
    pub ios: [u64; 3],
    /// Bytes of them.
    pub bytes: [u64; 3],
    /// Latencies of them, by direction, and of flushes.
    pub latency: [LatencyTotals; 4],
    /// I/Os in flight; `None` for loads that do not count them.
    pub in_flight: Option<u32>,
    /// What the run's [`Probe`] saw.
    pub sample: S,
}

/// Points at even distances, the last one perhaps nearer.
#[derive(Clone, PartialEq, Debug)]
pub struct Series<S> {
    /// The beginning of the run.
    pub began: Nanos,
    /// Distance of points.
    pub interval: Nanos,
    /// The points, in order of time. The beginning, where all counts are zero, is not among them.
    pub points: Vec<Point<S>>,
    points_max: usize,
}

impl<S> Series<S> {
    /// No points yet, of which there are never as many as `points_max`, which must be even.
    #[must_use]
    pub const fn new(began: Nanos, interval: Nanos, points_max: usize) -> Self {
        Self { began, interval, points: Vec::new(), points_max }
    }

    /// When the next point is due.
    #[must_use]
    pub fn due(&self) -> Nanos {
        let intervals = self.points.len() as u64 + 1;
        self.began.saturating_add(Nanos(self.interval.0.saturating_mul(intervals)))
    }

    /// Adds the point that is due.
    pub fn push(&mut self, point: Point<S>) {
        self.points.push(point);
        if self.points.len() >= self.points_max {
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.interval = Nanos(self.interval.0.saturating_mul(2));
        }
    }
}

/// Something to be looked at, at every point of the series: the target's counters.
pub trait Probe<T> {
    /// What it sees. Cumulative, like the rest of a point, for points may be left out.
    type Sample;
    /// Looks.
    fn sample(&mut self, target: &T, at: Nanos) -> Self::Sample;
}

/// Looks at nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoProbe;

impl<T> Probe<T> for NoProbe {
    type Sample = ();
    fn sample(&mut self, _: &T, _: Nanos) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of points is bounded, they stay evenly spaced, and none is ever made up.
    #[test]
    fn a_long_series_thins_itself_out() {
        let mut series = Series::new(Nanos(5), Nanos(10), 8);
        for _ in 0..60 {
            let at = series.due();
            let latency = <[LatencyTotals; 4]>::default();
            series.push(Point {
                at,
                ios: [at.0; 3],
                bytes: [0; 3],
                latency,
                in_flight: None,
                sample: (),
            });
            assert!(series.points.len() < 8);
        }
        for (index, point) in series.points.iter().enumerate() {
            assert_eq!(point.at, Nanos(5 + series.interval.0 * (index as u64 + 1)));
        }
        assert!(series.interval > Nanos(10));
    }
}
