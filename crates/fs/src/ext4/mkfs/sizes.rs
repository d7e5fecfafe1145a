//! The superblock of a new file system: everything that follows from the size of the volume and the
//! options, as mke2fs 1.47 computes it (libext2fs, `initialize.c`).

use super::{MkfsError, MkfsOptions};
use crate::ext4::format::*;

const GIB_BLOCKS: u64 = (1 << 30) / BLOCK_BYTES as u64;
/// Bits of a bitmap.
const BITMAP_BITS: u32 = BLOCK_BYTES as u32 * 8;
/// Inodes that the format keeps for itself, and lost+found behind them.
pub(super) const FIRST_INODE: u32 = 11;
/// Pointers of a block, each to one more block of descriptors.
const POINTERS: u64 = BLOCK_BYTES as u64 / 4;
/// Groups of a flex group.
const LOG_FLEX_GROUPS: u8 = 4;
/// A group at the end that would have fewer data blocks is left out.
const LAST_GROUP_BLOCKS_MIN: u64 = 50;
/// Blocks of a journal.
const JOURNAL_BLOCKS_MIN: u32 = 1024;
const JOURNAL_BLOCKS_MAX: u32 = 10_240_000;
/// `default_mount_opts`: user_xattr, acl.
const MOUNT_OPTIONS: u32 = 0x4 | 0x8;

/// Blocks of the journal of a file system of this many blocks; 0: too small for one.
#[must_use]
pub const fn journal_blocks_by_default(blocks: u64) -> u32 {
    match blocks {
        0..2_048 => 0,
        2_048..32_768 => 1_024,
        32_768..0x4_0000 => 4_096,
        0x4_0000..0x8_0000 => 8_192,
        0x8_0000..0x40_0000 => 16_384,
        0x40_0000..0x80_0000 => 32_768,
        0x80_0000..0x100_0000 => 65_536,
        0x100_0000..0x200_0000 => 131_072,
        _ => 262_144,
    }
}

/// Bytes of volume for each inode: mke2fs's types floppy, small, default, big.
const fn inode_ratio_by_default(blocks: u64) -> u64 {
    if blocks < 3 * 256 {
        8_192
    } else if blocks < GIB_BLOCKS / 2 {
        4_096
    } else if blocks < 4_096 * GIB_BLOCKS {
        16_384
    } else {
        32_768
    }
}

/// The superblock, but for free counts, journal and overhead.
pub(super) fn superblock(options: &MkfsOptions, sectors: u64) -> Result<Superblock, MkfsError> {
    let blocks = options.blocks.unwrap_or(sectors);
    check(options, blocks, sectors)?;
    let mut sb = constants(options);
    let reserved = (f64::from(options.reserved_percent) * blocks as f64 / 100.0) as u64;
    let ratio = options.inode_ratio.unwrap_or(inode_ratio_by_default(blocks));
    let inodes = (blocks * BLOCK_BYTES as u64 / ratio).min(u32::MAX.into());
    (sb.blocks_count, sb.r_blocks_count) = (blocks, reserved);
    while !set_inodes(&mut sb, inodes.max(u64::from(FIRST_INODE) + 1)) || !last_group_is_worth(&sb)?
    {
        let last = sb.blocks_count % u64::from(sb.blocks_per_group);
        if inodes_share(&sb, inodes) > BITMAP_BITS.into() {
            // Smaller groups, and so more of them.
            sb.blocks_per_group -= 8;
            sb.clusters_per_group = sb.blocks_per_group;
            sb.blocks_count = blocks;
        } else {
            let percent = 100.0 * reserved as f64 / blocks as f64;
            sb.blocks_count -= last;
            sb.r_blocks_count = (percent * sb.blocks_count as f64 / 100.0) as u64;
        }
    }
    if options.journal_blocks.is_none() && journal_blocks_by_default(blocks) == 0 {
        sb.set_feature(Feature::HAS_JOURNAL, false);
    }
    Ok(sb)
}

fn check(options: &MkfsOptions, blocks: u64, sectors: u64) -> Result<(), MkfsError> {
    let refuse = |what: String| Err(MkfsError::Options(what));
    options.features.check(true)?;
    let on = |feature| options.features.has(feature);
    if on(Feature::NEEDS_RECOVERY) {
        return refuse("needs_recovery: a new file system needs none".into());
    }
    if on(Feature::ORPHAN_FILE) {
        return refuse("orphan_file: kept where mke2fs made one, and not made here".into());
    }
    if on(Feature::RESIZE_INODE) && !on(Feature::SPARSE_SUPER) {
        return refuse("resize_inode needs sparse_super".into());
    }
    if on(Feature::METADATA_CSUM) && on(Feature::UNINIT_BG) {
        return refuse("metadata_csum and uninit_bg are two kinds of checksum: choose one".into());
    }
    if on(Feature::METADATA_CSUM_SEED) && !on(Feature::METADATA_CSUM) {
        return refuse("metadata_csum_seed needs metadata_csum".into());
    }
    if blocks > sectors {
        return refuse(format!("{blocks} blocks do not fit a device of {sectors}"));
    }
    if blocks == 0 {
        return refuse("no room for a block of 4096 bytes".into());
    }
    if blocks > u64::from(u32::MAX) {
        return refuse(format!(
            "{blocks} blocks: up to {} are supported, 4 KiB less than 16 TiB",
            u32::MAX
        ));
    }
    if !matches!(options.inode_bytes, 128 | 256 | 512 | 1024) {
        return refuse(format!(
            "inodes of {} bytes: 128, 256, 512 and 1024 are possible",
            options.inode_bytes
        ));
    }
    if options.inode_ratio.is_some_and(|ratio| !(4_096..=67_108_864).contains(&ratio)) {
        return refuse("an inode for each 4096 to 67108864 bytes is possible".into());
    }
    if options.reserved_percent > 50 {
        return refuse(format!("{} % reserved: at most 50 are", options.reserved_percent));
    }
    if options.label.len() > 16 || options.label.contains('\0') {
        return refuse(format!("label {:?}: up to 16 bytes, none of them 0", options.label));
    }
    let journal = options.journal_blocks.unwrap_or(JOURNAL_BLOCKS_MIN);
    if !(JOURNAL_BLOCKS_MIN..=JOURNAL_BLOCKS_MAX).contains(&journal)
        || u64::from(journal) > blocks.max(2_048) / 2
    {
        return refuse(format!(
            "a journal of {journal} blocks: from {JOURNAL_BLOCKS_MIN} blocks to half the volume"
        ));
    }
    Ok(())
}

/// What no size changes.
fn constants(options: &MkfsOptions) -> Superblock {
    let mut sb = Superblock::empty();
    let on = |feature| options.features.has(feature);
    sb.magic = SUPERBLOCK_MAGIC;
    sb.rev_level = 1;
    sb.state = STATE_CLEAN;
    sb.errors = 1;
    sb.max_mnt_count = u16::MAX;
    sb.log_block_size = BLOCK_BYTES.ilog2() - 10;
    sb.log_cluster_size = sb.log_block_size;
    sb.blocks_per_group = BITMAP_BITS;
    sb.clusters_per_group = BITMAP_BITS;
    sb.set_features(options.features);
    sb.first_ino = FIRST_INODE;
    sb.inode_size = options.inode_bytes;
    if options.inode_bytes > 128 {
        sb.min_extra_isize = (INODE_BYTES_KNOWN - INODE_BYTES_OLD) as u16;
        sb.want_extra_isize = sb.min_extra_isize;
    }
    sb.desc_size = if on(Feature::BIT64) { 64 } else { 0 };
    sb.log_groups_per_flex = if on(Feature::FLEX_BG) { LOG_FLEX_GROUPS } else { 0 };
    sb.default_mount_opts = MOUNT_OPTIONS;
    sb.flags = FLAG_SIGNED_HASH;
    sb.def_hash_version = HashVersion::HalfMd4 { unsigned: false }.number();
    sb.hash_seed = std::array::from_fn(|i| {
        u32::from_le_bytes(std::array::from_fn(|byte| options.hash_seed[4 * i + byte]))
    });
    sb.uuid = options.uuid;
    sb.volume_name[..options.label.len()].copy_from_slice(options.label.as_bytes());
    let now = options.now.seconds as u32;
    let upper = (options.now.seconds >> 32) as u8;
    (sb.mkfs_time, sb.lastcheck, sb.wtime) = (now, now, now);
    (sb.mkfs_time_hi, sb.lastcheck_hi, sb.wtime_hi) = (upper, upper, upper);
    if on(Feature::METADATA_CSUM) {
        sb.checksum_type = 1;
    }
    if on(Feature::METADATA_CSUM_SEED) {
        sb.checksum_seed = CsumSeed::of_uuid(&sb.uuid).0;
    }
    sb
}

/// Inodes that each group must have.
fn inodes_share(sb: &Superblock, inodes: u64) -> u64 {
    inodes.div_ceil(sb.groups().into())
}

/// Shares at least so many inodes out among the groups, filling blocks of the tables. Whether bitmaps
/// have bits for them.
fn set_inodes(sb: &mut Superblock, inodes: u64) -> bool {
    let share = inodes_share(sb, inodes);
    if share > BITMAP_BITS.into() {
        return false;
    }
    let per_block = (BLOCK_BYTES / sb.inode_bytes()) as u64;
    let groups = u64::from(sb.groups());
    let most = u64::from(BITMAP_BITS).min(u64::from(u32::MAX) / groups);
    let filled = share.min(most).next_multiple_of(per_block);
    let filled = if filled > most { filled - per_block } else { filled };
    sb.inodes_per_group = (filled.max(8) & !7) as u32;
    sb.inodes_count = sb.inodes_per_group * groups as u32;
    sb.reserved_gdt_blocks = reserved_gdt_blocks(sb);
    true
}

/// Room for the descriptors of a file system that grew by 1,024, or to 16 TiB.
fn reserved_gdt_blocks(sb: &Superblock) -> u16 {
    if !sb.has(Feature::RESIZE_INODE) {
        return 0;
    }
    let all = u64::from(u32::MAX);
    let grown = if sb.blocks_count < all / 1024 { sb.blocks_count * 1024 } else { all };
    let groups = grown.div_ceil(sb.blocks_per_group.into());
    let blocks = groups.div_ceil(sb.descs_per_block().into());
    blocks.saturating_sub(sb.desc_blocks().into()).min(POINTERS) as u16
}

/// Whether the last group is large enough to be worth its bookkeeping.
fn last_group_is_worth(sb: &Superblock) -> Result<bool, MkfsError> {
    let last = sb.groups() - 1;
    let blocks = sb.blocks_count % u64::from(sb.blocks_per_group);
    let overhead = 2 + sb.inode_table_blocks() + sb.superblock_blocks(last);
    let least = u64::from(overhead) + LAST_GROUP_BLOCKS_MIN;
    if blocks == 0 || blocks >= least {
        return Ok(true);
    }
    if last > 0 {
        return Ok(false);
    }
    Err(MkfsError::Options(format!("{blocks} blocks are too few: {least} are needed")))
}
