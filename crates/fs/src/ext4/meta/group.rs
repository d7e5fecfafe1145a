//! A block group in memory.

use crate::ext4::format::{GROUP_BLOCK_UNINIT, GROUP_INODE_UNINIT, GroupDescriptor};
use crate::ext4::tx::BufferRef;
use std::cell::Cell;

/// A block group in memory.
pub(crate) struct Group {
    pub(crate) desc: GroupDescriptor,
    /// Blocks freed by transactions that have not committed.
    pub(super) held: Option<FreedBits>,
    /// No free run is longer, as far as is known.
    pub(super) longest_at_most: u32,
    pub(super) deferred: Option<DeferredGroup>,
    /// Whether the checksums of the bitmaps were looked at.
    pub(super) checked: [Cell<bool>; 2],
}

impl Group {
    pub(crate) fn new(desc: GroupDescriptor) -> Self {
        Self {
            desc,
            held: None,
            longest_at_most: u32::MAX,
            deferred: None,
            checked: Default::default(),
        }
    }
}

/// What of a group is deferred: its descriptor, and the checksums of these bitmaps.
#[derive(Default)]
pub(super) struct DeferredGroup {
    pub(super) bitmaps: [Option<BufferRef>; 2],
}

/// Freed blocks of a group as a bitmap.
pub(super) struct FreedBits {
    pub(super) bitmap: Box<[u8; 4096]>,
    /// Bits that are yet to be cleared.
    pub(super) count: u32,
}

/// The two bitmaps of a group.
#[derive(Clone, Copy)]
pub(super) enum Bitmap {
    Blocks,
    Inodes,
}

impl Bitmap {
    /// Of a group that never had one.
    pub(super) const fn flag(self) -> u16 {
        match self {
            Self::Blocks => GROUP_BLOCK_UNINIT,
            Self::Inodes => GROUP_INODE_UNINIT,
        }
    }
}
