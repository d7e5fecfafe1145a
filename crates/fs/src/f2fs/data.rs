//! What F2FS answers about the content of its files ([`DataPath`]), after fs/f2fs/data.c and file.c.
//!
//! A page gets its place in a node when it is first written (`NEW_ADDR`: reserved, so that write-back finds its nodes
//! and its block), and its block when it is written back: the next one of a log, each time another. So there is no
//! order between data and the nodes that lead to it but that of fsync and checkpoint. Writes past the page cache
//! (`f2fs_dio_write_iter`) go to fresh blocks, or, with adaptive logging, over those that the pages have.

use super::cpu::Work;
use super::format::{BlockAddr, SegmentType, SummaryEntry};
use super::inode::Inode;
use super::node::{Dnode, Found, Walks};
use super::operations::Op;
use super::sending::PlacedPages;
use super::volume::Volume;
use crate::cache::{PageLocation, WriteRun};
use crate::contract::{Caller, Data, FsError, Kind, Result};
use crate::vfs::content::{self, Places, Writer};
use crate::vfs::writeback::{Room, Submitted, submit, write_blocks};
use crate::vfs::{DataPath, Mapped, PAGE, Pages, VolumeEnv};
use nandscape_block::{Bio, BlockError, FlushScope, Placement, Reply, SectorData};
use nandscape_rt::combine::in_turn;
use nandscape_rt::sync::ReadGuard;
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

/// Pages whose places are reserved at once.
const RESERVE_PAGES: u64 = 512;

/// Pages that have new blocks, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MovedPages {
    /// What the first of them had before.
    pub(super) from: BlockAddr,
    pub(super) start: BlockAddr,
    pub(super) count: u64,
}

impl DataPath for Volume {
    type File = Inode;
    type Placed = PlacedPages;

    fn env(&self) -> &VolumeEnv<Inode> {
        &self.mount.env
    }

    fn submit(
        &self,
        bio: Bio,
    ) -> impl Future<Output = std::result::Result<Reply, BlockError>> + use<> {
        self.writes.send(&self.segments, bio)
    }

    fn submit_read(
        &self,
        bio: Bio,
    ) -> impl Future<Output = std::result::Result<Reply, BlockError>> + use<> {
        self.mount.submit_read(bio)
    }

    /// Blocks are reserved in nodes, not here.
    fn available(&self, _caller: Caller) -> u64 {
        self.nodes.space.free_blocks()
    }

    /// See `f2fs_max_file_blocks`.
    fn check_range(&self, inode: &Inode, offset: u64, len: u64) -> Result<u64> {
        match inode.kind() {
            Kind::File => {}
            Kind::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid("neither a file nor a directory")),
        }
        let most = inode.max_pages() * PAGE;
        offset.checked_add(len).filter(|end| *end <= most).ok_or(FsError::FileTooBig)
    }

    fn check_write(&self, inode: &Inode, offset: u64) -> Result<()> {
        inode.check_write(offset)
    }

    fn may_bypass_cache(&self) -> bool {
        true
    }

    fn flush_scope(&self) -> FlushScope {
        FlushScope::All
    }

    fn placement(&self, _inode: &Inode, start: u64) -> Placement {
        self.segments.placement_at(BlockAddr(start as u32))
    }

    /// Blocks of directories and of metadata go with checkpoints.
    fn is_data(&self, inode: &Inode) -> bool {
        inode.kind() == Kind::File
    }

    async fn lock_map(&self, inode: &Inode, page: u64) -> ReadGuard<()> {
        self.nodes.lock_map(inode, page).await
    }

    fn map(&self, inode: &Inode, page: u64, most: u64) -> impl Future<Output = Result<Mapped>> {
        self.nodes.map(inode, page, most)
    }

    async fn keep_in_place(&self, inode: &Inode) -> Option<ReadGuard<()>> {
        Some(inode.gc_rwsem.read().await)
    }

    fn locate(
        &self,
        inode: &Rc<Inode>,
        page: u64,
        pages: u64,
    ) -> impl Future<Output = Result<PageLocation>> {
        self.nodes.locate(inode, page, pages)
    }

    /// What is written takes free sections, so a run is at most a segment's.
    async fn before_run(&self) -> Result<Room> {
        self.balance_fs().await?;
        Ok(self.segments.room_for_run())
    }

    async fn write_back(self: &Rc<Self>, inode: &Rc<Inode>, pages: u64) -> Result<()> {
        if let Err(error) = self.mount.check_running() {
            let mut pass = inode.pages.pass_over(0..u64::MAX);
            while let Some(run) = pass.take_run(u64::MAX) {
                run.finish(Some(error.clone()));
            }
            return Err(error);
        }
        if inode.kind() == Kind::File {
            let pass = inode.pages.cyclic_pass();
            return crate::vfs::writeback::writepages(self, inode, pass, pages, false).await;
        }
        self.write_back_metadata(inode).await
    }

    /// A walk for each page (`f2fs_do_write_data_page`), and an allocation for each that gets another block.
    async fn before_place(&self, inode: &Inode, pages: &Pages) {
        if self.mount.cpu.is_charged() && !inode.is_inline() {
            self.nodes.pay_walks(inode, pages, Walks::EachPage).await;
            self.pay_allocation(inode, pages, self.mount.updates_in_place(inode)).await;
        }
    }

    async fn place(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        run: &WriteRun<Inode>,
        at: u64,
        sync: bool,
    ) -> Result<Submitted<PlacedPages>> {
        let op = self.operations.begin().await?;
        let _extents = inode.extent_lock.write().await;
        let nothing = |end| Ok(Submitted::without_write(inode, PlacedPages::Nothing, end));
        if inode.is_inline() {
            if at == 0
                && let Some(content) = run.data().first()
            {
                self.nodes.write_inline(&op, inode, content).await?;
            }
            return nothing(at + 1);
        }
        let dnode = match self.nodes.find_dnode(inode, at).await? {
            Found::Node(dnode) => dnode,
            Found::Hole(pages) => return nothing(run.end().min(at.saturating_add(pages))),
        };
        let is_moving = inode.moving.borrow().contains(&at);
        let (log, mut alike) = self.mount.log_of_pages(inode, at..run.end());
        if !is_moving && self.mount.updates_in_place(inode) {
            let (first, count) = self.nodes.first_run(dnode, alike).await?;
            if first.is_block() {
                let placed = PlacedPages::Changed(self.writes.note_in_place(inode, count));
                let pages = (at..at + count, first.0.into());
                let submitted = submit(&**self, inode, run, pages, sync, placed, || drop(op));
                return Ok(self.watched(submitted));
            }
            alike = count;
        }
        let moved = self.move_pages(&op, inode, (dnode, log), at, alike).await?;
        let Some(MovedPages { from, start, count }) = moved else { return nothing(at + 1) };
        let placed = match is_moving {
            true => {
                self.cleaner.note_page(inode, at, from, start);
                inode.note_relocated();
                PlacedPages::Moved(self.writes.metadata_in_flight.send())
            }
            false => {
                self.segments.note_in_use(count);
                PlacedPages::Changed(self.writes.data_in_flight.send())
            }
        };
        let submitted =
            submit(&**self, inode, run, (at..at + count, start.0.into()), sync, placed, || {
                drop(op)
            });
        // The rest of the run may have to wait for a checkpoint, which may wait for this part.
        let is_last = at + count >= run.end();
        Ok(if is_last { submitted } else { self.watched(submitted) })
    }

    async fn write_done(
        &self,
        _inode: &Rc<Inode>,
        placed: &PlacedPages,
        ended: Result<()>,
    ) -> Result<()> {
        self.writes.note_arrival(*placed);
        ended
    }

    async fn write_direct(
        self: &Rc<Self>,
        _caller: Caller,
        inode: &Rc<Inode>,
        pages: &Pages,
        data: &[SectorData],
    ) -> Result<()> {
        self.pay_allocation(inode, pages, self.mount.is_adaptive()).await;
        let mut replies = Vec::new();
        let mut at = pages.start;
        let mut result = Ok(());
        while at < pages.end && result.is_ok() {
            let placed = self.place_direct(inode, at..pages.end, pages.start, data).await;
            result = placed.map(|(end, (id, arrival))| {
                // What is placed next may have to wait for a checkpoint, which may wait for this write.
                let volume = Rc::clone(self);
                replies.push(self.mount.env.rt.spawn("direct write", async move {
                    let ended = arrival.await;
                    volume.writes.data_in_flight.arrive(id);
                    ended
                }));
                at = end;
            });
        }
        for ended in in_turn(replies).await {
            result = result.and(ended.unwrap_or(Err(FsError::ReadOnly)));
        }
        result
    }

    /// A checkpoint makes prefree segments free; cleaning makes prefree ones.
    async fn gain_space(&self) -> Result<bool> {
        Ok(false)
    }

    async fn touch(&self, inode: &Inode) -> Result<()> {
        inode.touch(self.mount.env.now(), true);
        Ok(())
    }

    async fn preallocate(&self, _caller: Caller, inode: &Inode, pages: &Pages) -> Result<()> {
        self.reserve_pages(inode, pages).await
    }

    async fn mark_written(&self, _inode: &Inode, _pages: &Pages) -> Result<()> {
        Ok(())
    }

    fn grows_on_disk(&self, inode: &Inode, offset: u64, len: u64) -> bool {
        offset.saturating_add(len) > inode.size.get()
    }

    /// A power cut may leave blocks after the end, which [`Volume::empty_tail`] removes before they could show.
    async fn begin_growth(&self, inode: &Rc<Inode>) -> Result<()> {
        self.empty_tail(inode, u64::MAX).await
    }

    async fn end_growth(&self, inode: &Rc<Inode>, end: u64) -> Result<()> {
        inode.grow(end);
        Ok(())
    }

    async fn abandon_growth(&self, inode: &Rc<Inode>) -> Result<()> {
        if inode.is_inline() {
            return Ok(());
        }
        let _cut = inode.invalidate_lock.write().await;
        let first = inode.size.get().div_ceil(PAGE);
        // Cleaning may have moved what was written before the error.
        inode.pages.written(first..u64::MAX).await;
        inode.forget_pages(first);
        let op = self.operations.begin().await?;
        let extents = inode.extent_lock.write().await;
        let walked = self.nodes.cut_from(&op, &self.segments, inode, first).await?;
        // Its reads may have brought back what still had a block.
        inode.forget_pages(first);
        drop(extents);
        self.nodes.pay_walked(walked).await;
        Ok(())
    }

    async fn write_some(
        self: &Rc<Self>,
        writer: &Writer,
        inode: &Rc<Inode>,
        data: (u64, &Data),
        range: Range<u64>,
    ) -> Result<u64> {
        self.balance_fs().await?;
        let first = range.start / PAGE;
        // Bytes go page by page, whole sectors in runs.
        let pages = if matches!(data.1, Data::Sectors(..)) { RESERVE_PAGES } else { 1 };
        let range = range.start..range.end.min((first + pages) * PAGE);
        if inode.is_inline() && range.end > inode.inline_capacity() {
            self.convert_inline(inode).await?;
        }
        self.empty_tail(inode, range.end).await?;
        let mut range = range;
        if !inode.is_inline() {
            let pages = first..range.end.div_ceil(PAGE);
            range.end = range.end.min(self.reserve_some(inode, &pages).await? * PAGE);
        }
        let places = if inode.is_inline() { Places::Unknown } else { Places::Reserved };
        let end = content::delay_some(self, writer, inode, data, range, places).await?;
        inode.grow(end);
        Ok(end)
    }

    async fn rewrite_page(&self, inode: &Rc<Inode>, page: u64, content: SectorData) -> Result<u64> {
        Ok(inode.pages.write(page, content, false))
    }

    async fn commit_file(self: &Rc<Self>, inode: &Rc<Inode>, data_only: bool) -> Result<bool> {
        self.fsync(inode, data_only).await
    }

    async fn commit_all(&self) -> Result<()> {
        match self.this() {
            Some(volume) => volume.sync_fs().await,
            None => Err(FsError::ReadOnly),
        }
    }
}

impl Volume {
    /// The same part of a run, whose arrival a task notes.
    fn watched(self: &Rc<Self>, submitted: Submitted<PlacedPages>) -> Submitted<PlacedPages> {
        let (volume, placed) = (Rc::clone(self), *submitted.placed());
        submitted.watched(&self.mount.env.rt, move || volume.writes.note_arrival(placed))
    }

    /// Gives those pages of a range a place that have none (`f2fs_reserve_new_blocks`).
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if not all get one; those that got one keep it.
    pub(crate) async fn reserve_pages(&self, inode: &Inode, pages: &Pages) -> Result<()> {
        let end = self.reserve_some(inode, pages).await?;
        if end < pages.end { Err(FsError::NoSpace) } else { Ok(()) }
    }

    /// The same for as many of the first pages as there is room for; where the others begin.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if the first page gets no place.
    pub(super) async fn reserve_some(&self, inode: &Inode, pages: &Pages) -> Result<u64> {
        let mut at = pages.start;
        while let Some((_, known)) = inode.extents.find(at) {
            at += known;
            if at >= pages.end {
                return Ok(pages.end);
            }
        }
        let op = self.operations.begin().await?;
        let reserved = self.nodes.reserve_pages_in(&op, inode, &(at..pages.end)).await;
        if at > pages.start { reserved.or(Ok(at)) } else { reserved }
    }

    /// Gives new blocks to the first of up to `most` pages that have a place; they lie after each other. `None` if the
    /// first page has no place. Nothing waits from the choice of the blocks to the return. What it costs the host was paid
    /// for before the file's `extent_lock` was taken.
    pub(super) async fn move_pages(
        &self,
        op: &Op,
        inode: &Inode,
        (dnode, log): (Dnode, SegmentType),
        page: u64,
        most: u64,
    ) -> Result<Option<MovedPages>> {
        let version = self.nodes.node_entry(dnode.nid).await?.version;
        self.prepare_log(log, most).await?;
        let addresses = self.nodes.addresses(dnode, most).await?;
        let placed = addresses.iter().take_while(|address| **address != BlockAddr::NULL);
        let count = placed.count().min(self.segments.borrow().run_of(log) as usize);
        let (mut start, mut full) = (None, Vec::new());
        for (step, old) in (0..).zip(&addresses[..count]) {
            let slot = dnode.slot + step;
            let summary = SummaryEntry { nid: dnode.nid, version, ofs_in_node: slot as u16 };
            let now = self.checkpoints.mounted_time();
            let allocated = self.segments.borrow_mut().allocate(log, *old, summary, now);
            let allocated = allocated.map_err(|error| self.writes.stop(error))?;
            start.get_or_insert(allocated.at);
            full.extend(allocated.into_full());
        }
        let Some(start) = start else { return Ok(None) };
        let count = count as u64;
        let set = self.nodes.set_addresses(op, dnode, start, count);
        set.map_err(|error| self.writes.stop(error))?;
        // Not before: what comes into memory may push the node out.
        for (segment, summaries) in full {
            self.segments.meta.keep_summaries(segment, &summaries)?;
        }
        inode.note_moved(&(page..page + count), start);
        Ok(Some(MovedPages { from: addresses[0], start, count }))
    }

    /// Pays for new blocks of pages that are about to be written: for all, or, `in_place`, for those that have none or are
    /// being moved. An error of the look at them shows again where they are placed.
    async fn pay_allocation(&self, inode: &Inode, pages: &Pages, in_place: bool) {
        if !self.mount.cpu.is_charged() {
            return;
        }
        let mut blocks = pages.end - pages.start;
        if in_place {
            let _extents = inode.extent_lock.read().await;
            let mut at = pages.start;
            while at < pages.end
                && let Ok(mapped) = self.nodes.map(inode, at, pages.end - at).await
            {
                let end = at + mapped.blocks();
                if matches!(mapped, Mapped::Blocks { unwritten: false, .. }) {
                    let moving = inode.moving.borrow().range(at..end).count() as u64;
                    blocks -= mapped.blocks() - moving;
                }
                at = end;
            }
        }
        self.mount.pay(Work::Allocation(blocks)).await;
    }

    /// Places and submits the first pages of a range that are written past the cache; `data` begins at page `first`.
    /// Returns where the rest begins, and what to wait for.
    pub(super) async fn place_direct(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        range: Pages,
        first: u64,
        data: &[SectorData],
    ) -> Result<(u64, (u64, impl Future<Output = Result<()>> + use<>))> {
        self.balance_fs().await?;
        if inode.is_inline() {
            self.convert_inline(inode).await?;
        }
        let end = range.end.min(range.start + RESERVE_PAGES);
        self.reserve_pages(inode, &(range.start..end)).await?;
        self.nodes.pay_walks(inode, &(range.start..end), Walks::First).await;
        let no_cleaning = inode.gc_rwsem.read().await;
        // What cleaning has made dirty meanwhile is older than what is written now.
        inode.pages.written(range.start..end).await;
        inode.pages.discard(range.start..end);
        let op = self.operations.begin().await?;
        let _extents = inode.extent_lock.write().await;
        let dnode = self.nodes.make_dnode(&op, inode, range.start).await?;
        let (id, start, count) = self.place_pages(&op, inode, dnode, &(range.start..end)).await?;
        let from = (range.start - first) as usize;
        let some = &data[from..from + count as usize];
        let arrival = write_blocks(&**self, inode, start, some, true);
        let (file, pages) = (Rc::clone(inode), range.start..range.start + count);
        let arrival = async move {
            let ended = arrival.await;
            // What reads beside the write have brought into the cache is old: cleaning would write it over what was
            // written in place.
            file.pages.discard(pages);
            // Until then cleaning would read what the block held before.
            drop(no_cleaning);
            ended
        };
        Ok((range.start + count, (id, arrival)))
    }

    /// Gives blocks to the first of some pages that are written past the cache, or leaves them theirs. Returns the number
    /// of the write, the first block, and how many there are after each other.
    async fn place_pages(
        &self,
        op: &Op,
        inode: &Inode,
        dnode: Dnode,
        pages: &Pages,
    ) -> Result<(u64, u64, u64)> {
        let mut most = pages.end - pages.start;
        if self.mount.is_adaptive() {
            let (first, count) = self.nodes.first_run(dnode, most).await?;
            if first.is_block() {
                return Ok((self.writes.note_in_place(inode, count), first.0.into(), count));
            }
            most = count;
        }
        let log = self.mount.data_log(inode);
        let moved = self.move_pages(op, inode, (dnode, log), pages.start, most).await?;
        let MovedPages { start, count, .. } = moved.ok_or(FsError::NoSpace)?;
        self.segments.note_in_use(count);
        Ok((self.writes.data_in_flight.send(), start.0.into(), count))
    }
}
