//! What is remembered of a file's extents, so that its tree need not be read for each block.

use super::format::Extent;
use std::cell::Cell;

/// Extents of a file that were found lately, the last one first. A directory's index and the few blocks
/// that it leads to are often in as many extents.
#[derive(Default)]
pub(crate) struct FoundExtents(Cell<[Option<Extent>; 4]>);

impl FoundExtents {
    /// The extent that maps block `logical` of the file, if it is known.
    pub(crate) fn around(&self, logical: u64) -> Option<Extent> {
        let holds =
            |found: &&Extent| (found.logical.into()..found.logical_end()).contains(&logical);
        self.0.get().iter().flatten().find(holds).copied()
    }

    pub(crate) fn note(&self, found: Extent) {
        let [first, second, third, _] = self.0.get();
        self.0.set([Some(found), first, second, third]);
    }

    /// The tree changes.
    pub(crate) fn forget(&self) {
        self.0.set(Default::default());
    }
}
