//! The journal: where it should be, sound, and empty.

use super::checker::Checker;
use crate::ext4::format::*;
use crate::ext4::journal::disk::Superblock as LogSuperblock;
use nandscape_block::BlockError;

/// Blocks that Linux wants of a log.
const LOG_BLOCKS_MIN: u64 = 1_024;

impl Checker {
    /// The journal's superblock and place.
    pub(super) async fn check_journal(&mut self) -> Result<(), BlockError> {
        if !self.sb.has(Feature::HAS_JOURNAL) {
            return Ok(());
        }
        let place = Place::Inode(JOURNAL_INODE);
        let blocks = extent_blocks(&self.journal);
        let Some(first) = self.journal.first().map(|extent| extent.start) else {
            self.report.find(place, "is the journal, but has no blocks");
            return Ok(());
        };
        if self.journal.last().is_some_and(|last| last.logical_end() != blocks) {
            self.report.find(place, "is the journal, but has holes");
        }
        let bytes = self.journal_bytes;
        let whole = bytes / BLOCK_BYTES as u64;
        if whole < LOG_BLOCKS_MIN || bytes > blocks * BLOCK_BYTES as u64 {
            self.report.find(place, format!("a journal of {bytes} bytes, with {blocks} blocks"));
        }
        if first >= self.sb.blocks_count {
            return Ok(());
        }
        let raw = self.read(first).await?;
        match LogSuperblock::parse(raw, blocks.min(whole)) {
            Err(error) => self.report.find(place, error.to_string()),
            Ok(log) if log.errno() != 0 => {
                self.report.find(place, format!("the journal was aborted, error {}", log.errno()));
            }
            Ok(log) if log.has_foreign_fields() => {
                self.report.find(place, "the journal says what its kind does not know");
            }
            Ok(log) if log.start().block != 0 && !self.sb.has(Feature::NEEDS_RECOVERY) => {
                self.report.find(
                    place,
                    "the journal holds transactions, but the superblock does not say so",
                );
            }
            Ok(_) => {}
        }
        Ok(())
    }
}
