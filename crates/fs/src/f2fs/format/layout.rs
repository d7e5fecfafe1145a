//! Where things are: the geometry of a volume, and the arithmetic of areas, segments and sections that
//! follows from it. Macros of fs/f2fs/segment.h (`GET_SEGNO`, `START_BLOCK`, `GET_SEC_FROM_SEG`,
//! `GET_SUM_BLOCK`).
//!
//! A [`Layout`] is made from a superblock that was checked: no area overlaps another, all of them lie on
//! the volume, and every address below fits 32 bits.

use super::error::{FormatError, Place};
use super::slot_record::AddressSpace;
use super::superblock::Superblock;
use super::{BLOCKS_PER_SEGMENT, BlockAddr, NAT_ENTRIES_PER_BLOCK, SegNo};
use std::ops::Range;

/// The areas of a volume, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Area {
    /// Both copies of the superblock, and what lies between them and segment 0.
    Superblock,
    /// Two checkpoint packs.
    Checkpoint,
    /// The segment information table, in two copies.
    Sit,
    /// The node address table, in two copies.
    Nat,
    /// The segment summary area.
    Ssa,
    /// Nodes and data.
    Main,
}

/// The geometry of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    checkpoint: BlockAddr,
    sit: BlockAddr,
    nat: BlockAddr,
    ssa: BlockAddr,
    main: BlockAddr,
    blocks: u64,
    main_segments: u32,
    segments_per_section: u32,
    sections_per_zone: u32,
    sit_blocks: u32,
    nat_blocks: u32,
    payload_blocks: u32,
    /// Where blocks of logs lie, and the end of that.
    logs: [BlockAddr; 2],
    space: Option<AddressSpace>,
}

impl Layout {
    /// The geometry that a superblock describes.
    ///
    /// # Errors
    /// What contradicts itself; nothing for a superblock that was parsed.
    pub fn of(sb: &Superblock) -> Result<Self, FormatError> {
        sb.check(Place::Superblock(0))?;
        let space = sb.space();
        let main_end = sb.main_blkaddr.0 + sb.segment_count_main * BLOCKS_PER_SEGMENT;
        Ok(Self {
            logs: space.map_or([sb.main_blkaddr, BlockAddr(main_end)], |space| space.bounds()),
            space,
            checkpoint: sb.cp_blkaddr,
            sit: sb.sit_blkaddr,
            nat: sb.nat_blkaddr,
            ssa: sb.ssa_blkaddr,
            main: sb.main_blkaddr,
            blocks: sb.block_count,
            main_segments: sb.segment_count_main,
            segments_per_section: sb.segs_per_sec,
            sections_per_zone: sb.secs_per_zone,
            sit_blocks: sb.segment_count_sit / 2 * BLOCKS_PER_SEGMENT,
            nat_blocks: sb.segment_count_nat / 2 * BLOCKS_PER_SEGMENT,
            payload_blocks: sb.cp_payload,
        })
    }

    /// The blocks of an area.
    #[must_use]
    pub fn area(&self, area: Area) -> Range<BlockAddr> {
        match area {
            Area::Superblock => BlockAddr(0)..self.checkpoint,
            Area::Checkpoint => self.checkpoint..self.sit,
            Area::Sit => self.sit..self.nat,
            Area::Nat => self.nat..self.ssa,
            Area::Ssa => self.ssa..self.main,
            Area::Main => self.logs[0]..self.logs[1],
        }
    }

    /// The area that a block belongs to; `None` after the main area.
    #[must_use]
    pub fn area_of(&self, addr: BlockAddr) -> Option<Area> {
        use Area::*;
        let all = [Superblock, Checkpoint, Sit, Nat, Ssa, Main];
        all.into_iter().find(|area| self.area(*area).contains(&addr))
    }

    /// The first block of the main area.
    #[must_use]
    pub const fn main_start(&self) -> BlockAddr {
        self.main
    }

    /// The append-only address space; `None` of a volume with a main area. With it, segments are those of slots, and
    /// where they lie the [`SlotMap`](super::SlotMap) knows.
    #[must_use]
    pub const fn space(&self) -> Option<&AddressSpace> {
        self.space.as_ref()
    }

    /// The block after the main area.
    #[must_use]
    pub const fn main_end(&self) -> BlockAddr {
        BlockAddr(self.main.0 + self.main_segments * BLOCKS_PER_SEGMENT)
    }

    /// Blocks of the volume, those after the main area included.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Segments of the main area (`MAIN_SEGS`).
    #[must_use]
    pub const fn main_segments(&self) -> u32 {
        self.main_segments
    }

    /// Sections of the main area (`MAIN_SECS`).
    #[must_use]
    pub const fn sections(&self) -> u32 {
        self.main_segments / self.segments_per_section
    }

    /// Segments of a section.
    #[must_use]
    pub const fn segments_per_section(&self) -> u32 {
        self.segments_per_section
    }

    /// Blocks of a section.
    #[must_use]
    pub const fn blocks_per_section(&self) -> u32 {
        self.segments_per_section * BLOCKS_PER_SEGMENT
    }

    /// Sections of a zone.
    #[must_use]
    pub const fn sections_per_zone(&self) -> u32 {
        self.sections_per_zone
    }

    /// Blocks of one copy of the SIT.
    #[must_use]
    pub const fn sit_blocks(&self) -> u32 {
        self.sit_blocks
    }

    /// Blocks of one copy of the NAT.
    #[must_use]
    pub const fn nat_blocks(&self) -> u32 {
        self.nat_blocks
    }

    /// Numbers of nodes in all, from 0 on (`max_nid`).
    #[must_use]
    pub const fn nids(&self) -> u32 {
        // A superblock with more is refused.
        self.nat_blocks * NAT_ENTRIES_PER_BLOCK as u32
    }

    /// Blocks of a checkpoint pack that follow its first one, for a SIT bitmap that does not fit there.
    #[must_use]
    pub const fn payload_blocks(&self) -> u32 {
        self.payload_blocks
    }

    /// Whether an address is one of the main area's blocks, or between the first and the last of an append-only address
    /// space.
    #[must_use]
    pub const fn is_main(&self, addr: BlockAddr) -> bool {
        addr.0 >= self.logs[0].0 && addr.0 < self.logs[1].0
    }

    /// The segment of a block and its offset there; `None` outside the main area, and without one.
    #[must_use]
    pub fn segment_of(&self, addr: BlockAddr) -> Option<(SegNo, u32)> {
        let is_there = self.is_main(addr) && self.space.is_none();
        let at = addr.0.checked_sub(self.main.0).filter(|_| is_there)?;
        Some((SegNo(at / BLOCKS_PER_SEGMENT), at % BLOCKS_PER_SEGMENT))
    }

    /// Whether there is such a segment in the main area.
    #[must_use]
    pub const fn has_segment(&self, segno: SegNo) -> bool {
        segno.0 < self.main_segments
    }

    /// A block of a segment; `None` if there is none, or no main area.
    #[must_use]
    pub fn block(&self, segno: SegNo, offset: u32) -> Option<BlockAddr> {
        let there = self.has_segment(segno) && offset < BLOCKS_PER_SEGMENT && self.space.is_none();
        there.then(|| BlockAddr(self.main.0 + segno.0 * BLOCKS_PER_SEGMENT + offset))
    }

    /// The blocks of a segment; none if there is no such segment.
    #[must_use]
    pub fn segment_blocks(&self, segno: SegNo) -> Range<BlockAddr> {
        let start = self.block(segno, 0);
        let blocks = if start.is_some() { BLOCKS_PER_SEGMENT } else { 0 };
        let start = start.unwrap_or(self.main);
        start..BlockAddr(start.0 + blocks)
    }

    /// The section of a segment.
    #[must_use]
    pub const fn section_of(&self, segno: SegNo) -> u32 {
        segno.0 / self.segments_per_section
    }

    /// The segments of a section, by number; none if there is no such section.
    #[must_use]
    pub const fn section_segments(&self, section: u32) -> Range<u32> {
        if section >= self.sections() {
            return 0..0;
        }
        let first = section * self.segments_per_section;
        first..first + self.segments_per_section
    }

    /// The zone of a section.
    #[must_use]
    pub const fn zone_of(&self, section: u32) -> u32 {
        section / self.sections_per_zone
    }

    /// The summary block of a segment in the SSA; `None` if there is no such segment.
    #[must_use]
    pub fn summary_block(&self, segno: SegNo) -> Option<BlockAddr> {
        self.has_segment(segno).then(|| BlockAddr(self.ssa.0 + segno.0))
    }

    /// The blocks of the discard journal of a checkpoint pack, 0 or 1; none without one.
    #[must_use]
    pub fn discard_journal(&self, pack: u32) -> Range<BlockAddr> {
        let segments = self.space.map_or(0, |space| space.journal_segments);
        let start = self.checkpoint.0 + (2 + (pack % 2) * segments) * BLOCKS_PER_SEGMENT;
        BlockAddr(start)..BlockAddr(start + segments * BLOCKS_PER_SEGMENT)
    }

    /// The first block of a checkpoint pack, 0 or 1.
    #[must_use]
    pub const fn pack(&self, pack: u32) -> BlockAddr {
        BlockAddr(self.checkpoint.0 + if pack == 0 { 0 } else { BLOCKS_PER_SEGMENT })
    }
}
