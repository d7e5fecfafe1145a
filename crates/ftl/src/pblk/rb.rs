//! The write buffer: one ring for user data, garbage-collection copies and trim records
//! (pblk-rb.c).
//!
//! A position is never reused: slot = position mod size, and the position *is* the entry's global
//! write sequence. The pointers keep the kernel's order,
//! `l2p_update <= sync <= subm <= mem <= l2p_update + size`:
//! - `mem`: next position handed to a producer;
//! - `subm`: next position for the writer;
//! - `sync`: everything before is durable;
//! - `l2p_update`: everything before has left the ring, the table points at media;
//! - `flush_point`: everything before must be submitted even if a unit needs padding.

use nandscape_block::{Lba, SectorData};
use nandscape_media::{KEY_EMPTY, KEY_MAX, KEY_TRIM};

/// Why an entry is in the ring.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Origin {
    /// Written by the host.
    #[default]
    User,
    /// Copied by garbage collection.
    Gc,
    /// A garbage-collection copy that turned out stale: written, but holds nothing.
    Stale,
    /// Trim records.
    Trim,
}

/// The ring.
#[derive(Debug)]
pub(super) struct Ring {
    keys: Box<[u32]>,
    origins: Box<[Origin]>,
    data: Box<[SectorData]>,
    pub(super) mem: u64,
    pub(super) subm: u64,
    pub(super) sync: u64,
    pub(super) l2p_update: u64,
    pub(super) flush_point: u64,
}

impl Ring {
    /// An empty ring of `size` entries (a power of two) whose first entry gets sequence `first`.
    pub(super) fn new(size: u32, first: u64) -> Self {
        let size = size as usize;
        Self {
            keys: vec![KEY_EMPTY; size].into_boxed_slice(),
            origins: vec![Origin::User; size].into_boxed_slice(),
            data: vec![SectorData::Absent; size].into_boxed_slice(),
            mem: first,
            subm: first,
            sync: first,
            l2p_update: first,
            flush_point: first,
        }
    }

    /// Entries.
    #[inline]
    pub(super) fn size(&self) -> u32 {
        self.keys.len() as u32
    }

    /// The slot of a position.
    #[inline]
    pub(super) fn slot(&self, position: u64) -> u32 {
        (position & (self.keys.len() as u64 - 1)) as u32
    }

    /// Slots that a producer may claim without recycling any.
    #[inline]
    pub(super) fn free(&self) -> u32 {
        self.size() - (self.mem - self.l2p_update) as u32
    }

    /// Entries that no write has taken yet.
    #[inline]
    pub(super) fn backlog(&self) -> u32 {
        (self.mem - self.subm) as u32
    }

    /// Claims the next slot, which must be free. Returns the entry's position.
    #[inline]
    pub(super) fn push(&mut self, key: u32, origin: Origin, data: SectorData) -> u64 {
        debug_assert!(self.free() > 0);
        let position = self.mem;
        let slot = self.slot(position) as usize;
        self.keys[slot] = key;
        self.origins[slot] = origin;
        // Where no content is kept there is nothing to store, and nothing to drop.
        let place = &mut self.data[slot];
        if !matches!((&*place, &data), (SectorData::Absent, SectorData::Absent)) {
            *place = data;
        }
        self.mem += 1;
        position
    }

    #[inline]
    pub(super) fn key(&self, position: u64) -> u32 {
        self.keys[self.slot(position) as usize]
    }

    #[inline]
    pub(super) fn origin(&self, position: u64) -> Origin {
        self.origins[self.slot(position) as usize]
    }

    /// Content of the entry at `position`.
    #[inline]
    pub(super) fn data(&self, position: u64) -> &SectorData {
        &self.data[self.slot(position) as usize]
    }

    /// Content of a slot that the table points at.
    #[inline]
    pub(super) fn slot_data(&self, slot: u32) -> &SectorData {
        &self.data[slot as usize]
    }

    /// Asks that everything inserted so far be submitted.
    pub(super) fn flush_all(&mut self) {
        self.flush_point = self.mem;
    }

    /// Bytes of the ring.
    pub(super) fn bytes(&self) -> u64 {
        let entry = size_of::<u32>() + size_of::<Origin>() + size_of::<SectorData>();
        u64::from(self.size()) * entry as u64
    }
}

/// The logical address that a key stands for, if it is one.
#[inline]
pub(super) const fn key_lba(key: u32) -> Option<Lba> {
    if key <= KEY_MAX { Some(Lba(key as u64)) } else { None }
}

/// Whether a sector with this key holds something that must be kept.
#[inline]
pub(super) const fn key_is_live(key: u32) -> bool {
    key <= KEY_MAX || key == KEY_TRIM
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_block::Tag;

    /// A position is the entry's global sequence, so no two entries ever share one, and an entry
    /// stays readable at its position until the ring has gone round.
    #[test]
    fn positions_are_sequences_and_never_come_again() {
        let mut ring = Ring::new(8, 1_000);
        for key in 0..20 {
            let position = ring.push(key, Origin::Gc, SectorData::Tag(Tag::new(u64::from(key))));
            assert_eq!(position, 1_000 + u64::from(key));
            assert_eq!((ring.key(position), ring.origin(position)), (key, Origin::Gc));
            let data = SectorData::Tag(Tag::new(u64::from(key)));
            assert_eq!((ring.data(position), ring.slot_data(ring.slot(position))), (&data, &data));
            ring.l2p_update = ring.mem.saturating_sub(7).max(1_000);
        }
    }

    /// Slots become free when entries leave the ring, not when they are submitted or durable: until
    /// then the table points at them.
    #[test]
    fn only_leaving_the_ring_frees_a_slot() {
        let mut ring = Ring::new(8, 1);
        for key in 0..8 {
            ring.push(key, Origin::User, SectorData::Absent);
        }
        assert_eq!((ring.free(), ring.backlog()), (0, 8));
        (ring.subm, ring.sync) = (7, 5);
        assert_eq!((ring.free(), ring.backlog()), (0, 2));
        ring.l2p_update = 4;
        assert_eq!(ring.free(), 3);
    }

    /// A flush point covers what is in the ring, and nothing that comes after.
    #[test]
    fn a_flush_point_covers_what_was_inserted_before() {
        let mut ring = Ring::new(8, 1);
        let last = ring.push(1, Origin::User, SectorData::Absent);
        ring.flush_all();
        let later = ring.push(2, Origin::User, SectorData::Absent);
        assert!(last < ring.flush_point && later >= ring.flush_point);
    }

    /// Old content never shines through an entry without content.
    #[test]
    fn a_reused_slot_forgets_its_content() {
        let mut ring = Ring::new(2, 0);
        ring.push(1, Origin::User, SectorData::Tag(Tag::new(5)));
        ring.push(2, Origin::User, SectorData::Absent);
        ring.l2p_update = 2;
        let position = ring.push(1, Origin::Gc, SectorData::Absent);
        assert_eq!(ring.data(position), &SectorData::Absent);
    }

    #[test]
    fn keys_are_addresses_trim_records_or_nothing() {
        assert_eq!(key_lba(KEY_MAX), Some(Lba(u64::from(KEY_MAX))));
        assert_eq!((key_lba(KEY_TRIM), key_lba(KEY_EMPTY)), (None, None));
        assert!(key_is_live(0) && key_is_live(KEY_MAX) && key_is_live(KEY_TRIM));
        assert!(!key_is_live(KEY_EMPTY));
    }
}
