//! What making a file system takes, whatever its kind: an identity, and blocks brought to a device.

use nandscape_block::{AsyncDevice, Bio, BlockError, Flags, Lba, Payload, Tag};
use nandscape_rt::Stream;
use nandscape_rt::combine::in_turn;
use std::borrow::Cow;
use std::ops::Range;

/// Bytes of a block: a sector of the device.
const BLOCK_BYTES: usize = 4096;
/// Bios in flight at most.
const IN_FLIGHT: usize = 16;
/// Sectors of a bio at most, if the device takes as many.
const RUN_SECTORS: u32 = 64;

/// A block and its content.
pub(crate) type Block<'a> = (u64, Cow<'a, [u8]>);

/// A UUID of version 4 (RFC 9562).
pub(crate) fn random_uuid(stream: &mut Stream) -> [u8; 16] {
    let bits = u128::from(stream.bits()) << 64 | u128::from(stream.bits());
    let mut uuid = bits.to_be_bytes();
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// Discards the first `blocks` of a device that is discarded to zeroes, and writes zeroes where its unit
/// of discard leaves a rest. `false`, and nothing done, if it is not discarded to zeroes.
pub(crate) async fn discard_to_zeroes(
    device: &AsyncDevice,
    blocks: u64,
) -> Result<bool, BlockError> {
    let unit = device.caps().discard_sectors;
    if unit == 0 || !device.caps().discard_zeroes {
        return Ok(false);
    }
    let whole = blocks - blocks % u64::from(unit);
    for run in pieces(0..whole, u32::MAX - u32::MAX % unit) {
        device.discard(Lba(run.start), (run.end - run.start) as u32).await?;
    }
    zero(device, whole..blocks).await?;
    Ok(true)
}

/// Writes zeroes.
pub(crate) async fn zero(device: &AsyncDevice, blocks: Range<u64>) -> Result<(), BlockError> {
    for run in pieces(blocks, run_sectors(device)) {
        let sectors = (run.end - run.start) as u32;
        let zeroes = vec![Tag::ZERO; sectors as usize].into_boxed_slice();
        device.write(Lba(run.start), sectors, Payload::Tags(zeroes)).await?;
    }
    Ok(())
}

/// Sectors of a bio at most.
fn run_sectors(device: &AsyncDevice) -> u32 {
    match device.caps().max_sectors {
        0 => RUN_SECTORS,
        bound => bound.min(RUN_SECTORS),
    }
}

/// A run in pieces of up to `step`.
fn pieces(run: Range<u64>, step: u32) -> impl Iterator<Item = Range<u64>> {
    let end = run.end;
    run.step_by(step.max(1) as usize).map(move |start| start..(start + u64::from(step)).min(end))
}

/// Writes blocks, those that follow each other in one bio.
pub(crate) async fn write_blocks<'a>(
    device: &AsyncDevice,
    mut blocks: impl Iterator<Item = Block<'a>>,
) -> Result<(), BlockError> {
    let sectors_max = run_sectors(device) as usize;
    let mut next = blocks.next();
    let mut replies = Vec::with_capacity(IN_FLIGHT);
    while let Some((start, bytes)) = next.take() {
        let mut run = bytes.into_owned();
        next = blocks.next();
        while let Some((at, bytes)) = &next
            && *at == start + (run.len() / BLOCK_BYTES) as u64
            && run.len() < sectors_max * BLOCK_BYTES
        {
            run.extend_from_slice(bytes);
            next = blocks.next();
        }
        let sectors = (run.len() / BLOCK_BYTES) as u32;
        let payload = Payload::from_bytes(&run);
        let payload = payload.map_err(|_| BlockError::Malformed("half a block of metadata"))?;
        replies.push(device.submit(Bio::write(Lba(start), sectors, payload).with(Flags::META)));
        if replies.len() == IN_FLIGHT || next.is_none() {
            for reply in in_turn(std::mem::take(&mut replies)).await {
                reply?;
            }
        }
    }
    Ok(())
}
