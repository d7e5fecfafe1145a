//! The order in which blocks of logs are sent where sections are zones: that in which they were allocated, as a zone
//! takes writes at its write pointer only (`io_order_lock` in fs/f2fs/segment.c). Operations allocate in one order and
//! submit in another; one that comes early waits for its turn ([`zoned`](crate::f2fs::zoned)).
//!
//! Also across sections: the zone that a log leaves is full before the next one is opened, so that no more zones are
//! active than there are logs.

use super::LOGS;
use crate::f2fs::format::{BlockAddr, SegmentType};
use std::collections::BTreeMap;

/// Which block of each log is to be sent next.
#[derive(Default, Debug)]
pub(super) struct Turns {
    next: [BlockAddr; LOGS],
    /// Where a log goes on after the last block of a section that it has left.
    jumps: BTreeMap<BlockAddr, BlockAddr>,
}

impl Turns {
    /// Nothing of a log is on its way, and it goes on there.
    pub(super) fn begin(&mut self, log: SegmentType, next: BlockAddr) {
        self.next[log.number()] = next;
    }

    /// A log goes on elsewhere after a block.
    pub(super) fn jump(&mut self, last: BlockAddr, next: BlockAddr) {
        let after = BlockAddr(last.0 + 1);
        if after != next {
            self.jumps.insert(after, next);
        }
    }

    /// Whether it is the turn of so many blocks from one on; if so, it is that of those after them now.
    pub(super) fn take(&mut self, at: BlockAddr, blocks: u32) -> bool {
        let Some(next) = self.next.iter_mut().find(|next| **next == at) else { return false };
        let after = BlockAddr(at.0 + blocks);
        *next = self.jumps.remove(&after).unwrap_or(after);
        true
    }

    /// The blocks whose turn it is.
    pub(super) const fn now(&self) -> [BlockAddr; LOGS] {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of a log have their turns in its order, also where it leaves a section; logs do not wait for each other.
    #[test]
    fn blocks_come_in_the_order_of_their_log() {
        let mut turns = Turns::default();
        turns.begin(SegmentType::HotData, BlockAddr(100));
        turns.begin(SegmentType::WarmNode, BlockAddr(500));
        turns.jump(BlockAddr(103), BlockAddr(900));
        assert!(!turns.take(BlockAddr(102), 2) && !turns.take(BlockAddr(900), 1));
        assert!(turns.take(BlockAddr(500), 3) && turns.take(BlockAddr(100), 2));
        assert!(!turns.take(BlockAddr(900), 1));
        assert!(turns.take(BlockAddr(102), 2) && turns.take(BlockAddr(900), 4));
        assert!(turns.now().contains(&BlockAddr(904)) && turns.now().contains(&BlockAddr(503)));
        turns.jump(BlockAddr(904), BlockAddr(905));
        assert!(turns.take(BlockAddr(904), 1) && turns.jumps.is_empty());
    }
}
