//! Ctrl-C, and the polite signal of batch systems: the first asks to stop, the second ends the
//! program at once. A sweep stops behind the runs under way, a run with the figures that it has.

use crate::output::Failure;
use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that is set by the first such signal from now on.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the signal that sets the flag must not find it set.
        flag::register_conditional_shutdown(signal, 128 + signal, flag.clone())
            .and_then(|_| flag::register(signal, flag.clone()))
            .context("cannot listen to signals")
            .map_err(Failure::Run)?;
    }
    Ok(flag)
}
