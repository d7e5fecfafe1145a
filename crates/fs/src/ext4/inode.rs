//! Inodes in memory.
//!
//! `raw` is what the inode table says, or will say once the running transaction commits; it changes
//! only between waiting points, under a transaction that writes it. Of a file that grew in memory,
//! `size` is ahead of `raw.size` until the new pages have blocks (delayed allocation).
//!
//! Locks are those of every file ([`crate::vfs`]): a transaction stands between `invalidate_lock` and
//! `extent_lock`, which guards the extent tree (Linux's i_data_sem).

use super::format::{self, CsumSeed, mode};
use super::found_extents::FoundExtents;
use super::journal::Tid;
use crate::cache::PageCache;
use crate::contract::{Attr, Ino, Kind, SetAttr, Timestamp};
use crate::vfs::FileCore;
use nandscape_block::Owner;
use nandscape_rt::Handle;
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;

/// An inode in memory.
pub(crate) struct Inode {
    pub(crate) number: u32,
    /// Where checksums of itself and of its blocks begin, if there are any.
    pub(crate) seed: Option<CsumSeed>,
    core: FileCore<Self>,
    pub(crate) raw: RefCell<format::Inode>,
    /// The running transaction writes it into the table once it is done.
    pub(crate) deferred: Cell<bool>,
    /// Extents found lately, as long as the tree has not changed.
    pub(crate) found: FoundExtents,
    /// The transaction that last changed anything, and what a reader of the content needs.
    pub(crate) sync_tid: Cell<Option<Tid>>,
    pub(crate) datasync_tid: Cell<Option<Tid>>,
    /// How often transactions wrote it, and how often they had when its last record was made durable.
    pub(crate) writes: Cell<u64>,
    pub(crate) recorded: Cell<Option<u64>>,
}

impl Deref for Inode {
    type Target = FileCore<Self>;

    fn deref(&self) -> &FileCore<Self> {
        &self.core
    }
}

impl Inode {
    pub(crate) fn new(
        rt: &Handle,
        cache: &PageCache<Self>,
        number: u32,
        raw: format::Inode,
        seed: Option<CsumSeed>,
    ) -> Rc<Self> {
        let owner = Owner { file: number.into(), generation: raw.generation, thread: 0, core: 0 };
        Rc::new_cyclic(|inode| Self {
            number,
            seed,
            core: FileCore::new(rt, cache, inode.clone(), owner, raw.size),
            raw: RefCell::new(raw),
            deferred: Cell::new(false),
            found: FoundExtents::default(),
            sync_tid: Cell::new(None),
            datasync_tid: Cell::new(None),
            writes: Cell::new(0),
            recorded: Cell::new(None),
        })
    }

    /// Counts a subdirectory more.
    pub(crate) fn add_subdir(&self) {
        let mut raw = self.raw.borrow_mut();
        let many = raw.links_count == 1 || raw.links_count >= LINKS_MAX;
        raw.links_count = if many { 1 } else { raw.links_count + 1 };
    }

    /// Counts a subdirectory less.
    pub(crate) fn remove_subdir(&self) {
        let mut raw = self.raw.borrow_mut();
        if raw.links_count > 2 {
            raw.links_count -= 1;
        }
    }

    /// Counts blocks that it gained or lost.
    pub(crate) fn add_blocks(&self, blocks: i64) {
        let mut raw = self.raw.borrow_mut();
        let before = raw.blocks_4k();
        raw.set_blocks_4k(before.saturating_add_signed(blocks));
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
        let is_clean = !self.pages.is_busy() && !self.pages.has_error();
        self.opens.get() == 0 && self.links() > 0 && is_clean && !self.deferred.get()
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
            blocks: (raw.blocks_4k() + self.pages.reserved()) * 8,
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

/// Links that a file can have; a directory that has more counts them as 1 (`dir_nlink`).
pub(crate) const LINKS_MAX: u16 = 65_000;

/// The kind of file that a mode has.
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
/// The last second that two more bits can express, in the year 2446.
const SECONDS_MAX: i64 = (3 << 32) + i32::MAX as i64;
