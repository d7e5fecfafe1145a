//! Volumes in append-only address spaces as small as campaigns need them, and whether the device holds what they do.

use crate::coverage::Coverage;
use crate::device::drive::CheckFailure;
use crate::draw::append::AppendWanted;
use crate::fs::power_switch::Device;
use nandscape_block::AsyncDevice;
use nandscape_fs::f2fs::format::SegNo;
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_ftl::{Detail, FtlReport};

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

/// Valid blocks of an unmounted volume, by the SIT.
async fn valid_blocks(device: &AsyncDevice) -> Result<u64, CheckFailure> {
    let wrong = |error| CheckFailure::new(format!("counting valid blocks: {error}"));
    let image = F2fsImage::open(device).await.map_err(wrong)?;
    let mut valid = 0;
    for segment in 0..image.layout.main_segments() {
        let entry = image.sit_entry(SegNo(segment)).await.map_err(wrong)?;
        valid += u64::from(entry.valid_blocks);
    }
    Ok(valid)
}

/// What collection on the device did, by name.
pub(in crate::fs) fn count_collection(report: &FtlReport, coverage: &mut Coverage) {
    let Detail::Coupled(counts) = report.detail else {
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

/// After an unmount the append-only regions of the device hold the valid blocks of the volume and nothing else.
pub(in crate::fs) async fn holds_valid_blocks(device: &Device) -> Result<(), CheckFailure> {
    let valid = valid_blocks(&device.erased()).await?;
    match device.with(|switch| switch.appended_sectors()) {
        held if held == valid => Ok(()),
        held => Err(CheckFailure::new(format!(
            "after an unmount: {held} sectors of append-only regions hold something, and {valid} blocks are valid"
        ))),
    }
}
