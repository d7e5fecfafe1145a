//! What is remembered of a file's extents, so that its tree need not be read for each block.

use super::leaf::{self, Logical};
use crate::ext4::format::Extent;
use std::cell::Cell;

/// Extents of a file that were found lately, the last one first. A directory's index and the few blocks
/// that it leads to are often in as many extents.
#[derive(Default)]
pub(crate) struct FoundExtents(Cell<[Option<Extent>; 4]>);

impl FoundExtents {
    /// What is known of the blocks from the start of a range on.
    pub(super) fn part(&self, wanted: &Logical) -> Option<Extent> {
        let holds =
            |found: &&Extent| (found.logical.into()..found.logical_end()).contains(&wanted.start);
        self.0.get().iter().flatten().find(holds).and_then(|found| leaf::part(found, wanted))
    }

    pub(super) fn note(&self, found: Extent) {
        let [first, second, third, _] = self.0.get();
        self.0.set([Some(found), first, second, third]);
    }

    /// The tree changes.
    pub(super) fn forget(&self) {
        self.0.set(Default::default());
    }
}
