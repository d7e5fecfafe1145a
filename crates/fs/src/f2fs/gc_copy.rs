//! Copies: how cleaning moves nodes and blocks of directories where the GC journal is to note it. They are written as
//! they lie on the device, and not as memory has them by now: a mount that finds the move and no checkpoint after it
//! shows what the last checkpoint has. What is dirty in memory stays dirty.
//!
//! Invariants: what is copied has no write of its own on its way; copies leave the chain of roll-forward alone.
//!
//! A copy is on the device before anything leads to it, so what reads a block beside the copy finds its content at
//! either place. What has gone elsewhere meanwhile leaves the copy to nothing.

use super::cpu::Work;
use super::format::{BLOCK_BYTES, BlockAddr, MovedBlock, NodeFooter, SegmentType, SummaryEntry};
use super::gc::{Cleaning, DirBlock};
use super::inode::Inode;
use super::node::{Found, Walks};
use super::operations::Op;
use super::rules::OmittedRule;
use crate::cache::read_pages;
use crate::contract::{FsError, Result};
use crate::vfs::writeback::FileBacking;
use nandscape_block::{Flags, Lba, SectorData};
use nandscape_rt::combine::in_turn;
use nandscape_rt::invariant;
use std::rc::Rc;

/// A block that lies twice on the device.
pub(super) struct Copy {
    pub(super) at: BlockAddr,
    pub(super) summary: SummaryEntry,
    new: BlockAddr,
    content: SectorData,
}

impl Cleaning<'_> {
    /// Moves node blocks.
    pub(super) async fn copy_nodes(&self, blocks: &[(BlockAddr, SummaryEntry)]) -> Result<()> {
        let op = self.volume.operations.begin().await?;
        let mut current = Vec::new();
        for (at, summary) in blocks {
            self.volume.mount.pay(Work::Move).await;
            if self.volume.nodes.node_entry(summary.nid).await?.block_addr == *at {
                current.push((*at, *summary));
            }
        }
        let log = match self.volume.mount.options.active_logs {
            2 => SegmentType::HotNode,
            _ => SegmentType::ColdNode,
        };
        let mut moved = 0;
        for copy in self.copy_blocks(&op, log, &current).await? {
            moved += u64::from(self.publish_node(&op, &copy).await?);
        }
        let mut counts = self.volume.cleaner.counts.get();
        counts.node_blocks += moved;
        self.volume.cleaner.counts.set(counts);
        Ok(())
    }

    /// Moves blocks of directories.
    pub(super) async fn copy_dirs(&self, blocks: Vec<DirBlock>) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let op = self.volume.operations.begin().await?;
        let log = match self.volume.mount.options.active_logs {
            2 => SegmentType::HotData,
            _ => SegmentType::ColdData,
        };
        let places: Vec<_> = blocks.iter().map(|block| (block.at, block.summary)).collect();
        let copies = self.copy_blocks(&op, log, &places).await?;
        let mut moved = 0;
        for (copy, DirBlock { dir, page, .. }) in copies.into_iter().zip(&blocks) {
            moved += u64::from(self.publish_dir_block(&op, dir, *page, &copy).await?);
        }
        let mut counts = self.volume.cleaner.counts.get();
        counts.data_blocks += moved;
        self.volume.cleaner.counts.set(counts);
        Ok(())
    }

    /// Copies blocks to the end of a log, in order; they are on the device when this returns, and valid at both places.
    async fn copy_blocks(
        &self,
        _op: &Op,
        log: SegmentType,
        blocks: &[(BlockAddr, SummaryEntry)],
    ) -> Result<Vec<Copy>> {
        invariant!(log != SegmentType::WarmNode, "copies leave the chain of roll-forward alone");
        let sent = self.volume.writes.metadata_in_flight.mark();
        // What was sent lately is there to be read.
        self.volume.writes.metadata_in_flight.settle().await;
        invariant!(
            self.volume.writes.metadata_in_flight.is_settled(sent),
            "no write of what is copied is on its way"
        );
        self.volume.mount.check_running()?;
        let device = &self.volume.mount.env.device;
        let reads = blocks.iter().map(|(at, _)| device.read(Lba(at.0.into()), 1));
        let contents = in_turn(reads.collect::<Vec<_>>()).await;
        let mut copies = Vec::new();
        for ((at, summary), content) in blocks.iter().zip(contents) {
            let content = content?.sector(0);
            self.volume.prepare_log(log, 1).await?;
            let now = self.volume.checkpoints.mounted_time();
            let allocated =
                self.volume.segments.borrow_mut().allocate(log, BlockAddr::NULL, *summary, now);
            // Copies before it would be valid without an owner.
            let allocated = allocated.map_err(|error| self.volume.writes.stop(error))?;
            copies.push(Copy { at: *at, summary: *summary, new: allocated.at, content });
            for (segment, summaries) in allocated.into_full() {
                self.volume.segments.meta.keep_summaries(segment, &summaries)?;
            }
        }
        let blocks = copies.iter().map(|copy| (copy.new, copy.content.clone())).collect();
        let written = self
            .volume
            .writes
            .write_blocks(&self.volume.segments, blocks, None, (Flags::META, Flags::NONE))
            .await;
        written.map_err(|error| self.volume.writes.stop(error))?;
        Ok(copies)
    }

    /// A node lies where its copy is, unless it went elsewhere meanwhile; whether it does. A node that was written since
    /// the last checkpoint may be one of the chain that roll-forward follows by its place: its move is not noted, and
    /// that place is kept.
    async fn publish_node(&self, _op: &Op, copy: &Copy) -> Result<bool> {
        let nid = copy.summary.nid;
        loop {
            match self.volume.nodes.node_entry(nid).await {
                Ok(known) if known.block_addr == copy.at => {}
                _ => break,
            }
            // Not while it is being read from its old place.
            match self.volume.nodes.read_node(nid, |_| ()).await {
                Ok(()) => {}
                Err(FsError::NoEntry) => break,
                Err(error) => return Err(self.volume.writes.stop(error)),
            }
            let Some(known) = self.volume.nodes.nat.borrow().known(nid) else { continue };
            if known.block_addr != copy.at {
                break;
            }
            self.volume.nodes.nat.borrow_mut().relocate(nid, known, copy.new);
            self.volume.segments.borrow_mut().invalidate(copy.at)?;
            let is_chained = copy.content.expand().is_none_or(|bytes: Box<[u8; BLOCK_BYTES]>| {
                self.volume.checkpoints.is_recoverable(NodeFooter::parse(&bytes).cp_ver)
            });
            if !is_chained || self.volume.mount.omits(OmittedRule::GcChainNodes) {
                self.volume.cleaner.note_move(copy.at, copy.new, MovedBlock::Node(nid));
            }
            return Ok(true);
        }
        self.volume.segments.borrow_mut().invalidate(copy.new)?;
        Ok(false)
    }

    /// A block of a directory lies where its copy is, unless it went elsewhere meanwhile; whether it does.
    async fn publish_dir_block(
        &self,
        op: &Op,
        dir: &Rc<Inode>,
        page: u64,
        copy: &Copy,
    ) -> Result<bool> {
        let backing = FileBacking(Rc::clone(self.volume));
        while !dir.deleted.get() && !dir.has_inline_names() {
            // Not while it is being read from its old place.
            read_pages(&backing, &dir.pages, u16::MAX, page..page + 1).await?;
            self.volume.nodes.pay_walks(dir, &(page..page + 1), Walks::First).await;
            let _extents = dir.extent_lock.write().await;
            let Found::Node(dnode) = self.volume.nodes.find_dnode(dir, page).await? else { break };
            if self.volume.nodes.addresses(dnode, 1).await?.first() != Some(&copy.at) {
                break;
            }
            if dir.pages.peek(page).is_none() {
                continue;
            }
            self.volume.nodes.set_address(op, dnode, copy.new).await?;
            self.volume.segments.borrow_mut().invalidate(copy.at)?;
            dir.note_moved(&(page..page + 1), copy.new);
            self.volume.cleaner.note_page(dir, page, copy.at, copy.new);
            return Ok(true);
        }
        self.volume.segments.borrow_mut().invalidate(copy.new)?;
        Ok(false)
    }
}
