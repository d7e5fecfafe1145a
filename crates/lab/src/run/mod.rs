//! A run: a stack is built and preconditioned, a job file or a trace runs on it in virtual time, and
//! what was counted on the way is put together.
//!
//! Preconditioning goes through the same write path as the measured phase, without timing, so that
//! no virtual time passes; then counters start anew and timing is switched on.

mod course;
mod curves;
mod device;
mod error;
mod estimate;
mod json;
mod outcome;
mod precondition;
mod replay;

pub use course::Point;
pub use error::RunError;
pub use json::VERSION;
pub use outcome::{DeviceSize, EraseCounts, Outcome, VALID_CLASSES, WallTime, WriteAmplification};
pub use precondition::Preconditioned;
pub use replay::Trace;

use crate::stack::{Host, Stack};
use course::Totals;
use device::{Hinted, LabMedia};
use estimate::Estimate;
use nandscape_block::{BlockDevice, BlockError};
use nandscape_ftl::Pblk;
use nandscape_ftl::stats::{FtlStats, SectorCounts};
use nandscape_media::{ChunkState, FaultInjector, Media};
use nandscape_rt::Nanos;
use nandscape_workload::engine::{
    Engine, EngineError, FailureKind, Options, Probe, Results, RunState,
};
use nandscape_workload::fio::{Direction, JobFile};
use nandscape_workload::trace::TraceCounts;
use std::io::BufRead;

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
    run_load(stack, job, seed, observer)
}

/// Replays `trace` on `stack`.
///
/// # Errors
/// A stack that does not fit, a trace that is malformed or does not fit, or a run that could not go
/// on. Failures of single I/Os are part of the outcome.
pub fn replay<R: BufRead>(
    stack: &Stack,
    trace: Trace<R>,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    run_load(stack, trace, seed, observer)
}

/// What runs on a device in the measured phase.
trait Load {
    /// Runs it to its end.
    fn measure<M: LabMedia>(
        self,
        device: &mut Hinted<M>,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measured, RunError>;
}

fn run_load(
    stack: &Stack,
    load: impl Load,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let media =
        Media::new(stack.media.config(seed)).map_err(|error| RunError::media(stack, &error))?;
    match &stack.media.faults.commands {
        None => run_on(media, stack, load, seed, observer),
        Some(faults) => {
            run_on(FaultInjector::new(media, faults.clone(), seed), stack, load, seed, observer)
        }
    }
}

fn run_on<M: LabMedia>(
    media: M,
    stack: &Stack,
    load: impl Load,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let mut ftl = device::format(stack, media, seed)?;
    let began_s = observer.wall_s();
    let preconditioned = precondition::precondition(&mut ftl, stack.precondition, seed, |done| {
        observer.progress(Phase::Precondition, done);
    })
    .map_err(|error| RunError::precondition(stack, error))?;
    ftl.reset_stats();
    ftl.media_mut().device_mut().set_timing(stack.media.timing.timing);
    let ready_s = observer.wall_s();
    let mut device = Hinted::new(ftl, stack.hints.journal_range.clone());
    let measured = load.measure(&mut device, seed, observer)?;
    if hit_memory_cap(&measured.results) {
        return Err(RunError::memory_cap(stack));
    }
    let wall =
        WallTime { precondition_s: ready_s - began_s, measured_s: observer.wall_s() - ready_s };
    Ok(conclude(stack, seed, &device.ftl, preconditioned, measured, wall))
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
    /// How a trace was treated, if one was replayed.
    trace: Option<TraceCounts>,
}

impl Measured {
    /// From what was measured behind `first`, where counters began.
    fn new(results: Results<SectorCounts>, first: Totals, trace: Option<TraceCounts>) -> Self {
        let length = results.ended.saturating_sub(first.at);
        let points = results.series.points.iter().filter(|point| point.at > first.at);
        let totals = points.map(Totals::from).collect::<Vec<_>>();
        Self { totals: [vec![first], totals].concat(), length, results, trace }
    }
}

/// What the engines need to know of a run with this seed.
fn options(seed: u64) -> Options {
    Options { seed, interval: INTERVAL, points_max: POINTS_MAX, ..Options::default() }
}

impl Load for &JobFile {
    fn measure<M: LabMedia>(
        self,
        device: &mut Hinted<M>,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measured, RunError> {
        let mut engine = Engine::new(self, device.caps(), &options(seed))
            .map_err(|error| RunError::Job(error.to_string()))?;
        let estimate = Estimate::new(self, device.caps());
        let mut report = |engine: &Engine<_>| {
            observer.progress(Phase::Measure, estimate.fraction(bytes(engine), engine.now()));
        };
        let failed = |error: EngineError| match error {
            EngineError::TimeStandsStill { .. } => RunError::Job(error.to_string()),
            other => RunError::Failed(other.to_string()),
        };
        let ramp = first_ramp(self);
        let mut first = Totals::default();
        if ramp > Nanos::ZERO {
            drive(&mut engine, device, ramp, &mut report).map_err(failed)?;
            first = totals(&engine);
            device.ftl.reset_stats();
            device.ftl.media_mut().device_mut().reset_utilisation();
        }
        drive(&mut engine, device, Nanos::MAX, &mut report).map_err(failed)?;
        Ok(Measured::new(engine.finish(), first, None))
    }
}

/// When every job of the first stage is behind its ramp, if any has one: counters begin there.
fn first_ramp(job: &JobFile) -> Nanos {
    let stonewalls = job.jobs.iter().skip(1).take_while(|spec| !spec.stonewall);
    let first_stage = job.jobs.iter().take(1).chain(stonewalls);
    let ramps = first_stage.filter(|spec| spec.ramp_time > Nanos::ZERO);
    ramps.map(|spec| spec.start_delay.saturating_add(spec.ramp_time)).max().unwrap_or(Nanos::ZERO)
}

/// What an engine has counted until now, the FTL's counters beginning anew.
fn totals<S>(engine: &Engine<S>) -> Totals {
    let totals = Direction::ALL.map(|direction| engine.totals(direction));
    Totals {
        at: engine.now(),
        ios: totals.iter().map(|(ios, _)| ios).sum(),
        bytes: totals.map(|(_, bytes)| bytes),
        latency: engine.latency_totals(),
        sectors: SectorCounts::default(),
    }
}

fn bytes<S>(engine: &Engine<S>) -> u64 {
    Direction::ALL.into_iter().map(|direction| engine.totals(direction).1).sum()
}

/// Runs `until` then or to the end, with a report now and then. Pausing changes no result: whatever
/// happens at an instant happens then.
fn drive<M: LabMedia>(
    engine: &mut Engine<SectorCounts>,
    device: &mut Hinted<M>,
    until: Nanos,
    report: &mut impl FnMut(&Engine<SectorCounts>),
) -> Result<(), EngineError> {
    loop {
        let interval = INTERVAL.max(Nanos(engine.now().0 / POINTS_MAX as u64));
        let stop = engine.now().saturating_add(interval).min(until);
        let state = engine.run_until(device, &mut Sampler, Some(stop))?;
        report(engine);
        if state == RunState::Finished || stop == until {
            return Ok(());
        }
    }
}

/// Samples the FTL's counters for the series.
struct Sampler;

impl<M: LabMedia> Probe<Hinted<M>> for Sampler {
    type Sample = SectorCounts;

    fn sample(&mut self, device: &Hinted<M>, _: Nanos) -> SectorCounts {
        device.ftl.stats().sectors
    }
}

/// Puts everything together.
fn conclude<M: LabMedia>(
    stack: &Stack,
    seed: u64,
    ftl: &Pblk<M>,
    preconditioned: Preconditioned,
    measured: Measured,
    wall: WallTime,
) -> Outcome {
    let stats = ftl.stats();
    let steady = course::steady(&measured.totals);
    let mut warnings = warnings(&stack.host, &stats, &steady);
    warnings.extend(measured.trace.iter().flat_map(replay::warnings));
    let media = ftl.media().device();
    let in_service = media.report().filter(|(_, info)| info.state != ChunkState::Offline);
    Outcome {
        stack: stack.clone(),
        seed,
        size: DeviceSize::of(ftl.capacity()),
        preconditioned,
        virtual_time: measured.length,
        wall,
        workload: measured.results,
        trace: measured.trace,
        ftl: stats,
        memory: ftl.memory(),
        media_bytes: media.memory_bytes(),
        wear: media.wear(),
        erase_counts: EraseCounts::of(&media.wear(), in_service.map(|(_, info)| info.erases)),
        utilisation: media.utilisation(),
        line_valid: outcome::line_valid(&ftl.lines()),
        series: course::points(&measured.totals),
        steady: steady.is_ok(),
        warnings,
    }
}

/// What a reader should know before believing a figure.
fn warnings(host: &Host, stats: &FtlStats, steady: &Result<(), String>) -> Vec<String> {
    let counted = [
        (stats.mismatches, "reads found another sector's data: a defect of the FTL"),
        (stats.uncorrectable, "sectors could not be read from the media"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    let unsteady = steady.as_ref().err().cloned();
    let uncharged = (*host != Host::default()).then(|| {
        "the stack sets [host], but host CPU and memory are not charged for yet".to_owned()
    });
    let counted = counted.map(|(count, what)| format!("{count} {what}"));
    unsteady.into_iter().chain(counted).chain(uncharged).collect()
}
