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
