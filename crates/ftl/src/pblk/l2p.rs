//! The logical-to-physical table: 4 bytes a sector where packed addresses fit 31 bits, else 8
//! (pblk-map.c `pblk_trans_map_*`). Zero is "unmapped", so a fresh table costs no resident memory.

use bytemuck::{NoUninit, bytes_of, cast_slice};
use nandscape_block::Lba;
use nandscape_column::Column;
use nandscape_media::Ppa;
use std::ops::Range;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Where a logical sector's newest version is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Never written, or discarded.
    Nowhere,
    /// In this slot of the write buffer.
    Cached(u32),
    /// On media.
    Media(Ppa),
}

/// The table.
#[derive(Debug)]
pub(super) enum L2p {
    Packed(Column<u32>),
    Wide(Column<u64>),
}

const PACKED_CACHED: u32 = 1 << 31;

/// Bytes of an entry for media with addresses below `ppa_end`.
pub(super) const fn entry_bytes(ppa_end: u64) -> u32 {
    if ppa_end < PACKED_CACHED as u64 { 4 } else { 8 }
}
const WIDE_CACHED: u64 = 1 << 63;

impl L2p {
    /// An empty table for `sectors` logical sectors on media with addresses below `ppa_end`.
    /// `None` when the process cannot have the address space.
    pub(super) fn new(sectors: u64, ppa_end: u64) -> Option<Self> {
        Some(if entry_bytes(ppa_end) == 4 {
            Self::Packed(Column::zeroed(sectors)?)
        } else {
            Self::Wide(Column::zeroed(sectors)?)
        })
    }

    #[inline]
    pub(super) fn get(&self, lba: Lba) -> Place {
        match self {
            Self::Packed(table) => unpack(table[lba.0 as usize]),
            Self::Wide(table) => unpack_wide(table[lba.0 as usize]),
        }
    }

    /// Stores `place` and returns what it replaces.
    #[inline]
    pub(super) fn replace(&mut self, lba: Lba, place: Place) -> Place {
        match self {
            Self::Packed(table) => {
                unpack(std::mem::replace(&mut table[lba.0 as usize], pack(place)))
            }
            Self::Wide(table) => {
                unpack_wide(std::mem::replace(&mut table[lba.0 as usize], pack_wide(place)))
            }
        }
    }

    /// Stores `to` if the sector is still at `from`; whether it was.
    #[inline]
    pub(super) fn switch(&mut self, lba: Lba, from: Place, to: Place) -> bool {
        match self {
            Self::Packed(table) => {
                let entry = &mut table[lba.0 as usize];
                let current = *entry == pack(from);
                if current {
                    *entry = pack(to);
                }
                current
            }
            Self::Wide(table) => {
                let entry = &mut table[lba.0 as usize];
                let current = *entry == pack_wide(from);
                if current {
                    *entry = pack_wide(to);
                }
                current
            }
        }
    }

    /// Logical sectors.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Packed(table) => table.len() as u64,
            Self::Wide(table) => table.len() as u64,
        }
    }

    /// Sectors that are mapped; looks at all entries.
    pub(super) fn mapped(&self) -> u64 {
        let count = match self {
            Self::Packed(table) => table.iter().filter(|&&entry| entry != 0).count(),
            Self::Wide(table) => table.iter().filter(|&&entry| entry != 0).count(),
        };
        count as u64
    }

    /// Bytes of the table.
    pub(super) fn bytes(&self) -> u64 {
        self.len() * u64::from(self.entry_bytes())
    }

    /// Bytes of an entry.
    pub(super) const fn entry_bytes(&self) -> u32 {
        if matches!(self, Self::Packed(_)) { 4 } else { 8 }
    }

    /// Those of these sectors that there are.
    fn indices(&self, sectors: Range<u64>) -> Range<usize> {
        let end = sectors.end.min(self.len()) as usize;
        (sectors.start as usize).min(end)..end
    }

    /// A digest of the entries of these sectors, as far as there are any.
    pub(super) fn digest(&self, sectors: Range<u64>) -> u64 {
        let range = self.indices(sectors);
        match self {
            Self::Packed(table) => xxh3_64(cast_slice(&table[range])),
            Self::Wide(table) => xxh3_64(cast_slice(&table[range])),
        }
    }

    /// The same, with each entry that names the ring as `how` has it.
    pub(super) fn digest_as(&self, sectors: Range<u64>, how: impl Fn(Place) -> Place) -> u64 {
        let range = self.indices(sectors);
        match self {
            Self::Packed(table) => {
                let cached = |entry| entry & PACKED_CACHED != 0;
                digest_with(&table[range], cached, |entry| pack(how(unpack(entry))))
            }
            Self::Wide(table) => {
                let cached = |entry| entry & WIDE_CACHED != 0;
                digest_with(&table[range], cached, |entry| pack_wide(how(unpack_wide(entry))))
            }
        }
    }

    /// Whether none of these sectors is mapped.
    pub(super) fn is_blank(&self, sectors: Range<u64>) -> bool {
        let range = self.indices(sectors);
        match self {
            Self::Packed(table) => table[range].iter().all(|&entry| entry == 0),
            Self::Wide(table) => table[range].iter().all(|&entry| entry == 0),
        }
    }

    /// Pulls the entry towards the caches.
    #[inline]
    pub(super) fn prefetch(&self, lba: Lba) {
        match self {
            Self::Packed(table) => table.prefetch(lba.0 as usize),
            Self::Wide(table) => table.prefetch(lba.0 as usize),
        }
    }
}

#[inline]
const fn pack(place: Place) -> u32 {
    match place {
        Place::Nowhere => 0,
        Place::Cached(slot) => PACKED_CACHED | slot,
        Place::Media(ppa) => ppa.0 as u32 + 1,
    }
}

#[inline]
const fn unpack(entry: u32) -> Place {
    if entry == 0 {
        Place::Nowhere
    } else if entry & PACKED_CACHED != 0 {
        Place::Cached(entry & !PACKED_CACHED)
    } else {
        Place::Media(Ppa(entry as u64 - 1))
    }
}

#[inline]
const fn pack_wide(place: Place) -> u64 {
    match place {
        Place::Nowhere => 0,
        Place::Cached(slot) => WIDE_CACHED | slot as u64,
        Place::Media(ppa) => ppa.0 + 1,
    }
}

#[inline]
const fn unpack_wide(entry: u64) -> Place {
    if entry == 0 {
        Place::Nowhere
    } else if entry & WIDE_CACHED != 0 {
        Place::Cached(entry as u32)
    } else {
        Place::Media(Ppa(entry - 1))
    }
}

/// A digest of entries of which those that are `cached` are taken as `how` has them. They are few, so
/// what lies between them is hashed where it is.
fn digest_with<T: Copy + NoUninit>(
    entries: &[T],
    cached: impl Fn(T) -> bool,
    how: impl Fn(T) -> T,
) -> u64 {
    const STEP: usize = 64;
    let mut hasher = Xxh3::new();
    let mut hashed = 0;
    for (first, step) in (0..).step_by(STEP).zip(entries.chunks(STEP)) {
        if !step.iter().fold(false, |any, &entry| any | cached(entry)) {
            continue;
        }
        for (at, &entry) in (first..).zip(step).filter(|(_, entry)| cached(**entry)) {
            hasher.update(cast_slice(&entries[hashed..at]));
            hasher.update(bytes_of(&how(entry)));
            hashed = at + 1;
        }
    }
    hasher.update(cast_slice(&entries[hashed..]));
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(table: &mut L2p) {
        let lba = Lba(7);
        assert_eq!(table.get(lba), Place::Nowhere);
        assert_eq!(table.replace(lba, Place::Cached(511)), Place::Nowhere);
        assert!(!table.switch(lba, Place::Cached(510), Place::Nowhere));
        assert!(table.switch(lba, Place::Cached(511), Place::Media(Ppa(0))));
        assert_eq!(table.replace(lba, Place::Nowhere), Place::Media(Ppa(0)));
    }

    #[test]
    fn every_place_survives_both_widths() {
        let mut packed = L2p::new(8, 1 << 30).unwrap();
        assert_eq!(packed.bytes(), 32);
        places(&mut packed);
        let mut wide = L2p::new(8, 1 << 31).unwrap();
        assert_eq!(wide.bytes(), 64);
        places(&mut wide);
    }

    /// A digest with entries exchanged is the digest of the table in which they are.
    #[test]
    fn a_digest_sees_ring_entries_as_it_is_told() {
        for (ppa_end, len) in [(1 << 30, 300), (1 << 31, 300)] {
            let mut ring = L2p::new(len, ppa_end).unwrap();
            let mut media = L2p::new(len, ppa_end).unwrap();
            for lba in (0..len).map(Lba) {
                let place = Place::Media(Ppa(lba.0 * 3));
                let in_ring = [0, 63, 64, 65, 299].contains(&lba.0);
                ring.replace(lba, if in_ring { Place::Cached(lba.0 as u32) } else { place });
                media.replace(lba, place);
            }
            let how = |place| match place {
                Place::Cached(slot) => Place::Media(Ppa(u64::from(slot) * 3)),
                other => other,
            };
            assert_eq!(ring.digest_as(0..len, how), media.digest(0..len));
            assert_ne!(ring.digest(0..len), media.digest(0..len));
        }
    }
}
