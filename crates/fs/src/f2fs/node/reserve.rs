//! Places of pages in nodes: where the blocks of a file are, and pages that get a place before they have a block
//! (`f2fs_reserve_new_blocks`).

use super::{Dnode, Found, Walks};
use crate::cache::PageLocation;
use crate::contract::{FsError, Result};
use crate::f2fs::error::corrupt;
use crate::f2fs::format::{BlockAddr, Nid, SummaryEntry};
use crate::f2fs::inode::{Dirty, Inode, NODE_INO};
use crate::f2fs::nat::Nodes;
use crate::f2fs::operations::Op;
use crate::f2fs::segment::Block;
use crate::vfs::{Mapped, Pages};
use nandscape_block::Lba;
use nandscape_rt::sync::ReadGuard;

impl Nodes {
    /// Takes a file's `extent_lock`, shared, for a look at a page, after paying for the walk to it.
    pub(crate) async fn lock_map(&self, inode: &Inode, page: u64) -> ReadGuard<()> {
        let is_known = || inode.is_inline() || inode.extents.find(page).is_some();
        if self.mount.cpu.is_charged() && !is_known() {
            self.pay_walks(inode, &(page..page + 1), Walks::First).await;
        }
        inode.extent_lock.read().await
    }

    /// Where the newest content of pages is, from one on, as far as it is not in the page cache.
    pub(crate) async fn locate(
        &self,
        inode: &Inode,
        page: u64,
        pages: u64,
    ) -> Result<PageLocation> {
        if inode.number == NODE_INO {
            let at = self.node_entry(Nid(page as u32)).await?.block_addr;
            let copy = self.last_copies.borrow().get(&(page as u32)).copied();
            let at = if at.is_block() { copy.unwrap_or(at) } else { at };
            return Ok(if at.is_block() {
                PageLocation::At(Lba(at.0.into()), 1)
            } else {
                PageLocation::Hole(1)
            });
        }
        let _extents = self.lock_map(inode, page).await;
        if inode.is_inline() && page == 0 {
            return Ok(PageLocation::Known(self.inline_page(inode).await?));
        }
        Ok(match self.map(inode, page, pages).await? {
            Mapped::Blocks { start, blocks, unwritten: false } => {
                PageLocation::At(Lba(start), blocks)
            }
            mapped => PageLocation::Hole(mapped.blocks()),
        })
    }

    /// Where pages of a file are, from one on, up to `most`. The caller holds its `extent_lock`.
    pub(crate) async fn map(&self, inode: &Inode, page: u64, most: u64) -> Result<Mapped> {
        if inode.is_inline() {
            let inline = Mapped::Blocks { start: 0, blocks: 1, unwritten: false };
            return Ok(if page == 0 { inline } else { Mapped::Hole(most) });
        }
        if let Some((start, pages)) = inode.extents.find(page) {
            let (start, blocks) = (start.0.into(), pages.min(most));
            return Ok(Mapped::Blocks { start, blocks, unwritten: false });
        }
        let dnode = match self.find_dnode(inode, page).await? {
            Found::Hole(pages) => return Ok(Mapped::Hole(pages.min(most))),
            Found::Node(dnode) => dnode,
        };
        let (first, alike) = self.first_run(dnode, most).await?;
        if !first.is_block() {
            let unwritten = Mapped::Blocks { start: 0, blocks: alike, unwritten: true };
            return Ok(if first == BlockAddr::NULL { Mapped::Hole(alike) } else { unwritten });
        }
        inode.extents.insert(page, first, alike);
        Ok(Mapped::Blocks { start: first.0.into(), blocks: alike, unwritten: false })
    }

    /// The first address of a node from a slot on, and how many follow it: of blocks those that lie after each other,
    /// otherwise those that are the same.
    pub(crate) async fn first_run(&self, dnode: Dnode, most: u64) -> Result<(BlockAddr, u64)> {
        let count = u64::from(dnode.left()).min(most) as u32;
        self.read_node(dnode.nid, |bytes| {
            let address = |index: u32| dnode.addrs.get(bytes, dnode.slot + index);
            let first = address(0);
            let step = u32::from(first.is_block());
            let follows = |index: &u32| address(*index).0 == first.0.wrapping_add(step * index);
            (first, (1..count).take_while(follows).count() as u64 + 1)
        })
        .await
    }

    /// The same within an operation.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if the first page gets no place.
    pub(crate) async fn reserve_pages_in(
        &self,
        op: &Op,
        inode: &Inode,
        pages: &Pages,
    ) -> Result<u64> {
        let mut at = pages.start;
        self.pay_walks(inode, pages, Walks::EachNode).await;
        let _extents = inode.extent_lock.write().await;
        while at < pages.end {
            let reserved = self.reserve_in_node(op, inode, &(at..pages.end)).await;
            match reserved {
                Ok((end, true)) => at = end,
                Ok((end, false)) => return Ok(end),
                Err(FsError::NoSpace) if at > pages.start => return Ok(at),
                Err(error) => return Err(error),
            }
        }
        Ok(pages.end)
    }

    /// The same for pages of one node; whether that was all of its pages in the range.
    async fn reserve_in_node(&self, op: &Op, inode: &Inode, pages: &Pages) -> Result<(u64, bool)> {
        let dnode = self.make_dnode(op, inode, pages.start).await?;
        let addresses = self.addresses(dnode, pages.end - pages.start).await?;
        let is_hole = |address: &BlockAddr| *address == BlockAddr::NULL;
        let holes = addresses.iter().filter(|address| is_hole(address)).count() as u64;
        let taken = match self.space.take_some(holes) {
            Err(FsError::NoSpace) if !addresses.first().is_some_and(is_hole) => 0,
            taken => taken?,
        };
        if taken > 0 {
            self.fill_holes(op, inode, dnode, (addresses.len(), taken)).await?;
        }
        let left = (0..).zip(&addresses).filter(|(_, address)| is_hole(address));
        let end = left.map(|(step, _)| step).nth(taken as usize);
        let all = addresses.len() as u64;
        Ok((pages.start + end.unwrap_or(all), end.is_none()))
    }

    /// Reserves the first `taken` holes of so many addresses.
    async fn fill_holes(
        &self,
        op: &Op,
        inode: &Inode,
        dnode: Dnode,
        (count, taken): (usize, u64),
    ) -> Result<()> {
        let fill = |bytes: &mut Block| {
            let mut left = taken;
            for slot in dnode.slot..dnode.slot + count as u32 {
                if left > 0 && dnode.addrs.get(bytes, slot) == BlockAddr::NULL {
                    dnode.addrs.set(bytes, slot, BlockAddr::NEW);
                    left -= 1;
                }
            }
        };
        self.edit_node(op, dnode.nid, fill).await?;
        inode.add_blocks(taken as i64);
        inode.mark(Dirty::Content);
        Ok(())
    }

    /// Sets the addresses of pages to blocks that lie after each other. The node is in memory.
    pub(crate) fn set_addresses(
        &self,
        _op: &Op,
        dnode: Dnode,
        start: BlockAddr,
        count: u64,
    ) -> Result<()> {
        let set = |bytes: &mut Block| {
            for step in 0..count as u32 {
                dnode.addrs.set(bytes, dnode.slot + step, BlockAddr(start.0 + step));
            }
        };
        let is_there = self.edit_loaded(dnode.nid, set);
        is_there.ok_or_else(|| corrupt("node left memory", dnode.nid.0))
    }

    /// What the summary of a page's block says.
    pub(crate) async fn summary_at(&self, dnode: Dnode) -> Result<SummaryEntry> {
        let version = self.node_entry(dnode.nid).await?.version;
        Ok(SummaryEntry { nid: dnode.nid, version, ofs_in_node: dnode.slot as u16 })
    }
}
