//! Sector contents by handle: a slab whose places are reused.

use super::packed::Packed;
use nandscape_block::SectorBytes;
use std::sync::Arc;

/// Bytes that a place takes: a packed content without its lines, and its entry in the free list.
pub(super) const PLACE_BYTES: u64 = size_of::<Option<Packed>>() as u64 + 4;

/// The most that one more content can cost.
pub(super) const COST_BYTES: u64 = Packed::BYTES_MAX + PLACE_BYTES;

/// Contents by handle.
#[derive(Clone, Default, Debug)]
pub(super) struct Slab {
    places: Vec<Option<Packed>>,
    free: Vec<u32>,
    /// Bytes of all contents besides their places.
    contents_bytes: u64,
}

impl Slab {
    /// Keeps a content.
    pub(super) fn insert(&mut self, bytes: &Arc<SectorBytes>) -> u32 {
        let bytes = Packed::new(bytes);
        self.contents_bytes += bytes.memory_bytes();
        if let Some(handle) = self.free.pop() {
            self.places[handle as usize] = Some(bytes);
            return handle;
        }
        self.places.push(Some(bytes));
        (self.places.len() - 1) as u32
    }

    /// The content of a handle that [`Slab::insert`] gave.
    pub(super) fn get(&self, handle: u32) -> Option<Arc<SectorBytes>> {
        self.places.get(handle as usize)?.as_ref().map(Packed::bytes)
    }

    /// Drops a content.
    pub(super) fn remove(&mut self, handle: u32) {
        let gone = self.places[handle as usize].take();
        self.contents_bytes -= gone.map_or(0, |gone| gone.memory_bytes());
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

    /// Contents that are kept.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Bytes of all contents and their places.
    pub(super) const fn memory_bytes(&self) -> u64 {
        self.contents_bytes + self.places.len() as u64 * PLACE_BYTES
    }
}
