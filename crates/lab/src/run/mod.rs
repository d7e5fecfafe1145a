//! A run: a stack is built and preconditioned, a job file or a trace runs on it in virtual time, and
//! what was counted on the way is put together.
//!
//! Preconditioning goes through the same write path as the measured phase, without timing, so that
//! no virtual time passes; then counters start anew and timing is switched on.

mod amplification;
mod counts;
mod course;
mod device;
mod drive;
mod engine;
mod error;
mod estimate;
mod files;
mod free;
mod image;
mod jobs;
mod json;
mod leave;
mod load;
mod observer;
mod outcome;
mod path;
mod precondition;
mod prepare;
mod remarks;
mod replay;
mod rounds;
mod sample;
mod settled;
mod silence;
mod steady;
mod steps;
mod wml;
mod zones;

pub use amplification::WriteAmplification;
pub use counts::FileCounts;
pub use course::{CleaningPoint, GarbagePoint, MigrationPoint, Point};
pub use error::RunError;
pub use image::{Copied, export_image, import_image};
pub use jobs::run;
pub use json::VERSION;
pub use observer::{FinalState, NoObserver, Observer, Phase};
pub use outcome::{EraseCounts, Outcome, VALID_CLASSES, WallTime};
pub use path::IoPath;
pub use prepare::{InitialState, make_state};
pub use replay::{Trace, check_trace, replay};
pub use rounds::{Round, RoundsRun, UntilSteady, WINDOW_ROUNDS};
pub use sample::Sample;
pub use wml::run_workload;
pub use zones::{ZONE_TYPE, ZoneReport};

use crate::state::StateSource;

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
