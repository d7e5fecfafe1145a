//! A run: a stack is built and preconditioned, a job file or a trace runs on it in virtual time, and
//! what was counted on the way is put together.
//!
//! Preconditioning goes through the same write path as the measured phase, without timing, so that
//! no virtual time passes; then counters start anew and timing is switched on.

mod course;
mod device;
mod error;
mod estimate;
mod files;
mod image;
mod json;
mod leave;
mod outcome;
mod precondition;
mod prepare;
mod remarks;
mod replay;
mod rounds;
mod steady;
mod wml;

pub use course::Point;
pub use error::RunError;
pub use files::FsCounts;
pub use image::{Copied, export_image, import_image};
pub use json::VERSION;
pub use leave::Left;
pub use outcome::{DeviceSize, EraseCounts, Outcome, VALID_CLASSES, WallTime, WriteAmplification};
pub use precondition::Preconditioned;
pub use prepare::{Before, make_state};
pub use replay::{Trace, check_trace};
pub use rounds::{Round, RoundsRun, UntilSteady, WINDOW_ROUNDS};
pub use wml::run_workload;

use crate::stack::Stack;
use crate::state::States;
use crate::timeline::Timeline;
use course::Totals;
use device::{Counts, Flash, Hinted, LabDevice};
use estimate::Estimate;
use files::{Contents, Files, Layout};
use nandscape_block::BlockError;
use nandscape_ftl::Pblk;
use nandscape_ftl::stats::SectorCounts;
use nandscape_media::{ChunkState, Layer};
use nandscape_rt::Nanos;
use nandscape_workload::engine::{
    Engine, EngineError, FailureKind, Options, Probe, Recorder, Results, RunState,
};
use nandscape_workload::fio::{Direction, JobFile};
use nandscape_workload::trace::TraceCounts;
use nandscape_workload::wml::engine::Report;
use prepare::{Prepared, prepare};
use std::fmt::Debug;
use wml::Silent;

/// Distance of the first points of a series.
const INTERVAL: Nanos = Nanos::from_ms(1);
/// Points of a series at most.
const POINTS_MAX: usize = 256;

/// What a run is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Writing the device into its initial state.
    Precondition,
    /// Running the job.
    Measure,
}

impl Phase {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Precondition => "preconditioning",
            Self::Measure => "running",
        }
    }
}

/// Whoever watches a run from the real world. The lab itself knows no wall clock.
pub trait Observer {
    /// Seconds of real time since some fixed instant.
    fn wall_s(&self) -> f64;
    /// A phase is done to this fraction.
    fn progress(&mut self, phase: Phase, fraction: f64);
    /// Who wants to hear of every I/O that completes in the measured phase, if anybody does.
    fn recorder(&mut self) -> Option<Box<dyn Recorder>> {
        None
    }
    /// Where the measured phase is written as a timeline, if it is.
    fn timeline(&mut self) -> Option<&mut Timeline> {
        None
    }
    /// Whether the run is to end now, with what it has.
    fn is_interrupted(&self) -> bool {
        false
    }
    /// Where the device goes as the run leaves it, if it is wanted.
    fn left(&mut self) -> Option<&mut Left> {
        None
    }
}

/// Nobody watches: wall times are zero.
#[derive(Clone, Copy, Default, Debug)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn wall_s(&self) -> f64 {
        0.0
    }
    fn progress(&mut self, _: Phase, _: f64) {}
}

/// How a run is carried out, beyond stack, load and seed.
#[derive(Clone, Copy, Default)]
pub struct Manner<'a> {
    /// Where a preconditioned device comes from; no figure depends on it, but for a state that is not
    /// the stack's own.
    pub states: States<'a>,
    /// Version and commit of the program, which states remember.
    pub program: &'a str,
    /// A job goes on until it is steady; traces end where they end.
    pub until_steady: Option<UntilSteady>,
}

/// Runs `job` on `stack`.
///
/// # Errors
/// A stack or job that does not fit, or a run that could not go on. Failures of single I/Os are
/// part of the outcome.
pub fn run(
    stack: &Stack,
    job: &JobFile,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    run_as(stack, job, seed, Manner::default(), observer)
}

/// Runs `job` on `stack` in this manner.
///
/// # Errors
/// As [`run`], and a state that cannot be used.
pub fn run_as(
    stack: &Stack,
    job: &JobFile,
    seed: u64,
    manner: Manner<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let layout = stack.fs.as_ref().map(|_| Layout::new(job, seed)).transpose()?;
    let contents = layout.map(Contents::Jobs);
    let jobs = Jobs { file: job, until_steady: manner.until_steady };
    run_load(stack, jobs, contents, seed, manner, observer)
}

/// Replays `trace` on `stack`.
///
/// # Errors
/// A stack that does not fit, a trace that is malformed or does not fit, or a run that could not go
/// on. Failures of single I/Os are part of the outcome.
pub fn replay(
    stack: &Stack,
    trace: Trace,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    replay_as(stack, trace, seed, Manner::default(), observer)
}

/// Replays `trace` on `stack` in this manner.
///
/// # Errors
/// As [`replay`], and a state that cannot be used.
pub fn replay_as(
    stack: &Stack,
    trace: Trace,
    seed: u64,
    manner: Manner<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    if stack.fs.is_some() {
        let why = "a trace is replayed on a block device, not on files: leave out [fs]";
        return Err(stack.error("fs", why).into());
    }
    run_load(stack, trace, None, seed, manner, observer)
}

/// What runs on a device in the measured phase. Shown for debugging, it tells all that it does.
trait Load: Debug {
    /// Runs it to its end.
    fn measure<D: LabDevice>(
        self,
        device: &mut D,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measured, RunError>;
}

/// A job file, and whether it is to go on until it is steady.
#[derive(Debug)]
struct Jobs<'a> {
    file: &'a JobFile,
    until_steady: Option<UntilSteady>,
}

fn run_load(
    stack: &Stack,
    load: impl Load,
    contents: Option<Contents>,
    seed: u64,
    manner: Manner<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let began_s = observer.wall_s();
    let Prepared { media, by: before, file, warnings } =
        prepare(stack, seed, manner.states, manner.program, observer)?;
    let Manner { program, .. } = manner;
    let course = Course { stack, load, contents, seed, program, before, file, warnings, began_s };
    let fault_seed = if before.is_some() { prepare::fault_seed(seed) } else { seed };
    course.run_on(device::flash(stack, media, fault_seed), observer)
}

/// A run whose media are ready.
struct Course<'a, L> {
    stack: &'a Stack,
    load: L,
    /// What the file system holds, if there is one.
    contents: Option<Contents>,
    seed: u64,
    program: &'a str,
    /// How the media were preconditioned; `None`: they are fresh.
    before: Option<Before>,
    /// The file that they come from.
    file: Option<String>,
    warnings: Vec<String>,
    began_s: f64,
}

impl<L: Load> Course<'_, L> {
    fn run_on(mut self, media: Flash, observer: &mut dyn Observer) -> Result<Outcome, RunError> {
        let (stack, seed) = (self.stack, self.seed);
        let fresh = self.before.is_none();
        let ftl = match self.before {
            None => device::format(stack, media, seed)?,
            Some(_) => prepare::mount(stack, media, seed, self.file.as_deref())?,
        };
        let device = Hinted::new(ftl, &stack.hints);
        match (&stack.fs, self.contents.take()) {
            (Some(fs), Some(contents)) => {
                let file = self.file.as_deref();
                let files = Files::lay_out(stack, fs, contents, (device, fresh), file, seed)?;
                self.measure_on(files, observer)
            }
            _ => self.measure_on(device, observer),
        }
    }

    fn measure_on<D: LabDevice>(
        self,
        mut device: D,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, RunError> {
        let Self { stack, load, seed, program, before, warnings, began_s, .. } = self;
        let name = observer.left().map(|_| leave::name(stack, seed, before, &load));
        device.with(|ftl, _| {
            ftl.media_mut().inner_mut().set_timing(stack.media.timing.timing);
            ftl.charge_cpu(stack.ftl.cpu);
        });
        device.reset_counts();
        go_on(observer)?;
        let ready_s = observer.wall_s();
        let measured = load.measure(&mut device, seed, observer);
        device.end_timeline(observer);
        let mut measured = measured?;
        if hit_memory_cap(&measured.results) {
            return Err(RunError::memory_cap(stack));
        }
        measured.warnings.extend(warnings);
        let wall =
            WallTime { precondition_s: ready_s - began_s, measured_s: observer.wall_s() - ready_s };
        let silent = measured.silent.take();
        let mut outcome = device.look(|ftl| conclude(stack, seed, ftl, before, measured, wall));
        if let Some(why) = silent.and_then(|silent| silent.hung(&mut device)) {
            outcome.flowops.iter_mut().for_each(|report| report.fail(&why));
        }
        let closed =
            device.close().map_err(|error| format!("the file system was not unmounted: {error}"));
        outcome.warnings.extend(closed.as_ref().err().cloned());
        // What is left in the midst of a run follows from nothing that has a name.
        let name = name.filter(|_| !outcome.interrupted);
        if let (Some(name), Some(left)) = (name, observer.left()) {
            let closed = closed.map_err(RunError::Failed);
            let state = || leave::state(stack, seed, program, &name, device);
            *left = Some(closed.and_then(|()| state()));
        }
        Ok(outcome)
    }
}

/// Goes on, unless somebody wants the run to end, of which there are no figures yet.
fn go_on(observer: &dyn Observer) -> Result<(), RunError> {
    if observer.is_interrupted() { Err(RunError::Interrupted) } else { Ok(()) }
}

/// Whether a job ended because the media may take no more RAM.
fn hit_memory_cap<S>(results: &Results<S>) -> bool {
    let mut failures = results.jobs.iter().flat_map(|job| &job.failures);
    failures.any(|failure| matches!(failure.what, FailureKind::Io(_, BlockError::MemoryCap)))
}

/// What the measured phase brought.
struct Measured {
    results: Results<SectorCounts>,
    /// Totals over time, behind every job's ramp.
    totals: Vec<Totals>,
    length: Nanos,
    counts: Counts,
    /// Whether the course was steady, or what was not.
    steady: Result<(), String>,
    /// How many rounds that took, if it was asked for.
    rounds: Option<RoundsRun>,
    /// How a trace was treated, if one was replayed.
    trace: Option<TraceCounts>,
    /// What flowops did, if a workload of them ran.
    flowops: Option<Report>,
    /// Its threads, if they may hang.
    silent: Option<Silent>,
    /// Whether the load writes at random.
    random_writes: bool,
    /// Whether it was ended before its end.
    interrupted: bool,
    /// What a reader should know about it.
    warnings: Vec<String>,
}

impl Measured {
    /// From what was measured behind `first`, where counters began.
    fn new(results: Results<SectorCounts>, first: Totals, counts: Counts) -> Self {
        let length = results.ended.saturating_sub(first.at);
        let points = results.series.points.iter().filter(|point| point.at > first.at);
        let points: Vec<Totals> = points.map(Totals::from).collect();
        let totals = [vec![first], points].concat();
        Self {
            steady: course::steady(&totals),
            totals,
            length,
            results,
            counts,
            rounds: None,
            trace: None,
            flowops: None,
            silent: None,
            random_writes: false,
            interrupted: false,
            warnings: Vec::new(),
        }
    }
}

/// What the engines need to know of a run with this seed.
fn options(seed: u64) -> Options {
    Options { seed, interval: INTERVAL, points_max: POINTS_MAX, ..Options::default() }
}

impl Load for Jobs<'_> {
    fn measure<D: LabDevice>(
        self,
        device: &mut D,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measured, RunError> {
        match self.until_steady {
            None => measure_whole(self.file, device, seed, observer),
            Some(until) => steady::measure(self.file, until, device, seed, observer),
        }
    }
}

fn measure_whole<D: LabDevice>(
    file: &JobFile,
    device: &mut D,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Measured, RunError> {
    let mut engine = begin(file, device, seed, observer)?;
    let estimate = Estimate::new(file, &engine);
    let mut pause = |engine: &Engine<_>, device: &mut D| {
        device.attend_timeline(observer, engine.now());
        observer.progress(Phase::Measure, estimate.fraction(bytes(engine), engine.now()));
        !observer.is_interrupted()
    };
    let ramp = first_ramp(file);
    let mut first = Totals::default();
    let mut sampler = Sampler::default();
    if ramp > Nanos::ZERO {
        drive(&mut engine, device, &mut sampler, ramp, &mut pause)?;
        first = totals(&engine, SectorCounts::default());
        device.reset_counts();
    }
    drive(&mut engine, device, &mut sampler, Nanos::MAX, &mut pause)?;
    let interrupted = !engine.is_finished();
    let measured = Measured::new(engine.finish(), first, device.counts());
    Ok(Measured { random_writes: writes_at_random(file), interrupted, ..measured })
}

/// An engine for these jobs, ready to begin, and watched.
fn begin<D: LabDevice>(
    file: &JobFile,
    device: &mut D,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Engine<SectorCounts>, RunError> {
    let options = Options { files: device.files(), ..options(seed) };
    let mut engine = Engine::new(file, device.caps(), &options)
        .map_err(|error| RunError::Job(error.to_string()))?;
    engine.record(observer.recorder());
    device.begin_timeline(observer, engine.slots());
    Ok(engine)
}

/// Whether a job writes at random.
fn writes_at_random(file: &JobFile) -> bool {
    file.jobs.iter().any(|spec| spec.pattern.random && spec.pattern.mix.has(Direction::Write))
}

/// When every job of the first stage is behind its ramp, if any has one: counters begin there.
fn first_ramp(job: &JobFile) -> Nanos {
    let stonewalls = job.jobs.iter().skip(1).take_while(|spec| !spec.stonewall);
    let first_stage = job.jobs.iter().take(1).chain(stonewalls);
    let ramps = first_stage.filter(|spec| spec.ramp_time > Nanos::ZERO);
    ramps.map(|spec| spec.start_delay.saturating_add(spec.ramp_time)).max().unwrap_or(Nanos::ZERO)
}

/// What an engine has counted until now, and the FTL in these sectors.
fn totals<S>(engine: &Engine<S>, sectors: SectorCounts) -> Totals {
    let totals = Direction::ALL.map(|direction| engine.totals(direction));
    Totals {
        at: engine.now(),
        ios: totals.iter().map(|(ios, _)| ios).sum(),
        bytes: totals.map(|(_, bytes)| bytes),
        latency: engine.latency_totals(),
        sectors,
    }
}

fn bytes<S>(engine: &Engine<S>) -> u64 {
    Direction::ALL.into_iter().map(|direction| engine.totals(direction).1).sum()
}

/// Runs `until` then or to the end, with a pause now and then, which says whether to go on. Pausing changes
/// no result: whatever happens at an instant happens then.
fn drive<D: LabDevice>(
    engine: &mut Engine<SectorCounts>,
    device: &mut D,
    sampler: &mut Sampler,
    until: Nanos,
    pause: &mut impl FnMut(&Engine<SectorCounts>, &mut D) -> bool,
) -> Result<(), RunError> {
    loop {
        let share = if device.is_logged() { 0 } else { engine.now().0 / POINTS_MAX as u64 };
        let interval = INTERVAL.max(Nanos(share));
        let stop = engine.now().saturating_add(interval).min(until);
        let state = run_to(engine, device, sampler, stop)?;
        let goes_on = pause(engine, device);
        if !goes_on || state == RunState::Finished || stop == until {
            return Ok(());
        }
    }
}

/// Runs until `stop` or to the end.
fn run_to<D: LabDevice>(
    engine: &mut Engine<SectorCounts>,
    device: &mut D,
    sampler: &mut Sampler,
    stop: Nanos,
) -> Result<RunState, RunError> {
    engine.run_until(device, sampler, Some(stop)).map_err(|error| match error {
        EngineError::TimeStandsStill { .. } => RunError::Job(error.to_string()),
        EngineError::Stuck { .. } => {
            let waiting =
                device.waiting().map_or_else(String::new, |waiting| format!("; {waiting}"));
            RunError::Failed(format!("{error}{waiting}"))
        }
        other => RunError::Failed(other.to_string()),
    })
}

/// Samples the FTL's counters for the series.
#[derive(Default)]
struct Sampler {
    /// What was counted before the counters were last reset.
    before: SectorCounts,
}

impl<D: LabDevice> Probe<D> for Sampler {
    type Sample = SectorCounts;

    fn sample(&mut self, device: &D, _: Nanos) -> SectorCounts {
        self.before.plus(&device.sectors())
    }
}

/// Puts everything together.
fn conclude(
    stack: &Stack,
    seed: u64,
    ftl: &Pblk<Flash>,
    before: Option<Before>,
    measured: Measured,
    wall: WallTime,
) -> Outcome {
    let size = DeviceSize::of(ftl.capacity());
    let warnings = remarks::remarks(stack, &size, before, &measured);
    let media = ftl.media().inner();
    let in_service = media.report().filter(|(_, info)| info.state != ChunkState::Offline);
    Outcome {
        stack: stack.clone(),
        seed,
        size,
        preconditioned: before.map(|before| before.done).unwrap_or_default(),
        state: before.map(|before| before.state),
        virtual_time: measured.length,
        wall,
        workload: measured.results,
        trace: measured.trace,
        flowops: measured.flowops,
        ftl: measured.counts.ftl,
        fs: measured.counts.fs,
        memory: ftl.memory(),
        media_bytes: media.memory_bytes(),
        wear: media.wear(),
        erase_counts: EraseCounts::of(&media.wear(), in_service.map(|(_, info)| info.erases)),
        utilisation: measured.counts.utilisation,
        line_valid: outcome::line_valid(&ftl.lines()),
        series: course::points(&measured.totals),
        steady: measured.steady.is_ok(),
        rounds: measured.rounds,
        interrupted: measured.interrupted,
        warnings,
    }
}
