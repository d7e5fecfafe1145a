//! The course of a run over virtual time, and whether it was steady.

use super::amplification::WriteAmplification;
use super::sample::Sample;
use nandscape_rt::Nanos;
use nandscape_rt::counts::Counts as _;
use nandscape_workload::engine::{IntervalLatency, LatencyTotals, Point as Counted};

/// Totals at one instant of the measured phase.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Totals {
    /// When.
    pub(super) at: Nanos,
    /// Completed I/Os.
    pub(super) ios: u64,
    /// Bytes of them, by direction.
    pub(super) bytes: [u64; 3],
    /// Their latencies, by direction, and those of flushes.
    pub(super) latency: [LatencyTotals; 4],
    /// What was sampled.
    pub(super) sample: Sample,
}

impl From<&Counted<Sample>> for Totals {
    fn from(point: &Counted<Sample>) -> Self {
        Self {
            at: point.at,
            ios: point.ios.iter().sum(),
            bytes: point.bytes,
            latency: point.latency.clone(),
            sample: point.sample,
        }
    }
}

impl Totals {
    /// I/Os a second since `earlier`.
    pub(super) fn iops_since(&self, earlier: &Self) -> f64 {
        self.per_second(earlier, self.ios.saturating_sub(earlier.ios))
    }

    fn per_second(&self, earlier: &Self, count: u64) -> f64 {
        let seconds = self.at.saturating_sub(earlier.at).as_secs_f64();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }

    /// Write amplification since `earlier`.
    pub(super) fn waf_since(&self, earlier: &Self) -> WriteAmplification {
        WriteAmplification::of(&self.sample.sectors.since(&earlier.sample.sectors))
    }

    /// Garbage collection since `earlier`.
    fn garbage_since(&self, earlier: &Self) -> GarbagePoint {
        let since = self.sample.since(&earlier.sample);
        let rate = |count: u64| self.per_second(earlier, count);
        let cleaning = since.cleaning.map(|cleaning| CleaningPoint {
            blocks_per_s: rate(cleaning.blocks),
            share: rate(cleaning.ns) / 1e9,
            checkpoints_per_s: rate(cleaning.checkpoints),
            free_segments: cleaning.free_segments,
        });
        let migrations = since.migrations.map(|counts| MigrationPoint {
            moved_per_s: rate(counts.moved),
            upcalls_per_s: rate(counts.upcalls),
            open: counts.open,
            record_bytes: counts.record_bytes,
            region_use: counts.region_lines as f64 / counts.region_lines_all.max(1) as f64,
        });
        GarbagePoint { sectors_per_s: rate(since.sectors.gc), cleaning, migrations }
    }
}

/// Collection of garbage in an interval: by the device, and by the file system.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct GarbagePoint {
    /// Sectors a second that the FTL copied.
    pub sectors_per_s: f64,
    /// Of an F2FS.
    pub cleaning: Option<CleaningPoint>,
    /// Of a coupled SSD.
    pub migrations: Option<MigrationPoint>,
}

/// Cleaning of an F2FS in an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CleaningPoint {
    /// Blocks a second that it moved.
    pub blocks_per_s: f64,
    /// Share of the interval for which calls in the foreground took; a call counts where it ends.
    pub share: f64,
    /// Checkpoints a second.
    pub checkpoints_per_s: f64,
    /// Segments that are free at its end.
    pub free_segments: u64,
}

/// Migrations of a coupled SSD in an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MigrationPoint {
    /// Pages a second that collection moved.
    pub moved_per_s: f64,
    /// Upcalls a second that the host fetched.
    pub upcalls_per_s: f64,
    /// Records that are open at its end.
    pub open: u64,
    /// Bytes of RAM of records and of the tables that find them, at its end.
    pub record_bytes: u64,
    /// Share of the region to which data is moved that is in use, at its end.
    pub region_use: f64,
}

/// One interval of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// End of the interval, from the beginning of the measured phase.
    pub t_s: f64,
    /// I/Os a second in it.
    pub iops: f64,
    /// Bytes a second in it, by direction.
    pub bytes_per_s: [f64; 3],
    /// Write amplification in it.
    pub waf: WriteAmplification,
    /// Latencies of the I/Os that completed in it, by direction, and of flushes.
    pub latency: [Option<IntervalLatency>; 4],
    /// Collection of garbage in it.
    pub garbage: GarbagePoint,
}

/// The intervals between totals, of which the first are those of the beginning.
pub(super) fn points(totals: &[Totals]) -> Vec<Point> {
    let began = totals.first().map_or(Nanos::ZERO, |first| first.at);
    let point = |pair: &[Totals]| {
        let (from, to) = (&pair[0], &pair[1]);
        let bytes = |at: usize| to.bytes[at].saturating_sub(from.bytes[at]);
        Point {
            t_s: to.at.saturating_sub(began).as_secs_f64(),
            iops: to.iops_since(from),
            bytes_per_s: std::array::from_fn(|at| to.per_second(from, bytes(at))),
            waf: to.waf_since(from),
            latency: std::array::from_fn(|at| to.latency[at].since(&from.latency[at])),
            garbage: to.garbage_since(from),
        }
    };
    totals.windows(2).map(point).collect()
}

/// Windows that a run is judged by, as many as SNIA's measurement window has rounds.
pub(super) const WINDOWS: usize = 5;
/// Largest spread of the windows, in parts of their mean.
const RANGE_MAX: f64 = 0.20;
/// Largest drift of their best linear fit from end to end, likewise.
const DRIFT_MAX: f64 = 0.10;

/// What [`steady`] asks, or [`settled`] of rounds, in words.
pub(super) fn criterion(in_rounds: bool) -> String {
    let over = match in_rounds {
        true => format!("over the last {WINDOWS} rounds:"),
        false => format!("over the whole measured phase: in {WINDOWS} equal windows"),
    };
    format!(
        "SNIA PTS 2.0.2, {over} neither IOPS nor write amplification ranges over more than {:.0} % \
         of its mean or drifts by more than {:.0} %",
        RANGE_MAX * 100.0,
        DRIFT_MAX * 100.0
    )
}

/// SNIA's steady state (Solid State Storage Performance Test Specification 2.0.2, "steady state"),
/// asked of the whole measured phase, since every figure is an average over all of it. [`criterion`]
/// says what is asked.
///
/// # Errors
/// What was not steady.
pub(super) fn steady(totals: &[Totals]) -> Result<(), String> {
    let windows = windows(totals).ok_or("the run was too short to tell whether it was steady")?;
    let iops: Vec<f64> = windows.iter().map(|(from, to)| to.iops_since(from)).collect();
    check("IOPS", &iops)?;
    let waf: Option<Vec<f64>> = windows.iter().map(|(from, to)| to.waf_since(from).gc).collect();
    waf.map_or(Ok(()), |waf| check("write amplification", &waf))
}

/// The course in [`WINDOWS`] windows of about the same length.
fn windows(totals: &[Totals]) -> Option<Vec<(&Totals, &Totals)>> {
    let intervals = totals.len().saturating_sub(1);
    let edge = |window: usize| &totals[window * intervals / WINDOWS];
    (intervals >= WINDOWS)
        .then(|| (0..WINDOWS).map(|window| (edge(window), edge(window + 1))).collect())
}

/// Whether the last [`WINDOWS`] of `values`, one a round, are steady.
///
/// # Errors
/// What was not, or that there are too few.
pub(super) fn settled(what: &str, values: &[f64]) -> Result<(), String> {
    match values.len().checked_sub(WINDOWS) {
        Some(first) => check(what, &values[first..]),
        None => Err(format!("fewer than {WINDOWS} rounds")),
    }
}

fn check(what: &str, values: &[f64]) -> Result<(), String> {
    let (range, drift) = spread(values);
    if range <= RANGE_MAX && drift <= DRIFT_MAX {
        return Ok(());
    }
    Err(format!(
        "not steady: {what} ranges over {:.0} % of its mean (at most {:.0}) and drifts by {:.0} % \
         (at most {:.0}), judged by {WINDOWS} windows",
        range * 100.0,
        RANGE_MAX * 100.0,
        drift * 100.0,
        DRIFT_MAX * 100.0
    ))
}

/// Range, and drift of the least-squares line from end to end, both in parts of the mean.
fn spread(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if mean == 0.0 {
        return (0.0, 0.0);
    }
    let low = values.iter().fold(f64::MAX, |low, value| low.min(*value));
    let high = values.iter().fold(f64::MIN, |high, value| high.max(*value));
    let centre = (n - 1.0) / 2.0;
    let offsets = || (0..values.len()).map(|i| i as f64 - centre);
    let covariance: f64 = offsets().zip(values).map(|(x, y)| x * (y - mean)).sum();
    let slope = covariance / offsets().map(|x| x * x).sum::<f64>();
    ((high - low) / mean, (slope * (n - 1.0)).abs() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_ftl::SectorCounts;

    fn run(ms: u64, ios_until: impl Fn(u64) -> u64) -> Vec<Totals> {
        let totals = |at| {
            let ios = ios_until(at);
            let sectors = SectorCounts { user: ios, gc: ios, ..SectorCounts::default() };
            let sample = Sample { sectors, ..Sample::default() };
            Totals { at: Nanos::from_ms(7 + at), ios, sample, ..Totals::default() }
        };
        (0..=ms).map(totals).collect()
    }

    /// Points are rates within intervals, on a clock that begins with the measured phase.
    #[test]
    fn points_are_differences() {
        let points = points(&run(50, |at| 3 * at));
        assert_eq!(points.len(), 50);
        assert_eq!(points[49].t_s, 0.05);
        assert!(points.iter().all(|p| (p.iops - 3_000.0).abs() < 1e-6 && p.waf.gc == Some(2.0)));
        assert!(super::points(&run(1, |_| 9)).iter().all(|p| p.iops == 0.0 && p.waf.gc.is_none()));
    }

    /// A constant rate is steady; a ramp, a cliff and a burst are not; five points are too few.
    #[test]
    fn drift_and_range_are_noticed() {
        assert_eq!(steady(&run(1_000, |at| 3 * at)), Ok(()));
        assert!(steady(&run(1_000, |at| at * at)).unwrap_err().contains("IOPS"));
        assert!(steady(&run(1_000, |at| 3 * at.min(800))).is_err());
        assert!(steady(&run(1_000, |at| 3 * at + if at >= 500 { 900 } else { 0 })).is_err());
        assert!(steady(&run(4, |at| at)).unwrap_err().contains("too short"));
    }
}
