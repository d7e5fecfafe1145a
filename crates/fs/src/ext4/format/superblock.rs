//! The superblock: 1,024 bytes at byte 1,024 of the volume, and in the first bytes of the first block
//! of every group that holds a backup. Source: Documentation/filesystems/ext4/super.rst.
//!
//! [`Superblock::parse`] takes only what the rest of the code can compute with: sizes that agree with
//! each other, 4 KiB blocks, groups that cover the volume. Features are checked apart
//! ([`super::Features::check`]), so that a dump can show what a mount refuses.

use super::checksum::{self, CsumSeed};
use super::error::{FormatError, Place};
use super::features::{Feature, Features};
use super::hash::HashVersion;
use super::{BLOCK_BYTES, INODE_BYTES_OLD};
use crate::wire::record;
use std::ops::Range;

/// Where the superblock in use lies in block 0.
pub const SUPERBLOCK_AT: usize = 1024;
/// Its length.
pub const SUPERBLOCK_BYTES: usize = 1024;
/// Its magic.
pub const SUPERBLOCK_MAGIC: u16 = 0xef53;
/// Where the magic number stands in a superblock.
pub(crate) const SUPERBLOCK_MAGIC_AT: usize = 0x38;
/// `state`: cleanly unmounted.
pub const STATE_CLEAN: u16 = 1;
/// `state`: errors were found.
pub const STATE_ERRORS: u16 = 2;
/// `state`: orphans are being cleaned up.
pub const STATE_ORPHANS: u16 = 4;
/// What is noted of errors: how many there were, and of the first and the last when and where.
pub const ERRORS_NOTED: Range<usize> = 0x194..0x200;
/// `flags`: directory hashes take characters as signed.
pub const FLAG_SIGNED_HASH: u32 = 1;
/// `flags`: directory hashes take characters as unsigned.
pub const FLAG_UNSIGNED_HASH: u32 = 2;
/// Descriptor bytes without and with `64bit`.
pub(super) const DESC_BYTES: [u16; 2] = [32, 64];

record! {
    /// The superblock. What it leaves out survives in the bytes that it is written over.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Superblock {
        /// Inodes in all.
        inodes_count: u32 = 0x0,
        /// Blocks in all.
        blocks_count: u64 = 0x4 [4] + 0x150 [4],
        /// Blocks that only root may take.
        r_blocks_count: u64 = 0x8 [4] + 0x154 [4],
        /// Free blocks.
        free_blocks_count: u64 = 0xc [4] + 0x158 [4],
        /// Free inodes.
        free_inodes_count: u32 = 0x10,
        /// The block that holds the superblock in use: 0 for 4 KiB blocks.
        first_data_block: u32 = 0x14,
        /// A block is 1,024 << this bytes.
        log_block_size: u32 = 0x18,
        /// The same of a cluster.
        log_cluster_size: u32 = 0x1c,
        /// Blocks in a group.
        blocks_per_group: u32 = 0x20,
        /// Clusters in a group.
        clusters_per_group: u32 = 0x24,
        /// Inodes in a group.
        inodes_per_group: u32 = 0x28,
        /// Last mount, in seconds.
        mtime: u32 = 0x2c,
        /// Last write of the superblock, in seconds.
        wtime: u32 = 0x30,
        /// Mounts since the last check.
        mnt_count: u16 = 0x34,
        /// Mounts until a check is asked for; 0xffff: never.
        max_mnt_count: u16 = 0x36,
        /// 0xef53.
        magic: u16 = 0x38,
        /// 1 clean, 2 errors, 4 orphans.
        state: u16 = 0x3a,
        /// What to do on errors: 1 go on, 2 read-only, 3 panic.
        errors: u16 = 0x3c,
        /// Minor revision.
        minor_rev_level: u16 = 0x3e,
        /// Last check, in seconds.
        lastcheck: u32 = 0x40,
        /// Seconds between checks.
        checkinterval: u32 = 0x44,
        /// 0: Linux.
        creator_os: u32 = 0x48,
        /// 1: with features.
        rev_level: u32 = 0x4c,
        /// User that may take reserved blocks.
        def_resuid: u16 = 0x50,
        /// Group that may.
        def_resgid: u16 = 0x52,
        /// First inode that is not reserved.
        first_ino: u32 = 0x54,
        /// Bytes of an inode.
        inode_size: u16 = 0x58,
        /// The group that this copy lies in.
        block_group_nr: u16 = 0x5a,
        /// Compatible features.
        feature_compat: u32 = 0x5c,
        /// Incompatible features.
        feature_incompat: u32 = 0x60,
        /// Read-only-compatible features.
        feature_ro_compat: u32 = 0x64,
        /// Identity.
        uuid: [u8; 16] = 0x68,
        /// Label, ended by a zero or full.
        volume_name: [u8; 16] = 0x78,
        /// Where it was last mounted.
        last_mounted: [u8; 64] = 0x88,
        /// Blocks kept free behind the descriptors, for more groups.
        reserved_gdt_blocks: u16 = 0xce,
        /// Identity of an external journal.
        journal_uuid: [u8; 16] = 0xd0,
        /// Inode of the journal.
        journal_inum: u32 = 0xe0,
        /// Device number of an external journal.
        journal_dev: u32 = 0xe4,
        /// First inode of the list of orphans.
        last_orphan: u32 = 0xe8,
        /// Seed of directory hashes.
        hash_seed: [u32; 4] = 0xec,
        /// Directory hash: 0 legacy, 1 half_md4, 2 tea.
        def_hash_version: u8 = 0xfc,
        /// 1: `jnl_blocks` holds the journal inode's map.
        jnl_backup_type: u8 = 0xfd,
        /// Bytes of a group descriptor with `64bit`.
        desc_size: u16 = 0xfe,
        /// Mount options by default.
        default_mount_opts: u32 = 0x100,
        /// First group of `meta_bg`.
        first_meta_bg: u32 = 0x104,
        /// When it was made, in seconds.
        mkfs_time: u32 = 0x108,
        /// The journal inode's map (15 words), upper and lower half of its size.
        jnl_blocks: [u32; 17] = 0x10c,
        /// Bytes that every inode keeps behind the first 128.
        min_extra_isize: u16 = 0x15c,
        /// Bytes that new inodes keep there.
        want_extra_isize: u16 = 0x15e,
        /// 1 signed, 2 unsigned directory hash.
        flags: u32 = 0x160,
        /// A flex group is 1 << this groups.
        log_groups_per_flex: u8 = 0x174,
        /// 1: crc32c.
        checksum_type: u8 = 0x175,
        /// KiB ever written.
        kbytes_written: u64 = 0x178,
        /// Errors found so far.
        error_count: u32 = 0x194,
        /// Blocks that the format takes itself.
        overhead_clusters: u32 = 0x248,
        /// Inode of lost+found.
        lpf_ino: u32 = 0x268,
        /// Seed of checksums with `metadata_csum_seed`.
        checksum_seed: u32 = 0x270,
        /// Upper byte of `wtime`.
        wtime_hi: u8 = 0x274,
        /// Upper byte of `mtime`.
        mtime_hi: u8 = 0x275,
        /// Upper byte of `mkfs_time`.
        mkfs_time_hi: u8 = 0x276,
        /// Upper byte of `lastcheck`.
        lastcheck_hi: u8 = 0x277,
        /// Inode of the orphan file.
        orphan_file_inum: u32 = 0x280,
        /// crc32c of everything before it.
        checksum: u32 = 0x3fc,
    }
}

impl Superblock {
    /// Whether the format keeps an inode for itself, although its number is one of files.
    #[must_use]
    pub fn is_orphan_file(&self, number: u32) -> bool {
        self.has(Feature::ORPHAN_FILE) && number == self.orphan_file_inum
    }

    /// A superblock of zeroes, to be filled in.
    #[must_use]
    pub fn empty() -> Self {
        Self::read(&[])
    }

    /// Reads the superblock of `group` from its 1,024 bytes.
    ///
    /// # Errors
    /// What contradicts itself, or a checksum that does not hold.
    pub fn parse(bytes: &[u8], group: u32) -> Result<Self, FormatError> {
        let place = Place::Superblock(group);
        let bytes = bytes.get(..SUPERBLOCK_BYTES);
        let bytes = bytes.ok_or(FormatError::corrupt(place, 0, "is cut short"))?;
        let read = Self::read(bytes);
        if read.magic != SUPERBLOCK_MAGIC {
            return Err(FormatError::corrupt(
                place,
                0x38,
                "bad magic number: not an ext4 file system",
            ));
        }
        if read.has(Feature::METADATA_CSUM) {
            FormatError::checksum(place, read.checksum, checksum::superblock(bytes))?;
        }
        read.check_sizes(place)?;
        read.check_groups(place)?;
        Ok(read)
    }

    fn check_sizes(&self, place: Place) -> Result<(), FormatError> {
        let corrupt = |at, what| Err(FormatError::corrupt(place, at, what));
        let foreign = |what: String| Err(FormatError::Incompatible { place, what });
        if self.rev_level != 1 {
            return foreign(format!("revision {} is not supported", self.rev_level));
        }
        if self.log_block_size > 6 {
            return corrupt(0x18, "block size out of range");
        }
        if self.log_block_size != 2 {
            let bytes = 1024 << self.log_block_size;
            return foreign(format!(
                "blocks of {bytes} bytes are not supported, only {BLOCK_BYTES}"
            ));
        }
        if self.log_cluster_size != self.log_block_size && !self.has(Feature::BIGALLOC) {
            return corrupt(0x1c, "clusters are no blocks");
        }
        if usize::from(self.reserved_gdt_blocks) > BLOCK_BYTES / 4 {
            return corrupt(0xce, "more blocks reserved than a block can point to");
        }
        let size = usize::from(self.inode_size);
        if !size.is_power_of_two() || !(INODE_BYTES_OLD..=BLOCK_BYTES).contains(&size) {
            return corrupt(0x58, "inode size is not a power of two from 128 to a block");
        }
        if self.has(Feature::BIT64) && !(64..=1024).contains(&self.desc_size) {
            return corrupt(0xfe, "descriptor size out of range");
        }
        if self.has(Feature::BIT64) && !self.desc_size.is_power_of_two() {
            return corrupt(0xfe, "descriptor size is not a power of two");
        }
        if self.has(Feature::METADATA_CSUM) && self.checksum_type != 1 {
            return foreign(format!("checksums of type {}", self.checksum_type));
        }
        Ok(())
    }

    fn check_groups(&self, place: Place) -> Result<(), FormatError> {
        let corrupt = |at, what| Err(FormatError::corrupt(place, at, what));
        let bits = BLOCK_BYTES as u32 * 8;
        let clustered = self.has(Feature::BIGALLOC);
        let [blocks, clusters] = [self.blocks_per_group, self.clusters_per_group];
        if blocks == 0
            || !blocks.is_multiple_of(8)
            || clusters > bits
            || (blocks != clusters && !clustered)
        {
            return corrupt(0x20, "blocks of a group do not fit a bitmap");
        }
        let inodes = self.inodes_per_group;
        if inodes == 0 || !inodes.is_multiple_of(8) || inodes > bits {
            return corrupt(0x28, "inodes of a group do not fit a bitmap");
        }
        if self.first_data_block != 0 {
            return corrupt(0x14, "the first block of 4 KiB is 0");
        }
        if self.blocks_count < 2 || self.blocks_count > 1 << 48 {
            return corrupt(0x4, "number of blocks out of range");
        }
        let groups = self.blocks_count.div_ceil(u64::from(self.blocks_per_group));
        if groups * u64::from(self.inodes_per_group) != u64::from(self.inodes_count) {
            return corrupt(0x0, "inodes are not those of all groups");
        }
        if self.first_ino < 11 || self.first_ino > self.inodes_count {
            return corrupt(0x54, "first inode out of range");
        }
        if self.has(Feature::FLEX_BG) && self.log_groups_per_flex > 31 {
            return corrupt(0x174, "flex group size out of range");
        }
        Ok(())
    }

    /// Writes the superblock over the 1,024 bytes of a copy, checksum included.
    pub fn encode(&self, bytes: &mut [u8]) {
        self.write(bytes);
        if self.has(Feature::METADATA_CSUM) {
            let computed = checksum::superblock(bytes);
            crate::wire::put_u32(bytes, 0x3fc, computed);
        }
    }

    /// The features.
    #[must_use]
    pub const fn features(&self) -> Features {
        Features {
            compat: self.feature_compat,
            incompat: self.feature_incompat,
            ro_compat: self.feature_ro_compat,
        }
    }

    /// Changes the features.
    pub const fn set_features(&mut self, features: Features) {
        self.feature_compat = features.compat;
        self.feature_incompat = features.incompat;
        self.feature_ro_compat = features.ro_compat;
    }

    /// Turns a feature on or off.
    pub fn set_feature(&mut self, feature: Feature, on: bool) {
        let mut features = self.features();
        features.set(feature, on);
        self.set_features(features);
    }

    /// Whether a feature is on.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.features().has(feature)
    }

    /// Where checksums begin; `None` without `metadata_csum`.
    #[must_use]
    pub fn csum_seed(&self) -> Option<CsumSeed> {
        let own = self.has(Feature::METADATA_CSUM_SEED);
        let seed = if own { CsumSeed(self.checksum_seed) } else { CsumSeed::of_uuid(&self.uuid) };
        self.has(Feature::METADATA_CSUM).then_some(seed)
    }

    /// The hash of new directories.
    #[must_use]
    pub const fn hash_version(&self) -> Option<HashVersion> {
        HashVersion::of(self.def_hash_version, self.flags & FLAG_UNSIGNED_HASH != 0)
    }
}
