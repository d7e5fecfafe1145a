//! Content of files through the page cache: reads, delayed writes, and writes through the journal.

use super::extents::Mapped;
use super::format::Feature;
use super::inode::Inode;
use super::options::DataMode;
use super::tx::Tx;
use super::volume::{PAGE, Volume};
use super::writeback::Pager;
use crate::cache::{Dirtier, read_pages};
use crate::contract::{Caller, Data, FsError, Ino, Io, Kind, Result};
use nandscape_block::{SectorData, Tag};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// The longest file: 2^32 - 1 blocks.
pub(super) const SIZE_MAX: u64 = ((1 << 32) - 1) * PAGE;
/// The longest file without `huge_file`: its blocks are told in 2^32 - 1 sectors of 512 bytes.
const SIZE_MAX_IN_SECTORS: u64 = ((1 << 32) - 1) / 8 * PAGE;
/// Pages that one transaction logs with `data=journal`.
const LOGGED_PAGES: u64 = 8;

/// Who writes, in one call.
pub(crate) struct Writer {
    pub(super) caller: Caller,
    pub(super) dirtier: Dirtier,
}

/// The part of some data that lies in one page.
#[derive(Clone, Copy)]
struct Piece {
    page: u64,
    /// Where it begins in the page, and in the data.
    in_page: usize,
    in_data: usize,
    len: usize,
}

/// The pages that a range touches, with the parts that they have of data that goes to `offset`.
fn pieces(offset: u64, range: Range<u64>) -> impl Iterator<Item = Piece> {
    (range.start / PAGE..range.end.div_ceil(PAGE)).map(move |page| {
        let start = range.start.max(page * PAGE);
        Piece {
            page,
            in_page: (start - page * PAGE) as usize,
            in_data: (start - offset) as usize,
            len: (range.end.min((page + 1) * PAGE) - start) as usize,
        }
    })
}

/// The content of a whole page of the data, if the piece is one.
fn whole(data: &Data, piece: Piece) -> Option<SectorData> {
    match data {
        Data::Sectors(payload, _) => Some(payload.sector((piece.in_data / PAGE as usize) as u32)),
        Data::Bytes(bytes) => {
            let bytes = bytes.get(piece.in_data..)?.first_chunk()?;
            (piece.len == PAGE as usize).then(|| SectorData::Bytes(Arc::new(*bytes)))
        }
        Data::Part(page, part) => (part.len() == PAGE as usize).then(|| page.clone()),
    }
}

impl Volume {
    /// Refuses what is no file, and lengths that no file has (`ext4_max_size` in fs/ext4/super.c).
    pub(super) fn check_extent_of_file(&self, inode: &Inode, offset: u64, len: u64) -> Result<u64> {
        match inode.kind() {
            Kind::File => {}
            Kind::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid("neither a file nor a directory")),
        }
        let most = if self.has(Feature::HUGE_FILE) { SIZE_MAX } else { SIZE_MAX_IN_SECTORS };
        offset.checked_add(len).filter(|end| *end <= most).ok_or(FsError::FileTooBig)
    }

    /// Reads through the cache.
    pub(crate) async fn read_file(
        self: &Rc<Self>,
        caller: Caller,
        inode: &Rc<Inode>,
        offset: u64,
        len: u64,
    ) -> Result<Data> {
        let end = offset.saturating_add(len).min(inode.size.get());
        if offset >= end {
            return Ok(Data::Bytes(Vec::new()));
        }
        let pages = offset / PAGE..end.div_ceil(PAGE);
        let first = pages.start;
        let content =
            read_pages(&Pager(Rc::clone(self)), &inode.pages, caller.thread, pages).await?;
        Ok(Data::from_pages(content, (offset - first * PAGE) as usize, (end - offset) as usize))
    }

    /// Somebody who is going to write, and is to pay in the end.
    pub(crate) fn writer(&self, caller: Caller) -> Writer {
        Writer { caller, dirtier: self.cache.dirtier() }
    }

    /// Writes, to the cache or past it, and waits until the cache has room for more.
    pub(crate) async fn write(
        self: &Rc<Self>,
        caller: Caller,
        ino: Ino,
        offset: u64,
        data: &Data,
        io: Io,
    ) -> Result<u64> {
        let inode = self.inode_of(ino).await?;
        if data.is_empty() {
            return Ok(0);
        }
        if !data.fits(offset) {
            let problem = "sectors, and parts of them, go to their place in a page";
            return Err(FsError::Invalid(problem));
        }
        let direct = io == Io::Direct && self.options.data != DataMode::Journal;
        if !direct {
            let alone = inode.alone().await?;
            let writer = self.writer(caller);
            let written = self.write_file(&writer, &inode, offset, data).await;
            drop(alone);
            writer.dirtier.pay().await;
            return written;
        }
        let write = async || {
            // Writes past the cache that leave the length alone run beside each other, as in Linux.
            let shared = inode.shared().await?;
            if !inode.grows_on_disk(offset, data.len()) {
                return self.write_direct(caller, &inode, offset, data).await;
            }
            drop(shared);
            let _alone = inode.alone().await?;
            self.write_direct(caller, &inode, offset, data).await
        };
        self.with_space(write).await
    }

    /// Writes to the cache, or to the journal with `data=journal`. The caller holds the inode's lock
    /// alone. Returns the bytes written.
    async fn write_file(
        self: &Rc<Self>,
        writer: &Writer,
        inode: &Rc<Inode>,
        offset: u64,
        data: &Data,
    ) -> Result<u64> {
        let end = self.check_extent_of_file(inode, offset, data.len())?;
        inode.check_write(offset)?;
        inode.pages.set_writer(writer.caller.thread, writer.caller.core);
        let mut at = offset;
        while at < end {
            if writer.dirtier.allowance() == 0 {
                writer.dirtier.pay().await;
            }
            let step = async || self.write_some(writer, inode, (offset, data), at..end).await;
            at = match self.with_space(step).await {
                Ok(next) => next,
                Err(error) if at == offset => return Err(error),
                Err(_) => break,
            };
        }
        self.touch_file(inode).await?;
        Ok(at - offset)
    }

    /// Writes what of the data goes to `range`, or the first pages of it. Returns where the rest begins.
    async fn write_some(
        self: &Rc<Self>,
        writer: &Writer,
        inode: &Rc<Inode>,
        data: (u64, &Data),
        range: Range<u64>,
    ) -> Result<u64> {
        if self.options.data == DataMode::Journal {
            return self.log_some(writer.caller, inode, data, range).await;
        }
        let end = self.delay_some(writer, inode, data, range).await?;
        inode.set_size(inode.size.get().max(end));
        Ok(end)
    }

    /// Notes the change of a file's content, once a tick.
    pub(super) async fn touch_file(&self, inode: &Inode) -> Result<()> {
        let now = self.now();
        if inode.is_touched(now) {
            return Ok(());
        }
        let tx = self.begin(4, 0).await?;
        inode.touch(now, true);
        self.write_inode(&tx, inode, false).await?;
        tx.stop();
        Ok(())
    }

    /// What a page will hold once the piece is written.
    async fn content(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        data: &Data,
        piece: Piece,
    ) -> Result<SectorData> {
        if let Some(content) = whole(data, piece) {
            return Ok(content);
        }
        let old = self.page(inode, piece.page).await?;
        let new = match data {
            Data::Bytes(bytes) => bytes
                .get(piece.in_data..piece.in_data + piece.len)
                .and_then(|bytes| old.patched(piece.in_page, bytes)),
            Data::Part(page, part) => old.overlaid(part.clone(), page),
            Data::Sectors(..) => None,
        };
        new.ok_or(FsError::Unsupported("a device that keeps no content"))
    }

    /// A page, zeroes behind the end of the file.
    pub(super) async fn page(self: &Rc<Self>, inode: &Rc<Inode>, page: u64) -> Result<SectorData> {
        if let Some(content) = inode.pages.peek(page) {
            return Ok(content);
        }
        if page * PAGE >= inode.size.get() {
            return Ok(SectorData::Tag(Tag::ZERO));
        }
        let pager = Pager(Rc::clone(self));
        let mut content = read_pages(&pager, &inode.pages, u16::MAX, page..page + 1).await?;
        Ok(content.pop().unwrap_or_default())
    }

    /// Writes to the cache what of the data goes to `range`, or the first pages of it. Returns where the
    /// rest begins.
    async fn delay_some(
        self: &Rc<Self>,
        writer: &Writer,
        inode: &Rc<Inode>,
        (offset, data): (u64, &Data),
        range: Range<u64>,
    ) -> Result<u64> {
        let first = range.start / PAGE;
        if let Data::Sectors(payload, _) = data {
            let content = |page| payload.sector((page - offset / PAGE) as u32);
            let pages = first..range.end / PAGE;
            return Ok((first + self.delay_pages(writer, inode, &pages, content).await?) * PAGE);
        }
        let end = range.end.min((first + 1) * PAGE);
        let Some(piece) = pieces(offset, range.start..end).next() else { return Ok(end) };
        let content = self.content(inode, data, piece).await?;
        self.delay_pages(writer, inode, &(first..first + 1), |_| content.clone()).await?;
        Ok(end)
    }

    /// Writes pages to the cache, or the first of them. Those without a block are promised one. Returns
    /// how many.
    async fn delay_pages(
        &self,
        writer: &Writer,
        inode: &Inode,
        run: &Range<u64>,
        content: impl Fn(u64) -> SectorData,
    ) -> Result<u64> {
        let (waiting, mut count) = inode.pages.waiting(run);
        let mut hole = false;
        if !waiting {
            // Nobody else writes to this file, so a hole stays one until its page is dirty.
            let _map = inode.map_lock.read().await;
            let mapped = self.map(inode, run.start, count).await?;
            (hole, count) = (matches!(mapped, Mapped::Hole(_)), mapped.blocks());
        }
        // Others may have dirtied pages while this looked for blocks.
        count = count.min(writer.dirtier.allowance().max(1));
        if hole {
            count = self.promise_some(writer.caller, count)?;
        }
        let dirtied = inode.pages.write_run(run.start..run.start + count, content, hole);
        writer.dirtier.note(dirtied);
        Ok(count)
    }

    /// Logs what of the data goes to `range`, or the first pages of it, in one transaction
    /// (`data=journal`). Returns where the rest begins.
    async fn log_some(
        self: &Rc<Self>,
        caller: Caller,
        inode: &Rc<Inode>,
        (offset, data): (u64, &Data),
        range: Range<u64>,
    ) -> Result<u64> {
        let first = range.start / PAGE;
        let mut pages = first..range.end.div_ceil(PAGE).min(first + LOGGED_PAGES);
        let _room = loop {
            match self.room(caller, self.holes(inode, &pages).await?) {
                Err(FsError::NoSpace) if pages.end > first + 1 => {
                    pages.end = first.midpoint(pages.end);
                }
                room => break room?,
            }
        };
        let end = range.end.min(pages.end * PAGE);
        let mut contents = Vec::with_capacity(LOGGED_PAGES as usize);
        for piece in pieces(offset, range.start..end) {
            contents.push(self.content(inode, data, piece).await?);
        }
        self.log_pages(inode, first, &contents, inode.size.get().max(end)).await?;
        Ok(end)
    }

    /// How many of these pages have no block.
    async fn holes(&self, inode: &Inode, pages: &Range<u64>) -> Result<u64> {
        let _map = inode.map_lock.read().await;
        let (mut at, mut holes) = (pages.start, 0);
        while at < pages.end {
            let mapped = self.map(inode, at, pages.end - at).await?;
            at += mapped.blocks();
            holes += if matches!(mapped, Mapped::Hole(_)) { mapped.blocks() } else { 0 };
        }
        Ok(holes)
    }

    /// Logs the contents of pages from `first` on, and the length of the file, in one transaction.
    async fn log_pages(
        &self,
        inode: &Rc<Inode>,
        first: u64,
        contents: &[SectorData],
        size: u64,
    ) -> Result<()> {
        let end = first + contents.len() as u64;
        let tx = self.begin(16 + 6 * contents.len() as u32, 0).await?;
        let map = inode.map_lock.write().await;
        let mut page = first;
        while page < end {
            for block in self.blocks_for(&tx, inode, page..end).await? {
                let content = &contents[(page - first) as usize];
                tx.log_data(block, content.clone(), inode.pages.owner())?;
                inode.pages.put_clean(page, content.clone());
                page += 1;
            }
        }
        drop(map);
        inode.set_size(size);
        inode.raw.borrow_mut().size = size;
        self.write_inode(&tx, inode, true).await?;
        tx.stop();
        Ok(())
    }

    /// The blocks of the first page of a range and as many behind it as lie in one piece; taken now if
    /// they have none, and known as written.
    async fn blocks_for(&self, tx: &Tx, inode: &Inode, pages: Range<u64>) -> Result<Range<u64>> {
        match self.map(inode, pages.start, pages.end - pages.start).await? {
            Mapped::Blocks { start, blocks, unwritten } => {
                if unwritten {
                    self.convert(tx, inode, &(pages.start..pages.start + blocks), false).await?;
                }
                Ok(start..start + blocks)
            }
            Mapped::Hole(wanted) => {
                let goal = self.goal(inode, pages.start).await?;
                let taken = self.take_blocks(tx, goal, wanted as u32).await?;
                self.map_blocks(tx, inode, pages.start, taken.clone(), false).await?;
                Ok(taken)
            }
        }
    }

    /// Makes zeroes of a range within one page, if anything is mapped or waits there. Returns how many pages
    /// that made dirty.
    pub(super) async fn zero_in_page(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        offset: u64,
        len: u64,
    ) -> Result<u64> {
        let page = offset / PAGE;
        // Data on its way to a block that was allocated ahead is not known as written yet.
        inode.pages.written(page..page + 1).await;
        let waits = inode.pages.waiting(&(page..page + 1)).0;
        let nothing = !waits && self.reads_as_zeroes(inode, page).await?;
        if len == 0 || nothing {
            return Ok(0);
        }
        let old = self.page(inode, page).await?;
        let from = (offset % PAGE) as usize;
        let zeroed = old.overlaid(from..from + len as usize, &SectorData::Tag(Tag::ZERO));
        let content = zeroed.ok_or(FsError::Unsupported("a device that keeps no content"))?;
        if self.options.data == DataMode::Journal {
            self.log_pages(inode, page, &[content], inode.size.get()).await?;
            return Ok(0);
        }
        Ok(inode.pages.write(page, content, false))
    }

    async fn reads_as_zeroes(&self, inode: &Inode, page: u64) -> Result<bool> {
        let _map = inode.map_lock.read().await;
        Ok(match self.map(inode, page, 1).await? {
            Mapped::Hole(_) => true,
            Mapped::Blocks { unwritten, .. } => unwritten,
        })
    }

    /// Makes zeroes of what the last page will hold behind the end `size`, and sends them off.
    pub(super) async fn zero_tail(self: &Rc<Self>, inode: &Rc<Inode>, size: u64) -> Result<()> {
        let into = size % PAGE;
        if into == 0 {
            return Ok(());
        }
        self.zero_in_page(inode, size, PAGE - into).await?;
        let page = size / PAGE;
        inode.pages.written(page..page + 1).await;
        self.send_dirty(inode, page..page + 1, 1, false).await?;
        // The flusher may have taken the page first, and not have sent it yet.
        inode.pages.written(page..page + 1).await;
        Ok(())
    }
}
