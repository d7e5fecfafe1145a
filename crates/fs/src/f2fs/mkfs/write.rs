//! Bringing a new volume to a device: what is old made void, blocks in runs, the superblocks last.

use super::contents::Contents;
use super::{MkfsOptions, Plan};
use crate::f2fs::format::*;
use crate::mkfs::{discard_to_zeroes, write_blocks, zero};
use nandscape_block::{AsyncDevice, BlockError};
use std::borrow::Cow;
use std::ops::Range;

/// Makes old superblocks void, and what will not be written but read by a mount read as zeroes. Whether
/// what is free is discarded then.
pub(super) async fn clear(
    device: &AsyncDevice,
    plan: &Plan,
    options: &MkfsOptions,
) -> Result<bool, BlockError> {
    if options.fresh {
        return Ok(true);
    }
    zero(device, 0..2).await?;
    device.flush().await?;
    if options.discard && discard_to_zeroes(device, plan.layout.blocks()).await? {
        return Ok(true);
    }
    for run in unwritten(plan) {
        zero(device, run).await?;
    }
    Ok(false)
}

/// Blocks that a mount reads although nothing is written there: first copies of SIT and NAT, payload,
/// the place where roll-forward begins, and the GC journal.
fn unwritten(plan: &Plan) -> Vec<Range<u64>> {
    let layout = &plan.layout;
    let run = |start: BlockAddr, blocks: u32| {
        let start = u64::from(start.0);
        start..start + u64::from(blocks)
    };
    let nat = (0..layout.nat_blocks()).step_by(BLOCKS_PER_SEGMENT as usize);
    let nat = nat.filter_map(|block| layout.nat_block(block, false));
    let warm = layout.segment_blocks(plan.log(SegmentType::WarmNode)).start;
    let payload = [0, 1].map(|pack| run(layout.pack(pack), 1 + layout.payload_blocks()));
    let mut runs = payload.to_vec();
    runs.push(run(layout.area(Area::Sit).start, layout.sit_blocks()));
    runs.extend(nat.map(|start| run(start, BLOCKS_PER_SEGMENT)));
    runs.push(run(warm, 1));
    let journal = plan.superblock.gc_journal();
    runs.extend(journal.map(|area| run(area.blocks().start, GC_JOURNAL_BLOCKS)));
    runs
}

/// Writes the volume, its superblocks last.
pub(super) async fn write(device: &AsyncDevice, contents: &Contents) -> Result<(), BlockError> {
    let blocks = contents.blocks.iter();
    let blocks = blocks.map(|(at, bytes)| (at.0.into(), Cow::Borrowed(&bytes[..])));
    write_blocks(device, blocks).await?;
    device.flush().await?;
    let copies = (0..2).map(|copy| (copy, Cow::Borrowed(&contents.superblock[..])));
    write_blocks(device, copies).await?;
    device.flush().await
}
