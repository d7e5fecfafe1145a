//! Group descriptors, of 32 bytes or, with `64bit`, of 64 and more.
//! Source: Documentation/filesystems/ext4/group_descr.rst.

use super::checksum::{CsumSeed, Summed, group_descriptor_crc16};
use super::error::{FormatError, Place};
use super::features::Feature;
use super::superblock::Superblock;
use crate::wire::record;

/// `flags`: the inode table and bitmap were never initialised; no inode is in use.
pub const GROUP_INODE_UNINIT: u16 = 1;
/// `flags`: the block bitmap was never initialised; only the format's own blocks are in use.
pub const GROUP_BLOCK_UNINIT: u16 = 2;
/// `flags`: the inode table is known to hold zeroes where it was never used.
pub const GROUP_INODE_ZEROED: u16 = 4;

record! {
    /// The descriptor of a group.
    #[derive(Clone, PartialEq, Eq, Default, Debug)]
    pub struct GroupDescriptor {
        /// Block of the block bitmap.
        block_bitmap: u64 = 0x0 [4] + 0x20 [4],
        /// Block of the inode bitmap.
        inode_bitmap: u64 = 0x4 [4] + 0x24 [4],
        /// First block of the inode table.
        inode_table: u64 = 0x8 [4] + 0x28 [4],
        /// Free blocks.
        free_blocks_count: u32 = 0xc [2] + 0x2c [2],
        /// Free inodes.
        free_inodes_count: u32 = 0xe [2] + 0x2e [2],
        /// Directories.
        used_dirs_count: u32 = 0x10 [2] + 0x30 [2],
        /// 1 inodes uninitialised, 2 block bitmap uninitialised, 4 inode table zeroed.
        flags: u16 = 0x12,
        /// crc32c of the block bitmap, the lower half without `64bit`.
        block_bitmap_csum: u32 = 0x18 [2] + 0x38 [2],
        /// crc32c of the inode bitmap, the lower half without `64bit`.
        inode_bitmap_csum: u32 = 0x1a [2] + 0x3a [2],
        /// Inodes at the end of the table that were never used.
        itable_unused: u32 = 0x1c [2] + 0x32 [2],
        /// Of the descriptor.
        checksum: u16 = 0x1e,
    }
}

impl GroupDescriptor {
    /// Reads the descriptor of `group` from its bytes, as many as the superblock says. What it says of
    /// parts that were never initialised counts only where descriptors have checksums, as in Linux.
    ///
    /// # Errors
    /// A checksum that does not hold.
    pub fn parse(bytes: &[u8], group: u32, sb: &Superblock) -> Result<Self, FormatError> {
        let read = Self::read(bytes);
        let Some(computed) = checksum(bytes, group, sb) else { return Ok(read.initialised()) };
        let place = Place::GroupDescriptor(group);
        FormatError::checksum(place, read.checksum.into(), computed.into())?;
        Ok(read)
    }

    /// The same without a word of parts that were never initialised.
    fn initialised(self) -> Self {
        let flags = self.flags & !(GROUP_INODE_UNINIT | GROUP_BLOCK_UNINIT);
        Self { flags, itable_unused: 0, ..self }
    }

    /// Whether it speaks of parts that were never initialised.
    #[must_use]
    pub const fn has_uninitialised(&self) -> bool {
        self.has(GROUP_INODE_UNINIT) || self.has(GROUP_BLOCK_UNINIT) || self.itable_unused != 0
    }

    /// Reads a descriptor without looking at its checksum.
    #[must_use]
    pub fn parse_unchecked(bytes: &[u8]) -> Self {
        Self::read(bytes)
    }

    /// Writes the descriptor over its bytes, checksum included.
    pub fn encode(&self, bytes: &mut [u8], group: u32, sb: &Superblock) {
        self.write(bytes);
        if let Some(computed) = checksum(bytes, group, sb) {
            crate::wire::put_u16(bytes, 0x1e, computed);
        }
    }

    /// Whether a flag is set.
    #[must_use]
    pub const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Whether the block bitmap is the one that its checksum is of. Without `metadata_csum`, always.
    ///
    /// # Errors
    /// [`FormatError::Checksum`].
    pub fn check_block_bitmap(
        &self,
        bitmap: &[u8],
        group: u32,
        sb: &Superblock,
    ) -> Result<(), FormatError> {
        let computed = bitmap_csum(bitmap, sb.clusters_per_group, sb);
        let stored = computed.map(|_| self.block_bitmap_csum);
        compare(Place::BlockBitmap(group), stored, computed)
    }

    /// Whether the inode bitmap is the one that its checksum is of. Without `metadata_csum`, always.
    ///
    /// # Errors
    /// [`FormatError::Checksum`].
    pub fn check_inode_bitmap(
        &self,
        bitmap: &[u8],
        group: u32,
        sb: &Superblock,
    ) -> Result<(), FormatError> {
        let computed = bitmap_csum(bitmap, sb.inodes_per_group, sb);
        let stored = computed.map(|_| self.inode_bitmap_csum);
        compare(Place::InodeBitmap(group), stored, computed)
    }

    /// Takes the checksum of the block bitmap.
    pub fn seal_block_bitmap(&mut self, bitmap: &(impl Summed + ?Sized), sb: &Superblock) {
        self.block_bitmap_csum = bitmap_csum(bitmap, sb.clusters_per_group, sb).unwrap_or(0);
    }

    /// Takes the checksum of the inode bitmap.
    pub fn seal_inode_bitmap(&mut self, bitmap: &(impl Summed + ?Sized), sb: &Superblock) {
        self.inode_bitmap_csum = bitmap_csum(bitmap, sb.inodes_per_group, sb).unwrap_or(0);
    }
}

fn compare(place: Place, stored: Option<u32>, computed: Option<u32>) -> Result<(), FormatError> {
    match (stored, computed) {
        (Some(stored), Some(computed)) => FormatError::checksum(place, stored, computed),
        _ => Ok(()),
    }
}

/// A bitmap's checksum, cut to what a descriptor of this file system has room for.
fn bitmap_csum(bitmap: &(impl Summed + ?Sized), bits: u32, sb: &Superblock) -> Option<u32> {
    let whole = sb.csum_seed()?.bitmap(bitmap, bits);
    Some(if sb.desc_bytes() >= 64 { whole } else { whole & 0xffff })
}

/// The checksum that a descriptor should have, if the file system has any.
fn checksum(bytes: &[u8], group: u32, sb: &Superblock) -> Option<u16> {
    let crc32c: Option<CsumSeed> = sb.csum_seed();
    let crc32c = crc32c.map(|seed| seed.group_descriptor(group, bytes));
    let crc16 = || group_descriptor_crc16(&sb.uuid, group, bytes);
    crc32c.or_else(|| sb.has(Feature::UNINIT_BG).then(crc16))
}
