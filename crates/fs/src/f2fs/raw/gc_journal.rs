//! The blocks of the GC journal, and which of them count: those that were written after the checkpoint in
//! use, if every sound copy of the superblock is marked.

use super::{F2fsImage, RawError};
use crate::f2fs::format::*;

/// A block of the GC journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GcJournalBlock {
    /// As the paper prints it.
    Paper(PaperBlock),
    /// In the safe format.
    Safe(SafeBlock),
}

impl GcJournalBlock {
    /// Reads block `index` of the area.
    fn parse(bytes: &[u8], index: u32, format: GcJournalFormat) -> Result<Self, FormatError> {
        match format {
            GcJournalFormat::Paper => PaperBlock::parse(bytes, index).map(Self::Paper),
            GcJournalFormat::Safe => SafeBlock::parse(bytes, index).map(Self::Safe),
        }
    }

    /// Version of the last checkpoint when it was written.
    #[must_use]
    pub const fn checkpoint_ver(&self) -> u64 {
        match self {
            Self::Paper(block) => block.checkpoint_ver,
            Self::Safe(block) => block.checkpoint_ver,
        }
    }

    /// Its moves.
    #[must_use]
    pub fn entries(&self) -> usize {
        match self {
            Self::Paper(block) => block.entries.len(),
            Self::Safe(block) => block.entries.len(),
        }
    }
}

impl F2fsImage {
    /// The blocks of the GC journal that count, from the first of the area on: those of the checkpoint in
    /// use, up to one that is of another checkpoint or unsound. None without a mark.
    ///
    /// # Errors
    /// Errors of the device.
    pub async fn gc_journal_blocks(&self) -> Result<Vec<GcJournalBlock>, RawError> {
        let mut blocks = Vec::new();
        let area = self.sb.gc_journal();
        let Some((area, format)) = area.zip(self.gc_journal_live) else { return Ok(blocks) };
        for (index, at) in (0..).zip(area.blocks().start.0..area.blocks().end.0) {
            let bytes = self.reader.block(at.into()).await?;
            match GcJournalBlock::parse(&bytes[..], index, format) {
                Ok(block) if block.checkpoint_ver() == self.checkpoint.checkpoint_ver => {
                    blocks.push(block);
                }
                _ => break,
            }
        }
        Ok(blocks)
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
            if bytes.iter().all(|byte| *byte == 0) {
                continue;
            }
            let format = match crate::wire::u32_at(&bytes[..], 0) {
                SAFE_MAGIC => GcJournalFormat::Safe,
                _ => GcJournalFormat::Paper,
            };
            blocks.push((index, GcJournalBlock::parse(&bytes[..], index, format)));
        }
        Ok(blocks)
    }
}
