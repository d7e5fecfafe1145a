//! A Filebench workload: its threads call the file system of a rig themselves.

use super::{INTERVAL, Load, Measurement, POINTS_MAX, RunEnd, RunningLoad, drive};
use crate::run::counts::Sample;
use crate::run::criterion::Ground;
use crate::run::error::RunError;
use crate::run::hang::is_hang;
use crate::run::observer::Observer;
use crate::run::rig::Rig;
use crate::run::series::Totals;
use crate::run::volume::{FileSetup, Setup};
use crate::stack::{SHIPPED, Stack};
use crate::timeline::Timeline;
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;
use nandscape_workload::Direction;
use nandscape_workload::engine::{JobResult, Point, Results, RunState, Series};
use nandscape_workload::wml::engine::{Report, Row, Session, Settings, Snapshot, Sums};
use nandscape_workload::wml::{Fileset, Op, Tree, Way, Workload};
use std::rc::Rc;

/// What a workload needs of `stack`.
///
/// # Errors
/// The stack has no file system, or a fileset cannot be drawn.
pub(in crate::run) fn setup(
    stack: &Stack,
    workload: &Rc<Workload>,
    seed: u64,
) -> Result<Setup, RunError> {
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
    Ok(Setup::Files(FileSetup::Filesets(Rc::clone(workload), trees)))
}

/// A workload.
pub(in crate::run) struct Flowops(pub(in crate::run) Rc<Workload>);

impl Load for Flowops {
    fn measure(
        self,
        rig: &mut Rig,
        ground: &Ground,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, RunError> {
        let Self(workload) = self;
        let mut session = session(rig, &workload, seed)?;
        let began = Nanos(workload.pause_seconds.saturating_mul(Nanos::from_secs(1).0));
        rig.advance(began);
        rig.reset_counts();
        rig.begin_timeline(observer, std::iter::empty());
        if let Some(timeline) = observer.timeline().filter(|_| rig.is_logged()) {
            timeline.name_threads(&session);
            timeline.write_flowops(&session);
        }
        session.start();
        let mut threads = Threads::new(session, &workload, began);
        let free = rig.free_sectors();
        let end = drive(&mut threads, rig, observer)?;
        let measured = threads.finish(rig, end);
        Ok(measured.judged(ground, (free, rig.free_sectors())))
    }
}

/// The threads of a workload on the file system of a rig.
fn session(rig: &mut Rig, workload: &Rc<Workload>, seed: u64) -> Result<Session, RunError> {
    let mounted = rig.mounted();
    let found = mounted.and_then(|mounted| mounted.target().fs().cloned().map(|fs| (mounted, fs)));
    let (mounted, fs) =
        found.ok_or_else(|| RunError::Failed("the workload has no file system".to_owned()))?;
    let settings = Settings { seed, host: mounted.host.clone(), cost: mounted.cost };
    let filesets = std::mem::take(&mut mounted.filesets);
    Ok(Session::new(&mounted.executor.handle(), fs, workload, filesets, settings))
}

/// Threads of a workload that have begun.
struct Threads {
    session: Session,
    began: Nanos,
    now: Nanos,
    /// When they end at the latest.
    end: Option<Nanos>,
    series: Series<Sample>,
    /// Distance of figures on the way, when the next are due, and whether they are of the period alone.
    period: Option<(Nanos, bool)>,
    next_period: Nanos,
    snapshots: Vec<Snapshot>,
    before: Sums,
    /// Flowops that completed, and when one completed last.
    progress: (u64, Nanos),
}

impl RunningLoad for Threads {
    fn step(&mut self, rig: &mut Rig) -> Result<RunState, RunError> {
        if !self.are_over() {
            self.run_to_next(rig);
        }
        Ok(if self.are_over() { RunState::Finished } else { RunState::Paused })
    }

    fn now(&self, _: &Rig) -> Nanos {
        self.now
    }

    fn fraction(&self) -> f64 {
        let length = self.end.map_or(0.0, |end| end.saturating_sub(self.began).as_secs_f64());
        let done = self.now.saturating_sub(self.began).as_secs_f64();
        if length > 0.0 { done / length } else { 0.0 }
    }

    fn write_timeline(&mut self, timeline: Option<&mut Timeline>) {
        match timeline {
            Some(timeline) => timeline.write_flowops(&self.session),
            None => drop(self.session.take_spans(false)),
        }
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
            progress: (0, began),
        }
    }

    /// All have ended, or their time has.
    fn are_over(&self) -> bool {
        self.session.is_over() || self.end.is_some_and(|end| self.now >= end)
    }

    /// Runs until the next figures are due.
    fn run_to_next(&mut self, rig: &mut Rig) {
        let due = self.series.due();
        self.now = due.min(self.next_period).min(self.end.unwrap_or(Nanos::MAX));
        rig.advance(self.now);
        if self.session.is_over() {
            return;
        }
        if self.now == due {
            self.series.push(point(self.now, rig, &self.session));
        }
        if self.now == self.next_period {
            self.take_snapshot();
        }
        self.check_progress(rig);
    }

    /// Everything that was measured.
    fn finish(self, rig: &Rig, end: RunEnd) -> Measurement {
        let Self { session, began, now, progress, series, snapshots, .. } = self;
        let report = Report { snapshots, ..session.report(now) };
        let measured = measured(report, series, rig, &session, end);
        let hang = match end {
            RunEnd::Finished => HangDetector::new(session, now, (began, progress)),
            RunEnd::Interrupted => {
                session.stop();
                None
            }
        };
        Measurement { hang, ..measured }
    }

    /// Takes figures on the way.
    fn take_snapshot(&mut self) {
        let Some((period, resets)) = self.period else { return };
        let sums = self.session.sums();
        let at = self.now.saturating_sub(self.began);
        let (shown, length) = if resets { (sums.since(&self.before), period) } else { (sums, at) };
        self.snapshots.push(Snapshot { at, length, sums: shown });
        self.before = sums;
        self.next_period = self.now.saturating_add(period);
    }

    /// Ends a run without time limit in which all threads wait for each other.
    fn check_progress(&mut self, rig: &Rig) {
        let done = self.session.done();
        if done > self.progress.0 {
            self.progress = (done, self.now);
        } else if self.end.is_none() && is_hang(self.progress.1, self.now) {
            self.session.fail(&hang_message(self.progress.1, rig));
        }
    }
}

/// A run whose time is over, and in the last tenth of which no flowop completed.
pub(in crate::run) struct HangDetector {
    session: Session,
    now: Nanos,
    /// Flowops that completed, and when one completed last.
    progress: (u64, Nanos),
}

impl HangDetector {
    /// Ends the threads of a run, unless it is such a run.
    fn new(session: Session, now: Nanos, (began, progress): (Nanos, (u64, Nanos))) -> Option<Self> {
        let (idle, all) = (now.saturating_sub(progress.1), now.saturating_sub(began));
        if session.is_over() || idle.0 <= all.0 / 10 {
            session.stop();
            return None;
        }
        Some(Self { session, now, progress })
    }

    /// Why it hangs, if it does: it goes on, when all is counted, until a flowop completes or
    /// none will.
    pub(in crate::run) fn reason(self, rig: &mut Rig) -> Option<String> {
        let mut at = self.now;
        let hangs = |at: Nanos| is_hang(self.now, at);
        while self.session.done() == self.progress.0 && !self.session.is_over() && !hangs(at) {
            at = at.saturating_add(Nanos::from_secs(1));
            rig.advance(at);
        }
        let why = hangs(at).then(|| hang_message(self.progress.1, rig));
        self.session.stop();
        why
    }
}

fn hang_message(progress: Nanos, rig: &Rig) -> String {
    let waiting = rig.waiting().unwrap_or_default();
    format!("no flowop completed since {progress}, and none would within an hour: {waiting}")
}

fn point(at: Nanos, rig: &Rig, session: &Session) -> Point<Sample> {
    let sums = session.sums();
    Point {
        at,
        ios: [sums.reads, sums.writes, 0],
        bytes: [sums.read_bytes, sums.written_bytes, 0],
        latency: session.latencies(),
        in_flight: None,
        sample: rig.sample(),
    }
}

/// Everything that was measured, in the form that all loads have.
fn measured(
    report: Report,
    series: Series<Sample>,
    rig: &Rig,
    session: &Session,
    end: RunEnd,
) -> Measurement {
    let sums = report.sums();
    let mut counts = rig.counts();
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
