//! Blocks, nodes and inodes in use, and how many there may be (`inc_valid_block_count` and its kin in
//! fs/f2fs/f2fs.h). A block counts from the moment at which its place in a node is reserved (`NEW_ADDR`), a node from
//! the moment at which it has a number.

use super::format::Checkpoint;
use crate::contract::{FsError, Result};
use std::cell::Cell;

/// What is in use. What a damaged checkpoint says may be less than what is freed, or more than there may be.
pub(crate) struct Space {
    /// Blocks that users may have: data and nodes.
    user_blocks: u64,
    /// Node numbers of the NAT.
    max_nid: u32,
    valid_blocks: Cell<u64>,
    valid_nodes: Cell<u32>,
    valid_inodes: Cell<u32>,
    /// Blocks in use at the last checkpoint, and blocks taken since.
    at_checkpoint: Cell<u64>,
    taken: Cell<u64>,
}

impl Space {
    /// As a checkpoint says, of a NAT with so many node numbers.
    pub(crate) const fn new(checkpoint: &Checkpoint, max_nid: u32) -> Self {
        Self {
            user_blocks: checkpoint.user_block_count,
            max_nid,
            valid_blocks: Cell::new(checkpoint.valid_block_count),
            valid_nodes: Cell::new(checkpoint.valid_node_count),
            valid_inodes: Cell::new(checkpoint.valid_inode_count),
            at_checkpoint: Cell::new(checkpoint.valid_block_count),
            taken: Cell::new(0),
        }
    }

    pub(crate) const fn user_blocks(&self) -> u64 {
        self.user_blocks
    }

    pub(crate) const fn max_nid(&self) -> u32 {
        self.max_nid
    }

    pub(crate) const fn valid_blocks(&self) -> u64 {
        self.valid_blocks.get()
    }

    pub(crate) const fn valid_nodes(&self) -> u32 {
        self.valid_nodes.get()
    }

    pub(crate) const fn valid_inodes(&self) -> u32 {
        self.valid_inodes.get()
    }

    /// Blocks that are not in use.
    pub(crate) const fn free_blocks(&self) -> u64 {
        self.user_blocks.saturating_sub(self.valid_blocks.get())
    }

    /// A checkpoint has what is in use now.
    pub(crate) fn note_checkpoint(&self) {
        self.at_checkpoint.set(self.valid_blocks.get());
        self.taken.set(0);
    }

    /// Whether a mount could roll everything forward that was taken since the last checkpoint, while what was freed is
    /// still in use for it (`f2fs_space_for_roll_forward`).
    pub(crate) const fn has_room_for_roll_forward(&self) -> bool {
        self.at_checkpoint.get().saturating_add(self.taken.get()) <= self.user_blocks
    }

    /// Takes up to `wanted` blocks; returns how many.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if there is none.
    pub(crate) fn take_some(&self, wanted: u64) -> Result<u64> {
        let taken = wanted.min(self.free_blocks());
        if taken == 0 && wanted > 0 {
            return Err(FsError::NoSpace);
        }
        self.valid_blocks.set(self.valid_blocks.get() + taken);
        self.taken.set(self.taken.get() + taken);
        Ok(taken)
    }

    /// Takes a block for a node, which is an inode or not.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if no block, or no number, is left.
    pub(crate) fn take_node(&self, is_inode: bool) -> Result<()> {
        if self.free_blocks() == 0 || self.valid_nodes.get() >= self.max_nid {
            return Err(FsError::NoSpace);
        }
        self.valid_blocks.set(self.valid_blocks.get() + 1);
        self.taken.set(self.taken.get() + 1);
        self.valid_nodes.set(self.valid_nodes.get() + 1);
        self.valid_inodes.set(self.valid_inodes.get() + u32::from(is_inode));
        Ok(())
    }

    /// Gives blocks back. Counts are those of the checkpoint that was mounted, which may be wrong.
    pub(crate) fn release(&self, blocks: u64) {
        self.valid_blocks.set(self.valid_blocks.get().saturating_sub(blocks));
    }

    /// Gives the block of a node back, of counts that may be wrong.
    pub(crate) fn release_node(&self, is_inode: bool) {
        self.release(1);
        self.valid_nodes.set(self.valid_nodes.get().saturating_sub(1));
        self.valid_inodes.set(self.valid_inodes.get().saturating_sub(u32::from(is_inode)));
    }
}
