//! Sixty-four pages of a file that follow each other: their contents, and their states as bits.
//!
//! Only pages that are there have a place for their content: files that are written at random have chunks with few.

use nandscape_block::bits::set_bits;
use nandscape_block::{SectorBytes, SectorData};
use nandscape_rt::invariant;
use std::sync::Arc;

/// Pages of a chunk: as many as a word has bits.
pub(super) const PAGES: u64 = u64::BITS as u64;

/// The pages `64 n` to `64 n + 63`, each by its bit. Invariants: a page that is dirty, being written,
/// reserved or referenced is in memory; one that is being read has no content, and belongs to the one
/// read that is to bring it.
#[derive(Default)]
pub(super) struct Chunk {
    /// Of the pages that are there, in their order.
    contents: Vec<SectorData>,
    /// In memory, or being read.
    pub(super) present: u64,
    /// Being read.
    reading: u64,
    /// The reads, by number, with the pages that they are to bring.
    reads: Vec<(u32, u64)>,
    /// The device does not have this content, and no write of it is under way.
    pub(super) dirty: u64,
    /// A write of it, or of what it held before, is under way.
    pub(super) writing: u64,
    /// A block is reserved for it.
    pub(super) reserved: u64,
    /// Used since eviction last came by.
    pub(super) referenced: u64,
}

/// What is known of a page without waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PageState {
    Present,
    InFlight,
    Absent,
}

impl Chunk {
    /// Bytes of memory that the chunk takes, with contents that are bytes, even where they are shared.
    pub(super) fn memory_bytes(&self) -> usize {
        let is_bytes = |content: &&SectorData| matches!(content, SectorData::Bytes(_));
        let bytes = self.contents.iter().filter(is_bytes).count() * size_of::<SectorBytes>();
        size_of::<Self>() + self.contents.capacity() * size_of::<SectorData>() + bytes
    }

    /// Pages with content.
    pub(super) const fn there(&self) -> u64 {
        self.present & !self.reading
    }

    pub(super) const fn look(&self, bit: u32) -> PageState {
        match (self.there() >> bit & 1, self.reading >> bit & 1) {
            (1, _) => PageState::Present,
            (_, 1) => PageState::InFlight,
            _ => PageState::Absent,
        }
    }

    /// The contents of those pages of a run from its first page on that are there; they are used now.
    pub(super) fn read(&mut self, pages: u64) -> &[SectorData] {
        let run = first_run(pages, self.there());
        self.referenced |= run;
        self.contents_of(run)
    }

    /// The bytes of a page that is there, which it holds as such from now on; it is used now. `None` if its content is
    /// not kept.
    pub(super) fn bytes(&mut self, page: u64) -> Option<&mut Arc<SectorBytes>> {
        if page & self.there() == 0 {
            return None;
        }
        let place = self.place_of(page);
        let content = self.contents.get_mut(place)?;
        self.referenced |= page;
        if !matches!(content, SectorData::Bytes(_)) {
            *content = SectorData::Bytes(Arc::from(content.expand()?));
        }
        if let SectorData::Bytes(bytes) = content { Some(bytes) } else { None }
    }

    /// The place of the content of the first of some pages: how many that are there come before it.
    const fn place_of(&self, pages: u64) -> usize {
        let first = pages & pages.wrapping_neg();
        (self.there() & first.wrapping_sub(1)).count_ones() as usize
    }

    /// The contents of a run of pages that are there.
    pub(super) fn contents_of(&self, run: u64) -> &[SectorData] {
        let first = self.place_of(run);
        self.contents.get(first..first + run.count_ones() as usize).unwrap_or_default()
    }

    /// Puts content in place. Whether that makes a read superfluous.
    pub(super) fn put(&mut self, pages: u64, content: impl Fn(u64) -> SectorData) -> bool {
        let mut superfluous = false;
        let mut left = pages;
        while left != 0 {
            let there = self.there();
            // Pages of one run that are all there, or all not: their contents follow each other.
            let known = first_run(left, there);
            let run = if known != 0 { known } else { first_run(left, !there) };
            let place = self.place_of(run);
            let contents = set_bits(run).map(|bit| content(bit as u64));
            if known != 0 {
                let known = self.contents.iter_mut().skip(place);
                known.zip(contents).for_each(|(known, content)| *known = content);
            } else if place == self.contents.len() {
                self.contents.extend(contents);
            } else {
                self.contents.splice(place..place, contents);
            }
            self.present |= run;
            superfluous |= self.end_reads(run);
            left &= !run;
        }
        self.check();
        superfluous
    }

    /// Looks at the invariants.
    fn check(&self) {
        let marked = self.dirty | self.writing | self.reserved | self.referenced | self.reading;
        invariant!(marked & !self.present == 0, "a page that has a mark is in memory");
        invariant!((self.dirty | self.writing) & self.reading == 0, "a page that is read is clean");
        invariant!(
            self.contents.len() == self.there().count_ones() as usize,
            "a page has content if no read is to bring it"
        );
    }

    /// Has a read bring pages that are not in memory.
    pub(super) fn begin_read(&mut self, id: u32, pages: u64) {
        invariant!(self.present & pages == 0, "one read is to bring a page");
        self.present |= pages;
        self.reading |= pages;
        self.referenced |= pages;
        self.reads.push((id, pages));
    }

    /// Those of the pages that a read is still to bring.
    pub(super) fn awaited(&self, id: u32, pages: u64) -> u64 {
        let of_read = self.reads.iter().filter(|read| read.0 == id);
        of_read.fold(0, |awaited, read| awaited | read.1) & pages
    }

    /// No read is to bring these pages any more. Whether one was.
    fn end_reads(&mut self, pages: u64) -> bool {
        let superfluous = self.reading & pages != 0;
        if superfluous {
            self.reading &= !pages;
            self.reads.iter_mut().for_each(|read| read.1 &= !pages);
            self.reads.retain(|read| read.1 != 0);
        }
        superfluous
    }

    /// Forgets pages, and reads of them.
    pub(super) fn forget(&mut self, pages: u64) {
        let there = self.there();
        if there & !pages == 0 {
            self.contents = Vec::new();
        } else if there & pages != 0 {
            let mut bits = set_bits(there);
            self.contents.retain(|_| bits.next().is_some_and(|bit| pages >> bit & 1 == 0));
            self.contents.shrink_to(2 * self.contents.len());
        }
        self.end_reads(pages);
        let kept = !pages;
        self.present &= kept;
        self.dirty &= kept;
        self.writing &= kept;
        self.reserved &= kept;
        self.referenced &= kept;
        self.check();
    }

    /// Second chance for pages: those that were used lose their mark, and unused clean ones go. Returns
    /// how many went.
    pub(super) fn evict(&mut self, pages: u64) -> u64 {
        let unused = pages & self.there() & !self.referenced;
        self.referenced &= !pages;
        let gone = unused & !self.dirty & !self.writing & !self.reserved;
        invariant!(
            gone & (self.dirty | self.writing | self.reserved | self.reading) == 0,
            "a page that is evicted is clean, and no write of it is under way"
        );
        self.forget(gone);
        gone.count_ones().into()
    }
}

/// The bits from the lowest of `pages` on that are set without a gap, as far as they are in both.
pub(super) const fn first_run(pages: u64, among: u64) -> u64 {
    let first = pages & pages.wrapping_neg();
    let both = pages & among;
    // Adding the lowest bit carries through the run behind it, and no further.
    if both & first == 0 { 0 } else { both & !both.wrapping_add(first) }
}

/// The lowest `count` bits that are set.
pub(super) fn lowest(set: u64, count: u64) -> u64 {
    let beyond = set_bits(set).nth(count as usize);
    beyond.map_or(set, |bit| set & ((1 << bit) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Runs and lowest bits are those that counting bit by bit finds.
        #[test]
        fn words_are_walked(pages in any::<u64>(), among in any::<u64>(), count in 0..70_u64) {
            let first = pages.trailing_zeros();
            let run = (first..64).take_while(|bit| pages & among & 1 << bit != 0);
            prop_assert_eq!(first_run(pages, among), run.fold(0, |run, bit| run | 1 << bit));
            prop_assert_eq!(first_run(pages, u64::MAX) & !pages, 0);
            let low = set_bits(pages).take(count as usize).fold(0, |low, bit| low | 1 << bit);
            prop_assert_eq!(lowest(pages, count), low);
            prop_assert_eq!(set_bits(pages).fold(0, |set, bit| set | 1 << bit), pages);
        }
    }
}
