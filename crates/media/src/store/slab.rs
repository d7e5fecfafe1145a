//! Sector contents by handle: a slab of shared 4 KiB buffers whose places are reused.

use nandscape_block::SectorBytes;
use std::sync::Arc;

/// Bytes that a buffer takes: content and the two counts of its `Arc`.
const BUFFER_BYTES: u64 = size_of::<SectorBytes>() as u64 + 16;
/// Bytes that a place takes: its pointer, and its entry in the free list.
pub(super) const PLACE_BYTES: u64 = 8 + 4;

/// The most that one more buffer can cost.
pub(super) const COST_BYTES: u64 = BUFFER_BYTES + PLACE_BYTES;

/// Buffers by handle.
#[derive(Clone, Default, Debug)]
pub(super) struct Slab {
    places: Vec<Option<Arc<SectorBytes>>>,
    free: Vec<u32>,
}

impl Slab {
    /// Keeps a buffer.
    pub(super) fn insert(&mut self, bytes: Arc<SectorBytes>) -> u32 {
        if let Some(handle) = self.free.pop() {
            self.places[handle as usize] = Some(bytes);
            return handle;
        }
        self.places.push(Some(bytes));
        (self.places.len() - 1) as u32
    }

    /// The buffer of a handle that [`Slab::insert`] gave.
    pub(super) fn get(&self, handle: u32) -> Option<&Arc<SectorBytes>> {
        self.places.get(handle as usize)?.as_ref()
    }

    /// Gives a buffer back.
    pub(super) fn remove(&mut self, handle: u32) {
        self.places[handle as usize] = None;
        self.free.push(handle);
    }

    /// Places, used or not.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Makes unused places until there are so many in all.
    pub(super) fn reserve_places(&mut self, places: usize) {
        let first = self.places.len();
        self.places.resize(first.max(places), None);
        self.free.extend((first as u32..places as u32).rev());
    }

    /// Buffers in use.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Bytes of all buffers, each counted in full however many share it, and of their places.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.len() as u64 * BUFFER_BYTES + self.places.len() as u64 * PLACE_BYTES
    }
}
