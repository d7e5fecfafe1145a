//! An engine of jobs, driven over a device with pauses.

use super::course::Totals;
use super::device::LabDevice;
use super::error::RunError;
use super::load::{INTERVAL, POINTS_MAX, options};
use super::observer::Observer;
use nandscape_ftl::stats::SectorCounts;
use nandscape_rt::Nanos;
use nandscape_workload::engine::{Engine, EngineError, Options, Probe, RunState};
use nandscape_workload::fio::{Direction, JobFile};

/// An engine for these jobs, ready to begin, and watched.
pub(super) fn begin<D: LabDevice>(
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
pub(super) fn writes_at_random(file: &JobFile) -> bool {
    file.jobs.iter().any(|spec| spec.pattern.random && spec.pattern.mix.has(Direction::Write))
}

/// When every job of the first stage is behind its ramp, if any has one: counters begin there.
pub(super) fn first_ramp(job: &JobFile) -> Nanos {
    let stonewalls = job.jobs.iter().skip(1).take_while(|spec| !spec.stonewall);
    let first_stage = job.jobs.iter().take(1).chain(stonewalls);
    let ramps = first_stage.filter(|spec| spec.ramp_time > Nanos::ZERO);
    ramps.map(|spec| spec.start_delay.saturating_add(spec.ramp_time)).max().unwrap_or(Nanos::ZERO)
}

/// What an engine has counted until now, and the FTL in these sectors.
pub(super) fn totals<S>(engine: &Engine<S>, sectors: SectorCounts) -> Totals {
    let totals = Direction::ALL.map(|direction| engine.totals(direction));
    Totals {
        at: engine.now(),
        ios: totals.iter().map(|(ios, _)| ios).sum(),
        bytes: totals.map(|(_, bytes)| bytes),
        latency: engine.latency_totals(),
        sectors,
    }
}

pub(super) fn bytes<S>(engine: &Engine<S>) -> u64 {
    Direction::ALL.into_iter().map(|direction| engine.totals(direction).1).sum()
}

/// Runs `until` then or to the end, with a pause now and then, which says whether to go on. Pausing changes
/// no result: whatever happens at an instant happens then.
pub(super) fn drive<D: LabDevice>(
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
pub(super) fn run_to<D: LabDevice>(
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
pub(super) struct Sampler {
    /// What was counted before the counters were last reset.
    pub(super) before: SectorCounts,
}

impl<D: LabDevice> Probe<D> for Sampler {
    type Sample = SectorCounts;

    fn sample(&mut self, device: &D, _: Nanos) -> SectorCounts {
        self.before.plus(&device.sectors())
    }
}
