//! Blocks of the GC journal on a device, and which of them count: those that were written after the checkpoint in use, if
//! every sound copy of the superblock is marked.

use crate::f2fs::format::{FormatError, GcJournalArea, GcJournalFormat, PaperBlock, SafeBlock};
use crate::image::ImageReader;
use nandscape_block::BlockError;

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
    pub(crate) fn parse(
        bytes: &[u8],
        index: u32,
        format: GcJournalFormat,
    ) -> Result<Self, FormatError> {
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

/// The blocks of an area that count, from its first one on, up to one that is not sound or not of the checkpoint
/// version. `any_version`: of any version, which breaks a rule.
///
/// # Errors
/// Errors of the device.
pub(crate) async fn blocks_that_count(
    reader: &ImageReader,
    (area, format): (GcJournalArea, GcJournalFormat),
    checkpoint_ver: u64,
    any_version: bool,
) -> Result<Vec<GcJournalBlock>, BlockError> {
    let mut blocks = Vec::new();
    for (index, at) in (0..).zip(area.blocks().start.0..area.blocks().end.0) {
        let bytes = reader.block(at.into()).await?;
        match GcJournalBlock::parse(&bytes[..], index, format) {
            Ok(block) if any_version || block.checkpoint_ver() == checkpoint_ver => {
                blocks.push(block);
            }
            _ => break,
        }
    }
    Ok(blocks)
}
