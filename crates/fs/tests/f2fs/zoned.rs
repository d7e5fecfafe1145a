//! F2FS on zones: devices in memory whose zones are sections.

use nandscape_block::zone::ZoneLimits;
use nandscape_block::{DeviceCaps, Region, RegionKind};

/// Sectors of a segment.
const SEGMENT: u64 = 512;

/// A device with zones of so many segments and this capacity, all of `mib` MiB, behind what is writable at random for
/// the metadata of a volume.
pub(crate) fn zoned(segments: u64, capacity: u64, mib: u64) -> DeviceCaps {
    let zone_sectors = segments * SEGMENT;
    let limits = ZoneLimits {
        zone_sectors,
        capacity,
        max_open: 4,
        max_active: 7,
        append: false,
        write_sectors: 1,
    };
    let random = (12 * SEGMENT).next_multiple_of(zone_sectors);
    let sectors = random + (mib << 8).next_multiple_of(zone_sectors);
    let regions = [
        Region::new(0..random, RegionKind::Random),
        Region::new(random..sectors, RegionKind::Zones(limits)),
    ];
    DeviceCaps { regions: regions.into(), ..DeviceCaps::conventional(sectors) }
}
