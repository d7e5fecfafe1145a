//! The log as a ring: where the next transaction goes, and where what must be kept begins.
//!
//! Invariant: the head never passes the tail; no transaction takes more blocks than are free, or than its share.

use super::config::Config;
use super::disk::{Codec, Position};
use super::tid::Tid;
use nandscape_rt::invariant;

/// Blocks that a log has at least. The kernel wants 1,024; tests wrap around sooner.
pub(super) const MIN_BLOCKS: u32 = 16;

/// How much transactions may hold, which follows from the log's length and the shares that are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Log blocks that one transaction may take.
    pub(super) transaction_blocks: u32,
    /// Log blocks that must come free before a commit moves the tail.
    pub(super) tail_move_blocks: u64,
    /// Credits that fit into that, once there are a commit block and descriptors.
    pub(super) credits: u32,
}

impl Limits {
    pub(super) fn new(ring: &Ring, codec: &Codec, config: &Config) -> Self {
        let share = |percent: u8| u64::from(ring.len()) * u64::from(percent) / 100;
        let transaction_blocks = share(config.transaction_percent) as u32;
        let copies = codec.descriptor_copies() as u32;
        let room = transaction_blocks.saturating_sub(1);
        let credits = room - room.div_ceil(copies + 1);
        let tail_move_blocks = share(config.tail_move_percent);
        Self { transaction_blocks, tail_move_blocks, credits }
    }
}

/// The ring of log blocks.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    first: u32,
    end: u32,
    /// Where the next transaction goes.
    head: u32,
    /// What the superblock says: the oldest transaction that a recovery would find.
    tail: Position,
    free: u32,
}

impl Ring {
    /// An empty log in `first..end`, whose next transaction is `next`.
    pub(super) const fn new(first: u32, end: u32, next: Tid) -> Self {
        Self {
            first,
            end,
            head: first,
            tail: Position { tid: next, block: first },
            free: end - first,
        }
    }

    pub(super) const fn len(&self) -> u32 {
        self.end - self.first
    }

    pub(super) const fn free(&self) -> u32 {
        self.free
    }

    pub(super) const fn head(&self) -> u32 {
        self.head
    }

    pub(super) const fn tail(&self) -> Position {
        self.tail
    }

    /// The block `count` after `block`, round the ring.
    pub(super) const fn after(&self, block: u32, count: u32) -> u32 {
        let at = block - self.first + count;
        self.first + at % self.len()
    }

    /// Takes blocks at the head; gives back the first.
    pub(super) fn take(&mut self, blocks: u32) -> u32 {
        invariant!(
            blocks <= self.free,
            "{blocks} log blocks are taken, and {} are free",
            self.free
        );
        let start = self.head;
        self.free -= blocks;
        self.head = self.after(start, blocks);
        start
    }

    /// Blocks from the tail to a block that is kept, or the head.
    pub(super) const fn before(&self, block: u32) -> u32 {
        if block >= self.tail.block {
            block - self.tail.block
        } else {
            block + self.len() - self.tail.block
        }
    }

    /// The superblock says that what must be kept begins here.
    pub(super) const fn set_tail(&mut self, tail: Position) {
        self.tail = tail;
        let kept = if self.head >= tail.block {
            self.head - tail.block
        } else {
            self.head + self.len() - tail.block
        };
        self.free = self.len() - kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that are taken come back when the tail passes them, round the end.
    #[test]
    fn space_comes_back_at_the_tail() {
        let mut ring = Ring::new(1, 11, Tid(5));
        assert_eq!((ring.len(), ring.free()), (10, 10));
        assert_eq!(ring.take(7), 1);
        assert_eq!((ring.head(), ring.free()), (8, 3));
        ring.set_tail(Position { tid: Tid(6), block: 5 });
        assert_eq!(ring.free(), 7);
        assert_eq!(ring.take(5), 8);
        assert_eq!((ring.head(), ring.free()), (3, 2));
        assert_eq!(ring.before(8), 3);
        assert_eq!(ring.before(2), 7);
        ring.set_tail(Position { tid: Tid(7), block: 3 });
        assert_eq!(ring.free(), 10);
    }

    /// What may be in a transaction fits a quarter of the log, descriptors and commit block included.
    #[test]
    fn credits_leave_room_for_descriptors() {
        let codec = Codec::new(super::super::disk::Features::default(), &[0; 16]);
        for blocks in [16, 1_024, 16_384, 262_144] {
            let config = Config::of_file_system(true, true);
            let limits = Limits::new(&Ring::new(1, blocks, Tid(1)), &codec, &config);
            let descriptors = limits.credits.div_ceil(codec.descriptor_copies() as u32);
            assert!(limits.credits + descriptors < limits.transaction_blocks, "{blocks}");
            assert!(limits.credits > 0);
        }
    }
}
