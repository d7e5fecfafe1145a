//! The choices that make a coupled SSD, and the sizes that follow from them.
//!
//! Defaults are those of the D2FS artifact on NVMeVirt's 970 Pro: four FTL instances of two channels each, an address
//! space of 1.6 times the media, collection at five free lines, a metadata region of a 32nd of the media.
//!
//! A line has one chunk on each die of an instance; a superblock of the address space has a line of each instance. Of
//! the lines of an instance, [`Config::lines_apart`] hold no data in the long run, and the data fit the others.

use crate::device;
use crate::device::config::WHOLE;
use crate::error::FtlError;
use crate::face::DeviceSize;
use crate::zoned::{self, ZoneConfig};
use nandscape_block::{SECTOR_BYTES, UpcallSignal};
use nandscape_media::Geometry;

/// Bits of an address within its partition (`lba >> 29` in the artifact).
pub(super) const PARTITION_BITS: u32 = 29;
/// Streams of collection per instance: data and nodes.
pub(super) const CLASSES: u32 = 2;
/// Sectors of the lines per record that the host may have fetched and not completed. Of the other records there is one per
/// live sector at most, as moves of a page are merged until its record is fetched: so collection never waits for the host.
const SECTORS_PER_FETCHED: u64 = 8;
/// Bytes of a line in a snapshot beside its bitmap, and of a record.
pub(super) const LINE_HEAD_BYTES: u64 = 16;
pub(super) const RECORD_BYTES: u64 = 8;
/// Fewest sectors of the journal's ring, unless it is given.
const RING_MIN: u64 = 64;
/// Sectors of the head of a snapshot.
const SNAPSHOT_HEAD: u64 = 1;

/// All choices of a coupled SSD.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The page-mapped region. Its FTL instances are those of the device; whether its buffer survives power cuts is
    /// also said of that of the lines.
    pub pages: device::Config,
    /// Bytes of the page-mapped region that the host sees; 0: a 32nd of the media.
    pub random_bytes: u64,
    /// Length of each region beside the lines of the device, in percent (the degree of virtual overprovisioning).
    pub rho_percent: u32,
    /// What the data may not fill of the lines, in hundredths of a percent.
    pub op_hundredths: u32,
    /// An instance collects when it has so few free lines.
    pub gc_lines: u32,
    /// Superblocks of a region that the host may have partly written.
    pub open_max: u32,
    /// Write buffer of an open line, in bytes.
    pub buffer_bytes: u64,
    /// Chunks per unit beyond those of lines.
    pub spare_chunks: u32,
    /// How the host learns of migrations.
    pub upcall: UpcallSignal,
    /// Sectors of a partition of the address space, as a power of two.
    pub partition_bits: u32,
    /// Sectors of the journal's ring; 0: as many as a snapshot without records that the host does not know.
    pub ring_sectors: u64,
    /// Entries of a sector of it after which another one begins; 0: as many as it has room for.
    pub ring_entries: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            pages: device::Config::default(),
            random_bytes: 0,
            rho_percent: 160,
            op_hundredths: 654,
            gc_lines: 5,
            open_max: 4,
            buffer_bytes: 128 << 10,
            spare_chunks: 4,
            upcall: UpcallSignal::Piggyback,
            partition_bits: PARTITION_BITS,
            ring_sectors: 0,
            ring_entries: 0,
        }
    }
}

/// Where the journal lies, in sectors of the page-mapped region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalSizes {
    /// Its first sector: the first slot of a snapshot; the second one and the ring follow.
    pub start: u64,
    /// Sectors of each slot.
    pub slot: u64,
    /// Sectors of the ring.
    pub ring: u64,
    /// Entries of each of these; 0: as many as it has room for.
    pub entries: u32,
    /// Records that may be open at once.
    pub records: u32,
}

impl JournalSizes {
    const fn sectors(&self) -> u64 {
        2 * self.slot + self.ring
    }
}

/// Sizes, in sectors of 4 KiB unless they say otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Those of the lines and of the page-mapped region below them.
    pub(super) flash: zoned::Sizes,
    /// What the host sees of the page-mapped region.
    pub random_sectors: u64,
    /// Where the journal lies in it.
    pub journal: JournalSizes,
    /// FTL instances.
    pub instances: u32,
    /// A line.
    pub line_sectors: u32,
    /// Lines of an instance.
    pub lines: u32,
    /// Superblocks of each region.
    pub superblocks: u32,
    /// Sectors of the regions that may hold data at once.
    pub live_sectors: u64,
}

impl Sizes {
    /// Sectors of a superblock.
    #[must_use]
    pub const fn superblock_sectors(&self) -> u32 {
        self.line_sectors * self.instances
    }

    /// Sectors of the page-mapped region that are used: those of the host, and the journal.
    pub(super) const fn page_sectors(&self) -> u64 {
        self.random_sectors + self.journal.sectors()
    }

    /// As every FTL reports them.
    pub(crate) fn device(&self, config: &Config) -> DeviceSize {
        let physical_sectors = self.flash.physical_sectors;
        DeviceSize {
            physical_sectors,
            logical_sectors: 8 << config.partition_bits,
            live_sectors: self.random_sectors + self.live_sectors,
            erase_units: self.flash.random_lines + self.lines * self.instances,
            erase_unit_sectors: self.line_sectors,
            erase_unit_data_sectors: self.line_sectors,
        }
    }
}

/// A refusal of the lines as zones, with the key that says so here.
pub(super) fn renamed(error: FtlError) -> FtlError {
    match error {
        FtlError::Config { key: "ftl.zone.spare_chunks", why } => {
            FtlError::Config { key: "ftl.superblock.spare_chunks", why }
        }
        FtlError::Config { key: "ftl.zone.buffer", why } => {
            FtlError::Config { key: "ftl.superblock.buffer", why }
        }
        FtlError::Config { key: "ftl.zone.dies", why } => {
            FtlError::Config { key: "ftl.instances", why }
        }
        other => other,
    }
}

fn refuse<T>(key: &'static str, why: String) -> Result<T, FtlError> {
    Err(FtlError::Config { key, why })
}

impl Config {
    /// The sizes of a device of this shape.
    ///
    /// # Errors
    /// The key of the choice that does not fit, and why.
    pub fn sizes(&self, geometry: &Geometry) -> Result<Sizes, FtlError> {
        if self.op_hundredths == 0 || self.op_hundredths >= WHOLE {
            return refuse("ftl.op_percent", "must be 0.01 to 99.99".into());
        }
        if !self.pages.buffer.early_completion {
            let why = "must be true: the firmware waits until what it writes is in the buffer";
            return refuse("ftl.buffer.early_completion", why.into());
        }
        if self.open_max == 0 {
            return refuse("ftl.superblock.open_max", "must be at least 1".into());
        }
        let instances = self.pages.instances;
        let random_sectors = self.random_sectors(geometry)?;
        let line_sectors = self.dies(geometry) * geometry.sectors;
        let most = u64::from(geometry.chunks) * u64::from(instances);
        let journal = self.journal(random_sectors, most, line_sectors);
        let flash = self.flash(geometry, random_sectors + journal.sectors());
        let flash = flash.sizes(geometry).map_err(renamed)?;
        let lines = flash.zones / instances;
        let superblocks = u64::from(lines) * u64::from(self.rho_percent) / 100;
        let whole = u64::from(lines) * u64::from(instances) * u64::from(line_sectors);
        let live_sectors = whole * u64::from(WHOLE - self.op_hundredths) / u64::from(WHOLE);
        let sizes = Sizes {
            flash,
            random_sectors,
            journal,
            instances,
            line_sectors,
            lines,
            superblocks: superblocks as u32,
            live_sectors,
        };
        self.check_space(&sizes)?;
        Ok(sizes)
    }

    /// Dies of a line.
    fn dies(&self, geometry: &Geometry) -> u32 {
        geometry.total_units().checked_div(self.pages.instances).unwrap_or(0)
    }

    fn random_sectors(&self, geometry: &Geometry) -> Result<u64, FtlError> {
        let bytes = match self.random_bytes {
            0 => geometry.total_sectors() / 32 * SECTOR_BYTES,
            bytes => bytes,
        };
        if !bytes.is_multiple_of(SECTOR_BYTES) {
            return refuse("ftl.random.size", "must be a multiple of 4 KiB".into());
        }
        if bytes / SECTOR_BYTES > 1 << self.partition_bits {
            return refuse("ftl.random.size", "must be within the first partition".into());
        }
        Ok(bytes / SECTOR_BYTES)
    }

    /// The lines as zones, after a page-mapped region of so many sectors.
    pub(super) fn flash(&self, geometry: &Geometry, pages: u64) -> zoned::Config {
        let dies = self.dies(geometry);
        let zone = u64::from(dies * geometry.sectors).max(1);
        let active = self.pages.instances * self.lines_open();
        zoned::Config {
            zone: ZoneConfig {
                dies,
                size_bytes: 0,
                capacity_bytes: 0,
                spare_chunks: self.spare_chunks,
                instances: 1,
                interleave: self.pages.instances,
                max_open: active,
                max_active: active,
                append: true,
                buffer_bytes: self.buffer_bytes,
            },
            random_bytes: pages.next_multiple_of(zone) * SECTOR_BYTES,
            pages: self.pages.clone(),
        }
    }

    /// Lines of an instance that are partly written: of both regions of the host, and of collection, which opens the next
    /// one of a class before the last is full.
    const fn lines_open(&self) -> u32 {
        2 * self.open_max + 2 * CLASSES
    }

    /// Lines of an instance that hold no data in the long run: partly written ones, those that collection keeps free, one
    /// that waits for its erase, and one to spare.
    #[must_use]
    pub const fn lines_apart(&self) -> u32 {
        self.lines_open() + self.gc_lines + 2
    }

    /// The journal after a region of the host, for so many lines.
    fn journal(&self, start: u64, lines: u64, line_sectors: u32) -> JournalSizes {
        let line = u64::from(line_sectors);
        let fetched = lines * line / SECTORS_PER_FETCHED;
        let records = lines * line + fetched;
        let line_bytes = lines * (LINE_HEAD_BYTES + 8 * line.div_ceil(64));
        let bytes = |records: u64| line_bytes + records * RECORD_BYTES;
        let slot_of = |records: u64| SNAPSHOT_HEAD + bytes(records).div_ceil(SECTOR_BYTES);
        let ring = match self.ring_sectors {
            0 => slot_of(fetched).max(RING_MIN),
            sectors => sectors,
        };
        let (slot, records) = (slot_of(records), records as u32);
        JournalSizes { start, slot, ring, entries: self.ring_entries, records }
    }

    fn check_space(&self, sizes: &Sizes) -> Result<(), FtlError> {
        let apart = self.lines_apart();
        let usable = u64::from(sizes.lines.saturating_sub(apart))
            * u64::from(sizes.instances)
            * u64::from(sizes.line_sectors);
        if sizes.live_sectors > usable {
            let why = format!(
                "{} sectors do not fit beside {apart} of the {} lines of an instance: more overprovisioning or \
                 smaller chunks help",
                sizes.live_sectors, sizes.lines
            );
            return refuse("ftl.op_percent", why);
        }
        let region = u64::from(sizes.superblocks) * u64::from(sizes.superblock_sectors());
        if region > 1 << self.partition_bits {
            let why =
                format!("{region} sectors of a region: at most {}", 1_u64 << self.partition_bits);
            return refuse("ftl.rho", why);
        }
        Ok(())
    }
}
