//! The checkpoint block: the first and the last of a pack, 192 bytes, the version bitmaps of SIT and NAT,
//! and a checksum. Follows include/linux/f2fs_fs.h, `get_checkpoint_version` in fs/f2fs/checkpoint.c,
//! `f2fs_sanity_check_ckpt` in fs/f2fs/super.c and `__bitmap_ptr` in fs/f2fs/f2fs.h.
//!
//! - [`Checkpoint::parse`] judges one block by itself; a pack is valid if both of its checkpoint blocks
//!   are, and have the same version. Of two valid packs the one of the higher version holds.
//! - [`Checkpoint::check`] judges it beside the volume's geometry, before anything is computed from it.
//! - The bitmaps lie after the 192 bytes; the SIT's in the payload blocks if there are any.

use super::checksum;
use super::error::{FormatError, Place};
use super::layout::Layout;
use super::sit::SegmentType;
use super::superblock::SEGMENTS_MIN;
use super::{BLOCK_BYTES, BLOCKS_PER_SEGMENT, Nid, SegNo};
use crate::wire::{put_u32, record, u32_at};
use std::ops::Range;

/// `ckpt_flags`: the volume was unmounted, and node summaries are in the pack.
pub const CP_UMOUNT: u32 = 0x1;
/// `ckpt_flags`: the pack holds orphans.
pub const CP_ORPHAN_PRESENT: u32 = 0x2;
/// `ckpt_flags`: the summaries of the data logs are compacted.
pub const CP_COMPACT_SUM: u32 = 0x4;
/// `ckpt_flags`: errors were found, and writing ended.
pub const CP_ERROR: u32 = 0x8;
/// `ckpt_flags`: a check is asked for.
pub const CP_FSCK: u32 = 0x10;
/// `ckpt_flags`: node summaries are in the pack, although the volume was not unmounted.
pub const CP_FASTBOOT: u32 = 0x20;
/// `ckpt_flags`: footers of nodes name the checkpoint's checksum beside its version.
pub const CP_CRC_RECOVERY: u32 = 0x40;
/// `ckpt_flags`: NAT bits lie at the end of the pack's segment.
pub const CP_NAT_BITS: u32 = 0x80;
/// `ckpt_flags`: what is free was discarded.
pub const CP_TRIMMED: u32 = 0x100;
/// `ckpt_flags`: of the version in footers of nodes, roll-forward compares the lower half only.
pub const CP_NOCRC_RECOVERY: u32 = 0x200;
/// `ckpt_flags`: bitmaps begin 4 bytes later, the NAT's first, after the checksum.
pub const CP_LARGE_NAT_BITMAP: u32 = 0x400;
/// `ckpt_flags`: quota files are to be checked.
pub const CP_QUOTA_NEED_FSCK: u32 = 0x800;
/// `ckpt_flags`: checkpoints are turned off.
pub const CP_DISABLED: u32 = 0x1000;
/// `ckpt_flags`: they were turned off without cleaning first.
pub const CP_DISABLED_QUICK: u32 = 0x2000;
/// `ckpt_flags`: the size of the volume is being changed.
pub const CP_RESIZEFS: u32 = 0x4000;

/// Where the checksum usually stands.
pub const CHECKPOINT_CRC_AT: usize = BLOCK_BYTES - 4;
/// Where the bitmaps begin, or the checksum with [`CP_LARGE_NAT_BITMAP`].
pub const CHECKPOINT_BITMAPS_AT: usize = 0xc0;
/// `alloc_type` of a log that appends.
pub const ALLOC_LFS: u8 = 0;
/// `alloc_type` of a log that fills holes.
pub const ALLOC_SSR: u8 = 1;
/// Logs that are in use, at most.
const LOGS: usize = SegmentType::ALL.len();

record! {
    /// The checkpoint block. What it leaves out survives in the bytes that it is written over.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Checkpoint {
        /// Version: one more than that of the checkpoint before.
        checkpoint_ver: u64 = 0x0,
        /// Blocks that users may take.
        user_block_count: u64 = 0x8,
        /// Valid blocks of the main area.
        valid_block_count: u64 = 0x10,
        /// Segments reserved for cleaning.
        rsvd_segment_count: u32 = 0x18,
        /// Segments that users do not see, the reserved ones included.
        overprov_segment_count: u32 = 0x1c,
        /// Free segments of the main area.
        free_segment_count: u32 = 0x20,
        /// Segments of the node logs: hot, warm, cold; 0xffffffff beyond.
        cur_node_segno: [SegNo; 8] = 0x24,
        /// Their next blocks.
        cur_node_blkoff: [u16; 8] = 0x44,
        /// Segments of the data logs: hot, warm, cold; 0xffffffff beyond.
        cur_data_segno: [SegNo; 8] = 0x54,
        /// Their next blocks.
        cur_data_blkoff: [u16; 8] = 0x74,
        /// Flags.
        ckpt_flags: u32 = 0x84,
        /// Blocks of the pack, NAT bits not counted.
        cp_pack_total_block_count: u32 = 0x88,
        /// The pack's first block of data summaries, counted from its first block.
        cp_pack_start_sum: u32 = 0x8c,
        /// Nodes in use.
        valid_node_count: u32 = 0x90,
        /// Inodes in use.
        valid_inode_count: u32 = 0x94,
        /// Where the search for a free node number begins.
        next_free_nid: Nid = 0x98,
        /// Bytes of the SIT's version bitmap.
        sit_ver_bitmap_bytesize: u32 = 0x9c,
        /// Bytes of the NAT's version bitmap.
        nat_ver_bitmap_bytesize: u32 = 0xa0,
        /// Where the checksum stands in this block: 4092.
        checksum_offset: u32 = 0xa4,
        /// Seconds that the volume was mounted.
        elapsed_time: u64 = 0xa8,
        /// Of each log whether it appends (0) or fills holes (1), by the number of its type.
        alloc_type: [u8; 16] = 0xb0,
    }
}

/// Where a log stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPosition {
    /// Its segment.
    pub segno: SegNo,
    /// The next block that it writes.
    pub blkoff: u16,
    /// Whether it fills holes, and does not append: then any block of the segment may be valid.
    pub ssr: bool,
}

impl Checkpoint {
    /// A checkpoint of zeroes, to be filled in.
    #[must_use]
    pub fn empty() -> Self {
        Self::read(&[])
    }

    /// Reads a checkpoint block of a pack, 0 or 1.
    ///
    /// # Errors
    /// A checksum that does not hold, or none.
    pub fn parse(block: &[u8], pack: u32) -> Result<Self, FormatError> {
        let place = Place::Checkpoint(pack);
        let block = block.get(..BLOCK_BYTES);
        let block = block.ok_or(FormatError::corrupt(place, 0, "is cut short"))?;
        let read = Self::read(block);
        let at = read.checksum_offset as usize;
        if !(CHECKPOINT_BITMAPS_AT..=CHECKPOINT_CRC_AT).contains(&at) {
            return Err(FormatError::corrupt(place, 0xa4, "checksum lies outside of the block"));
        }
        FormatError::checksum(place, u32_at(block, at), checksum::checkpoint(block, at))?;
        Ok(read)
    }

    /// Writes the checkpoint over a block, checksum included, and gives the checksum. The bitmaps must be
    /// there already.
    pub fn encode(&self, block: &mut [u8]) -> u32 {
        self.write(block);
        let at = self.checksum_offset as usize;
        let crc = checksum::checkpoint(block, at);
        if at <= CHECKPOINT_CRC_AT {
            put_u32(block, at, crc);
        }
        crc
    }

    /// The checksum that stands in a checkpoint block (`cur_cp_crc`).
    #[must_use]
    pub fn stored_crc(&self, block: &[u8]) -> u32 {
        let at = self.checksum_offset as usize;
        if at <= CHECKPOINT_CRC_AT { u32_at(block, at) } else { 0 }
    }

    /// Whether a flag is set.
    #[must_use]
    pub const fn has(&self, flag: u32) -> bool {
        self.ckpt_flags & flag != 0
    }

    /// Where a log stands.
    #[must_use]
    pub fn log(&self, log: SegmentType) -> LogPosition {
        let (segnos, offsets) = match log.is_node() {
            true => (&self.cur_node_segno, &self.cur_node_blkoff),
            false => (&self.cur_data_segno, &self.cur_data_blkoff),
        };
        let at = log.temperature();
        let ssr = self.alloc_type[log.number()] == ALLOC_SSR;
        LogPosition { segno: segnos[at], blkoff: offsets[at], ssr }
    }

    /// Notes where a log stands.
    pub fn set_log(&mut self, log: SegmentType, position: LogPosition) {
        let (segnos, offsets) = match log.is_node() {
            true => (&mut self.cur_node_segno, &mut self.cur_node_blkoff),
            false => (&mut self.cur_data_segno, &mut self.cur_data_blkoff),
        };
        let at = log.temperature();
        (segnos[at], offsets[at]) = (position.segno, position.blkoff);
        self.alloc_type[log.number()] = if position.ssr { ALLOC_SSR } else { ALLOC_LFS };
    }

    /// Entries of a log's summary that mean something: those of the blocks it wrote, or all of them if it
    /// fills holes.
    #[must_use]
    pub fn summary_entries(&self, log: SegmentType) -> usize {
        let position = self.log(log);
        let whole = usize::from(position.blkoff).min(BLOCKS_PER_SEGMENT as usize);
        if position.ssr { BLOCKS_PER_SEGMENT as usize } else { whole }
    }

    /// Where the SIT's version bitmap lies in the first block of a pack and its payload, taken as one.
    #[must_use]
    pub fn sit_bitmap(&self, layout: &Layout) -> Range<usize> {
        let start = match (self.has(CP_LARGE_NAT_BITMAP), layout.payload_blocks()) {
            (true, _) => CHECKPOINT_BITMAPS_AT + 4 + self.nat_ver_bitmap_bytesize as usize,
            (false, 0) => CHECKPOINT_BITMAPS_AT,
            (false, _) => BLOCK_BYTES,
        };
        start..start + self.sit_ver_bitmap_bytesize as usize
    }

    /// Where the NAT's version bitmap lies in the first block of a pack and its payload, taken as one.
    #[must_use]
    pub fn nat_bitmap(&self, layout: &Layout) -> Range<usize> {
        let start = match (self.has(CP_LARGE_NAT_BITMAP), layout.payload_blocks()) {
            (true, _) => CHECKPOINT_BITMAPS_AT + 4,
            (false, 0) => CHECKPOINT_BITMAPS_AT + self.sit_ver_bitmap_bytesize as usize,
            (false, _) => CHECKPOINT_BITMAPS_AT,
        };
        start..start + self.nat_ver_bitmap_bytesize as usize
    }

    /// Nothing, if it fits the volume. `pack` is the pack it lies in, 0 or 1.
    ///
    /// # Errors
    /// Counts that exceed the volume, logs that share a segment or lie nowhere, bitmaps of other sizes
    /// than the tables, or without room.
    pub fn check(&self, layout: &Layout, pack: u32) -> Result<(), FormatError> {
        let place = Place::Checkpoint(pack);
        self.check_counts(layout, place)?;
        self.check_logs(layout, place)?;
        self.check_bitmaps(layout, place)
    }

    fn check_counts(&self, layout: &Layout, place: Place) -> Result<(), FormatError> {
        let corrupt = |at, what| Err(FormatError::corrupt(place, at, what));
        let main = layout.main_segments();
        let areas = (layout.main_start().0 - layout.pack(0).0) / BLOCKS_PER_SEGMENT;
        let reserved = self.rsvd_segment_count;
        let few = areas.saturating_add(reserved) < SEGMENTS_MIN;
        if reserved == 0 || few || reserved >= main {
            return corrupt(0x18, "number of reserved segments out of range");
        }
        if self.overprov_segment_count == 0 {
            return corrupt(0x1c, "no overprovisioned segments");
        }
        let blocks = u64::from(main) * u64::from(BLOCKS_PER_SEGMENT);
        if self.user_block_count == 0 || self.user_block_count >= blocks {
            return corrupt(0x8, "number of blocks for users out of range");
        }
        if self.valid_block_count > self.user_block_count {
            return corrupt(0x10, "more valid blocks than users may take");
        }
        // Numbers 0, 1 and 2 stand for no node.
        if self.valid_node_count > layout.nids() - 3 {
            return corrupt(0x90, "more nodes than there are numbers");
        }
        Ok(())
    }

    fn check_logs(&self, layout: &Layout, place: Place) -> Result<(), FormatError> {
        let logs: [LogPosition; LOGS] = SegmentType::ALL.map(|log| self.log(log));
        for (index, log) in logs.iter().enumerate() {
            if !layout.has_segment(log.segno) || u32::from(log.blkoff) >= BLOCKS_PER_SEGMENT {
                return Err(FormatError::corrupt(place, 0x24, "a log lies outside the main area"));
            }
            if logs.iter().skip(index + 1).any(|other| other.segno == log.segno) {
                return Err(FormatError::corrupt(place, 0x24, "two logs share a segment"));
            }
        }
        Ok(())
    }

    fn check_bitmaps(&self, layout: &Layout, place: Place) -> Result<(), FormatError> {
        let corrupt = |at, what| Err(FormatError::corrupt(place, at, what));
        if self.sit_ver_bitmap_bytesize != layout.sit_blocks() / 8 {
            return corrupt(0x9c, "bitmap of the SIT is of another size than the SIT");
        }
        if self.nat_ver_bitmap_bytesize != layout.nat_blocks() / 8 {
            return corrupt(0xa0, "bitmap of the NAT is of another size than the NAT");
        }
        let large = self.has(CP_LARGE_NAT_BITMAP);
        if large && self.checksum_offset as usize != CHECKPOINT_BITMAPS_AT {
            return corrupt(0xa4, "checksum is not where large_nat_bitmap has it");
        }
        let room = (1 + layout.payload_blocks() as usize) * BLOCK_BYTES;
        let (sit, nat) = (self.sit_bitmap(layout), self.nat_bitmap(layout));
        // Without large_nat_bitmap the checksum ends what the first block has room for.
        let crc = self.checksum_offset as usize;
        let own = |bitmap: &Range<usize>| large || bitmap.start >= BLOCK_BYTES || bitmap.end <= crc;
        if sit.end > room || nat.end > room || !own(&sit) || !own(&nat) {
            return corrupt(0x9c, "no room for the bitmaps");
        }
        Ok(())
    }
}
