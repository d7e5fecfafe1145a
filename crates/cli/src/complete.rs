//! The runs of sweeps that are not finished yet, in parallel. Rows are kept as they come, so that an
//! interrupted sweep goes on where it stopped; what several sweeps ask for is run once.

use crate::args::JobsArgs;
use crate::cache::Cache;
use crate::command::COMMIT;
use crate::interrupt::Interrupt;
use crate::output::{Failure, classify, complain};
use crate::pool::{spread, threads};
use crate::progress::Progress;
use crate::rows::Rows;
use anyhow::anyhow;
use nandscape_lab::run::{Observer, Phase, RunError, RunOptions};
use nandscape_lab::sweep::{Case, JobLoad, Sweep, program};
use nandscape_lab::workload::log::FioLogs;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A sweep with all its rows.
pub(crate) struct Finished {
    /// Names of its runs, in order.
    pub(crate) ids: Vec<String>,
    /// Their rows, perhaps among others.
    pub(crate) rows: Rows,
    /// How many of them are of this time.
    pub(crate) new: usize,
}

impl Finished {
    /// Runs without a row.
    fn missing(&self) -> impl Iterator<Item = usize> {
        (0..self.ids.len()).filter(|at| self.rows.get(&self.ids[*at]).is_none())
    }
}

/// Tells what of the jobs has no effect.
pub(crate) fn print_notices(sweep: &Sweep) {
    for notice in sweep.notices() {
        complain(&notice);
    }
    let logs = |case: &Case| {
        let JobLoad::Fio(job) = &case.job.load else { return false };
        job.jobs.iter().any(|spec| spec.write_iolog.is_some())
            || !FioLogs::new(job).files().is_empty()
    };
    if sweep.cases.iter().any(logs) {
        complain("notice: logs that jobs ask for are written by `nandscape run` alone");
    }
}

/// Runs what `output` does not have yet. Rows are kept there as they come, and in order at the end. With the rows of a
/// sweep that was interrupted comes the failure that the command ends with; without any, that failure is all.
pub(crate) fn complete(
    sweep: &Sweep,
    output: Option<&Path>,
    jobs: JobsArgs,
    cache: Option<&Cache>,
) -> Result<(Finished, Result<(), Failure>), Failure> {
    let (all, ended) = complete_some(&[(sweep, output)], jobs, cache)?;
    let finished = all.into_iter().next().ok_or_else(|| Failure::run(anyhow!("no sweep")))?;
    match ended {
        Err(failure) if finished.missing().count() == finished.ids.len() => Err(failure),
        ended => Ok((finished, ended)),
    }
}

/// The same for several sweeps at once, each with a file of its own. What several ask for is run once.
pub(crate) fn complete_all(
    sweeps: &[(&Sweep, Option<&Path>)],
    jobs: JobsArgs,
    cache: Option<&Cache>,
) -> Result<Vec<Finished>, Failure> {
    let (all, ended) = complete_some(sweeps, jobs, cache)?;
    ended.map(|()| all)
}

fn complete_some(
    sweeps: &[(&Sweep, Option<&Path>)],
    jobs: JobsArgs,
    cache: Option<&Cache>,
) -> Result<(Vec<Finished>, Result<(), Failure>), Failure> {
    let program = program(COMMIT);
    let open = |(sweep, output): &(&Sweep, Option<&Path>)| {
        let rows = output.map_or_else(|| Ok(Rows::default()), Rows::open)?;
        Ok(Finished { ids: sweep.ids(&program), rows, new: 0 })
    };
    let mut all: Vec<Finished> = sweeps.iter().map(open).collect::<Result<_, _>>()?;
    let sweeps: Vec<&Sweep> = sweeps.iter().map(|(sweep, _)| *sweep).collect();
    let missing = missing(&sweeps, &mut all)?;
    let stop = Interrupt::new("waiting for the runs that have begun");
    let manner =
        RunOptions { states: Cache::states(cache), program: &program, ..RunOptions::default() };
    let plan = Plan { sweeps: &sweeps, missing: &missing, manner };
    let ran = run_all(&plan, threads(jobs.jobs), &stop, &mut all);
    for one in &mut all {
        one.rows.sort(&one.ids)?;
    }
    let new = ran?;
    if new < missing.len() {
        let runs: usize = all.iter().map(|one| one.ids.len()).sum();
        let done = runs - all.iter().map(|one| one.missing().count()).sum::<usize>();
        let kept = kept(&all);
        let why = anyhow!("interrupted: {done} of {runs} runs are finished; {kept}");
        return Ok((all, Err(Failure::Interrupted(why))));
    }
    Ok((all, Ok(())))
}

/// Where the rows of interrupted sweeps are.
fn kept(all: &[Finished]) -> String {
    let places: Vec<_> =
        all.iter().filter_map(|one| Some(one.rows.path()?.display().to_string())).collect();
    match places.as_slice() {
        [] => "--output FILE keeps them for a later command".to_owned(),
        places => {
            let places = places.join(", ");
            format!("results saved in {places}; rerun the same command to resume")
        }
    }
}

/// A sweep and one of its runs.
type Place = (usize, usize);

/// What is to be run: each a run with all places that lack its row. What another sweep has a row of
/// is none of them.
fn missing(sweeps: &[&Sweep], all: &mut [Finished]) -> Result<Vec<Vec<Place>>, Failure> {
    let lacking = all.iter().enumerate();
    let lacking = lacking.flat_map(|(of, one)| one.missing().map(move |at| (of, at)));
    let mut by_id: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    for (of, at) in lacking.collect::<Vec<_>>() {
        by_id.entry(all[of].ids[at].clone()).or_default().push((of, at));
    }
    for of in 0..all.len() {
        for at in 0..all[of].ids.len() {
            let Some(places) = by_id.get(&all[of].ids[at]) else { continue };
            let Some(row) = all[of].rows.get(&all[of].ids[at]).map(str::to_owned) else { continue };
            if share(sweeps, (of, at), &row, places, all)? {
                by_id.remove(&all[of].ids[at]);
            }
        }
    }
    let mut missing: Vec<_> = by_id.into_values().collect();
    missing.sort();
    Ok(missing)
}

/// Keeps the row of a run in `places` that ask for the same; whether it could be.
fn share(
    sweeps: &[&Sweep],
    (of, at): Place,
    row: &str,
    places: &[Place],
    all: &mut [Finished],
) -> Result<bool, Failure> {
    for &(to, index) in places {
        let Some(row) = sweeps[to].row_of_twin(index, COMMIT, (sweeps[of], at), row) else {
            return Ok(false);
        };
        let Finished { ids, rows, new } = &mut all[to];
        *new += 1;
        rows.add(&ids[index], row)?;
    }
    Ok(true)
}

/// What is to be run, and how.
struct Plan<'a> {
    sweeps: &'a [&'a Sweep],
    /// Each a run with all places that ask for it.
    missing: &'a [Vec<Place>],
    manner: RunOptions<'a>,
}

/// Runs what is missing, or a first part of it if stopped; says how many runs that were. The first error
/// stops the rest.
fn run_all(
    plan: &Plan<'_>,
    threads: u32,
    stop: &Interrupt,
    all: &mut [Finished],
) -> Result<usize, Failure> {
    let &Plan { sweeps, missing, manner } = plan;
    let bar = Bar { progress: Mutex::new((Progress::new(), 0.0)), runs: missing.len() };
    let broken = AtomicBool::new(false);
    let (mut done, mut failures) = (0, Vec::new());
    let keep = |places: &[Place], row: Result<String, RunError>, all: &mut [Finished]| {
        let (of, at) = places[0];
        let row = row.map_err(|error| name_case(sweeps[of], at, sweeps.len() == 1, error))?;
        share(sweeps, (of, at), &row, places, all).map(|_| ())
    };
    spread(
        threads,
        0..missing.len() as u64,
        &|| stop.has_come() || broken.load(Ordering::Relaxed),
        &|turn| {
            let places = &missing[turn as usize];
            let (of, at) = places[0];
            let mut part = Part { bar: &bar, done: 0.0 };
            let row = sweeps[of].run(at, COMMIT, manner, &mut part);
            broken.fetch_or(row.is_err(), Ordering::Relaxed);
            (places, row)
        },
        |(places, row)| match keep(places, row, all) {
            Ok(()) => {
                let (of, at) = places[0];
                done += 1;
                bar.tell(done, &sweeps[of].at(at));
            }
            Err(failure) => {
                broken.store(true, Ordering::Relaxed);
                failures.push((places[0], failure));
            }
        },
    );
    let first = failures.into_iter().min_by_key(|(run, _)| *run);
    first.map_or(Ok(done), |(_, failure)| Err(failure))
}

/// The same error, and which run it was unless it names a place in the only sweep.
fn name_case(sweep: &Sweep, at: usize, only: bool, error: RunError) -> Failure {
    let (case, seed) = sweep.at(at);
    match classify(error) {
        Failure::Run(error) => {
            Failure::Run(error.context(format!("{}, seed {seed}", case.label())))
        }
        Failure::Input(error) if !only => {
            Failure::Input(error.context(format!("{}: {}", sweep.name, case.label())))
        }
        other => other,
    }
}

/// One progress bar for all runs.
struct Bar {
    /// With the sum of the fractions of all runs.
    progress: Mutex<(Progress, f64)>,
    runs: usize,
}

/// What one run adds to the bar.
struct Part<'a> {
    bar: &'a Bar,
    /// Of this run.
    done: f64,
}

impl Observer for Part<'_> {
    fn wall_s(&self) -> f64 {
        0.0
    }

    fn progress(&mut self, phase: Phase, fraction: f64) {
        let done = match phase {
            Phase::Precondition => fraction / 2.0,
            Phase::Measure => 0.5 + fraction / 2.0,
        };
        self.bar.add(done - std::mem::replace(&mut self.done, done));
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.bar.add(1.0 - self.done);
    }
}

impl Bar {
    /// Without a terminal, a line in the log for each run.
    fn tell(&self, done: usize, (case, seed): &(&Case, u64)) {
        let on_terminal =
            self.progress.lock().unwrap_or_else(PoisonError::into_inner).0.on_terminal();
        if !on_terminal {
            complain(&format!("{done} of {}: {}, seed {seed}", self.runs, case.label()));
        }
    }

    fn add(&self, part: f64) {
        let mut shared = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        shared.1 += part;
        let fraction = shared.1 / self.runs as f64;
        shared.0.update("sweep", fraction);
    }
}
