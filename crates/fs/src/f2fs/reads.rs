//! Reads of files and nodes on their way to a device that moves blocks: it forgets where one lay when no read of it is on
//! its way.

use crate::vfs::InFlight;
use nandscape_rt::Handle;
use std::rc::Rc;

/// Reads on their way, counted only where the device moves blocks.
pub(crate) struct Reads(Option<Rc<InFlight>>);

/// A read that is on its way. Dropped, it has ended, or no caller waits for it any more.
pub(crate) struct Reading {
    reads: Rc<InFlight>,
    id: u64,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.reads.arrive(self.id);
    }
}

impl Reads {
    pub(crate) fn new(rt: &Handle, moves_blocks: bool) -> Self {
        Self(moves_blocks.then(|| Rc::new(InFlight::new(rt, "reads of logs"))))
    }

    /// A read is submitted.
    pub(crate) fn begin(&self) -> Option<Reading> {
        let reads = self.0.as_ref()?;
        Some(Reading { reads: Rc::clone(reads), id: reads.send() })
    }

    /// Waits until all reads that were submitted have ended.
    pub(crate) async fn ended(&self) {
        if let Some(reads) = &self.0 {
            reads.settle().await;
        }
    }
}
