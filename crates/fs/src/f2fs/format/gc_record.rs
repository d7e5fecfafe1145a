//! The record of the GC journal in both copies of the superblock: where its area lies, and whether blocks in
//! it may count. It lies in bytes that are reserved, which stock tools preserve and do not read.

use super::checksum::crc32;
use super::error::{FormatError, Place};
use super::gc_journal::{GC_JOURNAL_BLOCKS, GC_JOURNAL_ZONES};
use super::{BlockAddr, SUPERBLOCK_CRC_AT, SUPERBLOCK_MAGIC};
use crate::wire::{Wire, record};
use std::ops::Range;

/// Magic of the record: "FGCA".
pub const GC_JOURNAL_MAGIC: u32 = 0x4143_4746;
/// What stands as `log_blocksize` in a marked superblock: blocks of 2 KiB, below every page size.
pub const MARKED_LOG_BLOCKSIZE: u32 = 11;
/// Bytes of the record.
pub(super) const RECORD_BYTES: usize = 20;
/// Where its checksum stands.
const RECORD_CRC_AT: usize = 16;
/// Where it lies in the superblock.
pub(super) const RECORD_AT: usize = 0xbe8;

record! {
    /// Where the GC journal lies. All 0 without one.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct GcJournalRecord {
        /// 0x41434746.
        magic: u32 = 0x0,
        /// The first block of the area.
        start: BlockAddr = 0x4,
        /// Blocks of the area: 512, or those of two zones.
        blocks: u32 = 0x8,
        /// 0: no block counts; else their format: 1 the paper's, 2 the safe one.
        state: u32 = 0xc,
        /// CRC-32 of what is before it.
        crc: u32 = 0x10,
    }
}

impl Wire for GcJournalRecord {
    const BYTES: usize = RECORD_BYTES;
    fn get(bytes: &[u8]) -> Self {
        Self::read(bytes)
    }
    fn put(&self, bytes: &mut [u8]) {
        self.write(bytes);
    }
}

/// How blocks of a GC journal are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum GcJournalFormat {
    /// [`super::PaperBlock`]
    Paper,
    /// [`super::SafeBlock`]
    Safe,
}

impl GcJournalFormat {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Paper, Self::Safe];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Safe => "safe",
        }
    }

    /// The state that names it.
    pub(super) const fn state(self) -> u32 {
        match self {
            Self::Paper => 1,
            Self::Safe => 2,
        }
    }
}

/// The area of a GC journal after the main area and on the volume: [`GC_JOURNAL_BLOCKS`] blocks, or two zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GcJournalArea {
    start: BlockAddr,
    blocks: u32,
    live: Option<GcJournalFormat>,
}

impl GcJournalArea {
    /// Its blocks.
    #[must_use]
    pub const fn blocks(self) -> Range<BlockAddr> {
        // The volume's addresses fit 32 bits.
        self.start..BlockAddr(self.start.0 + self.blocks)
    }

    /// Blocks of each of its two zones; `None` if it is none.
    #[must_use]
    pub const fn zone_blocks(self) -> Option<u32> {
        if self.blocks == GC_JOURNAL_BLOCKS { None } else { Some(self.blocks / GC_JOURNAL_ZONES) }
    }

    /// A block of it; `None` if there is none.
    #[must_use]
    pub fn block(self, index: u32) -> Option<BlockAddr> {
        (index < self.blocks).then(|| BlockAddr(self.start.0 + index))
    }

    /// The format of blocks that may count, if this copy of the superblock is marked.
    #[must_use]
    pub const fn live(self) -> Option<GcJournalFormat> {
        self.live
    }
}

impl GcJournalRecord {
    /// The record of an area that no block counts in.
    #[must_use]
    pub fn new(start: BlockAddr, blocks: u32) -> Self {
        Self { magic: GC_JOURNAL_MAGIC, start, blocks, state: 0, crc: 0 }.sealed()
    }

    /// The record with the checksum that holds for it.
    pub(super) fn sealed(mut self) -> Self {
        self.crc = self.checksum();
        self
    }

    fn checksum(&self) -> u32 {
        let mut bytes = [0; RECORD_BYTES];
        self.write(&mut bytes);
        crc32(SUPERBLOCK_MAGIC, &bytes[..RECORD_CRC_AT])
    }

    /// The area that it names; `None` without one. The main area ends with block `main_end` of `blocks`.
    ///
    /// # Errors
    /// A record that contradicts itself or the volume.
    pub(super) fn area(
        &self,
        place: Place,
        main_end: u64,
        blocks: u64,
    ) -> Result<Option<GcJournalArea>, FormatError> {
        let corrupt = |at, what| Err(FormatError::corrupt(place, RECORD_AT + at, what));
        if self.magic != GC_JOURNAL_MAGIC {
            return Ok(None);
        }
        FormatError::checksum(place, self.crc, self.checksum())?;
        let of_zones =
            self.blocks > 0 && self.blocks.is_multiple_of(GC_JOURNAL_ZONES * GC_JOURNAL_BLOCKS);
        if self.blocks != GC_JOURNAL_BLOCKS && !of_zones {
            return corrupt(0x8, "GC journal is neither of 512 blocks nor of two zones");
        }
        if u64::from(self.start.0) < main_end {
            return corrupt(0x4, "GC journal lies over the main area");
        }
        let end = u64::from(self.start.0) + u64::from(self.blocks);
        if end > blocks || end >= u64::from(BlockAddr::COMPRESS.0) {
            return corrupt(0x4, "GC journal ends beyond the volume");
        }
        let live = self.format(place)?;
        Ok(Some(GcJournalArea { start: self.start, blocks: self.blocks, live }))
    }

    /// The format that its state names; `None` if no block counts.
    fn format(&self, place: Place) -> Result<Option<GcJournalFormat>, FormatError> {
        match self.state {
            0 => Ok(None),
            1 => Ok(Some(GcJournalFormat::Paper)),
            2 => Ok(Some(GcJournalFormat::Safe)),
            _ => {
                Err(FormatError::corrupt(place, RECORD_AT + 0xc, "GC journal of an unknown format"))
            }
        }
    }
}

const _: () = assert!(crate::wire::end(GcJournalRecord::FIELDS) == RECORD_BYTES);
const _: () = assert!(RECORD_CRC_AT + 4 == RECORD_BYTES);
const _: () = assert!(RECORD_AT + RECORD_BYTES == SUPERBLOCK_CRC_AT);
