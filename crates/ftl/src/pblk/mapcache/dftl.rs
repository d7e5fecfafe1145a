//! A cache of single mapping entries (DFTL, ASPLOS 2009, section 3): segmented LRU, and a write-back
//! takes all dirty entries of its translation page along.
//!
//! - A miss reads the translation page and keeps one entry, on probation; used again, it is
//!   protected; the protected entry used least recently goes back to probation when there are too
//!   many.
//! - Victims come from probation, and from the protected only if nothing else may leave.
//! - A dirty victim's page is read, merged with its dirty entries and written. Until that is done no
//!   entry of the page leaves: media would still say what was true before. A miss in such a page may
//!   read the older version, which holds the truth about every entry that is not cached.
//! - Entries that name a place in a ring are pinned: they do not leave, and are not written along.
//! - The paper reads a page for each missing entry; here misses of one page share a read in flight.

use super::list::{FreeList, Link, List, NIL, links};
use super::lru::{Standing, coldest, from_back};
use super::{Load, Lookup};
use crate::pblk::config::MapConfig;
use crate::pblk::stats::MapCounts;
use nandscape_block::Lba;
use nandscape_column::Column;
use nandscape_media::Ppa;
use nandscape_rt::invariant;
use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Loading,
    Probation,
    Protected,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    lba: u32,
    pins: u16,
    state: State,
    dirty: bool,
    /// Nobody has used it since it was chosen as victim.
    untouched: bool,
}

const FREE_ENTRY: Entry =
    Entry { lba: 0, pins: 0, state: State::Free, dirty: false, untouched: false };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Writing {
    No,
    /// A victim waits for it.
    Queued,
    /// It has begun.
    Begun,
}

#[derive(Clone, Copy, Debug)]
struct Page {
    /// Entries that a read in flight will bring.
    loading: List,
    dirty: List,
    writing: Writing,
    /// The entry to leave when the page is written.
    victim: u32,
}

const IDLE_PAGE: Page =
    Page { loading: List::EMPTY, dirty: List::EMPTY, writing: Writing::No, victim: NIL };

/// Sizes of an entry cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) logical_sectors: u64,
    /// Entries of a translation page, a power of two.
    pub(super) per_block: u32,
    /// Entries of the cache.
    pub(super) slots: u32,
    pub(super) protected_percent: u32,
}

/// The cache.
#[derive(Debug)]
pub(super) struct EntryCache {
    /// Slot + 1 of each sector's entry; zero when it is not cached.
    index: Column<u32>,
    entries: Box<[Entry]>,
    /// Order of use.
    links: Box<[Link]>,
    /// Entries of one page that are loading, or dirty.
    page_links: Box<[Link]>,
    pages: Box<[Page]>,
    page_shift: u32,
    probation: List,
    protected: List,
    protected_max: u32,
    free: FreeList,
    /// Pages of victims whose write-back has not begun.
    queue: VecDeque<u32>,
    pinned: u32,
    /// Pages being read.
    loads: u32,
    /// Victims that wait for their page.
    evictions: u32,
    /// Pages being written.
    writes: u32,
    loads_max: u32,
}

impl EntryCache {
    /// `None` when there is no address space for the index.
    pub(super) fn new(config: &MapConfig, shape: Shape) -> Option<Self> {
        let mut links_ = links(shape.slots);
        let pages = shape.logical_sectors.div_ceil(u64::from(shape.per_block)) as usize;
        let protected = u64::from(shape.slots) * u64::from(shape.protected_percent) / 100;
        Some(Self {
            index: Column::zeroed(shape.logical_sectors)?,
            entries: vec![FREE_ENTRY; shape.slots as usize].into_boxed_slice(),
            free: FreeList::all(&mut links_),
            links: links_,
            page_links: links(shape.slots),
            pages: vec![IDLE_PAGE; pages].into_boxed_slice(),
            page_shift: shape.per_block.trailing_zeros(),
            probation: List::EMPTY,
            protected: List::EMPTY,
            protected_max: protected as u32,
            queue: VecDeque::with_capacity(pages.min(shape.slots as usize)),
            pinned: 0,
            loads: 0,
            evictions: 0,
            writes: 0,
            loads_max: config.loads_max,
        })
    }

    #[inline]
    fn find(&self, lba: Lba) -> Option<u32> {
        self.index[lba.0 as usize].checked_sub(1)
    }

    #[inline]
    fn page_of(&self, slot: u32) -> usize {
        (self.entries[slot as usize].lba >> self.page_shift) as usize
    }

    #[inline]
    pub(super) fn access(&mut self, lba: Lba) -> Lookup {
        let Some(slot) = self.find(lba) else { return Lookup::Miss };
        let entry = &mut self.entries[slot as usize];
        entry.untouched = false;
        match entry.state {
            State::Protected => self.protected.move_to_front(&mut self.links, slot),
            State::Probation => self.protect(slot),
            State::Loading | State::Free => return Lookup::Loading,
        }
        Lookup::Hit
    }

    /// An entry on probation was used again.
    fn protect(&mut self, slot: u32) {
        if self.protected_max == 0 {
            return self.probation.move_to_front(&mut self.links, slot);
        }
        self.probation.remove(&mut self.links, slot);
        self.protected.push_front(&mut self.links, slot);
        self.entries[slot as usize].state = State::Protected;
        if self.protected.len() > self.protected_max {
            let demoted = self.protected.back();
            self.protected.remove(&mut self.links, demoted);
            self.enter_probation(demoted);
        }
    }

    fn enter_probation(&mut self, slot: u32) {
        self.probation.push_front(&mut self.links, slot);
        self.entries[slot as usize].state = State::Probation;
    }

    #[inline]
    pub(super) fn is_loaded(&self, lba: Lba) -> bool {
        self.find(lba).is_some_and(|slot| self.entries[slot as usize].state != State::Loading)
    }

    pub(super) fn is_loading(&self, lba: Lba) -> bool {
        self.find(lba).is_some_and(|slot| self.entries[slot as usize].state == State::Loading)
    }

    /// Whether no entry of the page is newer than media.
    pub(super) fn is_settled(&self, page: u32) -> bool {
        let page = &self.pages[page as usize];
        page.dirty.len() == 0 && page.writing != Writing::Begun
    }

    pub(super) fn begin_load(&mut self, lba: Lba, at: Option<Ppa>, stats: &mut MapCounts) -> Load {
        if let Some(slot) = self.find(lba) {
            let loading = self.entries[slot as usize].state == State::Loading;
            return if loading { Load::Joined } else { Load::Ready };
        }
        let joins = self.pages[(lba.0 >> self.page_shift) as usize].loading.len() > 0;
        if self.evictions >= self.loads_max || (self.loads >= self.loads_max && !joins) {
            return Load::Busy;
        }
        if self.free.len() == 0 && !self.make_room(stats) {
            let waits = self.loads + self.evictions + self.writes > 0;
            return if waits { Load::Busy } else { Load::NoSlot };
        }
        let Some(slot) = self.free.take(&self.links) else { return Load::WriteBack };
        self.occupy(slot, lba, at, stats)
    }

    fn occupy(&mut self, slot: u32, lba: Lba, at: Option<Ppa>, stats: &mut MapCounts) -> Load {
        self.index[lba.0 as usize] = slot + 1;
        let lba = lba.0 as u32;
        self.entries[slot as usize] = Entry { lba, state: State::Loading, ..FREE_ENTRY };
        let Some(at) = at else {
            stats.zero_fills += 1;
            self.enter_probation(slot);
            return Load::Ready;
        };
        let loading = &mut self.pages[(lba >> self.page_shift) as usize].loading;
        loading.push_front(&mut self.page_links, slot);
        if loading.len() > 1 {
            return Load::Joined;
        }
        self.loads += 1;
        Load::Read(at)
    }

    pub(super) fn loaded(&mut self, page: u32) {
        let loading = std::mem::replace(&mut self.pages[page as usize].loading, List::EMPTY);
        invariant!(loading.len() > 0, "page {page} that was loaded was asked for");
        self.loads -= 1;
        let mut slot = loading.back();
        while slot != NIL {
            self.enter_probation(slot);
            slot = self.page_links[slot as usize].prev;
        }
    }

    /// Chooses a victim; if it is clean it leaves. Whether there was one.
    fn make_room(&mut self, stats: &mut MapCounts) -> bool {
        if self.pinned == self.probation.len() + self.protected.len() {
            return false;
        }
        let Self { entries, pages, page_shift, .. } = self;
        let standing = |slot: u32| {
            let entry = &entries[slot as usize];
            if entry.pins > 0 {
                Standing::Pinned
            } else if pages[(entry.lba >> *page_shift) as usize].writing != Writing::No {
                Standing::Busy
            } else {
                Standing::May(0)
            }
        };
        let victim = coldest(&mut self.probation, &mut self.links, standing)
            .or_else(|| coldest(&mut self.protected, &mut self.links, standing));
        let Some(slot) = victim else { return false };
        if self.entries[slot as usize].dirty {
            self.queue_victim(slot);
        } else {
            stats.evictions_clean += 1;
            self.leave(slot);
        }
        true
    }

    fn queue_victim(&mut self, slot: u32) {
        self.entries[slot as usize].untouched = true;
        let page = self.page_of(slot);
        self.pages[page].writing = Writing::Queued;
        self.pages[page].victim = slot;
        self.queue.push_back(page as u32);
        self.evictions += 1;
    }

    fn leave(&mut self, slot: u32) {
        let entry = std::mem::replace(&mut self.entries[slot as usize], FREE_ENTRY);
        let list = match entry.state {
            State::Protected => &mut self.protected,
            _ => &mut self.probation,
        };
        list.remove(&mut self.links, slot);
        self.index[entry.lba as usize] = 0;
        self.free.put(&mut self.links, slot);
    }

    /// The slot of an entry that must be cached.
    #[inline]
    fn cached(&self, lba: Lba) -> u32 {
        invariant!(self.is_loaded(lba), "the entry of {lba} is cached");
        self.index[lba.0 as usize] - 1
    }

    #[inline]
    pub(super) fn dirty(&mut self, lba: Lba) {
        let slot = self.cached(lba);
        if !std::mem::replace(&mut self.entries[slot as usize].dirty, true) {
            let page = self.page_of(slot);
            self.pages[page].dirty.push_front(&mut self.page_links, slot);
        }
    }

    #[inline]
    pub(super) fn pin(&mut self, lba: Lba) {
        let slot = self.cached(lba);
        let pins = &mut self.entries[slot as usize].pins;
        *pins += 1;
        self.pinned += u32::from(*pins == 1);
    }

    #[inline]
    pub(super) fn unpin(&mut self, lba: Lba) {
        let slot = self.cached(lba);
        let pins = &mut self.entries[slot as usize].pins;
        *pins -= 1;
        self.pinned -= u32::from(*pins == 0);
    }

    pub(super) const fn pinned(&self) -> u32 {
        self.pinned
    }

    pub(super) fn next_write_back(&self) -> Option<u32> {
        self.queue.front().copied()
    }

    /// How many entries of the page are to be written; none if there is nothing to write, or the
    /// page is being written already.
    pub(super) fn write_back_begin(&mut self, page: u32) -> u32 {
        let queued = match self.pages[page as usize].writing {
            Writing::Begun => return 0,
            Writing::Queued => true,
            Writing::No => false,
        };
        if queued {
            self.queue.retain(|&other| other != page);
        }
        let written = self.clean(page);
        if written > 0 {
            self.pages[page as usize].writing = Writing::Begun;
            self.writes += 1;
        } else if queued {
            self.evictions -= 1;
            let page = &mut self.pages[page as usize];
            (page.writing, page.victim) = (Writing::No, NIL);
        }
        written
    }

    /// The page's dirty entries become clean, but for those that are pinned.
    fn clean(&mut self, page: u32) -> u32 {
        let dirty = &mut self.pages[page as usize].dirty;
        let before = dirty.len();
        let mut slot = dirty.back();
        while slot != NIL {
            let next = self.page_links[slot as usize].prev;
            let entry = &mut self.entries[slot as usize];
            if entry.pins == 0 {
                entry.dirty = false;
                dirty.remove(&mut self.page_links, slot);
            }
            slot = next;
        }
        before - dirty.len()
    }

    /// The page is on media: a victim that nobody has used since leaves.
    pub(super) fn written(&mut self, page: u32, stats: &mut MapCounts) {
        let number = page;
        let page = &mut self.pages[page as usize];
        invariant!(
            page.writing == Writing::Begun,
            "page {number} that was written back was being written"
        );
        page.writing = Writing::No;
        self.writes -= 1;
        let victim = std::mem::replace(&mut page.victim, NIL);
        if victim == NIL {
            return;
        }
        self.evictions -= 1;
        let entry = &self.entries[victim as usize];
        if entry.untouched && !entry.dirty && entry.pins == 0 {
            stats.evictions_dirty += 1;
            self.leave(victim);
        }
    }

    /// The page of the first dirty entry among the `window` used least recently that may be written.
    pub(super) fn pick_dirty(&self, window: u32) -> Option<u32> {
        let coldest = from_back(&self.probation, &self.links)
            .chain(from_back(&self.protected, &self.links))
            .take(window as usize);
        let writable = |&slot: &u32| {
            let entry = &self.entries[slot as usize];
            let idle = self.pages[self.page_of(slot)].writing == Writing::No;
            entry.dirty && entry.pins == 0 && idle
        };
        coldest.into_iter().find(writable).map(|slot| self.page_of(slot) as u32)
    }

    pub(super) const fn has_free(&self) -> bool {
        self.free.len() > 0
    }

    pub(super) fn slots(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Bytes by translation page.
    pub(super) fn directory_bytes(&self) -> u64 {
        size_of_val(&*self.pages) as u64
    }

    /// Bytes by entry: state, order of use, chains of pages, queue.
    pub(super) fn slot_bytes(&self) -> u64 {
        (size_of_val(&*self.entries)
            + size_of_val(&*self.links)
            + size_of_val(&*self.page_links)
            + self.queue.capacity() * size_of::<u32>()) as u64
    }

    pub(super) fn index_bytes(&self) -> u64 {
        size_of_val(&*self.index) as u64
    }
}
