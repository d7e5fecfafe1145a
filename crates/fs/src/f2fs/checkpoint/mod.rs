//! Checkpoints: the state that a mount begins with. After fs/f2fs/checkpoint.c.
//!
//! A checkpoint is written in this order, while no operation runs:
//! 1. what files still have in memory goes to places that only memory knows: directory blocks, inodes into their node
//!    pages, node pages;
//! 2. NAT and SIT entries go to the journals of the pack, or to the copies of NAT and SIT blocks that the last
//!    checkpoint does not use;
//! 3. all of that and all but the last block of the pack are on the device (not yet durable);
//! 4. the last block of the pack is written with PREFLUSH and FUA: with it, and not before, the checkpoint is there.
//!
//! Until then the last checkpoint stays whole: nothing that it refers to is written over. After it, prefree segments
//! are free.
//!
//! Invariants:
//! - A pack goes to the place that the last one does not have, with the next version; NAT blocks to their other copies.
//! - When the last block of a pack is sent, no node or block of a directory is dirty, but for blocks that cleaning is to
//!   move, and nothing that the checkpoint leads to is on its way: metadata, what cleaning moved, and with
//!   `data_order = ordered` all file data.
//! - Data counts as flushed by a checkpoint only if none was on its way at that flush.

mod pack;

use super::appended::Appended;
use super::checkpoints::Reason;
use super::cpu::Work;
use super::format::{BlockAddr, NAT_ENTRIES_PER_BLOCK, NatEntry, SegmentType};
use super::inode::Inode;
use super::node::{NodeSet, NodeWrite};
use super::operations::Op;
use super::rules::OmittedRule;
use super::volume::Volume;
use crate::contract::Result;
use nandscape_block::{Flags, SectorData};
use nandscape_rt::{Nanos, defect, invariant};
use std::rc::Rc;
use std::sync::Arc;

/// How often the state is looked at.
const PERIOD: Nanos = Nanos::from_secs(1);
/// Share of all segments that may be prefree, and how many that is at most (`DEF_RECLAIM_PREFREE_SEGMENTS`).
const PREFREE_PERCENT: u32 = 5;
const PREFREE_MAX: u32 = 4096;

impl Volume {
    /// Writes all data, then a checkpoint (`f2fs_sync_fs`).
    pub(crate) async fn sync_fs(self: &Rc<Self>) -> Result<()> {
        if let Some(space) = Appended::of(self) {
            space.fetch_upcalls().await?;
        }
        self.write_checkpoint(Reason::Sync).await?;
        match &self.segments.append {
            Some(append) => append.drain_discards(&self.mount).await,
            None => Ok(()),
        }
    }

    /// Whether the last checkpoint is not what memory has.
    fn is_dirty(&self) -> bool {
        let segments = self.segments.borrow();
        self.nodes.nat.borrow().dirty_entries() > 0
            || segments.has_dirty_entries()
            || !self.nodes.dirty.borrow().is_empty()
            || self.checkpoints.orphans.changed()
            || !self.inodes.lists.dirty.borrow().is_empty()
            || !self.mount.dirty_dirs().is_empty()
            || self.segments.upcalls().is_some_and(|upcalls| upcalls.applied() > 0)
    }

    /// Writes a checkpoint, unless nothing has changed since the last one; whether it did.
    ///
    /// # Errors
    /// An error of a write stops the volume.
    pub(crate) async fn write_checkpoint(self: &Rc<Self>, reason: Reason) -> Result<bool> {
        self.write_checkpoint_and(reason, || ()).await
    }

    /// The same; then, before any operation that the checkpoint does not have, does something that waits for nothing.
    ///
    /// # Errors
    /// As [`Volume::write_checkpoint`]; nothing was done then.
    pub(crate) async fn write_checkpoint_and(
        self: &Rc<Self>,
        reason: Reason,
        then: impl FnOnce(),
    ) -> Result<bool> {
        let _one = self.checkpoints.writing.lock().await;
        let op = self.operations.freeze().await;
        self.mount.check_running()?;
        let is_needed = !matches!(reason, Reason::Sync) || self.is_dirty();
        if is_needed {
            CheckpointWrite { volume: self, op: &op, reason }
                .run()
                .await
                .map_err(|error| self.writes.stop(error))?;
        }
        then();
        Ok(is_needed)
    }

    /// Writes a checkpoint when the last one is old or many segments wait for one, until the volume is unmounted.
    pub(super) async fn checkpoint_in_background(self: &Rc<Self>) {
        loop {
            self.mount.env.rt.sleep(PERIOD.min(self.mount.options.checkpoint_interval)).await;
            if self.mount.env.calls.check_open().is_err() || self.mount.stopped.get() {
                return;
            }
            let age = self.mount.env.rt.now().saturating_sub(self.checkpoints.written_at.get());
            let prefree = self.segments.borrow().prefree_segments();
            let most = (self.segments.borrow().count() * PREFREE_PERCENT / 100).min(PREFREE_MAX);
            let is_due = age >= self.mount.options.checkpoint_interval || prefree > most;
            // An error stops the volume, which every call then says.
            if is_due && self.write_checkpoint(Reason::Sync).await.is_err() {
                return;
            }
        }
    }
}

/// The writing of a checkpoint, while operations are kept out.
struct CheckpointWrite<'a> {
    volume: &'a Rc<Volume>,
    op: &'a Op,
    reason: Reason,
}

impl CheckpointWrite<'_> {
    /// Writes it.
    async fn run(&self) -> Result<()> {
        let before = self.blocks_of_metadata();
        self.flush_files().await?;
        let version = self.volume.checkpoints.last.borrow().checkpoint_ver + 1;
        let sit_in_place = self.volume.mount.omits(OmittedRule::SitInPlace);
        let nat_blocks = self.flush_nat().await?;
        let metadata = {
            let sit = self.volume.segments.borrow_mut().flush_entries(sit_in_place)?;
            if let Some(space) = Appended::of(self.volume) {
                space.prepare_discards().await?;
            }
            let metadata = sit.len() as u64;
            for (at, bytes) in sit {
                self.volume.segments.meta.write(at, bytes);
            }
            metadata
        };
        if self.volume.mount.omits(OmittedRule::EarlyDiscard) {
            self.volume.segments.discard_prefree().await;
        }
        let mut pack = self.build_pack(version)?;
        if let Some(append) = &self.volume.segments.append {
            let number = 1 - self.volume.checkpoints.pack.get();
            let journal = append.discard_journal(&self.volume.mount, version, number)?;
            pack.bits.extend(journal);
        }
        let blocks = nat_blocks + metadata + (pack.blocks.len() + pack.bits.len()) as u64;
        self.volume.mount.pay(Work::Checkpoint(blocks)).await;
        self.write_pack(&pack).await?;
        self.volume.checkpoints.blocks.set(self.volume.checkpoints.blocks.get() + blocks);
        if self.reason == Reason::Space {
            self.volume.checkpoints.of_cleaning.note(self.blocks_of_metadata() - before);
        }
        self.end_checkpoint(pack)?;
        self.volume.segments.reset_freed().await;
        Ok(())
    }

    /// Blocks of metadata that were written since mount; while operations are kept out, logs get no other ones.
    fn blocks_of_metadata(&self) -> u64 {
        let logs: u64 = self.volume.segments.borrow().written().iter().sum();
        logs + self.volume.checkpoints.blocks.get() + self.volume.checkpoints.summary_blocks.get()
    }

    /// Brings what files have in memory to its places: directory blocks, inodes, nodes (`block_operations`).
    async fn flush_files(&self) -> Result<()> {
        loop {
            if !self.volume.mount.omits(OmittedRule::CheckpointDentries) {
                for dir in self.volume.mount.dirty_dirs() {
                    self.volume.send_dir(self.op, &dir).await?;
                }
            }
            self.volume.update_dirty_inodes(self.op).await?;
            NodeWrite { volume: self.volume, op: self.op, marks: None }.send(NodeSet::All).await?;
            if self.volume.mount.omits(OmittedRule::CheckpointWait) {
                break;
            }
            // A page that is on its way and dirty again has its turn after that.
            self.volume.writes.metadata_in_flight.settle().await;
            self.volume.mount.check_running()?;
            let dents = !self.volume.mount.dirty_dirs().is_empty()
                && !self.volume.mount.omits(OmittedRule::CheckpointDentries);
            if !dents && self.volume.nodes.dirty.borrow().is_empty() {
                break;
            }
        }
        if self.volume.mount.options.ordered_data {
            self.volume.writes.data_in_flight.settle().await;
        }
        Ok(())
    }

    /// Writes changed NAT entries that find no room in the journal to NAT blocks. Returns how many blocks these are.
    async fn flush_nat(&self) -> Result<u64> {
        let has_bits = self.volume.nodes.nat.borrow().has_bits();
        let all = has_bits && self.reason == Reason::Umount;
        let sets = self.volume.nodes.nat.borrow_mut().flush_entries(all);
        let blocks = sets.len() as u64;
        let in_place = self.volume.mount.omits(OmittedRule::NatInPlace);
        for (block, set) in sets {
            let from = self.volume.nodes.nat.borrow().current_block(block);
            let mut bytes: Box<super::segment::Block> =
                self.volume.nodes.meta.read(from, |bytes| Box::new(*bytes)).await?;
            for (nid, entry) in set {
                let (_, index) = self.volume.mount.layout.nat_place(nid);
                NatEntry::write_at(&entry, &mut bytes[..], index);
            }
            if has_bits {
                self.volume.nodes.nat.borrow_mut().note_fill(block, taken_in(block, &bytes));
            }
            let to = self.volume.nodes.nat.borrow_mut().flip_block(block, in_place);
            invariant!(
                to != from || in_place,
                "NAT block {block} is not written over where the last checkpoint has it"
            );
            invariant!(
                !has_bits || self.volume.nodes.nat.borrow().is_fill(block, taken_in(block, &bytes)),
                "NAT block {block}: its bits say how full it is"
            );
            self.volume.nodes.meta.write(to, bytes);
        }
        self.volume.nodes.nat.borrow_mut().end_flush();
        Ok(blocks)
    }

    /// Writes a pack: all but its last block, then, when everything else is on the device, that one.
    async fn write_pack(&self, pack: &pack::Pack) -> Result<()> {
        let blocks = (pack.start..)
            .zip(&pack.blocks)
            .map(|(at, block)| (BlockAddr(at), SectorData::Bytes(Arc::new(**block))));
        let mut blocks: Vec<_> = blocks.collect();
        let Some(last) = blocks.pop() else {
            return Err(defect!("a pack has a last block").into());
        };
        let version = pack.checkpoint.checkpoint_ver;
        self.volume.checkpoints.check_pack(pack.start, version);
        let bits = pack.bits.iter();
        blocks.extend(bits.map(|(at, block)| (*at, SectorData::Bytes(Arc::new(**block)))));
        let written = self.volume.writes.write_blocks(
            &self.volume.segments,
            blocks,
            None,
            (Flags::META, Flags::NONE),
        );
        self.volume.send_meta();
        // A page that is on its way and dirty again has its turn after that.
        while self.volume.segments.meta.file.pages.is_busy()
            && !self.volume.mount.omits(OmittedRule::CheckpointWait)
        {
            self.volume.writes.metadata_in_flight.settle().await;
            self.volume.send_meta();
        }
        written.await?;
        self.volume.mount.check_running()?;
        if self.volume.writes.data_in_flight.is_empty() {
            let Volume { writes, .. } = &**self.volume;
            invariant!(
                writes.data_in_flight.is_empty(),
                "data counts as flushed when none is on its way"
            );
            // All of it was on the device before the flush.
            self.volume.inodes.lists.appended.borrow_mut().clear();
            self.volume.inodes.lists.updated.borrow_mut().clear();
            self.volume.inodes.lists.moved.borrow_mut().clear();
        }
        self.check_settled();
        let preflush = !self.volume.mount.omits(OmittedRule::CheckpointPreflush);
        let durable = !self.volume.mount.omits(OmittedRule::CheckpointFua);
        self.volume
            .writes
            .write_after_flush(&self.volume.segments, vec![last], preflush, durable)
            .await?;
        self.volume.checkpoints.note_durable(pack.start, version, pack.crc);
        Ok(())
    }

    /// The last block of the pack is about to be sent: all that the checkpoint leads to is on the device.
    fn check_settled(&self) {
        let Volume { nodes, writes, mount, .. } = &**self.volume;
        if !mount.keeps_rules() {
            return;
        }
        invariant!(nodes.dirty.borrow().is_empty(), "a checkpoint has all nodes");
        // Cleaning makes pages dirty beside a checkpoint, without a change of what they hold.
        let only_moves = |dir: &Rc<Inode>| dir.pages.dirty() <= dir.moving.borrow().len() as u64;
        invariant!(
            mount.dirty_dirs().iter().all(only_moves),
            "a checkpoint has all blocks of directories"
        );
        invariant!(
            writes.metadata_in_flight.is_empty(),
            "what a checkpoint leads to is on the device"
        );
        invariant!(
            !mount.options.ordered_data || writes.data_in_flight.is_empty(),
            "data that a checkpoint leads to is on the device"
        );
    }

    /// The checkpoint is durable.
    fn end_checkpoint(&self, pack: pack::Pack) -> Result<()> {
        let checkpoints = &self.volume.checkpoints;
        checkpoints.pack.set(1 - checkpoints.pack.get());
        checkpoints.crc.set(pack.crc);
        *checkpoints.last.borrow_mut() = pack.checkpoint;
        checkpoints.count.set(checkpoints.count.get() + 1);
        checkpoints.written_at.set(self.volume.mount.env.rt.now());
        let written = self.volume.segments.borrow().written()[SegmentType::WarmNode.number()];
        checkpoints.chain_from.set(written);
        checkpoints.orphans.note_written();
        checkpoints.changed_dirs.borrow_mut().clear();
        self.volume.nodes.space.note_checkpoint();
        self.volume.nodes.free_removed();
        if let Some(journal) = &self.volume.cleaner.journal {
            journal.note_checkpoint(self.volume.mount.omits(OmittedRule::GcCheckpoint));
        }
        let freed = self.volume.segments.borrow_mut().release_prefree();
        self.volume.note_freed(freed);
        if let Some(space) = Appended::of(self.volume) {
            space.release_discards();
        }
        Ok(())
    }
}

/// Numbers of a NAT block that are in use; number 0 is no node's, and counts.
fn taken_in(block: u32, bytes: &super::segment::Block) -> usize {
    let is_taken = |index: &usize| {
        let entry = NatEntry::read_at(bytes, *index);
        entry.block_addr != BlockAddr::NULL || (block == 0 && *index == 0)
    };
    (0..NAT_ENTRIES_PER_BLOCK).filter(is_taken).count()
}
