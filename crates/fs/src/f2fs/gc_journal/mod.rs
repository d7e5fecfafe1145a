//! The GC journal of a mounted volume (`reclaim = "gc-journal"`): segments that cleaning has emptied are free without a
//! checkpoint, once a journal block is durable that says where their blocks are now. After Gwak, Kang and Shin, "GC
//! journaling" (ISCE 2015), which leaves out most of what makes it safe; docs/semantics/f2fs.md has the rules.
//!
//! - A *move* is noted where the new place is given, within the operation that gives it, and belongs to the checkpoint
//!   before it: the next one forgets it.
//! - Moves are journalled within one operation, so that no checkpoint comes between: what they moved is on the device,
//!   the blocks are written with PREFLUSH and FUA, then the old places are not kept any more, and segments without a kept
//!   block are free.
//! - What no journal block can stand for stays kept, and its segment prefree: blocks that are invalid now and that the
//!   last checkpoint leads to, nodes of the chain of fsyncs, and, in the paper's format, blocks of fsynced files.
//! - Both copies of the superblock are marked before the first block is written.

mod mark;
mod paper;
pub(super) mod read;
mod replay;

use super::checkpoints::Reason;
use super::format::{
    BLOCK_BYTES, BlockAddr, GcJournalArea, GcJournalFormat, MovedBlock, PAPER_ENTRIES, PaperBlock,
    PaperEntry, SAFE_ENTRIES, SafeBlock, SafeEntry, SegNo, SegmentType,
};
use super::options::{MountOptions, Reclaim};
use super::rules::OmittedRule;
use super::volume::{Op, Volume};
use crate::contract::{FsError, Result};
use nandscape_block::{Flags, Fua, SectorData};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
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
    format: GcJournalFormat,
    /// Blocks after which a checkpoint is written.
    most: u32,
    /// Blocks written since the last checkpoint.
    used: Cell<u32>,
    /// Moves since the last checkpoint that no block has.
    moves: RefCell<Vec<SafeEntry>>,
    /// Inodes of which a node was written to the warm node log since the last checkpoint.
    chained: RefCell<BTreeSet<u32>>,
    is_marked: Cell<bool>,
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

    /// A checkpoint has all moves.
    pub(crate) fn note_checkpoint(&self, keeps_moves: bool) {
        self.used.set(0);
        self.chained.borrow_mut().clear();
        if !keeps_moves {
            self.moves.borrow_mut().clear();
        }
    }

    fn count(&self, change: impl FnOnce(&mut JournalCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Blocks with these moves, from the next place of the area on; none if they find no room.
    fn encode(
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

impl Volume {
    /// Whether a mount journals what cleaning moves.
    pub(super) const fn journals_moves(&self) -> bool {
        self.gc_journal.is_some()
    }

    /// Cleaning has moved a block, or gives it a new place now. In the paper's format a block whose file's nodes were
    /// written since the checkpoint is not noted: a replay could not say which came first.
    pub(super) fn note_move(&self, old: BlockAddr, new: BlockAddr, moved: MovedBlock) {
        let Some(journal) = &self.gc_journal else { return };
        let is_chained = match moved {
            MovedBlock::Data { ino, .. } => journal.chained.borrow().contains(&ino.0),
            MovedBlock::Node(_) => false,
        };
        if !is_chained || self.omits(OmittedRule::GcFsynced) {
            journal.moves.borrow_mut().push(SafeEntry { old, new, moved });
        }
    }

    /// Journals the moves that were noted, and makes free what they permit; writes a checkpoint instead if the area has
    /// no room for them. Only cleaning in the foreground does, one at a time.
    ///
    /// # Errors
    /// An error of a write stops the volume.
    pub(super) async fn journal_moves(self: &Rc<Self>) -> Result<()> {
        let Some(journal) = &self.gc_journal else { return Ok(()) };
        if journal.moves.borrow().is_empty() {
            return Ok(());
        }
        self.mark_volume(journal).await.map_err(|error| self.stop(error))?;
        let op = self.begin().await?;
        let moves = std::mem::take(&mut *journal.moves.borrow_mut());
        let chain = self.segments.borrow().next_block(SegmentType::WarmNode);
        let version = self.checkpoints.last.borrow().checkpoint_ver;
        if self.omits(OmittedRule::GcFull) && journal.encode(&moves, version, chain).is_none() {
            journal.used.set(0);
        }
        let Some(blocks) = journal.encode(&moves, version, chain) else {
            drop(op);
            journal.count(|counts| counts.full += 1);
            return self.write_checkpoint(Reason::Space).await.map(drop);
        };
        if self.omits(OmittedRule::GcReuse) {
            self.free_moved(&op, journal, &moves);
        }
        if self.omits(OmittedRule::GcDiscard) {
            self.discard_prefree().await;
        }
        let count = blocks.len();
        self.write_journal(blocks).await.map_err(|error| self.stop(error))?;
        journal.used.set(journal.used.get() + count as u32);
        journal.count(|counts| {
            counts.blocks += count as u64;
            counts.entries += moves.len() as u64;
        });
        self.free_moved(&op, journal, &moves);
        Ok(())
    }

    /// Writes journal blocks: what they vouch for is durable before them, and they are when this returns.
    async fn write_journal(&self, blocks: Vec<(BlockAddr, SectorData)>) -> Result<()> {
        if !self.omits(OmittedRule::GcSettle) {
            self.metadata_in_flight.settle().await;
            self.check_running()?;
        }
        let honours = self.env.device.caps().fua == Fua::Honoured;
        let durable = !self.omits(OmittedRule::GcFua);
        let fua = if durable && honours { Flags::FUA } else { Flags::NONE };
        let preflush =
            if self.omits(OmittedRule::GcPreflush) { Flags::NONE } else { Flags::PREFLUSH };
        self.write_blocks(blocks, None, (Flags::META | Flags::SYNC | fua, preflush)).await?;
        if durable && !honours {
            self.env.device.flush().await?;
        }
        Ok(())
    }

    /// A durable journal stands for these old places: segments of which nothing else is kept are free.
    fn free_moved(self: &Rc<Self>, _op: &Op, journal: &GcJournal, moves: &[SafeEntry]) {
        let freed = {
            let mut segments = self.segments.borrow_mut();
            segments.unkeep(moves.iter().map(|entry| entry.old));
            if self.omits(OmittedRule::GcKeepNew) {
                segments.unkeep(moves.iter().map(|entry| entry.new));
            }
            segments.release_unkept()
        };
        journal.count(|counts| counts.segments += freed.len() as u64);
        self.note_freed(freed);
    }

    /// Segments are free.
    pub(super) fn note_freed(self: &Rc<Self>, freed: Vec<SegNo>) {
        for segment in &freed {
            self.background_victims.borrow_mut().remove(&self.layout.section_of(*segment));
        }
        self.discard_segments(freed);
    }
}
