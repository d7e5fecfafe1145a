//! What a seed chooses about a zoned SSD: its zones, limits, streams and buffers, and the page-mapped region in front.

use crate::draw::device;
use crate::draw::draws::{Draws, KindDraw};
use crate::draw::sample::{between, pick};
use crate::settings::Settings;
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::device::config::BufferConfig;
use nandscape_ftl::zoned::{Config, ZoneConfig};
use nandscape_ftl::{FtlConfig, FtlKind};
use nandscape_media::Geometry;
use nandscape_rt::Stream;

/// The kind.
pub(crate) const KIND: FtlKind = FtlKind::Zoned;
/// Chunks per unit that a page-mapped region takes on a small device, and those of the zones.
const RANDOM_CHUNKS: u32 = 16;
const ZONE_CHUNKS: u32 = 12;
/// The most zones that a page-mapped region is long, or longer than it must be.
const RANDOM_ZONES_MAX: u64 = 3;
/// The most spare chunks per unit that are drawn.
const SPARE_MAX: u32 = 24;

/// Zones that a file system needs: each is a whole number of its segments, and what it writes at random lies before the
/// first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZonesWanted {
    /// Sectors of a segment.
    pub segment: u64,
    /// Sectors before the first zone, beside one more zone.
    pub areas: u64,
    /// Zones beside those of files.
    pub sections: u64,
    /// Sectors of files.
    pub files: u64,
    /// Zones that must be active at once.
    pub active: u32,
}

impl ZonesWanted {
    /// Sectors before zones of this size.
    pub(crate) fn random(&self, zone: u64) -> u64 {
        zone + self.areas.next_multiple_of(zone)
    }

    /// Zones of this capacity.
    pub(crate) fn zones(&self, capacity: u64) -> u64 {
        self.sections + self.files.div_ceil(capacity)
    }

    /// Dies of each zone on a device of this shape.
    fn dies(geometry: &Geometry) -> u32 {
        1 << geometry.total_units().min(4).ilog2()
    }

    /// The shape, with chunks for zones of a segment or two, and for what is before them.
    fn fit(&self, shape: Geometry, rng: &mut Stream) -> Geometry {
        let zone = self.segment << u32::from(rng.chance(0.25));
        let (dies, units) = (Self::dies(&shape), u64::from(shape.total_units()));
        let page = u64::from(shape.ws_opt);
        let sectors = zone.div_ceil(dies.into()).next_multiple_of(page);
        let zones = self.zones(zone - self.segment / 2) + rng.below(3);
        let chunks_of_zones = (zones * u64::from(dies)).div_ceil(units);
        let shape = Geometry { sectors: sectors as u32, ..shape };
        let chunks = chunks_of_zones as u32 + self.random_chunks(&shape, zone) + SPARE_MAX;
        Geometry { chunks, ..shape }
    }

    /// Chunks per unit for the page-mapped region before zones of this size: its overprovisioning may take as much as it
    /// holds.
    fn random_chunks(&self, geometry: &Geometry, zone: u64) -> u32 {
        let row = u64::from(geometry.total_units()) * u64::from(geometry.sectors);
        let most = self.random(zone) + (RANDOM_ZONES_MAX - 1) * zone;
        2 * most.div_ceil(row) as u32 + RANDOM_CHUNKS
    }

    /// Its zones on a device of that shape.
    fn zone(&self, geometry: &Geometry, given: ZoneConfig, rng: &mut Stream) -> ZoneConfig {
        let dies = Self::dies(geometry);
        let held = u64::from(dies) * u64::from(geometry.sectors);
        let size = held / self.segment * self.segment;
        let cut = if rng.chance(0.5) { rng.below(self.segment / 2) } else { 0 };
        let max_active = [self.active, self.active + 1, 2 * self.active, 0][rng.below(4) as usize];
        let page_bytes = u64::from(geometry.ws_opt) * SECTOR_BYTES;
        ZoneConfig {
            dies,
            size_bytes: size * SECTOR_BYTES,
            capacity_bytes: (size - cut) * SECTOR_BYTES,
            spare_chunks: 2,
            instances: 1,
            interleave: 1,
            max_open: if max_active == 0 { 0 } else { between(rng, 1, max_active) },
            max_active,
            append: given.append,
            buffer_bytes: match given.buffer_bytes {
                0 => 0,
                _ => u64::from(between(rng, 2, 5)) * page_bytes,
            },
        }
    }
}

/// Keys of a stack that every seed has as they are given, and those that it scales down or draws, beside those of a
/// conventional SSD.
pub(crate) const KEPT: &[&str] = &["zone.append"];
pub(crate) const SIZED: &[&str] = &[
    "random.size",
    "zone.dies",
    "zone.size",
    "zone.capacity",
    "zone.max_open",
    "zone.max_active",
    "zone.buffer",
    "zone.instances",
    "zone.spare_chunks",
];

/// The choices, if they are a zoned SSD's.
pub(crate) const fn of(config: &FtlConfig) -> Option<&Config> {
    if let FtlConfig::Zoned(config) = config { Some(config) } else { None }
}

/// The draw of a zoned SSD.
pub(crate) struct ConfigDraw {
    given: Config,
    /// Whether choices are a stack's.
    is_given: bool,
    has_random: bool,
    wanted: Option<ZonesWanted>,
}

impl ConfigDraw {
    /// That of a stack's choices, else of the kind's defaults; with the zones that a file system wants.
    pub(crate) fn begin(
        given: Option<&FtlConfig>,
        wanted: Option<ZonesWanted>,
        draws: &mut Draws<'_>,
    ) -> Self {
        let drawn = draws.streams.chance(0.4);
        let config = given.and_then(of).cloned();
        let has_random = config.as_ref().map_or(drawn, |config| config.random_bytes > 0);
        Self {
            has_random: has_random || wanted.is_some(),
            wanted,
            is_given: config.is_some(),
            given: config.unwrap_or_default(),
        }
    }

    fn zone(&self, geometry: &Geometry, rng: &mut Stream) -> ZoneConfig {
        let given = self.given.zone;
        let wide = geometry.groups > 1 && rng.chance(0.3);
        let instances =
            if self.is_given { given.instances.min(geometry.groups) } else { 1 + u32::from(wide) };
        let most = geometry.total_units().min(4 * instances) / instances;
        let dies = instances * between(rng, 1, most);
        let page = u64::from(geometry.ws_opt * instances);
        let buffer_pages = match pick(rng, &[1, 4]) {
            0 if !self.is_given => 0,
            _ if self.is_given && given.buffer_bytes == 0 => 0,
            _ => u64::from(between(rng, 2, 5)),
        };
        let held = u64::from(dies) * u64::from(geometry.sectors);
        let step = if buffer_pages == 0 { page } else { 1 };
        let cut = if rng.chance(0.3) { rng.below(held / 2 / step + 1) * step } else { 0 };
        let gap = if rng.chance(0.3) { rng.below(held) } else { 0 };
        let max_active = if rng.chance(0.3) { 0 } else { between(rng, 2, 6) };
        ZoneConfig {
            dies,
            size_bytes: (held + gap) * SECTOR_BYTES,
            capacity_bytes: (held - cut) * SECTOR_BYTES,
            spare_chunks: 2,
            instances,
            interleave: 1,
            max_open: if max_active == 0 { 0 } else { between(rng, 1, max_active) },
            max_active,
            append: given.append && (!rng.chance(0.2) || self.is_given),
            buffer_bytes: buffer_pages * page * SECTOR_BYTES,
        }
    }
}

impl KindDraw for ConfigDraw {
    /// Device FTLs are refused on NAND with rules for hosts.
    fn fit(&self, shape: Geometry, _sectors_max: u32, draws: &mut Draws<'_>) -> Geometry {
        let groups = 1 << shape.groups.ilog2();
        if let Some(wanted) = self.wanted {
            let shape = Geometry { groups, mw_cunits: 0, maxoc: 0, maxocpu: 0, ..shape };
            return wanted.fit(shape, draws.rng);
        }
        let least = ZONE_CHUNKS + if self.has_random { RANDOM_CHUNKS } else { 0 };
        let chunks = shape.chunks.max(least);
        Geometry { groups, chunks, mw_cunits: 0, maxoc: 0, maxocpu: 0, ..shape }
    }

    fn config(&self, geometry: &Geometry, draws: &mut Draws<'_>) -> FtlConfig {
        let pages = device::ConfigDraw::of(self.is_given, self.given.pages.clone());
        let of_pages = self.wanted.map_or(*geometry, |wanted| {
            let zone = u64::from(ZonesWanted::dies(geometry) * geometry.sectors);
            Geometry { chunks: wanted.random_chunks(geometry, zone), ..*geometry }
        });
        let pages = pages.config(&of_pages, draws);
        let pages = device::of(&pages).unwrap_or(&self.given.pages).clone();
        let zone = match self.wanted {
            Some(wanted) => wanted.zone(geometry, self.given.zone, draws.streams),
            None => self.zone(geometry, draws.streams),
        };
        let random = if self.has_random { 1 + draws.rng.below(RANDOM_ZONES_MAX) } else { 0 };
        let more = between(draws.rng, 0, 3);
        let random_bytes = match self.wanted {
            Some(wanted) => {
                let least = wanted.random(zone.size_bytes / SECTOR_BYTES) * SECTOR_BYTES;
                least + (random - 1) * zone.size_bytes
            }
            None => random * zone.size_bytes,
        };
        let drawn = Config { zone, random_bytes, pages };
        FtlConfig::Zoned(with_spare(drawn, geometry, more))
    }

    fn with_edge_cases(&self, config: FtlConfig, rng: &mut Stream) -> FtlConfig {
        let FtlConfig::Zoned(drawn) = config else { return config };
        let power_safe = drawn.pages.buffer.power_safe || rng.chance(0.3) && !self.is_given;
        let buffer = BufferConfig { power_safe, ..drawn.pages.buffer };
        let pages = nandscape_ftl::device::Config { buffer, ..drawn.pages };
        // What residual energy saves takes chunks.
        let spare_chunks =
            drawn.zone.spare_chunks + if power_safe { between(rng, 0, 8) } else { 0 };
        let zone = ZoneConfig { spare_chunks, ..drawn.zone };
        FtlConfig::Zoned(Config { zone, pages, ..drawn })
    }
}

/// The fewest spare chunks with which a device of this shape keeps its promises, and some more.
fn with_spare(config: Config, geometry: &Geometry, more: u32) -> Config {
    let of = |spare_chunks| {
        let zone = ZoneConfig { spare_chunks, ..config.zone };
        Config { zone, ..config.clone() }
    };
    let fits = |spare: &u32| of(*spare).sizes(geometry).is_ok();
    of((2..SPARE_MAX).find(fits).unwrap_or(SPARE_MAX) + more)
}

/// The choices on one line, with a space before each.
pub(crate) fn describe(config: &Config) -> Settings {
    let Config { zone, random_bytes, pages } = config;
    let ZoneConfig { dies, size_bytes, capacity_bytes, spare_chunks, instances, .. } = zone;
    let zone = Settings::default()
        .with("dies", *dies)
        .with("size_bytes", *size_bytes)
        .with("capacity_bytes", *capacity_bytes)
        .with("spare_chunks", *spare_chunks)
        .with("instances", *instances)
        .with("max_open", zone.max_open)
        .with("max_active", zone.max_active)
        .with("append", zone.append)
        .with("buffer_bytes", zone.buffer_bytes);
    let zone = Settings::default().with("zone", zone).with("random_bytes", *random_bytes);
    zone.and(device::describe(pages))
}
