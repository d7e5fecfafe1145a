//! Bringing a new volume to a device: what is old made void, blocks in runs, the superblocks last.

use super::contents::Contents;
use super::{MkfsOptions, Plan};
use crate::f2fs::format::*;
use crate::mkfs::{discard_to_zeroes, write_blocks, zero};
use nandscape_block::zone::{ZoneAction, ZoneId, ZoneState};
use nandscape_block::{AsyncDevice, Bio, BlockError, Lba, Op, Reply};
use nandscape_rt::combine::in_turn;
use std::borrow::Cow;
use std::ops::Range;

/// Records of an upcall.
const UPCALL_RECORDS: u32 = 256;

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
    let random = options.zones.map_or(plan.layout.blocks(), |zones| zones.first.into());
    reset_zones(device).await?;
    if plan.layout.space().is_some() {
        return clear_regions(device).await.map(|()| true);
    }
    if options.discard && discard_to_zeroes(device, random).await? {
        return Ok(true);
    }
    for run in unwritten(plan).into_iter().filter(|run| run.start < random) {
        zero(device, run).await?;
    }
    Ok(false)
}

/// Empties all regions of a device with append-only ones, which discards single sectors. What it moved meanwhile is
/// nothing to the new volume.
async fn clear_regions(device: &AsyncDevice) -> Result<(), BlockError> {
    let regions: Vec<_> = device.caps().regions().map(|region| region.range).collect();
    for region in regions {
        let mut at = region.start;
        while at < region.end {
            let sectors = (region.end - at).min(1 << 30);
            device.discard(Lba(at), sectors as u32).await?;
            at += sectors;
        }
    }
    device.flush().await?;
    if device.caps().has_upcalls() {
        let fetch = || device.submit(Bio::new(Op::FetchUpcall, Lba(0), UPCALL_RECORDS));
        while let Reply::Upcall(id, moves) = fetch().await?
            && !moves.is_empty()
        {
            device.submit(Bio::new(Op::CompleteUpcall(id), Lba(0), 0)).await?;
        }
    }
    Ok(())
}

/// Empties the zones of a device, if it has some.
async fn reset_zones(device: &AsyncDevice) -> Result<(), BlockError> {
    if !device.caps().has_zones() {
        return Ok(());
    }
    let zones = device.report_zones(Lba(0), u32::MAX).await?;
    let written = (0..).map(ZoneId).zip(zones).filter(|(_, info)| info.state != ZoneState::Empty);
    let resets = written.map(|(zone, _)| device.manage_zone(zone, ZoneAction::Reset));
    in_turn(resets.collect::<Vec<_>>()).await.into_iter().collect()
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
    runs.extend(journal.map(|area| area.blocks().start.0.into()..area.blocks().end.0.into()));
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
