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
pub enum MapEntry {
    /// Never written, or discarded.
    Unmapped,
    /// In this slot of the write buffer.
    Buffered(u32),
    /// On media.
    Flash(Ppa),
}

/// The table.
#[derive(Debug)]
pub(crate) enum L2p {
    Packed(Column<u32>),
    Wide(Column<u64>),
}

const PACKED_BUFFERED: u32 = 1 << 31;

/// Bytes of an entry for media with addresses below `ppa_end`.
pub(crate) const fn entry_bytes(ppa_end: u64) -> u32 {
    if ppa_end < PACKED_BUFFERED as u64 { 4 } else { 8 }
}
const WIDE_BUFFERED: u64 = 1 << 63;

impl L2p {
    /// An empty table for `sectors` logical sectors on media with addresses below `ppa_end`.
    /// `None` when the process cannot have the address space.
    pub(crate) fn new(sectors: u64, ppa_end: u64) -> Option<Self> {
        Some(if entry_bytes(ppa_end) == 4 {
            Self::Packed(Column::zeroed(sectors)?)
        } else {
            Self::Wide(Column::zeroed(sectors)?)
        })
    }

    #[inline]
    pub(crate) fn get(&self, lba: Lba) -> MapEntry {
        match self {
            Self::Packed(table) => unpack(table[lba.0 as usize]),
            Self::Wide(table) => unpack_wide(table[lba.0 as usize]),
        }
    }

    /// Stores `place` and returns what it replaces.
    #[inline]
    pub(crate) fn replace(&mut self, lba: Lba, place: MapEntry) -> MapEntry {
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
    pub(crate) fn switch(&mut self, lba: Lba, from: MapEntry, to: MapEntry) -> bool {
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
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Packed(table) => table.len() as u64,
            Self::Wide(table) => table.len() as u64,
        }
    }

    /// Sectors that are mapped; looks at all entries.
    pub(crate) fn mapped(&self) -> u64 {
        let count = match self {
            Self::Packed(table) => table.iter().filter(|&&entry| entry != 0).count(),
            Self::Wide(table) => table.iter().filter(|&&entry| entry != 0).count(),
        };
        count as u64
    }

    /// Bytes of the table.
    pub(crate) fn bytes(&self) -> u64 {
        self.len() * u64::from(self.entry_bytes())
    }

    /// Bytes of an entry.
    pub(crate) const fn entry_bytes(&self) -> u32 {
        if matches!(self, Self::Packed(_)) { 4 } else { 8 }
    }

    /// Those of these sectors that there are.
    fn indices(&self, sectors: Range<u64>) -> Range<usize> {
        let end = sectors.end.min(self.len()) as usize;
        (sectors.start as usize).min(end)..end
    }

    /// A digest of the entries of these sectors, as far as there are any.
    pub(crate) fn digest(&self, sectors: Range<u64>) -> u64 {
        let range = self.indices(sectors);
        match self {
            Self::Packed(table) => xxh3_64(cast_slice(&table[range])),
            Self::Wide(table) => xxh3_64(cast_slice(&table[range])),
        }
    }

    /// The same, with each entry that names a write buffer as `how` has it.
    pub(crate) fn digest_as(&self, sectors: Range<u64>, how: impl Fn(MapEntry) -> MapEntry) -> u64 {
        let range = self.indices(sectors);
        match self {
            Self::Packed(table) => {
                let buffered = |entry| entry & PACKED_BUFFERED != 0;
                digest_with(&table[range], buffered, |entry| pack(how(unpack(entry))))
            }
            Self::Wide(table) => {
                let buffered = |entry| entry & WIDE_BUFFERED != 0;
                digest_with(&table[range], buffered, |entry| pack_wide(how(unpack_wide(entry))))
            }
        }
    }

    /// Whether none of these sectors is mapped.
    pub(crate) fn is_blank(&self, sectors: Range<u64>) -> bool {
        let range = self.indices(sectors);
        match self {
            Self::Packed(table) => table[range].iter().all(|&entry| entry == 0),
            Self::Wide(table) => table[range].iter().all(|&entry| entry == 0),
        }
    }

    /// Pulls the entry towards the caches.
    #[inline]
    pub(crate) fn prefetch(&self, lba: Lba) {
        match self {
            Self::Packed(table) => table.prefetch(lba.0 as usize),
            Self::Wide(table) => table.prefetch(lba.0 as usize),
        }
    }
}

#[inline]
pub(crate) const fn pack(place: MapEntry) -> u32 {
    match place {
        MapEntry::Unmapped => 0,
        MapEntry::Buffered(slot) => PACKED_BUFFERED | slot,
        MapEntry::Flash(ppa) => ppa.0 as u32 + 1,
    }
}

#[inline]
pub(crate) const fn unpack(entry: u32) -> MapEntry {
    if entry == 0 {
        MapEntry::Unmapped
    } else if entry & PACKED_BUFFERED != 0 {
        MapEntry::Buffered(entry & !PACKED_BUFFERED)
    } else {
        MapEntry::Flash(Ppa(entry as u64 - 1))
    }
}

#[inline]
const fn pack_wide(place: MapEntry) -> u64 {
    match place {
        MapEntry::Unmapped => 0,
        MapEntry::Buffered(slot) => WIDE_BUFFERED | slot as u64,
        MapEntry::Flash(ppa) => ppa.0 + 1,
    }
}

#[inline]
const fn unpack_wide(entry: u64) -> MapEntry {
    if entry == 0 {
        MapEntry::Unmapped
    } else if entry & WIDE_BUFFERED != 0 {
        MapEntry::Buffered(entry as u32)
    } else {
        MapEntry::Flash(Ppa(entry - 1))
    }
}

/// A digest of entries of which those that are `buffered` are taken as `how` has them. They are few, so
/// what lies between them is hashed where it is.
fn digest_with<T: Copy + NoUninit>(
    entries: &[T],
    buffered: impl Fn(T) -> bool,
    how: impl Fn(T) -> T,
) -> u64 {
    const STEP: usize = 64;
    let mut hasher = Xxh3::new();
    let mut hashed = 0;
    for (first, step) in (0..).step_by(STEP).zip(entries.chunks(STEP)) {
        if !step.iter().fold(false, |any, &entry| any | buffered(entry)) {
            continue;
        }
        for (at, &entry) in (first..).zip(step).filter(|(_, entry)| buffered(**entry)) {
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
        assert_eq!(table.get(lba), MapEntry::Unmapped);
        assert_eq!(table.replace(lba, MapEntry::Buffered(511)), MapEntry::Unmapped);
        assert!(!table.switch(lba, MapEntry::Buffered(510), MapEntry::Unmapped));
        assert!(table.switch(lba, MapEntry::Buffered(511), MapEntry::Flash(Ppa(0))));
        assert_eq!(table.replace(lba, MapEntry::Unmapped), MapEntry::Flash(Ppa(0)));
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
    fn a_digest_sees_buffered_entries_as_given() {
        for (ppa_end, len) in [(1 << 30, 300), (1 << 31, 300)] {
            let mut buffered = L2p::new(len, ppa_end).unwrap();
            let mut media = L2p::new(len, ppa_end).unwrap();
            for lba in (0..len).map(Lba) {
                let place = MapEntry::Flash(Ppa(lba.0 * 3));
                let in_buffer = [0, 63, 64, 65, 299].contains(&lba.0);
                buffered
                    .replace(lba, if in_buffer { MapEntry::Buffered(lba.0 as u32) } else { place });
                media.replace(lba, place);
            }
            let how = |place| match place {
                MapEntry::Buffered(slot) => MapEntry::Flash(Ppa(u64::from(slot) * 3)),
                other => other,
            };
            assert_eq!(buffered.digest_as(0..len, how), media.digest(0..len));
            assert_ne!(buffered.digest(0..len), media.digest(0..len));
        }
    }
}
