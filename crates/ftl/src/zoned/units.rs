//! Chunks of each parallel unit: erased ones, in order of their erases (so that all wear alike), and those of the
//! save log.

use super::zone::PageId;
use nandscape_rt::invariant;
use std::collections::VecDeque;

/// The save log of a unit; see `savelog.rs`.
#[derive(Clone, Default, Debug)]
pub(super) struct UnitLog {
    /// Its chunks since its live part was last written again.
    pub(super) set: Vec<u32>,
    /// The next row of the last of them.
    pub(super) row: u32,
    /// Chunks before that, which are erased one by one, the oldest first.
    pub(super) old: VecDeque<u32>,
    /// They may be erased when the record with this number is on media.
    pub(super) old_until: u64,
    /// The last record that was sent to media, and the last one there.
    pub(super) issued: u64,
    pub(super) completed: u64,
    /// The first of `old` is being erased.
    pub(super) erasing: bool,
    /// Pages of which it holds sectors that are nowhere else on media.
    pub(super) live: Vec<PageId>,
    /// Zones whose reset stands in it and is not done.
    pub(super) resets: Vec<u32>,
}

impl UnitLog {
    /// Chunks that it takes.
    pub(super) fn chunks(&self) -> u32 {
        (self.set.len() + self.old.len()) as u32 + u32::from(self.erasing)
    }
}

/// A parallel unit.
#[derive(Clone, Default, Debug)]
pub(super) struct Unit {
    /// Erased chunks.
    pub(super) free: VecDeque<u32>,
    /// Chunks that are being erased.
    pub(super) erasing: u32,
    pub(super) log: UnitLog,
}

impl Unit {
    /// Takes an erased chunk, if more than so many are left.
    pub(super) fn take(&mut self, kept: u32) -> Option<u32> {
        let chunk = if self.free.len() as u32 > kept { self.free.pop_front() } else { None };
        invariant!(
            chunk.is_none() || self.free.len() as u32 >= kept,
            "{kept} chunks are kept for saving the buffers"
        );
        chunk
    }

    /// Adds a chunk to its log; whether there is one.
    pub(super) fn extend_log(&mut self, kept: u32) -> bool {
        let chunk = self.take(kept);
        self.log.set.extend(chunk);
        self.log.row = if chunk.is_some() { 0 } else { self.log.row };
        chunk.is_some()
    }

    /// Whether no chunk is free, beyond those that are kept, or will be without further work.
    pub(super) fn has_no_room(&self, kept: u32) -> bool {
        self.free.len() as u32 <= kept && self.erasing == 0 && self.log.old.is_empty()
    }

    /// Bytes of RAM.
    pub(super) fn bytes(&self) -> u64 {
        let words = self.free.capacity()
            + self.log.set.capacity()
            + self.log.old.capacity()
            + self.log.live.capacity()
            + self.log.resets.capacity();
        (size_of::<Self>() + words * size_of::<u32>()) as u64
    }
}
