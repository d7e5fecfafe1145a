//! How much of the main area is in use, and how much of that is valid, for the write amplification that theory expects:
//! blocks written to segments that are not free, prefree ones included, data and nodes apart.

use super::{SegmentType, Segments};
use nandscape_rt::invariant;

/// Blocks of one class, data or nodes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Blocks {
    /// Written to segments that are not free.
    pub(crate) in_use: u64,
    /// Valid among them.
    pub(crate) valid: u64,
}

/// Blocks of segments that are not free and valid blocks in them: of data, of nodes.
#[derive(Clone, Copy, Default)]
pub(super) struct Use {
    blocks: [u64; 2],
    valid: [u64; 2],
}

impl Use {
    /// A segment of so many blocks is taken into use for a log.
    pub(super) const fn take(&mut self, log: SegmentType, blocks: u32) {
        self.blocks[log.is_node() as usize] += blocks as u64;
    }

    /// One is free again.
    pub(super) fn release(&mut self, log: SegmentType, blocks: u32) {
        let all = &mut self.blocks[usize::from(log.is_node())];
        invariant!(u64::from(blocks) <= *all, "a segment of {log:?} that is free was in use");
        *all -= u64::from(blocks);
    }

    /// Blocks of a segment became valid.
    pub(super) fn add_valid(&mut self, log: SegmentType, blocks: u16) {
        self.valid[usize::from(log.is_node())] += u64::from(blocks);
    }

    /// Valid blocks in all.
    pub(super) const fn all_valid(&self) -> u64 {
        self.valid[0] + self.valid[1]
    }

    /// A block of a segment became invalid.
    pub(super) fn drop_valid(&mut self, log: SegmentType) {
        let valid = &mut self.valid[usize::from(log.is_node())];
        invariant!(*valid > 0, "a block of {log:?} that is invalid now was valid");
        *valid -= 1;
    }
}

impl Segments {
    /// Blocks in use: of data, of nodes.
    pub(crate) fn in_use(&self) -> [Blocks; 2] {
        [false, true].map(|nodes| {
            let class = usize::from(nodes);
            let open = self.logs.iter().zip(SegmentType::ALL);
            let unwritten: u64 = open
                .filter(|(curseg, log)| log.is_node() == nodes && !curseg.ssr)
                .map(|(curseg, _)| u64::from(self.left_in(curseg)))
                .sum();
            let (blocks, valid) = (self.usage.blocks[class], self.usage.valid[class]);
            invariant!(unwritten <= blocks, "segments of logs are in use");
            Blocks { in_use: blocks - unwritten, valid }
        })
    }
}
