//! The journal: where it should be, sound, and empty.

use super::volume::Volume;
use crate::ext4::format::*;
use crate::ext4::journal::disk::Superblock as LogSuperblock;
use nandscape_block::BlockError;

impl Volume {
    /// What the superblock says about how the file system was left.
    pub(super) fn check_state(&mut self) {
        let place = Place::Superblock(0);
        if self.sb.has(Feature::NEEDS_RECOVERY) {
            let what = "needs recovery: the journal was not replayed, which mounting does";
            self.report.find(place, what);
        }
        if self.sb.state & STATE_ERRORS != 0 {
            self.report.find(place, "says that errors were found");
        }
        if self.sb.has(Feature::HAS_JOURNAL) && self.sb.journal_inum != JOURNAL_INODE {
            let what =
                format!("the journal is inode {}, not {JOURNAL_INODE}", self.sb.journal_inum);
            self.report.find(place, what);
        }
    }

    /// The journal's superblock and place.
    pub(super) async fn check_journal(&mut self) -> Result<(), BlockError> {
        if !self.sb.has(Feature::HAS_JOURNAL) {
            return Ok(());
        }
        let place = Place::Inode(JOURNAL_INODE);
        let blocks: u64 = self.journal.iter().map(|extent| u64::from(extent.blocks)).sum();
        let Some(first) = self.journal.first().map(|extent| extent.start) else {
            self.report.find(place, "has no blocks, but is the journal");
            return Ok(());
        };
        if self.journal.last().is_some_and(|last| last.logical_end() != blocks) {
            self.report.find(place, "has holes, but is the journal");
        }
        if first >= self.sb.blocks_count {
            return Ok(());
        }
        let raw = self.read(first).await?;
        match LogSuperblock::parse(raw, blocks) {
            Err(error) => self.report.find(place, error.to_string()),
            Ok(log) if log.errno() != 0 => {
                self.report.find(place, format!("the journal was aborted, error {}", log.errno()));
            }
            Ok(log) if log.start().block != 0 && !self.sb.has(Feature::NEEDS_RECOVERY) => {
                self.report.find(place, "the journal holds transactions, the superblock denies it");
            }
            Ok(_) => {}
        }
        Ok(())
    }
}
