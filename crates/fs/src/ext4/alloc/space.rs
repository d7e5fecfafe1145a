//! Promises of blocks: whoever dirties a page learns at once whether there will be a block for it,
//! although the block is chosen only when the page is written back (delayed allocation).
//!
//! As in ext4, a small pool (2 % of the volume, at most 4,096 blocks) is never promised to data, so
//! that extent nodes find their blocks at write-back; and what the superblock reserves is for root.
//! Held blocks do not count: they are there for nobody yet.

use crate::contract::{Caller, FsError, Result};
use crate::ext4::volume::Volume;

impl Volume {
    /// Blocks kept for metadata that delayed data will need.
    fn metadata_pool(&self) -> u64 {
        (self.blocks_count() / 50).min(4096)
    }

    /// Free blocks that the caller may be promised.
    pub(crate) fn available(&self, caller: Caller) -> u64 {
        let reserved = if caller.uid == 0 { 0 } else { self.sb.borrow().r_blocks_count };
        self.release_held();
        let kept = self.promised.get() + self.held_blocks.get() + self.metadata_pool() + reserved;
        self.free_blocks.get().saturating_sub(kept)
    }

    /// Promises blocks to data in memory, or as many as there are; returns how many.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] when there is none.
    pub(crate) fn promise_some(&self, caller: Caller, blocks: u64) -> Result<u64> {
        let promised = blocks.min(self.available(caller));
        if promised == 0 {
            return Err(FsError::NoSpace);
        }
        self.promised.set(self.promised.get() + promised);
        Ok(promised)
    }

    /// Whether so many blocks may be taken now.
    ///
    /// # Errors
    /// [`FsError::NoSpace`].
    pub(crate) fn check_space(&self, caller: Caller, blocks: u64) -> Result<()> {
        if blocks > self.available(caller) { Err(FsError::NoSpace) } else { Ok(()) }
    }

    /// Takes promises back, because the blocks were taken or are not wanted any more.
    pub(crate) fn unpromise(&self, blocks: u64) {
        self.promised.set(self.promised.get() - blocks);
    }
}
