//! Content of files through the page cache: reads, and writes whose pages get their blocks later.

use super::writeback::{FileBacking, writepages};
use super::{DataPath, PAGE, Pages, retry_after_commit};
use crate::cache::{DirtyThrottle, read_pages};
use crate::contract::{Caller, Data, FsError, Io, Result, Whence};
use nandscape_block::{SectorData, Tag};
use nandscape_rt::{defect, invariant};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Who writes in one call, and what it may dirty.
pub(crate) struct Writer {
    pub(crate) caller: Caller,
    pub(crate) throttle: DirtyThrottle,
}

impl Writer {
    /// A writer that is to wait for its share of write-back in the end.
    pub(crate) fn new<V: DataPath>(volume: &V, caller: Caller) -> Self {
        Self { caller, throttle: volume.env().cache.throttle() }
    }
}

/// The part of some data that lies in one page.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    page: u64,
    /// Where it begins in the page, and in the data.
    in_page: usize,
    in_data: usize,
    len: usize,
}

/// The pages that a range touches, each with its part of data that goes to `offset`.
pub(crate) fn pieces(offset: u64, range: Range<u64>) -> impl Iterator<Item = Piece> {
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

/// Reads up to `len` bytes through the page cache.
pub(crate) async fn read<V: DataPath>(
    volume: &Rc<V>,
    caller: Caller,
    file: &Rc<V::File>,
    offset: u64,
    len: u64,
) -> Result<Data> {
    let end = offset.saturating_add(len).min(file.size.get());
    if offset >= end {
        return Ok(Data::Bytes(Vec::new()));
    }
    let pages = offset / PAGE..end.div_ceil(PAGE);
    let first = pages.start;
    let backing = FileBacking(Rc::clone(volume));
    let content = read_pages(&backing, &file.pages, caller.thread, pages).await?;
    Ok(Data::from_pages(content, (offset - first * PAGE) as usize, (end - offset) as usize))
}

/// Writes, through the page cache or past it, and waits until the cache has room for more. Returns the
/// bytes written.
pub(crate) async fn write<V: DataPath>(
    volume: &Rc<V>,
    caller: Caller,
    file: &Rc<V::File>,
    offset: u64,
    data: &Data,
    io: Io,
) -> Result<u64> {
    if data.is_empty() {
        return Ok(0);
    }
    check_fits(data, offset)?;
    if io == Io::Buffered || !volume.may_bypass_cache() {
        let exclusive = file.lock_exclusive().await?;
        let writer = Writer::new(&**volume, caller);
        let written = write_file(volume, &writer, file, offset, data).await;
        drop(exclusive);
        writer.throttle.balance_dirty().await;
        return written;
    }
    let write = async || {
        // Writes past the cache that leave the length alone run beside each other, as in Linux.
        let shared = file.lock_shared().await?;
        if !volume.grows_on_disk(file, offset, data.len()) {
            return super::direct::write(volume, caller, file, offset, data).await;
        }
        drop(shared);
        let _exclusive = file.lock_exclusive().await?;
        super::direct::write(volume, caller, file, offset, data).await
    };
    retry_after_commit(&**volume, write).await
}

fn check_fits(data: &Data, offset: u64) -> Result<()> {
    let problem = "sectors, and parts of them, go to their place in a page";
    if data.fits(offset) { Ok(()) } else { Err(FsError::Invalid(problem)) }
}

/// Writes at the end of the file, as [`write()`] does. Returns the offset and the bytes written.
pub(crate) async fn append<V: DataPath>(
    volume: &Rc<V>,
    caller: Caller,
    file: &Rc<V::File>,
    data: &Data,
    io: Io,
) -> Result<(u64, u64)> {
    let writer = Writer::new(&**volume, caller);
    let direct = io == Io::Direct && volume.may_bypass_cache();
    let append = async || {
        let _exclusive = file.lock_exclusive().await?;
        let offset = file.size.get();
        if data.is_empty() {
            return Ok((offset, 0));
        }
        check_fits(data, offset)?;
        let written = match direct {
            true => super::direct::write(volume, caller, file, offset, data).await?,
            false => write_file(volume, &writer, file, offset, data).await?,
        };
        Ok((offset, written))
    };
    let appended =
        if direct { retry_after_commit(&**volume, append).await } else { append().await };
    writer.throttle.balance_dirty().await;
    appended
}

/// The first offset from `offset` on that is data, or in a hole ([`FileSystem::seek`]).
///
/// [`FileSystem::seek`]: crate::contract::FileSystem::seek
pub(crate) async fn seek<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    offset: u64,
    whence: Whence,
) -> Result<u64> {
    volume.check_range(file, 0, 0)?;
    let _shared = file.lock_shared().await?;
    let size = file.size.get();
    if offset >= size {
        return Err(FsError::BeyondEnd);
    }
    let (mut page, end) = (offset / PAGE, size.div_ceil(PAGE));
    while page < end {
        let (is_data, count) = data_or_hole(volume, file, &(page..end)).await?;
        if is_data == (whence == Whence::Data) {
            return Ok(offset.max(page * PAGE));
        }
        page += count;
    }
    if whence == Whence::Hole { Ok(size) } else { Err(FsError::BeyondEnd) }
}

/// Whether the first page of a range is data, and how many pages from there on are like it. The caller
/// keeps writers out.
async fn data_or_hole<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    range: &Pages,
) -> Result<(bool, u64)> {
    let (waiting, count) = file.pages.waiting(range);
    if waiting {
        return Ok((true, count));
    }
    // Preallocated blocks are marked as written only after the write; none begins on these pages now.
    file.pages.written(range.start..range.start + count).await;
    let _extents = volume.lock_map(file, range.start).await;
    let mapped = volume.map(file, range.start, count).await?;
    Ok((!mapped.reads_as_zeroes(), mapped.blocks()))
}

/// Writes through the page cache. The caller holds the file's `i_rwsem` exclusively. Returns the bytes
/// written.
pub(crate) async fn write_file<V: DataPath>(
    volume: &Rc<V>,
    writer: &Writer,
    file: &Rc<V::File>,
    offset: u64,
    data: &Data,
) -> Result<u64> {
    let end = volume.check_range(file, offset, data.len())?;
    volume.check_write(file, offset)?;
    file.pages.set_writer(writer.caller.thread, writer.caller.core);
    let mut at = offset;
    while at < end {
        if writer.throttle.allowance() == 0 {
            writer.throttle.balance_dirty().await;
        }
        let step = async || volume.write_some(writer, file, (offset, data), at..end).await;
        at = match retry_after_commit(&**volume, step).await {
            Ok(next) => next,
            Err(error) if at == offset => return Err(error),
            Err(_) => break,
        };
    }
    volume.touch(file).await?;
    Ok(at - offset)
}

/// What a page will hold once the piece is written.
pub(crate) async fn content<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    data: &Data,
    piece: Piece,
) -> Result<SectorData> {
    if let Some(content) = whole(data, piece) {
        return Ok(content);
    }
    let old = page(volume, file, piece.page).await?;
    let new = match data {
        Data::Bytes(bytes) => bytes
            .get(piece.in_data..piece.in_data + piece.len)
            .and_then(|bytes| old.patched(piece.in_page, bytes)),
        Data::Part(page, part) => old.overlaid(part.clone(), page),
        Data::Sectors(..) => None,
    };
    new.ok_or(FsError::Unsupported("a device that keeps no content"))
}

/// A page; zeroes after the end of the file.
async fn page<V: DataPath>(volume: &Rc<V>, file: &Rc<V::File>, page: u64) -> Result<SectorData> {
    if let Some(content) = file.pages.peek(page) {
        return Ok(content);
    }
    if page * PAGE >= file.size.get() {
        return Ok(SectorData::Tag(Tag::ZERO));
    }
    let backing = FileBacking(Rc::clone(volume));
    let mut content = read_pages(&backing, &file.pages, u16::MAX, page..page + 1).await?;
    content.pop().ok_or_else(|| defect!("a page that was read is there").into())
}

/// What is known of the places of pages that are about to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Places {
    /// The map has to be asked for holes.
    Unknown,
    /// Each page has one: nothing is to be looked up for a page that is written as a whole.
    Reserved,
}

/// Writes to the page cache what of the data goes to `range`, or the first pages of it. Returns where the
/// rest begins.
pub(crate) async fn delay_some<V: DataPath>(
    volume: &Rc<V>,
    writer: &Writer,
    file: &Rc<V::File>,
    (offset, data): (u64, &Data),
    range: Range<u64>,
    places: Places,
) -> Result<u64> {
    let first = range.start / PAGE;
    if let Data::Sectors(payload, _) = data {
        let content = |page| payload.sector((page - offset / PAGE) as u32);
        let pages = first..range.end / PAGE;
        let delayed = delay_pages(volume, writer, file, (&pages, places), content).await?;
        return Ok((first + delayed) * PAGE);
    }
    let end = range.end.min((first + 1) * PAGE);
    let Some(piece) = pieces(offset, range.start..end).next() else {
        return Err(defect!("what is written has a first page").into());
    };
    let content = content(volume, file, data, piece).await?;
    let places = if piece.len == PAGE as usize { places } else { Places::Unknown };
    delay_pages(volume, writer, file, (&(first..first + 1), places), |_| content.clone()).await?;
    Ok(end)
}

/// Writes pages to the page cache, or the first of them. Blocks are reserved for those without one.
/// Returns how many.
async fn delay_pages<V: DataPath>(
    volume: &Rc<V>,
    writer: &Writer,
    file: &Rc<V::File>,
    (run, places): (&Pages, Places),
    content: impl Fn(u64) -> SectorData,
) -> Result<u64> {
    // No other task writes to this file or cuts it, so a hole, or a place, stays one until its page is dirty.
    let (mut hole, mut count) = (false, run.end - run.start);
    if places == Places::Unknown {
        let (waiting, alike) = file.pages.waiting(run);
        count = alike;
        if !waiting {
            let _extents = volume.lock_map(file, run.start).await;
            let mapped = volume.map(file, run.start, count).await?;
            (hole, count) = (mapped.is_hole(), mapped.blocks());
        }
    }
    // Others may have dirtied pages while this looked for blocks.
    count = count.min(writer.throttle.allowance().max(1));
    if hole {
        let available = volume.available(writer.caller);
        count = volume.env().space.reserve_some(available, count)?;
    }
    let dirtied = file.pages.write_run(run.start..run.start + count, content, hole);
    writer.throttle.note(dirtied);
    Ok(count)
}

/// Makes zeroes of a range within one page, if anything is mapped or waits there. Returns how many pages
/// that made dirty.
pub(crate) async fn zero_in_page<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    offset: u64,
    len: u64,
) -> Result<u64> {
    let at = offset / PAGE;
    // Data on its way to a preallocated block is not known as written yet.
    file.pages.written(at..at + 1).await;
    let waits = file.pages.waiting(&(at..at + 1)).0;
    let nothing = !waits && reads_as_zeroes(volume, file, at).await?;
    invariant!(
        !nothing || !file.pages.waiting(&(at..at + 1)).0,
        "page {at} is not dirty where nothing is to be made zeroes"
    );
    if len == 0 || nothing {
        return Ok(0);
    }
    let old = page(volume, file, at).await?;
    let from = (offset % PAGE) as usize;
    let zeroed = old.overlaid(from..from + len as usize, &SectorData::Tag(Tag::ZERO));
    let content = zeroed.ok_or(FsError::Unsupported("a device that keeps no content"))?;
    volume.rewrite_page(file, at, content).await
}

async fn reads_as_zeroes<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    page: u64,
) -> Result<bool> {
    let _extents = volume.lock_map(file, page).await;
    Ok(volume.map(file, page, 1).await?.reads_as_zeroes())
}

/// Makes zeroes of what the last page will hold after the end `size`, and waits until they are on the device.
pub(crate) async fn zero_tail<V: DataPath>(
    volume: &Rc<V>,
    file: &Rc<V::File>,
    size: u64,
) -> Result<()> {
    let into = size % PAGE;
    if into == 0 {
        return Ok(());
    }
    zero_in_page(volume, file, size, PAGE - into).await?;
    let page = size / PAGE;
    file.pages.written(page..page + 1).await;
    writepages(volume, file, file.pages.pass_over(page..page + 1), 1, false).await?;
    // The flusher may have taken the page first, and not have submitted it yet.
    file.pages.written(page..page + 1).await;
    Ok(())
}
