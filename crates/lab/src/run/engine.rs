//! Jobs under way: their engine over a device, and what is counted of both.

use super::course::Totals;
use super::device::LabDevice;
use super::drive::RunningLoad;
use super::error::RunError;
use super::estimate::Estimate;
use super::load::{INTERVAL, POINTS_MAX, options};
use super::observer::Observer;
use super::sample::{Sample, Sampler};
use super::zones::ZoneReport;
use nandscape_ftl::HostIo;
use nandscape_rt::Nanos;
use nandscape_rt::words::grouped;
use nandscape_workload::engine::{Engine, EngineError, Options, RunState};
use nandscape_workload::fio::{Direction, JobFile};

/// Jobs that run `until` then, or to their end.
pub(super) struct JobsUnderWay {
    pub(super) engine: Engine<Sample>,
    pub(super) sampler: Sampler,
    pub(super) until: Nanos,
    estimate: Estimate,
}

impl JobsUnderWay {
    /// Jobs that are ready to begin, and watched.
    pub(super) fn new<D: LabDevice>(
        file: &JobFile,
        device: &mut D,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Self, RunError> {
        let files = device.files();
        let follows = files.is_empty() && file.jobs.iter().any(|spec| spec.zoning.is_zbd());
        let report = if follows { ZoneReport::of(device)? } else { None };
        let zones = report.map(|report| report.zones).unwrap_or_default();
        let options = Options { files, zones, ..options(seed) };
        let mut engine = Engine::new(file, device.caps(), &options)
            .map_err(|error| RunError::Job(error.to_string()))?;
        engine.record(observer.recorder());
        device.begin_timeline(observer, engine.slots());
        let estimate = Estimate::new(file, &engine);
        Ok(Self { engine, sampler: Sampler::default(), until: Nanos::MAX, estimate })
    }

    /// What the jobs have counted until now, beside what was sampled.
    pub(super) fn totals(&self, sample: Sample) -> Totals {
        let totals = Direction::ALL.map(|direction| self.engine.totals(direction));
        Totals {
            at: self.engine.now(),
            ios: totals.iter().map(|(ios, _)| ios).sum(),
            bytes: totals.map(|(_, bytes)| bytes),
            latency: self.engine.latency_totals(),
            sample,
        }
    }

    /// What all jobs have transferred until now.
    pub(super) fn bytes(&self) -> u64 {
        Direction::ALL.into_iter().map(|direction| self.engine.totals(direction).1).sum()
    }

    /// Runs until `stop` or to the end.
    pub(super) fn run_to<D: LabDevice>(
        &mut self,
        device: &mut D,
        stop: Nanos,
    ) -> Result<RunState, RunError> {
        let run = self.engine.run_until(device, &mut self.sampler, Some(stop));
        run.map_err(|error| match error {
            EngineError::TimeStandsStill { .. } => {
                RunError::Job(format!("{error}{}", why_no_time(&device.counts().ftl.host)))
            }
            EngineError::Stuck { .. } => {
                let waiting =
                    device.waiting().map_or_else(String::new, |waiting| format!("; {waiting}"));
                RunError::Failed(format!("{error}{waiting}"))
            }
            other => RunError::Failed(other.to_string()),
        })
    }
}

impl<D: LabDevice> RunningLoad<D> for JobsUnderWay {
    fn go_on(&mut self, device: &mut D) -> Result<RunState, RunError> {
        let share = if device.is_logged() { 0 } else { self.engine.now().0 / POINTS_MAX as u64 };
        let interval = INTERVAL.max(Nanos(share));
        let stop = self.engine.now().saturating_add(interval).min(self.until);
        let state = self.run_to(device, stop)?;
        Ok(if stop == self.until { RunState::Finished } else { state })
    }

    fn now(&self, _: &D) -> Nanos {
        self.engine.now()
    }

    fn fraction(&self) -> f64 {
        self.estimate.fraction(self.bytes(), self.engine.now())
    }
}

/// Why I/Os took no time, if they only read what was never written.
fn why_no_time(host: &HostIo) -> String {
    if host.unwritten == 0 || host.unwritten < host.read || host.written > 0 {
        return String::new();
    }
    let sectors = grouped(host.read);
    format!(
        "; all {sectors} sectors that they read hold nothing: precondition.recipe=fill writes them"
    )
}

/// Whether a job writes at random.
pub(super) fn writes_at_random(file: &JobFile) -> bool {
    file.jobs.iter().any(|spec| spec.pattern.random && spec.pattern.mix.has(Direction::Write))
}

/// When every job of the first stage is behind its ramp at the latest, if any has one: counters begin there.
pub(super) fn first_ramp(job: &JobFile) -> Nanos {
    let stonewalls = job.jobs.iter().skip(1).take_while(|spec| !spec.stonewall);
    let first_stage = job.jobs.iter().take(1).chain(stonewalls);
    let ramps = first_stage.filter(|spec| spec.ramp_time > Nanos::ZERO);
    ramps.map(|spec| spec.start_delay.1.saturating_add(spec.ramp_time)).max().unwrap_or(Nanos::ZERO)
}
