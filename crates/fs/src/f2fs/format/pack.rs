//! The plan of a checkpoint pack: which of its blocks is what. Follows `do_checkpoint` in
//! fs/f2fs/checkpoint.c and `sum_blk_addr` in fs/f2fs/segment.c.
//!
//! In order: the checkpoint block; payload; orphans; summaries of the data logs, in three blocks, or
//! compacted in one or two; summaries of the node logs, in three blocks, if the volume was unmounted or
//! left for a fast boot; the checkpoint block again. NAT bits end the pack's segment, if there are any.

use super::BLOCKS_PER_SEGMENT;
use super::checkpoint::{CP_COMPACT_SUM, CP_FASTBOOT, CP_UMOUNT, Checkpoint};
use super::error::{FormatError, Place};
use super::layout::Layout;
use super::summary::COMPACT_BLOCKS_MAX;
use std::ops::Range;

/// Logs of data, and logs of nodes: each has one summary block.
const LOGS: u32 = 3;

/// Which block of a pack is what. Blocks are counted from the pack's first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PackPlan {
    /// Payload: the SIT's version bitmap.
    pub payload: Range<u32>,
    /// Orphans.
    pub orphans: Range<u32>,
    /// Summaries of the data logs.
    pub data: Range<u32>,
    /// Whether they are compacted; else they are of the hot, the warm and the cold log.
    pub compact: bool,
    /// Summaries of the node logs: hot, warm and cold; or none.
    pub nodes: Range<u32>,
    /// The checkpoint block once more.
    pub last: u32,
}

impl PackPlan {
    /// The plan of a pack with so many blocks of orphans. `compact` is the number of blocks that
    /// compacted summaries take, `None` if they are not; `nodes` whether node summaries are written.
    /// `None` if the pack does not fit its segment.
    #[must_use]
    pub fn new(layout: &Layout, orphans: u32, compact: Option<u32>, nodes: bool) -> Option<Self> {
        let payload = 1..1 + layout.payload_blocks();
        let orphans = payload.end..payload.end.checked_add(orphans)?;
        let data = orphans.end..orphans.end.checked_add(compact.unwrap_or(LOGS))?;
        let nodes = data.end..data.end.checked_add(if nodes { LOGS } else { 0 })?;
        let last = nodes.end;
        let plan = Self { payload, orphans, data, compact: compact.is_some(), nodes, last };
        (last < BLOCKS_PER_SEGMENT).then_some(plan)
    }

    /// The plan of a pack by its checkpoint. `pack` is the pack it lies in, 0 or 1.
    ///
    /// # Errors
    /// Parts that do not fit the pack, or that do not fit each other.
    pub fn of(checkpoint: &Checkpoint, layout: &Layout, pack: u32) -> Result<Self, FormatError> {
        let corrupt = |at, what| FormatError::corrupt(Place::Checkpoint(pack), at, what);
        let total = checkpoint.cp_pack_total_block_count;
        if total > BLOCKS_PER_SEGMENT {
            return Err(corrupt(0x88, "pack is larger than its segment"));
        }
        let payload = layout.payload_blocks();
        let summaries = checkpoint.cp_pack_start_sum;
        let orphans = summaries.checked_sub(1 + payload);
        let orphans = orphans.ok_or(corrupt(0x8c, "summaries lie over the payload"))?;
        let nodes = checkpoint.has(CP_UMOUNT | CP_FASTBOOT);
        let others = 1 + if nodes { LOGS } else { 0 };
        let data = total.checked_sub(others).and_then(|end| end.checked_sub(summaries));
        let data = data.ok_or(corrupt(0x88, "pack has no room for its summaries"))?;
        let compact = checkpoint.has(CP_COMPACT_SUM);
        let sound = if compact { (1..=COMPACT_BLOCKS_MAX).contains(&data) } else { data == LOGS };
        if !sound {
            return Err(corrupt(0x8c, "summaries of the data logs take another number of blocks"));
        }
        let plan = Self::new(layout, orphans, compact.then_some(data), nodes);
        plan.ok_or(corrupt(0x88, "pack is larger than its segment"))
    }

    /// Blocks of the pack, NAT bits not counted.
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        self.last + 1
    }

    /// Notes the plan in a checkpoint: the number of blocks, where summaries begin, and the flags that
    /// follow. `unmounted` says whether node summaries are there since the volume was unmounted, or
    /// since it is left for a fast boot.
    pub fn note(&self, checkpoint: &mut Checkpoint, unmounted: bool) {
        checkpoint.cp_pack_total_block_count = self.blocks();
        checkpoint.cp_pack_start_sum = self.data.start;
        checkpoint.ckpt_flags &= !(CP_COMPACT_SUM | CP_UMOUNT | CP_FASTBOOT);
        if self.compact {
            checkpoint.ckpt_flags |= CP_COMPACT_SUM;
        }
        if !self.nodes.is_empty() {
            checkpoint.ckpt_flags |= if unmounted { CP_UMOUNT } else { CP_FASTBOOT };
        }
    }
}
