//! The observer of a run: what is reported to it, and what it wants of the run beside the result.

use super::error::RunError;
use crate::state::State;
use crate::timeline::Timeline;
use nandscape_workload::engine::Recorder;

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

/// The device that a run left, or why it cannot be had; nothing before the run has ended with a result.
pub type FinalState = Option<Result<State, RunError>>;

/// The observer of a run in the real world. The lab itself knows no wall clock.
pub trait Observer {
    /// Seconds of real time since some fixed instant.
    fn wall_s(&self) -> f64;
    /// A phase is done to this fraction.
    fn progress(&mut self, phase: Phase, fraction: f64);
    /// The recorder of every I/O that completes in the measured phase, if there is one.
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
    fn final_state(&mut self) -> Option<&mut FinalState> {
        None
    }
}

/// No observer: wall times are zero.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn wall_s(&self) -> f64 {
        0.0
    }
    fn progress(&mut self, _: Phase, _: f64) {}
}

/// An error if the observer interrupts the run, of which there are no figures yet.
pub(super) fn check_interrupt(observer: &dyn Observer) -> Result<(), RunError> {
    if observer.is_interrupted() { Err(RunError::Interrupted) } else { Ok(()) }
}
