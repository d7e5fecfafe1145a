//! Space for data: a page that is made dirty has a block reserved for it at once, although the block is
//! chosen only when the page is written back (delayed allocation, [`crate::vfs`]).
//!
//! As in ext4, a small pool (2 % of the volume, at most 4,096 blocks) is never reserved for data, so
//! that extent nodes find their blocks at write-back; and what the superblock reserves is for root.
//! Held blocks do not count: no file can have them yet. An operation that allocates blocks itself reserves
//! them, too, until it has them: it may have to wait before that.

use super::Allocator;
use crate::contract::Caller;
use crate::ext4::meta::Meta;
use nandscape_rt::invariant;

impl Meta {
    /// Blocks kept for metadata that delayed data will need.
    pub(crate) fn metadata_pool(&self) -> u64 {
        (self.blocks_count() / 50).min(4096)
    }
}

impl Allocator {
    /// Free blocks that may be reserved for the caller, where so many are `reserved`.
    pub(crate) fn available(&self, meta: &Meta, caller: Caller, reserved: u64) -> u64 {
        let root = if caller.uid == 0 { 0 } else { meta.sb.borrow().r_blocks_count };
        self.release_held(meta);
        let kept = reserved + self.freed.blocks.get() + meta.metadata_pool() + root;
        let available = self.free_blocks.get().saturating_sub(kept);
        invariant!(
            available == 0
                || available + reserved + self.freed.blocks.get() <= self.free_blocks.get(),
            "blocks that may be reserved are free, and not held"
        );
        available
    }
}
