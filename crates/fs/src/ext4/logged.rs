//! Content through the journal (`data=journal`).

use super::inode::Inode;
use super::tx::Tx;
use super::volume::Volume;
use crate::contract::{Caller, Data, FsError, Result};
use crate::vfs::content::{content, pieces};
use crate::vfs::{Mapped, PAGE, Pages};
use nandscape_block::SectorData;
use std::ops::Range;
use std::rc::Rc;

/// Pages that one transaction logs.
const LOGGED_PAGES: u64 = 8;

impl Volume {
    /// Logs what of the data goes to `range`, or the first pages of it, in one transaction. Returns where
    /// the rest begins.
    pub(super) async fn log_some(
        self: &Rc<Self>,
        caller: Caller,
        inode: &Rc<Inode>,
        (offset, data): (u64, &Data),
        range: Range<u64>,
    ) -> Result<u64> {
        let first = range.start / PAGE;
        let mut pages = first..range.end.div_ceil(PAGE).min(first + LOGGED_PAGES);
        let _reservation = loop {
            match self.reserve(caller, self.holes(inode, &pages).await?) {
                Err(FsError::NoSpace) if pages.end > first + 1 => {
                    pages.end = first.midpoint(pages.end);
                }
                reservation => break reservation?,
            }
        };
        let end = range.end.min(pages.end * PAGE);
        let mut contents = Vec::with_capacity(LOGGED_PAGES as usize);
        for piece in pieces(offset, range.start..end) {
            contents.push(content(self, inode, data, piece).await?);
        }
        self.log_pages(inode, first, &contents, inode.size.get().max(end)).await?;
        Ok(end)
    }

    /// How many of these pages have no block.
    async fn holes(&self, inode: &Inode, pages: &Pages) -> Result<u64> {
        let _extents = inode.extent_lock.read().await;
        let (mut at, mut holes) = (pages.start, 0);
        while at < pages.end {
            let mapped = self.meta.map_extent(inode, at, pages.end - at).await?;
            at += mapped.blocks();
            holes += if mapped.is_hole() { mapped.blocks() } else { 0 };
        }
        Ok(holes)
    }

    /// Logs the contents of pages from `first` on, and the length of the file, in one transaction.
    pub(super) async fn log_pages(
        &self,
        inode: &Rc<Inode>,
        first: u64,
        contents: &[SectorData],
        size: u64,
    ) -> Result<()> {
        let end = first + contents.len() as u64;
        let tx = self.meta.begin(16 + 6 * contents.len() as u32, 0).await?;
        let extents = inode.extent_lock.write().await;
        let mut page = first;
        while page < end {
            for block in self.blocks_for(&tx, inode, page..end).await? {
                let content = &contents[(page - first) as usize];
                tx.log_data(block, content.clone(), inode.pages.owner())?;
                inode.pages.put_clean(page, content.clone());
                page += 1;
            }
        }
        drop(extents);
        inode.set_size(size);
        inode.raw.borrow_mut().size = size;
        self.meta.write_inode(&tx, inode, true).await?;
        tx.stop();
        Ok(())
    }

    /// The blocks of the first page of a range and of as many after it as are contiguous; allocated now if
    /// they have none, and marked as written.
    async fn blocks_for(&self, tx: &Tx, inode: &Inode, pages: Pages) -> Result<Range<u64>> {
        match self.meta.map_extent(inode, pages.start, pages.end - pages.start).await? {
            Mapped::Blocks { start, blocks, unwritten } => {
                if unwritten {
                    self.meta
                        .convert(tx, inode, &(pages.start..pages.start + blocks), false)
                        .await?;
                }
                Ok(start..start + blocks)
            }
            Mapped::Hole(wanted) => {
                let goal = self.meta.goal(inode, pages.start).await?;
                let taken =
                    self.meta.alloc.take_blocks(&self.meta, tx, goal, wanted as u32).await?;
                self.meta.map_blocks(tx, inode, pages.start, taken.clone(), false).await?;
                Ok(taken)
            }
        }
    }
}
