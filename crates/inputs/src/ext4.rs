//! Images of ext4 in which a few words of metadata, or of the journal, are replaced. The first byte chooses the volume.

use crate::volume::{Variant, Volume, try_damaged};
use nandscape_fs::FsKind;
use nandscape_fs::ext4::format::{SUPERBLOCK_AT, SUPERBLOCK_BYTES, crc32c};

/// Sectors of a volume.
const SECTORS: u64 = 4_096;
/// Where the checksum of a superblock stands in it.
const CHECKSUM_AT: usize = SUPERBLOCK_BYTES - 4;

const NO_SUMS: &str = "^metadata_csum";
const VARIANTS: [Variant; 6] = [
    Variant { features: &[NO_SUMS], choices: &[], gc_journal: false, clean: true },
    Variant { features: &[NO_SUMS], choices: &[], gc_journal: false, clean: false },
    Variant {
        features: &[NO_SUMS],
        choices: &[("data", "journal")],
        gc_journal: false,
        clean: false,
    },
    Variant {
        features: &[NO_SUMS],
        choices: &[("commit", "ijournal")],
        gc_journal: false,
        clean: false,
    },
    Variant {
        features: &[NO_SUMS, "^dir_index", "^64bit", "^flex_bg"],
        choices: &[("data", "writeback")],
        gc_journal: false,
        clean: false,
    },
    Variant { features: &[], choices: &[], gc_journal: false, clean: false },
];

/// Structures that are shown.
const SHOWN: [&str; 9] = [
    "super",
    "groups",
    "journal",
    "inode 2",
    "inode 12",
    "directory 2",
    "directory 12",
    "extents 8",
    "extents 12",
];

thread_local! {
    static VOLUMES: [Volume; VARIANTS.len()] =
        VARIANTS.each_ref().map(|variant| Volume::new(FsKind::Ext4, SECTORS, variant));
}

/// Recomputes the checksum of a superblock; nothing else has one on most of these volumes.
fn seal(_: &[u8; 4096], block: &mut [u8; 4096]) {
    let superblock = &mut block[SUPERBLOCK_AT..SUPERBLOCK_AT + SUPERBLOCK_BYTES];
    if superblock[0x38..0x3a] == [0x53, 0xef] {
        let sum = crc32c(!0, &superblock[..CHECKSUM_AT]);
        superblock[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Damages a volume of ext4 and uses it.
pub fn ext4(input: &[u8]) {
    VOLUMES.with(|volumes| try_damaged(volumes, &SHOWN, seal, input));
}
