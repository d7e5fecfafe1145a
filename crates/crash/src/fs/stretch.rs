//! A stretch between two power cuts: a run of its own executor, which ends with every task in it. That is how host memory is
//! lost. Time goes on where the stretch before it ended.

use super::power_switch::{Bios, Device, Medium, PowerSwitch};
use crate::device::drive::CheckFailure;
use nandscape_block::AsyncDevice;
use nandscape_rt::combine::timeout;
use nandscape_rt::{Executor, Handle, Nanos};
use std::future::Future;

/// Virtual time after which a stretch counts as not terminating.
const LIMIT: Nanos = Nanos::from_secs(100_000);

/// What ran on a medium until it ended.
pub(super) struct Stretch<T> {
    /// What it returned, or that it did not end.
    pub(super) output: Result<T, CheckFailure>,
    pub(super) medium: Medium,
    pub(super) bios: Bios,
    pub(super) now: Nanos,
}

/// Runs something on a medium from an instant on, in an executor of its own, whose tasks end with it.
///
/// # Errors
/// All tasks wait for each other.
pub(super) fn stretch<T: 'static, F: Future<Output = T> + 'static>(
    began: Nanos,
    medium: Medium,
    work: impl FnOnce(Handle, Device) -> F + 'static,
) -> Result<Stretch<T>, CheckFailure> {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let ended = executor.block_on(async move {
        handle.sleep_until(began).await;
        let device = AsyncDevice::new(&handle, PowerSwitch::new(&handle, medium));
        let output = timeout(&handle, LIMIT, work(handle.clone(), device.clone())).await;
        let taken =
            device.with(|switch| (switch.take(), switch.bios(), switch.does_not_terminate()));
        (output, taken, handle.now())
    });
    let (output, (medium, bios, endless), now) =
        ended.map_err(|deadlock| CheckFailure::new(deadlock.to_string()))?;
    let output = match output {
        Ok(output) if !endless => Ok(output),
        Ok(_) => Err(CheckFailure::new("device not idle within the command limit")),
        Err(elapsed) => Err(CheckFailure::new(format!("file system made no progress: {elapsed}"))),
    };
    Ok(Stretch { output, medium, bios, now })
}
