//! Sector contents by handle: a slab whose places are reused.

use nandscape_block::{Pieces, SECTOR_BYTES, SectorBytes, SectorData, SparseBytes};
use std::sync::Arc;

/// Bytes that a place takes: a reference to a content, and its entry in the free list.
pub(super) const PLACE_BYTES: u64 = size_of::<SectorData>() as u64 + 4;
/// Bytes of a buffer that is shared: content and the two counts of its `Arc`.
const BUFFER_BYTES: u64 = SECTOR_BYTES + 16;
/// The most that one more content can cost.
pub(super) const COST_BYTES: u64 = SparseBytes::BYTES_MAX + PLACE_BYTES;
/// With more lines than this that say something, a buffer is shared with its writer instead.
const LINES_MAX: usize = 56;

/// Contents by handle.
#[derive(Clone, Default, Debug)]
pub(super) struct Slab {
    places: Vec<SectorData>,
    free: Vec<u32>,
    /// Bytes of all contents besides their places.
    contents_bytes: u64,
}

impl Slab {
    /// Keeps a content that is more than a tag.
    pub(super) fn insert(&mut self, content: &SectorData) -> u32 {
        let content = match content {
            SectorData::Bytes(bytes) => packed(bytes),
            other => other.clone(),
        };
        self.contents_bytes += memory_bytes(&content);
        if let Some(handle) = self.free.pop() {
            self.places[handle as usize] = content;
            return handle;
        }
        self.places.push(content);
        (self.places.len() - 1) as u32
    }

    /// The content of a handle that this slab gave.
    pub(super) fn get(&self, handle: u32) -> SectorData {
        self.places.get(handle as usize).cloned().unwrap_or_default()
    }

    /// Drops a content.
    pub(super) fn remove(&mut self, handle: u32) {
        let gone = std::mem::take(&mut self.places[handle as usize]);
        self.contents_bytes -= memory_bytes(&gone);
        self.free.push(handle);
    }

    /// Places, used or not.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Makes unused places until there are so many in all.
    pub(super) fn reserve_places(&mut self, places: usize) {
        let first = self.places.len();
        self.places.resize(first.max(places), SectorData::Absent);
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

/// Bytes without what says nothing, if that is worth it.
fn packed(bytes: &Arc<SectorBytes>) -> SectorData {
    let sparse = SparseBytes::new(bytes);
    if sparse.lines() > LINES_MAX {
        return SectorData::Bytes(Arc::clone(bytes));
    }
    SectorData::Sparse(Arc::new(sparse))
}

/// Bytes that a content takes besides its place, in full however many share it; lines that it shares
/// with an older content count there.
fn memory_bytes(content: &SectorData) -> u64 {
    match content {
        SectorData::Absent | SectorData::Tag(_) => 0,
        SectorData::Bytes(_) => BUFFER_BYTES,
        SectorData::Sparse(bytes) => bytes.own_bytes(),
        SectorData::Pieces(_) => Pieces::BYTES,
    }
}
