//! What ext4 answers about the content of its files ([`DataPath`]): where pages are, and where new ones
//! go.
//!
//! The order of a write-back is Linux's. What a run lacks in blocks is allocated and mapped in a
//! transaction, to which the file is attached (`data=ordered`), and submitted before that transaction can
//! commit; the commit waits for what was submitted and needs no transaction for it. Blocks from
//! `fallocate` are marked as written only when the data is on the device.

use super::format::Feature;
use super::inode::Inode;
use super::options::DataMode;
use super::rules::OmittedRule;
use super::tx::Tx;
use super::volume::Volume;
use crate::cache::{PageLocation, WriteRun};
use crate::contract::{Caller, Data, FsError, Kind, Result};
use crate::vfs::content::{self, Places, Writer};
use crate::vfs::writeback::{Submitted, submit};
use crate::vfs::{DataPath, Mapped, PAGE, Pages, VolumeEnv};
use nandscape_block::{Lba, SectorData};
use nandscape_rt::{defect, invariant};
use std::ops::Range;
use std::rc::Rc;

/// Credits for allocating and mapping a run: tree, bitmap, descriptor, inode.
pub(super) const MAP_CREDITS: u32 = 24;
/// The longest file: 2^32 - 1 blocks.
pub(super) const SIZE_MAX: u64 = ((1 << 32) - 1) * PAGE;
/// The longest file without `huge_file`: its blocks are counted in 2^32 - 1 sectors of 512 bytes.
const SIZE_MAX_IN_SECTORS: u64 = ((1 << 32) - 1) / 8 * PAGE;

/// Pages of a run that lie in one piece on the device.
pub(crate) struct MappedExtent {
    pages: Pages,
    /// Its blocks were preallocated.
    unwritten: bool,
    /// Its blocks are new.
    new: bool,
}

impl DataPath for Volume {
    type File = Inode;
    type Placed = MappedExtent;

    fn env(&self) -> &VolumeEnv<Inode> {
        &self.env
    }

    fn available(&self, caller: Caller) -> u64 {
        self.available_blocks(caller)
    }

    /// See `ext4_max_size` in fs/ext4/super.c.
    fn check_range(&self, inode: &Inode, offset: u64, len: u64) -> Result<u64> {
        match inode.kind() {
            Kind::File => {}
            Kind::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid("neither a file nor a directory")),
        }
        let most = if self.meta.has(Feature::HUGE_FILE) { SIZE_MAX } else { SIZE_MAX_IN_SECTORS };
        offset.checked_add(len).filter(|end| *end <= most).ok_or(FsError::FileTooBig)
    }

    fn check_write(&self, inode: &Inode, offset: u64) -> Result<()> {
        inode.check_write(offset)
    }

    fn may_bypass_cache(&self) -> bool {
        self.options.data != DataMode::Journal
    }

    fn sync_passes(&self) -> u32 {
        if self.omits(OmittedRule::RedirtiedPage) { 1 } else { 2 }
    }

    fn sync_waits(&self) -> bool {
        !self.omits(OmittedRule::SyncWait)
    }

    async fn map(&self, inode: &Inode, page: u64, most: u64) -> Result<Mapped> {
        self.meta.map_extent(inode, page, most).await
    }

    async fn locate(&self, inode: &Rc<Inode>, page: u64, pages: u64) -> Result<PageLocation> {
        let _extents = inode.extent_lock.read().await;
        let (start, blocks) = match self.meta.map_extent(inode, page, pages).await? {
            Mapped::Blocks { start, blocks, unwritten: false } => (start, blocks),
            mapped => return Ok(PageLocation::Hole(mapped.blocks())),
        };
        if self.options.data != DataMode::Journal {
            return Ok(PageLocation::At(Lba(start), blocks));
        }
        // The newest content may still be in the journal only.
        let logged = |block: &u64| self.meta.buffers.cached(*block).is_some();
        let on_device = match (start..start + blocks).position(|block| logged(&block)) {
            Some(0) => match self.meta.buffers.cached(start) {
                Some(buffer) => return Ok(PageLocation::Known(buffer.content())),
                None => return Err(defect!("block {start} of a log is in memory").into()),
            },
            Some(before) => before as u64,
            None => blocks,
        };
        let is_home = |block| self.meta.buffers.cached(block).is_none_or(|buffer| buffer.is_home());
        invariant!(
            (start..start + on_device).all(is_home),
            "blocks from {start} on are read from the device where their newest content is home"
        );
        Ok(PageLocation::At(Lba(start), on_device))
    }

    async fn place(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        run: &WriteRun<Inode>,
        at: u64,
        sync: bool,
    ) -> Result<Submitted<MappedExtent>> {
        let extents = inode.extent_lock.read().await;
        let mut mapped = self.meta.map_extent(inode, at, run.end() - at).await?;
        drop(extents);
        let end = at + mapped.blocks();
        let grows = inode.raw.borrow().size < inode.size.get().min(end * PAGE);
        let (mut tx, mut new) = (None, false);
        if mapped.is_hole() || grows {
            let begun = self.meta.begin(MAP_CREDITS, 0).await?;
            let _extents = inode.extent_lock.write().await;
            mapped = self.meta.map_extent(inode, at, run.end() - at).await?;
            if let Mapped::Hole(pages) = mapped {
                mapped = self.allocate_hole(&begun, inode, at, pages).await?;
                new = true;
            }
            let end = at + mapped.blocks();
            let size = inode.raw.borrow().size.max(inode.size.get().min(end * PAGE));
            inode.raw.borrow_mut().size = size;
            self.meta.write_inode(&begun, inode, true).await?;
            tx = Some(begun);
        }
        let Mapped::Blocks { start, blocks, unwritten } = mapped else {
            return Err(FsError::corrupt("extent tree", format!("inode {}", inode.number)));
        };
        let pages = at..at + blocks;
        if unwritten && self.omits(OmittedRule::UnwrittenEarly) {
            Box::pin(self.mark(inode, &pages, true)).await?;
        }
        invariant!(
            tx.is_some() || inode.raw.borrow().size >= inode.size.get().min(pages.end * PAGE),
            "inode {}: the length covers what is written back",
            inode.number
        );
        let extent = MappedExtent { pages: pages.clone(), unwritten, new };
        Ok(submit(&**self, inode, run, (pages, start), sync, extent, || {
            if let Some(tx) = tx {
                if self.options.data == DataMode::Ordered {
                    self.order(tx.tid(), inode);
                }
                tx.stop();
            }
        }))
    }

    /// Blocks that were preallocated hold data now; new ones without data must not show what they held
    /// before.
    async fn write_done(
        &self,
        inode: &Rc<Inode>,
        extent: &MappedExtent,
        ended: Result<()>,
    ) -> Result<()> {
        match ended {
            Ok(()) if extent.unwritten => Box::pin(self.mark(inode, &extent.pages, true)).await,
            Err(error) if extent.new => {
                Box::pin(self.mark(inode, &extent.pages, false)).await?;
                Err(error)
            }
            ended => ended,
        }
    }

    /// A commit releases blocks that transactions freed.
    async fn gain_space(&self) -> Result<bool> {
        if !self.meta.alloc.holds_blocks() {
            return Ok(false);
        }
        self.meta.journal.commit_all().await?;
        Ok(true)
    }

    async fn touch(&self, inode: &Inode) -> Result<()> {
        let now = self.env.now();
        if inode.is_touched(now) {
            return Ok(());
        }
        let tx = self.meta.begin(4, 0).await?;
        inode.touch(now, true);
        self.meta.write_inode(&tx, inode, false).await?;
        tx.stop();
        Ok(())
    }

    async fn preallocate(&self, caller: Caller, inode: &Inode, pages: &Pages) -> Result<()> {
        if self.omits(OmittedRule::AppendSize) {
            let mut raw = inode.raw.borrow_mut();
            raw.size = raw.size.max(pages.end * PAGE);
        }
        let unwritten = !self.omits(OmittedRule::DirectWritten);
        self.allocate_range(caller, inode, pages, unwritten).await
    }

    async fn mark_written(&self, inode: &Inode, pages: &Pages) -> Result<()> {
        self.mark(inode, pages, true).await
    }

    fn grows_on_disk(&self, inode: &Inode, offset: u64, len: u64) -> bool {
        offset.saturating_add(len) > inode.raw.borrow().size
    }

    /// Until the length on disk covers it, what is written there is not the file's: after a power cut it
    /// must not show when the file grows again. So the file is an orphan meanwhile.
    async fn begin_growth(&self, inode: &Rc<Inode>) -> Result<()> {
        let tx = self.meta.begin(6, 0).await?;
        if !self.omits(OmittedRule::AppendOrphan) {
            self.orphans.add(&self.meta, &tx, inode).await?;
        }
        self.meta.write_inode(&tx, inode, true).await?;
        tx.stop();
        Ok(())
    }

    async fn end_growth(&self, inode: &Rc<Inode>, end: u64) -> Result<()> {
        let tx = self.meta.begin(8, 0).await?;
        inode.set_size(inode.size.get().max(end));
        {
            let mut raw = inode.raw.borrow_mut();
            raw.size = raw.size.max(end);
        }
        self.orphans.remove(&self.meta, &tx, inode).await?;
        self.meta.write_inode(&tx, inode, !self.omits(OmittedRule::FdatasyncSize)).await?;
        tx.stop();
        Ok(())
    }

    async fn abandon_growth(&self, inode: &Rc<Inode>) -> Result<()> {
        self.cut_blocks(inode).await
    }

    async fn write_some(
        self: &Rc<Self>,
        writer: &Writer,
        inode: &Rc<Inode>,
        data: (u64, &Data),
        range: Range<u64>,
    ) -> Result<u64> {
        if self.options.data == DataMode::Journal {
            return self.log_some(writer.caller, inode, data, range).await;
        }
        let end = content::delay_some(self, writer, inode, data, range, Places::Unknown).await?;
        inode.set_size(inode.size.get().max(end));
        Ok(end)
    }

    async fn rewrite_page(&self, inode: &Rc<Inode>, page: u64, content: SectorData) -> Result<u64> {
        if self.options.data == DataMode::Journal {
            self.log_pages(inode, page, &[content], inode.size.get()).await?;
            return Ok(0);
        }
        Ok(inode.pages.write(page, content, false))
    }

    async fn commit_file(self: &Rc<Self>, inode: &Rc<Inode>, data_only: bool) -> Result<bool> {
        self.commit_changes(inode, data_only).await
    }

    async fn commit_all(&self) -> Result<()> {
        Ok(self.meta.journal.commit_all().await?)
    }
}

impl Volume {
    /// Allocates and maps blocks for a hole.
    async fn allocate_hole(
        &self,
        tx: &Tx,
        inode: &Inode,
        logical: u64,
        pages: u64,
    ) -> Result<Mapped> {
        let goal = self.meta.goal(inode, logical).await?;
        let taken = self.meta.alloc.take_blocks(&self.meta, tx, goal, pages as u32).await?;
        let (start, blocks) = (taken.start, taken.end - taken.start);
        self.meta.map_blocks(tx, inode, logical, taken, false).await?;
        Ok(Mapped::Blocks { start, blocks, unwritten: false })
    }

    /// Notes whether the blocks of pages hold data.
    async fn mark(&self, inode: &Inode, pages: &Pages, written: bool) -> Result<()> {
        let mut at = pages.start;
        while at < pages.end {
            let tx = self.meta.begin(MAP_CREDITS, 0).await?;
            let extents = inode.extent_lock.write().await;
            let mapped = self.meta.map_extent(inode, at, pages.end - at).await?;
            let end = at + mapped.blocks();
            if matches!(mapped, Mapped::Blocks { unwritten, .. } if unwritten == written) {
                self.meta.convert(&tx, inode, &(at..end), !written).await?;
            }
            drop(extents);
            self.meta.write_inode(&tx, inode, true).await?;
            tx.stop();
            at = end;
        }
        Ok(())
    }
}
