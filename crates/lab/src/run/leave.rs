//! The device as a run leaves it, as a state: its file system was unmounted, what the FTL still holds is
//! flushed, and power goes, as after preconditioning. All figures are taken before that, so no result
//! tells whether anybody wanted the device. It is named by what it holds, so that no two devices share a
//! name, whatever ran on them.

use super::device::{self, LabDevice};
use super::error::RunError;
use crate::stack::Stack;
use crate::state::{self, Header, Origin, Preconditioned, State};
use nandscape_block::Bio;
use nandscape_ftl::Ftl;
use nandscape_media::Media;
use std::io;
use xxhash_rust::xxh3::Xxh3;

/// The state of a device at the end of a run.
pub(super) fn state(
    stack: &Stack,
    seed: u64,
    program: &str,
    device: impl LabDevice,
) -> Result<State, RunError> {
    let in_use = || RunError::Failed("defect: something still uses the device".to_owned());
    let mut ftl = device.release().ok_or_else(in_use)?;
    device::serve(&mut ftl, Bio::flush())?;
    let done = Preconditioned { fill_sectors: ftl.mapped_sectors(), ..Preconditioned::default() };
    let media = device::power_off(ftl).into_inner();
    let named = digest(&media).map_err(|error| RunError::Failed(error.to_string()))?;
    let text = state::text(stack, seed) + &Origin::Run.line(named);
    Ok(State { header: Header::new(stack, seed, text, done, program), media })
}

/// Of all that the media hold.
fn digest(media: &Media) -> io::Result<u128> {
    let mut hash = Xxh3::new();
    media.write_content(&mut hash)?;
    Ok(hash.digest128())
}
