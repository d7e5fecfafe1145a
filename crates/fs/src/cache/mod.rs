//! The page cache: pages of payload over a device, shared by all file systems. After Linux's
//! `mm/{filemap,readahead,page-writeback,vmscan}.c`, in their shape and with their defaults.
//!
//! - A file's pages are its [`Mapping`], which leads back to the file; the [`PageCache`] counts them all and keeps them within a
//!   memory limit: clean pages go by second chance, dirty ones are written back first.
//! - A page is a tag, parts of a few, or bytes. What lies beyond the end of the file is zero.
//! - Pages lie in chunks of 64 with their states as bits, and most of what is done to them is done to
//!   a run of them at once.
//! - Dirty pages are written back when they are 30 s old (looked at every 5 s), or when more than
//!   `background_percent` of memory is dirty. Writers wait for that when much is (`throttle`), so that
//!   `dirty_percent` of memory bounds what all of them have made dirty.
//! - Write-back in the background takes a file's dirty pages in the order of their offsets, from where it stopped
//!   last ([`Mapping::cyclic_pass`]).
//! - What is written back is a copy taken when the write begins. A page may be written again
//!   meanwhile; two writes of one page are never in flight together.
//! - State changes happen between waiting points, on one thread, so nothing here is locked.

mod ahead;
mod chunk;
mod flusher;
mod knobs;
mod mapping;
mod pages;
mod read;
mod run;
mod throttle;

pub use flusher::{WriteBack, flush_in_background};
pub use knobs::KNOBS;
pub use mapping::Mapping;
pub(crate) use read::begin_fetch;
pub use read::{Backing, PageLocation, read_pages};
pub use run::{WriteRun, WritebackPass};
pub use throttle::DirtyThrottle;

use nandscape_rt::sync::Notify;
use nandscape_rt::{Handle, Nanos};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

/// Pages that eviction looks at in one file before it turns to the next.
const EVICT_BATCH: u64 = 32;
/// Pages that eviction looks at before it gives up for this time.
const EVICT_SCAN: u64 = 4096;
/// Pages in flight to the device beyond which background write-back waits.
const IN_FLIGHT_MAX: u64 = 4096;

/// Limits and times of a page cache. The defaults are Linux's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheConfig {
    /// Pages that memory has room for.
    pub pages: u64,
    /// Share of them that may be dirty before write-back starts by itself.
    pub background_percent: u8,
    /// Share of them that may be dirty at all.
    pub dirty_percent: u8,
    /// How often write-back looks for old pages.
    pub period: Nanos,
    /// When a dirty page is old.
    pub age: Nanos,
    /// Largest read-ahead window, in pages; 0 turns it off.
    pub read_ahead_pages: u32,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            pages: 1 << 20,
            background_percent: 10,
            dirty_percent: 20,
            period: Nanos::from_secs(5),
            age: Nanos::from_secs(30),
            read_ahead_pages: 32,
        }
    }
}

/// When a file's first dirty page was dirtied, and its turn among those of the same instant.
type Queued = (Nanos, u64);

/// Pages that readers asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lookups {
    /// Those in memory, or in flight for another reader or for read-ahead.
    pub hits: u64,
    /// Those that the reader had to fetch.
    pub misses: u64,
}

pub(crate) struct Core {
    handle: Handle,
    config: CacheConfig,
    limits: throttle::Limits,
    /// Every file with pages, in the order in which eviction visits them.
    clock: RefCell<VecDeque<Weak<dyn Evict>>>,
    next_turn: Cell<u64>,
    resident: Cell<u64>,
    dirty: Cell<u64>,
    in_flight: Cell<u64>,
    /// Pages whose write-back has ended, ever.
    cleaned: Cell<u64>,
    lookups: Cell<Lookups>,
    wake: Notify,
    /// Pages were written back: the flusher may go on.
    progress: Notify,
    /// Writers that wait until so many pages were written back.
    writers: Notify,
    stopped: Cell<bool>,
}

impl Core {
    /// Notes that a reader got `pages`, of which it fetched `missed`; one that was evicted again before
    /// the reader came to it was fetched twice.
    fn note_lookups(&self, pages: u64, missed: u64) {
        let Lookups { hits, misses } = self.lookups.get();
        let missed = missed.min(pages);
        self.lookups.set(Lookups { hits: hits + (pages - missed), misses: misses + missed });
    }
}

/// Files with dirty pages, oldest first.
type DirtyFiles<F> = RefCell<BTreeMap<Queued, Mapping<F>>>;

/// A file's pages as eviction sees them.
trait Evict {
    /// Second chance for up to `count` pages, from the hand on. Returns how many it looked at.
    fn evict(&self, count: u64) -> u64;

    /// Whether eviction goes on visiting: false once no pages are left.
    fn is_listed(&self) -> bool;

    /// Whether the hand has been through all pages.
    fn is_round(&self) -> bool;

    /// Bytes of memory that the pages take.
    fn memory_bytes(&self) -> u64;
}

/// The pages of all files of a mount; `F` is a file. Cheap to clone; clones are the same cache.
pub struct PageCache<F: 'static> {
    core: Rc<Core>,
    dirty_files: Rc<DirtyFiles<F>>,
}

impl<F> Clone for PageCache<F> {
    fn clone(&self) -> Self {
        Self { core: Rc::clone(&self.core), dirty_files: Rc::clone(&self.dirty_files) }
    }
}

fn bump(counter: &Cell<u64>, by: u64) {
    counter.set(counter.get() + by);
}

fn drop_by(counter: &Cell<u64>, by: u64) {
    counter.set(counter.get() - by);
}

impl<F> PageCache<F> {
    /// An empty cache.
    #[must_use]
    pub fn new(handle: &Handle, config: CacheConfig) -> Self {
        let core = Rc::new(Core {
            handle: handle.clone(),
            limits: throttle::Limits::new(&config),
            config,
            clock: RefCell::default(),
            next_turn: Cell::new(0),
            resident: Cell::new(0),
            dirty: Cell::new(0),
            in_flight: Cell::new(0),
            cleaned: Cell::new(0),
            lookups: Cell::default(),
            wake: Notify::new(handle, "write-back"),
            progress: Notify::new(handle, "pages written back"),
            writers: Notify::new(handle, "fewer dirty pages"),
            stopped: Cell::new(false),
        });
        Self { core, dirty_files: Rc::default() }
    }

    /// Pages in memory.
    #[must_use]
    pub fn resident(&self) -> u64 {
        self.core.resident.get()
    }

    /// Bytes of memory that the pages of all files take; counts them all.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let files = self.core.clock.borrow();
        files.iter().filter_map(Weak::upgrade).map(|file| file.memory_bytes()).sum()
    }

    /// Pages that readers asked for so far.
    #[must_use]
    pub fn lookups(&self) -> Lookups {
        self.core.lookups.get()
    }

    /// Pages that the device does not have yet, those on their way not counted.
    #[must_use]
    pub fn dirty(&self) -> u64 {
        self.core.dirty.get()
    }

    /// Files with dirty pages, the one that has waited longest first. A file all of whose dirty pages are
    /// on their way is not among them.
    #[must_use]
    pub fn dirty_files(&self) -> Vec<Rc<F>> {
        self.dirty_files.borrow().values().filter_map(Mapping::file).collect()
    }

    /// Ends background write-back, and lets go who waits for it.
    pub fn stop(&self) {
        self.core.stopped.set(true);
        self.core.wake.notify_one();
        self.core.progress.notify_waiters();
        self.core.writers.notify_waiters();
    }
}

impl Core {
    /// Makes room for a page more, if something can be evicted. Returns how many of the pages wanted may
    /// come into memory now: those that it has room for, and `least` of them even so.
    fn make_room(&self, wanted: u64, least: u64) -> u64 {
        self.evict_some();
        self.config.pages.saturating_sub(self.resident.get()).min(wanted).max(least)
    }

    fn evict_some(&self) {
        let mut looked = 0;
        while self.resident.get() >= self.config.pages && looked < EVICT_SCAN {
            let Some(next) = self.clock.borrow_mut().pop_front() else { return };
            let Some(inner) = next.upgrade() else { continue };
            looked += inner.evict(EVICT_BATCH).max(1);
            if inner.is_listed() {
                // A round looks at each page once: a file's turn is over with its last page.
                let mut clock = self.clock.borrow_mut();
                if inner.is_round() { clock.push_back(next) } else { clock.push_front(next) }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
