//! Sectors out of a store and into another one, in blocks: what a snapshot of a device is made of.
//!
//! A store that took in every block of another one, its touched chunks and its number of places
//! answers as that one does. It counts its memory as that one does, too, where contents shared nothing
//! and none was made of pieces.

use super::super::StoreError;
use super::super::slab::PLACE_BYTES;
use super::{DROPPED, HANDLE, MemoryStore, PayloadMode, is_handle, kind_of, trimmed};
use crate::command::Kind;
use crate::geometry::Ppa;
use nandscape_block::{SECTOR_BYTES, SectorData};
use std::sync::Arc;

/// A sector of a block that holds bytes, and these without their trailing zeroes.
pub(crate) type HeldBytes = (u32, Box<[u8]>);

/// What consecutive sectors of one chunk hold, in columns.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Block {
    /// Key of each sector.
    pub(crate) keys: Vec<u32>,
    /// Sequence base and kind of each granule.
    pub(crate) units: Vec<u64>,
    /// Distance of each sector's sequence from its granule's, where sectors have their own.
    pub(crate) seq_deltas: Vec<u32>,
    /// Auxiliary value of each sector, where sectors have any.
    pub(crate) aux: Vec<u32>,
    /// Content of each sector; [`Block::BYTES`] stands for bytes. Empty in mode `None`.
    pub(crate) contents: Vec<u64>,
    /// Sectors that hold bytes, in order.
    pub(crate) bytes: Vec<HeldBytes>,
}

impl Block {
    /// Stands for bytes among the contents.
    pub(crate) const BYTES: u64 = HANDLE;
    /// Stands for a content that was dropped.
    pub(crate) const DROPPED: u64 = DROPPED;
}

impl MemoryStore {
    /// Whether each of `sectors` has a content in a block.
    pub(crate) fn keeps_contents(&self) -> bool {
        self.mode != PayloadMode::None
    }

    /// Whether sectors have sequences of their own.
    pub(crate) const fn keeps_seqs(&self) -> bool {
        self.seq_deltas.is_some()
    }

    /// Has each sector keep its own sequence, as another store does.
    pub(crate) fn enable_seq_column(&mut self) -> Result<(), StoreError> {
        if self.keeps_seqs() { Ok(()) } else { self.add_seq_column() }
    }

    /// Whether sectors have auxiliary values.
    pub(crate) const fn keeps_aux(&self) -> bool {
        self.aux.is_some()
    }

    /// Has each sector keep an auxiliary value, as another store does.
    pub(crate) fn enable_aux_column(&mut self) -> Result<(), StoreError> {
        if self.keeps_aux() { Ok(()) } else { self.add_aux_column() }
    }

    /// Granules of so many sectors.
    pub(crate) const fn granules(&self, sectors: u32) -> u32 {
        sectors >> self.granule_bits
    }

    /// Fills `block` with what `sectors` sectors from `at` hold, whole granules of one chunk.
    pub(crate) fn export(&self, at: Ppa, sectors: u32, block: &mut Block) {
        let (first, end) = (at.0 as usize, at.plus(sectors).0 as usize);
        block.keys.clear();
        block.keys.extend_from_slice(&self.keys[first..end]);
        block.units.clear();
        let granules = first >> self.granule_bits..end >> self.granule_bits;
        block.units.extend_from_slice(&self.units[granules]);
        block.seq_deltas.clear();
        if let Some(deltas) = &self.seq_deltas {
            block.seq_deltas.extend_from_slice(&deltas[first..end]);
        }
        block.aux.clear();
        if let Some(aux) = &self.aux {
            block.aux.extend_from_slice(&aux[first..end]);
        }
        block.contents.clear();
        block.bytes.clear();
        if self.keeps_contents() {
            self.export_contents(first, end, block);
        } else {
            let kept = self.metadata.range(at.0..at.plus(sectors).0);
            let kept = kept.map(|(from, bytes)| ((from - at.0) as u32, bytes.clone()));
            block.bytes.extend(kept);
        }
    }

    fn export_contents(&self, first: usize, end: usize, block: &mut Block) {
        for (sector, content) in (0..).zip(&self.contents[first..end]) {
            let is_handle = is_handle(*content);
            block.contents.push(if is_handle { Block::BYTES } else { *content });
            if is_handle && let Some(bytes) = self.slab.get(*content as u32).bytes() {
                block.bytes.push((sector, trimmed(&bytes).into()));
            }
        }
    }

    /// Takes in what `block` holds, from `at` on.
    ///
    /// # Errors
    /// [`StoreError::Full`] when that would exceed the store's limit; part of it may be there.
    pub(crate) fn import(&mut self, at: Ppa, block: Block) -> Result<(), StoreError> {
        let (first, end) = (at.0 as usize, at.0 as usize + block.keys.len());
        self.keys[first..end].copy_from_slice(&block.keys);
        let granules = first >> self.granule_bits..end >> self.granule_bits;
        self.units[granules].copy_from_slice(&block.units);
        if let Some(deltas) = self.seq_deltas.as_mut().filter(|_| !block.seq_deltas.is_empty()) {
            deltas[first..end].copy_from_slice(&block.seq_deltas);
        }
        if let Some(aux) = self.aux.as_mut().filter(|_| !block.aux.is_empty()) {
            aux[first..end].copy_from_slice(&block.aux);
        }
        let keeps_contents = self.keeps_contents();
        if keeps_contents {
            self.contents[first..end].copy_from_slice(&block.contents);
            let dropped = block.contents.iter().filter(|content| **content == DROPPED);
            self.dropped += dropped.count() as u64;
        }
        for (sector, bytes) in block.bytes {
            let granule = (first + sector as usize) >> self.granule_bits;
            let kind = kind_of(self.units[granule]);
            if keeps_contents {
                let mut whole = [0; SECTOR_BYTES as usize];
                whole[..bytes.len()].copy_from_slice(&bytes);
                self.contents[first + sector as usize] =
                    self.keep_bytes(kind, &SectorData::Bytes(Arc::new(whole)));
            } else {
                self.metadata_bytes += bytes.len() as u64 + super::ENTRY_BYTES;
                self.metadata.insert(at.plus(sector).0, bytes);
                self.may_drop |= kind == Kind::Data;
            }
            self.check_cap(0)?;
        }
        Ok(())
    }

    /// Whether a chunk, by packed address without its sector, was ever written.
    pub(crate) fn is_touched(&self, row: usize) -> bool {
        self.touched[row]
    }

    /// Counts a chunk as written.
    pub(crate) fn touch(&mut self, row: usize) -> Result<(), StoreError> {
        if !std::mem::replace(&mut self.touched[row], true) {
            self.columns_bytes += self.chunk_bytes;
        }
        self.check_cap(0)
    }

    /// Places for bytes, used or not.
    pub(crate) fn places(&self) -> u64 {
        self.slab.places() as u64
    }

    /// Makes as many places for bytes as another store had.
    pub(crate) fn reserve_places(&mut self, places: u64) -> Result<(), StoreError> {
        let more = places.saturating_sub(self.places());
        self.check_cap(more.saturating_mul(PLACE_BYTES))?;
        self.slab.reserve_places(places as usize);
        Ok(())
    }

    fn check_cap(&self, more_bytes: u64) -> Result<(), StoreError> {
        use super::Store;
        let bytes = self.memory_bytes().saturating_add(more_bytes);
        if bytes > self.cap_bytes { Err(StoreError::Full) } else { Ok(()) }
    }
}
