//! Inodes in memory.
//!
//! `raw` is what the inode table says, or will say once the running transaction commits; it changes
//! only between waiting points, under a transaction that writes it. Of a file that grew in memory,
//! `size` is ahead of `raw.size` until the new pages have blocks (delayed allocation).
//!
//! Locks, in the order in which they are taken: `lock` (Linux's i_rwsem: shared by readers but for those
//! through the cache, alone for whoever changes content, size, names or attributes), `cut_lock`
//! (invalidate_lock: shared by readers through the cache, alone for whoever takes pages and their blocks
//! away), a transaction, `map_lock` (i_data_sem: the extent tree).

use super::extents::found::FoundExtents;
use super::format::{self, CsumSeed, mode};
use super::journal::Tid;
use crate::cache::{Mapping, PageCache};
use crate::contract::{Attr, FsError, Ino, Kind, Result, SetAttr, Timestamp};
use nandscape_block::Owner;
use nandscape_rt::Handle;
use nandscape_rt::sync::{Notify, ReadGuard, RwLock, WriteGuard};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// An inode in memory.
pub(crate) struct Inode {
    pub(crate) number: u32,
    /// Where checksums of itself and of its blocks begin, if there are any.
    pub(crate) seed: Option<CsumSeed>,
    pub(crate) lock: RwLock<()>,
    pub(crate) cut_lock: RwLock<()>,
    pub(crate) map_lock: RwLock<()>,
    pub(crate) raw: RefCell<format::Inode>,
    /// Length as calls see it.
    pub(crate) size: Cell<u64>,
    pub(crate) pages: Mapping,
    pub(crate) opens: Cell<u32>,
    /// The running transaction writes it into the table once it is done.
    pub(crate) late: Cell<bool>,
    /// Freed: whoever still holds it finds nothing there.
    pub(crate) deleted: Cell<bool>,
    /// Extents found lately, as long as the tree has not changed.
    pub(crate) found: FoundExtents,
    /// The transaction that last changed anything, and what a reader of the content needs.
    pub(crate) sync_tid: Cell<Option<Tid>>,
    pub(crate) datasync_tid: Cell<Option<Tid>>,
    /// How often transactions wrote it, and how often they had when its last record was made durable.
    pub(crate) writes: Cell<u64>,
    pub(crate) recorded: Cell<Option<u64>>,
    pub(crate) in_flight: InFlight,
}

/// Writes of new data under way, in the order in which they were sent.
pub(crate) struct InFlight {
    next: Cell<u64>,
    sent: RefCell<BTreeSet<u64>>,
    arrived: Notify,
}

impl InFlight {
    /// Notes that a write is sent.
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

    /// Waits until everything sent so far has ended.
    pub(crate) async fn settle(&self) {
        let end = self.next.get();
        while self.sent.borrow().first().is_some_and(|first| *first < end) {
            self.arrived.notified().await;
        }
    }
}

impl Inode {
    pub(crate) fn new(
        rt: &Handle,
        cache: &PageCache,
        number: u32,
        raw: format::Inode,
        seed: Option<CsumSeed>,
    ) -> Self {
        let owner = Owner { file: number.into(), generation: raw.generation, thread: 0, core: 0 };
        let size = raw.size;
        let pages = Mapping::new(cache, owner);
        pages.set_length(size.div_ceil(4096));
        Self {
            number,
            seed,
            lock: RwLock::new(rt, "inode", ()),
            cut_lock: RwLock::new(rt, "pages of an inode", ()),
            map_lock: RwLock::new(rt, "extent tree", ()),
            raw: RefCell::new(raw),
            size: Cell::new(size),
            pages,
            opens: Cell::new(0),
            late: Cell::new(false),
            deleted: Cell::new(false),
            found: FoundExtents::default(),
            sync_tid: Cell::new(None),
            datasync_tid: Cell::new(None),
            writes: Cell::new(0),
            recorded: Cell::new(None),
            in_flight: InFlight {
                next: Cell::new(0),
                sent: RefCell::default(),
                arrived: Notify::new(rt, "new data on its way"),
            },
        }
    }

    /// Its lock, alone.
    ///
    /// # Errors
    /// [`FsError::NoEntry`] if the inode went while this waited.
    pub(crate) async fn alone(&self) -> Result<WriteGuard<()>> {
        self.unless_deleted(self.lock.write().await)
    }

    /// Its lock, shared.
    ///
    /// # Errors
    /// As [`Inode::alone`].
    pub(crate) async fn shared(&self) -> Result<ReadGuard<()>> {
        self.unless_deleted(self.lock.read().await)
    }

    /// Its `cut_lock`, shared: its pages and blocks stay its own.
    ///
    /// # Errors
    /// As [`Inode::alone`].
    pub(crate) async fn uncut(&self) -> Result<ReadGuard<()>> {
        self.unless_deleted(self.cut_lock.read().await)
    }

    fn unless_deleted<G>(&self, guard: G) -> Result<G> {
        if self.deleted.get() { Err(FsError::NoEntry) } else { Ok(guard) }
    }

    /// Counts blocks that it gained or lost.
    pub(crate) fn add_blocks(&self, blocks: i64) {
        let mut raw = self.raw.borrow_mut();
        let before = raw.blocks_4k();
        raw.set_blocks_4k(before.saturating_add_signed(blocks));
    }

    /// Sets the length as calls see it.
    pub(crate) fn set_size(&self, size: u64) {
        self.size.set(size);
        self.pages.set_length(size.div_ceil(4096));
    }

    /// Whether a write goes behind the length that the table knows.
    pub(crate) fn grows_on_disk(&self, offset: u64, len: u64) -> bool {
        offset.saturating_add(len) > self.raw.borrow().size
    }

    pub(crate) fn kind(&self) -> Kind {
        kind_of(self.raw.borrow().mode)
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.raw.borrow().is_dir()
    }

    pub(crate) fn links(&self) -> u16 {
        self.raw.borrow().links_count
    }

    /// Whether nothing needs it in memory but the cache of inodes.
    pub(crate) fn is_idle(&self) -> bool {
        let told = !self.pages.is_busy() && !self.pages.has_error();
        self.opens.get() == 0 && self.links() > 0 && told && !self.late.get()
    }

    pub(crate) fn attr(&self) -> Attr {
        let raw = self.raw.borrow();
        Attr {
            ino: Ino(self.number.into()),
            generation: raw.generation,
            kind: kind_of(raw.mode),
            mode: raw.mode & !mode::TYPE,
            links: raw.links_count.into(),
            uid: raw.uid,
            gid: raw.gid,
            size: self.size.get(),
            blocks: (raw.blocks_4k() + self.pages.promised()) * 8,
            atime: shown(raw.atime()),
            mtime: shown(raw.mtime()),
            ctime: shown(raw.ctime()),
            crtime: shown(raw.crtime()),
        }
    }

    /// Sets attributes; the length is not among them.
    pub(crate) fn set(&self, change: &SetAttr) {
        let mut raw = self.raw.borrow_mut();
        let kind = raw.file_type();
        raw.mode = change.mode.map_or(raw.mode, |bits| kind | bits & !mode::TYPE);
        raw.uid = change.uid.unwrap_or(raw.uid);
        raw.gid = change.gid.unwrap_or(raw.gid);
        if let Some(time) = change.atime {
            let time = kept(&raw, time);
            raw.set_atime(time);
        }
        if let Some(time) = change.mtime {
            let time = kept(&raw, time);
            raw.set_mtime(time);
        }
    }

    /// Whether a change of content at `now` leaves its times as they are.
    pub(crate) fn is_touched(&self, now: Timestamp) -> bool {
        let raw = self.raw.borrow();
        let now = kept(&raw, now);
        raw.mtime() == now && raw.ctime() == now
    }

    /// Notes a change of content (`mtime` and `ctime`) or of attributes (`ctime` alone).
    pub(crate) fn touch(&self, now: Timestamp, content: bool) {
        let mut raw = self.raw.borrow_mut();
        let now = kept(&raw, now);
        raw.set_ctime(now);
        if content {
            raw.set_mtime(now);
        }
    }
}

/// The kind of file that a mode tells.
pub(crate) const fn kind_of(file_mode: u16) -> Kind {
    match file_mode & mode::TYPE {
        mode::REGULAR => Kind::File,
        mode::DIR => Kind::Directory,
        mode::SYMLINK => Kind::Symlink,
        _ => Kind::Special,
    }
}

const fn shown(time: format::Timestamp) -> Timestamp {
    Timestamp { seconds: time.seconds, nanos: time.nanos }
}

/// A time as an inode keeps it: one without extra fields knows whole seconds up to 2038.
pub(crate) fn kept(raw: &format::Inode, time: Timestamp) -> format::Timestamp {
    let Timestamp { seconds, nanos } = time;
    if raw.extra_isize >= EXTRA_OF_TIMES {
        let seconds = seconds.clamp(i32::MIN.into(), SECONDS_MAX);
        return format::Timestamp { seconds, nanos };
    }
    format::Timestamp { seconds: seconds.clamp(i32::MIN.into(), i32::MAX.into()), nanos: 0 }
}

/// Extra bytes of an inode that keeps all its times whole.
const EXTRA_OF_TIMES: u16 = 24;
/// The last second that two more bits can tell, in the year 2446.
const SECONDS_MAX: i64 = (3 << 32) + i32::MAX as i64;
