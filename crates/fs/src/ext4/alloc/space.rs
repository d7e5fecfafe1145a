//! Promises of blocks: whoever dirties a page learns at once whether there will be a block for it,
//! although the block is chosen only when the page is written back (delayed allocation).
//!
//! As in ext4, a small pool (2 % of the volume, at most 4,096 blocks) is never promised to data, so
//! that extent nodes find their blocks at write-back; and what the superblock reserves is for root.
//! Held blocks do not count: they are there for nobody yet. Whoever takes blocks himself is promised them
//! too, until he has them ([`Room`]): he may have to wait before that.

use crate::contract::{Caller, FsError, Result};
use crate::ext4::volume::Volume;

/// Blocks promised to an operation, as long as it goes on.
#[must_use = "the promise ends with it"]
pub(crate) struct Room<'a> {
    volume: &'a Volume,
    blocks: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.volume.unpromise(self.blocks);
    }
}

impl Volume {
    /// Blocks kept for metadata that delayed data will need.
    pub(crate) fn metadata_pool(&self) -> u64 {
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

    /// Promises blocks to an operation that takes up to so many.
    ///
    /// # Errors
    /// [`FsError::NoSpace`].
    pub(crate) fn room(&self, caller: Caller, blocks: u64) -> Result<Room<'_>> {
        if blocks > self.available(caller) {
            return Err(FsError::NoSpace);
        }
        self.promised.set(self.promised.get() + blocks);
        Ok(Room { volume: self, blocks })
    }

    /// Takes promises back, because the blocks were taken or are not wanted any more.
    pub(crate) fn unpromise(&self, blocks: u64) {
        self.promised.set(self.promised.get() - blocks);
    }
}
