//! The GC journal: where cleaning notes which blocks it has moved since the last checkpoint, so that a
//! cleaned section can be written again before the next one. No kernel has it; after Gwak, Kang and Shin,
//! "GC journaling" (ISCE 2015).
//!
//! - An area of 512 blocks, a segment as a whole, after the main area, whose blocks are written from its first
//!   one on after each checkpoint; or two zones, which are written on and on, by turns. [`GcJournalRecord`](super::GcJournalRecord) in both
//!   copies of the superblock says where.
//! - Two formats. A [`PaperBlock`] is what the paper prints: addresses and the version of the checkpoint
//!   that the moves follow, neither checksum nor count. A [`SafeBlock`] has a checksum, its index, and of
//!   each move what was moved.
//! - Whether a move counts, its reader judges: addresses and versions are not looked at here.

use super::checksum::crc32;
use super::error::{FormatError, Place};
use super::{BLOCK_BYTES, BLOCKS_PER_SEGMENT, BlockAddr, Nid, SUPERBLOCK_MAGIC};
use crate::wire::{put_u32, record};

/// Blocks of the area: a segment.
pub const GC_JOURNAL_BLOCKS: u32 = BLOCKS_PER_SEGMENT;
/// Zones of the area where sections are zones.
pub const GC_JOURNAL_ZONES: u32 = 2;
/// Entries of a block as the paper prints it.
pub const PAPER_ENTRIES: usize = 511;
/// Bytes of such an entry.
pub const PAPER_ENTRY_BYTES: usize = 8;
/// Entries of a block in the safe format.
pub const SAFE_ENTRIES: usize = 254;
/// Bytes of such an entry.
pub const SAFE_ENTRY_BYTES: usize = 16;
/// Bytes before the entries of a block in the safe format.
pub const SAFE_HEADER_BYTES: usize = 32;
/// Magic of a block in the safe format: "FGCJ".
pub const SAFE_MAGIC: u32 = 0x4a43_4746;
/// Where the checksum of such a block stands.
const SAFE_CRC_AT: usize = 4;
/// What stands in the place of a page where a node was moved: no file has so many.
const NODE_PAGE: u32 = u32::MAX;

record! {
    /// A move: from where, to where. Two zeroes are none.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct PaperEntry {
        /// Where the block lay.
        old: BlockAddr = 0x0,
        /// Where it lies now.
        new: BlockAddr = 0x4,
    }
}

record! {
    /// What follows the entries of a block as the paper prints it.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct PaperFooter {
        /// Version of the last checkpoint when the block was written.
        checkpoint_ver: u64 = 0xff8,
    }
}

record! {
    /// What precedes the entries of a block in the safe format.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct SafeHeader {
        /// 0x4a434746.
        magic: u32 = 0x0,
        /// CRC-32 of the block with 0 in this place.
        crc: u32 = 0x4,
        /// Version of the last checkpoint when the block was written.
        checkpoint_ver: u64 = 0x8,
        /// Blocks with this version before this one; the place in an area that is no zones.
        index: u32 = 0x10,
        /// Entries in use.
        entry_count: u16 = 0x14,
        /// Where the warm node log went on when the block was written.
        chain: BlockAddr = 0x18,
    }
}

record! {
    /// A move with its owner, as it stands in a block.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct RawSafeEntry {
        /// Where the block lay.
        old: BlockAddr = 0x0,
        /// Where it lies now.
        new: BlockAddr = 0x4,
        /// Of data, the inode; of a node, its number.
        owner: Nid = 0x8,
        /// Of data, the page in its file; 0xffffffff of a node.
        page: u32 = 0xc,
    }
}

/// What was moved.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MovedBlock {
    /// A node.
    Node(Nid),
    /// A page of a file.
    Data {
        /// The file.
        ino: Nid,
        /// The page's index in the file: below 0xffffffff, as that of every file.
        page: u32,
    },
}

/// A move with its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SafeEntry {
    /// Where the block lay.
    pub old: BlockAddr,
    /// Where it lies now.
    pub new: BlockAddr,
    /// What it is.
    pub moved: MovedBlock,
}

impl From<RawSafeEntry> for SafeEntry {
    fn from(raw: RawSafeEntry) -> Self {
        let moved = match raw.page {
            NODE_PAGE => MovedBlock::Node(raw.owner),
            page => MovedBlock::Data { ino: raw.owner, page },
        };
        Self { old: raw.old, new: raw.new, moved }
    }
}

impl From<SafeEntry> for RawSafeEntry {
    fn from(entry: SafeEntry) -> Self {
        let (owner, page) = match entry.moved {
            MovedBlock::Node(nid) => (nid, NODE_PAGE),
            MovedBlock::Data { ino, page } => (ino, page),
        };
        Self { old: entry.old, new: entry.new, owner, page }
    }
}

/// A journal block as the paper prints it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PaperBlock {
    /// Version of the last checkpoint when it was written.
    pub checkpoint_ver: u64,
    /// The moves, in their order: [`PAPER_ENTRIES`] at most, none of two zeroes.
    pub entries: Vec<PaperEntry>,
}

impl PaperBlock {
    /// Reads a block, number `index` of the area. Any 4,096 bytes are one.
    ///
    /// # Errors
    /// A block that is cut short.
    pub fn parse(block: &[u8], index: u32) -> Result<Self, FormatError> {
        let block = whole(block, index)?;
        let entries = block[..PAPER_ENTRIES * PAPER_ENTRY_BYTES].chunks_exact(PAPER_ENTRY_BYTES);
        let entries = entries.map(PaperEntry::read).filter(|entry| *entry != PaperEntry::default());
        let PaperFooter { checkpoint_ver } = PaperFooter::read(block);
        Ok(Self { checkpoint_ver, entries: entries.collect() })
    }

    /// Writes all bytes of a block; nothing over less than one. Entries without room are not written.
    pub fn encode(&self, block: &mut [u8]) {
        let Some(block) = block.first_chunk_mut::<BLOCK_BYTES>() else { return };
        block.fill(0);
        let (entries, _) = block.split_at_mut(PAPER_ENTRIES * PAPER_ENTRY_BYTES);
        for (place, entry) in entries.chunks_exact_mut(PAPER_ENTRY_BYTES).zip(&self.entries) {
            entry.write(place);
        }
        PaperFooter { checkpoint_ver: self.checkpoint_ver }.write(block);
    }
}

/// A journal block in the safe format.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SafeBlock {
    /// Version of the last checkpoint when it was written.
    pub checkpoint_ver: u64,
    /// Blocks with this version before this one; the place in an area that is no zones.
    pub index: u32,
    /// Where the warm node log went on when it was written: entries come before the nodes that
    /// roll-forward finds from there on, and after those before.
    pub chain: BlockAddr,
    /// The moves, in their order: [`SAFE_ENTRIES`] at most.
    pub entries: Vec<SafeEntry>,
}

impl SafeBlock {
    /// Reads a block, number `index` of its version.
    ///
    /// # Errors
    /// Another magic, a checksum that does not hold, more entries than there is room for, a block of
    /// another place or cut short.
    pub fn parse(block: &[u8], index: u32) -> Result<Self, FormatError> {
        let place = Place::GcJournal(index);
        let block = whole(block, index)?;
        let header = SafeHeader::read(block);
        if header.magic != SAFE_MAGIC {
            return Err(FormatError::corrupt(place, 0x0, "is not in the safe format"));
        }
        FormatError::checksum(place, header.crc, checksum(block))?;
        let count = usize::from(header.entry_count);
        if count > SAFE_ENTRIES {
            return Err(FormatError::corrupt(place, 0x14, "more entries than there is room for"));
        }
        if header.index != index {
            return Err(FormatError::corrupt(place, 0x10, "is of another place in the area"));
        }
        let entries = block[SAFE_HEADER_BYTES..].chunks_exact(SAFE_ENTRY_BYTES).take(count);
        Ok(Self {
            checkpoint_ver: header.checkpoint_ver,
            index,
            chain: header.chain,
            entries: entries.map(|bytes| RawSafeEntry::read(bytes).into()).collect(),
        })
    }

    /// The index that a block says that it has.
    #[must_use]
    pub fn index_of(block: &[u8]) -> u32 {
        block.first_chunk::<BLOCK_BYTES>().map_or(0, |block| SafeHeader::read(block).index)
    }

    /// Writes all bytes of a block, checksum included; nothing over less than one. Entries without room
    /// are not written.
    pub fn encode(&self, block: &mut [u8]) {
        let Some(block) = block.first_chunk_mut::<BLOCK_BYTES>() else { return };
        block.fill(0);
        let entries = block[SAFE_HEADER_BYTES..].chunks_exact_mut(SAFE_ENTRY_BYTES);
        for (place, entry) in entries.zip(&self.entries) {
            RawSafeEntry::from(*entry).write(place);
        }
        let header = SafeHeader {
            magic: SAFE_MAGIC,
            crc: 0,
            checkpoint_ver: self.checkpoint_ver,
            index: self.index,
            entry_count: self.entries.len().min(SAFE_ENTRIES) as u16,
            chain: self.chain,
        };
        header.write(block);
        let crc = checksum(block);
        put_u32(block, SAFE_CRC_AT, crc);
    }
}

/// A block of the area, if the bytes are one.
fn whole(block: &[u8], index: u32) -> Result<&[u8; BLOCK_BYTES], FormatError> {
    let cut = FormatError::corrupt(Place::GcJournal(index), 0, "is cut short");
    block.first_chunk().ok_or(cut)
}

/// The checksum of a block in the safe format: of all of it, with 0 in its own place.
fn checksum(block: &[u8; BLOCK_BYTES]) -> u32 {
    let register = crc32(crc32(SUPERBLOCK_MAGIC, &block[..SAFE_CRC_AT]), &[0; 4]);
    crc32(register, &block[SAFE_CRC_AT + 4..])
}

const _: () = assert!(PAPER_ENTRIES * PAPER_ENTRY_BYTES + 8 == BLOCK_BYTES);
const _: () = assert!(SAFE_HEADER_BYTES + SAFE_ENTRIES * SAFE_ENTRY_BYTES == BLOCK_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn paper(number: u32) -> PaperEntry {
        PaperEntry { old: BlockAddr(number), new: BlockAddr(number + 1000) }
    }

    fn safe(number: u32) -> SafeEntry {
        let moved = match number % 2 {
            0 => MovedBlock::Node(Nid(number)),
            _ => MovedBlock::Data { ino: Nid(number), page: number / 2 },
        };
        SafeEntry { old: BlockAddr(number), new: BlockAddr(number + 1000), moved }
    }

    fn safe_block(entries: u32) -> SafeBlock {
        SafeBlock {
            checkpoint_ver: 0x0102_0304_0506_0708,
            index: 3,
            chain: BlockAddr(0x0a0b_0c0d),
            entries: (1..=entries).map(safe).collect(),
        }
    }

    fn safe_bytes(entries: u32) -> [u8; BLOCK_BYTES] {
        let mut block = [0xff; BLOCK_BYTES];
        safe_block(entries).encode(&mut block);
        block
    }

    /// A changed block with the checksum that holds for it.
    fn sealed(mut block: [u8; BLOCK_BYTES], at: usize, bytes: &[u8]) -> [u8; BLOCK_BYTES] {
        block[at..at + bytes.len()].copy_from_slice(bytes);
        let crc = checksum(&block);
        put_u32(&mut block, SAFE_CRC_AT, crc);
        block
    }

    /// Blocks as the paper prints them come back from their bytes, empty and full; places without a move
    /// are none, and moves beyond the last place are left out.
    #[test]
    fn paper_blocks_round_trip() {
        for entries in [0, 1, 510, 511] {
            let written =
                PaperBlock { checkpoint_ver: 7, entries: (1..=entries).map(paper).collect() };
            let mut block = [0xff; BLOCK_BYTES];
            written.encode(&mut block);
            assert_eq!(PaperBlock::parse(&block, 0), Ok(written));
        }
        let written = PaperBlock { checkpoint_ver: 7, entries: (1..=512).map(paper).collect() };
        let mut block = [0xff; BLOCK_BYTES];
        written.encode(&mut block);
        assert_eq!(block[4080..], [255, 1, 0, 0, 231, 5, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        block[8..16].fill(0);
        let read = PaperBlock::parse(&block, 0).expect("a block");
        let left: Vec<_> = (1..=511).filter(|number| *number != 2).map(paper).collect();
        assert_eq!(read.entries, left);
        // One zero does not make an entry none.
        block[8] = 5;
        assert_eq!(PaperBlock::parse(&block, 0).expect("a block").entries[1].old, BlockAddr(5));
        assert!(PaperBlock::parse(&block[..BLOCK_BYTES - 1], 0).is_err());
    }

    /// Blocks in the safe format come back from their bytes, which lie where the document says.
    #[test]
    fn safe_blocks_round_trip() {
        for entries in [0, 1, 253, 254] {
            assert_eq!(SafeBlock::parse(&safe_bytes(entries), 3), Ok(safe_block(entries)));
        }
        let block = safe_bytes(255);
        let read = SafeBlock::parse(&block, 3).expect("a block");
        assert_eq!(read.entries, safe_block(254).entries);
        assert_eq!(block[..4], *b"FGCJ");
        let header = [8, 7, 6, 5, 4, 3, 2, 1, 3, 0, 0, 0, 254, 0, 0, 0, 13, 12, 11, 10, 0, 0, 0, 0];
        assert_eq!(block[8..32], header);
        assert_eq!(block[32..48], [1, 0, 0, 0, 233, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(block[48..64], [2, 0, 0, 0, 234, 3, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255]);
    }

    /// Everything but a sound block at its place is refused, and by the field that is wrong.
    #[test]
    fn unsound_safe_blocks_are_refused() {
        let block = safe_bytes(254);
        let refused = [
            (sealed(block, 0x0, &[0]), 0x0),
            (sealed(block, 0x14, &[255]), 0x14),
            (sealed(block, 0x14, &[0, 1]), 0x14),
            (sealed(block, 0x10, &[4]), 0x10),
        ];
        for (block, at) in refused {
            let error = SafeBlock::parse(&block, 3).expect_err("refused");
            let expected = matches!(error, FormatError::Corrupt { place: Place::GcJournal(3), byte, .. } if byte == at);
            assert!(expected, "{at:#x}: {error}");
        }
        assert!(SafeBlock::parse(&block, 2).is_err());
        assert!(SafeBlock::parse(&block[..BLOCK_BYTES - 1], 3).is_err());
        assert!(SafeBlock::parse(&sealed(block, 0x14, &[0]), 3).is_ok());
        let zeroes = SafeBlock::parse(&[0; BLOCK_BYTES], 0);
        assert!(matches!(zeroes, Err(FormatError::Corrupt { byte: 0, .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Whatever the bytes, blocks end in a value or in an error; what a paper block says is written
        /// back, and less than a block is left alone.
        #[test]
        fn no_block_panics(
            mut bytes in vec(any::<u8>(), BLOCK_BYTES),
            cut in 0..BLOCK_BYTES,
            head in any::<bool>(),
            index in any::<u32>(),
        ) {
            if head {
                bytes[..4].copy_from_slice(b"FGCJ");
                let whole = *bytes.first_chunk().expect("a block");
                put_u32(&mut bytes, SAFE_CRC_AT, checksum(&whole));
            }
            let _ = SafeBlock::parse(&bytes, index);
            let _ = (SafeBlock::parse(&bytes[..cut], index), PaperBlock::parse(&bytes[..cut], index));
            let paper = PaperBlock::parse(&bytes, index).expect("any bytes are one");
            let mut again = vec![0; BLOCK_BYTES];
            paper.encode(&mut again);
            prop_assert_eq!(PaperBlock::parse(&again, index), Ok(paper.clone()));
            let mut short = bytes[..cut].to_vec();
            paper.encode(&mut short);
            safe_block(9).encode(&mut short);
            prop_assert_eq!(&short[..], &bytes[..cut]);
        }

        /// A changed bit of a block in the safe format is noticed, wherever it is.
        #[test]
        fn a_changed_bit_is_noticed(at in 0..BLOCK_BYTES, bit in 0..8_u32, entries in 0..255_u32) {
            let mut block = safe_bytes(entries);
            block[at] ^= 1 << bit;
            prop_assert!(SafeBlock::parse(&block, 3).is_err());
        }
    }
}
