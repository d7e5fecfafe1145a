//! Images of F2FS in which a few words of metadata, or of nodes that a mount rolls forward, are replaced. The first byte
//! chooses the volume.

use crate::volume::{Variant, Volume, try_damaged};
use nandscape_fs::FsKind;
use nandscape_fs::f2fs::format::{Checkpoint, SUPERBLOCK_MAGIC, crc32};

/// Sectors of a volume.
const SECTORS: u64 = 64 << 8;
/// Where a checkpoint says where its checksum stands, and where that may be.
const CHECKSUM_OFFSET_AT: usize = 0xa4;
const CHECKSUM_AT: std::ops::RangeInclusive<usize> = 0xc0..=4092;

const VARIANTS: [Variant; 5] = [
    Variant { features: &[], choices: &[], gc_journal: false, clean: true },
    Variant { features: &[], choices: &[], gc_journal: false, clean: false },
    Variant {
        features: &["extra_attr", "flexible_inline_xattr"],
        choices: &[],
        gc_journal: false,
        clean: false,
    },
    Variant {
        features: &[],
        choices: &[("allocation", "adaptive")],
        gc_journal: false,
        clean: false,
    },
    Variant {
        features: &[],
        choices: &[("reclaim", "gc-journal")],
        gc_journal: true,
        clean: false,
    },
];

/// Structures that are shown.
const SHOWN: [&str; 14] = [
    "super",
    "checkpoint",
    "gc-journal",
    "tree",
    "inode 3",
    "inode 4",
    "nat 3",
    "nat 4",
    "sit 0",
    "sit 3",
    "ssa 0",
    "ssa 3",
    "node 3",
    "node 5",
];

thread_local! {
    static VOLUMES: [Volume; VARIANTS.len()] =
        VARIANTS.each_ref().map(|variant| Volume::new(FsKind::F2fs, SECTORS, variant));
}

/// Recomputes the checksum of what was a checkpoint.
fn seal(before: &[u8; 4096], block: &mut [u8; 4096]) {
    let offset =
        block[CHECKSUM_OFFSET_AT..].first_chunk().map_or(0, |at| u32::from_le_bytes(*at)) as usize;
    if Checkpoint::parse(before, 0).is_ok() && CHECKSUM_AT.contains(&offset) {
        let register = crc32(SUPERBLOCK_MAGIC, &block[..offset]);
        let sum = crc32(register, &block[offset + 4..]);
        block[offset..offset + 4].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Damages a volume of F2FS and uses it.
pub fn f2fs(input: &[u8]) {
    VOLUMES.with(|volumes| try_damaged(volumes, &SHOWN, seal, input));
}
