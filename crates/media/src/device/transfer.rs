//! What a snapshot sees of a device, and sets.

use super::Media;
use crate::command::ChunkState;
use crate::geometry::ChunkId;
use crate::store::{MemoryStore, Store, StoreError};
use nandscape_rt::Nanos;
use std::collections::BTreeSet;

/// A chunk as the table has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChunkRow {
    pub(crate) wp: u32,
    pub(crate) erases: u32,
    pub(crate) offline: bool,
    pub(crate) failing: bool,
    pub(crate) touched: bool,
}

impl<S: Store> Media<S> {
    /// Power off and on, of a device at rest: everything under way has completed, and no fault is
    /// armed any more.
    pub fn power_cycle(&mut self) {
        for unit in 0..self.queues.len() {
            self.retire_completed(unit as u32, Nanos::MAX);
        }
        (self.program_fault, self.erase_fault) = (false, false);
        self.schedule.reset_reservations();
    }

    /// Packed addresses of sectors that cannot be corrected.
    pub(crate) const fn unreadable(&self) -> &BTreeSet<u64> {
        &self.unreadable
    }
}

impl Media<MemoryStore> {
    pub(crate) const fn store_mut(&mut self) -> &mut MemoryStore {
        &mut self.store
    }

    pub(crate) fn chunk_row(&self, id: ChunkId) -> ChunkRow {
        let at = self.chunks.chunk_place(id).row;
        let row = self.chunks.row(at);
        ChunkRow {
            wp: row.wp,
            erases: row.erases,
            offline: row.state == ChunkState::Offline,
            failing: row.failing,
            touched: self.store.is_touched(at),
        }
    }

    pub(crate) fn set_chunk_row(&mut self, id: ChunkId, row: ChunkRow) -> Result<(), StoreError> {
        let place = self.chunks.chunk_place(id);
        let entry = self.chunks.row_mut(place.row);
        (entry.erases, entry.failing) = (row.erases, row.failing);
        self.chunks.set_wp(place, row.wp);
        if row.offline {
            self.chunks.set_state(place, ChunkState::Offline);
        }
        if row.touched {
            self.store.touch(place.row)?;
        }
        Ok(())
    }
}
