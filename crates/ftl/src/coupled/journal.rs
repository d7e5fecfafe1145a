//! The journal: what the firmware has to know after a power cut that the lines do not say, in sectors of the
//! page-mapped region that the host does not see.
//!
//! Entries of 16 bytes fill sectors of a ring, in order; a snapshot says from which sector on they count, and a later
//! one makes room. Each sector carries its number since the device was made, and the number of the mount that wrote it,
//! so that a mount ends where the last one did: sectors that a power cut left after a gap are not taken for later ones.
//!
//! | Sector | Bytes |
//! |---|---|
//! | magic, mount | 4, 4 |
//! | number | 8 |
//! | entries, CRC-32C of the rest | 4, 4 |
//! | (zero) | 8 |
//! | entries: kind, three words | 254 x 16 |

use super::config::JournalSizes;
use nandscape_block::{Lba, SECTOR_BYTES, SectorBytes};
use nandscape_rt::invariant;

/// Marks a sector of the ring.
const MAGIC: u32 = 0x4c46_4443;
const HEAD_BYTES: usize = 32;
const ENTRY_BYTES: usize = 16;
/// Entries of a sector.
pub(super) const ENTRIES: usize = (SECTOR_BYTES as usize - HEAD_BYTES) / ENTRY_BYTES;
/// Where the checksum is, and from where on it is of.
const CRC_AT: usize = 20;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    /// A logical line has this line, whose zone has this generation; nothing in it is known to be valid.
    Opened { logical: u32, line: u32, generation: u32 },
    /// Sectors that hold nothing any more, at the addresses where they are.
    Discarded { lba: Lba, sectors: u32 },
    /// A page was moved from one address to another; its record has this old address.
    Moved { old: Lba, from: Lba, to: Lba },
    /// The record with this old address leads to another new one, as that between them is done.
    Shortened { old: Lba, to: Lba },
    /// The record with this old address is not open any more.
    Closed { old: Lba },
}

impl Entry {
    fn words(self) -> [u32; 4] {
        let word = |lba: Lba| lba.0 as u32;
        match self {
            Self::Opened { logical, line, generation } => [1, logical, line, generation],
            Self::Discarded { lba, sectors } => [2, word(lba), sectors, 0],
            Self::Moved { old, from, to } => [3, word(old), word(from), word(to)],
            Self::Shortened { old, to } => [4, word(old), word(to), 0],
            Self::Closed { old } => [5, word(old), 0, 0],
        }
    }

    fn of(words: [u32; 4]) -> Option<Self> {
        let [kind, a, b, c] = words;
        let lba = |word: u32| Lba(word.into());
        Some(match kind {
            1 => Self::Opened { logical: a, line: b, generation: c },
            2 => Self::Discarded { lba: lba(a), sectors: b },
            3 => Self::Moved { old: lba(a), from: lba(b), to: lba(c) },
            4 => Self::Shortened { old: lba(a), to: lba(b) },
            5 => Self::Closed { old: lba(a) },
            _ => return None,
        })
    }
}

/// A sector of the ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct JournalSector {
    pub(super) mount: u32,
    pub(super) number: u64,
    pub(super) entries: Vec<Entry>,
}

/// Reads a word of bytes that hold it.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

impl JournalSector {
    pub(super) fn encode(&self) -> Box<SectorBytes> {
        let mut bytes = Box::new([0; SECTOR_BYTES as usize]);
        let mut put = |at: usize, word: u32| {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        };
        put(0, MAGIC);
        put(4, self.mount);
        put(8, self.number as u32);
        put(12, (self.number >> 32) as u32);
        put(16, self.entries.len() as u32);
        for (index, entry) in self.entries.iter().enumerate() {
            let at = HEAD_BYTES + index * ENTRY_BYTES;
            (0..).zip(entry.words()).for_each(|(i, word)| put(at + 4 * i, word));
        }
        let crc = checksum(&bytes);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` of anything else.
    pub(super) fn decode(bytes: &SectorBytes) -> Option<Self> {
        let count = word(bytes, 16) as usize;
        let is_one = word(bytes, 0) == MAGIC && count <= ENTRIES && word(bytes, 4) < u32::MAX;
        if !is_one || word(bytes, CRC_AT) != checksum(bytes) {
            return None;
        }
        let entry = |index: usize| {
            let at = HEAD_BYTES + index * ENTRY_BYTES;
            Entry::of([0, 4, 8, 12].map(|i| word(bytes, at + i)))
        };
        let number = u64::from(word(bytes, 8)) | u64::from(word(bytes, 12)) << 32;
        let entries = (0..count).map(entry).collect::<Option<_>>()?;
        Some(Self { mount: word(bytes, 4), number, entries })
    }
}

/// The checksum of a sector, which it holds itself.
fn checksum(bytes: &SectorBytes) -> u32 {
    let crc = crc32c::crc32c(&bytes[..CRC_AT]);
    crc32c::crc32c_append(crc, &bytes[CRC_AT + 4..])
}

/// How far the journal is. Positions count entries since mount.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) sizes: JournalSizes,
    pub(super) mount: u32,
    /// The number of the sector that is being filled, and what is in it.
    pub(super) number: u64,
    tail: Vec<Entry>,
    /// The sector from which on the last snapshot needs the ring.
    pub(super) start: u64,
    appended: u64,
    /// What was handed out to be written.
    handed: u64,
    /// What is durable.
    durable: u64,
}

impl Journal {
    /// A journal that goes on with this sector, as this mount.
    pub(super) const fn new(sizes: JournalSizes, mount: u32, number: u64, start: u64) -> Self {
        Self { sizes, mount, number, tail: Vec::new(), start, appended: 0, handed: 0, durable: 0 }
    }

    /// The position after what was appended.
    #[inline]
    pub(super) const fn position(&self) -> u64 {
        self.appended
    }

    /// Whether everything before a position is durable.
    #[inline]
    pub(super) const fn is_durable(&self, position: u64) -> bool {
        self.durable >= position
    }

    /// Whether something was appended that was not handed out.
    pub(super) const fn has_news(&self) -> bool {
        self.appended > self.handed
    }

    /// Whether nothing is in the sector that is being filled.
    pub(super) const fn is_fresh(&self) -> bool {
        self.tail.is_empty()
    }

    /// Whether the sector that is being filled takes no more.
    const fn is_full(&self) -> bool {
        let entries = self.sizes.entries as usize;
        self.tail.len() == ENTRIES || entries > 0 && self.tail.len() >= entries
    }

    /// Adds an entry; a sector that is full by that.
    #[must_use]
    pub(super) fn append(&mut self, entry: Entry) -> Option<JournalSector> {
        invariant!(!self.is_full(), "the sector that is being filled takes an entry");
        self.tail.push(entry);
        self.appended += 1;
        self.is_full().then(|| self.turn())
    }

    /// The sector that is being filled, if it has news. It is written again with what follows.
    #[must_use]
    pub(super) fn partial(&mut self) -> Option<JournalSector> {
        if !self.has_news() {
            return None;
        }
        self.handed = self.appended;
        let (mount, number, entries) = (self.mount, self.number, self.tail.clone());
        Some(JournalSector { mount, number, entries })
    }

    /// Begins another sector; the one before it.
    #[must_use]
    pub(super) fn turn(&mut self) -> JournalSector {
        self.handed = self.appended;
        let entries = std::mem::take(&mut self.tail);
        let sector = JournalSector { mount: self.mount, number: self.number, entries };
        self.number += 1;
        sector
    }

    /// What was handed out up to a position is durable.
    pub(super) fn made_durable(&mut self, position: u64) {
        invariant!(position <= self.handed, "what is durable of the journal was handed out");
        self.durable = self.durable.max(position);
    }

    /// The address of a sector of the ring.
    pub(super) const fn address(&self, number: u64) -> Lba {
        Lba(self.sizes.start + 2 * self.sizes.slot + number % self.sizes.ring)
    }

    /// The first sector of the slot of a snapshot.
    pub(super) const fn slot_of(&self, number: u64) -> Lba {
        Lba(self.sizes.start + number % 2 * self.sizes.slot)
    }

    /// Whether a sector may be written: the snapshot does not need what is at its place.
    pub(super) const fn has_room(&self, number: u64) -> bool {
        number < self.start + self.sizes.ring
    }

    /// Whether half of the ring is used since the last snapshot.
    pub(super) const fn wants_snapshot(&self) -> bool {
        self.number - self.start > self.sizes.ring / 2
    }

    /// Bytes of RAM.
    pub(super) const fn bytes(&self) -> u64 {
        (self.tail.capacity() * size_of::<Entry>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        vec![
            Entry::Opened { logical: 7, line: 9, generation: 11 },
            Entry::Discarded { lba: Lba(0xffff_fff0), sectors: 12 },
            Entry::Moved { old: Lba(1 << 29), from: Lba(3 << 29), to: Lba(3 << 29 | 5) },
            Entry::Shortened { old: Lba(4), to: Lba(5) },
            Entry::Closed { old: Lba(0xe000_0000) },
        ]
    }

    /// A sector holds what was put into it, and anything else is none.
    #[test]
    fn sectors_hold_entries() {
        let sector = JournalSector { mount: 3, number: 1 << 33 | 5, entries: entries() };
        let bytes = sector.encode();
        assert_eq!(JournalSector::decode(&bytes), Some(sector));
        for at in [0, 4, 9, 16, 20, 40, 4_095] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(JournalSector::decode(&other), None, "byte {at}");
        }
        assert_eq!(JournalSector::decode(&[0; SECTOR_BYTES as usize]), None);
    }

    /// Full sectors are handed out once, the one that is being filled each time that it has news.
    #[test]
    fn sectors_are_handed_out() {
        let sizes = JournalSizes { start: 100, slot: 2, ring: 4, entries: 0, records: 1 };
        let mut journal = Journal::new(sizes, 1, 6, 5);
        assert!(!journal.has_news() && journal.partial().is_none() && journal.is_durable(0));
        assert_eq!(journal.append(Entry::Closed { old: Lba(1) }), None);
        assert!(journal.has_news() && !journal.is_durable(1));
        let part = journal.partial().unwrap();
        assert_eq!((part.number, part.entries.len(), journal.has_news()), (6, 1, false));
        let full: Vec<_> = (0..2 * ENTRIES)
            .filter_map(|_| journal.append(Entry::Closed { old: Lba(2) }))
            .map(|sector| (sector.number, sector.entries.len()))
            .collect();
        assert_eq!(full, [(6, ENTRIES), (7, ENTRIES)]);
        assert_eq!((journal.address(8), journal.address(9)), (Lba(104), Lba(105)));
        assert!(journal.has_room(8) && !journal.has_room(9));
        journal.made_durable(1);
        assert!(journal.is_durable(1) && !journal.is_durable(2));
    }
}
