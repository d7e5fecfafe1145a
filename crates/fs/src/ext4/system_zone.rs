//! The blocks that the format keeps for itself: superblock copies with descriptors, bitmaps, inode
//! tables and the log. No file may lead there, whatever a damaged volume says, or writing a file would
//! write over what all files need. Source: fs/ext4/block_validity.c (system zones).

use super::error::corrupt;
use super::format::{ExtentEntries, ExtentNode, GroupDescriptor, Place, Superblock};
use super::journal::LogExtents;
use crate::contract::Result;
use std::ops::Range;

/// Which blocks these are.
pub(crate) struct SystemZone {
    /// Runs of them, in order and apart.
    runs: Vec<Range<u64>>,
    /// Blocks of the volume.
    volume: u64,
}

impl SystemZone {
    /// Of a volume with these groups and this log.
    ///
    /// # Errors
    /// [`FsError::Corrupt`](crate::contract::FsError::Corrupt) if two of its parts overlap.
    pub(crate) fn new<'a>(
        sb: &Superblock,
        groups: impl Iterator<Item = &'a GroupDescriptor>,
        log: &LogExtents,
    ) -> Result<Self> {
        let table = u64::from(sb.inode_table_blocks());
        let of_group = |(number, desc): (u32, &GroupDescriptor)| {
            let first = sb.group_first_block(number);
            [
                first..first + u64::from(sb.superblock_blocks(number)),
                desc.block_bitmap..desc.block_bitmap + 1,
                desc.inode_bitmap..desc.inode_bitmap + 1,
                desc.inode_table..desc.inode_table + table,
            ]
        };
        let mut all: Vec<Range<u64>> = (0..).zip(groups).flat_map(of_group).collect();
        all.extend(log.ranges());
        all.retain(|run| !run.is_empty());
        all.sort_unstable_by_key(|run| run.start);
        let mut runs: Vec<Range<u64>> = Vec::new();
        for run in all {
            match runs.last_mut() {
                Some(before) if before.end > run.start => {
                    return Err(corrupt(
                        "two parts of the format overlap",
                        Place::Block(run.start),
                    ));
                }
                Some(before) if before.end == run.start => before.end = run.end,
                _ => runs.push(run),
            }
        }
        Ok(Self { runs, volume: sb.blocks_count })
    }

    /// The parts of `blocks` that are such blocks.
    pub(crate) fn within(&self, blocks: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let first = self.runs.partition_point(|run| run.end <= blocks.start);
        let touching = self.runs[first..].iter().take_while(move |run| run.start < blocks.end);
        touching.map(move |run| run.start.max(blocks.start)..run.end.min(blocks.end))
    }

    /// Whether a file may have these blocks: they are on the volume, and not the format's own.
    pub(crate) fn check(&self, blocks: Range<u64>, place: Place) -> Result<()> {
        let inside = blocks.start < blocks.end && blocks.end <= self.volume;
        if inside && self.within(blocks).next().is_none() {
            return Ok(());
        }
        Err(corrupt("blocks that no file can have", place))
    }

    /// The same for all blocks that a node of an extent tree leads to.
    pub(crate) fn check_node(&self, node: &ExtentNode, place: Place) -> Result<()> {
        match &node.entries {
            ExtentEntries::Leaf(extents) => {
                extents.iter().try_for_each(|e| self.check(e.start..e.end(), place))
            }
            ExtentEntries::Index { entries, .. } => {
                entries.iter().try_for_each(|e| self.check(e.node..e.node + 1, place))
            }
        }
    }
}
