//! Inodes in memory.
//!
//! `raw` holds the attributes; the inode's node page holds them as of the last
//! [`update_inode`](super::nat::Nodes::update_inode), beside what lives there only: block addresses, inline data,
//! inline directory entries, inline extended attributes. A checkpoint brings all dirty inodes to their node pages
//! first (`f2fs_sync_inode_meta`), an fsync its own.
//!
//! Node pages and meta pages are the pages of two inodes that no directory names (`NODE_INO`, `META_INO`).

use super::extent::ExtentCache;
use super::format::{
    self, BlockAddr, ExtraAttrs, InodeFeatures, InodeLayout, advise, inline, inode_flag,
};
use super::segment::Block;
use crate::cache::PageCache;
use crate::contract::{Attr, FsError, Ino, Kind, Result, SetAttr, Timestamp};
use crate::vfs::{FileCore, PAGE, Pages};
use nandscape_block::Owner;
use nandscape_rt::Handle;
use nandscape_rt::sync::RwLock;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::rc::Rc;

/// Links that a file can have (`F2FS_LINK_MAX`).
pub(crate) const LINKS_MAX: u32 = u32::MAX;

/// An inode in memory.
pub(crate) struct Inode {
    pub(crate) number: u32,
    core: FileCore<Self>,
    pub(crate) raw: RefCell<format::Inode>,
    pub(crate) extra: RefCell<ExtraAttrs>,
    /// Which part of its node page is what.
    pub(crate) layout: Cell<InodeLayout>,
    /// What of `raw` is ahead of the node page.
    pub(crate) dirty: Cell<Dirty>,
    /// Where its pages lie, as far as that was found lately.
    pub(crate) extents: ExtentCache,
    /// Whether `pino` and the name beside it are of a name that it was seen to have (`d_find_any_alias`).
    has_alias: Cell<bool>,
    /// How often addresses of its pages changed.
    pub(crate) address_changes: Cell<u64>,
    /// Dirty pages that cleaning moves: they go to the cold log.
    pub(crate) moving: RefCell<BTreeSet<u64>>,
    /// Whether its dirty pages are written over where they lie, for an fsync (`FI_NEED_IPU`).
    pub(crate) syncs_in_place: Cell<bool>,
    /// Whether blocks may follow its end that a write past the page cache got before a power cut, and that it never
    /// covered with its length.
    pub(crate) may_have_tail: Cell<bool>,
    /// Shared by reads and writes past the page cache, alone by cleaning while it makes a page dirty (`i_gc_rwsem`):
    /// otherwise what cleaning has read could be written over what they wrote, and what they read could be another
    /// file's by then.
    pub(crate) gc_rwsem: RwLock<()>,
    /// What the volume has to know of all inodes, those that are not in memory included.
    lists: Rc<InodeLists>,
}

/// Numbers of inodes that a sync has to look at (`ino_management`).
#[derive(Default)]
pub(crate) struct InodeLists {
    /// Those whose attributes their node pages do not have (`DIRTY_META`).
    pub(crate) dirty: RefCell<BTreeSet<u32>>,
    /// Those of which data, or nodes of an fsync, were written that may not be durable (`APPEND_INO`).
    pub(crate) appended: RefCell<BTreeSet<u32>>,
    /// Those of which data were written in place that may not be durable (`UPDATE_INO`).
    pub(crate) updated: RefCell<BTreeSet<u32>>,
    /// Those of which cleaning moved a page, or whose content left the inode, and may not be durable where it is now.
    pub(crate) moved: RefCell<BTreeSet<u32>>,
}

/// What of an inode its node page does not have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) enum Dirty {
    /// Nothing.
    #[default]
    No,
    /// Times, which an fdatasync leaves out.
    Times,
    /// What leads to its content, or other attributes.
    Content,
}

/// The inode whose pages are nodes.
pub(crate) const NODE_INO: u32 = 1;
/// The inode whose pages are blocks of the metadata areas.
pub(crate) const META_INO: u32 = 2;
/// The inode of the root directory.
pub(crate) const ROOT_INO: u32 = 3;

/// What the bytes of an inode say.
pub(crate) type Parts = (format::Inode, ExtraAttrs, InodeLayout);

/// Reads the fields of an inode.
pub(crate) fn parse(bytes: &Block, features: InodeFeatures) -> Parts {
    let layout = InodeLayout::of(bytes, features);
    (format::Inode::parse(bytes), ExtraAttrs::parse(bytes, layout), layout)
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
        (raw, extra, layout): Parts,
        lists: &Rc<InodeLists>,
    ) -> Rc<Self> {
        let owner = Owner { file: number.into(), generation: raw.generation, thread: 0, core: 0 };
        Rc::new_cyclic(|inode| Self {
            number,
            core: FileCore::new(rt, cache, inode.clone(), owner, raw.size),
            raw: RefCell::new(raw),
            extra: RefCell::new(extra),
            layout: Cell::new(layout),
            dirty: Cell::default(),
            extents: ExtentCache::default(),
            has_alias: Cell::new(false),
            address_changes: Cell::new(0),
            moving: RefCell::default(),
            syncs_in_place: Cell::new(false),
            may_have_tail: Cell::new(true),
            gc_rwsem: RwLock::new(rt, "cleaning of an inode", ()),
            lists: Rc::clone(lists),
        })
    }

    /// Bytes of memory that it takes, without its pages.
    pub(crate) fn memory_bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.extents.memory_bytes()
    }

    /// Notes that the node page lacks something.
    pub(crate) fn mark(&self, what: Dirty) {
        if self.dirty.get() == Dirty::No {
            self.lists.dirty.borrow_mut().insert(self.number);
        }
        self.dirty.set(self.dirty.get().max(what));
    }

    /// The node page has everything.
    pub(crate) fn mark_clean(&self) {
        self.dirty.set(Dirty::No);
        self.lists.dirty.borrow_mut().remove(&self.number);
    }

    pub(crate) fn kind(&self) -> Kind {
        kind_of(self.raw.borrow().mode)
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.kind() == Kind::Directory
    }

    pub(crate) fn links(&self) -> u32 {
        self.raw.borrow().links
    }

    /// Whether its content lies in the inode itself.
    pub(crate) fn is_inline(&self) -> bool {
        self.raw.borrow().has_inline(inline::DATA)
    }

    /// Whether its names lie in the inode itself.
    pub(crate) fn has_inline_names(&self) -> bool {
        self.raw.borrow().has_inline(inline::DENTRY)
    }

    /// Its directory and its name there, for roll-forward.
    pub(crate) fn set_name(&self, parent: u32, name: &[u8]) {
        let mut raw = self.raw.borrow_mut();
        raw.pino = parent;
        raw.set_name(name);
        drop(raw);
        self.has_alias.set(true);
        self.mark(Dirty::Content);
    }

    /// It was found by a name. Where the one beside `pino` may be gone, this one takes its place.
    pub(crate) fn note_alias(&self, parent: u32, name: &[u8]) {
        if !self.is_dir() && self.has_wrong_pino() && !self.has_alias.get() {
            let mut raw = self.raw.borrow_mut();
            raw.pino = parent;
            raw.set_name(name);
            self.has_alias.set(true);
        }
    }

    /// It lost a name.
    pub(crate) fn lose_alias(&self, parent: u32, name: &[u8]) {
        let raw = self.raw.borrow();
        if raw.pino == parent && raw.name() == name {
            self.has_alias.set(false);
        }
    }

    /// The last checkpoint has its names. If that is one, and known, its next fsync needs no checkpoint
    /// (`try_to_fix_pino`).
    pub(crate) fn get_pino(&self) {
        if self.has_wrong_pino() && self.links() == 1 && self.has_alias.get() {
            self.raw.borrow_mut().advise &= !advise::LOST_PINO;
            self.mark(Dirty::Content);
        }
    }

    /// It may have other names: roll-forward cannot bring its name back (`file_lost_pino`). Directories have one name.
    pub(crate) fn lose_pino(&self) {
        if !self.is_dir() {
            self.raw.borrow_mut().advise |= advise::LOST_PINO;
            self.mark(Dirty::Content);
        }
    }

    pub(crate) fn is_cold(&self) -> bool {
        self.raw.borrow().advise & advise::COLD != 0
    }

    pub(crate) fn is_hot(&self) -> bool {
        self.raw.borrow().advise & advise::HOT != 0
    }

    /// Whether `pino` may not name the directory of its only name (`file_wrong_pino`).
    pub(crate) fn has_wrong_pino(&self) -> bool {
        self.raw.borrow().advise & advise::LOST_PINO != 0
    }

    /// Counts blocks that it gained or lost.
    pub(crate) fn add_blocks(&self, blocks: i64) {
        let mut raw = self.raw.borrow_mut();
        raw.blocks = raw.blocks.saturating_add_signed(blocks);
    }

    /// Pages lie elsewhere now, after each other from `start` on. What the inode says of its largest extent must stay
    /// true.
    pub(crate) fn note_moved(&self, pages: &Pages, start: BlockAddr) {
        self.note_appended();
        self.forget_extent(pages);
        self.extents.insert(pages.start, start, pages.end - pages.start);
    }

    /// The device moved one of its pages, which is as durable as it was.
    pub(crate) fn note_migrated(&self, page: u64, to: BlockAddr) {
        self.forget_extent(&(page..page + 1));
        self.extents.insert(page, to, 1);
    }

    /// Data were written that may not be durable.
    pub(crate) fn note_appended(&self) {
        self.lists.appended.borrow_mut().insert(self.number);
    }

    /// Cleaning moved one of its pages, or its content left the inode: what a sync may have covered is not durable where it is
    /// now.
    pub(crate) fn note_relocated(&self) {
        self.lists.moved.borrow_mut().insert(self.number);
    }

    /// Data were written over where they lay, and may not be durable. What cleaning has read of them is old.
    pub(crate) fn note_updated(&self) {
        self.address_changes.set(self.address_changes.get() + 1);
        self.lists.updated.borrow_mut().insert(self.number);
    }

    /// Pages lie elsewhere, or nowhere.
    pub(crate) fn forget_extent(&self, pages: &Pages) {
        self.address_changes.set(self.address_changes.get() + 1);
        self.extents.forget(pages);
        let mut raw = self.raw.borrow_mut();
        let first = u64::from(raw.ext_fofs);
        let known = first..first + u64::from(raw.ext_len);
        if known.start < pages.end && pages.start < known.end {
            raw.ext_len = 0;
            drop(raw);
            self.mark(Dirty::Content);
        }
    }

    /// Pages of the longest such file.
    pub(crate) fn max_pages(&self) -> u64 {
        format::max_pages(self.layout.get().addr_count())
    }

    /// Bytes that its content may have to stay in the inode.
    pub(crate) fn inline_capacity(&self) -> u64 {
        self.layout.get().inline_data_bytes() as u64
    }

    /// Whether blocks beyond its end are kept (`FADVISE_KEEP_SIZE`).
    pub(crate) fn keeps_size(&self) -> bool {
        self.raw.borrow().advise & advise::KEEP_SIZE != 0
    }

    /// Whether its flags permit a write from `offset` on.
    ///
    /// # Errors
    /// [`FsError::NotPermitted`].
    pub(crate) fn check_write(&self, offset: u64) -> Result<()> {
        let flags = self.raw.borrow().flags;
        let append_only = flags & inode_flag::APPEND != 0 && offset < self.size.get();
        if flags & inode_flag::IMMUTABLE != 0 || append_only {
            return Err(FsError::NotPermitted);
        }
        Ok(())
    }

    /// Whether its flags permit changes other than appending.
    ///
    /// # Errors
    /// [`FsError::NotPermitted`].
    pub(crate) fn check_changeable(&self) -> Result<()> {
        let fixed = inode_flag::IMMUTABLE | inode_flag::APPEND;
        if self.raw.borrow().flags & fixed != 0 { Err(FsError::NotPermitted) } else { Ok(()) }
    }

    /// Whether a directory may get names.
    ///
    /// # Errors
    /// [`FsError::NotPermitted`].
    pub(crate) fn check_addable(&self) -> Result<()> {
        let is_fixed = self.raw.borrow().flags & inode_flag::IMMUTABLE != 0;
        if is_fixed { Err(FsError::NotPermitted) } else { Ok(()) }
    }

    /// Whether its name in `dir` may go.
    ///
    /// # Errors
    /// [`FsError::NotPermitted`].
    pub(crate) fn check_removable(&self, dir: &Self) -> Result<()> {
        dir.check_changeable()?;
        self.check_changeable()
    }

    /// Whether nothing needs it in memory but the cache of inodes.
    pub(crate) fn is_idle(&self) -> bool {
        let is_quiet = !self.pages.is_busy() && !self.pages.has_error();
        self.opens.get() == 0 && self.links() > 0 && self.dirty.get() == Dirty::No && is_quiet
    }

    pub(crate) fn attr(&self) -> Attr {
        let (raw, extra) = (self.raw.borrow(), self.extra.borrow());
        let has_crtime = self.layout.get().extra_bytes() >= EXTRA_OF_CRTIME;
        let time = |seconds: u64, nanos| Timestamp { seconds: seconds.cast_signed(), nanos };
        let ctime = time(raw.ctime, raw.ctime_nsec);
        // Not the target of a symbolic link (`f2fs_getattr`).
        let counts_inline = match kind_of(raw.mode) {
            Kind::File => raw.has_inline(inline::DATA),
            _ => raw.has_inline(inline::DENTRY),
        };
        let inline_sectors = if counts_inline { self.size.get().div_ceil(512) } else { 0 };
        Attr {
            ino: Ino(self.number.into()),
            generation: raw.generation,
            kind: kind_of(raw.mode),
            mode: raw.mode & !format::mode::TYPE,
            links: raw.links,
            uid: raw.uid,
            gid: raw.gid,
            size: self.size.get(),
            // Damage may say any number.
            blocks: raw.blocks.saturating_sub(1).saturating_mul(8).saturating_add(inline_sectors),
            atime: time(raw.atime, raw.atime_nsec),
            mtime: time(raw.mtime, raw.mtime_nsec),
            ctime,
            crtime: if has_crtime { time(extra.crtime, extra.crtime_nsec) } else { ctime },
        }
    }

    /// Sets attributes; the length is not among them.
    pub(crate) fn set(&self, change: &SetAttr) {
        let mut raw = self.raw.borrow_mut();
        let kind = raw.file_type();
        raw.mode = change.mode.map_or(raw.mode, |bits| kind | bits & !format::mode::TYPE);
        raw.uid = change.uid.unwrap_or(raw.uid);
        raw.gid = change.gid.unwrap_or(raw.gid);
        if let Some(time) = change.atime {
            (raw.atime, raw.atime_nsec) = (time.seconds.cast_unsigned(), time.nanos);
        }
        if let Some(time) = change.mtime {
            (raw.mtime, raw.mtime_nsec) = (time.seconds.cast_unsigned(), time.nanos);
        }
        drop(raw);
        self.mark(Dirty::Content);
    }

    /// Notes a change of content (`mtime` and `ctime`) or of attributes (`ctime` alone).
    pub(crate) fn touch(&self, now: Timestamp, content: bool) {
        let mut raw = self.raw.borrow_mut();
        let time = (now.seconds.cast_unsigned(), now.nanos);
        let same = (raw.ctime, raw.ctime_nsec) == time
            && (!content || (raw.mtime, raw.mtime_nsec) == time);
        (raw.ctime, raw.ctime_nsec) = time;
        if content {
            (raw.mtime, raw.mtime_nsec) = time;
        }
        drop(raw);
        if !same {
            self.mark(Dirty::Times);
        }
    }

    /// A directory that is still there, once its lock is held.
    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.links() == 0 || self.deleted.get() { Err(FsError::NoEntry) } else { Ok(()) }
    }

    /// Whether a directory may get one more subdirectory.
    pub(crate) fn may_add_subdir(&self) -> Result<()> {
        if self.links() == LINKS_MAX { Err(FsError::TooManyLinks) } else { Ok(()) }
    }

    /// A directory lost or got a subdirectory.
    pub(crate) fn count_subdir(&self, change: i32) {
        let mut raw = self.raw.borrow_mut();
        raw.links = raw.links.saturating_add_signed(change);
        drop(raw);
        self.mark(Dirty::Content);
    }

    /// Counts a name less, which `dir` lost (`f2fs_drop_nlink`).
    pub(crate) fn lose_link(&self, dir: &Self, name: &[u8], now: Timestamp) {
        self.lose_alias(dir.number, name);
        let is_dir = self.is_dir();
        if is_dir {
            dir.count_subdir(-1);
        }
        let mut raw = self.raw.borrow_mut();
        // The count is the media's, which may be too low.
        raw.links = if is_dir { 0 } else { raw.links.saturating_sub(1) };
        drop(raw);
        self.touch(now, false);
        self.mark(Dirty::Content);
    }

    /// The file is at least `end` bytes long.
    pub(crate) fn grow(&self, end: u64) {
        if end > self.size.get() {
            self.set_size(end);
            self.raw.borrow_mut().size = end;
            self.mark(Dirty::Content);
        }
    }

    /// Forgets the pages of a file from one on.
    pub(crate) fn forget_pages(&self, first: u64) {
        self.pages.discard(first..u64::MAX);
        self.moving.borrow_mut().split_off(&first);
    }

    /// The page of inline content ends at `size`.
    pub(crate) fn cut_inline_page(&self, size: u64) {
        let Some(content) = self.pages.peek(0) else { return };
        let zeroes = nandscape_block::SectorData::Tag(nandscape_block::Tag::ZERO);
        if let Some(cut) = content.overlaid(size as usize..PAGE as usize, &zeroes) {
            self.pages.write(0, cut, false);
        }
    }
}

/// Bytes of extra attributes of an inode that keeps its time of creation.
const EXTRA_OF_CRTIME: u32 = 24;

/// The kind of file that a mode names.
pub(crate) const fn kind_of(mode: u16) -> Kind {
    match mode & 0o170_000 {
        0o100_000 => Kind::File,
        0o040_000 => Kind::Directory,
        0o120_000 => Kind::Symlink,
        _ => Kind::Special,
    }
}
