//! The node address table: of each node where it lies, and whose it is. Follows
//! include/linux/f2fs_fs.h, `current_nat_addr` in fs/f2fs/node.h and `__get_nat_bitmaps` in
//! fs/f2fs/node.c.
//!
//! - An entry has 9 bytes; 455 lie in a block. The two copies of a block lie 512 blocks apart, segment
//!   by segment; the NAT's version bitmap says which one is current.
//! - Up to 38 entries that changed lie in the journal of the hot data log's summary, and are newer than
//!   the table's.
//! - NAT bits, at the end of a checkpoint pack, say which NAT blocks hold no node, and which no free
//!   number. They hold for the checkpoint whose version and checksum they name, and for no other.

use super::bitmap::VersionBitmap;
use super::error::{FormatError, Place};
use super::layout::{Area, Layout};
use super::{
    BLOCK_BYTES, BLOCKS_PER_SEGMENT, BlockAddr, JOURNAL_BYTES, NAT_ENTRIES_PER_BLOCK, Nid,
};
use crate::wire::{put_u16, put_u32, put_uint, record, u16_at, u32_at, uint};

/// Bytes of an entry.
pub const NAT_ENTRY_BYTES: usize = 9;
/// Bytes of an entry in the journal: the node's number precedes it.
pub const NAT_JOURNAL_ENTRY_BYTES: usize = 4 + NAT_ENTRY_BYTES;
/// Entries that the journal has room for.
pub const NAT_JOURNAL_ENTRIES: usize = 38;

record! {
    /// What the NAT holds of a node. Any bytes are an entry; whether it makes sense, its reader judges.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct NatEntry {
        /// How often the number was freed, modulo 256: a summary of an older version is void.
        version: u8 = 0x0,
        /// The inode that the node belongs to.
        ino: Nid = 0x1,
        /// Where it lies; 0: the number is free.
        block_addr: BlockAddr = 0x5,
    }
}

impl NatEntry {
    /// Reads an entry of a NAT block; zeroes where the block has no such place.
    #[must_use]
    pub fn read_at(block: &[u8], index: usize) -> Self {
        let at = index.checked_mul(NAT_ENTRY_BYTES).filter(|_| index < NAT_ENTRIES_PER_BLOCK);
        Self::read(at.and_then(|at| block.get(at..)).unwrap_or_default())
    }

    /// Writes the entry over its place in a NAT block; nothing if the block has no such place.
    pub fn write_at(&self, block: &mut [u8], index: usize) {
        if index < NAT_ENTRIES_PER_BLOCK {
            self.write(block.get_mut(index * NAT_ENTRY_BYTES..).unwrap_or_default());
        }
    }
}

/// The journal of the NAT: entries that are newer than the table's, in the order they stand in.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NatJournal {
    /// Nodes and their entries, up to [`NAT_JOURNAL_ENTRIES`].
    pub entries: Vec<(Nid, NatEntry)>,
}

impl NatJournal {
    /// Reads a journal from its 507 bytes.
    ///
    /// # Errors
    /// More entries than there is room for. `place` is what holds the journal.
    pub fn parse(bytes: &[u8], place: Place) -> Result<Self, FormatError> {
        let count = usize::from(u16_at(bytes, 0));
        if count > NAT_JOURNAL_ENTRIES || bytes.len() < JOURNAL_BYTES {
            return Err(FormatError::corrupt(place, 0, "NAT journal holds more than it can"));
        }
        let places = bytes.get(2..).unwrap_or_default().chunks_exact(NAT_JOURNAL_ENTRY_BYTES);
        let read = |bytes: &[u8]| {
            (Nid(u32_at(bytes, 0)), NatEntry::read(bytes.get(4..).unwrap_or_default()))
        };
        Ok(Self { entries: places.take(count).map(read).collect() })
    }

    /// Writes the journal over its 507 bytes. Entries beyond the 38th are not written, nor counted.
    pub fn encode(&self, bytes: &mut [u8]) {
        put_u16(bytes, 0, self.entries.len().min(NAT_JOURNAL_ENTRIES) as u16);
        let places = bytes.get_mut(2..).unwrap_or_default();
        let places = places.chunks_exact_mut(NAT_JOURNAL_ENTRY_BYTES).take(NAT_JOURNAL_ENTRIES);
        for ((nid, entry), place) in self.entries.iter().zip(places) {
            put_u32(place, 0, nid.0);
            entry.write(place.get_mut(4..).unwrap_or_default());
        }
    }
}

impl Layout {
    /// The block of the NAT that holds the entry of a node, counted in one copy, and the entry's index
    /// there.
    #[must_use]
    pub const fn nat_place(&self, nid: Nid) -> (u32, usize) {
        let per_block = NAT_ENTRIES_PER_BLOCK as u32;
        (nid.0 / per_block, (nid.0 % per_block) as usize)
    }

    /// Where a copy of a NAT block lies; `None` if there is no such block.
    #[must_use]
    pub fn nat_block(&self, block: u32, second: bool) -> Option<BlockAddr> {
        let segment = block / BLOCKS_PER_SEGMENT * 2 + u32::from(second);
        let at = segment.checked_mul(BLOCKS_PER_SEGMENT).filter(|_| block < self.nat_blocks())?;
        Some(BlockAddr(self.area(Area::Nat).start.0 + at + block % BLOCKS_PER_SEGMENT))
    }

    /// Where the current copy of a NAT block lies.
    #[must_use]
    pub fn current_nat_addr(&self, block: u32, bitmap: &VersionBitmap) -> Option<BlockAddr> {
        self.nat_block(block, bitmap.is_second(block))
    }

    /// Where the next version of a NAT block goes: the copy that is not current.
    #[must_use]
    pub fn next_nat_addr(&self, block: u32, bitmap: &VersionBitmap) -> Option<BlockAddr> {
        self.nat_block(block, !bitmap.is_second(block))
    }

    /// Blocks that NAT bits take at the end of a pack's segment.
    #[must_use]
    pub const fn nat_bits_blocks(&self) -> u32 {
        (8 + 2 * (self.nat_blocks() / 8)).div_ceil(BLOCK_BYTES as u32)
    }

    /// The first of them in a pack, 0 or 1, whose other blocks are so many; `None` if they do not fit
    /// after those.
    #[must_use]
    pub fn nat_bits(&self, pack: u32, pack_blocks: u32) -> Option<BlockAddr> {
        let at = BLOCKS_PER_SEGMENT.checked_sub(self.nat_bits_blocks())?;
        (at >= pack_blocks).then(|| BlockAddr(self.pack(pack).0 + at))
    }
}

/// NAT bits: two bitmaps of a bit for each NAT block, bit 0 the least significant bit of byte 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NatBits {
    /// Version of the checkpoint they hold for, its checksum in the upper half.
    pub version: u64,
    full: Vec<u8>,
    empty: Vec<u8>,
}

impl NatBits {
    /// Of a NAT in which every number is free.
    #[must_use]
    pub fn new(version: u64, layout: &Layout) -> Self {
        let bytes = layout.nat_blocks() as usize / 8;
        Self { version, full: vec![0; bytes], empty: vec![0xff; bytes] }
    }

    /// The version of NAT bits that hold for a checkpoint with this version and checksum.
    #[must_use]
    pub const fn version_of(checkpoint_ver: u64, crc: u32) -> u64 {
        checkpoint_ver | (crc as u64) << 32
    }

    /// All of their blocks.
    #[must_use]
    pub fn to_bytes(&self, layout: &Layout) -> Vec<u8> {
        let mut bytes = vec![0; layout.nat_bits_blocks() as usize * BLOCK_BYTES];
        self.encode(&mut bytes);
        bytes
    }

    /// Reads them from all of their blocks.
    ///
    /// # Errors
    /// Blocks that are cut short. `pack` is the pack they lie in.
    pub fn parse(bytes: &[u8], layout: &Layout, pack: u32) -> Result<Self, FormatError> {
        let len = layout.nat_blocks() as usize / 8;
        let parts = bytes.get(8..8 + len).zip(bytes.get(8 + len..8 + 2 * len));
        let cut = FormatError::corrupt(Place::NatBits(pack), 0, "are cut short");
        let (full, empty) = parts.ok_or(cut)?;
        Ok(Self { version: uint(bytes, 0, 8), full: full.to_vec(), empty: empty.to_vec() })
    }

    /// Writes them over all of their blocks; nothing if there is not room for both bitmaps.
    pub fn encode(&self, bytes: &mut [u8]) {
        put_uint(bytes, 0, 8, self.version);
        let (full, empty) = (&self.full, &self.empty);
        let places = bytes.get_mut(8..).unwrap_or_default().split_at_mut_checked(full.len());
        let Some((first, rest)) = places else { return };
        if let Some(second) = rest.get_mut(..empty.len()) {
            first.copy_from_slice(full);
            second.copy_from_slice(empty);
        }
    }

    /// Whether no number of a NAT block is free.
    #[must_use]
    pub fn is_full(&self, block: u32) -> bool {
        bit(&self.full, block)
    }

    /// Whether every number of a NAT block is free.
    #[must_use]
    pub fn is_empty(&self, block: u32) -> bool {
        bit(&self.empty, block)
    }

    /// Says of a NAT block how many of its 455 numbers are taken.
    pub fn set(&mut self, block: u32, taken: usize) {
        set_bit(&mut self.full, block, taken >= NAT_ENTRIES_PER_BLOCK);
        set_bit(&mut self.empty, block, taken == 0);
    }
}

fn bit(bytes: &[u8], bit: u32) -> bool {
    bytes.get(bit as usize / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
}

fn set_bit(bytes: &mut [u8], bit: u32, on: bool) {
    if let Some(byte) = bytes.get_mut(bit as usize / 8) {
        let mask = 1 << (bit % 8);
        *byte = if on { *byte | mask } else { *byte & !mask };
    }
}

const _: () = assert!(NAT_ENTRIES_PER_BLOCK == BLOCK_BYTES / NAT_ENTRY_BYTES);
const _: () = assert!(NAT_JOURNAL_ENTRIES == (JOURNAL_BYTES - 2) / NAT_JOURNAL_ENTRY_BYTES);
