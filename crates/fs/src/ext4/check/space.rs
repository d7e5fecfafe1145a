//! Which blocks were claimed, a bitmap for each group that has any.

use crate::ext4::format::{BLOCK_BYTES, Superblock, bitmap};
use std::ops::Range;

/// Claimed blocks.
pub(super) struct Space {
    blocks_per_group: u64,
    groups: Vec<Option<Box<[u8; BLOCK_BYTES]>>>,
}

impl Space {
    pub(super) fn new(sb: &Superblock) -> Self {
        let groups = std::iter::repeat_with(|| None).take(sb.groups() as usize).collect();
        Self { blocks_per_group: sb.blocks_per_group.into(), groups }
    }

    /// Claims blocks of the checker. Gives the first that was claimed before, if any was.
    pub(super) fn claim(&mut self, blocks: Range<u64>) -> Option<u64> {
        let mut twice = None;
        let mut at = blocks.start;
        while at < blocks.end {
            let group = at / self.blocks_per_group;
            let first = group * self.blocks_per_group;
            let end = blocks.end.min(first + self.blocks_per_group);
            let bits = (at - first) as u32..(end - first) as u32;
            let map = self.groups[group as usize].get_or_insert_with(|| Box::new([0; BLOCK_BYTES]));
            let before = bitmap::find(&map[..], bits.clone(), true);
            twice = twice.or(before.map(|bit| first + u64::from(bit)));
            bitmap::set(&mut map[..], bits, true);
            at = end;
        }
        twice
    }

    /// The claimed blocks of a group, if there are any.
    pub(super) fn group(&self, group: u32) -> Option<&[u8; BLOCK_BYTES]> {
        self.groups[group as usize].as_deref()
    }

    /// How many of a group's first `blocks` were not claimed.
    pub(super) fn free(&self, group: u32, blocks: u32) -> u32 {
        self.group(group).map_or(blocks, |map| bitmap::free(map, blocks))
    }

    /// Blocks that were claimed.
    pub(super) fn used(&self) -> u64 {
        let ones =
            |map: &[u8; BLOCK_BYTES]| map.iter().map(|b| u64::from(b.count_ones())).sum::<u64>();
        self.groups.iter().flatten().map(|map| ones(map)).sum()
    }
}
