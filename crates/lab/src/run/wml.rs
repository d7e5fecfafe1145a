//! A Filebench workload as what runs on a stack: its threads call the stack's file system themselves.

use super::course::Totals;
use super::device::{LabDevice, Mounted};
use super::error::RunError;
use super::files::Contents;
use super::load::{INTERVAL, Load, Measured, POINTS_MAX};
use super::observer::{Observer, Phase};
use super::silence::{SILENCE, Silent, stood_still};
use super::steps::run_load;
use super::{Manner, Outcome};
use crate::stack::{SHIPPED, Stack};
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::stats::SectorCounts;
use nandscape_rt::Nanos;
use nandscape_workload::engine::{JobResult, Point, Results, Series};
use nandscape_workload::fio::Direction;
use nandscape_workload::wml::engine::{Report, Row, Session, Settings, Snapshot, Sums};
use nandscape_workload::wml::{Fileset, Op, Tree, Way, Workload};
use std::rc::Rc;

/// Cores of a host that the stack does not describe.
const DEFAULT_CORES: u32 = 4;

/// Runs a Filebench workload on `stack`.
///
/// # Errors
/// A stack without a file system, or that does not fit, or a run that could not go on. What ends the
/// workload early is part of the outcome.
pub fn run_workload(
    stack: &Stack,
    workload: &Workload,
    seed: u64,
    manner: Manner<'_>,
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
    let cores = stack.host.cores.unwrap_or(DEFAULT_CORES);
    let load = Flowops { workload: Rc::clone(&workload), cores: cores.min(u16::MAX.into()) as u16 };
    let contents = Contents::Trees(workload, trees);
    run_load(stack, load, Some(contents), seed, manner, observer)
}

/// A workload, and the cores that its threads run on.
#[derive(Debug)]
struct Flowops {
    workload: Rc<Workload>,
    cores: u16,
}

impl Load for Flowops {
    fn measure<D: LabDevice>(
        self,
        device: &mut D,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measured, RunError> {
        let Some(Mounted { rt, fs, planted, cost }) = device.mounted() else {
            return Err(RunError::Failed("the workload has no file system".to_owned()));
        };
        let settings = Settings { seed, cores: self.cores, cost };
        let mut session = Session::new(&rt, Rc::new(fs), &self.workload, planted, settings);
        let began = Nanos(self.workload.pause_seconds.saturating_mul(Nanos::from_secs(1).0));
        device.advance(began, &mut Vec::new());
        device.reset_counts();
        device.begin_timeline(observer, std::iter::empty());
        session.start();
        let mut watch = Watch::new(&self.workload, began);
        while !session.is_over() && watch.goes_on() && !observer.is_interrupted() {
            watch.go_on(device, &session, observer);
        }
        let interrupted = !session.is_over() && watch.goes_on();
        let Watch { now, heard, series, snapshots, .. } = watch;
        let report = Report { snapshots, ..session.report(now) };
        let measured = measured(report, series, device, &session);
        if interrupted {
            session.stop();
            return Ok(Measured { interrupted, ..measured });
        }
        let silent = Silent::new(session, now, (began, heard));
        Ok(Measured { silent, ..measured })
    }
}

/// A run being watched.
struct Watch {
    began: Nanos,
    now: Nanos,
    /// When it ends at the latest.
    end: Option<Nanos>,
    series: Series<SectorCounts>,
    /// Distance of figures on the way, when the next are due, and whether they begin anew.
    period: Option<(Nanos, bool)>,
    next_period: Nanos,
    snapshots: Vec<Snapshot>,
    before: Sums,
    /// Flowops that were done, and when one was done last.
    heard: (u64, Nanos),
}

impl Watch {
    fn new(workload: &Workload, began: Nanos) -> Self {
        let seconds = |seconds: u64| Nanos(seconds.saturating_mul(Nanos::from_secs(1).0));
        let period = workload.period.map(|period| (seconds(period.seconds), period.resets));
        Self {
            began,
            now: began,
            end: workload.seconds.map(|length| began.saturating_add(seconds(length))),
            series: Series::new(began, INTERVAL, POINTS_MAX),
            period,
            next_period: period.map_or(Nanos::MAX, |(period, _)| began.saturating_add(period)),
            snapshots: Vec::new(),
            before: Sums::default(),
            heard: (0, began),
        }
    }

    fn goes_on(&self) -> bool {
        self.end.is_none_or(|end| self.now < end)
    }

    /// Lets the run go on for a while.
    fn go_on<D: LabDevice>(
        &mut self,
        device: &mut D,
        session: &Session,
        observer: &mut dyn Observer,
    ) {
        let due = self.series.due();
        self.now = due.min(self.next_period).min(self.end.unwrap_or(Nanos::MAX));
        device.advance(self.now, &mut Vec::new());
        if session.is_over() {
            return;
        }
        if self.now == due {
            self.series.push(point(self.now, device, session));
        }
        if self.now == self.next_period {
            self.snap(session);
        }
        self.listen(device, session);
        device.attend_timeline(observer, self.now);
        let length = self.end.map_or(0.0, |end| end.saturating_sub(self.began).as_secs_f64());
        let done = self.now.saturating_sub(self.began).as_secs_f64();
        observer.progress(Phase::Measure, if length > 0.0 { done / length } else { 0.0 });
    }

    /// Takes figures on the way.
    fn snap(&mut self, session: &Session) {
        let Some((period, resets)) = self.period else { return };
        let sums = session.sums();
        let at = self.now.saturating_sub(self.began);
        let (shown, length) = if resets { (sums.since(&self.before), period) } else { (sums, at) };
        self.snapshots.push(Snapshot { at, length, sums: shown });
        self.before = sums;
        self.next_period = self.now.saturating_add(period);
    }

    /// Ends a run without time limit in which all threads wait for each other.
    fn listen<D: LabDevice>(&mut self, device: &D, session: &Session) {
        let done = session.done();
        if done > self.heard.0 {
            self.heard = (done, self.now);
        } else if self.end.is_none() && self.now.saturating_sub(self.heard.1) > SILENCE {
            session.fail(&stood_still(self.heard.1, device));
        }
    }
}

fn point<D: LabDevice>(at: Nanos, device: &D, session: &Session) -> Point<SectorCounts> {
    let sums = session.sums();
    Point {
        at,
        ios: [sums.reads, sums.writes, 0],
        bytes: [sums.read_bytes, sums.written_bytes, 0],
        latency: session.latencies(),
        sample: device.sectors(),
    }
}

/// Everything that was measured, in the form that all loads have.
fn measured<D: LabDevice>(
    report: Report,
    series: Series<SectorCounts>,
    device: &D,
    session: &Session,
) -> Measured {
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
        jobs: jobs(&report),
        series,
        iologs: Vec::new(),
        ended: began.saturating_add(report.length),
        global_options: Vec::new(),
    };
    Measured { flowops: Some(report), random_writes, ..Measured::new(results, first, counts) }
}

/// Each thread as a job: its reads, its writes, its syncs.
fn jobs(report: &Report) -> Vec<JobResult> {
    let job = |(index, (name, instances)): (usize, &(String, u64))| {
        let mut job = JobResult {
            name: name.clone(),
            jobs: *instances as u32,
            depth: 1,
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
