//! The choices that make a zoned SSD, and the sizes that follow from them.
//!
//! A zone has one chunk on each of its dies. Beside the chunks of all zones, every parallel unit has spare ones: for
//! the save log (`savelog.rs`), twice over, since its live part is written again before its old chunks are erased,
//! for what a power-safe buffer saves when power fails, and one into which a chunk is copied whose program failed.

use crate::device;
use crate::error::FtlError;
use crate::face::DeviceSize;
use nandscape_block::SECTOR_BYTES;
use nandscape_block::zone::ZoneLimits;
use nandscape_media::{Geometry, KEY_MAX};

/// Bits of a sector's number within its zone.
pub(super) const OFFSET_BITS: u32 = 28;
/// Saved pages of a unit beyond those of active zones: of zones whose resets a power cut undid.
const LIVE_SLACK: u32 = 2;
/// Largest one-shot page, in sectors.
const PAGE_MAX: u32 = 64;

/// The zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneConfig {
    /// Parallel units over which a zone lies.
    pub dies: u32,
    /// Bytes from the beginning of a zone to that of the next; 0: as its chunks hold.
    pub size_bytes: u64,
    /// Bytes of a zone that can be written; 0: as its chunks hold, at most its size.
    pub capacity_bytes: u64,
    /// Chunks per unit beyond those of zones.
    pub spare_chunks: u32,
    /// Streams into which a zone is cut, one sector each in turn; each has its own channels.
    pub instances: u32,
    /// Zones that follow each other and share no unit, each on all units of its channels; 1: zones go round all
    /// units. For firmware that has zones as erase units of its FTL instances.
    pub interleave: u32,
    /// Zones open at once; 0: no limit.
    pub max_open: u32,
    /// Zones open or closed at once; 0: no limit.
    pub max_active: u32,
    /// Whether zone append is served.
    pub append: bool,
    /// Write buffer of each zone, in bytes; 0: none, and a write must be of whole one-shot pages.
    pub buffer_bytes: u64,
}

/// All choices of a zoned SSD.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The zones.
    pub zone: ZoneConfig,
    /// Bytes of the page-mapped region before the zones: a multiple of their size; 0: none.
    pub random_bytes: u64,
    /// The page-mapped region. Whether its buffer survives power cuts is also said of those of the zones.
    pub pages: device::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            zone: ZoneConfig {
                dies: 1,
                size_bytes: 0,
                capacity_bytes: 0,
                spare_chunks: 4,
                instances: 1,
                interleave: 1,
                max_open: 14,
                max_active: 14,
                append: true,
                buffer_bytes: 960 << 10,
            },
            random_bytes: 0,
            pages: device::Config::default(),
        }
    }
}

/// Sizes, in sectors of 4 KiB unless they say otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// The whole device.
    pub physical_sectors: u64,
    /// The page-mapped region.
    pub random_sectors: u64,
    /// Chunks per unit that the page-mapped region takes, from the first on.
    pub random_chunks: u32,
    /// Erase units of the page-mapped region.
    pub random_lines: u32,
    /// Zones.
    pub zones: u32,
    /// From the beginning of a zone to that of the next.
    pub zone_sectors: u64,
    /// What can be written of a zone.
    pub capacity: u64,
    /// The write buffer of a zone.
    pub buffer: u32,
    /// What the chunks of a zone hold.
    pub zone_chunk_sectors: u64,
}

impl Sizes {
    /// Addresses of the device; of one that is refused for them, there may be more.
    #[must_use]
    pub const fn address_sectors(&self) -> u64 {
        self.random_sectors.saturating_add((self.zones as u64).saturating_mul(self.zone_sectors))
    }

    /// As every FTL reports them.
    pub(crate) fn device(&self) -> DeviceSize {
        let unit = u32::try_from(self.zone_chunk_sectors).unwrap_or(u32::MAX);
        DeviceSize {
            physical_sectors: self.physical_sectors,
            logical_sectors: self.address_sectors(),
            live_sectors: self.random_sectors + u64::from(self.zones) * self.capacity,
            erase_units: self.random_lines + self.zones,
            erase_unit_sectors: unit,
            erase_unit_data_sectors: unit,
        }
    }
}

/// Whether channels divide into so many instances.
const fn groups_divide(geometry: &Geometry, instances: u32) -> bool {
    instances > 0 && geometry.groups.is_multiple_of(instances)
}

fn refuse<T>(key: &'static str, why: String) -> Result<T, FtlError> {
    Err(FtlError::Config { key, why })
}

/// Whole sectors of so many bytes.
fn sectors_of(key: &'static str, bytes: u64) -> Result<u64, FtlError> {
    if !bytes.is_multiple_of(SECTOR_BYTES) {
        return refuse(key, "must be a multiple of 4 KiB".into());
    }
    Ok(bytes / SECTOR_BYTES)
}

impl Config {
    /// The sizes of a device of this shape.
    ///
    /// # Errors
    /// The key of the choice that does not fit, and why.
    pub fn sizes(&self, geometry: &Geometry) -> Result<Sizes, FtlError> {
        device::check_media(geometry)?;
        self.pages.buffer.check()?;
        self.check_zone(geometry)?;
        let (zone_sectors, capacity) = self.zone_sectors(geometry)?;
        let (random_chunks, random_sectors, random_lines) = self.random(geometry, zone_sectors)?;
        let rows = geometry.chunks - random_chunks;
        let for_zones = u64::from(rows.saturating_sub(self.zone.spare_chunks));
        let zones = for_zones * u64::from(geometry.total_units()) / u64::from(self.zone.dies);
        if zones == 0 || zones > u64::from(u32::MAX) {
            let why = format!(
                "{zones} zones: {rows} chunks per unit beside the random region, {} of them spare",
                self.zone.spare_chunks
            );
            return refuse("ftl.zone.spare_chunks", why);
        }
        let sizes = Sizes {
            physical_sectors: geometry.total_sectors(),
            random_sectors,
            random_chunks,
            random_lines,
            zones: zones as u32,
            zone_sectors,
            capacity,
            buffer: self.buffer_sectors(geometry)?,
            zone_chunk_sectors: u64::from(self.zone.dies) * u64::from(geometry.sectors),
        };
        if sizes.address_sectors() > u64::from(KEY_MAX) + 1 {
            let why = format!("{} sectors: at most {KEY_MAX}", sizes.address_sectors());
            return refuse("ftl.zone.size", why);
        }
        self.check_spare(geometry, &sizes)?;
        Ok(sizes)
    }

    /// Whether what is in the zones' buffers survives power cuts.
    pub(super) const fn keeps_buffer(&self) -> bool {
        self.pages.buffer.power_safe && self.zone.buffer_bytes > 0
    }

    fn check_zone(&self, geometry: &Geometry) -> Result<(), FtlError> {
        let ZoneConfig { dies, instances, max_open, max_active, .. } = self.zone;
        let units = geometry.total_units();
        if dies == 0 || dies > units {
            return refuse("ftl.zone.dies", format!("must be 1 to {units}, the parallel units"));
        }
        let divides = |whole: u32| instances > 0 && whole.is_multiple_of(instances);
        if !divides(dies) || !divides(geometry.groups) {
            let why = format!("must divide {dies} dies and {} channels", geometry.groups);
            return refuse("ftl.zone.instances", why);
        }
        let of_instance = units.checked_div(self.zone.interleave);
        let fits = groups_divide(geometry, self.zone.interleave) && of_instance == Some(dies);
        if self.zone.interleave != 1 && (!fits || instances != 1) {
            let why = format!("{dies} dies are not those of one of so many instances");
            return refuse("ftl.instances", why);
        }
        if max_active > 0 && (max_open == 0 || max_open > max_active) {
            let why = format!("must be 1 to ftl.zone.max_active, {max_active}");
            return refuse("ftl.zone.max_open", why);
        }
        if geometry.ws_opt > PAGE_MAX {
            return refuse("media.ws_opt", format!("at most {PAGE_MAX} sectors in zones"));
        }
        Ok(())
    }

    /// The distance between zones, and what can be written of one.
    fn zone_sectors(&self, geometry: &Geometry) -> Result<(u64, u64), FtlError> {
        let ZoneConfig { dies, size_bytes, capacity_bytes, .. } = self.zone;
        let held = u64::from(dies) * u64::from(geometry.sectors);
        let size = match sectors_of("ftl.zone.size", size_bytes)? {
            0 => held,
            sectors => sectors,
        };
        let capacity = match sectors_of("ftl.zone.capacity", capacity_bytes)? {
            0 => held.min(size),
            sectors => sectors,
        };
        let most = held.min(size);
        if capacity > most || capacity >= 1 << OFFSET_BITS {
            let why = format!(
                "{capacity} sectors: at most {most}, of the zone and of its {dies} chunks, and less than {}",
                1 << OFFSET_BITS
            );
            return refuse("ftl.zone.capacity", why);
        }
        let granule = self.write_sectors(geometry);
        if !capacity.is_multiple_of(granule.into()) {
            let why = format!("{capacity} sectors: must be a multiple of the {granule} of a write");
            return refuse("ftl.zone.capacity", why);
        }
        Ok((size, capacity))
    }

    /// What the length of a write must be a multiple of.
    pub(super) const fn write_sectors(&self, geometry: &Geometry) -> u32 {
        if self.zone.buffer_bytes == 0 { geometry.ws_opt * self.zone.instances } else { 1 }
    }

    /// The rules of the zones.
    pub(super) const fn limits(&self, geometry: &Geometry, sizes: &Sizes) -> ZoneLimits {
        ZoneLimits {
            zone_sectors: sizes.zone_sectors,
            capacity: sizes.capacity,
            max_open: self.zone.max_open,
            max_active: self.zone.max_active,
            append: self.zone.append,
            write_sectors: self.write_sectors(geometry),
        }
    }

    /// The part of the media that the page-mapped region has.
    pub(super) const fn random_geometry(geometry: &Geometry, chunks: u32) -> Geometry {
        Geometry { chunks, ..*geometry }
    }

    /// Chunks per unit, sectors and erase units of the page-mapped region: the fewest chunks that hold it.
    fn random(&self, geometry: &Geometry, zone_sectors: u64) -> Result<(u32, u64, u32), FtlError> {
        let key = "ftl.random.size";
        let sectors = sectors_of(key, self.random_bytes)?;
        if sectors == 0 {
            return Ok((0, 0, 0));
        }
        if !sectors.is_multiple_of(zone_sectors) {
            let why = format!("must be a multiple of the {zone_sectors} sectors of a zone");
            return refuse(key, why);
        }
        let row = u64::from(geometry.total_units()) * u64::from(geometry.sectors);
        let least = u32::try_from(sectors.div_ceil(row)).unwrap_or(u32::MAX);
        let mut last = None;
        for chunks in least..geometry.chunks {
            match self.pages.sizes(&Self::random_geometry(geometry, chunks)) {
                Ok(sizes) if sizes.logical_sectors >= sectors => {
                    return Ok((chunks, sectors, sizes.lines));
                }
                Ok(_) => {}
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) => Err(error),
            None => refuse(key, format!("{sectors} sectors: more than the device holds")),
        }
    }

    fn buffer_sectors(&self, geometry: &Geometry) -> Result<u32, FtlError> {
        let sectors = sectors_of("ftl.zone.buffer", self.zone.buffer_bytes)?;
        let least = 2 * geometry.ws_opt * self.zone.instances;
        match u32::try_from(sectors).ok().filter(|size| *size <= 1 << 24) {
            Some(size) if size == 0 || size >= least => Ok(size),
            _ => refuse(
                "ftl.zone.buffer",
                format!(
                    "{sectors} sectors: must be 0, or {least} (two pages an instance) to {}",
                    1 << 24
                ),
            ),
        }
    }

    /// Pages of zones that are partly written may be in the save log of a unit at once.
    fn live_saves(&self, geometry: &Geometry, sizes: &Sizes) -> u32 {
        let on_unit = (u64::from(sizes.zones) * u64::from(self.zone.dies))
            .div_ceil(geometry.total_units().into()) as u32;
        let active = if self.zone.max_active > 0 { self.zone.max_active } else { u32::MAX };
        on_unit.min(active) + LIVE_SLACK
    }

    /// Chunks of a unit's save log before its live part is written again.
    pub(super) fn log_chunks(&self, geometry: &Geometry, sizes: &Sizes) -> u32 {
        (self.live_saves(geometry, sizes) + 1).div_ceil(geometry.sectors / geometry.ws_opt)
    }

    /// Spare chunks that a unit needs to keep every promise.
    pub(super) fn spare_needed(&self, geometry: &Geometry, sizes: &Sizes) -> u32 {
        if sizes.buffer == 0 {
            return 1;
        }
        let log = 2 * self.log_chunks(geometry, sizes);
        1 + log + self.residual_chunks(geometry, sizes)
    }

    /// Those among them that a power-safe buffer fills when power fails.
    pub(super) fn residual_chunks(&self, geometry: &Geometry, sizes: &Sizes) -> u32 {
        if !self.keeps_buffer() {
            return 0;
        }
        let buffered = sizes.buffer / geometry.ws_opt;
        let of_zone = buffered.div_ceil(self.zone.dies / self.zone.instances) + 1;
        let rows = geometry.sectors / geometry.ws_opt;
        self.live_saves(geometry, sizes).saturating_mul(of_zone + 1).div_ceil(rows)
    }

    fn check_spare(&self, geometry: &Geometry, sizes: &Sizes) -> Result<(), FtlError> {
        let needed = self.spare_needed(geometry, sizes).max(2);
        if self.zone.spare_chunks < needed {
            let why = format!(
                "must be at least {needed} per unit here: fewer active zones or larger chunks need fewer"
            );
            return refuse("ftl.zone.spare_chunks", why);
        }
        Ok(())
    }
}
