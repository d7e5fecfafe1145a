//! Driving a load to its end, whatever it is: it goes on for a while, whoever watches is told, and the load
//! goes on again. Pausing changes no result: whatever happens at an instant happens then.

use super::device::LabDevice;
use super::error::RunError;
use super::observer::{Observer, Phase};
use nandscape_rt::Nanos;
use nandscape_workload::engine::RunState;

/// A load that has begun.
pub(super) trait RunningLoad<D> {
    /// Goes on for a while, or to the end.
    fn go_on(&mut self, device: &mut D) -> Result<RunState, RunError>;

    /// Until when everything has happened.
    fn now(&self, device: &D) -> Nanos;

    /// The fraction that is done, about.
    fn fraction(&self) -> f64;
}

/// How a load ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RunEnd {
    /// Where it was to end.
    Finished,
    /// Before that, because somebody wanted it to.
    Interrupted,
}

/// Drives `load` to its end, or until somebody wants it to end.
pub(super) fn drive<D: LabDevice>(
    load: &mut impl RunningLoad<D>,
    device: &mut D,
    observer: &mut dyn Observer,
) -> Result<RunEnd, RunError> {
    loop {
        let state = load.go_on(device)?;
        device.sample_timeline(observer, load.now(device));
        observer.progress(Phase::Measure, load.fraction());
        match state {
            RunState::Finished => return Ok(RunEnd::Finished),
            RunState::Paused if observer.is_interrupted() => return Ok(RunEnd::Interrupted),
            RunState::Paused => {}
        }
    }
}
