//! The device as a run leaves it, as a state: its file system was unmounted, what the FTL still holds is
//! flushed, and power goes, as after preconditioning. All figures are taken before that, so no result
//! tells whether anybody wanted the device.

use super::device::{self, LabDevice};
use super::error::RunError;
use super::load::Load;
use super::prepare::Before;
use crate::stack::Stack;
use crate::state::{self, Header, Origin, Preconditioned, State};
use nandscape_block::Bio;
use std::fmt::Write;
use xxhash_rust::xxh3::xxh3_128;

/// Names what a run leaves by all that this follows from: the whole stack, the load, and the device on
/// which it begins.
pub(super) fn name(stack: &Stack, seed: u64, before: Option<Before>, load: &impl Load) -> String {
    let mut text = format!("{}\nseed = {seed}\n", stack.toml);
    if let Some(Before { state, .. }) = before {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "state = {state}");
    }
    let _ = write!(text, "{load:?}");
    Origin::Run.line(xxh3_128(text.as_bytes()))
}

/// The state of a device at the end of the run of this name.
pub(super) fn state(
    stack: &Stack,
    seed: u64,
    program: &str,
    name: &str,
    device: impl LabDevice,
) -> Result<State, RunError> {
    let in_use = || RunError::Failed("defect: something still uses the device".to_owned());
    let mut ftl = device.release().ok_or_else(in_use)?;
    device::serve(&mut ftl, Bio::flush())?;
    let done = Preconditioned { fill_sectors: ftl.mapped_sectors(), ..Preconditioned::default() };
    let text = state::text(stack, seed) + name;
    let header = Header::new(stack, seed, text, done, program);
    Ok(State { header, media: device::power_off(ftl).into_inner() })
}
