//! The fio engine: runs the jobs of a job file on a target, a block device or files, in virtual time.
//!
//! One state machine with its own events (DESIGN decision 1): a slot for each request that may be in
//! flight and a timer for each job are the leaves of one tournament; a completed I/O frees its slot,
//! the job says what comes next, and the slot's leaf is set again. No allocation, no hashing and no
//! dynamic dispatch an I/O. [`Engine::run_until`] drives the engine and its target alone;
//! [`run`] does so as a task among others.
//!
//! fio's semantics, where virtual time leaves a choice:
//! - Submission takes no time, so `slat` is zero and `lat` equals `clat`.
//! - `iodepth` holds as it stands, unless `ioengine` names one of fio's synchronous engines.
//! - `fsync=N` (and `fdatasync`, the same on a block device) flushes behind every Nth write, as a
//!   call of fsync would: the job issues nothing until it returns, and the flush covers what was
//!   acknowledged before it. What else is in flight stays so.
//! - `sync=1` sets FUA; a device without FUA gets a flush behind every write, as kernels do it, and
//!   the write's latency ends with the flush.
//! - `thinktime` begins when all that is in flight is back, as in fio.
//! - `iodepth_batch` changes nothing; `iodepth_low` and `iodepth_batch_complete_min` decide when
//!   completed requests are taken back, which is when they count as completed.
//! - `ramp_time` comes on top of `runtime`; what completes in it is not counted, but sizes are.
//! - `verify` reads what writes left in the job's range again, in ascending order and in blocks as they
//!   were written, behind the writes of each loop; with `time_based`, once at the end, however long it
//!   takes.
//! - `zonemode=zbd` makes of each draw what the zones of the device allow (`zbd/`).
//! - Jobs draw from streams named after their place in the file, name and clone, derived from the
//!   run's seed and `randseed`. Passes of a job begin with the same draws, unless `randrepeat=0` or `randseed` is
//!   given, or time alone ends the job: then they go on with what follows.
//! - Where rates are given, a direction that is ahead of its rate leaves its turn to the other one of a mix.

mod addresses;
mod covered;
mod draw;
mod error;
mod exit;
mod flow;
mod governor;
mod io;
mod iolog;
mod job;
mod kind;
mod min_rate;
mod mixer;
mod pace;
mod plan;
mod random_map;
mod rates;
mod reaper;
mod record;
mod results;
mod search;
mod series;
mod shadow;
mod shape;
mod shared;
mod sizes;
mod steady;
mod task;
mod tournament;
mod turns;
mod zbd;

pub use error::{EngineError, Waiting};
pub use iolog::WrittenLog;
pub use rates::{DEPTH_CLASSES, Spread, Windows};
pub use record::{Completed, Recorder};
pub use results::{
    DirectionResult, Failure, FailureKind, GroupTotals, JobResult, Results, SteadyResult,
    SteadySample,
};
pub use series::{NoProbe, Point, Probe, Series};
pub use shadow::Content;
pub use task::run;
pub use zbd::ZoneCounts;

pub(crate) use rates::{Rates, Totals, depth_class};
pub(crate) use results::FAILURES_MAX;
pub(crate) use shadow::{SECTORS_MAX as SHADOW_SECTORS_MAX, next_version, tag};
pub(crate) use tournament::Tournament;

use crate::direction::Direction;
use crate::fio::{JobFile, JobOption, JobSpec};
use crate::latency::LatencyTotals;
use crate::target::IoTarget;
use draw::Draw;
use io::Slot;
use job::{Idle, Job};
use kind::Kind;
use nandscape_block::zone::ZoneInfo;
use nandscape_block::{BlockError, Completion, DeviceCaps, Reply};
use nandscape_rt::{Nanos, Stream};
use pace::Pacer;
use plan::Plan;
use shadow::{Shadow, Version};
use shape::Shape;
use shared::Shared;
use std::collections::VecDeque;
use std::ops::Range;
use steady::SteadyGroup;
use zbd::{Layout, Zones};

/// Requests in flight, and jobs, that a run has room for.
const SLOTS_MAX: u64 = 1 << 20;

/// How a run is carried out, beyond what the jobs say.
#[derive(Clone, Debug)]
pub struct Options {
    /// The run's seed.
    pub seed: u64,
    /// When the run begins.
    pub began: Nanos,
    /// Number of the last write of an earlier run on the same device ([`Engine::version`]), so that
    /// its content differs from this run's; 0 when there was none.
    pub version: u32,
    /// The sectors of each file of each clone of each job, in their order; empty: they run on a block
    /// device.
    pub files: Vec<Vec<Range<u64>>>,
    /// Zones of the device before the run; empty: all of them are.
    pub zones: Vec<ZoneInfo>,
    /// Distance of the series' points, until there are too many.
    pub interval: Nanos,
    /// Points at most; an even number.
    pub points_max: usize,
    /// I/Os without time passing that show a run without end, where only time could end it.
    pub ios_without_progress_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            began: Nanos::ZERO,
            version: 0,
            files: Vec::new(),
            zones: Vec::new(),
            interval: Nanos::from_secs(1),
            points_max: 1_024,
            ios_without_progress_max: 10_000_000,
        }
    }
}

impl Options {
    /// The series of a run, still empty.
    pub(crate) fn series<S>(&self) -> Series<S> {
        let interval = self.interval.max(Nanos(1));
        Series::new(self.began, interval, self.points_max.max(2) & !1)
    }
}

/// Why [`Engine::run_until`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunState {
    /// Every job has ended.
    Finished,
    /// The given instant is reached; requests may be in flight.
    Paused,
}

/// Jobs that run together, by index, stage after stage.
type Stages = VecDeque<Vec<usize>>;

/// The jobs of a file, running on a device. `S` is what the series samples.
#[derive(Debug)]
pub struct Engine<S = ()> {
    jobs: Vec<Job>,
    /// What has not begun yet; a stage begins when the one before it has ended.
    stages: Stages,
    /// The jobs of this stage.
    stage: Vec<usize>,
    /// Those of them that have not ended.
    unfinished: usize,
    /// Jobs that end when they are steady, by groups that are judged together.
    steady: Vec<SteadyGroup>,
    slots: Vec<Slot>,
    /// Results that a slot's completion has yet to look at: offset of the part in sectors, result.
    held: Vec<Vec<(u32, Result<Reply, BlockError>)>>,
    /// Leaves: the slots, then a timer a job.
    events: Tournament,
    shared: Shared,
    shadow: Option<Shadow>,
    version: Version,
    series: Series<S>,
    point_due: Nanos,
    now: Nanos,
    /// I/Os since time last passed.
    ios_without_progress: u64,
    ios_without_progress_max: u64,
    completions: Vec<Completion>,
    recorder: Option<Box<dyn Recorder>>,
    global_options: Vec<JobOption>,
}

impl<S> Engine<S> {
    /// An engine that is ready to run `file` on a device with these capabilities.
    ///
    /// # Errors
    /// A job that does not fit the device.
    pub fn new(file: &JobFile, caps: &DeviceCaps, options: &Options) -> Result<Self, EngineError> {
        let depth = |spec: &JobSpec| u64::from(spec.depth()) * u64::from(spec.numjobs);
        let clones: u64 = file.jobs.iter().map(|spec| u64::from(spec.numjobs)).sum();
        let asked = file.jobs.iter().map(depth).sum::<u64>() + clones;
        if asked > SLOTS_MAX {
            return Err(EngineError::TooDeep { asked, max: SLOTS_MAX });
        }
        let shadowed = file.jobs.iter().any(|spec| spec.verify);
        let layout = Layout::of(file, caps)?;
        let (mut jobs, stages) = clone_jobs(file, caps, options, layout.as_ref(), shadowed)?;
        let mut zones =
            layout.as_ref().map(|layout| Zones::new(layout, &options.zones)).unwrap_or_default();
        let zoned = jobs.iter_mut().filter_map(|job| job.zoned.as_deref_mut());
        zoned.for_each(|job| zones.adopt(job));
        let series = options.series();
        let steady = SteadyGroup::of(&mut jobs);
        let mut engine = Self {
            stages,
            stage: Vec::new(),
            unfinished: 0,
            steady,
            slots: Vec::new(),
            held: Vec::new(),
            events: Tournament::new(asked.max(1) as usize),
            shared: Shared { zones, ..Shared::default() },
            shadow: shadowed.then(|| Shadow::new(jobs_end(caps, options), caps.discard_zeroes)),
            version: options.version,
            point_due: series.due(),
            series,
            now: options.began,
            ios_without_progress: 0,
            ios_without_progress_max: options.ios_without_progress_max,
            completions: Vec::new(),
            recorder: None,
            global_options: file.options.clone(),
            jobs,
        };
        engine.allot_slots();
        Ok(engine)
    }

    /// Everything that completes from now on is reported to `recorder`.
    pub fn record(&mut self, recorder: Option<Box<dyn Recorder>>) {
        self.recorder = recorder;
    }

    fn allot_slots(&mut self) {
        for (index, job) in self.jobs.iter_mut().enumerate() {
            let first = self.slots.len() as u32;
            let depth = job.spec.depth();
            self.slots.extend((0..depth).map(|_| Slot::new(index as u32)));
            job.free = (first..first + depth).rev().collect();
        }
        self.held = vec![Vec::new(); self.slots.len()];
    }

    /// The instant of the next thing to be done, by the engine or the device. `None`: nothing is
    /// left to be done, be it that all is finished or that requests hang.
    pub fn next_event(&self, target: &impl IoTarget) -> Option<Nanos> {
        if !self.is_running() && !self.stages.is_empty() {
            return Some(self.now);
        }
        let (own, _) = self.events.first();
        let at = target.next_event().map_or(own, |at| at.min(own));
        (at < Nanos::MAX).then(|| at.max(self.now))
    }

    /// Whether every job has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        !self.is_running() && self.stages.is_empty()
    }

    const fn is_running(&self) -> bool {
        self.unfinished > 0
    }

    /// The job of each slot: its index and name. Bios carry their slot in the low half of their tokens.
    pub fn slots(&self) -> impl Iterator<Item = (usize, &str)> {
        self.slots.iter().map(|slot| (slot.job(), self.jobs[slot.job()].spec.name.as_str()))
    }

    /// Each clone of each job, and the bytes that it transfers if time does not end it.
    pub fn budgets(&self) -> impl Iterator<Item = (&JobSpec, u64)> {
        self.jobs.iter().map(|job| (&job.spec, job.plan.budget.total_bytes()))
    }

    /// The ranges of bytes in which each clone of each job does its I/O; none of one that replays a log.
    pub fn ranges(&self) -> impl Iterator<Item = (&JobSpec, Range<u64>)> {
        self.jobs.iter().filter(|job| job.plan.playback.is_none()).flat_map(|job| {
            let bytes = |range: &plan::Range| {
                let unit = job.plan.unit_bytes;
                range.base * unit..(range.base + range.units) * unit
            };
            job.plan.ranges.iter().map(move |range| (&job.spec, bytes(range)))
        })
    }

    /// Virtual time of the last event.
    #[must_use]
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// Number of the last write; it is part of the tags that writes carry.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// I/Os and bytes completed so far, of one direction, those under `ramp_time` included.
    #[must_use]
    pub fn totals(&self, direction: Direction) -> (u64, u64) {
        let totals = self.jobs.iter().map(|job| job.totals(direction));
        totals.fold((0, 0), |sum, job| (sum.0 + job.0, sum.1 + job.1))
    }

    /// Latencies so far of reads, writes, trims and flushes, those under `ramp_time` included.
    #[must_use]
    pub fn latency_totals(&self) -> [LatencyTotals; 4] {
        let mut totals = <[LatencyTotals; 4]>::default();
        self.jobs.iter().for_each(|job| job.add_latencies(&mut totals));
        totals
    }

    /// Runs until every job has ended, or until everything up to and including `until` has happened.
    ///
    /// # Errors
    /// [`EngineError`], after which the run cannot go on.
    pub fn run_until<T: IoTarget>(
        &mut self,
        target: &mut T,
        probe: &mut impl Probe<T, Sample = S>,
        until: Option<Nanos>,
    ) -> Result<RunState, EngineError> {
        let until = until.unwrap_or(Nanos::MAX);
        loop {
            while self.is_running() {
                if !self.step(target, probe, until)? {
                    return Ok(RunState::Paused);
                }
            }
            let Some(stage) = self.stages.pop_front() else {
                if self.series.points.last().is_none_or(|last| last.at < self.now) {
                    self.look(target, probe, self.now);
                }
                return Ok(RunState::Finished);
            };
            self.begin_stage(target, stage);
        }
    }

    /// Handles the next event, unless it lies behind `until`.
    #[inline]
    fn step<T: IoTarget>(
        &mut self,
        target: &mut T,
        probe: &mut impl Probe<T, Sample = S>,
        until: Nanos,
    ) -> Result<bool, EngineError> {
        let (own, leaf) = self.events.first();
        let targets = target.next_event().unwrap_or(Nanos::MAX);
        let at = own.min(targets);
        if at > self.now {
            if at == Nanos::MAX {
                return Err(self.stuck());
            }
            if at > until {
                self.pass_time(target, probe, until);
                return Ok(false);
            }
            self.pass_time(target, probe, at);
        } else {
            self.check_progress()?;
        }
        if own <= targets {
            self.own_event(target, leaf);
        } else {
            self.target_event(target)?;
        }
        Ok(true)
    }

    #[inline]
    fn pass_time<T>(&mut self, target: &T, probe: &mut impl Probe<T, Sample = S>, at: Nanos) {
        while at > self.point_due {
            self.look(target, probe, self.point_due);
        }
        self.now = self.now.max(at);
        self.ios_without_progress = 0;
    }

    /// Adds a point to the series.
    #[cold]
    fn look<T>(&mut self, target: &T, probe: &mut impl Probe<T, Sample = S>, at: Nanos) {
        let totals = Direction::ALL.map(|direction| self.totals(direction));
        self.series.push(Point {
            at,
            ios: totals.map(|(ios, _)| ios),
            bytes: totals.map(|(_, bytes)| bytes),
            latency: self.latency_totals(),
            in_flight: Some(self.jobs.iter().map(|job| job.in_flight).sum()),
            sample: probe.sample(target, at),
        });
        self.point_due = self.series.due();
    }

    #[inline]
    fn check_progress(&mut self) -> Result<(), EngineError> {
        self.ios_without_progress += 1;
        if self.ios_without_progress >= self.ios_without_progress_max {
            self.ios_without_progress = 0;
            if self.jobs.iter().filter(|job| job.has_begun()).all(Job::ends_by_time_only) {
                return Err(EngineError::TimeStandsStill {
                    at: self.now,
                    ios: self.ios_without_progress_max,
                });
            }
        }
        Ok(())
    }

    #[inline]
    fn own_event<T: IoTarget>(&mut self, target: &mut T, leaf: usize) {
        if leaf < self.slots.len() {
            self.complete(target, leaf);
        } else {
            self.wake(target, leaf - self.slots.len());
        }
    }

    fn begin_stage<T: IoTarget>(&mut self, target: &mut T, stage: Vec<usize>) {
        self.unfinished = stage.len();
        self.stage.clone_from(&stage);
        for index in stage {
            match self.jobs[index].start_delay {
                _ if self.waits(index) => {}
                Nanos::ZERO => self.wake(target, index),
                delay => self.set_timer(index, self.now.saturating_add(delay)),
            }
        }
    }

    /// The job begins, or its timer went off.
    #[cold]
    fn wake<T: IoTarget>(&mut self, target: &mut T, index: usize) {
        self.set_timer(index, Nanos::MAX);
        let job = &mut self.jobs[index];
        if job.has_begun() {
            job.woken(self.now);
        } else {
            job.begin(target, &mut self.shared, self.now);
            self.begin_steady(index);
        }
        self.issue(target, index);
        self.settle(target, index);
    }

    fn set_timer(&mut self, index: usize, at: Nanos) {
        self.events.set(self.slots.len() + index, at);
    }

    /// When nothing of the job is in flight, it thinks, goes on to its next part, or ends.
    #[cold]
    fn settle<T: IoTarget>(&mut self, target: &mut T, index: usize) {
        while self.jobs[index].in_flight == 0 {
            match self.jobs[index].idle(target, self.now) {
                Idle::Issue => self.issue(target, index),
                Idle::Wake(at) => return self.set_timer(index, at),
                Idle::Wait => return,
                Idle::Ended => {
                    self.set_timer(index, Nanos::MAX);
                    self.unfinished -= 1;
                    self.jobs[index].leave(&mut self.shared);
                    self.follow_end(index);
                    return self.wake_held();
                }
            }
        }
    }

    /// Every request that is in flight, although nothing can happen any more.
    #[cold]
    fn stuck(&self) -> EngineError {
        let busy = self
            .slots
            .iter()
            .enumerate()
            .filter(|(index, slot)| !self.jobs[slot.job()].free.contains(&(*index as u32)));
        let waiting = busy.map(|(_, slot)| Waiting {
            job: self.jobs[slot.job()].spec.name.clone(),
            op: slot.kind().name(),
            lba: slot.lba(),
            since: slot.started(),
        });
        EngineError::Stuck { at: self.now, waiting: waiting.collect() }
    }

    /// What was measured since the last cut, or since the beginning, as reports like those of
    /// [`Engine::finish`], which then lacks it; failures and the series stay there whole. Every ramp is
    /// over from now on.
    pub fn cut(&mut self) -> Vec<JobResult> {
        let now = self.now;
        let result = |job: &mut Job| (job.spec.group_reporting, job.cut(now));
        grouped(self.jobs.iter_mut().map(result))
    }

    /// What was measured. Jobs that have not ended are counted up to the last event.
    #[must_use]
    pub fn finish(mut self) -> Results<S> {
        let ended = self.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.finish(ended);
        }
        for job in &mut self.jobs {
            job.result.steady = job.steady.map(|group| self.steady[group].result());
        }
        let mut iologs = Vec::new();
        let jobs = grouped(self.jobs.into_iter().map(|job| {
            let merges = job.spec.group_reporting;
            let (result, log) = job.into_result(ended);
            iologs.extend(log);
            (merges, result)
        }));
        Results { jobs, series: self.series, iologs, ended, global_options: self.global_options }
    }
}

/// Reports, of which those that are to be merged join the one before if it is of the same group.
fn grouped(results: impl Iterator<Item = (bool, JobResult)>) -> Vec<JobResult> {
    let mut jobs: Vec<JobResult> = Vec::new();
    for (merges, result) in results {
        match jobs.last_mut().filter(|last| merges && last.group == result.group) {
            Some(last) => last.merge(&result),
            None => jobs.push(result),
        }
    }
    jobs
}

/// The end of the addresses at which jobs with `verify` do their I/O.
fn jobs_end(caps: &DeviceCaps, options: &Options) -> u64 {
    let files = options.files.iter().flatten().map(|file| file.end);
    let device = if caps.has_zones() { caps.sectors } else { caps.random_range().end };
    files.fold(device, u64::max)
}

/// Multiplies jobs by `numjobs`, and divides them into stages and reporting groups.
fn clone_jobs(
    file: &JobFile,
    caps: &DeviceCaps,
    options: &Options,
    layout: Option<&Layout>,
    shadowed: bool,
) -> Result<(Vec<Job>, Stages), EngineError> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut stages = Stages::new();
    let mut group = 0;
    for (index, spec) in file.jobs.iter().enumerate() {
        if index > 0 && (spec.stonewall || spec.new_group) {
            group += 1;
        }
        if index == 0 || spec.stonewall {
            stages.push_back(Vec::new());
        }
        for clone in 0..spec.numjobs {
            let number = jobs.len() as u32;
            let files = options.files.get(jobs.len()).map_or(&[][..], Vec::as_slice);
            let plan = Plan::new(spec, caps, layout, clone, files)?;
            let shapes = Kind::ALL.map(|kind| Shape::new(kind, number, spec, &plan, shadowed));
            let stream = format!("fio/{index}/{}/{clone}", spec.name);
            let seed = job_seed(options.seed, spec.randseed);
            let pacer = Pacer::new(spec, seed, &stream);
            let draw = Draw::new(spec, &plan, seed, &stream, pacer.is_some())?;
            let mut job = Job::new(number, spec, plan, shapes, draw, pacer);
            job.result.group = group;
            job.start_delay = start_delay(spec, seed, &stream);
            stages.back_mut().into_iter().for_each(|stage| stage.push(jobs.len()));
            jobs.push(job);
        }
    }
    Ok((jobs, stages))
}

/// What a clone draws between the bounds of its `startdelay`.
fn start_delay(spec: &JobSpec, seed: u64, name: &str) -> Nanos {
    let (least, most) = spec.start_delay;
    let choices = (most.0 - least.0).saturating_add(1);
    least.saturating_add(Nanos(Stream::new(seed, &format!("{name}/start")).below(choices)))
}

/// The seed of a job's streams: the run's, mixed with the job's own `randseed`.
fn job_seed(seed: u64, randseed: Option<u64>) -> u64 {
    randseed.map_or(seed, |own| {
        seed.rotate_left(32).wrapping_add(own).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}
