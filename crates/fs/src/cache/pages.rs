//! The pages of one file, in chunks of sixty-four.

use super::chunk::{Chunk, Look, PAGES, first_run, lowest};
use nandscape_block::SectorData;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The pages of one file.
#[derive(Default)]
pub(super) struct Pages {
    chunks: BTreeMap<u64, Box<Chunk>>,
    /// Chunks with dirty pages.
    dirty_chunks: BTreeSet<u64>,
    /// Pages in memory or being read.
    count: u64,
    /// Dirty pages.
    dirty: u64,
}

/// What went when pages were forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Forgotten {
    pub(super) pages: u64,
    pub(super) dirty: u64,
    pub(super) reserved: u64,
}

/// The bits of those pages of a range that are in a chunk.
fn bits_in(chunk: u64, range: &Range<u64>) -> u64 {
    let first = chunk * PAGES;
    let from = range.start.saturating_sub(first).min(PAGES);
    let to = range.end.saturating_sub(first).min(PAGES);
    let below = |bit: u64| 1_u64.checked_shl(bit as u32).map_or(u64::MAX, |bit| bit - 1);
    below(to) & !below(from)
}

/// The chunks that a range touches.
fn chunks_of(range: &Range<u64>) -> Range<u64> {
    range.start / PAGES..range.end.div_ceil(PAGES)
}

impl Pages {
    /// Pages in memory or being read.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Dirty pages.
    pub(super) const fn dirty(&self) -> u64 {
        self.dirty
    }

    /// The chunks of a range that there are, with the bits of its pages in them.
    fn among(&self, range: Range<u64>) -> impl Iterator<Item = (&Chunk, u64)> {
        let chunks = self.chunks.range(chunks_of(&range));
        chunks.map(move |(&index, chunk)| (&**chunk, bits_in(index, &range)))
    }

    /// The first chunk that a range touches, if it is there, and the bits of the range's pages in it.
    fn first_of(&mut self, range: &Range<u64>) -> (Option<&mut Chunk>, u64) {
        let index = range.start / PAGES;
        (self.chunks.get_mut(&index).map(|chunk| &mut **chunk), bits_in(index, range))
    }

    /// Appends to `contents` those of the range from its first page on that are there, and tells how the
    /// page behind them looks.
    pub(super) fn read(&mut self, mut range: Range<u64>, contents: &mut Vec<SectorData>) -> Look {
        while !range.is_empty() {
            let (chunk, bits) = self.first_of(&range);
            let Some(chunk) = chunk else { return Look::Missing };
            let before = contents.len();
            contents.extend_from_slice(chunk.read(bits));
            let there = (contents.len() - before) as u64;
            range.start += there;
            if there < u64::from(bits.count_ones()) {
                return chunk.look((range.start % PAGES) as u32);
            }
        }
        Look::There
    }

    /// The content of a page that is there; it is used now.
    pub(super) fn get(&mut self, page: u64) -> Option<SectorData> {
        let (chunk, bit) = self.first_of(&(page..page + 1));
        chunk?.read(bit).first().cloned()
    }

    /// The first page of the range that is missing. Those before it that are there are used now.
    pub(super) fn missing(&mut self, mut range: Range<u64>) -> Option<u64> {
        while !range.is_empty() {
            let (chunk, bits) = self.first_of(&range);
            let Some(chunk) = chunk else { return Some(range.start) };
            let present = first_run(bits, chunk.present);
            chunk.referenced |= present & chunk.there();
            range.start += u64::from(present.count_ones());
            if present != bits {
                return Some(range.start);
            }
        }
        None
    }

    /// Whether a page has any of the marks that `of` tells of its chunk.
    fn has(&self, page: u64, of: impl Fn(&Chunk) -> u64) -> bool {
        self.among(page..page + 1).any(|(chunk, bit)| of(chunk) & bit != 0)
    }

    pub(super) fn is_dirty(&self, page: u64) -> bool {
        self.has(page, |chunk| chunk.dirty)
    }

    pub(super) fn is_reserved(&self, page: u64) -> bool {
        self.has(page, |chunk| chunk.reserved)
    }

    pub(super) fn is_writing(&self, range: Range<u64>) -> bool {
        self.among(range).any(|(chunk, bits)| chunk.writing & bits != 0)
    }

    /// Whether the first page of a range has any of the marks that `of` tells, and how many from there on
    /// are like it; up to the end of its chunk.
    fn alike(&mut self, range: &Range<u64>, of: impl Fn(&Chunk) -> u64) -> (bool, u64) {
        let (chunk, bits) = self.first_of(range);
        let marked = chunk.map_or(0, |chunk| of(chunk));
        let like = [!marked, marked].map(|like| u64::from(first_run(bits, like).count_ones()));
        (like[1] > 0, like[0].max(like[1]))
    }

    /// Whether the first page of a range is in memory or being read, and how many from there on are like
    /// it.
    pub(super) fn present(&mut self, range: &Range<u64>) -> (bool, u64) {
        self.alike(range, |chunk| chunk.present)
    }

    /// The same of pages that wait for write-back or were promised a block.
    pub(super) fn waiting(&mut self, range: &Range<u64>) -> (bool, u64) {
        self.alike(range, |chunk| chunk.dirty | chunk.reserved)
    }

    /// The chunk of some pages within one, and their bits.
    fn chunk_of(&mut self, run: &Range<u64>) -> (&mut Chunk, u64) {
        let index = run.start / PAGES;
        let chunk = self.chunks.entry(index).or_insert_with(|| Box::new(Chunk::new()));
        let bits = bits_in(index, run);
        self.count += u64::from((bits & !chunk.present).count_ones());
        (chunk, bits)
    }

    /// Puts content in place for pages within a chunk; they are used now. Whether that makes a read superfluous.
    pub(super) fn put(&mut self, run: &Range<u64>, content: impl Fn(u64) -> SectorData) -> bool {
        let first = run.start / PAGES * PAGES;
        let (chunk, bits) = self.chunk_of(run);
        chunk.referenced |= bits;
        chunk.put(bits, |bit| content(first + u64::from(bit)))
    }

    /// Has a read bring pages within a chunk, none of which is in memory.
    pub(super) fn begin_read(&mut self, id: u32, run: &Range<u64>) {
        let (chunk, bits) = self.chunk_of(run);
        chunk.begin_read(id, bits);
    }

    /// What a read brought for a range goes to those pages that still wait for it.
    pub(super) fn end_read(
        &mut self,
        id: u32,
        range: &Range<u64>,
        content: impl Fn(u64) -> SectorData,
    ) {
        for (&index, chunk) in self.chunks.range_mut(chunks_of(range)) {
            let awaited = chunk.awaited(id, bits_in(index, range));
            chunk.put(awaited, |bit| content(index * PAGES + u64::from(bit)));
        }
    }

    /// Forgets the pages of a range that a read is still to bring. Returns how many those were.
    pub(super) fn give_up_read(&mut self, id: u32, range: Range<u64>) -> u64 {
        self.forget_some(range, |chunk, bits| chunk.awaited(id, bits)).pages
    }

    /// Has pages within a chunk that are in memory wait for write-back. Returns how many did not yet.
    pub(super) fn make_dirty(&mut self, run: &Range<u64>, reserved: bool) -> u64 {
        let (Some(chunk), bits) = self.first_of(run) else { return 0 };
        let fresh = bits & chunk.present & !chunk.dirty;
        chunk.dirty |= fresh;
        if reserved {
            chunk.reserved |= bits & chunk.present;
        }
        self.note_dirty(run.start / PAGES, fresh)
    }

    fn note_dirty(&mut self, chunk: u64, fresh: u64) -> u64 {
        if fresh != 0 {
            self.dirty_chunks.insert(chunk);
            self.dirty += u64::from(fresh.count_ones());
        }
        fresh.count_ones().into()
    }

    /// Takes the first run of dirty pages in the range that are not on their way already, at most `max` of
    /// them, and marks them as such: their first page, and their contents.
    pub(super) fn take_run(
        &mut self,
        range: &Range<u64>,
        max: u64,
    ) -> Option<(u64, Vec<SectorData>)> {
        let ready = |chunk: &Chunk| chunk.dirty & !chunk.writing;
        let first = self.dirty_chunks.range(chunks_of(range)).find_map(|&index| {
            let ready = ready(self.chunks.get(&index)?) & bits_in(index, range);
            (ready != 0).then(|| index * PAGES + u64::from(ready.trailing_zeros()))
        })?;
        let mut rest = first..range.end.min(first.saturating_add(max));
        let mut contents = Vec::new();
        while let (Some(chunk), bits) = self.first_of(&rest) {
            let run = first_run(bits, ready(chunk));
            chunk.dirty &= !run;
            chunk.writing |= run;
            contents.extend_from_slice(chunk.contents_of(run));
            if chunk.dirty == 0 {
                self.dirty_chunks.remove(&(rest.start / PAGES));
            }
            rest.start += u64::from(run.count_ones());
            if run != bits || rest.is_empty() {
                break;
            }
        }
        self.dirty -= contents.len() as u64;
        Some((first, contents))
    }

    /// Pages are no longer on their way; if they did not arrive, they are dirty again. Returns how many
    /// became dirty.
    pub(super) fn end_writing(&mut self, range: &Range<u64>, failed: bool) -> u64 {
        let mut again = 0;
        for index in chunks_of(range) {
            let Some(chunk) = self.chunks.get_mut(&index) else { continue };
            let ended = bits_in(index, range) & chunk.writing;
            chunk.writing &= !ended;
            let fresh = if failed { ended & !chunk.dirty } else { 0 };
            chunk.dirty |= fresh;
            again += self.note_dirty(index, fresh);
        }
        again
    }

    /// Takes the marks of pages that were promised a block. Returns how many there were.
    pub(super) fn settle_promises(&mut self, range: Range<u64>) -> u64 {
        let mut settled = 0;
        for (&index, chunk) in self.chunks.range_mut(chunks_of(&range)) {
            let reserved = chunk.reserved & bits_in(index, &range);
            chunk.reserved &= !reserved;
            settled += u64::from(reserved.count_ones());
        }
        settled
    }

    /// Forgets pages, whatever their state, and reads of them.
    pub(super) fn forget(&mut self, range: Range<u64>) -> Forgotten {
        self.forget_some(range, |chunk, bits| chunk.present & bits)
    }

    /// Forgets those pages of a range that `which` tells of each chunk, by the range's bits in it.
    fn forget_some(&mut self, range: Range<u64>, which: impl Fn(&Chunk, u64) -> u64) -> Forgotten {
        let mut gone = Forgotten::default();
        let emptied = self.chunks.extract_if(chunks_of(&range), |&index, chunk| {
            let pages = which(chunk, bits_in(index, &range));
            gone.pages += u64::from(pages.count_ones());
            gone.dirty += u64::from((pages & chunk.dirty).count_ones());
            gone.reserved += u64::from((pages & chunk.reserved).count_ones());
            if pages & chunk.dirty != 0 && chunk.dirty & !pages == 0 {
                self.dirty_chunks.remove(&index);
            }
            let all = chunk.present == pages;
            if !all {
                chunk.forget(pages);
            }
            all
        });
        emptied.for_each(drop);
        self.count -= gone.pages;
        self.dirty -= gone.dirty;
        gone
    }

    /// Second chance for up to `count` pages, from page `hand` on. Returns how many it looked at, how
    /// many went, and where to go on.
    pub(super) fn evict(&mut self, hand: u64, count: u64) -> (u64, u64, u64) {
        let (mut looked, mut gone, mut next) = (0, 0, 0);
        let mut emptied = Vec::new();
        for (&index, chunk) in self.chunks.range_mut(hand / PAGES..) {
            if looked == count {
                break;
            }
            let pages = lowest(chunk.present & bits_in(index, &(hand..u64::MAX)), count - looked);
            looked += u64::from(pages.count_ones());
            next = index * PAGES + u64::from(pages.checked_ilog2().map_or(0, |bit| bit + 1));
            gone += chunk.evict(pages);
            if chunk.present == 0 {
                emptied.push(index);
            }
        }
        for index in emptied {
            self.chunks.remove(&index);
        }
        self.count -= gone;
        (looked, gone, if looked < count { 0 } else { next })
    }
}
