//! The runtime of a file system: its tasks, on a virtual clock of their own.
//!
//! Daemons have timers for ever, so the clock never runs out of events. A call that does not come back is
//! told by silence.

use crate::run::device::HintedDevice;
use crate::run::error::RunError;
use crate::run::silence::HANG_LIMIT;
use nandscape_block::AsyncDevice;
use nandscape_rt::combine::timeout;
use nandscape_rt::{Executor, Nanos, Waiting};

/// Different things that are waited for, of which so many are told.
const WAITING_MAX: usize = 8;

/// A device, and the runtime that drives it.
pub(super) fn driven(device: HintedDevice) -> (Executor, AsyncDevice<HintedDevice>) {
    let executor = Executor::on_virtual_clock();
    let device = AsyncDevice::new(&executor.handle(), device);
    (executor, device)
}

/// What `future` brings, in no virtual time.
pub(super) fn at_once<F>(executor: &mut Executor, future: F) -> Result<F::Output, RunError>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let output = in_time(executor, future).map_err(RunError::Failed)?;
    match executor.handle().now() > Nanos::ZERO {
        true => Err(RunError::TimePassed),
        false => Ok(output),
    }
}

/// What `future` brings, which takes no longer than the longest silence.
///
/// # Errors
/// What everybody waits for.
pub(super) fn in_time<F>(executor: &mut Executor, future: F) -> Result<F::Output, String>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let handle = executor.handle();
    let task = handle.spawn("file system", future);
    match executor.block_on(async move { timeout(&handle, HANG_LIMIT, task).await }) {
        Ok(Ok(Ok(output))) => Ok(output),
        Ok(_) => Err(format!("the file system hangs: {}", told(&executor.waiting()))),
        Err(deadlock) => Err(deadlock.to_string()),
    }
}

/// What tasks wait for, each thing once.
pub(super) fn told(waiting: &[Waiting]) -> String {
    let mut told: Vec<String> = Vec::new();
    for waiting in waiting.iter().map(Waiting::to_string) {
        if !told.contains(&waiting) {
            told.push(waiting);
        }
    }
    let more = if told.len() > WAITING_MAX { "; ..." } else { "" };
    told.truncate(WAITING_MAX);
    told.join("; ") + more
}
