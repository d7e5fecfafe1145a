//! Who gets which block and which inode number.

mod bitmaps;
mod bits;
mod blocks;
mod inodes;
mod space;

use super::group::Group;
use crate::ext4::journal::Tid;
use crate::ext4::system_zone::SystemZone;
use nandscape_rt::sync::Mutex;
use nandscape_rt::{Handle, Stream};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;

/// What is free on a volume, and who may have it.
pub(crate) struct Allocator {
    pub(crate) groups: RefCell<Vec<Group>>,
    /// Blocks that no file can have.
    pub(crate) system_zone: SystemZone,
    pub(crate) free_blocks: Cell<u64>,
    pub(crate) free_inodes: Cell<u64>,
    freed: FreedBlocks,
    /// Held while a bitmap is made that was never written.
    making_bitmap: Mutex<()>,
    pub(crate) generations: RefCell<Stream>,
}

/// Blocks freed by transactions that have not committed: they are held, so that no file gets them.
#[derive(Default)]
struct FreedBlocks {
    /// In the order of their transactions.
    queue: RefCell<VecDeque<FreedExtent>>,
    /// How many blocks these are.
    blocks: Cell<u64>,
    /// A bitmap of zeroes, for the next group that holds blocks.
    spare: Cell<Option<Box<[u8; 4096]>>>,
}

/// Freed blocks of a group, and the transaction that freed them.
type FreedExtent = (Tid, u32, Range<u32>);

impl Allocator {
    /// Of a volume with these groups; `seed` is that of inode generations.
    pub(crate) fn new(rt: &Handle, groups: Vec<Group>, system_zone: SystemZone, seed: u64) -> Self {
        let free_blocks = groups.iter().map(|group| u64::from(group.desc.free_blocks_count)).sum();
        let free_inodes = groups.iter().map(|group| u64::from(group.desc.free_inodes_count)).sum();
        Self {
            groups: RefCell::new(groups),
            system_zone,
            free_blocks: Cell::new(free_blocks),
            free_inodes: Cell::new(free_inodes),
            freed: FreedBlocks::default(),
            making_bitmap: Mutex::new(rt, "new bitmap", ()),
            generations: RefCell::new(Stream::new(seed, "ext4 generations")),
        }
    }

    fn group_count(&self) -> u32 {
        self.groups.borrow().len() as u32
    }
}
