//! The part of an inode in memory that every file system has.

use super::PAGE;
use crate::cache::{Mapping, PageCache};
use crate::contract::{FsError, Ino, Result, WriteHint};
use nandscape_block::Owner;
use nandscape_rt::sync::{Notify, ReadGuard, RwLock, WriteGuard};
use nandscape_rt::{Handle, invariant};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Weak;

/// What a file system's inode, `F`, begins with. The locks are explained in [`crate::vfs`].
pub(crate) struct FileCore<F: 'static> {
    pub(crate) i_rwsem: RwLock<()>,
    pub(crate) invalidate_lock: RwLock<()>,
    pub(crate) extent_lock: RwLock<()>,
    /// Length as calls see it.
    pub(crate) size: Cell<u64>,
    pub(crate) pages: Mapping<F>,
    pub(crate) opens: Cell<u32>,
    /// Freed: operations that still hold it find nothing there.
    pub(crate) deleted: Cell<bool>,
    pub(crate) in_flight: InFlight,
    /// How long its data is expected to live.
    pub(crate) write_hint: Cell<WriteHint>,
}

/// Writes of new data in flight, in the order in which they were submitted. Invariant: who waits goes on when all that was
/// submitted before has ended, whatever was submitted meanwhile.
pub(crate) struct InFlight {
    next: Cell<u64>,
    sent: RefCell<BTreeSet<u64>>,
    arrived: Notify,
}

impl InFlight {
    pub(crate) fn new(rt: &Handle, name: &'static str) -> Self {
        let (next, sent) = (Cell::new(0), RefCell::default());
        Self { next, sent, arrived: Notify::new(rt, name) }
    }

    /// Notes that a write is submitted.
    pub(crate) fn send(&self) -> u64 {
        let id = self.next.get();
        self.next.set(id + 1);
        self.sent.borrow_mut().insert(id);
        id
    }

    /// Notes that it has ended.
    pub(crate) fn arrive(&self, id: u64) {
        self.sent.borrow_mut().remove(&id);
        self.arrived.notify_waiters();
    }

    /// Whether nothing is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.sent.borrow().is_empty()
    }

    /// The number that the next write gets.
    pub(crate) const fn mark(&self) -> u64 {
        self.next.get()
    }

    /// Whether everything has ended that was submitted before a [mark](InFlight::mark).
    pub(crate) fn is_settled(&self, mark: u64) -> bool {
        self.sent.borrow().range(..mark).next().is_none()
    }

    /// Waits until everything submitted so far has ended.
    pub(crate) async fn settle(&self) {
        let end = self.next.get();
        while self.sent.borrow().first().is_some_and(|first| *first < end) {
            self.arrived.notified().await;
        }
        invariant!(self.is_settled(end), "all that was submitted before has ended");
    }
}

impl<F> FileCore<F> {
    /// The core of `file`, whose bios name `owner`.
    pub(crate) fn new(
        rt: &Handle,
        cache: &PageCache<F>,
        file: Weak<F>,
        owner: Owner,
        size: u64,
    ) -> Self {
        let pages = Mapping::new(cache, file, owner);
        pages.set_length(size.div_ceil(PAGE));
        Self {
            i_rwsem: RwLock::new(rt, "inode", ()),
            invalidate_lock: RwLock::new(rt, "pages of an inode", ()),
            extent_lock: RwLock::released_for_work(rt, "extent tree", ()),
            size: Cell::new(size),
            pages,
            opens: Cell::new(0),
            deleted: Cell::new(false),
            in_flight: InFlight::new(rt, "new data on its way"),
            write_hint: Cell::default(),
        }
    }

    /// Its number.
    pub(crate) fn ino(&self) -> Ino {
        Ino(self.pages.owner().file)
    }

    /// Its `i_rwsem`, exclusive.
    ///
    /// # Errors
    /// [`FsError::NoEntry`] if the inode was freed while this waited.
    pub(crate) async fn lock_exclusive(&self) -> Result<WriteGuard<()>> {
        self.unless_deleted(self.i_rwsem.write().await)
    }

    /// Its `i_rwsem`, shared.
    ///
    /// # Errors
    /// As [`FileCore::lock_exclusive`].
    pub(crate) async fn lock_shared(&self) -> Result<ReadGuard<()>> {
        self.unless_deleted(self.i_rwsem.read().await)
    }

    /// Its `invalidate_lock`, shared: its pages and blocks stay its own.
    ///
    /// # Errors
    /// As [`FileCore::lock_exclusive`].
    pub(crate) async fn lock_invalidate_shared(&self) -> Result<ReadGuard<()>> {
        self.unless_deleted(self.invalidate_lock.read().await)
    }

    fn unless_deleted<G>(&self, guard: G) -> Result<G> {
        if self.deleted.get() { Err(FsError::NoEntry) } else { Ok(guard) }
    }

    /// Sets the length as calls see it.
    pub(crate) fn set_size(&self, size: u64) {
        self.size.set(size);
        self.pages.set_length(size.div_ceil(PAGE));
    }
}
