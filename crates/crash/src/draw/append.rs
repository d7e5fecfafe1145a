//! What a file system wants of a device: zones, or append-only regions behind a part that is written at random. Sizes that
//! coupled SSDs and SSDs with interval maps have alike for it are here; what else they draw is in their files.

use crate::draw::sample::between;
use crate::draw::zoned::ZonesWanted;
use nandscape_block::SECTOR_BYTES;
use nandscape_media::Geometry;
use nandscape_rt::Stream;

/// Parallel units of a coupled SSD at most, so that a chunk has pages enough.
const UNITS_MAX: u32 = 16;

/// Bits of a log's region: a seed writes at most a million sectors.
const PARTITION_BITS: (u32, u32) = (21, 23);

/// What a file system wants of each kind of device that has other regions than random ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionsWanted {
    /// Of a zoned SSD.
    pub zones: ZonesWanted,
    /// Of a device with append-only regions.
    pub append: AppendWanted,
}

/// What a file system needs of a device with append-only regions. Sizes in sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppendWanted {
    /// A segment: superblocks are whole ones, and regions begin at multiples of it.
    pub segment: u64,
    /// What is written at random.
    pub random: u64,
    /// What the regions of logs hold at once, at least.
    pub live: u64,
    /// Logs that share a region.
    pub logs: u32,
}

impl AppendWanted {
    /// The most that a region is long that is written at random.
    pub(crate) const fn random_most(&self) -> u64 {
        self.random + 3 * self.segment
    }

    /// Bytes of such a region: now and then of no whole number of segments.
    pub(crate) fn draw_random_bytes(&self, rng: &mut Stream) -> u64 {
        let more = if rng.chance(0.5) { rng.below(3 * self.segment) } else { 0 };
        (self.random + more) * SECTOR_BYTES
    }

    /// The shape with parallel units and write units that are powers of two, and with rows of chunks of so many sectors.
    pub(crate) fn with_rows(&self, shape: Geometry, row: u64) -> Geometry {
        let power = |n: u32| 1 << n.max(1).ilog2();
        let groups = power(shape.groups).min(UNITS_MAX);
        let units = power(shape.units).min(UNITS_MAX / groups);
        let sectors = row as u32 / (groups * units);
        let ws_opt = power(shape.ws_opt).min(sectors / 2);
        let ws_min = power(shape.ws_min).min(ws_opt);
        let limits = Geometry { mw_cunits: 0, maxoc: 0, maxocpu: 0, ..shape };
        Geometry { groups, units, sectors, ws_min, ws_opt, ..limits }
    }

    /// Sectors of a superblock: one segment or two.
    pub(crate) fn draw_superblock(&self, rng: &mut Stream) -> u64 {
        self.segment << u32::from(rng.chance(0.25))
    }

    /// log2 of the sectors of a log's region: many times what media hold, since a log does not go round.
    pub(crate) fn draw_partition_bits(&self, most: u32, rng: &mut Stream) -> u32 {
        between(rng, PARTITION_BITS.0, PARTITION_BITS.1).min(most)
    }
}
