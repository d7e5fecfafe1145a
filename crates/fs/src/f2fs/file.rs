//! Lengths and holes of files (fs/f2fs/file.c).

use super::inode::{Dirty, Inode};
use super::rules::OmittedRule;
use super::volume::Volume;
use crate::contract::{Allocate, FsError, Result};
use crate::vfs::content::{self, Writer};
use crate::vfs::{DataPath, PAGE};
use std::rc::Rc;

impl Volume {
    /// Changes the length of a file; the caller holds its lock alone (`f2fs_setattr`, `f2fs_truncate`).
    pub(crate) async fn set_length(self: &Rc<Self>, inode: &Rc<Inode>, size: u64) -> Result<()> {
        let shrinks = size < inode.size.get();
        if !shrinks {
            if inode.is_inline() && size > inode.inline_capacity() {
                self.convert_inline(inode).await?;
            }
            self.empty_tail(inode, size).await?;
            inode.set_size(size);
            inode.touch(self.mount.env.now(), true);
            inode.mark(Dirty::Content);
            return Ok(());
        }
        if !inode.is_inline() {
            // The zeroes after the new end are on the device before the end is.
            content::zero_tail(self, inode, size).await?;
        }
        let _cut = inode.invalidate_lock.write().await;
        inode.set_size(size);
        let first = size.div_ceil(PAGE);
        inode.pages.written(0..u64::MAX).await;
        self.forget_pages(inode, first);
        let op = self.begin().await?;
        let _extents = inode.extent_lock.write().await;
        if inode.is_inline() {
            self.cut_inline_page(inode, size);
            self.cut_inline(&op, inode, size).await?;
        } else {
            self.nodes.cut_from(&op, &self.segments, inode, first).await?;
        }
        // Reading ahead may have brought back what still had a block.
        self.forget_pages(inode, first);
        inode.touch(self.mount.env.now(), true);
        inode.mark(Dirty::Content);
        Ok(())
    }

    /// A file is to grow to `size`, and reads as zeroes where it is not written: blocks after its end, which a power cut
    /// left there, go. The kernel shows what they hold. Where the file keeps its size, pages after its end stay reserved;
    /// elsewhere roll-forward would take them for a longer file.
    pub(super) async fn empty_tail(&self, inode: &Inode, size: u64) -> Result<()> {
        let grows = size > inode.size.get() && !inode.is_inline();
        if !grows
            || self.mount.omits(OmittedRule::GrowthTail)
            || !inode.may_have_tail.replace(false)
        {
            return Ok(());
        }
        let _cut = inode.invalidate_lock.write().await;
        let first = inode.size.get().div_ceil(PAGE);
        inode.pages.written(first..u64::MAX).await;
        self.forget_pages(inode, first);
        let op = self.begin().await?;
        let _extents = inode.extent_lock.write().await;
        match inode.keeps_size() {
            true => self.nodes.free_blocks(&op, &self.segments, inode, &(first..u64::MAX)).await?,
            false => self.nodes.free_pages(&op, &self.segments, inode, &(first..u64::MAX)).await?,
        }
        // Cleaning may have brought back what still had a block.
        self.forget_pages(inode, first);
        Ok(())
    }

    /// Forgets the pages of a file from one on.
    fn forget_pages(&self, inode: &Inode, first: u64) {
        inode.pages.discard(first..u64::MAX);
        inode.moving.borrow_mut().split_off(&first);
    }

    /// The page of inline content ends at `size`.
    fn cut_inline_page(&self, inode: &Inode, size: u64) {
        let Some(content) = inode.pages.peek(0) else { return };
        let zeroes = nandscape_block::SectorData::Tag(nandscape_block::Tag::ZERO);
        if let Some(cut) = content.overlaid(size as usize..PAGE as usize, &zeroes) {
            inode.pages.write(0, cut, false);
        }
    }

    /// Gives a range of a file its blocks, or takes them; the caller holds the inode's lock alone (`f2fs_fallocate`).
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
        if !matches!(what, Allocate::Reserve { .. }) {
            inode.check_changeable()?;
        }
        self.convert_inline(inode).await?;
        if !matches!(what, Allocate::Reserve { .. }) {
            self.punch(writer, inode, offset, end).await?;
        }
        let pages = offset / PAGE..end.div_ceil(PAGE);
        let (done, size) = match what {
            Allocate::PunchHole => (Ok(()), 0),
            Allocate::Reserve { keep_size } | Allocate::ZeroRange { keep_size } => {
                self.empty_tail(inode, if keep_size { 0 } else { end }).await?;
                let reserved = self.reserve_some(inode, &pages).await;
                if keep_size && end > inode.size.get() {
                    inode.raw.borrow_mut().advise |= super::format::advise::KEEP_SIZE;
                }
                // With too little space the file has what it got: roll-forward would make it so long.
                let (done, reached) = match reserved {
                    Ok(all) if all >= pages.end => (Ok(()), end),
                    Ok(some) => (Err(FsError::NoSpace), some * PAGE),
                    Err(error) => (Err(error), 0),
                };
                (done, if keep_size { 0 } else { reached })
            }
        };
        inode.set_size(inode.size.get().max(size));
        inode.touch(self.mount.env.now(), true);
        inode.mark(Dirty::Content);
        done
    }

    /// Makes a hole: zeroes in the pages at its ends, no blocks in between (`punch_hole`).
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
        inode.pages.discard(first..last);
        let op = self.begin().await?;
        let _extents = inode.extent_lock.write().await;
        self.nodes.free_pages(&op, &self.segments, inode, &(first..last)).await?;
        // Reading ahead may have brought a page back before its block was gone.
        inode.pages.discard(first..last);
        Ok(())
    }
}
