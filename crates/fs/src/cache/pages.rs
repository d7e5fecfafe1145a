//! The pages of one file, in chunks of sixty-four.
//!
//! Invariants: two writes of a page are never under way together; a read brings no page that has content; a page whose
//! write was given up is dirty; the counts are those of the chunks' marks.

use super::chunk::{Chunk, PAGES, PageState, first_run, lowest};
use nandscape_block::bits::bits_of;
use nandscape_block::{SectorBytes, SectorData};
use nandscape_rt::invariant;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The pages of one file.
#[derive(Default)]
pub(super) struct Pages {
    chunks: BTreeMap<u64, Box<Chunk>>,
    /// Chunks with dirty pages.
    dirty_chunks: BTreeSet<u64>,
    /// Chunks with pages on their way to the device, and perhaps others.
    writing_chunks: BTreeSet<u64>,
    /// Pages in memory or being read.
    count: u64,
    /// Dirty pages.
    dirty: u64,
    /// Pages that were promised a block.
    reserved: u64,
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
    let within = |page: u64| page.saturating_sub(chunk * PAGES).min(PAGES) as usize;
    bits_of(&(within(range.start)..within(range.end)))
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

    /// Bytes of memory that they take.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.chunks.values().map(|chunk| chunk.memory_bytes() as u64).sum()
    }

    /// Dirty pages.
    pub(super) const fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Pages that were promised a block.
    pub(super) const fn reserved(&self) -> u64 {
        self.reserved
    }

    /// The first chunk that a range touches, if it is there, and the bits of the range's pages in it.
    fn first_of(&mut self, range: &Range<u64>) -> (Option<&mut Chunk>, u64) {
        let index = range.start / PAGES;
        (self.chunks.get_mut(&index).map(|chunk| &mut **chunk), bits_in(index, range))
    }

    /// Appends to `contents` those of the range from its first page on that are there, and tells how the
    /// page behind them looks.
    pub(super) fn read(
        &mut self,
        mut range: Range<u64>,
        contents: &mut Vec<SectorData>,
    ) -> PageState {
        while !range.is_empty() {
            let (chunk, bits) = self.first_of(&range);
            let Some(chunk) = chunk else { return PageState::Absent };
            let before = contents.len();
            contents.extend_from_slice(chunk.read(bits));
            let there = (contents.len() - before) as u64;
            range.start += there;
            if there < u64::from(bits.count_ones()) {
                return chunk.look((range.start % PAGES) as u32);
            }
        }
        PageState::Present
    }

    /// The content of a page that is there; it is used now.
    pub(super) fn get(&mut self, page: u64) -> Option<SectorData> {
        let (chunk, bit) = self.first_of(&(page..page + 1));
        chunk?.read(bit).first().cloned()
    }

    /// The bytes of a page that is there, to be looked at or changed; it is used now.
    pub(super) fn bytes(&mut self, page: u64) -> Option<&mut Arc<SectorBytes>> {
        let (chunk, bit) = self.first_of(&(page..page + 1));
        chunk?.bytes(bit)
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

    pub(super) fn is_writing(&self, range: Range<u64>) -> bool {
        self.writing_chunks.range(chunks_of(&range)).any(|&index| {
            let writing = self.chunks.get(&index).map_or(0, |chunk| chunk.writing);
            writing & bits_in(index, &range) != 0
        })
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
        let chunk = self.chunks.entry(index).or_default();
        let bits = bits_in(index, run);
        self.count += u64::from((bits & !chunk.present).count_ones());
        (chunk, bits)
    }

    /// Puts content in place for pages within a chunk; they are used now. Whether that makes a read
    /// superfluous.
    pub(super) fn put(&mut self, run: &Range<u64>, content: impl Fn(u64) -> SectorData) -> bool {
        let first = run.start / PAGES * PAGES;
        let (chunk, bits) = self.chunk_of(run);
        chunk.referenced |= bits;
        chunk.put(bits, |bit| content(first + bit))
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
            invariant!(awaited & chunk.there() == 0, "a read brings no page that has content");
            chunk.put(awaited, |bit| content(index * PAGES + bit));
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
        let promised = if reserved { bits & chunk.present & !chunk.reserved } else { 0 };
        chunk.reserved |= promised;
        self.reserved += u64::from(promised.count_ones());
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
            invariant!(
                run & chunk.writing == 0,
                "two writes of a page are never under way together, from page {first} on"
            );
            chunk.dirty &= !run;
            let begins = run != 0 && chunk.writing == 0;
            chunk.writing |= run;
            contents.extend_from_slice(chunk.contents_of(run));
            let clean = chunk.dirty == 0;
            if clean {
                self.dirty_chunks.remove(&(rest.start / PAGES));
            }
            if begins {
                self.writing_chunks.insert(rest.start / PAGES);
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
            let Some(chunk) = self.chunks.get_mut(&index) else {
                self.writing_chunks.remove(&index);
                continue;
            };
            let ended = bits_in(index, range) & chunk.writing;
            chunk.writing &= !ended;
            if chunk.writing == 0 {
                self.writing_chunks.remove(&index);
            }
            let fresh = if failed { ended & !chunk.dirty } else { 0 };
            chunk.dirty |= fresh;
            invariant!(!failed || ended & !chunk.dirty == 0, "a page that did not arrive is dirty");
            again += self.note_dirty(index, fresh);
        }
        again
    }

    /// Takes the marks of pages that were promised a block. Returns how many there were.
    pub(super) fn convert_reservations(&mut self, range: Range<u64>) -> u64 {
        let mut settled = 0;
        for (&index, chunk) in self.chunks.range_mut(chunks_of(&range)) {
            let reserved = chunk.reserved & bits_in(index, &range);
            chunk.reserved &= !reserved;
            settled += u64::from(reserved.count_ones());
        }
        self.reserved -= settled;
        settled
    }

    /// Forgets pages, whatever their state, and reads of them.
    pub(super) fn forget(&mut self, range: Range<u64>) -> Forgotten {
        self.forget_some(range, |chunk, bits| chunk.present & bits)
    }

    /// Forgets clean pages, and reads of them. Returns how many.
    pub(super) fn forget_clean(&mut self, range: Range<u64>) -> u64 {
        let clean = |chunk: &Chunk| chunk.present & !(chunk.dirty | chunk.writing | chunk.reserved);
        self.forget_some(range, |chunk, bits| clean(chunk) & bits).pages
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
        invariant!(
            gone.pages <= self.count && gone.dirty <= self.dirty && gone.reserved <= self.reserved,
            "what is forgotten was counted: {gone:?}"
        );
        self.count -= gone.pages;
        self.dirty -= gone.dirty;
        self.reserved -= gone.reserved;
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

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_block::Tag;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// One page, as a file has it that keeps each by itself.
    #[derive(Clone, PartialEq, Debug)]
    struct Page {
        /// None while a read is to bring it.
        content: Option<u64>,
        read: u32,
        dirty: bool,
        writing: bool,
        reserved: bool,
        referenced: bool,
    }

    impl Page {
        const fn new(content: Option<u64>, read: u32) -> Self {
            Self { content, read, dirty: false, writing: false, reserved: false, referenced: true }
        }
    }

    /// The pages in chunks, beside pages by themselves.
    #[derive(Default)]
    struct Both {
        pages: Pages,
        model: BTreeMap<u64, Page>,
        hand: u64,
        /// Runs under way.
        runs: Vec<Range<u64>>,
    }

    fn tag(page: u64, salt: u64) -> SectorData {
        SectorData::Tag(Tag::new(1 + page * 1_000 + salt))
    }

    /// The parts of a range that lie in one chunk and are all in memory, or all not.
    fn parts(
        pages: &mut Pages,
        range: Range<u64>,
        mut visit: impl FnMut(&mut Pages, Range<u64>, bool),
    ) {
        let mut at = range.start;
        while at < range.end {
            let (present, alike) = pages.present(&(at..range.end));
            visit(pages, at..at + alike, present);
            at += alike;
        }
    }

    impl Both {
        fn write(&mut self, range: Range<u64>, salt: u64, reserved: bool) {
            parts(&mut self.pages, range.clone(), |pages, part, _| {
                pages.put(&part, |page| tag(page, salt));
                pages.make_dirty(&part, reserved);
            });
            for page in range {
                let old = self.model.remove(&page);
                let mut new = old.unwrap_or_else(|| Page::new(None, 0));
                (new.content, new.read, new.dirty, new.referenced) = (Some(salt), 0, true, true);
                new.reserved |= reserved;
                self.model.insert(page, new);
            }
        }

        fn begin_read(&mut self, range: Range<u64>, id: u32) {
            parts(&mut self.pages, range.clone(), |pages, part, present| {
                if !present {
                    pages.begin_read(id, &part);
                }
            });
            for page in range {
                self.model.entry(page).or_insert_with(|| Page::new(None, id));
            }
        }

        fn end_read(&mut self, range: Range<u64>, id: u32, salt: u64) {
            self.pages.end_read(id, &range, |page| tag(page, salt));
            for (_, page) in self.model.range_mut(range).filter(|(_, page)| page.read == id) {
                (page.content, page.read) = (Some(salt), 0);
            }
        }

        fn give_up_read(&mut self, range: Range<u64>, id: u32) {
            let left = self.pages.give_up_read(id, range.clone());
            let gone = self.model.extract_if(range, |_, page| page.read == id).count();
            assert_eq!(left, gone as u64);
        }

        fn take_run(&mut self, range: Range<u64>, max: u64) {
            let ready = |page: &Page| page.dirty && !page.writing;
            let first = self.model.range(range.clone()).find(|(_, page)| ready(page));
            let expected = first.map(|(&first, _)| {
                let end = range.end.min(first + max);
                let run = first
                    ..(first..end)
                        .find(|page| !self.model.get(page).is_some_and(ready))
                        .unwrap_or(end);
                let contents = run.clone().map(|at| tag(at, self.model[&at].content.unwrap()));
                (first, contents.collect::<Vec<_>>())
            });
            assert_eq!(self.pages.take_run(&range, max), expected);
            let Some((first, contents)) = expected else { return };
            let run = first..first + contents.len() as u64;
            for (_, page) in self.model.range_mut(run.clone()) {
                (page.dirty, page.writing) = (false, true);
            }
            self.runs.push(run);
        }

        fn end_writing(&mut self, failed: bool) {
            let Some(run) = self.runs.pop() else { return };
            let before = self.pages.dirty();
            let again = self.pages.end_writing(&run, failed);
            assert_eq!(self.pages.dirty(), before + again);
            for (_, page) in self.model.range_mut(run) {
                page.dirty |= failed && page.writing;
                page.writing = false;
            }
        }

        /// Of pages that are not on their way.
        fn forget(&mut self, range: Range<u64>) {
            if self.pages.is_writing(range.clone()) {
                return;
            }
            let gone: Vec<Page> =
                self.model.extract_if(range.clone(), |_, _| true).map(|(_, page)| page).collect();
            let count = |of: fn(&Page) -> bool| gone.iter().filter(|page| of(page)).count() as u64;
            let (dirty, reserved) = (count(|page| page.dirty), count(|page| page.reserved));
            let expected = Forgotten { pages: gone.len() as u64, dirty, reserved };
            assert_eq!(self.pages.forget(range), expected);
        }

        fn forget_clean(&mut self, range: Range<u64>) {
            let clean = |page: &Page| !(page.dirty || page.writing || page.reserved);
            let gone = self.model.extract_if(range.clone(), |_, page| clean(page)).count();
            assert_eq!(self.pages.forget_clean(range), gone as u64);
        }

        fn evict(&mut self, count: u64) {
            let (mut looked, mut gone, mut next) = (0, Vec::new(), 0);
            for (&at, page) in self.model.range_mut(self.hand..).take(count as usize) {
                (looked, next) = (looked + 1, at + 1);
                let used = std::mem::take(&mut page.referenced);
                if !used && page.read == 0 && !(page.dirty || page.writing || page.reserved) {
                    gone.push(at);
                }
            }
            self.model.retain(|at, _| !gone.contains(at));
            let next = if looked < count { 0 } else { next };
            assert_eq!(self.pages.evict(self.hand, count), (looked, gone.len() as u64, next));
            self.hand = next;
        }

        fn settle(&mut self, range: Range<u64>) {
            let held = self.model.range_mut(range.clone());
            let held =
                held.filter_map(|(_, page)| std::mem::take(&mut page.reserved).then_some(()));
            assert_eq!(held.count() as u64, self.pages.convert_reservations(range));
        }

        /// Looks at everything, which leaves no mark on the model that it does not on the pages.
        fn compare(&mut self, range: Range<u64>) {
            assert_eq!(self.pages.count(), self.model.len() as u64);
            let dirty = self.model.values().filter(|page| page.dirty).count();
            assert_eq!(self.pages.dirty(), dirty as u64);
            let reserved = self.model.values().filter(|page| page.reserved).count();
            assert_eq!(self.pages.reserved(), reserved as u64);
            for at in range.clone() {
                let page = self.model.get(&at);
                let is = |of: fn(&Page) -> bool| page.is_some_and(of);
                let mut has = |of: fn(&Chunk) -> u64| self.pages.alike(&(at..at + 1), of).0;
                assert_eq!(has(|chunk| chunk.dirty), is(|page| page.dirty));
                assert_eq!(has(|chunk| chunk.reserved), is(|page| page.reserved));
                assert_eq!(self.pages.is_writing(at..at + 1), is(|page| page.writing));
                let waits = self.pages.waiting(&(at..range.end)).0;
                assert_eq!(waits, is(|page| page.dirty || page.reserved));
            }
            let mut contents = Vec::new();
            let look = self.pages.read(range.clone(), &mut contents);
            let there = |at: &u64| self.model.get(at).is_some_and(|page| page.read == 0);
            let run: Vec<u64> = range.clone().take_while(there).collect();
            let expected: Vec<_> =
                run.iter().map(|at| tag(*at, self.model[at].content.unwrap())).collect();
            assert_eq!(contents, expected);
            let behind = range.start + run.len() as u64;
            let expected = match self.model.get(&behind).filter(|_| behind < range.end) {
                _ if behind == range.end => PageState::Present,
                Some(_) => PageState::InFlight,
                None => PageState::Absent,
            };
            assert_eq!(look, expected);
            let missing = range.clone().find(|at| !self.model.contains_key(at));
            assert_eq!(self.pages.missing(range.clone()), missing);
            let used = range.start..missing.unwrap_or(range.end);
            for (_, page) in self.model.range_mut(used).filter(|(_, page)| page.read == 0) {
                page.referenced = true;
            }
        }
    }

    proptest! {
        /// Pages in chunks are what pages by themselves would be.
        #[test]
        fn chunks_are_pages(steps in vec((0..10_u8, 0..200_u64, 1..150_u64, any::<bool>()), 1..80)) {
            let mut both = Both::default();
            for (salt, (step, first, len, flag)) in (0..).zip(steps) {
                let (range, id) = (first..first + len, salt as u32 + 1);
                match step {
                    0 | 1 => both.write(range.clone(), salt, flag),
                    2 => {
                        both.begin_read(range.clone(), id);
                        let half = first..first + len / 2;
                        both.end_read(if flag { range.clone() } else { half }, id, salt);
                    }
                    3 => {
                        both.begin_read(range.clone(), id);
                        both.write(first..first + len / 3, salt, false);
                        both.give_up_read(range.clone(), id);
                    }
                    4 => both.take_run(range.clone(), if flag { 1_000 } else { len / 2 + 1 }),
                    5 => both.end_writing(flag),
                    6 => both.forget(range.clone()),
                    7 => both.evict(len / 2 + 1),
                    8 => both.forget_clean(range.clone()),
                    _ => both.settle(range.clone()),
                }
                both.compare(range);
            }
        }
    }
}
