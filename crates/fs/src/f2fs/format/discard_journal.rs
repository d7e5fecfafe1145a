//! The discard journal of a volume in an append-only address space: discards that a checkpoint makes safe, and that the
//! device has not got yet. The blocks lie after the checkpoint packs, for each pack its own; they are durable before the
//! last block of their pack, so that a mount reissues what a power cut lost. Record kinds after IPLFS (ATC '22): a bitmap
//! of 64 bytes after the address of its segment, and a range of first block and length.
//!
//! A block counts if it has the version of its checkpoint. Every checkpoint writes at least one, without records where there
//! are none: after a power cut the next checkpoint has the version of the one that was cut off, whose journal may be in place.

use super::checksum::crc32;
use super::error::{FormatError, Place};
use super::sit::ValidMap;
use super::{BLOCK_BYTES, BlockAddr, SUPERBLOCK_MAGIC};
use crate::wire::{put_u32, record, u32_at};
use std::ops::Range;

/// Magic of a block: "DJNL".
pub const DISCARD_MAGIC: u32 = 0x4c4e_4a44;
/// Bytes of a bitmap record.
pub const BITMAP_RECORD_BYTES: usize = 4 + ValidMap::BYTES;
/// Bytes of a range record.
pub const RANGE_RECORD_BYTES: usize = 8;
/// Where the first record stands.
pub const DISCARD_RECORDS_AT: usize = 32;
/// Bitmap records of a block.
pub const BITMAPS_PER_BLOCK: usize = (BLOCK_BYTES - DISCARD_RECORDS_AT) / BITMAP_RECORD_BYTES;

record! {
    /// What a block of the discard journal begins with. Bitmap records follow, then range records.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct DiscardHeader {
        /// 0x4c4e4a44.
        magic: u32 = 0x0,
        /// CRC-32 of the block with 0 in this place.
        crc: u32 = 0x4,
        /// Version of the checkpoint that it belongs to.
        checkpoint_ver: u64 = 0x8,
        /// Blocks of this checkpoint before this one.
        index: u32 = 0x10,
        /// Blocks of this checkpoint.
        blocks: u32 = 0x14,
        /// Bitmap records in the block.
        bitmaps: u16 = 0x18,
        /// Range records in the block.
        ranges: u16 = 0x1a,
    }
}

/// Blocks that wait for their discard.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DiscardRecords {
    /// By the first block of a segment, blocks of it.
    pub bitmaps: Vec<(BlockAddr, ValidMap)>,
    /// Blocks one after the other.
    pub ranges: Vec<Range<BlockAddr>>,
}

impl DiscardRecords {
    /// Blocks that they take, at least one.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.plan().len()
    }

    /// How many bitmaps and how many ranges go to each block, of which there is at least one.
    fn plan(&self) -> Vec<(usize, usize)> {
        let (mut bitmaps, mut ranges) = (self.bitmaps.len(), self.ranges.len());
        let mut plan = Vec::new();
        while plan.is_empty() || bitmaps + ranges > 0 {
            let some = bitmaps.min(BITMAPS_PER_BLOCK);
            let left = BLOCK_BYTES - DISCARD_RECORDS_AT - some * BITMAP_RECORD_BYTES;
            let others = if bitmaps == some { ranges.min(left / RANGE_RECORD_BYTES) } else { 0 };
            plan.push((some, others));
            (bitmaps, ranges) = (bitmaps - some, ranges - others);
        }
        plan
    }

    /// The blocks that hold them, for the checkpoint of this version.
    #[must_use]
    pub fn encode(&self, checkpoint_ver: u64) -> Vec<Box<[u8; BLOCK_BYTES]>> {
        let plan = self.plan();
        let blocks = plan.len() as u32;
        let (mut bitmaps, mut ranges) = (self.bitmaps.iter(), self.ranges.iter());
        let encode = |(index, (some, others)): (u32, (usize, usize))| {
            let mut block = Box::new([0; BLOCK_BYTES]);
            let mut at = DISCARD_RECORDS_AT;
            for (segment, map) in bitmaps.by_ref().take(some) {
                put_u32(&mut block[..], at, segment.0);
                block[at + 4..at + BITMAP_RECORD_BYTES].copy_from_slice(&map.to_bytes());
                at += BITMAP_RECORD_BYTES;
            }
            for range in ranges.by_ref().take(others) {
                put_u32(&mut block[..], at, range.start.0);
                put_u32(&mut block[..], at + 4, range.end.0 - range.start.0);
                at += RANGE_RECORD_BYTES;
            }
            let (bitmaps, ranges) = (some as u16, others as u16);
            let magic = DISCARD_MAGIC;
            DiscardHeader { magic, crc: 0, checkpoint_ver, index, blocks, bitmaps, ranges }
                .write(&mut block[..]);
            let crc = crc32(SUPERBLOCK_MAGIC, &block[..]);
            put_u32(&mut block[..], 4, crc);
            block
        };
        (0..).zip(plan).map(encode).collect()
    }

    /// Adds the records of a block, which is number `index` of its checkpoint; its header. `None` if it belongs to
    /// another checkpoint, or is none.
    ///
    /// # Errors
    /// A block of the checkpoint that contradicts itself.
    pub fn read_block(
        &mut self,
        block: &[u8],
        (checkpoint_ver, index): (u64, u32),
    ) -> Result<Option<DiscardHeader>, FormatError> {
        let place = Place::DiscardJournal(index);
        let corrupt = |at, what| Err(FormatError::corrupt(place, at, what));
        let Some(block) = block.get(..BLOCK_BYTES) else { return corrupt(0, "is cut short") };
        let header = DiscardHeader::read(block);
        if header.magic != DISCARD_MAGIC || header.checkpoint_ver != checkpoint_ver {
            return Ok(None);
        }
        let mut plain = block.to_vec();
        put_u32(&mut plain, 4, 0);
        FormatError::checksum(place, header.crc, crc32(SUPERBLOCK_MAGIC, &plain))?;
        let [bitmaps, ranges] = [header.bitmaps, header.ranges].map(usize::from);
        let bytes = bitmaps * BITMAP_RECORD_BYTES + ranges * RANGE_RECORD_BYTES;
        if header.index != index || bytes > BLOCK_BYTES - DISCARD_RECORDS_AT {
            return corrupt(0x10, "is another block than it says, or holds more than it can");
        }
        let (maps, rest) = block[DISCARD_RECORDS_AT..].split_at(bitmaps * BITMAP_RECORD_BYTES);
        for record in maps.as_chunks::<BITMAP_RECORD_BYTES>().0 {
            let map = record[4..].first_chunk().map(ValidMap::from_bytes).unwrap_or_default();
            self.bitmaps.push((BlockAddr(u32_at(record, 0)), map));
        }
        for record in rest.as_chunks::<RANGE_RECORD_BYTES>().0.iter().take(ranges) {
            let start = u32_at(record, 0);
            let Some(end) = start.checked_add(u32_at(record, 4)) else {
                return corrupt(0x1a, "range beyond the addresses that there are");
            };
            self.ranges.push(BlockAddr(start)..BlockAddr(end));
        }
        Ok(Some(header))
    }
}

const _: () = assert!(crate::wire::end(DiscardHeader::FIELDS) <= DISCARD_RECORDS_AT);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(blocks: &[Box<[u8; BLOCK_BYTES]>], version: u64) -> DiscardRecords {
        let mut found = DiscardRecords::default();
        for (index, block) in (0..).zip(blocks) {
            let header = found.read_block(&block[..], (version, index)).expect("a sound block");
            assert_eq!(header.map(|header| header.blocks), Some(blocks.len() as u32));
        }
        found
    }

    proptest! {
        /// Records are read as they were written, however many there are; a changed byte, or another version, is noticed.
        #[test]
        fn records_are_read_back(bitmaps in 0..200_u32, ranges in 0..1_200_u32, at in 0..BLOCK_BYTES, version: u64) {
            let map = |index: u32| {
                let mut map = ValidMap::default();
                map.set(index % 512);
                map.set(index * 7 % 512);
                map
            };
            let records = DiscardRecords {
                bitmaps: (0..bitmaps).map(|index| (BlockAddr(index * 512), map(index))).collect(),
                ranges: (0..ranges).map(|index| BlockAddr(index * 9)..BlockAddr(index * 9 + 1 + index)).collect(),
            };
            let mut blocks = records.encode(version);
            prop_assert_eq!(blocks.len(), records.blocks());
            prop_assert_eq!(&read_all(&blocks, version), &records);
            let mut other = DiscardRecords::default();
            prop_assert_eq!(other.read_block(&blocks[0][..], (version ^ 1, 0)), Ok(None));
            blocks[0][at] ^= 0x10;
            let read = other.read_block(&blocks[0][..], (version, 0));
            prop_assert!(matches!(read, Err(_) | Ok(None)), "byte {}", at);
        }
    }
}
