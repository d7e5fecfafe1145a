//! Volumes in append-only address spaces as small as campaigns need them, and whether the device holds what they do.

use crate::coverage::Coverage;
use crate::device::drive::CheckFailure;
use crate::draw::append::AppendWanted;
use crate::fs::power_switch::Device;
use nandscape_block::{AsyncDevice, Lba, SectorData, Tag};
use nandscape_fs::f2fs::format::{BLOCKS_PER_SEGMENT, SegNo};
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_ftl::{Detail, FtlReport};
use std::fmt::Display;

/// Sectors of a segment.
const SEGMENT: u64 = 512;
/// Segments of the areas of metadata: superblocks, packs, discard journals, SIT, NAT and SSA.
const AREA_SEGMENTS: u64 = 11;
/// Segments for files, those that the volume hides from users, and logs.
const LIVE_SEGMENTS: u64 = 7 + 8 + 6;
/// Logs that share a region.
const LOGS: u32 = 3;

/// What a volume needs of such a device.
pub(in crate::fs) const WANTED: AppendWanted = AppendWanted {
    segment: SEGMENT,
    random: AREA_SEGMENTS * SEGMENT,
    live: LIVE_SEGMENTS * SEGMENT,
    logs: LOGS,
};

/// Valid blocks of an unmounted volume, by the SIT: all, and those that the device has nothing of.
struct Valid {
    all: u64,
    absent: u64,
}

/// Counts valid blocks, and reads each of them if `reads` says so.
async fn valid_blocks(device: &AsyncDevice, reads: bool) -> Result<Valid, CheckFailure> {
    let wrong = |error: &dyn Display| CheckFailure::new(format!("counting valid blocks: {error}"));
    let image = F2fsImage::open(device).await.map_err(|error| wrong(&error))?;
    let mut valid = Valid { all: 0, absent: 0 };
    for segment in (0..image.layout.main_segments()).map(SegNo) {
        let entry = image.sit_entry(segment).await.map_err(|error| wrong(&error))?;
        valid.all += u64::from(entry.valid_blocks);
        let Some(start) = image.segment_start(segment).filter(|_| reads && entry.valid_blocks > 0)
        else {
            continue;
        };
        let read = device.read(Lba(start.0.into()), BLOCKS_PER_SEGMENT).await;
        let found = read.map_err(|error| wrong(&error))?;
        let is_absent = |block: &u32| {
            entry.map.get(*block) && found.sector(*block) == SectorData::Tag(Tag::ZERO)
        };
        valid.absent += (0..BLOCKS_PER_SEGMENT).filter(is_absent).count() as u64;
    }
    Ok(valid)
}

/// What collection on the device did, by name.
pub(in crate::fs) fn count_collection(
    report: &FtlReport,
    detail: &Detail,
    coverage: &mut Coverage,
) {
    let Detail::Coupled(counts) = detail else {
        coverage.count("collection", "victims", report.gc.victims);
        coverage.count("collection", "valid sectors of victims", report.gc.victim_valid);
        return;
    };
    for (name, count) in [
        ("sectors moved", counts.moved),
        ("records opened", counts.opened),
        ("records merged", counts.merged),
        ("records deleted", counts.deleted),
        ("records completed", counts.completed),
        ("upcalls", counts.upcalls),
        ("snapshots", counts.snapshots),
    ] {
        coverage.count("collection", name, count);
    }
}

/// After an unmount the append-only regions of the device hold the valid blocks of the volume and nothing else. Of a page
/// whose fsync was cut off, roll-forward may have found the node and the device have nothing: such a block is valid and
/// reads as zeroes; if its fsync was acknowledged, the files' contents show it.
pub(in crate::fs) async fn holds_valid_blocks(device: &Device) -> Result<(), CheckFailure> {
    let held = device.with(|switch| switch.appended_sectors());
    let device = device.erased();
    if held == valid_blocks(&device, false).await?.all {
        return Ok(());
    }
    match valid_blocks(&device, true).await? {
        Valid { all, absent } if held + absent == all => Ok(()),
        Valid { all, absent } => Err(CheckFailure::new(format!(
            "after an unmount: {held} sectors of append-only regions hold something, and {all} blocks are valid, \
             {absent} of them absent"
        ))),
    }
}
