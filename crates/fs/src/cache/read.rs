//! Reading through the cache: what is missing is read in runs, and sequential readers are read ahead of.

use super::chunk::PageState;
use super::mapping::Mapping;
use super::{bump, drop_by};
use crate::contract::{FsError, Result};
use nandscape_block::{AsyncDevice, Bio, BlockError, Flags, Lba, Payload, Reply, SectorData, Tag};
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

/// What lies under the pages of files, as far as they are read.
pub trait Backing: Clone + 'static {
    /// A file of it.
    type File;

    /// The device under it.
    fn device(&self) -> &AsyncDevice;

    /// Where the file's content from `page` on is, for up to `pages` pages, at least one.
    fn locate(
        &self,
        file: &Rc<Self::File>,
        page: u64,
        pages: u64,
    ) -> impl Future<Output = Result<PageLocation>>;

    /// Submits a read of what was just located.
    fn submit_read(
        &self,
        bio: Bio,
    ) -> impl Future<Output = std::result::Result<Reply, BlockError>> + use<Self> {
        self.device().submit(bio)
    }

    /// Whether the pages of a file are metadata of the volume: reads of them say so, and name no owner.
    fn is_metadata(&self, _file: &Rc<Self::File>) -> bool {
        false
    }
}

/// Where pages are.
#[derive(Clone, PartialEq, Debug)]
pub enum PageLocation {
    /// Nowhere: this many pages read as zeroes.
    Hole(u64),
    /// This many pages lie on the device from there on.
    At(Lba, u64),
    /// One page, whose newest content has not reached its place yet.
    Known(SectorData),
}

/// The content of pages `range`, from memory or from the device. Reads ahead for `thread` if it
/// goes through the file in order.
///
/// Pages are taken as they arrive: in a small cache the first ones can be evicted before the last ones come, and a
/// read that then began again would never end.
///
/// # Errors
/// What the file system or the device says.
pub async fn read_pages<B: Backing>(
    backing: &B,
    mapping: &Mapping<B::File>,
    thread: u16,
    range: Range<u64>,
) -> Result<Vec<SectorData>> {
    read_ahead(backing, mapping, thread, &range);
    let mut data = Vec::with_capacity((range.end - range.start) as usize);
    let mut missed = 0;
    let rest = |data: &Vec<SectorData>| range.start + data.len() as u64..range.end;
    loop {
        match mapping.read(rest(&data), &mut data) {
            PageState::Present => break,
            PageState::InFlight => mapping.0.settled.notified().await,
            PageState::Absent => {
                let missing = rest(&data);
                let take = || _ = mapping.read(rest(&data), &mut data);
                missed += fill(backing, mapping, missing, take).await?;
            }
        }
    }
    mapping.0.core.note_lookups(data.len() as u64, missed);
    Ok(data)
}

fn read_ahead<B: Backing>(
    backing: &B,
    mapping: &Mapping<B::File>,
    thread: u16,
    range: &Range<u64>,
) {
    let core = &mapping.0.core;
    let max = u64::from(core.config.read_ahead_pages);
    if max == 0 {
        return;
    }
    let ahead = mapping.0.streams.borrow_mut().note(thread, range, max);
    let Some(ahead) = ahead.map(|ahead| ahead.start..ahead.end.min(mapping.0.length.get())) else {
        return;
    };
    if ahead.start >= ahead.end {
        return;
    }
    let (backing, mapping) = (backing.clone(), mapping.clone());
    drop(core.handle.clone().spawn("read-ahead", async move {
        let mut page = ahead.start;
        let pages = &mapping.0.pages;
        loop {
            let rest = page..ahead.end.min(mapping.0.length.get()).max(page);
            let Some(missing) = pages.borrow_mut().missing(rest) else { return };
            // An error shows again to the caller that reads the page.
            if fill(&backing, &mapping, missing..ahead.end, || ()).await.is_err() {
                return;
            }
            page = missing + 1;
        }
    }));
}

/// Reads the run of missing pages at the start of `range`, as many as memory has room for; returns how
/// many those were. Calls `arrived` each time that pages have come, in their order.
async fn fill<B: Backing>(
    backing: &B,
    mapping: &Mapping<B::File>,
    range: Range<u64>,
    arrived: impl FnMut(),
) -> Result<u64> {
    let fetch = begin_fetch(backing, mapping, range).await?;
    let missing = fetch.filling.range.end - fetch.filling.range.start;
    fetch.finish(arrived).await?;
    Ok(missing)
}

/// Submits the reads of the run of missing pages at the start of `range`, as many as memory has room for, and of no others.
///
/// # Errors
/// What the file system says of where the pages are.
pub(crate) async fn begin_fetch<'a, B: Backing>(
    backing: &B,
    mapping: &'a Mapping<B::File>,
    range: Range<u64>,
) -> Result<Fetch<'a, B::File, impl Future<Output = std::result::Result<Reply, BlockError>> + use<B>>>
{
    let filling = Filling::begin(mapping, range);
    let mut replies = Vec::new();
    let mut page = filling.range.start;
    while page < filling.range.end {
        let (located, is_metadata) = {
            let file = mapping.file().ok_or(FsError::NoEntry)?;
            let located = backing.locate(&file, page, filling.range.end - page).await?;
            (located, backing.is_metadata(&file))
        };
        let (count, reply) = match located {
            PageLocation::Hole(pages) => (pages, Err(SectorData::Tag(Tag::ZERO))),
            PageLocation::Known(data) => (1, Err(data)),
            PageLocation::At(lba, pages) => {
                let max = backing.device().caps().max_sectors;
                let most = if max == 0 { u64::from(u32::MAX) } else { u64::from(max) };
                let count = pages.min(most).min(filling.range.end - page);
                let mut bio = Bio::read(lba, count as u32);
                match is_metadata {
                    true => bio = bio.with(Flags::META),
                    false => bio.owner = Some(mapping.owner()),
                }
                (count, Ok(backing.submit_read(bio)))
            }
        };
        let count = count.clamp(1, filling.range.end - page);
        replies.push((page..page + count, reply));
        page += count;
    }
    Ok(Fetch { filling, replies })
}

/// Pages whose reads were submitted. Dropped early, those that have not come are missing again.
pub(crate) struct Fetch<'a, F: 'static, R> {
    filling: Filling<'a, F>,
    replies: Vec<(Range<u64>, std::result::Result<R, SectorData>)>,
}

impl<F, R: Future<Output = std::result::Result<Reply, BlockError>>> Fetch<'_, F, R> {
    /// Puts them into memory when they have come, and calls `arrived` each time that some have, in their order.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) async fn finish(self, mut arrived: impl FnMut()) -> Result<()> {
        for (pages, reply) in self.replies {
            match reply {
                Err(data) => self.filling.put(&pages, |_| data.clone()),
                Ok(reply) => {
                    let payload = match reply.await? {
                        Reply::Data(payload) => payload,
                        _ => Payload::None,
                    };
                    let content = |page: u64| payload.sector((page - pages.start) as u32);
                    self.filling.put(&pages, content);
                }
            }
            arrived();
        }
        Ok(())
    }
}

/// Pages that wait for their content. Dropped early, those that did not get any are missing again.
struct Filling<'a, F: 'static> {
    mapping: &'a Mapping<F>,
    id: u32,
    range: Range<u64>,
}

impl<'a, F> Filling<'a, F> {
    fn begin(mapping: &'a Mapping<F>, range: Range<u64>) -> Self {
        let inner = &mapping.0;
        let id = inner.next_fill.get();
        inner.next_fill.set(id.wrapping_add(1).max(1));
        let mut end = range.start;
        while end < range.end {
            let (present, alike) = inner.pages.borrow_mut().present(&(end..range.end));
            if present {
                break;
            }
            let is_first = end == range.start;
            let count = inner.core.make_room(alike, is_first.into());
            if count == 0 {
                break;
            }
            inner.pages.borrow_mut().begin_read(id, &(end..end + count));
            bump(&inner.core.resident, count);
            end += count;
        }
        inner.list();
        Self { mapping, id, range: range.start..end }
    }

    /// Puts content in place, but where a page was forgotten or written meanwhile.
    fn put(&self, pages: &Range<u64>, content: impl Fn(u64) -> SectorData) {
        self.mapping.0.pages.borrow_mut().end_read(self.id, pages, content);
    }
}

impl<F> Drop for Filling<'_, F> {
    fn drop(&mut self) {
        let inner = &self.mapping.0;
        let left = inner.pages.borrow_mut().give_up_read(self.id, self.range.clone());
        drop_by(&inner.core.resident, left);
        inner.settled.notify_waiters();
    }
}
