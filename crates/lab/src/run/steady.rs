//! A job that goes on in rounds until it is steady.

use super::counts::Counts;
use super::course::Totals;
use super::device::LabDevice;
use super::drive::{Sampler, begin, bytes, drive, first_ramp, run_to, totals, writes_at_random};
use super::error::RunError;
use super::load::{INTERVAL, Measured};
use super::observer::{Observer, Phase};
use super::rounds::{RoundDone, Rounds, RoundsRun, UntilSteady};
use nandscape_ftl::stats::SectorCounts;
use nandscape_workload::engine::{Engine, JobResult, RunState};
use nandscape_workload::fio::JobFile;

/// Runs `file`, whose jobs go on for ever, until the last five rounds are steady, or as many as are
/// allowed. What is measured is those five.
pub(super) fn measure<D: LabDevice>(
    file: &JobFile,
    until: UntilSteady,
    device: &mut D,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Measured, RunError> {
    let file = endless(file)?;
    let mut course = Course {
        engine: begin(&file, device, seed, observer)?,
        device,
        observer,
        sampler: Sampler::default(),
        finished: false,
    };
    course.pass_ramp(&file)?;
    let mut rounds = Rounds::default();
    while course.goes_on() && rounds.len() < until.rounds_max && rounds.steady().is_err() {
        let done = course.round(until)?;
        rounds.push(done);
        let fraction = f64::from(rounds.len()) / f64::from(until.rounds_max);
        course.observer.progress(Phase::Measure, fraction);
    }
    let interrupted = course.observer.is_interrupted();
    let measured = course.finish(rounds, until, interrupted);
    Ok(Measured { random_writes: writes_at_random(&file), ..measured })
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

/// Jobs on their device.
struct Course<'a, D: LabDevice> {
    engine: Engine<SectorCounts>,
    device: &'a mut D,
    observer: &'a mut dyn Observer,
    sampler: Sampler,
    /// All jobs have ended, although they should not: something failed.
    finished: bool,
}

impl<D: LabDevice> Course<'_, D> {
    /// Leaves out what comes before the end of every ramp.
    fn pass_ramp(&mut self, file: &JobFile) -> Result<(), RunError> {
        let ramp = first_ramp(file);
        if ramp.0 > 0 {
            let Self { engine, device, observer, sampler, .. } = self;
            let mut pause = |engine: &Engine<_>, device: &mut D| {
                device.attend_timeline(*observer, engine.now());
                !observer.is_interrupted()
            };
            drive(engine, &mut **device, sampler, ramp, &mut pause)?;
            self.restart();
        }
        Ok(())
    }

    /// What jobs and device did since the last call, and counts from zero again.
    fn restart(&mut self) -> (Vec<JobResult>, Counts) {
        let counts = self.device.counts();
        self.sampler.before = self.sampler.before.plus(&counts.ftl.sectors);
        self.device.reset_counts();
        (self.engine.cut(), counts)
    }

    fn goes_on(&self) -> bool {
        !self.finished && !self.observer.is_interrupted()
    }

    fn totals(&self) -> Totals {
        let sectors = self.sampler.before.plus(&self.device.sectors());
        totals(&self.engine, sectors)
    }

    fn round(&mut self, until: UntilSteady) -> Result<RoundDone, RunError> {
        let from = self.totals();
        let began = (self.engine.now(), bytes(&self.engine));
        let logical_sectors = self.device.caps().sectors;
        loop {
            let stop = self.engine.now().saturating_add(INTERVAL);
            let state = run_to(&mut self.engine, self.device, &mut self.sampler, stop)?;
            self.device.attend_timeline(self.observer, self.engine.now());
            self.finished = state == RunState::Finished;
            let now = (self.engine.now(), bytes(&self.engine));
            if !self.goes_on() || until.round.is_over(logical_sectors, began, now) {
                break;
            }
        }
        let to = self.totals();
        let (reports, counts) = self.restart();
        Ok(RoundDone { from, to, reports, counts })
    }

    fn finish(self, rounds: Rounds, until: UntilSteady, interrupted: bool) -> Measured {
        let steady = match interrupted {
            true => Err("not steady: the last round was cut short".to_owned()),
            false => rounds.steady(),
        };
        let end = self.totals();
        let run = RoundsRun { asked: until, rounds: rounds.len() };
        let mut results = self.engine.finish();
        let (from, reports, counts) = rounds.into_window().unwrap_or_default();
        for (job, window) in results.jobs.iter_mut().zip(reports) {
            (job.directions, job.sync) = (window.directions, window.sync);
            (job.runtime, job.depths) = (window.runtime, window.depths);
        }
        let mut measured = Measured::new(results, from, counts);
        if measured.totals.last().is_none_or(|last| last.at < end.at) {
            measured.totals.push(end);
        }
        Measured { steady, rounds: Some(run), interrupted, ..measured }
    }
}
