//! Where a file's blocks are: the extent tree in operation.
//!
//! - Every change is a change of one leaf's list ([`leaf`]), then carried up: a node too full is split,
//!   an empty one is freed, and an index always names the first block below it exactly.
//! - A root that overflows moves into a separate block; a root with one small leaf below takes it
//!   back in.
//! - The caller holds the inode's `extent_lock`, shared to look and exclusive to change, and writes the inode
//!   afterwards.
//! - What is remembered of the tree is what the tree says.

mod leaf;
mod tree;

pub(crate) use leaf::Logical;

use super::format::{
    EXTENT_BLOCKS_MAX, Extent, ExtentEntries, ExtentNode, UNWRITTEN_BLOCKS_MAX, flag,
};
use super::inode::Inode;
use super::meta::Meta;
use super::tx::Tx;
use crate::contract::Result;
use crate::vfs::Mapped;
use nandscape_rt::{defect, invariant};
use std::ops::Range;

/// Whether a file with extents has none, found without reading its tree.
fn has_no_blocks(inode: &Inode) -> bool {
    let raw = inode.raw.borrow();
    raw.has(flag::EXTENTS) && ExtentNode::is_empty_root(&raw.map)
}

impl Meta {
    /// What block `logical` of a file is mapped to, and how many behind it in the same way, at most
    /// `max`.
    pub(crate) async fn map_extent(&self, inode: &Inode, logical: u64, max: u64) -> Result<Mapped> {
        let wanted = logical..logical.saturating_add(max.max(1));
        let known = inode.found.around(logical);
        if let Some(found) = known.and_then(|known| leaf::part(&known, &wanted)) {
            invariant!(
                Self::is_of_root(inode, &found),
                "inode {}: what is remembered is what the tree says: {found:?}",
                inode.number
            );
            return Ok(mapped(&found));
        }
        if has_no_blocks(inode) {
            return Ok(Mapped::Hole(wanted.end.min(1 << 32) - logical));
        }
        let path = self.path(inode, logical).await?;
        let ExtentEntries::Leaf(extents) = &path.leaf().entries else {
            return Err(defect!("a path ends at a leaf").into());
        };
        let next = extents.partition_point(|extent| extent.logical_end() <= logical);
        let end = path.next_key().min(wanted.end);
        let Some(extent) = extents.get(next) else { return Ok(Mapped::Hole(end - logical)) };
        if u64::from(extent.logical) > logical {
            return Ok(Mapped::Hole(u64::from(extent.logical).min(wanted.end) - logical));
        }
        inode.found.note(*extent);
        match leaf::part(extent, &wanted) {
            Some(found) => Ok(mapped(&found)),
            None => Err(defect!("an extent around block {logical} has a part there").into()),
        }
    }

    /// Where the next block of the file had best be: behind the one before it.
    pub(crate) async fn goal(&self, inode: &Inode, logical: u64) -> Result<u64> {
        if logical > 0
            && let Mapped::Blocks { start, .. } = self.map_extent(inode, logical - 1, 1).await?
        {
            return Ok(start + 1);
        }
        if has_no_blocks(inode) {
            return Ok(self.home_of(inode));
        }
        let path = self.path(inode, logical).await?;
        if let ExtentEntries::Leaf(extents) = &path.leaf().entries {
            let before = extents.partition_point(|extent| u64::from(extent.logical) < logical);
            if let Some(extent) = before.checked_sub(1).and_then(|index| extents.get(index)) {
                return Ok(extent.end());
            }
        }
        Ok(self.home_of(inode))
    }

    /// The first block of the inode's group, where a file begins.
    pub(crate) fn home_of(&self, inode: &Inode) -> u64 {
        let sb = self.sb.borrow();
        sb.inode_place(inode.number).map_or(0, |place| sb.group_first_block(place.group))
    }

    /// Maps blocks where nothing is mapped.
    pub(crate) async fn map_blocks(
        &self,
        tx: &Tx,
        inode: &Inode,
        logical: u64,
        blocks: Range<u64>,
        unwritten: bool,
    ) -> Result<()> {
        let most = if unwritten { UNWRITTEN_BLOCKS_MAX } else { EXTENT_BLOCKS_MAX };
        let (mut logical, mut start) = (logical, blocks.start);
        while start < blocks.end {
            let count = (blocks.end - start).min(u64::from(most));
            let new = Extent { logical: logical as u32, blocks: count as u16, start, unwritten };
            self.edit_leaf(tx, inode, logical, |extents| leaf::insert(extents, new)).await?;
            inode.add_blocks(count as i64);
            (logical, start) = (logical + count, start + count);
        }
        Ok(())
    }

    /// Takes the mapping of at most `most` extents, and so many blocks, away, from the range's start
    /// on. Returns what was mapped, and where to go on. The blocks are still to be freed.
    pub(crate) async fn unmap_some(
        &self,
        tx: &Tx,
        inode: &Inode,
        range: &Logical,
        most: usize,
        most_blocks: u64,
    ) -> Result<(Vec<Extent>, u64)> {
        let path = self.path(inode, range.start).await?;
        let ExtentEntries::Leaf(extents) = &path.leaf().entries else {
            return Err(defect!("a path ends at a leaf").into());
        };
        let first = extents.iter().find_map(|extent| leaf::part(extent, range));
        let first = first.map_or(range.end, |first| u64::from(first.logical));
        let end = range.end.min(first.saturating_add(most_blocks));
        let within = |extent: &Extent| leaf::part(extent, &(range.start..end));
        let parts: Vec<Extent> = extents.iter().filter_map(within).take(most).collect();
        let Some(last) = parts.last() else { return Ok((parts, path.next_key().min(range.end))) };
        let behind = last.logical_end()..range.end;
        let more = extents.iter().any(|extent| leaf::part(extent, &behind).is_some());
        let next = if more { behind.start } else { path.next_key().min(range.end) };
        let passed = |extent: &Extent| leaf::part(extent, &(range.start..next));
        invariant!(
            extents.iter().filter_map(passed).eq(parts.iter().copied()),
            "inode {}: nothing stays mapped before {next}, where unmapping goes on",
            inode.number
        );
        let (at, gone) = (u64::from(parts[0].logical), range.start..last.logical_end());
        self.edit_leaf(tx, inode, at, |extents| drop(leaf::cut(extents, &gone))).await?;
        let count: u64 = parts.iter().map(|part| u64::from(part.blocks)).sum();
        inode.add_blocks(-(count as i64));
        Ok((parts, next))
    }

    /// Makes what is mapped in a range, which must lie within one extent, written or unwritten.
    pub(crate) async fn convert(
        &self,
        tx: &Tx,
        inode: &Inode,
        range: &Logical,
        unwritten: bool,
    ) -> Result<()> {
        self.edit_leaf(tx, inode, range.start, |extents| {
            for part in leaf::cut(extents, range) {
                leaf::insert(extents, Extent { unwritten, ..part });
            }
        })
        .await
    }
}

fn mapped(extent: &Extent) -> Mapped {
    Mapped::Blocks {
        start: extent.start,
        blocks: u64::from(extent.blocks),
        unwritten: extent.unwritten,
    }
}
