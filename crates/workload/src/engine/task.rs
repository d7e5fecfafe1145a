//! The engine as one task of the runtime.

use super::{Engine, EngineError, Probe, RunState};
use crate::target::IoTarget;
use nandscape_rt::Handle;

/// Runs all jobs as a task: the clock moves on at once where no other task has anything to do before
/// the engine's next event, and the task sleeps where one has. The engine's
/// [`began`](super::Options::began) must not lie behind the clock.
///
/// # Errors
/// [`EngineError`], after which the run cannot go on.
pub async fn run<T: IoTarget, P: Probe<T>>(
    handle: &Handle,
    engine: &mut Engine<P::Sample>,
    target: &mut T,
    probe: &mut P,
) -> Result<(), EngineError> {
    loop {
        let next = engine.next_event(target);
        if let Some(next) = next
            && !handle.try_advance_to(next)
        {
            handle.sleep_until(next).await;
        }
        if engine.run_until(target, probe, next)? == RunState::Finished {
            return Ok(());
        }
    }
}
