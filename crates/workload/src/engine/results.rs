//! What a run measured. Times are virtual; counts and latencies leave out what `ramp_time` covers.

use super::iolog::WrittenLog;
use super::rates::{DEPTH_CLASSES, Rates, RatesDone, Spread, Totals, Windows};
use super::series::Series;
use super::shadow::Content;
use super::zbd::ZoneCounts;
use crate::direction::Direction;
use crate::fio::{JobOption, SteadyCriterion};
use crate::latency::Latencies;
use nandscape_block::{BlockError, Lba};
use nandscape_rt::Nanos;
use std::fmt;

/// All that a run measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Results<S> {
    /// Reports, in the order of the job file. Jobs of a group with `group_reporting` share one.
    pub jobs: Vec<JobResult>,
    /// Totals over time.
    pub series: Series<S>,
    /// What `write_iolog` asked for.
    pub iologs: Vec<WrittenLog>,
    /// When the last job ended, or the run was given up.
    pub ended: Nanos,
    /// Keys of `[global]`, as they stand in the job file.
    pub global_options: Vec<JobOption>,
}

impl<S> Results<S> {
    /// Whether a job failed or read wrong data.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.jobs.iter().any(JobResult::failed)
    }

    /// What all jobs did together.
    #[must_use]
    pub fn totals(&self) -> GroupTotals {
        let ran = || self.jobs.iter().filter(|job| job.ended > job.began);
        let began = ran().map(|job| job.began).min().unwrap_or_default();
        let ended = ran().map(|job| job.ended).max().unwrap_or_default();
        let sum = |of: fn(&DirectionResult) -> u64| {
            std::array::from_fn(|at| self.jobs.iter().map(|job| of(&job.directions[at])).sum())
        };
        GroupTotals {
            length: ended.saturating_sub(began),
            times: Direction::ALL.map(|direction| time_of(&self.jobs, direction)),
            ios: sum(|direction| direction.ios),
            bytes: sum(|direction| direction.bytes),
            zones: self.jobs.iter().filter_map(|job| job.zones.clone()).reduce(|mut all, job| {
                all.merge(&job);
                all
            }),
        }
    }
}

/// The time in which at least one of the jobs ran that had I/Os of a direction.
fn time_of(jobs: &[JobResult], direction: Direction) -> Nanos {
    let had = |job: &&JobResult| job.direction(direction).ios > 0;
    let mut spans: Vec<_> = jobs.iter().filter(had).map(|job| (job.began, job.ended)).collect();
    spans.sort_unstable();
    let (mut until, mut sum) = (Nanos::ZERO, Nanos::ZERO);
    for (began, ended) in spans {
        sum += ended.saturating_sub(began.max(until));
        until = until.max(ended);
    }
    sum
}

/// What jobs did together. Rates of a direction are totals over the time in which a job ran that had I/Os of it, as in fio's
/// "Run status group": a job of another direction that runs longer, or before, does not lower them, and jobs that end early do
/// not count as if they had gone on.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct GroupTotals {
    /// From when the first began to count until the last ended.
    pub length: Nanos,
    /// Time in which a job ran that had I/Os of the direction; indexed by [`Direction`].
    pub times: [Nanos; 3],
    /// Completed I/Os; indexed by [`Direction`].
    pub ios: [u64; 3],
    /// Bytes of them, likewise.
    pub bytes: [u64; 3],
    /// What they did to zones, those with `zonemode=zbd`.
    pub zones: Option<ZoneCounts>,
}

impl GroupTotals {
    /// I/Os a second; `None` if no time passed.
    #[must_use]
    pub fn iops(&self, direction: Direction) -> Option<f64> {
        self.rate(direction, self.ios)
    }

    /// Bytes a second; `None` if no time passed.
    #[must_use]
    pub fn bytes_per_s(&self, direction: Direction) -> Option<f64> {
        self.rate(direction, self.bytes)
    }

    fn rate(&self, direction: Direction, counts: [u64; 3]) -> Option<f64> {
        let (time, count) = (self.times[direction as usize], counts[direction as usize]);
        match count {
            // Nothing of it was done in all the time.
            0 => (self.length > Nanos::ZERO).then_some(0.0),
            _ => (time > Nanos::ZERO).then(|| per_second(count, time)),
        }
    }
}

/// What one job, or one reporting group, did.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct JobResult {
    /// Name of the (first) job.
    pub name: String,
    /// Its `description`.
    pub description: String,
    /// Reporting group, from 0.
    pub group: u32,
    /// Jobs in this report, clones of `numjobs` included.
    pub jobs: u32,
    /// Those of them that bypass the page cache (`direct=1`), or replay a log.
    pub direct_jobs: u32,
    /// Its `iodepth`.
    pub depth: u32,
    /// Keys of its section, as they stand in the job file.
    pub options: Vec<JobOption>,
    /// I/Os by the depth at which they were in flight: class *k* is 2^*k* and more, up to the next.
    pub depths: [u64; DEPTH_CLASSES],
    /// Reads, writes, trims; indexed by [`Direction`].
    pub directions: [DirectionResult; 3],
    /// Latencies of flushes that `fsync`, `fdatasync` or `end_fsync` asked for.
    pub sync: Latencies,
    /// I/Os that covered sectors of the device in part, by direction.
    pub unaligned: [u64; 3],
    /// What it did to zones, with `zonemode=zbd`.
    pub zones: Option<ZoneCounts>,
    /// Whether it reached steady state, with `steadystate`.
    pub steady: Option<SteadyResult>,
    /// The queue depth that `latency_target` led to.
    pub latency_depth: Option<u32>,
    /// When it began to count: at its start, or after its ramp. Of several jobs, the first.
    pub began: Nanos,
    /// When it ended. Of several jobs, the last.
    pub ended: Nanos,
    /// Counted time: from the job's start (behind its ramp) to its end.
    pub runtime: Nanos,
    /// Sectors that were read and compared.
    pub verified_sectors: u64,
    /// Sectors that were read to be compared, but whose content was not certain.
    pub unverified_sectors: u64,
    /// Failures in all, those that `continue_on_error` tolerates included.
    pub errors: u64,
    /// The first few failures.
    pub failures: Vec<Failure>,
    /// A failure ended the job, or a sector read back wrong.
    pub ended_by_failure: bool,
}

impl JobResult {
    /// One direction's part.
    #[must_use]
    pub const fn direction(&self, direction: Direction) -> &DirectionResult {
        &self.directions[direction as usize]
    }

    /// Whether the job failed or read wrong data.
    #[must_use]
    pub const fn failed(&self) -> bool {
        self.ended_by_failure
    }

    /// I/Os a second of counted time.
    #[must_use]
    pub fn iops(&self, direction: Direction) -> f64 {
        per_second(self.direction(direction).ios, self.runtime)
    }

    /// Bytes a second of counted time.
    #[must_use]
    pub fn bytes_per_s(&self, direction: Direction) -> f64 {
        per_second(self.direction(direction).bytes, self.runtime)
    }

    /// It counted from `began` until `ended`; a job that never began to count has no time.
    pub(crate) fn set_time(&mut self, began: Nanos, ended: Nanos) {
        (self.began, self.ended) = (began.min(ended), ended);
        self.runtime = ended.saturating_sub(began);
    }

    /// Takes in what its windows brought.
    pub(crate) fn set_rates(&mut self, rates: Rates, totals: Totals) {
        let RatesDone { bandwidth, iops, windows } = rates.end(self.runtime, self.ended, totals);
        for (index, (direction, windows)) in self.directions.iter_mut().zip(windows).enumerate() {
            direction.bandwidth_kib = bandwidth[index];
            direction.iops = iops[index];
            direction.windows = windows;
        }
    }

    /// Takes in what the same jobs did right behind this.
    pub fn extend(&mut self, later: &Self) {
        self.add(later);
        self.runtime = self.runtime.saturating_add(later.runtime);
        self.ended = later.ended;
        for (mine, theirs) in self.directions.iter_mut().zip(&later.directions) {
            mine.bandwidth_kib.extend(&theirs.bandwidth_kib);
            mine.iops.extend(&theirs.iops);
            mine.windows.extend(&theirs.windows);
        }
    }

    /// Takes another job of the same group in.
    pub(super) fn merge(&mut self, other: &Self) {
        self.add(other);
        self.jobs += other.jobs;
        self.direct_jobs += other.direct_jobs;
        self.runtime = self.runtime.max(other.runtime);
        if other.ended > other.began {
            let first = if self.ended > self.began { self.began } else { other.began };
            (self.began, self.ended) = (first.min(other.began), self.ended.max(other.ended));
        }
        for (mine, theirs) in self.directions.iter_mut().zip(&other.directions) {
            mine.bandwidth_kib.merge(&theirs.bandwidth_kib);
            mine.iops.merge(&theirs.iops);
            mine.windows.merge(&theirs.windows);
        }
    }

    /// Adds up what does not depend on whether both ran beside each other.
    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.directions.iter_mut().zip(&other.directions) {
            mine.ios += theirs.ios;
            mine.bytes += theirs.bytes;
            mine.latency.merge(&theirs.latency);
        }
        self.steady = self.steady.take().or_else(|| other.steady.clone());
        self.sync.merge(&other.sync);
        if let Some(theirs) = &other.zones {
            self.zones.get_or_insert_default().merge(theirs);
        }
        self.depths.iter_mut().zip(other.depths).for_each(|(mine, theirs)| *mine += theirs);
        self.unaligned.iter_mut().zip(other.unaligned).for_each(|(mine, theirs)| *mine += theirs);
        self.verified_sectors += other.verified_sectors;
        self.unverified_sectors += other.unverified_sectors;
        self.errors += other.errors;
        let room = FAILURES_MAX.saturating_sub(self.failures.len());
        self.failures.extend(other.failures.iter().take(room).cloned());
        self.ended_by_failure |= other.ended_by_failure;
    }
}

fn per_second(count: u64, time: Nanos) -> f64 {
    if time == Nanos::ZERO { 0.0 } else { count as f64 / time.as_secs_f64() }
}

/// What an interval brought, per second.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct SteadySample {
    /// I/Os.
    pub iops: f64,
    /// Bytes.
    pub bandwidth: f64,
}

/// Whether jobs reached steady state, and by what measure.
#[derive(Clone, PartialEq, Debug)]
pub struct SteadyResult {
    /// What they were asked for.
    pub criterion: SteadyCriterion,
    /// The window.
    pub duration: Nanos,
    /// Whether they ended by it.
    pub attained: bool,
    /// The largest deviation from the mean, at the last look.
    pub deviation: f64,
    /// The slope per interval, likewise.
    pub slope: f64,
    /// What was compared with the limit, likewise.
    pub value: f64,
    /// The samples of the window.
    pub window: Vec<SteadySample>,
}

/// One direction of a job.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct DirectionResult {
    /// Completed I/Os.
    pub ios: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Time from submission to completion: fio's `clat`. Submission takes no virtual time, so `slat`
    /// is zero and `lat` is the same.
    pub latency: Latencies,
    /// KiB a second, in windows of half a second.
    pub bandwidth_kib: Spread,
    /// I/Os a second, likewise.
    pub iops: Spread,
    /// The windows themselves; those of a group are its own.
    pub windows: Windows,
}

/// Failures kept a report.
pub(crate) const FAILURES_MAX: usize = 16;

/// Something that went wrong within a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The job.
    pub job: String,
    /// When.
    pub at: Nanos,
    /// First sector.
    pub lba: Lba,
    /// What.
    pub what: FailureKind,
}

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// The device refused or failed an I/O; the operation, as fio names it.
    Io(&'static str, BlockError),
    /// An I/O, as fio names it, took longer than `max_latency` or `latency_target` allow.
    TooSlow {
        /// The operation.
        op: &'static str,
        /// What it took.
        latency: Nanos,
        /// What it was allowed.
        max: Nanos,
    },
    /// A direction fell below the rate that a key asks for.
    TooSlowRate {
        /// `rate_min` or `rate_iops_min`.
        key: &'static str,
        /// The direction.
        op: &'static str,
        /// Bytes or I/Os a second that were asked for.
        min: u64,
        /// What it reached.
        got: u64,
    },
    /// A sector read back wrong.
    Mismatch {
        /// What the job had made of it.
        expected: Content,
        /// What came.
        got: Content,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, at, lba, what } = self;
        match what {
            FailureKind::Io(op, error) => write!(f, "{job}: {op} of {lba} at {at}: {error}"),
            FailureKind::TooSlow { op, latency, max } => {
                write!(f, "{job}: {op} of {lba} at {at}: took {latency}, longer than {max}")
            }
            FailureKind::TooSlowRate { key, op, min, got } => {
                write!(f, "{job}: {op} at {at}: {key}={min} not met, got {got} per second")
            }
            FailureKind::Mismatch { expected, got } => {
                write!(f, "{job}: {lba} at {at}: expected {expected}, read {got}")
            }
        }
    }
}
