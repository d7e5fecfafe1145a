//! Volumes on zones as small as campaigns need them: the logs, a section for each of them that a mount after a power cut
//! may take, what cleaning needs, and a few for files.

use crate::draw::zoned::ZonesWanted;
use nandscape_block::zone::ZoneLimits;
use nandscape_block::{DeviceCaps, Region, RegionKind};
use nandscape_fs::f2fs::ZoneGeometry;
use nandscape_rt::Stream;

/// Sectors of a segment.
const SEGMENT: u64 = 512;
/// Segments of the areas before the main one, but for what aligns them.
const AREA_SEGMENTS: u64 = 7;
/// Logs.
const LOGS: u64 = 6;
/// Sections that are kept for cleaning at least: one for each log after a power cut, and one each for the blocks that
/// cleaning moves.
const RESERVED_MIN: u64 = LOGS + 6;
/// Sections beyond those of logs, reserve and files.
const SPARE: u64 = 4;
/// Blocks for files.
const USER_BLOCKS: u64 = 3_584;
/// Zones of a GC journal.
const JOURNAL_ZONES: u64 = 2;

/// What a volume needs of the zones of an SSD.
pub(in crate::fs) const fn wanted(journals: bool) -> ZonesWanted {
    ZonesWanted {
        segment: SEGMENT,
        areas: AREA_SEGMENTS * SEGMENT,
        sections: LOGS + RESERVED_MIN + SPARE + if journals { JOURNAL_ZONES } else { 0 },
        files: USER_BLOCKS,
        active: LOGS as u32 + 1,
    }
}

/// What follows for a volume from the zones of its device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::fs) struct ZonedVolume {
    /// Sectors of the device, which the volume takes.
    pub(in crate::fs) sectors: u64,
    pub(in crate::fs) reserved_segments: u32,
    pub(in crate::fs) overprovision: f64,
}

impl ZonedVolume {
    /// On a device, whether the volume has a GC journal or not; `None` without zones.
    pub(in crate::fs) fn on(caps: &DeviceCaps, journals: bool) -> Option<Self> {
        let zones = ZoneGeometry::of(caps).ok().flatten()?;
        let (blocks, capacity) = (u64::from(zones.blocks), u64::from(zones.capacity));
        let main = blocks + (AREA_SEGMENTS * SEGMENT).next_multiple_of(blocks);
        let front = u64::from(zones.first).saturating_sub(main) / blocks;
        let journal = if journals { JOURNAL_ZONES } else { 0 };
        let behind = ((caps.sectors - u64::from(zones.first)) / blocks).saturating_sub(journal);
        let sections = front + behind;
        let for_files = USER_BLOCKS.div_ceil(capacity);
        let reserved = sections.saturating_sub(LOGS + for_files + SPARE).max(RESERVED_MIN);
        let segments = capacity.div_ceil(SEGMENT);
        let counted = sections * segments;
        let reserved_segments = reserved * segments;
        let shown = (segments * USER_BLOCKS).div_ceil(capacity);
        let hidden = counted.saturating_sub(shown + reserved_segments);
        let whole = counted.saturating_sub(reserved_segments).max(1);
        Some(Self {
            sectors: caps.sectors,
            reserved_segments: reserved_segments as u32,
            overprovision: (100.0 * (hidden as f64 + 0.5) / whole as f64).clamp(0.5, 95.0),
        })
    }
}

/// The hostile device that a seed draws below a volume on zones.
pub(in crate::fs) fn adversary_caps(seed: u64, journals: bool) -> DeviceCaps {
    let rng = &mut Stream::new(seed, "zones");
    let segments = if rng.chance(0.25) { 2 } else { 1 };
    let zone_sectors = segments * SEGMENT;
    // All segments hold something: tools that see a volume in a file do not know of others.
    let below = rng.within(zone_sectors - SEGMENT / 2..zone_sectors);
    let capacity = if rng.chance(0.5) { zone_sectors } else { below };
    let max_active = [7, 8, 14, 0][rng.below(4) as usize];
    let max_open = [0, 3, max_active][rng.below(3) as usize];
    let wanted = wanted(journals);
    let random = wanted.random(zone_sectors)
        + if rng.chance(0.25) { (1 + rng.below(3)) * zone_sectors } else { 0 };
    let zones = wanted.zones(capacity) + rng.below(3);
    let limits = ZoneLimits {
        zone_sectors,
        capacity,
        max_open,
        max_active,
        append: false,
        write_sectors: 1,
    };
    let sectors = random + zones * zone_sectors;
    let regions = [
        Region::new(0..random, RegionKind::Random),
        Region::new(random..sectors, RegionKind::Zones(limits)),
    ];
    DeviceCaps {
        regions: regions.into(),
        scoped_flush: true,
        max_sectors: 256,
        ..DeviceCaps::conventional(sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_fs::f2fs::mkfs::{MkfsOptions, plan};
    use std::collections::BTreeSet;

    /// Every drawn device has room for a volume with about as much for files as others of campaigns; shapes differ.
    #[test]
    fn volumes_on_zones_are_small() {
        let mut shapes = BTreeSet::new();
        for (seed, journals) in (0..300).map(|seed| (seed, seed % 2 == 0)) {
            let caps = adversary_caps(seed, journals);
            let volume = ZonedVolume::on(&caps, journals).expect("zones");
            let zones = ZoneGeometry::of(&caps).expect("zones that fit");
            let options = MkfsOptions {
                zones,
                gc_journal: journals,
                reserved_segments: Some(volume.reserved_segments),
                overprovision: Some(volume.overprovision),
                ..MkfsOptions::new(seed)
            };
            let planned = plan(&options, caps.sectors).expect("a volume");
            let user = planned.user_blocks();
            assert!((3_000..4_700).contains(&user), "{seed}: {user} blocks on {caps:?}");
            let zones = zones.expect("zones");
            shapes.insert((zones.segments(), zones.capacity == zones.blocks, zones.max_active));
        }
        assert_eq!(shapes.len(), 2 * 2 * 4);
    }
}
