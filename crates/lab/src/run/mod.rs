//! A run: the rig of a stack is built over a prepared device, a job file, a trace or a Filebench workload runs on it
//! in virtual time, and what was counted becomes the outcome (`pipeline`).
//!
//! Preconditioning goes through the same write path as the measured phase, without timing, so that
//! no virtual time passes; then counters begin at zero and timing is switched on.

mod counts;
mod criterion;
mod device;
mod error;
mod hang;
mod image;
mod json;
mod load;
mod observer;
mod outcome;
mod pipeline;
mod precondition;
mod prepare;
mod queue;
mod rig;
mod sense;
mod series;
mod volume;
mod warnings;

pub use counts::{Sample, ZONE_TYPE, ZoneReport};
pub use error::RunError;
pub use image::{Copied, export_image, import_image};
pub use json::VERSION;
pub use load::{Round, RoundsRun, Trace, UntilSteady, WINDOW_ROUNDS, check_trace};
pub use nandscape_workload::target::FileCounts;
pub use observer::{FinalState, NoObserver, Observer, Phase};
pub use outcome::{EraseCounts, IoPath, Outcome, VALID_CLASSES, WallTime};
pub use prepare::{InitialState, make_state};
pub use queue::QueueCounts;
pub use sense::{Busy, Law};
pub use series::{CleaningPoint, GarbagePoint, MigrationPoint, Point, WriteAmplification};

use crate::stack::Stack;
use crate::state::StateSource;
use load::{Flowops, Jobs, SteadyJobs, buffered, run_as};
use nandscape_workload::fio::{FileLayout, JobFile};
use nandscape_workload::wml::Workload;
use pipeline::run_load;
use std::rc::Rc;
use volume::{FileSetup, Setup};

/// How a run is carried out, beyond stack, load and seed.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Where a preconditioned device comes from; no figure depends on it, but for a state that is not
    /// the stack's own.
    pub states: StateSource<'a>,
    /// Version and commit of the program, which states remember.
    pub program: &'a str,
    /// A job goes on until it is steady; traces end where they end.
    pub until_steady: Option<UntilSteady>,
}

/// Runs `job` on `stack`.
///
/// # Errors
/// A stack or job that does not fit, a state that cannot be used, or a run that could not go on. Failures of
/// single I/Os are part of the outcome.
pub fn run(
    stack: &Stack,
    job: &JobFile,
    seed: u64,
    options: RunOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let setup = match (&stack.fs, buffered(stack, job)?) {
        (Some(_), _) => {
            Setup::Files(FileSetup::Jobs(FileLayout::new(job, seed).map_err(RunError::Job)?))
        }
        (None, Some(direct)) => Setup::PageCache(direct),
        (None, None) => Setup::Device,
    };
    let (file, warnings) = run_as(stack, job);
    let file = &file;
    match options.until_steady {
        None => run_load(stack, Jobs { file, warnings }, setup, seed, options, observer),
        Some(until) => {
            let jobs = SteadyJobs { file, until, warnings };
            run_load(stack, jobs, setup, seed, options, observer)
        }
    }
}

/// Replays `trace` on `stack`.
///
/// # Errors
/// A stack that does not fit, a trace that is malformed or does not fit, a state that cannot be used, or a run
/// that could not go on. Failures of single I/Os are part of the outcome.
pub fn replay(
    stack: &Stack,
    trace: Trace,
    seed: u64,
    options: RunOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    if stack.fs.is_some() {
        let why = "a trace is replayed on a block device, not on files: leave out [fs]";
        return Err(stack.error("fs", why).into());
    }
    run_load(stack, trace, Setup::Device, seed, options, observer)
}

/// Runs a Filebench workload on `stack`.
///
/// # Errors
/// A stack without a file system, or that does not fit, or a run that could not go on. What ends the
/// workload early is part of the outcome.
pub fn run_workload(
    stack: &Stack,
    workload: &Workload,
    seed: u64,
    options: RunOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let workload = Rc::new(workload.clone());
    let setup = load::setup(stack, &workload, seed)?;
    run_load(stack, Flowops(workload), setup, seed, options, observer)
}
