//! The write buffer in the device's DRAM: pages that are being filled or programmed, and the share of the
//! buffer that their sectors take.
//!
//! Invariants:
//! - A slot belongs to the page `slot >> slot_bits`; a mapping unit takes slots in a row.
//! - Sequences within a page ascend.
//! - `used` is the sum of the shares of all pages; collection's pages have none.
//! - The first pages are collection's, one an instance; the others go to whichever instance opens one.

use super::config::{PAGE_MAX, Sizes};
use crate::common::ids::LineId;
use nandscape_block::SectorData;
use nandscape_media::{KEY_EMPTY, Ppa};
use nandscape_rt::{Nanos, Shadow, invariant};
use std::collections::BTreeSet;

/// Number of a page of the buffer.
pub(super) type PageId = u32;

/// A slot supersedes nothing.
const NOTHING: Ppa = Ppa(u64::MAX);

/// A page that is being filled or programmed.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Page {
    /// Where it will lie.
    pub(super) at: Ppa,
    /// The erase unit of that place.
    pub(super) line: LineId,
    /// Sequence of its first sector.
    pub(super) first_seq: u64,
    /// Sectors in it.
    pub(super) filled: u32,
    /// Those of them that count against the buffer.
    pub(super) share: u32,
    /// When all of its content is there.
    pub(super) ready: Nanos,
    /// When its unit begins its program.
    pub(super) began: Nanos,
    /// Whether sequences of its sectors follow each other.
    consecutive: bool,
    /// Whether any sector has content.
    has_data: bool,
    /// Whether any sector supersedes one on media whose content need not be kept then.
    pub(super) supersedes: bool,
}

/// The buffer.
#[derive(Debug)]
pub(super) struct WriteBuffer {
    pages: Box<[Page]>,
    keys: Box<[u32]>,
    deltas: Box<[u32]>,
    data: Box<[SectorData]>,
    /// The copy on media that a unit supersedes, at its first slot. What the model needs and a device does not: no
    /// part of its memory.
    superseded: Box<[Ppa]>,
    free: Vec<PageId>,
    slot_bits: u32,
    page: u32,
    size: u32,
    used: u32,
    /// Pages whose program was sent.
    sealed: Shadow<BTreeSet<PageId>>,
}

impl WriteBuffer {
    /// An empty buffer.
    pub(super) fn new(sizes: &Sizes, instances: u32) -> Self {
        // A page that a flush padded holds few sectors, so there are more pages than the buffer fills.
        let pages = 4 * sizes.buffer / sizes.page + 2 * instances;
        let slot_bits = sizes.page.next_power_of_two().ilog2();
        let slots = (pages as usize) << slot_bits;
        Self {
            pages: vec![Page::default(); pages as usize].into_boxed_slice(),
            keys: vec![KEY_EMPTY; slots].into_boxed_slice(),
            deltas: vec![0; slots].into_boxed_slice(),
            data: vec![SectorData::Absent; slots].into_boxed_slice(),
            superseded: vec![NOTHING; slots].into_boxed_slice(),
            free: (instances..pages).rev().collect(),
            slot_bits,
            page: sizes.page,
            size: sizes.buffer,
            used: 0,
            sealed: Shadow::default(),
        }
    }

    /// Sectors that it can take.
    #[inline]
    pub(super) const fn free_sectors(&self) -> u32 {
        // Trim records, and units that a discard covers in part, may take more than there is.
        self.size.saturating_sub(self.used)
    }

    /// Sectors in it that count against its size.
    pub(super) const fn used(&self) -> u32 {
        self.used
    }

    /// Whether so many pages can be opened.
    #[inline]
    pub(super) fn has_pages(&self, pages: usize) -> bool {
        self.free.len() >= pages
    }

    /// Takes an unused page.
    #[inline]
    pub(super) fn take(&mut self) -> Option<PageId> {
        self.free.pop()
    }

    /// A page begins to be filled, for a place in an erase unit.
    #[inline]
    pub(super) fn open(&mut self, id: PageId, at: Ppa, line: LineId) {
        self.sealed.note(|sealed| _ = sealed.remove(&id));
        self.pages[id as usize] = Page { at, line, consecutive: true, ..Page::default() };
    }

    /// A page that was programmed, or need not be, is unused again.
    #[inline]
    pub(super) fn release(&mut self, id: PageId) {
        invariant!(
            self.used >= self.pages[id as usize].share,
            "`used` is the sum of the shares of all pages"
        );
        self.used -= self.pages[id as usize].share;
        self.pages[id as usize] = Page::default();
        self.free.push(id);
    }

    #[inline]
    pub(super) fn get(&self, id: PageId) -> &Page {
        &self.pages[id as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: PageId) -> &mut Page {
        &mut self.pages[id as usize]
    }

    /// The page of a slot.
    #[inline]
    pub(super) const fn page_of(&self, slot: u32) -> PageId {
        slot >> self.slot_bits
    }

    /// The first slot of a page.
    #[inline]
    pub(super) const fn first_slot(&self, id: PageId) -> u32 {
        id << self.slot_bits
    }

    /// The first sequence of a page that is being filled.
    #[inline]
    pub(super) fn filling(&self, page: Option<PageId>) -> Option<u64> {
        let page = page.map(|id| self.get(id)).filter(|page| page.filled > 0);
        page.map(|page| page.first_seq)
    }

    /// Whether a page takes no more sectors.
    #[inline]
    pub(super) fn is_full(&self, id: PageId) -> bool {
        self.get(id).filled == self.page
    }

    /// Whether a page can take a sector with this sequence.
    #[inline]
    pub(super) fn takes(&self, id: PageId, seq: u64) -> bool {
        let page = self.get(id);
        page.filled == 0 || seq - page.first_seq <= u64::from(u32::MAX) - PAGE_MAX as u64
    }

    /// Adds a sector to a page that takes it; its slot.
    #[inline]
    pub(super) fn push(&mut self, id: PageId, key: u32, seq: u64, data: SectorData) -> u32 {
        let last = (id << self.slot_bits) + self.get(id).filled.max(1) - 1;
        invariant!(
            self.get(id).filled == 0 || self.seq(last) < seq,
            "sequence: sequences within a page ascend"
        );
        let page = &mut self.pages[id as usize];
        invariant!(page.filled < self.page, "a page takes a sector only if it is not full");
        invariant!(
            self.sealed.agrees(|sealed| !sealed.contains(&id)),
            "a page takes nothing when its program was sent"
        );
        if page.filled == 0 {
            page.first_seq = seq;
        }
        let delta = (seq - page.first_seq) as u32;
        page.consecutive &= delta == page.filled;
        page.has_data |= !matches!(data, SectorData::Absent);
        let slot = (id << self.slot_bits) + page.filled;
        page.filled += 1;
        self.keys[slot as usize] = key;
        self.deltas[slot as usize] = delta;
        self.data[slot as usize] = data;
        self.superseded[slot as usize] = NOTHING;
        slot
    }

    /// A unit in the buffer supersedes one on media.
    pub(super) fn set_superseded(&mut self, slot: u32, at: Ppa) {
        let id = self.page_of(slot);
        self.pages[id as usize].supersedes = true;
        self.superseded[slot as usize] = at;
    }

    /// What a unit in the buffer supersedes on media, if that is to be known.
    pub(super) fn superseded(&self, slot: u32) -> Option<Ppa> {
        Some(self.superseded[slot as usize]).filter(|&at| at != NOTHING)
    }

    /// Counts sectors of a page against the buffer.
    #[inline]
    pub(super) fn charge(&mut self, id: PageId, sectors: u32) {
        self.pages[id as usize].share += sectors;
        self.used += sectors;
    }

    /// Fills the rest of a page with nothing, so that it can be programmed; how many sectors that is.
    pub(super) fn pad(&mut self, id: PageId) -> u32 {
        let (first, filled) = (self.first_slot(id) as usize, self.get(id).filled as usize);
        invariant!(filled > 0, "a page that is programmed holds something");
        self.sealed.note(|sealed| _ = sealed.insert(id));
        let padded = first + filled..first + self.page as usize;
        self.keys[padded.clone()].fill(KEY_EMPTY);
        let last = self.deltas[first + filled - 1];
        for (delta, index) in self.deltas[padded.clone()].iter_mut().zip(1..) {
            *delta = last + index;
        }
        self.data[padded].fill(SectorData::Absent);
        self.page - filled as u32
    }

    /// The keys of a page.
    #[inline]
    pub(super) fn keys(&self, id: PageId) -> &[u32] {
        let first = self.first_slot(id) as usize;
        &self.keys[first..first + self.page as usize]
    }

    /// Sequences of a page's sectors less that of the first one; empty where they follow each other.
    #[inline]
    pub(super) fn deltas(&self, id: PageId) -> &[u32] {
        if self.get(id).consecutive {
            return &[];
        }
        let first = self.first_slot(id) as usize;
        &self.deltas[first..first + self.page as usize]
    }

    /// Content of a page's sectors; empty where none has any.
    #[inline]
    pub(super) fn contents(&self, id: PageId) -> &[SectorData] {
        if !self.get(id).has_data {
            return &[];
        }
        let first = self.first_slot(id) as usize;
        &self.data[first..first + self.page as usize]
    }

    /// The key of a slot.
    #[inline]
    pub(super) fn key(&self, slot: u32) -> u32 {
        self.keys[slot as usize]
    }

    /// Sequence of a slot of a page.
    pub(super) fn seq(&self, slot: u32) -> u64 {
        self.get(self.page_of(slot)).first_seq + u64::from(self.deltas[slot as usize])
    }

    /// Content of a slot.
    #[inline]
    pub(super) fn data(&self, slot: u32) -> &SectorData {
        &self.data[slot as usize]
    }

    /// Other content in a slot.
    #[inline]
    pub(super) fn set_data(&mut self, slot: u32, data: SectorData) {
        let id = self.page_of(slot);
        invariant!(
            self.sealed.agrees(|sealed| !sealed.contains(&id)),
            "what a page holds does not change when its program was sent"
        );
        self.pages[id as usize].has_data |= !matches!(data, SectorData::Absent);
        self.data[slot as usize] = data;
    }

    /// Pages with sectors in them.
    pub(super) fn filled_pages(&self) -> impl Iterator<Item = (PageId, &Page)> {
        (0..).zip(self.pages.iter()).filter(|(_, page)| page.filled > 0)
    }

    /// A page of copies was programmed: it holds nothing any more.
    #[inline]
    pub(super) fn clear(&mut self, id: PageId) {
        self.sealed.note(|sealed| _ = sealed.remove(&id));
        self.pages[id as usize] = Page::default();
    }

    /// Pages in use and what is in them, for checks.
    pub(super) fn shares(&self) -> u32 {
        self.pages.iter().map(|page| page.share).sum()
    }

    /// Bytes of RAM.
    pub(super) fn bytes(&self) -> u64 {
        let slot = 2 * size_of::<u32>() + size_of::<SectorData>();
        (self.keys.len() * slot + self.pages.len() * (size_of::<Page>() + size_of::<PageId>()))
            as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_block::Tag;

    const SIZES: Sizes = Sizes {
        physical_sectors: 1 << 20,
        logical_sectors: 1 << 19,
        address_sectors: 1 << 19,
        data_sectors: 1 << 19,
        run_units: 0,
        lines: 64,
        line_sectors: 1 << 14,
        page: 6,
        unit: 1,
        buffer: 24,
    };

    /// A page gives back what was put into it, padding is nothing, and its share returns with it.
    #[test]
    fn pages_hold_what_is_pushed() {
        let mut buffer = WriteBuffer::new(&SIZES, 1);
        let id = buffer.take().expect("a page");
        buffer.open(id, Ppa(9), 3);
        for (key, seq) in [(7, 100), (8, 101), (9, 105)] {
            let slot = buffer.push(id, key, seq, SectorData::Tag(Tag::new(u64::from(key))));
            buffer.charge(id, 1);
            assert_eq!((buffer.page_of(slot), buffer.key(slot), buffer.seq(slot)), (id, key, seq));
            assert_eq!(buffer.data(slot), &SectorData::Tag(Tag::new(u64::from(key))));
        }
        assert_eq!((buffer.used(), buffer.free_sectors(), buffer.pad(id)), (3, 21, 3));
        assert_eq!(buffer.keys(id), [7, 8, 9, KEY_EMPTY, KEY_EMPTY, KEY_EMPTY]);
        assert_eq!(buffer.deltas(id), [0, 1, 5, 6, 7, 8]);
        buffer.release(id);
        assert_eq!((buffer.used(), buffer.shares()), (0, 0));
        let again = buffer.take().expect("a page");
        buffer.open(again, Ppa(0), 1);
        buffer.push(again, 1, 50, SectorData::Absent);
        buffer.push(again, 2, 51, SectorData::Absent);
        buffer.pad(again);
        assert!(buffer.deltas(again).is_empty() && buffer.contents(again).is_empty());
    }
}
