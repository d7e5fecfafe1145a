//! What every mounted file system shares: content of files through the page cache and past it,
//! write-back, fsync, calls in flight, inodes in memory, reserved space. After Linux's iomap
//! (`fs/iomap/buffered-io.c`, `direct-io.c`): a file system answers where a file's pages are and where
//! new ones go, and everything else is here. The code is generic and compiled per file system; nothing
//! is boxed below the contract.
//!
//! # Locks of a file
//! In the order in which they are taken: `i_rwsem` (exclusive for changes of content, size, names or
//! attributes; shared by readers except those through the page cache), `invalidate_lock` (shared by
//! readers through the page cache, exclusive while pages and their blocks are removed), whatever a file
//! system takes for a change of its metadata (a transaction), `extent_lock` (the map from pages to
//! blocks).
//!
//! No task works on a core of the host while it holds an `extent_lock`: a writer and write-back would take turns,
//! and have one core between them. What a look at the map costs is paid for before ([`DataPath::lock_map`],
//! [`DataPath::before_place`]); debug builds check it.

mod blocks;
pub(crate) mod calls;
pub(crate) mod content;
pub(crate) mod direct;
mod env;
mod file;
mod inodes;
mod space;
pub(crate) mod sync;
pub(crate) mod writeback;

pub(crate) use blocks::{BlockCache, CachedBlock};
pub(crate) use env::VolumeEnv;
pub(crate) use file::{FileCore, InFlight};
pub(crate) use inodes::InodeCache;
pub(crate) use space::SpaceReservation;

use crate::cache::{PageLocation, WriteRun};
use crate::contract::{Caller, Data, Result};
use content::Writer;
use nandscape_block::{Bio, BlockError, FlushScope, Placement, Reply, SECTOR_BYTES, SectorData};
use nandscape_rt::sync::ReadGuard;
use std::future::Future;
use std::ops::{Deref, Range};
use std::rc::Rc;
use writeback::{Room, Submitted};

/// Bytes of a page of the cache, a sector of the device.
pub(crate) const PAGE: u64 = SECTOR_BYTES;

/// Pages of a file.
pub(crate) type Pages = Range<u64>;

/// What some contiguous pages of a file are mapped to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mapped {
    /// Nothing, for so many pages, at least one.
    Hole(u64),
    /// So many contiguous blocks from `start` on.
    Blocks {
        /// The first block on the volume.
        start: u64,
        /// How many.
        blocks: u64,
        /// Allocated, but reads as zeroes.
        unwritten: bool,
    },
}

impl Mapped {
    /// Pages that this is about.
    pub(crate) const fn blocks(&self) -> u64 {
        match self {
            Self::Hole(blocks) | Self::Blocks { blocks, .. } => *blocks,
        }
    }

    /// Whether the pages have no block.
    pub(crate) const fn is_hole(&self) -> bool {
        matches!(self, Self::Hole(_))
    }

    /// Whether the device holds nothing for the pages.
    pub(crate) const fn reads_as_zeroes(&self) -> bool {
        matches!(self, Self::Hole(_) | Self::Blocks { unwritten: true, .. })
    }
}

/// What a file system answers about its files, for the code here to do the rest.
pub(crate) trait DataPath: Sized + 'static {
    /// An inode in memory.
    type File: Deref<Target = FileCore<Self::File>> + 'static;
    /// What [`DataPath::place`] has to remember until the device has answered.
    type Placed: 'static;

    /// What the mount stands on.
    fn env(&self) -> &VolumeEnv<Self::File>;

    /// Submits a write of file data to the device.
    fn submit(
        &self,
        bio: Bio,
    ) -> impl Future<Output = std::result::Result<Reply, BlockError>> + use<Self> {
        self.env().device.submit(bio)
    }

    /// Submits a read of blocks that were just found to be a file's.
    fn submit_read(
        &self,
        bio: Bio,
    ) -> impl Future<Output = std::result::Result<Reply, BlockError>> + use<Self> {
        self.env().device.submit(bio)
    }

    /// Free blocks that may be reserved for this caller.
    fn available(&self, caller: Caller) -> u64;

    /// The end of a range of a regular file.
    ///
    /// # Errors
    /// The file is not a regular one, or the format has no such offset.
    fn check_range(&self, file: &Self::File, offset: u64, len: u64) -> Result<u64>;

    /// Whether attributes of the file permit a write from `offset` on.
    fn check_write(&self, file: &Self::File, offset: u64) -> Result<()>;

    /// Whether writes past the page cache are possible; otherwise they go through it.
    fn may_bypass_cache(&self) -> bool;

    /// What the flush of an fsync covers.
    fn flush_scope(&self) -> FlushScope {
        FlushScope::Owner
    }

    /// The placement hint of data of a file at a block: how long it is expected to live.
    fn placement(&self, file: &Self::File, _start: u64) -> Placement {
        // Placement 0 is no hint; a device with fewer handles has the longest-lived data in its last.
        let handles = self.env().device.caps().placement_handles;
        Placement((file.write_hint.get() as u16).min(handles))
    }

    /// How often a sync looks for dirty pages: the second time takes those that were on their way the first time
    /// and had been written to again.
    fn sync_passes(&self) -> u32 {
        2
    }

    /// Whether a sync waits for the pages that it sends.
    fn sync_waits(&self) -> bool {
        true
    }

    /// Whether a sync of a file writes its dirty pages; if not, [`DataPath::commit_file`] and
    /// [`DataPath::commit_all`] do.
    fn is_data(&self, _file: &Self::File) -> bool {
        true
    }

    /// Takes a file's `extent_lock`, shared, for a look at a page. What that costs the host is paid for before.
    async fn lock_map(&self, file: &Self::File, _page: u64) -> ReadGuard<()> {
        file.extent_lock.read().await
    }

    /// What the first of up to `most` pages from `page` on are mapped to. The caller holds the file's
    /// `extent_lock` ([`DataPath::lock_map`]).
    async fn map(&self, file: &Self::File, page: u64, most: u64) -> Result<Mapped>;

    /// Keeps blocks of a file that are read past the page cache from being moved, until the value is dropped: what they
    /// held would soon be another file's.
    async fn keep_in_place(&self, _file: &Self::File) -> Option<ReadGuard<()>> {
        None
    }

    /// Where the newest content of up to `pages` pages from `page` on is, as far as it is not in the page
    /// cache.
    async fn locate(&self, file: &Rc<Self::File>, page: u64, pages: u64) -> Result<PageLocation>;

    /// Makes room before the next run of dirty pages is taken.
    async fn before_run(&self) -> Result<Room> {
        Ok(Room::new(writeback::RUN_PAGES))
    }

    /// Submits up to `pages` dirty pages of a file for the flusher, without waiting for them.
    async fn write_back(self: &Rc<Self>, file: &Rc<Self::File>, pages: u64) -> Result<()> {
        writeback::writepages(self, file, file.pages.cyclic_pass(), pages, false).await
    }

    /// Writes pages past the page cache and waits for them.
    async fn write_direct(
        self: &Rc<Self>,
        caller: Caller,
        file: &Rc<Self::File>,
        pages: &Pages,
        data: &[SectorData],
    ) -> Result<()> {
        direct::write_in_place(self, caller, file, pages, data).await
    }

    /// Pays for what it costs the host to place the pages of a run, which is placed next.
    async fn before_place(&self, _file: &Self::File, _pages: &Pages) {}

    /// Gives blocks to the first part of a run from page `at` on, and submits it with
    /// [`writeback::submit`].
    async fn place(
        self: &Rc<Self>,
        file: &Rc<Self::File>,
        run: &WriteRun<Self::File>,
        at: u64,
        sync: bool,
    ) -> Result<Submitted<Self::Placed>>;

    /// The device has answered the write of what was placed. The result is the write's, unless what is left
    /// to do fails.
    async fn write_done(
        &self,
        file: &Rc<Self::File>,
        placed: &Self::Placed,
        ended: Result<()>,
    ) -> Result<()>;

    /// Tries to free space after an operation found none; whether to repeat the operation.
    async fn gain_space(&self) -> Result<bool>;

    /// Notes the time of a change of content.
    async fn touch(&self, file: &Self::File) -> Result<()>;

    /// Gives blocks, which read as zeroes, to those pages of a range that have none.
    async fn preallocate(&self, caller: Caller, file: &Self::File, pages: &Pages) -> Result<()>;

    /// Notes that blocks of pages, which were unwritten, hold data.
    async fn mark_written(&self, file: &Self::File, pages: &Pages) -> Result<()>;

    /// Whether a write of a range goes beyond the length that the device knows.
    fn grows_on_disk(&self, file: &Self::File, offset: u64, len: u64) -> bool;

    /// A write past the page cache is about to make the file longer.
    async fn begin_growth(&self, file: &Rc<Self::File>) -> Result<()>;

    /// It did: the file is at least `end` bytes long.
    async fn end_growth(&self, file: &Rc<Self::File>, end: u64) -> Result<()>;

    /// It failed: blocks after the old end are not the file's.
    async fn abandon_growth(&self, file: &Rc<Self::File>) -> Result<()>;

    /// Writes the first part of a range through the page cache; returns where the rest begins.
    async fn write_some(
        self: &Rc<Self>,
        writer: &Writer,
        file: &Rc<Self::File>,
        data: (u64, &Data),
        range: Range<u64>,
    ) -> Result<u64>;

    /// Replaces the content of a page that has a block or waits for write-back. Returns how many pages that
    /// made dirty.
    async fn rewrite_page(
        &self,
        file: &Rc<Self::File>,
        page: u64,
        content: SectorData,
    ) -> Result<u64>;

    /// Makes durable what leads to a file's content, which is on the device; `data_only` leaves out
    /// attributes that reading does not need. Whether that flushed the device.
    async fn commit_file(self: &Rc<Self>, file: &Rc<Self::File>, data_only: bool) -> Result<bool>;

    /// Makes all metadata durable.
    async fn commit_all(&self) -> Result<()>;
}

/// Runs an operation, and repeats it once if it found no space and some could be gained.
pub(crate) async fn retry_after_commit<V: DataPath, R>(
    volume: &V,
    operation: impl AsyncFn() -> Result<R>,
) -> Result<R> {
    match operation().await {
        Err(crate::contract::FsError::NoSpace) if volume.gain_space().await? => operation().await,
        result => result,
    }
}
