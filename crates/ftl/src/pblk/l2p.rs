//! The logical-to-physical table: 4 bytes a sector where packed addresses fit 31 bits, else 8
//! (pblk-map.c `pblk_trans_map_*`). Zero is "unmapped", so a fresh table costs no resident memory.

use nandscape_block::Lba;
use nandscape_column::Column;
use nandscape_media::Ppa;

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
const WIDE_CACHED: u64 = 1 << 63;

impl L2p {
    /// An empty table for `sectors` logical sectors on media with addresses below `ppa_end`.
    /// `None` when the process cannot have the address space.
    pub(super) fn new(sectors: u64, ppa_end: u64) -> Option<Self> {
        Some(if ppa_end < u64::from(PACKED_CACHED) {
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

    /// Bytes of the table.
    pub(super) fn bytes(&self) -> u64 {
        self.len() * if matches!(self, Self::Packed(_)) { 4 } else { 8 }
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
}
