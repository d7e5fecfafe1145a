//! The blocks of the GC journal, and which of them count: those that were written after the checkpoint in
//! use, if every sound copy of the superblock is marked.

use super::{F2fsImage, RawError};
use crate::f2fs::format::*;
pub use crate::f2fs::gc_journal::read::GcJournalBlock;
use crate::f2fs::gc_journal::read::blocks_that_count;

impl F2fsImage {
    /// The blocks of the GC journal that count, from the first of the area on: those of the checkpoint in
    /// use, up to one that is of another checkpoint or unsound. None without a mark.
    ///
    /// # Errors
    /// Errors of the device.
    pub async fn gc_journal_blocks(&self) -> Result<Vec<GcJournalBlock>, RawError> {
        let Some(live) = self.sb.gc_journal().zip(self.gc_journal_live) else {
            return Ok(Vec::new());
        };
        let version = self.checkpoint.checkpoint_ver;
        Ok(blocks_that_count(&self.reader, live, version, false).await?)
    }

    /// Every block of the GC journal that is not zeroes, with its place in the area, as it stands. Its magic
    /// says which format it has.
    ///
    /// # Errors
    /// Errors of the device.
    pub async fn gc_journal_all(
        &self,
    ) -> Result<Vec<(u32, Result<GcJournalBlock, FormatError>)>, RawError> {
        let mut blocks = Vec::new();
        let Some(area) = self.sb.gc_journal() else { return Ok(blocks) };
        for (index, at) in (0..).zip(area.blocks().start.0..area.blocks().end.0) {
            let bytes = self.reader.block(at.into()).await?;
            if *bytes == [0; BLOCK_BYTES] {
                continue;
            }
            let format = match crate::wire::u32_at(&bytes[..], 0) {
                SAFE_MAGIC => GcJournalFormat::Safe,
                _ => GcJournalFormat::Paper,
            };
            let block = match area.zone_blocks() {
                Some(_) => GcJournalBlock::parse_any(&bytes[..], format),
                None => GcJournalBlock::parse(&bytes[..], index, format),
            };
            blocks.push((index, block));
        }
        Ok(blocks)
    }
}
