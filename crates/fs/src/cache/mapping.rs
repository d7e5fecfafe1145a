//! The pages of one file.

use super::ahead::Streams;
use super::page::Page;
use super::{Core, PageCache, Queued, bump, drop_by};
use crate::contract::{FsError, Result};
use nandscape_block::{Owner, SectorData};
use nandscape_rt::sync::Notify;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

pub(crate) struct Inner {
    pub(super) core: Rc<Core>,
    pub(super) pages: RefCell<BTreeMap<u64, Page>>,
    pub(super) dirty: RefCell<BTreeSet<u64>>,
    /// The place among the cache's dirty files.
    queued: Cell<Option<Queued>>,
    /// Whether eviction visits this file.
    listed: Cell<bool>,
    /// The page at which eviction goes on.
    hand: Cell<u64>,
    pub(super) writing: Cell<u64>,
    pub(super) next_fill: Cell<u32>,
    /// A read or a write of pages has ended.
    pub(super) settled: Notify,
    pub(super) error: RefCell<Option<FsError>>,
    owner: Cell<Owner>,
    /// Pages that the file's length covers; reads ahead end there.
    pub(super) length: Cell<u64>,
    pub(super) streams: RefCell<Streams>,
}

/// The pages of one file. Cheap to clone; clones are the same pages.
#[derive(Clone)]
pub struct Mapping(pub(super) Rc<Inner>);

/// What is known of a page without waiting.
pub(super) enum Look {
    There(SectorData),
    Reading,
    Missing,
}

impl Mapping {
    /// No pages yet, of the file that bios will name as their owner.
    #[must_use]
    pub fn new(cache: &PageCache, owner: Owner) -> Self {
        let core = Rc::clone(&cache.0);
        Self(Rc::new(Inner {
            settled: Notify::new(&core.handle, "pages of a file"),
            core,
            pages: RefCell::default(),
            dirty: RefCell::default(),
            queued: Cell::new(None),
            listed: Cell::new(false),
            hand: Cell::new(0),
            writing: Cell::new(0),
            next_fill: Cell::new(1),
            error: RefCell::default(),
            owner: Cell::new(owner),
            length: Cell::new(0),
            streams: RefCell::default(),
        }))
    }

    /// Whose bios these pages make: the file, and the thread and core that wrote to it last.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0.owner.get()
    }

    /// Notes who writes to the file.
    pub fn set_writer(&self, thread: u16, core: u16) {
        self.0.owner.set(Owner { thread, core, ..self.0.owner.get() });
    }

    /// Tells how many pages the file's length covers.
    pub fn set_length(&self, pages: u64) {
        self.0.length.set(pages);
    }

    /// The content of a page that is in memory.
    #[must_use]
    pub fn peek(&self, page: u64) -> Option<SectorData> {
        match self.look(page) {
            Look::There(data) => Some(data),
            _ => None,
        }
    }

    pub(super) fn look(&self, page: u64) -> Look {
        match self.0.pages.borrow_mut().get_mut(&page) {
            None => Look::Missing,
            Some(page) if !page.is_there() => Look::Reading,
            Some(page) => {
                page.referenced = true;
                Look::There(page.data.clone())
            }
        }
    }

    /// Whether the page waits for write-back: it then has a block, or the promise of one.
    #[must_use]
    pub fn is_dirty(&self, page: u64) -> bool {
        self.0.dirty.borrow().contains(&page)
    }

    /// Whether a block was promised to the page and is not allocated yet.
    #[must_use]
    pub fn is_reserved(&self, page: u64) -> bool {
        self.0.pages.borrow().get(&page).is_some_and(|page| page.reserved)
    }

    /// Whether any page waits for write-back or is on its way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.0.writing.get() > 0 || !self.0.dirty.borrow().is_empty()
    }

    /// Whether any page is in memory, or being read.
    #[must_use]
    pub fn has_pages(&self) -> bool {
        !self.0.pages.borrow().is_empty()
    }

    /// New content of a whole page, to be written back. `reserved` says that a block was promised
    /// to it just now.
    pub fn write(&self, page: u64, data: SectorData, reserved: bool) {
        let fresh = self.0.put(page, data);
        let mut pages = self.0.pages.borrow_mut();
        let Some(entry) = pages.get_mut(&page) else { return };
        entry.reserved |= reserved;
        if !std::mem::replace(&mut entry.dirty, true) {
            self.0.dirty.borrow_mut().insert(page);
            bump(&self.0.core.dirty, 1);
        }
        drop(pages);
        if fresh {
            self.0.list();
        }
        self.enqueue();
    }

    /// Content that the device has, or that somebody else writes (a journal).
    pub fn put_clean(&self, page: u64, data: SectorData) {
        if self.0.put(page, data) {
            self.0.list();
        }
    }

    /// Takes its place among the dirty files, by the instant at which the first page was dirtied.
    fn enqueue(&self) {
        if self.0.queued.get().is_some() {
            return;
        }
        let core = &self.0.core;
        let key = (core.handle.now(), core.next_turn.get());
        bump(&core.next_turn, 1);
        self.0.queued.set(Some(key));
        core.dirty_files.borrow_mut().insert(key, self.clone());
    }

    /// Leaves the dirty files, or moves behind them when pages are left.
    pub(super) fn requeue(&self) {
        if let Some(key) = self.0.queued.take() {
            self.0.core.dirty_files.borrow_mut().remove(&key);
        }
        if !self.0.dirty.borrow().is_empty() {
            self.enqueue();
        }
    }

    /// Forgets pages, dirty or not, and reads of them that are under way. Returns how many promised
    /// blocks they no longer need. Nothing in the range may be on its way to the device.
    pub fn discard(&self, range: Range<u64>) -> u64 {
        let gone: Vec<(u64, Page)> =
            self.0.pages.borrow_mut().extract_if(range.clone(), |_, _| true).collect();
        let core = &self.0.core;
        drop_by(&core.resident, gone.len() as u64);
        let dirty = self.0.dirty.borrow_mut().extract_if(range, |_| true).count();
        drop_by(&core.dirty, dirty as u64);
        if self.0.dirty.borrow().is_empty() {
            self.requeue();
        }
        if !gone.is_empty() {
            self.0.settled.notify_waiters();
        }
        gone.iter().filter(|(_, page)| page.reserved).count() as u64
    }

    /// Waits until no page of the range is on its way to the device.
    pub async fn written(&self, range: Range<u64>) {
        while self.0.writing.get() > 0 && self.is_writing(range.clone()) {
            self.0.settled.notified().await;
        }
    }

    fn is_writing(&self, range: Range<u64>) -> bool {
        self.0.pages.borrow().range(range).any(|(_, page)| page.writing)
    }

    /// The error of a write-back since this was last asked.
    ///
    /// # Errors
    /// That error, once.
    pub fn take_error(&self) -> Result<()> {
        self.0.error.borrow_mut().take().map_or(Ok(()), Err)
    }
}

impl Inner {
    /// Puts content in place; whether the page is new.
    fn put(&self, page: u64, data: SectorData) -> bool {
        if let Some(entry) = self.pages.borrow_mut().get_mut(&page) {
            let was_reading = !entry.is_there();
            (entry.data, entry.fill, entry.referenced) = (data, 0, true);
            if was_reading {
                self.settled.notify_waiters();
            }
            return false;
        }
        self.core.make_room();
        self.pages.borrow_mut().insert(page, Page::clean(data));
        bump(&self.core.resident, 1);
        true
    }

    /// Lets eviction visit this file.
    pub(super) fn list(self: &Rc<Self>) {
        if !self.listed.replace(true) {
            self.core.clock.borrow_mut().push_back(Rc::downgrade(self));
        }
    }

    /// Whether eviction goes on visiting: false once no pages are left.
    pub(super) fn is_listed(&self) -> bool {
        self.listed.set(!self.pages.borrow().is_empty());
        self.listed.get()
    }

    /// Second chance for up to `count` pages, from the hand on: used ones lose their mark, unused
    /// clean ones go. Returns how many it looked at.
    pub(super) fn evict(&self, count: usize) -> usize {
        let mut pages = self.pages.borrow_mut();
        let mut looked = 0;
        let mut gone = Vec::new();
        for (&index, page) in pages.range_mut(self.hand.get()..).take(count) {
            looked += 1;
            self.hand.set(index + 1);
            if !std::mem::take(&mut page.referenced) && page.may_go() {
                gone.push(index);
            }
        }
        if looked < count {
            self.hand.set(0);
        }
        for index in &gone {
            pages.remove(index);
        }
        drop_by(&self.core.resident, gone.len() as u64);
        looked
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop_by(&self.core.resident, self.pages.borrow().len() as u64);
        drop_by(&self.core.dirty, self.dirty.borrow().len() as u64);
    }
}
