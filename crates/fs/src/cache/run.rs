//! A run of pages on its way to the device.

use super::mapping::{Inner, Mapping};
use super::{bump, drop_by};
use crate::contract::FsError;
use nandscape_block::SectorData;
use std::ops::Range;
use std::rc::Rc;

/// Contiguous pages of a file that are being written: a copy of their content, taken when the
/// write began. Dropped without [`WriteRun::finish`], the pages are dirty again.
pub struct WriteRun<F: 'static> {
    inner: Rc<Inner<F>>,
    first: u64,
    data: Vec<SectorData>,
    finished: bool,
}

impl<F> Mapping<F> {
    /// Takes the first run of dirty pages in the range that are not on their way already, at most
    /// `max` of them.
    #[must_use]
    pub fn take_run(&self, range: Range<u64>, max: u64) -> Option<WriteRun<F>> {
        let mut pages = self.0.pages.borrow_mut();
        let (first, data) = pages.take_run(&range, max)?;
        let clean = pages.dirty() == 0;
        drop(pages);
        let count = data.len() as u64;
        drop_by(&self.0.core.dirty, count);
        bump(&self.0.core.in_flight, count);
        bump(&self.0.writing, count);
        if clean {
            self.requeue();
        }
        Some(WriteRun { inner: Rc::clone(&self.0), first, data, finished: false })
    }
}

/// A pass over the dirty pages of a file, in the order of their offsets: what one call of write-back takes.
/// It looks at each offset once, so it ends although writers go on. After `write_cache_pages` in
/// `mm/page-writeback.c` (`ext4_writepages` does the same).
pub struct WritebackPass<F: 'static> {
    pages: Mapping<F>,
    /// What is left of the pass, and what follows after that.
    rest: Range<u64>,
    wrapped: Range<u64>,
    /// Whether the next cyclic pass begins where this one ends.
    moves_index: bool,
}

impl<F> Mapping<F> {
    /// A pass over a range (`WB_SYNC_ALL`). If that is the whole file, the next cyclic pass begins after the last
    /// page that it takes.
    #[must_use]
    pub fn pass_over(&self, range: Range<u64>) -> WritebackPass<F> {
        let moves_index = range == (0..u64::MAX);
        WritebackPass { pages: self.clone(), rest: range, wrapped: 0..0, moves_index }
    }

    /// A pass over the whole file that begins where the last one ended, and continues at the start of the file
    /// (`range_cyclic`, `mapping->writeback_index`): offsets that are written again and again do not keep others
    /// from being written.
    #[must_use]
    pub fn cyclic_pass(&self) -> WritebackPass<F> {
        let index = self.0.writeback_index.get();
        let (rest, wrapped) = (index..u64::MAX, 0..index);
        WritebackPass { pages: self.clone(), rest, wrapped, moves_index: true }
    }
}

impl<F> WritebackPass<F> {
    /// Takes the next run of dirty pages that are not on their way already, at most `max` of them.
    #[must_use]
    pub fn take_run(&mut self, max: u64) -> Option<WriteRun<F>> {
        let mut run = self.pages.take_run(self.rest.clone(), max);
        if run.is_none() {
            self.rest = std::mem::take(&mut self.wrapped);
            run = self.pages.take_run(self.rest.clone(), max);
        }
        let run = run?;
        self.rest.start = run.end();
        if self.moves_index {
            self.pages.0.writeback_index.set(run.end());
        }
        Some(run)
    }
}

impl<F> WriteRun<F> {
    /// The first page.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The page behind the last.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first + self.data.len() as u64
    }

    /// The content, page by page.
    #[must_use]
    pub fn data(&self) -> &[SectorData] {
        &self.data
    }

    /// Notes that these pages have blocks now; returns for how many of them one was reserved.
    pub fn convert_reservations(&self, range: Range<u64>) -> u64 {
        self.inner.pages.borrow_mut().convert_reservations(range)
    }

    /// The device has the pages, or has refused them: their content is then lost, and the error
    /// comes out of the next sync of the file.
    pub fn finish(mut self, error: Option<FsError>) {
        if let Some(error) = error {
            self.inner.error.borrow_mut().get_or_insert(error);
        }
        self.end_writing(false);
    }

    fn end_writing(&mut self, failed: bool) {
        self.finished = true;
        let Inner { core, pages, .. } = &*self.inner;
        let run = self.first..self.end();
        let count = run.end - run.start;
        bump(&core.dirty, pages.borrow_mut().end_writing(&run, failed));
        drop_by(&core.in_flight, count);
        drop_by(&self.inner.writing, count);
        bump(&core.cleaned, count);
        if failed {
            Mapping(Rc::clone(&self.inner)).requeue();
        }
        self.inner.settled.notify_waiters();
        core.note_progress();
    }
}

impl<F> Drop for WriteRun<F> {
    fn drop(&mut self) {
        if !self.finished {
            self.end_writing(true);
        }
    }
}
