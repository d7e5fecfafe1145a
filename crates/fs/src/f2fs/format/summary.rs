//! Summaries: of each block of a segment, which node points to it. Follows include/linux/f2fs_fs.h,
//! `read_compacted_summaries` and `write_compacted_summaries` in fs/f2fs/segment.c.
//!
//! - The SSA has a summary block for each segment of the main area. Those of the open logs are in the
//!   checkpoint pack: one block for each log, or the three data logs' together, compacted.
//! - A summary block ends with a journal and a footer. The journal of the hot data log is the NAT's, that
//!   of the cold data log the SIT's; all others hold none.
//! - Compacted, the two journals come first, then 7 bytes for each block that a data log has written; an
//!   entry lies in one block, and the last 5 bytes of a block stay free.

use super::error::{FormatError, Place};
use super::nat::NatJournal;
use super::sit::SitJournal;
use super::{BLOCK_BYTES, BLOCKS_PER_SEGMENT, JOURNAL_BYTES, Nid};
use crate::wire::{put_u32, record, u32_at};
use std::ops::Range;

/// Bytes of an entry.
pub const SUMMARY_ENTRY_BYTES: usize = 7;
/// Entries of a summary block: the blocks of a segment.
pub const SUMMARY_ENTRIES: usize = BLOCKS_PER_SEGMENT as usize;
/// Where the journal lies in a summary block.
pub const JOURNAL_AT: usize = SUMMARY_ENTRIES * SUMMARY_ENTRY_BYTES;
/// Where the footer lies: the kind, and a checksum that no kernel writes or reads.
pub const SUMMARY_FOOTER_AT: usize = JOURNAL_AT + JOURNAL_BYTES;
/// Where the entries of a block of compacted summaries end at the latest.
const COMPACT_END: usize = SUMMARY_FOOTER_AT;
/// Blocks of compacted summaries at most: three take as much room as those of the logs each.
pub const COMPACT_BLOCKS_MAX: u32 = 2;

record! {
    /// Who points to a block. Any bytes are an entry; whether it makes sense, its reader judges.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct SummaryEntry {
        /// Of data, the node that holds its address; of a node, its own number.
        nid: Nid = 0x0,
        /// Of data, the version of that node in the NAT when the block was written.
        version: u8 = 0x4,
        /// Of data, the index of its address in that node.
        ofs_in_node: u16 = 0x5,
    }
}

impl SummaryEntry {
    /// Reads the entry of a block of a segment from the segment's summary block.
    #[must_use]
    pub fn read_at(block: &[u8], offset: usize) -> Self {
        Self::read(block.get(offset * SUMMARY_ENTRY_BYTES..JOURNAL_AT).unwrap_or_default())
    }

    /// Writes the entry over its place in a summary block; nothing if the block has no such place.
    pub fn write_at(&self, block: &mut [u8], offset: usize) {
        self.write(block.get_mut(offset * SUMMARY_ENTRY_BYTES..JOURNAL_AT).unwrap_or_default());
    }
}

/// What the blocks of a segment are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum SummaryKind {
    /// Data.
    #[default]
    Data,
    /// Nodes.
    Node,
}

/// The summary block of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SummaryBlock {
    /// Of each block of the segment, who points to it.
    pub entries: Box<[SummaryEntry; SUMMARY_ENTRIES]>,
    /// The journal, as it stands there: see [`NatJournal::parse`], [`SitJournal::parse`].
    pub journal: Box<[u8; JOURNAL_BYTES]>,
    /// What the segment's blocks are.
    pub kind: SummaryKind,
    /// The footer's checksum, which the kernel neither writes nor reads.
    pub check_sum: u32,
}

impl SummaryBlock {
    /// One without entries and journal.
    #[must_use]
    pub fn new(kind: SummaryKind) -> Self {
        Self {
            entries: Box::new([SummaryEntry::default(); SUMMARY_ENTRIES]),
            journal: Box::new([0; JOURNAL_BYTES]),
            kind,
            check_sum: 0,
        }
    }

    /// Reads a summary block.
    ///
    /// # Errors
    /// A kind that there is none of, or a block that is cut short. `place` is where it lies.
    pub fn parse(block: &[u8], place: Place) -> Result<Self, FormatError> {
        let cut = FormatError::corrupt(place, 0, "is cut short");
        let block: &[u8; BLOCK_BYTES] = block.first_chunk().ok_or(cut)?;
        let kind = match block[SUMMARY_FOOTER_AT] {
            0 => SummaryKind::Data,
            1 => SummaryKind::Node,
            _ => {
                let what = "is a summary neither of data nor of nodes";
                return Err(FormatError::corrupt(place, SUMMARY_FOOTER_AT, what));
            }
        };
        let mut read = Self::new(kind);
        let entries = block.chunks_exact(SUMMARY_ENTRY_BYTES);
        for (entry, bytes) in read.entries.iter_mut().zip(entries) {
            *entry = SummaryEntry::read(bytes);
        }
        read.journal.copy_from_slice(&block[JOURNAL_AT..SUMMARY_FOOTER_AT]);
        read.check_sum = u32_at(block, SUMMARY_FOOTER_AT + 1);
        Ok(read)
    }

    /// Writes the summary over a block; nothing over less than one.
    pub fn encode(&self, block: &mut [u8]) {
        let Some(block) = block.first_chunk_mut::<BLOCK_BYTES>() else { return };
        let entries = block.chunks_exact_mut(SUMMARY_ENTRY_BYTES);
        for (entry, bytes) in self.entries.iter().zip(entries) {
            entry.write(bytes);
        }
        block[JOURNAL_AT..SUMMARY_FOOTER_AT].copy_from_slice(&self.journal[..]);
        block[SUMMARY_FOOTER_AT] = self.kind as u8;
        put_u32(block, SUMMARY_FOOTER_AT + 1, self.check_sum);
    }
}

/// The compacted summaries of the three data logs, and both journals.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CompactSummaries {
    /// The NAT's journal.
    pub nat: NatJournal,
    /// The SIT's journal.
    pub sit: SitJournal,
    /// The entries of the hot, the warm and the cold data log, from their segments' first block on.
    pub entries: [Vec<SummaryEntry>; 3],
}

/// Where compacted entries lie, from the first of them on.
fn compact_places() -> impl Iterator<Item = Range<usize>> {
    let first = 2 * JOURNAL_BYTES;
    (0..COMPACT_BLOCKS_MAX as usize).flat_map(move |block| {
        let start = block * BLOCK_BYTES + if block == 0 { first } else { 0 };
        let end = block * BLOCK_BYTES + COMPACT_END;
        let starts = (start..=end - SUMMARY_ENTRY_BYTES).step_by(SUMMARY_ENTRY_BYTES);
        starts.map(|at| at..at + SUMMARY_ENTRY_BYTES)
    })
}

/// Blocks that so many compacted entries take; `None` if they take more than two, and are to be written
/// as three summary blocks (`f2fs_npages_for_summary_flush`).
#[must_use]
pub fn compact_blocks(entries: usize) -> Option<u32> {
    match entries.checked_sub(1) {
        None => Some(1),
        Some(last) => compact_places().nth(last).map(|at| (at.start / BLOCK_BYTES) as u32 + 1),
    }
}

impl CompactSummaries {
    /// Reads them from their blocks, in which the three data logs have so many entries.
    ///
    /// # Errors
    /// Blocks that do not hold as many, or a journal that is unsound. `pack` is the pack they lie in.
    pub fn parse(blocks: &[u8], counts: [usize; 3], pack: u32) -> Result<Self, FormatError> {
        let place = Place::PackSummary(pack);
        let nat = NatJournal::parse(blocks.get(..JOURNAL_BYTES).unwrap_or_default(), place)?;
        let sit = blocks.get(JOURNAL_BYTES..2 * JOURNAL_BYTES).unwrap_or_default();
        let sit = SitJournal::parse(sit, place)?;
        let mut places = compact_places();
        let mut log = |count: usize| {
            let read: Vec<_> = places
                .by_ref()
                .take(count)
                .map_while(|at| blocks.get(at).map(SummaryEntry::read))
                .collect();
            let cut = FormatError::corrupt(place, blocks.len(), "hold not all entries of the logs");
            if read.len() == count { Ok(read) } else { Err(cut) }
        };
        let [hot, warm, cold] = counts;
        Ok(Self { nat, sit, entries: [log(hot)?, log(warm)?, log(cold)?] })
    }

    /// How many blocks they take; `None` if they take too many.
    #[must_use]
    pub fn blocks(&self) -> Option<u32> {
        compact_blocks(self.entries.iter().map(Vec::len).sum())
    }

    /// Writes them over as many blocks as they take. Entries without room are not written.
    pub fn encode(&self, blocks: &mut [u8]) {
        self.nat.encode(blocks.get_mut(..JOURNAL_BYTES).unwrap_or_default());
        self.sit.encode(blocks.get_mut(JOURNAL_BYTES..2 * JOURNAL_BYTES).unwrap_or_default());
        for (entry, at) in self.entries.iter().flatten().zip(compact_places()) {
            entry.write(blocks.get_mut(at).unwrap_or_default());
        }
    }
}

const _: () = assert!(SUMMARY_FOOTER_AT + 5 == BLOCK_BYTES);
