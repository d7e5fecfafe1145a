//! Taking blocks from files: addresses, then the nodes that lead to none any more (`f2fs_truncate_blocks`,
//! `f2fs_truncate_inode_blocks`).

use super::{Found, Walked};
use crate::contract::Result;
use crate::f2fs::format::{self, ADDRS_PER_BLOCK, BlockAddr, NIDS_PER_BLOCK, Nid};
use crate::f2fs::inode::{Dirty, Inode};
use crate::f2fs::nat::Nodes;
use crate::f2fs::operations::Op;
use crate::f2fs::segment::Block;
use crate::f2fs::segment_manager::SegmentManager;
use crate::vfs::Pages;
use nandscape_rt::BoxFuture;

/// What hangs below the five node slots of an inode: the heights of the trees.
const HEIGHTS: [u32; 5] = [0, 0, 1, 1, 2];

impl Nodes {
    /// Frees the blocks of a range of pages, which are holes then (`f2fs_truncate_hole`). The caller holds the file's
    /// `extent_lock` alone. Returns what it has to pay for.
    ///
    /// # Errors
    /// Those of reading nodes; [`FsError::Corrupt`](crate::contract::FsError::Corrupt) if a block was free already.
    pub(crate) async fn free_pages(
        &self,
        op: &Op,
        segments: &SegmentManager,
        inode: &Inode,
        range: &Pages,
    ) -> Result<Walked> {
        self.empty_pages(op, segments, inode, range, BlockAddr::NULL).await
    }

    /// The same, but pages that had a place keep it, and read as zeroes.
    ///
    /// # Errors
    /// As [`Nodes::free_pages`].
    pub(crate) async fn free_blocks(
        &self,
        op: &Op,
        segments: &SegmentManager,
        inode: &Inode,
        range: &Pages,
    ) -> Result<Walked> {
        self.empty_pages(op, segments, inode, range, BlockAddr::NEW).await
    }

    /// Frees blocks; `left` is what the addresses are then.
    async fn empty_pages(
        &self,
        op: &Op,
        segments: &SegmentManager,
        inode: &Inode,
        range: &Pages,
        left: BlockAddr,
    ) -> Result<Walked> {
        let is_hole = |at: BlockAddr| at == BlockAddr::NULL;
        let is_changed = |at: BlockAddr| at.is_block() || is_hole(left) && !is_hole(at);
        let mut at = range.start;
        let end = range.end.min(inode.max_pages());
        let mut walked = Walked::default();
        while at < end {
            walked.add(inode, at);
            let dnode = match self.find_dnode(inode, at).await? {
                Found::Hole(pages) => {
                    at = at.saturating_add(pages);
                    continue;
                }
                Found::Node(dnode) => dnode,
            };
            let addresses = self.addresses(dnode, end - at).await?;
            let count = addresses.len() as u64;
            let mut changed = 0;
            for address in addresses.iter().filter(|address| is_changed(**address)) {
                if address.is_block() {
                    segments.borrow_mut().invalidate(*address)?;
                }
                changed += 1;
            }
            if changed > 0 {
                let change = |bytes: &mut Block| {
                    for slot in dnode.slot..dnode.slot + count as u32 {
                        if is_changed(dnode.addrs.get(bytes, slot)) {
                            dnode.addrs.set(bytes, slot, left);
                        }
                    }
                };
                self.edit_node(op, dnode.nid, change).await?;
                if is_hole(left) {
                    self.space.release(changed);
                    inode.add_blocks(-(changed as i64));
                }
                inode.mark(Dirty::Content);
            }
            at += count;
        }
        inode.forget_extent(range);
        Ok(walked)
    }

    /// Frees everything from page `from` on: blocks and nodes. The caller holds the file's `extent_lock` alone. Returns what
    /// it has to pay for.
    ///
    /// # Errors
    /// As [`Nodes::free_pages`].
    pub(crate) async fn cut_from(
        &self,
        op: &Op,
        segments: &SegmentManager,
        inode: &Inode,
        from: u64,
    ) -> Result<Walked> {
        let walked = self.free_pages(op, segments, inode, &(from..u64::MAX)).await?;
        let number = Nid(inode.number);
        let mut start = u64::from(inode.layout.get().addr_count());
        for (slot, height) in (0..).zip(HEIGHTS) {
            let nid = self.read_node(number, |bytes| format::inode_nid(bytes, slot)).await?;
            // None of a tree that begins behind.
            let keep = from.saturating_sub(start);
            start += u64::from(ADDRS_PER_BLOCK) * u64::from(NIDS_PER_BLOCK).pow(height);
            if nid.0 == 0 || from >= start {
                continue;
            }
            self.remove_tree(op, segments, inode, (nid, height), keep).await?;
            if keep == 0 {
                self.edit_node(op, number, |bytes| format::set_inode_nid(bytes, slot, Nid(0)))
                    .await?;
            }
        }
        Ok(walked)
    }

    /// Removes the nodes of a tree but those that lead to its first `keep` pages.
    fn remove_tree<'a>(
        &'a self,
        op: &'a Op,
        segments: &'a SegmentManager,
        inode: &'a Inode,
        (nid, height): (Nid, u32),
        keep: u64,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let below = u64::from(ADDRS_PER_BLOCK)
                * u64::from(NIDS_PER_BLOCK).pow(height.saturating_sub(1));
            let children = if height == 0 { 0 } else { NIDS_PER_BLOCK };
            for slot in (keep / below) as u32..children {
                let child = self.read_node(nid, |bytes| format::indirect_nid(bytes, slot)).await?;
                if child.0 == 0 {
                    continue;
                }
                // None below children after the first.
                let keep_below = keep.saturating_sub(u64::from(slot) * below);
                self.remove_tree(op, segments, inode, (child, height - 1), keep_below).await?;
                if keep > 0 && keep_below == 0 {
                    self.edit_node(op, nid, |bytes| format::set_indirect_nid(bytes, slot, Nid(0)))
                        .await?;
                }
            }
            if keep == 0 { self.remove_node(op, segments, inode, nid).await } else { Ok(()) }
        })
    }
}
