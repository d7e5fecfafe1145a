//! What the device knows of a zone beside its state and write pointer, and the pages of all zones that are being
//! filled or programmed.
//!
//! Invariants:
//! - The pages of a stream in the buffer follow each other; all before them are programmed. Only the last one may be
//!   partly filled.
//! - A zone's sectors below `admitted` are on media or in these pages.
//! - `used` is the sum of what these pages hold.

use super::config::{OFFSET_BITS, Sizes};
use super::shape::Shape;
use nandscape_block::{Bio, BlockError, Flags, Lba, Op, Payload, SectorData, Token};
use nandscape_media::KEY_EMPTY;
use nandscape_rt::{Nanos, invariant};
use std::collections::{BTreeSet, VecDeque};

/// Number of a page in the buffer.
pub(super) type PageId = u32;
/// A die without a chunk.
pub(super) const NO_CHUNK: u32 = u32::MAX;

/// How far a page is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum PageState {
    /// Takes sectors.
    #[default]
    Filling,
    /// Its program is submitted.
    InFlight,
    /// It is on media.
    Done,
    /// No chunk takes it: its zone is read-only.
    Stuck,
}

/// A page of a zone.
#[derive(Clone, Default, Debug)]
pub(super) struct Page {
    /// A number that no other page had, for what completes after it was released.
    pub(super) stamp: u64,
    pub(super) zone: u32,
    pub(super) stream: u32,
    /// Its number in the stream.
    pub(super) index: u32,
    pub(super) state: PageState,
    /// Sectors of it that the save log holds, and those that it was given.
    pub(super) saved: u32,
    pub(super) saving: u32,
    /// When all of its content is there.
    pub(super) ready: Nanos,
    /// When its unit begins its program.
    pub(super) began: Nanos,
    /// Content of the sectors that are in it.
    pub(super) data: Vec<SectorData>,
    /// Those whose content was lost before it was copied, a bit each.
    pub(super) lost: u64,
    /// It holds copies that firmware made, and nothing of the host.
    pub(super) copies: bool,
}

impl Page {
    /// Sectors in it.
    #[inline]
    pub(super) const fn filled(&self) -> u32 {
        self.data.len() as u32
    }
}

/// The pages in the buffers of all zones.
#[derive(Default, Debug)]
pub(super) struct PagePool {
    pages: Vec<Page>,
    free: Vec<PageId>,
    stamps: u64,
}

impl PagePool {
    /// A page for this place.
    pub(super) fn take(&mut self, zone: u32, stream: u32, index: u32) -> PageId {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.pages.push(Page::default());
                (self.pages.len() - 1) as PageId
            }
        };
        let page = &mut self.pages[id as usize];
        let mut data = std::mem::take(&mut page.data);
        data.clear();
        self.stamps += 1;
        *page = Page { stamp: self.stamps, zone, stream, index, data, ..Page::default() };
        id
    }

    pub(super) fn release(&mut self, id: PageId) {
        let page = &mut self.pages[id as usize];
        invariant!(page.stamp > 0, "a page is released once");
        page.data.clear();
        page.stamp = 0;
        self.free.push(id);
    }

    #[inline]
    pub(super) fn get(&self, id: PageId) -> &Page {
        &self.pages[id as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: PageId) -> &mut Page {
        &mut self.pages[id as usize]
    }

    /// Every page, also those that are not in use: they are empty.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Page> {
        self.pages.iter()
    }

    /// Pages in use.
    pub(super) fn used(&self) -> usize {
        self.pages.len() - self.free.len()
    }

    /// Bytes of RAM.
    pub(super) fn bytes(&self) -> u64 {
        let data = self.pages.iter().map(|page| page.data.capacity() * size_of::<SectorData>());
        (data.sum::<usize>()
            + self.pages.capacity() * size_of::<Page>()
            + self.free.capacity() * size_of::<PageId>()) as u64
    }
}

/// Pages of a stream that are not, or not known to be, on media.
#[derive(Clone, Default, Debug)]
pub(super) struct ZoneStream {
    /// The number of the first of them: all before are on media.
    pub(super) first: u32,
    pub(super) pages: VecDeque<PageId>,
}

/// Whether a finished zone is known as such on media.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Mark {
    /// It is not finished, or full without that.
    #[default]
    None,
    /// Media do not know yet.
    Due,
    /// Programs that say so are in flight.
    Issued,
    /// Media know.
    Durable,
}

/// A zone.
#[derive(Clone, Default, Debug)]
pub(super) struct Zone {
    /// Number of the time between two resets; higher than any before. 0: nothing was written since the last reset.
    pub(super) generation: u32,
    /// What waits for its turn, in order.
    pub(super) queue: VecDeque<Request>,
    /// Sectors that are on media or in the buffer.
    pub(super) admitted: u64,
    /// Sectors in the buffer.
    pub(super) used: u32,
    /// Programs in flight, and chunks that are about to be given up.
    pub(super) in_flight: u32,
    /// Resets that wait or go on: until they are done nothing below the write pointer can be read.
    pub(super) resets: u32,
    /// The save log was given sectors of its first page.
    pub(super) saved_first: bool,
    pub(super) mark: Mark,
    /// Times that it was finished.
    pub(super) finishes: u32,
    /// Media take no more of it.
    pub(super) failed: bool,
    /// Commands in flight of the reset that goes on.
    pub(super) resetting: u32,
}

/// How far a reset is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ResetStage {
    /// Programs of the zone are in flight.
    Waiting,
    /// What makes it durable is: the erase of its first chunk, or a record.
    Committing,
    /// The erases that the record stands for are.
    Clearing,
}

/// A bio on a zone that waits for its turn.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) token: Token,
    pub(super) op: Op,
    /// Where it goes.
    pub(super) at: Lba,
    pub(super) sectors: u32,
    pub(super) flags: Flags,
    pub(super) payload: Payload,
    /// Sectors that are in.
    pub(super) done: u32,
    /// When all that crossed the link has arrived.
    pub(super) arrived: Nanos,
    /// The flush that precedes it.
    pub(super) awaits: Option<u64>,
    pub(super) stage: ResetStage,
    pub(super) since: Nanos,
}

impl Request {
    pub(super) fn new(bio: Bio, at: Lba, token: Token, now: Nanos) -> Self {
        Self {
            token,
            op: bio.op,
            at,
            sectors: bio.sectors,
            flags: bio.flags,
            payload: bio.payload,
            done: 0,
            arrived: now,
            awaits: None,
            stage: ResetStage::Waiting,
            since: now,
        }
    }
}

/// All zones, their streams and their chunks, and what of them is in the buffer.
#[derive(Debug)]
pub(super) struct Zones {
    pub(super) shape: Shape,
    pub(super) pages: PagePool,
    /// Zones with pages in the buffer or a mark that media lack.
    pub(super) dirty: BTreeSet<u32>,
    pub(super) next_generation: u32,
    /// Sectors of the zones that are on media.
    pub(super) in_use: u64,
    pub(super) all: Box<[Zone]>,
    streams: Box<[ZoneStream]>,
    chunks: Box<[u32]>,
    per_zone: (usize, usize),
    /// How long units erased for resets of each zone since that was last asked: a measurement, no table of the device.
    pub(super) erase_ns: Box<[u64]>,
}

impl Zones {
    pub(super) fn new(sizes: &Sizes, shape: Shape) -> Self {
        let zones = sizes.zones as usize;
        let (streams, dies) = (shape.streams as usize, shape.dies as usize);
        Self {
            shape,
            pages: PagePool::default(),
            dirty: BTreeSet::new(),
            next_generation: 1,
            in_use: 0,
            all: vec![Zone::default(); zones].into_boxed_slice(),
            streams: vec![ZoneStream::default(); zones * streams].into_boxed_slice(),
            chunks: vec![NO_CHUNK; zones * dies].into_boxed_slice(),
            per_zone: (streams, dies),
            erase_ns: vec![0; zones].into_boxed_slice(),
        }
    }

    #[inline]
    pub(super) fn get(&self, zone: u32) -> &Zone {
        &self.all[zone as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, zone: u32) -> &mut Zone {
        &mut self.all[zone as usize]
    }

    #[inline]
    pub(super) fn stream(&self, zone: u32, stream: u32) -> &ZoneStream {
        &self.streams[zone as usize * self.per_zone.0 + stream as usize]
    }

    #[inline]
    pub(super) fn stream_mut(&mut self, zone: u32, stream: u32) -> &mut ZoneStream {
        &mut self.streams[zone as usize * self.per_zone.0 + stream as usize]
    }

    /// Gives back the memory of lists of a zone that is written no more, as far as they are empty.
    pub(super) fn release_room(&mut self, zone: u32) {
        let first = zone as usize * self.per_zone.0;
        for stream in &mut self.streams[first..first + self.per_zone.0] {
            stream.pages.shrink_to_fit();
        }
        self.get_mut(zone).queue.shrink_to_fit();
    }

    /// The chunks of a zone, by die.
    #[inline]
    pub(super) fn chunks(&self, zone: u32) -> &[u32] {
        let first = zone as usize * self.per_zone.1;
        &self.chunks[first..first + self.per_zone.1]
    }

    #[inline]
    pub(super) fn chunks_mut(&mut self, zone: u32) -> &mut [u32] {
        let first = zone as usize * self.per_zone.1;
        &mut self.chunks[first..first + self.per_zone.1]
    }

    /// What is written to a zone from now on belongs together.
    pub(super) fn begin_generation(&mut self, zone: u32) {
        invariant!(
            self.all.iter().all(|of| of.generation < self.next_generation),
            "generation: {} is higher than any before",
            self.next_generation
        );
        self.get_mut(zone).generation = self.next_generation;
        self.next_generation += 1;
        for stream in 0..self.shape.streams {
            self.stream_mut(zone, stream).first = 0;
        }
    }

    /// The page that a stream fills, which has this number.
    #[inline]
    pub(super) fn page_for(&mut self, zone: u32, stream: u32, index: u32) -> u32 {
        if let Some(&id) = self.stream(zone, stream).pages.back()
            && self.pages.get(id).state == PageState::Filling
        {
            return id;
        }
        self.new_page(zone, stream, index)
    }

    /// A page at the end of a stream.
    pub(super) fn new_page(&mut self, zone: u32, stream: u32, index: u32) -> u32 {
        let id = self.pages.take(zone, stream, index);
        let last = self.stream(zone, stream).pages.back().map(|&last| self.pages.get(last));
        let is_done = |last: &Page| {
            let whole = self.shape.page_sectors(stream, last.index);
            last.state != PageState::Filling || last.filled() == whole
        };
        invariant!(
            last.is_none_or(|last| last.index + 1 == index && is_done(last)),
            "pages of a stream follow each other, and only the last is partly filled"
        );
        let entry = self.stream_mut(zone, stream);
        if entry.pages.is_empty() {
            entry.first = index;
        }
        entry.pages.push_back(id);
        id
    }

    /// Sequence of a page's first sector: the generation, and its number in the stream.
    #[inline]
    pub(super) fn seq(&self, zone: u32, page: u32) -> u64 {
        u64::from(self.get(zone).generation) << OFFSET_BITS | u64::from(page * self.shape.page)
    }

    /// The parallel unit on which a page lies.
    #[inline]
    pub(super) fn unit_of_page(&self, id: PageId) -> u32 {
        let page = self.pages.get(id);
        let (die, _) = self.shape.die_of(page.stream, page.index);
        self.shape.unit(page.zone, die)
    }

    /// Takes a zone from the dirty ones, if media have all of it.
    #[inline]
    pub(super) fn clean(&mut self, zone: u32) {
        let streams = 0..self.shape.streams;
        if streams.into_iter().any(|s| !self.stream(zone, s).pages.is_empty()) {
            return;
        }
        let capacity = self.shape.capacity;
        let entry = self.get_mut(zone);
        if entry.mark == Mark::Issued {
            entry.mark = Mark::Durable;
        }
        let is_full = entry.admitted == capacity || entry.mark == Mark::Durable;
        if entry.mark != Mark::Due {
            self.dirty.remove(&zone);
        }
        if is_full {
            self.release_room(zone);
        }
    }

    /// Everything of a zone from this sector on reads as zeroes.
    #[inline]
    pub(super) fn readable(&self, zone: u32) -> u64 {
        let zone = self.get(zone);
        if zone.resets > 0 { 0 } else { zone.admitted }
    }

    /// Whether the last page of a stream in the buffer takes sectors.
    #[inline]
    pub(super) fn is_filling(&self, zone: u32, stream: u32) -> bool {
        let last = self.stream(zone, stream).pages.back();
        last.is_some_and(|&id| self.pages.get(id).state == PageState::Filling)
    }

    /// Keys of the sectors that a page holds.
    pub(super) fn page_keys(&self, id: PageId) -> Vec<u32> {
        let page = self.pages.get(id);
        let first = page.index * self.shape.page;
        let key = |sector: u32| match sector < page.filled() {
            true => {
                let offset = self.shape.offset(page.stream, first + sector);
                self.shape.start_of(page.zone).plus(offset).0 as u32
            }
            false => KEY_EMPTY,
        };
        (0..self.shape.page).map(key).collect()
    }

    /// Bytes of RAM: of the tables, and of what waits.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let tables = self.all.len() * size_of::<Zone>()
            + self.streams.len() * size_of::<ZoneStream>()
            + self.chunks.len() * size_of::<u32>();
        let queues = self.all.iter().map(|zone| zone.queue.capacity() * size_of::<Request>());
        let pages = self.streams.iter().map(|s| s.pages.capacity() * size_of::<PageId>());
        (tables as u64, (queues.sum::<usize>() + pages.sum::<usize>()) as u64)
    }
}

/// A zone that media took no more of.
pub(super) const fn read_only(zone: u32) -> BlockError {
    BlockError::Zone { zone, status: nandscape_block::zone::ZoneStatus::ReadOnly }
}
