//! The pages of one file.

use super::ahead::Streams;
use super::chunk::PageState;
use super::pages::Pages;
use super::{Core, DirtyFiles, Evict, PageCache, Queued, bump, drop_by};
use crate::contract::{FsError, Result};
use nandscape_block::{Owner, SectorBytes, SectorData};
use nandscape_rt::invariant;
use nandscape_rt::sync::Notify;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::{Rc, Weak};
use std::sync::Arc;

pub(crate) struct Inner<F: 'static> {
    pub(super) core: Rc<Core>,
    dirty_files: Rc<DirtyFiles<F>>,
    file: Weak<F>,
    pub(super) pages: RefCell<Pages>,
    /// The place among the cache's dirty files.
    queued: Cell<Option<Queued>>,
    /// Whether eviction visits this file.
    listed: Cell<bool>,
    /// The page at which eviction goes on.
    hand: Cell<u64>,
    pub(super) writing: Cell<u64>,
    /// The page at which the next cyclic pass of write-back begins.
    pub(super) writeback_index: Cell<u64>,
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
pub struct Mapping<F: 'static>(pub(super) Rc<Inner<F>>);

impl<F> Clone for Mapping<F> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<F> Mapping<F> {
    /// No pages yet, of a file that bios will name as their owner.
    #[must_use]
    pub fn new(cache: &PageCache<F>, file: Weak<F>, owner: Owner) -> Self {
        let core = Rc::clone(&cache.core);
        Self(Rc::new(Inner {
            dirty_files: Rc::clone(&cache.dirty_files),
            file,
            settled: Notify::new(&core.handle, "pages of a file"),
            core,
            pages: RefCell::default(),
            queued: Cell::new(None),
            listed: Cell::new(false),
            hand: Cell::new(0),
            writing: Cell::new(0),
            writeback_index: Cell::new(0),
            next_fill: Cell::new(1),
            error: RefCell::default(),
            owner: Cell::new(owner),
            length: Cell::new(0),
            streams: RefCell::default(),
        }))
    }

    /// The file, as long as it is in memory.
    pub(super) fn file(&self) -> Option<Rc<F>> {
        self.0.file.upgrade()
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
        self.0.pages.borrow_mut().get(page)
    }

    /// Looks at the bytes of a page that is in memory; `None` if it is not, or its content is not kept. For pages of
    /// metadata.
    pub fn with_bytes<R>(&self, page: u64, look: impl FnOnce(&SectorBytes) -> R) -> Option<R> {
        self.0.pages.borrow_mut().bytes(page).map(|bytes| look(bytes))
    }

    /// Changes the bytes of a page that is in memory, which waits for write-back then; whether it did not before. A write
    /// of it that is in flight has its own copy.
    pub fn edit_bytes<R>(
        &self,
        page: u64,
        edit: impl FnOnce(&mut SectorBytes) -> R,
    ) -> Option<(R, bool)> {
        let mut pages = self.0.pages.borrow_mut();
        let edited = edit(Arc::make_mut(pages.bytes(page)?));
        let fresh = pages.make_dirty(&(page..page + 1), false);
        drop(pages);
        bump(&self.0.core.dirty, fresh);
        self.enqueue();
        Some((edited, fresh > 0))
    }

    /// Appends to `contents` those of the range from its first page on that are there, and tells how the
    /// page behind them looks.
    pub(super) fn read(&self, range: Range<u64>, contents: &mut Vec<SectorData>) -> PageState {
        self.0.pages.borrow_mut().read(range, contents)
    }

    /// Whether any page waits for write-back or is on its way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.0.writing.get() > 0 || self.0.pages.borrow().dirty() > 0
    }

    /// Pages that are in memory.
    #[must_use]
    pub fn resident(&self) -> u64 {
        self.0.pages.borrow().count()
    }

    /// Bytes of memory that the pages take; counts them all.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.0.pages.borrow().memory_bytes()
    }

    /// Pages that wait for write-back.
    #[must_use]
    pub fn dirty(&self) -> u64 {
        self.0.pages.borrow().dirty()
    }

    /// Pages that a block is reserved for.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.0.pages.borrow().reserved()
    }

    /// Whether the first page of a range waits for write-back or has a block reserved, so that it needs
    /// none; and how many pages from there on are like it, or some of them.
    #[must_use]
    pub fn waiting(&self, range: &Range<u64>) -> (bool, u64) {
        self.0.pages.borrow_mut().waiting(range)
    }

    /// New content of a whole page, to be written back. `reserved` says that a block was reserved
    /// for it just now. Returns how many pages that are which did not wait for write-back yet.
    pub fn write(&self, page: u64, data: SectorData, reserved: bool) -> u64 {
        self.write_run(page..page + 1, |_| data.clone(), reserved)
    }

    /// The same of several pages.
    pub fn write_run(
        &self,
        run: Range<u64>,
        content: impl Fn(u64) -> SectorData,
        reserved: bool,
    ) -> u64 {
        let before = self.0.core.dirty.get();
        self.put(run, content, |pages, part| {
            bump(&self.0.core.dirty, pages.make_dirty(part, reserved));
        });
        self.enqueue();
        self.0.core.dirty.get() - before
    }

    /// Content that the device has, or that another part writes (a journal).
    pub fn put_clean(&self, page: u64, data: SectorData) {
        self.put(page..page + 1, |_| data.clone(), |_, _| {});
    }

    /// Puts content in place; `and` learns of each part of the run that is there.
    fn put(
        &self,
        run: Range<u64>,
        content: impl Fn(u64) -> SectorData,
        and: impl Fn(&mut Pages, &Range<u64>),
    ) {
        let inner = &self.0;
        let mut left = run;
        while !left.is_empty() {
            let (present, alike) = inner.pages.borrow_mut().present(&left);
            // What is written is kept, whether there is room or not.
            let count = if present { alike } else { inner.core.make_room(alike, 1) };
            let part = left.start..left.start + count;
            let mut pages = inner.pages.borrow_mut();
            let superfluous = pages.put(&part, &content);
            and(&mut pages, &part);
            drop(pages);
            if superfluous {
                inner.settled.notify_waiters();
            }
            if !present {
                bump(&inner.core.resident, count);
                inner.list();
            }
            left.start = part.end;
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
        self.0.dirty_files.borrow_mut().insert(key, self.clone());
    }

    /// Leaves the dirty files, or moves behind them when pages are left.
    pub(super) fn requeue(&self) {
        if let Some(key) = self.0.queued.take() {
            self.0.dirty_files.borrow_mut().remove(&key);
        }
        if self.0.pages.borrow().dirty() > 0 {
            self.enqueue();
        }
    }

    /// Forgets pages, dirty or not, and reads of them that are under way. Returns how many reserved
    /// blocks they no longer need. Nothing in the range may be on its way to the device.
    pub fn discard(&self, range: Range<u64>) -> u64 {
        invariant!(
            !self.0.pages.borrow().is_writing(range.clone()),
            "no page that is discarded is on its way to the device: {range:?}"
        );
        let gone = self.0.pages.borrow_mut().forget(range);
        let core = &self.0.core;
        drop_by(&core.resident, gone.pages);
        drop_by(&core.dirty, gone.dirty);
        if self.0.pages.borrow().dirty() == 0 {
            self.requeue();
        }
        if gone.pages > 0 {
            self.0.settled.notify_waiters();
        }
        if gone.dirty > 0 {
            core.note_progress();
        }
        gone.reserved
    }

    /// Forgets clean pages of a range, and reads of them that are in flight (`invalidate_inode_pages2_range`). What is
    /// dirty, on its way to the device or reserved stays.
    pub fn invalidate(&self, range: Range<u64>) {
        let gone = self.0.pages.borrow_mut().forget_clean(range);
        drop_by(&self.0.core.resident, gone);
        if gone > 0 {
            self.0.settled.notify_waiters();
        }
    }

    /// Waits until no page of the range is on its way to the device.
    pub async fn written(&self, range: Range<u64>) {
        let is_writing = || self.0.pages.borrow().is_writing(range.clone());
        while self.0.writing.get() > 0 && is_writing() {
            self.0.settled.notified().await;
        }
    }

    /// Whether a write-back has failed since [`Mapping::take_error`].
    #[must_use]
    pub fn has_error(&self) -> bool {
        self.0.error.borrow().is_some()
    }

    /// The error of a write-back since this was last asked.
    ///
    /// # Errors
    /// That error, once.
    pub fn take_error(&self) -> Result<()> {
        self.0.error.borrow_mut().take().map_or(Ok(()), Err)
    }
}

impl<F> Inner<F> {
    /// Lets eviction visit this file.
    pub(super) fn list(self: &Rc<Self>) {
        if !self.listed.replace(true) {
            let file = Rc::downgrade(self);
            self.core.clock.borrow_mut().push_back(file);
        }
    }
}

impl<F> Evict for Inner<F> {
    fn is_listed(&self) -> bool {
        self.listed.set(self.pages.borrow().count() > 0);
        self.listed.get()
    }

    fn is_round(&self) -> bool {
        self.hand.get() == 0
    }

    fn memory_bytes(&self) -> u64 {
        self.pages.borrow().memory_bytes()
    }

    fn evict(&self, count: u64) -> u64 {
        let (looked, gone, next) = self.pages.borrow_mut().evict(self.hand.get(), count);
        self.hand.set(next);
        drop_by(&self.core.resident, gone);
        looked
    }
}

impl<F> Drop for Inner<F> {
    fn drop(&mut self) {
        let pages = self.pages.get_mut();
        drop_by(&self.core.resident, pages.count());
        drop_by(&self.core.dirty, pages.dirty());
    }
}
