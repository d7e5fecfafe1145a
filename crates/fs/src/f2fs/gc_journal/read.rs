//! Blocks of the GC journal on a device, and which of them count: those that were written after the checkpoint in use, if
//! every sound copy of the superblock is marked.

use crate::f2fs::format::{FormatError, GcJournalArea, GcJournalFormat, PaperBlock, SafeBlock};
use crate::image::ImageReader;
use nandscape_block::BlockError;
use std::ops::Range;

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

    /// Reads a block with whatever index it has.
    pub(crate) fn parse_any(bytes: &[u8], format: GcJournalFormat) -> Result<Self, FormatError> {
        Self::parse(bytes, SafeBlock::index_of(bytes), format)
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

/// The blocks of an area that count, in their order, up to one that is not sound or not of the checkpoint
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
    let counts = |block: &GcJournalBlock| any_version || block.checkpoint_ver() == checkpoint_ver;
    for (index, at) in (0..).zip(places(reader, (area, format), checkpoint_ver).await?) {
        let bytes = reader.block(at.into()).await?;
        match GcJournalBlock::parse(&bytes[..], index, format) {
            Ok(block) if counts(&block) => blocks.push(block),
            _ => break,
        }
    }
    Ok(blocks)
}

/// Where blocks of a checkpoint version may lie, in the order in which they were written: from the start of an area, or
/// wherever its zones hold them.
async fn places(
    reader: &ImageReader,
    (area, format): (GcJournalArea, GcJournalFormat),
    checkpoint_ver: u64,
) -> Result<Vec<u32>, BlockError> {
    let all = area.blocks().start.0..area.blocks().end.0;
    let Some(zone) = area.zone_blocks() else { return Ok(all.collect()) };
    let mut runs = Vec::new();
    for start in all.step_by(zone as usize) {
        let is_written = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
        let end = first_not(reader, start..start + zone, is_written).await?;
        let is_older = |bytes: &[u8]| match GcJournalBlock::parse_any(bytes, format) {
            Ok(block) => block.checkpoint_ver() < checkpoint_ver,
            Err(_) => true,
        };
        let first = first_not(reader, start..end, is_older).await?;
        runs.push((first == start, first..end));
    }
    // The blocks of a version fit a zone, so a run from the start of one goes on with that of the other.
    runs.sort_by_key(|(goes_on, run)| *goes_on && !run.is_empty());
    Ok(runs.into_iter().flat_map(|(_, run)| run).collect())
}

/// The first block of a range for which `holds` does not hold, if it holds for none after that.
async fn first_not(
    reader: &ImageReader,
    range: Range<u32>,
    holds: impl Fn(&[u8]) -> bool,
) -> Result<u32, BlockError> {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start + (end - start) / 2;
        if holds(&reader.block(middle.into()).await?[..]) {
            start = middle + 1
        } else {
            end = middle
        }
    }
    Ok(start)
}
