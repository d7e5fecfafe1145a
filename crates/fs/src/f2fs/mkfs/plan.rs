//! What a volume will be, however its sizes are decided, and what does not follow from its size.

use super::{MkfsError, MkfsOptions, extensions};
use crate::f2fs::format::*;

/// Major and minor version: those of the tools that the layout follows.
const VERSION: (u16, u16) = (1, 15);
/// Bytes of the version's text in the superblock at most.
const VERSION_BYTES_MAX: usize = 252;

/// What a volume will be.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Its superblock.
    pub superblock: Superblock,
    /// Its geometry.
    pub layout: Layout,
    /// Percentage of the main area, less what is reserved, that users do not see.
    pub overprovision: f64,
    /// Segments reserved for cleaning.
    pub reserved_segments: u32,
    /// Segments that users do not see, the reserved ones included.
    pub overprovision_segments: u32,
    /// Segments of the main area, and those after it that mkfs.f2fs counts with them.
    pub counted_segments: u32,
    /// Blocks of these that can be written.
    pub usable_blocks: u64,
    /// Blocks that users may take, where that follows from the media and not from segments.
    pub users: Option<u64>,
    /// Where each log begins, by the number of its type.
    pub logs: [SegNo; 6],
}

impl Plan {
    /// Where a log begins.
    #[must_use]
    pub fn log(&self, log: SegmentType) -> SegNo {
        self.logs[log.number()]
    }

    /// The first block of a log.
    #[must_use]
    pub fn log_start(&self, log: SegmentType) -> BlockAddr {
        let Some(space) = self.layout.space() else {
            return self.layout.segment_blocks(self.log(log)).start;
        };
        let region = space.regions()[space.region_of_log(log)];
        // Three logs share a region, or each has its own.
        let section = match space.mode {
            AppendMode::Interval => 0,
            AppendMode::Coupled => log.temperature() as u32,
        };
        BlockAddr(region.start + section * self.layout.blocks_per_section())
    }

    /// Blocks that users may take. A segment holds 512, or what zones leave it on average.
    #[must_use]
    pub fn user_blocks(&self) -> u64 {
        if let Some(users) = self.users {
            return users;
        }
        let segments = self.counted_segments.saturating_sub(self.overprovision_segments);
        let blocks = u128::from(self.usable_blocks) * u128::from(segments);
        u64::try_from(blocks / u128::from(self.counted_segments.max(1))).unwrap_or(u64::MAX)
    }
}

pub(super) fn too_small() -> MkfsError {
    MkfsError::Options("the volume is too small for F2FS".to_owned())
}

/// A superblock with everything that does not follow from the size.
pub(super) fn identity(options: &MkfsOptions) -> Result<Superblock, MkfsError> {
    let mut sb = Superblock::empty();
    sb.magic = SUPERBLOCK_MAGIC;
    (sb.major_ver, sb.minor_ver) = VERSION;
    [sb.log_sectorsize, sb.log_sectors_per_block] = [9, 3];
    [sb.log_blocksize, sb.log_blocks_per_seg] = [12, 9];
    [sb.root_ino, sb.node_ino, sb.meta_ino] = [Nid(3), Nid(1), Nid(2)];
    sb.uuid = options.uuid;
    let mut units = options.label.encode_utf16();
    for (place, unit) in sb.volume_name.iter_mut().zip(&mut units) {
        *place = unit;
    }
    if units.next().is_some() {
        return Err(MkfsError::Options("the label is longer than 512 units of UTF-16".to_owned()));
    }
    if options.version.len() > VERSION_BYTES_MAX {
        return Err(MkfsError::Options("the version is longer than 252 bytes".to_owned()));
    }
    sb.version[..options.version.len()].copy_from_slice(options.version.as_bytes());
    sb.init_version = sb.version;
    let zoned = Features::of(if options.zones.is_some() { &[Feature::BLKZONED] } else { &[] });
    sb.feature = options.features.0 | zoned.0;
    if options.features.has(Feature::SB_CHECKSUM) {
        sb.checksum_offset = SUPERBLOCK_CRC_AT as u32;
    }
    extensions::list(&mut sb);
    Ok(sb)
}
