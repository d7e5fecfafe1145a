//! What the superblock says of how the file system was left, and that its fields agree with its features.
//! What it takes to compute with it was looked at when it was read.

use super::checker::Checker;
use crate::ext4::format::*;

/// Bytes of an inode that reach its whole checksum, counted from behind the old ones.
const EXTRA_BYTES_MIN: u16 = 4;

impl Checker {
    pub(super) fn check_superblock(&mut self) {
        let sb = &self.sb;
        let extra_fits = |bytes: u16| {
            let room = usize::from(sb.inode_size).saturating_sub(INODE_BYTES_OLD);
            let sound = bytes >= EXTRA_BYTES_MIN && bytes.is_multiple_of(4);
            bytes == 0 || room == 0 || (sound && usize::from(bytes) <= room)
        };
        let rules = [
            (
                sb.has(Feature::NEEDS_RECOVERY),
                "needs recovery: the journal was not replayed, which mounting does",
            ),
            (sb.state & STATE_ERRORS != 0, "the error flag is set"),
            (sb.r_blocks_count > sb.blocks_count / 2, "reserves more than half of the blocks"),
            (
                !extra_fits(sb.min_extra_isize) || !extra_fits(sb.want_extra_isize),
                "extra fields do not fit the inodes",
            ),
            (
                sb.has(Feature::METADATA_CSUM) && sb.has(Feature::UNINIT_BG),
                "metadata_csum and uninit_bg exclude each other",
            ),
            (
                sb.has(Feature::METADATA_CSUM_SEED) && !sb.has(Feature::METADATA_CSUM),
                "metadata_csum_seed requires metadata_csum",
            ),
            (
                sb.reserved_gdt_blocks > 0 && !sb.has(Feature::RESIZE_INODE),
                "room for descriptors is reserved, which the features do not allow",
            ),
            (self.names_another_journal(), "refers to a journal that does not exist"),
        ];
        for (broken, what) in rules {
            if broken {
                self.report.find(Place::Superblock(0), what);
            }
        }
        if self.sb.has(Feature::HAS_JOURNAL) && self.sb.journal_inum != JOURNAL_INODE {
            let inode = self.sb.journal_inum;
            let what = format!("the journal is inode {inode}, not {JOURNAL_INODE}");
            self.report.find(Place::Superblock(0), what);
        }
    }

    fn names_another_journal(&self) -> bool {
        let sb = &self.sb;
        let elsewhere = sb.journal_dev != 0 || sb.journal_uuid != [0; 16];
        elsewhere || (sb.journal_inum != 0 && !sb.has(Feature::HAS_JOURNAL))
    }
}
