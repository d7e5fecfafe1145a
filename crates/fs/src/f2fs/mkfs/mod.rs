//! Making an F2FS volume, with the layout that mkfs.f2fs 1.15 chooses.
//!
//! - With the same options, identity, time and checkpoint version, every byte but the names of the kernel
//!   in the superblock, and the checksum over them, is mkfs.f2fs's (`tests/f2fs/mkfs.rs`). What mkfs.f2fs
//!   refuses is refused.
//! - With a GC journal the file system is smaller by its segment, and by what no zone is left for then.
//! - Few blocks are written. SIT, NAT and SSA are left alone where nothing is noted in them; that needs a
//!   volume that reads as zeroes where nothing was written: one never written, or one that is discarded
//!   first. Else what a mount reads is zeroed.
//! - The superblocks are written last, after a flush: no half-made file system is taken for one.
//!
//! Follows mkfs/f2fs_format.c of f2fs-tools in what it computes.

mod append;
mod contents;
mod extensions;
mod plan;
mod sizes;
mod write;

pub use plan::Plan;

use super::append::AppendGeometry;
use super::format::{BLOCKS_PER_SEGMENT, Features, FormatError, Superblock};
use super::zones::ZoneGeometry;
use crate::mkfs::random_uuid;
use contents::Contents;
use nandscape_block::{AsyncDevice, BlockError};
use nandscape_rt::{BoxFuture, Stream};
use thiserror::Error;

/// Zones that the least volume has at most, besides those that are reserved on demand: its areas, its
/// logs, and the reserve that the search for the overprovision may choose, 28 sections.
const LEAST_ZONES_MAX: u64 = 200;

/// What to make.
#[derive(Clone, PartialEq, Debug)]
pub struct MkfsOptions {
    /// Sectors of the volume, the operand behind the device; `None`: as many as the device has.
    pub sectors: Option<u64>,
    /// Features that are on; `-O`.
    pub features: Features,
    /// Label, up to 512 units of UTF-16; `-l`.
    pub label: String,
    /// Identity; `-U`.
    pub uuid: [u8; 16],
    /// Segments of a section; `-s`.
    pub segments_per_section: u32,
    /// Sections of a zone; `-z`.
    pub sections_per_zone: u32,
    /// Percentage of the main area, less what is reserved, that users do not see; `-o`. `None`: the one
    /// that leaves users most, as mkfs.f2fs searches it.
    pub overprovision: Option<f64>,
    /// Segments reserved for cleaning; `None`: by the overprovision, as mkfs.f2fs, which has no such
    /// option. Fewer of them allow volumes smaller than mkfs.f2fs makes; whether they suffice for cleaning
    /// is not checked.
    pub reserved_segments: Option<u32>,
    /// Whether what follows the main area is kept for a GC journal, which mkfs.f2fs does not have: a segment, or two
    /// zones.
    pub gc_journal: bool,
    /// The zones of the device, each of which is a section then; `-m`.
    pub zones: Option<ZoneGeometry>,
    /// The append-only regions of the device, in place of a main area.
    pub append: Option<Box<AppendGeometry>>,
    /// How many times the size of the media each region is used; `None`: as large as it is. Of a device that moves blocks
    /// to regions of its own.
    pub rho: Option<f64>,
    /// Whether logs begin at the end of the main area; `-a 1`.
    pub heap: bool,
    /// Whether NAT bits are written, where they fit.
    pub nat_bits: bool,
    /// Version of the first checkpoint. mkfs.f2fs draws an odd number of 31 bits.
    pub checkpoint_ver: u64,
    /// Owner and group of the root; `-R`.
    pub root: (u32, u32),
    /// The time, in seconds since 1970; `-T`.
    pub now_s: u32,
    /// What the superblock names as the kernel that it was made under, up to 252 bytes.
    pub version: String,
    /// Whether the device reads as zeroes wherever nothing was written, since it never was.
    pub fresh: bool,
    /// Whether one that is not fresh is discarded first; `-t`.
    pub discard: bool,
}

impl MkfsOptions {
    /// The defaults, with identity and version of the checkpoint drawn from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut stream = Stream::new(seed, "f2fs identity");
        Self {
            sectors: None,
            features: Features::default(),
            label: String::new(),
            uuid: random_uuid(&mut stream),
            segments_per_section: 1,
            sections_per_zone: 1,
            overprovision: None,
            reserved_segments: None,
            gc_journal: false,
            zones: None,
            append: None,
            rho: None,
            heap: false,
            nat_bits: true,
            checkpoint_ver: stream.bits() >> 33 | 1,
            root: (0, 0),
            now_s: 0,
            version: "nandscape".to_owned(),
            fresh: false,
            discard: true,
        }
    }
}

/// Why no file system was made.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum MkfsError {
    /// Options that contradict each other, the format, or the size of the volume.
    #[error("{0}")]
    Options(String),
    /// A region that is used too far, or not far enough.
    #[error("{0}")]
    Rho(String),
    /// Features that are not supported, or sizes that the format has no room for.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
}

/// What [`mkfs`] would make on a device of so many sectors.
///
/// # Errors
/// Options that cannot be met.
pub fn plan(options: &MkfsOptions, sectors: u64) -> Result<Plan, MkfsError> {
    match options.sectors {
        Some(asked) if asked > sectors => {
            let why = format!("{asked} sectors do not fit the device's {sectors}");
            Err(MkfsError::Options(why))
        }
        asked => decide(options, asked.unwrap_or(sectors)),
    }
}

/// The same for a volume of exactly so many.
fn decide(options: &MkfsOptions, sectors: u64) -> Result<Plan, MkfsError> {
    match &options.append {
        Some(geometry) => append::plan(options, geometry, sectors),
        None => sizes::plan(options, sectors),
    }
}

/// The least size at which [`mkfs`] makes a file system, among whole zones: in sectors.
///
/// # Errors
/// Options that no size meets.
pub fn least_sectors(options: &MkfsOptions) -> Result<u64, MkfsError> {
    let zone = sizes::zone_segments(options)?;
    let per_zone = u64::from(zone) * u64::from(BLOCKS_PER_SEGMENT);
    // Where the reserve is above this many zones, it is not the size that is wrong.
    let most = LEAST_ZONES_MAX + u64::from(options.reserved_segments.unwrap_or(0).div_ceil(zone));
    let mut last = Err(plan::too_small());
    for zones in 1..=most {
        match decide(options, zones * per_zone) {
            Ok(_) => return Ok(zones * per_zone),
            Err(error) => last = Err(error),
        }
    }
    last
}

/// Makes a file system on a device, and gives its superblock.
///
/// # Errors
/// Options that cannot be met, before anything is written; and what the device says.
pub fn mkfs<'a>(
    device: &'a AsyncDevice,
    options: &'a MkfsOptions,
) -> BoxFuture<'a, Result<Superblock, MkfsError>> {
    Box::pin(make(device, options))
}

async fn make(device: &AsyncDevice, options: &MkfsOptions) -> Result<Superblock, MkfsError> {
    let plan = plan(options, device.caps().sectors)?;
    let trimmed = write::clear(device, &plan, options).await?;
    let contents = Contents::new(&plan, options, trimmed);
    write::write(device, &contents).await?;
    Ok(plan.superblock)
}
