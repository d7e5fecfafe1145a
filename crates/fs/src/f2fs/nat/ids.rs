//! Free node numbers (`f2fs_build_free_nids`, `f2fs_alloc_nid`). They are found by looking through the NAT, some blocks
//! at a time, from where the last search ended.

use std::collections::BTreeSet;

/// Blocks of the NAT that one search looks through (`FREE_NID_PAGES`).
pub(crate) const SEARCH_BLOCKS: u32 = 8;

/// Free node numbers that are known.
pub(crate) struct FreeNids {
    free: BTreeSet<u32>,
    /// The block of the NAT at which the next search begins.
    next_block: u32,
    blocks: u32,
}

impl FreeNids {
    /// None known yet, of a NAT with so many blocks, to be searched from the block of `next_nid` on.
    pub(crate) const fn new(blocks: u32, next_nid_block: u32) -> Self {
        let next_block = if blocks == 0 { 0 } else { next_nid_block % blocks };
        Self { free: BTreeSet::new(), next_block, blocks }
    }

    /// Takes the lowest number that is known to be free.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop_first()
    }

    /// The number that would be taken next.
    pub(crate) fn peek(&self) -> Option<u32> {
        self.free.first().copied()
    }

    /// A number is free again, or was found to be.
    pub(crate) fn put(&mut self, nid: u32) {
        self.free.insert(nid);
    }

    /// A number is in use.
    pub(crate) fn remove(&mut self, nid: u32) {
        self.free.remove(&nid);
    }

    /// Blocks to look through now, and moves on.
    pub(crate) fn next_search(&mut self) -> Vec<u32> {
        let count = SEARCH_BLOCKS.min(self.blocks);
        let blocks = (0..count).map(|step| (self.next_block + step) % self.blocks).collect();
        self.next_block = (self.next_block + count) % self.blocks.max(1);
        blocks
    }

    /// Blocks of the NAT.
    pub(crate) const fn blocks(&self) -> u32 {
        self.blocks
    }
}
