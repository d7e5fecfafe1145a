//! A job that goes on in rounds until it is steady.

use super::counts::Counts;
use super::course::Totals;
use super::device::LabDevice;
use super::drive::{RunEnd, RunningLoad, drive};
use super::engine::{JobsUnderWay, first_ramp, writes_at_random};
use super::error::RunError;
use super::load::{INTERVAL, Measurement};
use super::observer::Observer;
use super::rounds::{RoundDone, Rounds, RoundsRun, UntilSteady, WINDOW_ROUNDS};
use super::sample::Sample;
use super::settled::Ground;
use nandscape_rt::Nanos;
use nandscape_rt::counts::Counts as _;
use nandscape_workload::engine::{JobResult, RunState};
use nandscape_workload::fio::JobFile;

/// Runs `file`, whose jobs go on for ever, until the last five rounds are steady, or as many as are
/// allowed. What is measured is those five.
pub(super) fn measure<D: LabDevice>(
    file: &JobFile,
    until: UntilSteady,
    (device, ground): (&mut D, &Ground),
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Measurement, RunError> {
    let file = endless(file)?;
    let mut jobs = JobsUnderWay::new(&file, device, seed, observer)?;
    let ramp = first_ramp(&file);
    if ramp > Nanos::ZERO {
        jobs.until = ramp;
        // Who ends a run in its ramp gets the figures of one pause more.
        drive(&mut jobs, device, observer)?;
        restart(&mut jobs, device);
    }
    let mut course = Course::new(jobs, until, *ground, device);
    let end = drive(&mut course, device, observer)?;
    let measured = course.finish(device, end);
    Ok(Measurement { random_writes: writes_at_random(&file), ..measured })
}

/// The same jobs, each in a loop without end.
fn endless(file: &JobFile) -> Result<JobFile, RunError> {
    let mut file = file.clone();
    if let Some(spec) = file.jobs.iter().skip(1).find(|spec| spec.stonewall) {
        let why = "stonewall: jobs that run until steady state run together";
        return Err(RunError::Job(format!("{}: {why}", spec.place)));
    }
    for spec in &mut file.jobs {
        (spec.time_based, spec.runtime) = (true, None);
    }
    Ok(file)
}

/// What jobs and device did since the last call, and counts from zero again.
fn restart<D: LabDevice>(jobs: &mut JobsUnderWay, device: &mut D) -> (Vec<JobResult>, Counts) {
    let counts = device.counts();
    jobs.sampler.before = jobs.sampler.before.plus(&Sample::of(device));
    device.reset_counts();
    (jobs.engine.cut(), counts)
}

/// Totals of a job whose counts have begun anew now and then.
fn totals<D: LabDevice>(jobs: &JobsUnderWay, device: &D) -> Totals {
    jobs.totals(jobs.sampler.before.plus(&Sample::of(device)))
}

/// Jobs that go on in rounds.
struct Course {
    jobs: JobsUnderWay,
    until: UntilSteady,
    /// Those that are over.
    rounds: Rounds,
    /// Totals when the one under way began, and bytes of all directions.
    from: Totals,
    from_bytes: u64,
    /// Free sectors then.
    from_free: u64,
    /// User sectors that a round writes at least, if it writes any.
    round_min: u64,
}

impl Course {
    fn new<D: LabDevice>(
        jobs: JobsUnderWay,
        until: UntilSteady,
        ground: Ground,
        device: &D,
    ) -> Self {
        let (from, from_bytes) = (totals(&jobs, device), jobs.bytes());
        let round_min = ground.round_min(WINDOW_ROUNDS.into());
        let (rounds, from_free) = (Rounds::new(ground), device.free_sectors());
        Self { jobs, until, rounds, from, from_bytes, from_free, round_min }
    }

    /// The round under way has taken so much, and written so much.
    fn is_round_over<D: LabDevice>(&self, device: &D) -> bool {
        let now = (self.jobs.engine.now(), self.jobs.bytes());
        let written = device.sectors().user;
        let sectors = device.caps().sectors;
        self.until.round.is_over(sectors, (self.from.at, self.from_bytes), now)
            && (written == 0 || written >= self.round_min)
    }

    /// Ends the round under way, and begins the next.
    fn end_round<D: LabDevice>(&mut self, device: &mut D) {
        let to = totals(&self.jobs, device);
        let (reports, counts) = restart(&mut self.jobs, device);
        let from = std::mem::replace(&mut self.from, totals(&self.jobs, device));
        self.from_bytes = self.jobs.bytes();
        let to_free = device.free_sectors();
        let free = (std::mem::replace(&mut self.from_free, to_free), to_free);
        self.rounds.push(RoundDone { from, to, free, reports, counts });
    }

    fn finish<D: LabDevice>(mut self, device: &mut D, end: RunEnd) -> Measurement {
        if self.jobs.engine.now() > self.from.at {
            self.end_round(device);
        }
        let Self { jobs, until, rounds, from: last, .. } = self;
        let steady = match end {
            RunEnd::Interrupted => Err("not steady: the last round was cut short".to_owned()),
            RunEnd::Finished => rounds.steady(),
        };
        let run = RoundsRun { asked: until, rounds: rounds.len() };
        let mut results = jobs.engine.finish();
        let (from, reports, counts) = rounds.into_window().unwrap_or_default();
        for (job, window) in results.jobs.iter_mut().zip(reports) {
            (job.directions, job.sync) = (window.directions, window.sync);
            (job.runtime, job.depths) = (window.runtime, window.depths);
            (job.began, job.ended) = (window.began, window.ended);
            job.zones = window.zones;
        }
        let mut measured = Measurement::new(results, from, counts, end);
        if measured.totals.last().is_none_or(|known| known.at < last.at) {
            measured.totals.push(last);
        }
        Measurement { steady, rounds: Some(run), ..measured }
    }
}

impl<D: LabDevice> RunningLoad<D> for Course {
    fn go_on(&mut self, device: &mut D) -> Result<RunState, RunError> {
        let stop = self.jobs.engine.now().saturating_add(INTERVAL);
        let state = self.jobs.run_to(device, stop)?;
        // Jobs without end that have ended: something failed.
        let failed = state == RunState::Finished;
        if !failed && !self.is_round_over(device) {
            return Ok(RunState::Paused);
        }
        self.end_round(device);
        let enough = self.rounds.len() >= self.until.rounds_max || self.rounds.steady().is_ok();
        Ok(if failed || enough { RunState::Finished } else { RunState::Paused })
    }

    fn now(&self, _: &D) -> Nanos {
        self.jobs.engine.now()
    }

    fn fraction(&self) -> f64 {
        f64::from(self.rounds.len()) / f64::from(self.until.rounds_max)
    }
}
