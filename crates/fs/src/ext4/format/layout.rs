//! Where things are: the arithmetic of groups, descriptors and inode tables that follows from a
//! superblock.

use super::features::Feature;
use super::superblock::{DESC_BYTES, Superblock};
use super::{BLOCK_BYTES, INODE_BYTES_OLD};
use std::ops::Range;

/// The place of an inode: its group, its index in the group's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InodePlace {
    /// The group.
    pub group: u32,
    /// Index in the group's table, from 0.
    pub index: u32,
}

impl InodePlace {
    /// The block of the inode table that holds it, counted from the table's first.
    #[must_use]
    pub fn block(self, sb: &Superblock) -> u64 {
        u64::from(self.index) * u64::from(sb.inode_size) / BLOCK_BYTES as u64
    }

    /// Where in that block it begins.
    #[must_use]
    pub fn offset(self, sb: &Superblock) -> usize {
        self.index as usize * usize::from(sb.inode_size) % BLOCK_BYTES
    }
}

impl Superblock {
    /// Groups in all.
    #[must_use]
    pub fn groups(&self) -> u32 {
        self.blocks_count.div_ceil(u64::from(self.blocks_per_group)) as u32
    }

    /// The blocks of a group.
    #[must_use]
    pub fn group_blocks(&self, group: u32) -> Range<u64> {
        let first = self.group_first_block(group);
        first..(first + u64::from(self.blocks_per_group)).min(self.blocks_count)
    }

    /// The first block of a group.
    #[must_use]
    pub fn group_first_block(&self, group: u32) -> u64 {
        u64::from(group) * u64::from(self.blocks_per_group)
    }

    /// The group of a block.
    #[must_use]
    pub fn group_of(&self, block: u64) -> u32 {
        (block / u64::from(self.blocks_per_group)) as u32
    }

    /// The group of a range's first block, and those bits of the group's bitmap that are the range's.
    #[must_use]
    pub fn first_group_bits(&self, blocks: &Range<u64>) -> (u32, Range<u32>) {
        let group = self.group_of(blocks.start);
        let here = self.group_blocks(group);
        let end = blocks.end.min(here.end);
        (group, (blocks.start - here.start) as u32..(end - here.start) as u32)
    }

    /// Groups in a flex group; 1 without `flex_bg`.
    #[must_use]
    pub fn flex_groups(&self) -> u32 {
        if self.has(Feature::FLEX_BG) { 1 << self.log_groups_per_flex } else { 1 }
    }

    /// Whether descriptors have checksums, and so may say that parts of a group were never initialised.
    #[must_use]
    pub fn has_group_checksums(&self) -> bool {
        self.has(Feature::METADATA_CSUM) || self.has(Feature::UNINIT_BG)
    }

    /// Bytes of a group descriptor.
    #[must_use]
    pub fn desc_bytes(&self) -> usize {
        usize::from(if self.has(Feature::BIT64) { self.desc_size } else { DESC_BYTES[0] })
    }

    /// Descriptors in a block.
    #[must_use]
    pub fn descs_per_block(&self) -> u32 {
        (BLOCK_BYTES / self.desc_bytes()) as u32
    }

    /// Blocks of descriptors behind each superblock.
    #[must_use]
    pub fn desc_blocks(&self) -> u32 {
        self.groups().div_ceil(self.descs_per_block())
    }

    /// The block and the offset in it of a group's descriptor, in the copy in use.
    #[must_use]
    pub fn desc_place(&self, group: u32) -> (u64, usize) {
        let block = 1 + u64::from(group / self.descs_per_block());
        (block, (group % self.descs_per_block()) as usize * self.desc_bytes())
    }

    /// Whether a group begins with a superblock: with `sparse_super`, groups 0, 1 and powers of 3, 5 and 7.
    #[must_use]
    pub fn has_superblock(&self, group: u32) -> bool {
        let power = |base: u32| {
            let mut power = base;
            while power < group {
                power = power.saturating_mul(base);
            }
            power == group
        };
        !self.has(Feature::SPARSE_SUPER) || group <= 1 || [3, 5, 7].into_iter().any(power)
    }

    /// Blocks of a group that superblock, descriptors and room for more descriptors take.
    #[must_use]
    pub fn superblock_blocks(&self, group: u32) -> u32 {
        let blocks = 1 + self.desc_blocks() + u32::from(self.reserved_gdt_blocks);
        if self.has_superblock(group) { blocks } else { 0 }
    }

    /// Blocks of a group's inode table.
    #[must_use]
    pub fn inode_table_blocks(&self) -> u32 {
        let bytes = u64::from(self.inodes_per_group) * u64::from(self.inode_size);
        bytes.div_ceil(BLOCK_BYTES as u64) as u32
    }

    /// Where an inode lies; `None` if there is none of this number.
    #[must_use]
    pub fn inode_place(&self, inode: u32) -> Option<InodePlace> {
        let index = inode.checked_sub(1).filter(|index| *index < self.inodes_count)?;
        let per_group = self.inodes_per_group;
        Some(InodePlace { group: index / per_group, index: index % per_group })
    }

    /// The inode at a place.
    #[must_use]
    pub const fn inode_at(&self, place: InodePlace) -> u32 {
        place.group * self.inodes_per_group + place.index + 1
    }

    /// Bytes of an inode.
    #[must_use]
    pub fn inode_bytes(&self) -> usize {
        usize::from(self.inode_size).max(INODE_BYTES_OLD)
    }
}
