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
//! - Between two checkpoints a place of the area is written once, from its start on.

mod mark;
pub(super) mod read;

use super::checkpoints::Reason;
use super::cleaner::Cleaner;
use super::format::{BlockAddr, MovedBlock, Nid, SafeEntry, SegmentType};
use super::gc::Cleaning;
use super::inode::Inode;
use super::moves::GcJournal;
use super::operations::Op;
use super::rules::OmittedRule;
use crate::contract::Result;
use nandscape_block::SectorData;
use nandscape_rt::invariant;

impl Cleaner {
    /// Whether a mount journals what cleaning moves.
    pub(super) const fn journals_moves(&self) -> bool {
        self.journal.is_some()
    }

    /// Cleaning has moved a block, or gives it a new place now. In the paper's format a block whose file's nodes were
    /// written since the checkpoint is not noted: a replay could not say which came first.
    pub(super) fn note_move(&self, old: BlockAddr, new: BlockAddr, moved: MovedBlock) {
        let Some(journal) = &self.journal else { return };
        if !journal.is_chained(moved) || self.mount.omits(OmittedRule::GcFsynced) {
            journal.moves.borrow_mut().push(SafeEntry { old, new, moved });
        }
    }

    /// Cleaning has moved a page; nothing if it had no block.
    pub(super) fn note_page(&self, inode: &Inode, page: u64, old: BlockAddr, new: BlockAddr) {
        if old.is_block() {
            let moved = MovedBlock::Data { ino: Nid(inode.number), page: page as u32 };
            self.note_move(old, new, moved);
        }
    }
}

impl Cleaning<'_> {
    /// Journals the moves that were noted, and makes free what they permit; writes a checkpoint instead if the area has
    /// no room for them. Only cleaning in the foreground does, one at a time.
    ///
    /// # Errors
    /// An error of a write stops the volume.
    pub(super) async fn journal_moves(&self) -> Result<()> {
        let Some(journal) = &self.volume.cleaner.journal else { return Ok(()) };
        if journal.moves.borrow().is_empty() {
            return Ok(());
        }
        self.volume
            .cleaner
            .mark_volume(journal, (&self.volume.writes, &self.volume.segments))
            .await
            .map_err(|error| self.volume.writes.stop(error))?;
        let op = self.volume.operations.begin().await?;
        let moves = std::mem::take(&mut *journal.moves.borrow_mut());
        if moves.is_empty() {
            // A checkpoint came between, which has them.
            return Ok(());
        }
        let chain = self.volume.segments.borrow().next_block(SegmentType::WarmNode);
        let version = self.volume.checkpoints.last.borrow().checkpoint_ver;
        if self.volume.mount.omits(OmittedRule::GcFull)
            && journal.encode(&moves, version, chain)?.is_none()
        {
            journal.used.set(0);
        }
        let Some(blocks) = journal.encode(&moves, version, chain)? else {
            drop(op);
            journal.count(|counts| counts.full += 1);
            return self.volume.write_checkpoint(Reason::Space).await.map(drop);
        };
        if self.volume.mount.omits(OmittedRule::GcReuse) {
            self.free_moved(&op, journal, &moves);
            self.volume.segments.reset_freed().await;
        }
        if self.volume.mount.omits(OmittedRule::GcDiscard) {
            self.volume.segments.discard_prefree().await;
        }
        let count = blocks.len();
        if let Some(zones) = &self.volume.segments.zones {
            let emptied = zones.empty_journal_zone(&self.volume.mount, journal, count as u32).await;
            emptied.map_err(|error| self.volume.writes.stop(error))?;
        }
        if self.volume.mount.keeps_rules() {
            journal.check_places(&blocks);
        }
        invariant!(journal.is_marked.get(), "superblocks are marked before blocks of the journal");
        self.write_journal(blocks).await.map_err(|error| self.volume.writes.stop(error))?;
        journal.used.set(journal.used.get() + count as u32);
        if let Some(ring) = &journal.ring {
            ring.advance(count as u32);
        }
        journal.count(|counts| {
            counts.blocks += count as u64;
            counts.entries += moves.len() as u64;
        });
        self.free_moved(&op, journal, &moves);
        self.volume.segments.reset_freed().await;
        Ok(())
    }

    /// Writes journal blocks: what they vouch for is durable before them, and they are when this returns.
    async fn write_journal(&self, blocks: Vec<(BlockAddr, SectorData)>) -> Result<()> {
        let sent = self.volume.writes.metadata_in_flight.mark();
        if !self.volume.mount.omits(OmittedRule::GcSettle) {
            self.volume.writes.metadata_in_flight.settle().await;
            self.volume.mount.check_running()?;
        }
        invariant!(
            !self.volume.mount.keeps_rules()
                || self.volume.writes.metadata_in_flight.is_settled(sent),
            "what the journal says moved is on the device"
        );
        let preflush = !self.volume.mount.omits(OmittedRule::GcPreflush);
        self.volume
            .writes
            .write_after_flush(
                &self.volume.segments,
                blocks,
                preflush,
                !self.volume.mount.omits(OmittedRule::GcFua),
            )
            .await
    }

    /// A durable journal stands for these old places: segments of which nothing else is kept are free.
    fn free_moved(&self, _op: &Op, journal: &GcJournal, moves: &[SafeEntry]) {
        let freed = {
            let mut segments = self.volume.segments.borrow_mut();
            segments.unkeep(moves.iter().map(|entry| entry.old));
            if self.volume.mount.omits(OmittedRule::GcKeepNew) {
                segments.unkeep(moves.iter().map(|entry| entry.new));
            }
            segments.release_unkept()
        };
        journal.count(|counts| counts.segments += freed.len() as u64);
        self.volume.note_freed(freed);
    }
}
