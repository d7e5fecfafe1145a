//! How much of the main area is in use, and how much of that is valid, for the write amplification that theory expects:
//! blocks written to segments that are not free, prefree ones included, data and nodes apart.
//!
//! A damaged volume may have a log in a segment that its table counts for the other class, or for none: counts end at zero.

use super::{SegmentType, Segments};

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
    pub(super) const fn release(&mut self, log: SegmentType, blocks: u32) {
        let all = &mut self.blocks[log.is_node() as usize];
        *all = all.saturating_sub(blocks as u64);
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
    pub(super) const fn drop_valid(&mut self, log: SegmentType) {
        let valid = &mut self.valid[log.is_node() as usize];
        *valid = valid.saturating_sub(1);
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
            let blocks = self.usage.blocks[class];
            Blocks { in_use: blocks.saturating_sub(unwritten), valid: self.usage.valid[class] }
        })
    }
}
