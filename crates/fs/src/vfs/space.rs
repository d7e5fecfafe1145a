//! Reserved space: a page that is made dirty gets its block only at write-back (delayed allocation), but a
//! block is reserved for it at once, so that write-back cannot fail for lack of space.
//!
//! Invariant: each reservation ends once.

use crate::contract::{FsError, Result};
use nandscape_rt::invariant;
use std::cell::Cell;

/// Blocks that are reserved and not yet allocated.
#[derive(Default)]
pub(crate) struct SpacePool {
    reserved: Cell<u64>,
}

/// Blocks reserved for one operation, until it is dropped.
#[must_use = "the reservation ends with it"]
pub(crate) struct SpaceReservation<'a> {
    pool: &'a SpacePool,
    blocks: u64,
}

impl Drop for SpaceReservation<'_> {
    fn drop(&mut self) {
        self.pool.unreserve(self.blocks);
    }
}

impl SpacePool {
    /// Blocks that are reserved.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved.get()
    }

    /// Reserves up to `blocks` of those that are available, for pages in memory; returns how many.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if none is available.
    pub(crate) fn reserve_some(&self, available: u64, blocks: u64) -> Result<u64> {
        let reserved = blocks.min(available);
        if reserved == 0 {
            return Err(FsError::NoSpace);
        }
        self.reserved.set(self.reserved.get() + reserved);
        Ok(reserved)
    }

    /// Reserves `blocks` of those that are available, for an operation that takes at most so many.
    ///
    /// # Errors
    /// [`FsError::NoSpace`].
    pub(crate) fn reserve(&self, available: u64, blocks: u64) -> Result<SpaceReservation<'_>> {
        if blocks > available {
            return Err(FsError::NoSpace);
        }
        self.reserved.set(self.reserved.get() + blocks);
        Ok(SpaceReservation { pool: self, blocks })
    }

    /// Ends reservations, because the blocks were allocated or are not needed any more.
    pub(crate) fn unreserve(&self, blocks: u64) {
        invariant!(blocks <= self.reserved(), "{blocks} blocks that are given back were reserved");
        self.reserved.set(self.reserved.get() - blocks);
    }
}
