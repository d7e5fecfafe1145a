//! The append-only regions of a device as a volume has them: a part that is writable at random for the metadata, then a
//! region for each log (IPLFS), or regions of data and of nodes, each with one that the device moves blocks to (D2FS).

use crate::f2fs::format::{AppendMode, BLOCKS_PER_SEGMENT, BlockAddr, SPACE_REGIONS, SpaceRegion};
use nandscape_block::{DeviceCaps, Region, RegionKind};

/// Logs that are open in a region at once, where three share one.
const LOGS_OF_REGION: u32 = 3;

/// Append-only regions that can be the address space of a volume. Sizes in blocks of 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppendGeometry {
    /// How addresses are given out.
    pub mode: AppendMode,
    /// What is writable at random, from block 0 on.
    pub metadata: u32,
    /// Regions, as many as the mode has.
    pub regions: [SpaceRegion; SPACE_REGIONS],
    /// Blocks of a section, where the device has superblocks.
    pub superblock: Option<u32>,
    /// Blocks that the media hold beside the metadata.
    pub capacity: u32,
}

impl AppendGeometry {
    /// The regions of a device; `None` of one without append-only regions.
    ///
    /// # Errors
    /// Why no volume fits them.
    pub fn of(caps: &DeviceCaps) -> Result<Option<Self>, String> {
        let is_append = |region: &Region| region.kind == RegionKind::Append;
        if !caps.regions().any(|region| is_append(&region)) {
            return Ok(None);
        }
        let regions: Vec<Region> = caps.regions().collect();
        let (front, logs) = regions.split_first().ok_or("a device without regions")?;
        if front.kind != RegionKind::Random || front.range.start != 0 {
            let why = "F2FS needs a region that is writable at random before those of its logs";
            return Err(why.to_owned());
        }
        if caps.discard_sectors != 1 {
            return Err("append-only regions need a device that discards single sectors".to_owned());
        }
        let mode = mode_of(logs)?;
        let superblock = match (mode, caps.superblocks) {
            (AppendMode::Interval, None) => None,
            (AppendMode::Coupled, Some(superblocks)) if superblocks.open_max >= LOGS_OF_REGION => {
                Some(superblocks.sectors)
            }
            (AppendMode::Interval, Some(_)) => {
                return Err("a region per log has no superblocks".to_owned());
            }
            (AppendMode::Coupled, _) => {
                return Err(
                    "three logs share a region, and fewer superblocks can be open".to_owned()
                );
            }
        };
        let segment = u64::from(BLOCKS_PER_SEGMENT);
        if superblock.is_some_and(|sectors| sectors == 0 || sectors % BLOCKS_PER_SEGMENT != 0) {
            return Err("superblocks are no whole number of segments of 2 MiB".to_owned());
        }
        if logs.iter().any(|region| !region.range.start.is_multiple_of(segment)) {
            return Err("a region begins at no multiple of a segment of 2 MiB".to_owned());
        }
        let mut spaces = [SpaceRegion::default(); SPACE_REGIONS];
        for (space, region) in spaces.iter_mut().zip(logs) {
            *space = space_of(region);
        }
        let capacity = caps.live_sectors().saturating_sub(front.sectors());
        Ok(Some(Self {
            mode,
            metadata: u32::try_from(front.sectors()).unwrap_or(u32::MAX),
            regions: spaces,
            superblock,
            capacity: u32::try_from(capacity).unwrap_or(u32::MAX),
        }))
    }

    /// The regions, as many as the mode has.
    #[must_use]
    pub fn regions(&self) -> &[SpaceRegion] {
        &self.regions[..self.mode.regions()]
    }
}

/// Which addresses of a region there are for F2FS: the last ones stand for what is no block.
fn space_of(region: &Region) -> SpaceRegion {
    let end = region.range.end.min(u64::from(BlockAddr::COMPRESS.0));
    let start = u32::try_from(region.range.start).unwrap_or(BlockAddr::COMPRESS.0);
    SpaceRegion { start, blocks: (end as u32).saturating_sub(start) }
}

/// How such regions are used.
fn mode_of(logs: &[Region]) -> Result<AppendMode, String> {
    use RegionKind::{Append, DeviceOwned};
    let kinds: Vec<_> = logs.iter().map(|region| region.kind).collect();
    match kinds[..] {
        [Append, Append, Append, Append, Append, Append] => Ok(AppendMode::Interval),
        [Append, DeviceOwned { of: 1 }, Append, DeviceOwned { of: 3 }] => Ok(AppendMode::Coupled),
        _ => {
            let why = "append-only regions that are neither one for each log, nor those of data and of nodes with one each \
                       that the device moves them to";
            Err(why.to_owned())
        }
    }
}
