//! Blocks ahead of data, and holes.

use super::data_path::MAP_CREDITS;
use super::inode::Inode;
use super::rules::OmittedRule;
use super::volume::Volume;
use crate::contract::{Allocate, Caller, FsError, Result};
use crate::vfs::content::{self, Writer};
use crate::vfs::{DataPath, Mapped, PAGE, Pages};
use std::rc::Rc;

/// Blocks allocated in one transaction.
const MAP_BLOCKS: u64 = 32_767;

impl Volume {
    /// Gives blocks to a range of a file or takes them; the caller holds the inode's lock exclusively.
    pub(crate) async fn allocate(
        self: &Rc<Self>,
        writer: &Writer,
        inode: &Rc<Inode>,
        what: Allocate,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        if len == 0 {
            return Err(FsError::Invalid("no bytes to allocate"));
        }
        let end = self.check_range(inode, offset, len)?;
        if matches!(what, Allocate::Reserve { .. }) {
            inode.check_addable()?;
        } else {
            inode.check_changeable()?;
            self.commit_length(inode, offset, end).await?;
            self.punch(writer, inode, offset, end).await?;
        }
        let pages = offset / PAGE..end.div_ceil(PAGE);
        let unwritten = !self.omits(OmittedRule::FallocateWritten);
        let (done, size) = match what {
            Allocate::PunchHole => (Ok(()), 0),
            Allocate::Reserve { keep_size } | Allocate::ZeroRange { keep_size } => {
                let reserved = self.allocate_range(writer.caller, inode, &pages, unwritten).await;
                let grows = reserved.is_ok() && !keep_size;
                (reserved, if grows { end } else { 0 })
            }
        };
        let tx = self.meta.begin(4, 0).await?;
        inode.set_size(inode.size.get().max(size));
        inode.raw.borrow_mut().size = inode.size.get();
        inode.touch(self.env.now(), true);
        self.meta.write_inode(&tx, inode, !self.omits(OmittedRule::FdatasyncSize)).await?;
        tx.stop();
        done
    }

    /// Delayed pages bring the length to disk when they are written. Those of a range that reaches the end of the file
    /// are about to go: the length comes first, since a sync that runs beside this finds them no more. After
    /// `ext4_update_disksize_before_punch`.
    async fn commit_length(&self, inode: &Inode, offset: u64, end: u64) -> Result<()> {
        let size = inode.size.get();
        if !(offset..=end).contains(&size) || inode.raw.borrow().size >= size {
            return Ok(());
        }
        let tx = self.meta.begin(4, 0).await?;
        inode.raw.borrow_mut().size = size;
        self.meta.write_inode(&tx, inode, true).await?;
        tx.stop();
        Ok(())
    }

    /// Makes a hole: zeroes in the pages at its ends, no blocks in between.
    async fn punch(
        self: &Rc<Self>,
        writer: &Writer,
        inode: &Rc<Inode>,
        offset: u64,
        end: u64,
    ) -> Result<()> {
        let _cut = inode.invalidate_lock.write().await;
        let (first, last) = (offset.div_ceil(PAGE), end / PAGE);
        let zero = async |from, to| {
            writer.throttle.note(content::zero_in_page(self, inode, from, to - from).await?);
            Ok(())
        };
        if offset / PAGE == end / PAGE {
            return zero(offset, end).await;
        }
        zero(offset, first * PAGE).await?;
        zero(last * PAGE, end).await?;
        inode.pages.written(first..last).await;
        self.env.space.unreserve(inode.pages.discard(first..last));
        self.free_range(inode, first..last).await?;
        // Reading ahead may have brought a page back before its block was gone.
        inode.pages.discard(first..last);
        Ok(())
    }
    /// Gives blocks, which read as zeroes as long as they are `unwritten`, to what has none in a range.
    pub(super) async fn allocate_range(
        &self,
        caller: Caller,
        inode: &Inode,
        range: &Pages,
        unwritten: bool,
    ) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let extents = inode.extent_lock.read().await;
            let mapped = self.meta.map_extent(inode, at, range.end - at).await?;
            drop(extents);
            if let Mapped::Hole(blocks) = mapped {
                at += self.allocate_some(caller, inode, &(at..at + blocks), unwritten).await?;
            } else {
                at += mapped.blocks();
            }
        }
        Ok(())
    }

    /// One step of it; returns how many blocks it got on.
    async fn allocate_some(
        &self,
        caller: Caller,
        inode: &Inode,
        range: &Pages,
        unwritten: bool,
    ) -> Result<u64> {
        let wanted = (range.end - range.start).min(MAP_BLOCKS);
        let reservation = self.reserve(caller, wanted)?;
        let tx = self.meta.begin(MAP_CREDITS, 0).await?;
        let extents = inode.extent_lock.write().await;
        let mapped = self.meta.map_extent(inode, range.start, wanted).await?;
        let Mapped::Hole(wanted) = mapped else { return Ok(mapped.blocks()) };
        let goal = self.meta.goal(inode, range.start).await?;
        let taken = self.meta.alloc.take_blocks(&self.meta, &tx, goal, wanted as u32).await?;
        drop(reservation);
        let blocks = taken.end - taken.start;
        self.meta.map_blocks(&tx, inode, range.start, taken, unwritten).await?;
        drop(extents);
        self.meta.write_inode(&tx, inode, true).await?;
        tx.stop();
        Ok(blocks)
    }
}
