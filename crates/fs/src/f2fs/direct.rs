//! Writes past the page cache (`f2fs_dio_write_iter` in fs/f2fs/file.c): to fresh blocks, or, with adaptive logging, over
//! those that the pages have.

use super::data::{MovedPages, RESERVE_PAGES};
use super::inode::Inode;
use super::node::Dnode;
use super::operations::Op;
use super::volume::Volume;
use crate::contract::{FsError, Result};
use crate::vfs::Pages;
use crate::vfs::writeback::write_blocks;
use nandscape_block::SectorData;
use std::future::Future;
use std::rc::Rc;

impl Volume {
    /// Places and submits the first pages of a range that are written past the cache; `data` begins at page `first`.
    /// Returns where the rest begins, and what to wait for.
    pub(super) async fn place_direct(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        range: Pages,
        first: u64,
        data: &[SectorData],
    ) -> Result<(u64, (u64, impl Future<Output = Result<()>> + use<>))> {
        self.balance_fs().await?;
        if inode.is_inline() {
            self.convert_inline(inode).await?;
        }
        let end = range.end.min(range.start + RESERVE_PAGES);
        self.reserve_pages(inode, &(range.start..end)).await?;
        let no_cleaning = inode.gc_rwsem.read().await;
        // What cleaning has made dirty meanwhile is older than what is written now.
        inode.pages.written(range.start..end).await;
        inode.pages.discard(range.start..end);
        let op = self.operations.begin().await?;
        let _extents = inode.extent_lock.write().await;
        let dnode = self.nodes.make_dnode(&op, inode, range.start).await?;
        let (id, start, count) = self.place_pages(&op, inode, dnode, &(range.start..end)).await?;
        let from = (range.start - first) as usize;
        let some = &data[from..from + count as usize];
        let arrival = write_blocks(&**self, inode, start, some, true);
        let (file, pages) = (Rc::clone(inode), range.start..range.start + count);
        let arrival = async move {
            let ended = arrival.await;
            // What reads beside the write have brought into the cache is old: cleaning would write it over what was
            // written in place.
            file.pages.discard(pages);
            // Until then cleaning would read what the block held before.
            drop(no_cleaning);
            ended
        };
        Ok((range.start + count, (id, arrival)))
    }

    /// Gives blocks to the first of some pages that are written past the cache, or leaves them theirs. Returns the number
    /// of the write, the first block, and how many there are after each other.
    async fn place_pages(
        &self,
        op: &Op,
        inode: &Inode,
        dnode: Dnode,
        pages: &Pages,
    ) -> Result<(u64, u64, u64)> {
        let mut most = pages.end - pages.start;
        if self.mount.is_adaptive() {
            let (first, count) = self.nodes.first_run(dnode, most).await?;
            if first.is_block() {
                return Ok((self.writes.note_in_place(inode, count), first.0.into(), count));
            }
            most = count;
        }
        let log = self.mount.data_log(inode);
        let moved = self.move_pages(op, inode, (dnode, log), pages.start, most).await?;
        let MovedPages { start, count, .. } = moved.ok_or(FsError::NoSpace)?;
        self.segments.note_in_use(count);
        Ok((self.writes.data_in_flight.send(), start.0.into(), count))
    }
}
