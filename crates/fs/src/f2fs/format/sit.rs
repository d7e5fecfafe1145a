//! The segment information table: of each segment of the main area which blocks are valid, of which log
//! it is, and its age. Follows include/linux/f2fs_fs.h, `check_block_count` and `current_sit_addr` in
//! fs/f2fs/segment.h.
//!
//! - An entry has 74 bytes; 55 lie in a block. The second copy of a block lies half the area after the
//!   first; the SIT's version bitmap says which one is current.
//! - Up to six entries that changed lie in the journal of the cold data log's summary, and are newer
//!   than the table's.
//! - [`SitEntry::parse`] takes no entry whose count is not that of its map.

use super::bitmap::VersionBitmap;
use super::error::{FormatError, Place};
use super::layout::{Area, Layout};
use super::{BLOCKS_PER_SEGMENT, BlockAddr, JOURNAL_BYTES, SIT_ENTRIES_PER_BLOCK, SegNo};
use crate::wire::{put_u16, put_u32, record, u16_at, u32_at};

/// Bytes of an entry.
pub const SIT_ENTRY_BYTES: usize = 74;
/// Bytes of an entry in the journal: the segment's number precedes it.
pub const SIT_JOURNAL_ENTRY_BYTES: usize = 4 + SIT_ENTRY_BYTES;
/// Entries that the journal has room for.
pub const SIT_JOURNAL_ENTRIES: usize = 6;
/// Bits of the block count in an entry; the others are the segment's type.
const COUNT_BITS: u32 = 10;

/// The logs, and the type of a segment that one of them wrote, by number as the format has them
/// (`CURSEG_HOT_DATA` and the following).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum SegmentType {
    /// Data of directories, and data marked as hot.
    #[default]
    HotData,
    /// Data of files.
    WarmData,
    /// Data that cleaning moved, and data of files marked as cold.
    ColdData,
    /// Direct nodes of directories.
    HotNode,
    /// Direct nodes of files: the log that roll-forward follows.
    WarmNode,
    /// Indirect nodes.
    ColdNode,
}

impl SegmentType {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::HotData,
        Self::WarmData,
        Self::ColdData,
        Self::HotNode,
        Self::WarmNode,
        Self::ColdNode,
    ];

    /// The type of this number.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> usize {
        self as usize
    }

    /// Whether nodes are written there, and not data.
    #[must_use]
    pub const fn is_node(self) -> bool {
        matches!(self, Self::HotNode | Self::WarmNode | Self::ColdNode)
    }

    /// Its place among the logs of nodes, or among those of data: hot 0, warm 1, cold 2.
    #[must_use]
    pub const fn temperature(self) -> usize {
        self.number() % 3
    }
}

/// A bit for each block of a segment. On disk bit 0 is the most significant bit of byte 0; here it is
/// the most significant bit of word 0. Bits beyond 511 read as clear, and are not changed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ValidMap([u64; 8]);

impl ValidMap {
    /// Its length on disk.
    pub const BYTES: usize = 64;

    /// The word of a bit, and the bit's mask in it.
    const fn place(bit: u32) -> (usize, u64) {
        ((bit / 64) as usize, 1 << (63 - bit % 64))
    }

    /// From its bytes on disk.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let mut map = Self::default();
        for (word, bytes) in map.0.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        map
    }

    /// Its bytes on disk.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (word, bytes) in self.0.iter().zip(bytes.as_chunks_mut().0) {
            *bytes = word.to_be_bytes();
        }
        bytes
    }

    /// Whether a bit is set.
    #[must_use]
    pub fn get(&self, bit: u32) -> bool {
        let (word, mask) = Self::place(bit);
        self.0.get(word).is_some_and(|word| word & mask != 0)
    }

    /// Sets a bit; whether it was set.
    pub fn set(&mut self, bit: u32) -> bool {
        let was = self.get(bit);
        let (word, mask) = Self::place(bit);
        if let Some(word) = self.0.get_mut(word) {
            *word |= mask;
        }
        was
    }

    /// Clears a bit; whether it was set.
    pub fn clear(&mut self, bit: u32) -> bool {
        let was = self.get(bit);
        let (word, mask) = Self::place(bit);
        if let Some(word) = self.0.get_mut(word) {
            *word &= !mask;
        }
        was
    }

    /// With every bit set.
    #[must_use]
    pub const fn full() -> Self {
        Self([!0; Self::BYTES / 8])
    }

    /// The bits that are set here or there.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut both = *self;
        both.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
        both
    }

    /// The bits that are set here and not there.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = *self;
        rest.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= !other);
        rest
    }

    /// How many are set.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count_from(0)
    }

    /// How many are set from `from` on.
    #[must_use]
    pub fn count_from(&self, from: u32) -> u32 {
        let (first, _) = Self::place(from);
        let words = self.0.iter().skip(first).enumerate();
        let kept = |step: usize| if step == 0 { !0 >> (from % 64) } else { !0 };
        words.map(|(step, word)| (word & kept(step)).count_ones()).sum()
    }

    /// The first bit from `from` on that is set.
    #[must_use]
    pub fn next_set(&self, from: u32) -> Option<u32> {
        self.next(from, 0)
    }

    /// The first bit from `from` on that is clear.
    #[must_use]
    pub fn next_clear(&self, from: u32) -> Option<u32> {
        self.next(from, !0)
    }

    /// The first bit from `from` on that is set once the words are changed by `flip`.
    fn next(&self, from: u32, flip: u64) -> Option<u32> {
        let (first, _) = Self::place(from);
        let words = self.0.iter().enumerate().skip(first);
        let found = words.map(|(index, word)| {
            let word = word ^ flip;
            (index, if index == first { word & (!0 >> (from % 64)) } else { word })
        });
        let (index, word) = found.into_iter().find(|(_, word)| *word != 0)?;
        Some(index as u32 * 64 + word.leading_zeros())
    }
}

record! {
    /// An entry as it stands on disk, unchecked.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct RawSitEntry {
        /// Valid blocks, and above 10 bits the segment's type.
        vblocks: u16 = 0x0,
        /// A bit for each block, the first in the most significant bit of byte 0.
        valid_map: [u8; 64] = 0x2,
        /// Age of the segment, for cleaning.
        mtime: u64 = 0x42,
    }
}

/// What the SIT holds of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SitEntry {
    /// Valid blocks: as many as the map has.
    pub valid_blocks: u16,
    /// The log that wrote it, or will.
    pub segment_type: SegmentType,
    /// Which blocks are valid.
    pub map: ValidMap,
    /// Age of the segment: mean of its blocks' times of writing, in seconds that the volume was mounted.
    pub mtime: u64,
}

impl SitEntry {
    /// The first block of the segment, in an append-only address space: there it stands in the place of the age, which
    /// only cleaning asks for. Of a slot whose section holds nothing it means nothing.
    #[must_use]
    pub const fn address(&self) -> BlockAddr {
        BlockAddr(self.mtime as u32)
    }

    /// Where each field of an entry lies.
    pub const FIELDS: &'static [crate::wire::Field] = RawSitEntry::FIELDS;

    /// Reads the entry of a segment from its 74 bytes.
    ///
    /// # Errors
    /// A type that there is none of, or a count that is not the map's.
    pub fn parse(bytes: &[u8], segno: SegNo) -> Result<Self, FormatError> {
        let place = Place::Segment(segno);
        let raw = RawSitEntry::read(bytes);
        let segment_type = SegmentType::of(u32::from(raw.vblocks >> COUNT_BITS));
        let segment_type = segment_type.ok_or(FormatError::corrupt(
            place,
            1,
            "is of no type that segments can be of",
        ))?;
        let map = ValidMap::from_bytes(&raw.valid_map);
        let valid_blocks = raw.vblocks & ((1 << COUNT_BITS) - 1);
        if u32::from(valid_blocks) != map.count() {
            return Err(FormatError::corrupt(place, 0, "count of blocks is not that of the map"));
        }
        Ok(Self { valid_blocks, segment_type, map, mtime: raw.mtime })
    }

    /// Writes the entry over its 74 bytes. A count above 512 is cut to what its bits hold.
    pub fn encode(&self, bytes: &mut [u8]) {
        let count = self.valid_blocks & ((1 << COUNT_BITS) - 1);
        let vblocks = (self.segment_type.number() as u16) << COUNT_BITS | count;
        let valid_map = self.map.to_bytes();
        RawSitEntry { vblocks, valid_map, mtime: self.mtime }.write(bytes);
    }

    /// Reads the entry of a segment from the SIT block that holds it ([`Layout::sit_place`]).
    ///
    /// # Errors
    /// As of [`Self::parse`]; a block that is cut short.
    pub fn read_at(block: &[u8], index: usize, segno: SegNo) -> Result<Self, FormatError> {
        let bytes = index.checked_mul(SIT_ENTRY_BYTES).and_then(|at| block.get(at..));
        let bytes = bytes.filter(|bytes| bytes.len() >= SIT_ENTRY_BYTES);
        let place = Place::Segment(segno);
        Self::parse(bytes.ok_or(FormatError::corrupt(place, 0, "is cut short"))?, segno)
    }

    /// Writes the entry over its place in a SIT block; nothing if the block has no such place.
    pub fn write_at(&self, block: &mut [u8], index: usize) {
        if index < SIT_ENTRIES_PER_BLOCK {
            self.encode(block.get_mut(index * SIT_ENTRY_BYTES..).unwrap_or_default());
        }
    }
}

/// The journal of the SIT: entries that are newer than the table's, in the order they stand in.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SitJournal {
    /// Segments and their entries, up to [`SIT_JOURNAL_ENTRIES`].
    pub entries: Vec<(SegNo, SitEntry)>,
}

impl SitJournal {
    /// Reads a journal from its 507 bytes.
    ///
    /// # Errors
    /// More entries than there is room for, or an unsound one. `place` is what holds the journal.
    pub fn parse(bytes: &[u8], place: Place) -> Result<Self, FormatError> {
        let count = usize::from(u16_at(bytes, 0));
        if count > SIT_JOURNAL_ENTRIES || bytes.len() < JOURNAL_BYTES {
            return Err(FormatError::corrupt(place, 0, "SIT journal holds more than it can"));
        }
        let places = bytes.get(2..).unwrap_or_default().chunks_exact(SIT_JOURNAL_ENTRY_BYTES);
        let read = |bytes: &[u8]| {
            let segno = SegNo(u32_at(bytes, 0));
            Ok((segno, SitEntry::parse(bytes.get(4..).unwrap_or_default(), segno)?))
        };
        let entries = places.take(count).map(read).collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    /// Writes the journal over its 507 bytes. Entries beyond the sixth are not written, nor counted.
    pub fn encode(&self, bytes: &mut [u8]) {
        put_u16(bytes, 0, self.entries.len().min(SIT_JOURNAL_ENTRIES) as u16);
        let places = bytes.get_mut(2..).unwrap_or_default();
        let places = places.chunks_exact_mut(SIT_JOURNAL_ENTRY_BYTES).take(SIT_JOURNAL_ENTRIES);
        for ((segno, entry), place) in self.entries.iter().zip(places) {
            put_u32(place, 0, segno.0);
            entry.encode(place.get_mut(4..).unwrap_or_default());
        }
    }
}

impl Layout {
    /// The block of the SIT that holds the entry of a segment, counted in one copy, and the entry's index
    /// there.
    #[must_use]
    pub const fn sit_place(&self, segno: SegNo) -> (u32, usize) {
        let per_block = SIT_ENTRIES_PER_BLOCK as u32;
        (segno.0 / per_block, (segno.0 % per_block) as usize)
    }

    /// Where a copy of a SIT block lies; `None` if there is no such block.
    #[must_use]
    pub fn sit_block(&self, block: u32, second: bool) -> Option<BlockAddr> {
        let copy = if second { self.sit_blocks() } else { 0 };
        let start = self.area(Area::Sit).start;
        (block < self.sit_blocks()).then(|| BlockAddr(start.0 + copy + block))
    }

    /// Where the current copy of a SIT block lies.
    #[must_use]
    pub fn current_sit_addr(&self, block: u32, bitmap: &VersionBitmap) -> Option<BlockAddr> {
        self.sit_block(block, bitmap.is_second(block))
    }

    /// Where the next version of a SIT block goes: the copy that is not current.
    #[must_use]
    pub fn next_sit_addr(&self, block: u32, bitmap: &VersionBitmap) -> Option<BlockAddr> {
        self.sit_block(block, !bitmap.is_second(block))
    }
}

const _: () = assert!(SIT_ENTRIES_PER_BLOCK == super::BLOCK_BYTES / SIT_ENTRY_BYTES);
const _: () = assert!(BLOCKS_PER_SEGMENT as usize == 8 * ValidMap::BYTES);
const _: () = assert!(SIT_JOURNAL_ENTRIES == (JOURNAL_BYTES - 2) / SIT_JOURNAL_ENTRY_BYTES);
