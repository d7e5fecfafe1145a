//! Space for data: a page that is made dirty has a block reserved for it at once, although the block is
//! chosen only when the page is written back (delayed allocation, [`crate::vfs`]).
//!
//! As in ext4, a small pool (2 % of the volume, at most 4,096 blocks) is never reserved for data, so
//! that extent nodes find their blocks at write-back; and what the superblock reserves is for root.
//! Held blocks do not count: no file can have them yet. An operation that allocates blocks itself reserves
//! them, too, until it has them: it may have to wait before that.

use crate::contract::{Caller, Result};
use crate::ext4::rules::OmittedRule;
use crate::ext4::volume::Volume;
use crate::vfs::SpaceReservation;

impl Volume {
    /// Blocks kept for metadata that delayed data will need.
    pub(crate) fn metadata_pool(&self) -> u64 {
        (self.meta.blocks_count() / 50).min(4096)
    }

    /// Free blocks that may be reserved for the caller.
    pub(crate) fn available_blocks(&self, caller: Caller) -> u64 {
        let root = if caller.uid == 0 { 0 } else { self.meta.sb.borrow().r_blocks_count };
        self.release_held();
        let counts = !self.omits(OmittedRule::Reservation);
        let reserved = if counts { self.env.space.reserved() } else { 0 };
        let kept = reserved + self.meta.alloc.freed.blocks.get() + self.metadata_pool() + root;
        self.meta.alloc.free_blocks.get().saturating_sub(kept)
    }

    /// Reserves blocks for an operation that takes up to so many.
    ///
    /// # Errors
    /// [`FsError::NoSpace`](crate::contract::FsError::NoSpace).
    pub(crate) fn reserve(&self, caller: Caller, blocks: u64) -> Result<SpaceReservation<'_>> {
        self.env.space.reserve(self.available_blocks(caller), blocks)
    }
}
