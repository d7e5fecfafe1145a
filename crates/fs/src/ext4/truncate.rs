//! Taking blocks from files: truncation, holes, and the end of an inode.
//!
//! A large file does not fit one transaction, so it is cut in steps, each of which leaves a sound
//! file; the list of orphans makes sure that the steps go on after a power cut.

use super::extents::Logical;
use super::format::{Extent, mode};
use super::inode::Inode;
use super::options::DataMode;
use super::rules::OmittedRule;
use super::tx::Tx;
use super::volume::Volume;
use crate::contract::{Kind, Result};
use crate::vfs::content;
use std::rc::Rc;

/// Extents cut in one step.
const STEP_EXTENTS: usize = 8;
/// Blocks cut in one step, where each must be revoked.
const STEP_REVOKES: u64 = 1024;
/// Credits of a step: the tree, and bitmap and descriptor of up to two groups an extent.
const STEP_CREDITS: u32 = 16 + 4 * STEP_EXTENTS as u32;

impl Volume {
    /// Whether the journal may hold copies of a file's blocks.
    fn is_journalled(&self, inode: &Inode) -> bool {
        inode.kind() != Kind::File || self.options.data == DataMode::Journal
    }

    /// Unmaps and frees a range of blocks, in steps.
    pub(crate) async fn free_range(&self, inode: &Inode, range: Logical) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let tx = self.meta.begin(STEP_CREDITS, STEP_REVOKES as u32 + 8).await?;
            let map = inode.extent_lock.write().await;
            at = self.free_some(&tx, inode, &(at..range.end)).await?;
            drop(map);
            self.meta.write_inode(&tx, inode, true).await?;
            tx.stop();
        }
        Ok(())
    }

    /// One step of it; returns where to go on.
    async fn free_some(&self, tx: &Tx, inode: &Inode, range: &Logical) -> Result<u64> {
        let revoked = self.is_journalled(inode);
        let limit = if revoked { STEP_REVOKES } else { u64::MAX };
        let (parts, next) = self.meta.unmap_some(tx, inode, range, STEP_EXTENTS, limit).await?;
        for Extent { start, blocks, .. } in parts {
            let blocks = start..start + u64::from(blocks);
            if revoked {
                blocks.clone().try_for_each(|block| tx.forget(block))?;
            }
            self.meta.alloc.free_blocks(&self.meta, tx, blocks).await?;
        }
        Ok(next)
    }

    /// Frees what lies behind the file's length, where no page waits or is in flight, and takes the inode
    /// off the list of orphans.
    pub(crate) async fn cut_blocks(&self, inode: &Inode) -> Result<()> {
        let first = inode.size.get().div_ceil(4096);
        self.free_range(inode, first..1 << 32).await?;
        let tx = self.meta.begin(8, 0).await?;
        self.orphans.remove(&self.meta, &tx, inode).await?;
        self.meta.write_inode(&tx, inode, true).await?;
        tx.stop();
        Ok(())
    }

    /// Changes the length of a file; the caller holds its lock exclusively.
    pub(crate) async fn set_length(self: &Rc<Self>, inode: &Rc<Inode>, size: u64) -> Result<()> {
        let shrinks = size < inode.size.get();
        let _cut = if shrinks { Some(inode.invalidate_lock.write().await) } else { None };
        if shrinks {
            // The zeroes after the new end are on the device before the transaction with that end begins.
            content::zero_tail(self, inode, size).await?;
        }
        let tx = self.meta.begin(10, 0).await?;
        if shrinks {
            // Before the pages are gone: one that is in flight may get a block behind the new end.
            self.orphans.add(&self.meta, &tx, inode).await?;
        }
        inode.set_size(size);
        inode.raw.borrow_mut().size = size;
        inode.touch(self.env.now(), true);
        self.meta.write_inode(&tx, inode, !self.omits(OmittedRule::FdatasyncSize)).await?;
        tx.stop();
        if shrinks { self.cut(inode).await } else { Ok(()) }
    }

    /// Takes the pages and blocks behind the new end, once none of them is being written.
    async fn cut(&self, inode: &Inode) -> Result<()> {
        let first = inode.size.get().div_ceil(4096);
        inode.pages.written(first..u64::MAX).await;
        self.env.space.unreserve(inode.pages.discard(first..u64::MAX));
        self.cut_blocks(inode).await?;
        // Reading ahead may have brought back what still had a block.
        self.env.space.unreserve(inode.pages.discard(first..u64::MAX));
        Ok(())
    }

    /// Frees an inode that has no name and is not open.
    pub(crate) async fn delete(&self, inode: &Rc<Inode>) -> Result<()> {
        let _exclusive = inode.i_rwsem.write().await;
        let _cut = inode.invalidate_lock.write().await;
        if inode.deleted.get() || inode.links() > 0 || inode.opens.get() > 0 {
            return Ok(());
        }
        inode.deleted.set(true);
        inode.pages.written(0..u64::MAX).await;
        let dropped = inode.pages.discard(0..u64::MAX);
        if !self.omits(OmittedRule::DroppedReservation) {
            self.env.space.unreserve(dropped);
        }
        if inode.raw.borrow().has(super::format::flag::EXTENTS) {
            self.free_range(inode, 0..1 << 32).await?;
        }
        let tx = self.meta.begin(24, 2).await?;
        self.drop_xattr_block(&tx, inode).await?;
        self.orphans.remove(&self.meta, &tx, inode).await?;
        let is_dir = inode.raw.borrow().mode & mode::TYPE == mode::DIR;
        {
            let mut raw = inode.raw.borrow_mut();
            raw.dtime = self.env.now().seconds as u32;
            raw.size = 0;
        }
        self.meta.write_inode(&tx, inode, false).await?;
        self.meta.write_slot_now(inode).await?;
        // Before the number is free: from then on it may be another inode's.
        self.inodes.remove(inode.number);
        self.file_commit.exclude(&tx, inode.number);
        self.meta.alloc.free_inode(&self.meta, &tx, inode.number, is_dir).await?;
        tx.stop();
        Ok(())
    }
}
