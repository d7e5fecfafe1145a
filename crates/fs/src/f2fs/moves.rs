//! What a mount keeps for its GC journal: moves of cleaning that no block has yet, how much of the area is used, and whether
//! the volume is marked.

use super::format::{
    BLOCK_BYTES, BlockAddr, GcJournalArea, GcJournalFormat, MovedBlock, PAPER_ENTRIES, PaperBlock,
    PaperEntry, SAFE_ENTRIES, SafeBlock, SafeEntry,
};
use super::options::{MountOptions, Reclaim};
use crate::contract::{FsError, Result};
use nandscape_block::SectorData;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the GC journal did since mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct JournalCounts {
    /// Blocks written.
    pub(crate) blocks: u64,
    /// Moves in them.
    pub(crate) entries: u64,
    /// Segments that they made free.
    pub(crate) segments: u64,
    /// Checkpoints because there was no room for more blocks.
    pub(crate) full: u64,
    /// Times that the volume was marked.
    pub(crate) marks: u64,
}

/// The GC journal of a volume.
pub(crate) struct GcJournal {
    area: GcJournalArea,
    pub(crate) format: GcJournalFormat,
    /// Blocks after which a checkpoint is written.
    most: u32,
    /// Blocks written since the last checkpoint.
    pub(crate) used: Cell<u32>,
    /// Moves since the last checkpoint that no block has.
    pub(crate) moves: RefCell<Vec<SafeEntry>>,
    /// Inodes of which a node was written to the warm node log since the last checkpoint.
    chained: RefCell<BTreeSet<u32>>,
    /// Whether the mount has marked both copies of the superblock.
    pub(crate) is_marked: Cell<bool>,
    pub(crate) counts: Cell<JournalCounts>,
}

impl GcJournal {
    /// The journal of a volume with this area; none if the mount does not use it.
    ///
    /// # Errors
    /// [`FsError::Incompatible`] if the mount is to use one and there is no area.
    pub(crate) fn of(area: Option<GcJournalArea>, options: &MountOptions) -> Result<Option<Self>> {
        if options.reclaim != Reclaim::GcJournal {
            return Ok(None);
        }
        let none = || {
            let what = "reclaim = \"gc-journal\" needs a volume with the area of a GC journal";
            FsError::Incompatible(what.to_owned())
        };
        Ok(Some(Self {
            area: area.ok_or_else(none)?,
            format: options.gc_journal,
            most: options.gc_journal_blocks,
            used: Cell::new(0),
            moves: RefCell::default(),
            chained: RefCell::default(),
            is_marked: Cell::new(false),
            counts: Cell::default(),
        }))
    }

    /// A node of an inode was written to the warm node log, and fsyncs may lead to its blocks by their addresses.
    pub(crate) fn note_chained(&self, ino: u32) {
        if self.format == GcJournalFormat::Paper {
            self.chained.borrow_mut().insert(ino);
        }
    }

    /// Whether what was moved is of a file of which a node was.
    pub(crate) fn is_chained(&self, moved: MovedBlock) -> bool {
        match moved {
            MovedBlock::Data { ino, .. } => self.chained.borrow().contains(&ino.0),
            MovedBlock::Node(_) => false,
        }
    }

    /// A checkpoint has all moves.
    pub(crate) fn note_checkpoint(&self, keeps_moves: bool) {
        self.used.set(0);
        self.chained.borrow_mut().clear();
        if !keeps_moves {
            self.moves.borrow_mut().clear();
        }
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut JournalCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Blocks with these moves, from the next place of the area on; none if they find no room.
    pub(crate) fn encode(
        &self,
        moves: &[SafeEntry],
        checkpoint_ver: u64,
        chain: BlockAddr,
    ) -> Option<Vec<(BlockAddr, SectorData)>> {
        let per_block = match self.format {
            GcJournalFormat::Paper => PAPER_ENTRIES,
            GcJournalFormat::Safe => SAFE_ENTRIES,
        };
        let end = self.used.get() + moves.len().div_ceil(per_block) as u32;
        if end > self.most {
            return None;
        }
        let blocks = (self.used.get()..end).zip(moves.chunks(per_block));
        let blocks = blocks.map(|(index, moves)| {
            let mut bytes = [0; BLOCK_BYTES];
            match self.format {
                GcJournalFormat::Paper => {
                    let entry = |entry: &SafeEntry| PaperEntry { old: entry.old, new: entry.new };
                    let entries = moves.iter().map(entry).collect();
                    PaperBlock { checkpoint_ver, entries }.encode(&mut bytes);
                }
                GcJournalFormat::Safe => {
                    let entries = moves.to_vec();
                    SafeBlock { checkpoint_ver, index, chain, entries }.encode(&mut bytes);
                }
            }
            (self.area.block(index).unwrap_or_default(), SectorData::Bytes(Arc::new(bytes)))
        });
        Some(blocks.collect())
    }
}
