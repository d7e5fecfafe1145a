//! Hangs: a task waits for something that never comes. Daemons of a file system have timers for ever, so the clock
//! never runs out of events, and a hang shows only in that nothing has happened for a long time.

use super::error::RunError;
use nandscape_rt::combine::timeout;
use nandscape_rt::{Executor, Nanos, Waiting};

/// When nothing has happened for so long while a task waits, nothing will. What takes longest is the
/// write-back of a page, after half a minute.
const HANG_LIMIT: Nanos = Nanos::from_secs(3_600);

/// Different things that are waited for, of which so many are listed.
const WAITING_MAX: usize = 8;

/// Whether nothing happened for too long between these instants.
pub(super) fn is_hang(progress: Nanos, now: Nanos) -> bool {
    now.saturating_sub(progress) > HANG_LIMIT
}

/// The output of `future`, which takes no virtual time.
pub(super) fn run_untimed<F>(executor: &mut Executor, future: F) -> Result<F::Output, RunError>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let output = run_with_timeout(executor, future).map_err(RunError::Failed)?;
    match executor.handle().now() > Nanos::ZERO {
        true => Err(RunError::TimePassed),
        false => Ok(output),
    }
}

/// The output of `future`, unless it hangs.
///
/// # Errors
/// What all tasks wait for.
pub(super) fn run_with_timeout<F>(executor: &mut Executor, future: F) -> Result<F::Output, String>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let handle = executor.handle();
    let task = handle.spawn("file system", future);
    match executor.block_on(async move { timeout(&handle, HANG_LIMIT, task).await }) {
        Ok(Ok(Ok(output))) => Ok(output),
        Ok(_) => Err(format!(
            "the file system made no progress: {}",
            describe_waiting(&executor.waiting())
        )),
        Err(deadlock) => Err(deadlock.to_string()),
    }
}

/// What tasks wait for, each thing once.
pub(super) fn describe_waiting(waiting: &[Waiting]) -> String {
    let mut listed: Vec<String> = Vec::new();
    for waiting in waiting.iter().map(Waiting::to_string) {
        if !listed.contains(&waiting) {
            listed.push(waiting);
        }
    }
    let more = if listed.len() > WAITING_MAX { "; ..." } else { "" };
    listed.truncate(WAITING_MAX);
    listed.join("; ") + more
}
