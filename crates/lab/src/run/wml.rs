//! A Filebench workload as what runs on a stack: its threads call the stack's file system themselves.

use super::course::Totals;
use super::device::{LabDevice, Mounted};
use super::drive::{RunEnd, RunningLoad, drive};
use super::error::RunError;
use super::files::{Above, Contents};
use super::load::{INTERVAL, Load, Measurement, POINTS_MAX};
use super::observer::Observer;
use super::sample::Sample;
use super::settled::Ground;
use super::silence::{HANG_LIMIT, HangDetector, hang_message};
use super::steps::run_load;
use super::{Outcome, RunOptions};
use crate::stack::{SHIPPED, Stack};
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;
use nandscape_workload::engine::{JobResult, Point, Results, RunState, Series};
use nandscape_workload::fio::Direction;
use nandscape_workload::wml::engine::{Report, Row, Session, Settings, Snapshot, Sums};
use nandscape_workload::wml::{Fileset, Op, Tree, Way, Workload};
use std::rc::Rc;

/// Runs a Filebench workload on `stack`.
///
/// # Errors
/// A stack without a file system, or that does not fit, or a run that could not go on. What ends the
/// workload early is part of the outcome.
pub fn run_workload(
    stack: &Stack,
    workload: &Workload,
    seed: u64,
    manner: RunOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    if stack.fs.is_none() {
        let with = SHIPPED.iter().filter(|(_, text)| text.contains("[fs]")).map(|(name, _)| *name);
        let with = with.collect::<Vec<_>>().join(", ");
        return Err(RunError::Job(format!(
            "a Filebench workload needs a file system, and the stack {} has none; these have: {with}",
            stack.name
        )));
    }
    let tree = |fileset: &Fileset| {
        let placed = |error| RunError::Job(format!("{}: {error}", fileset.place));
        Tree::new(fileset, seed).map_err(placed)
    };
    let trees = workload.filesets.iter().map(tree).collect::<Result<Vec<_>, _>>()?;
    let workload = Rc::new(workload.clone());
    let load = Flowops { workload: Rc::clone(&workload) };
    let contents = Contents::Trees(workload, trees);
    run_load(stack, load, Above::FileSystem(contents), seed, manner, observer)
}

/// A workload.
struct Flowops {
    workload: Rc<Workload>,
}

impl Load for Flowops {
    fn measure<D: LabDevice>(
        self,
        device: &mut D,
        ground: &Ground,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, RunError> {
        let Some(Mounted { rt, host, fs, planted, cost }) = device.mounted() else {
            return Err(RunError::Failed("the workload has no file system".to_owned()));
        };
        let settings = Settings { seed, host, cost };
        let mut session = Session::new(&rt, fs, &self.workload, planted, settings);
        let began = Nanos(self.workload.pause_seconds.saturating_mul(Nanos::from_secs(1).0));
        device.advance(began, &mut Vec::new());
        device.reset_counts();
        device.begin_timeline(observer, std::iter::empty());
        session.start();
        let mut threads = Threads::new(session, &self.workload, began);
        let free = device.free_sectors();
        let end = drive(&mut threads, device, observer)?;
        let measured = threads.finish(device, end);
        Ok(measured.judged(ground, (free, device.free_sectors())))
    }
}

/// Threads of a workload that have begun.
struct Threads {
    session: Session,
    began: Nanos,
    now: Nanos,
    /// When they end at the latest.
    end: Option<Nanos>,
    series: Series<Sample>,
    /// Distance of figures on the way, when the next are due, and whether they begin anew.
    period: Option<(Nanos, bool)>,
    next_period: Nanos,
    snapshots: Vec<Snapshot>,
    before: Sums,
    /// Flowops that were done, and when one was done last.
    heard: (u64, Nanos),
}

impl<D: LabDevice> RunningLoad<D> for Threads {
    fn go_on(&mut self, device: &mut D) -> Result<RunState, RunError> {
        if !self.are_over() {
            self.run_to_next(device);
        }
        Ok(if self.are_over() { RunState::Finished } else { RunState::Paused })
    }

    fn now(&self, _: &D) -> Nanos {
        self.now
    }

    fn fraction(&self) -> f64 {
        let length = self.end.map_or(0.0, |end| end.saturating_sub(self.began).as_secs_f64());
        let done = self.now.saturating_sub(self.began).as_secs_f64();
        if length > 0.0 { done / length } else { 0.0 }
    }
}

impl Threads {
    fn new(session: Session, workload: &Workload, began: Nanos) -> Self {
        let seconds = |seconds: u64| Nanos(seconds.saturating_mul(Nanos::from_secs(1).0));
        let period = workload.period.map(|period| (seconds(period.seconds), period.resets));
        Self {
            session,
            began,
            now: began,
            end: workload.length.map(|length| began.saturating_add(length)),
            series: Series::new(began, INTERVAL, POINTS_MAX),
            period,
            next_period: period.map_or(Nanos::MAX, |(period, _)| began.saturating_add(period)),
            snapshots: Vec::new(),
            before: Sums::default(),
            heard: (0, began),
        }
    }

    /// All have ended, or their time has.
    fn are_over(&self) -> bool {
        self.session.is_over() || self.end.is_some_and(|end| self.now >= end)
    }

    /// Runs until the next figures are due.
    fn run_to_next<D: LabDevice>(&mut self, device: &mut D) {
        let due = self.series.due();
        self.now = due.min(self.next_period).min(self.end.unwrap_or(Nanos::MAX));
        device.advance(self.now, &mut Vec::new());
        if self.session.is_over() {
            return;
        }
        if self.now == due {
            self.series.push(point(self.now, device, &self.session));
        }
        if self.now == self.next_period {
            self.snap();
        }
        self.listen(device);
    }

    /// Everything that was measured.
    fn finish<D: LabDevice>(self, device: &D, end: RunEnd) -> Measurement {
        let Self { session, began, now, heard, series, snapshots, .. } = self;
        let report = Report { snapshots, ..session.report(now) };
        let measured = measured(report, series, device, &session, end);
        let silent = match end {
            RunEnd::Finished => HangDetector::new(session, now, (began, heard)),
            RunEnd::Interrupted => {
                session.stop();
                None
            }
        };
        Measurement { silent, ..measured }
    }

    /// Takes figures on the way.
    fn snap(&mut self) {
        let Some((period, resets)) = self.period else { return };
        let sums = self.session.sums();
        let at = self.now.saturating_sub(self.began);
        let (shown, length) = if resets { (sums.since(&self.before), period) } else { (sums, at) };
        self.snapshots.push(Snapshot { at, length, sums: shown });
        self.before = sums;
        self.next_period = self.now.saturating_add(period);
    }

    /// Ends a run without time limit in which all threads wait for each other.
    fn listen<D: LabDevice>(&mut self, device: &D) {
        let done = self.session.done();
        if done > self.heard.0 {
            self.heard = (done, self.now);
        } else if self.end.is_none() && self.now.saturating_sub(self.heard.1) > HANG_LIMIT {
            self.session.fail(&hang_message(self.heard.1, device));
        }
    }
}

fn point<D: LabDevice>(at: Nanos, device: &D, session: &Session) -> Point<Sample> {
    let sums = session.sums();
    Point {
        at,
        ios: [sums.reads, sums.writes, 0],
        bytes: [sums.read_bytes, sums.written_bytes, 0],
        latency: session.latencies(),
        sample: Sample::of(device),
    }
}

/// Everything that was measured, in the form that all loads have.
fn measured<D: LabDevice>(
    report: Report,
    series: Series<Sample>,
    device: &D,
    session: &Session,
    end: RunEnd,
) -> Measurement {
    let sums = report.sums();
    let mut counts = device.counts();
    if let Some(fs) = &mut counts.fs {
        fs.read_sectors = sums.read_bytes.div_ceil(SECTOR_BYTES);
        fs.written_sectors = sums.written_bytes.div_ceil(SECTOR_BYTES);
        fs.fsyncs = session.fsyncs();
        fs.fsync_thread_ns = session.fsync_thread_ns();
    }
    let began = series.began;
    let first = Totals { at: began, ..Totals::default() };
    let scatters = |op: &Op| matches!(op, Op::Createfile | Op::Deletefile | Op::Aiowrite);
    let at_random = |row: &Row| row.count > 0 && scatters(&row.op);
    let random_writes = sums.writes > 0 && report.rows.iter().any(at_random);
    let results = Results {
        jobs: jobs(&report, began),
        series,
        iologs: Vec::new(),
        ended: began.saturating_add(report.length),
        global_options: Vec::new(),
    };
    Measurement {
        flowops: Some(report),
        random_writes,
        ..Measurement::new(results, first, counts, end)
    }
}

/// Each thread as a job: its reads, its writes, its syncs.
fn jobs(report: &Report, began: Nanos) -> Vec<JobResult> {
    let job = |(index, (name, instances)): (usize, &(String, u64))| {
        let mut job = JobResult {
            name: name.clone(),
            jobs: *instances as u32,
            depth: 1,
            began,
            ended: began.saturating_add(report.length),
            runtime: report.length,
            ..JobResult::default()
        };
        for row in report.rows.iter().filter(|row| row.thread == index) {
            let direction = match (row.op.way(), row.op) {
                (Some(Way::Read), _) => Direction::Read,
                (Some(Way::Write), _) => Direction::Write,
                (None, Op::Fsync | Op::Fsyncset) => {
                    job.sync.merge(&row.latency);
                    continue;
                }
                _ => continue,
            };
            let result = &mut job.directions[direction as usize];
            result.ios += row.count;
            result.bytes += row.bytes;
            result.latency.merge(&row.latency);
        }
        job
    };
    report.threads.iter().enumerate().map(job).collect()
}
