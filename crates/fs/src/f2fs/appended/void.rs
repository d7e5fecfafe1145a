//! What a mount finds void: ranges of an append-only address space that nothing needs, and their discards.

use crate::contract::Result;
use crate::f2fs::append::AppendSpace;
use crate::f2fs::format::{BLOCKS_PER_SEGMENT, BlockAddr, SegNo, SpaceSection, ValidMap};
use crate::f2fs::mount_info::MountInfo;
use crate::f2fs::segment::Segments;
use nandscape_block::{Bio, Lba};
use nandscape_rt::combine::in_turn;
use std::collections::BTreeSet;
use std::ops::Range;

/// Discards that are sent together at mount.
const TOGETHER: usize = 512;

/// Ranges in order, joined where they meet, but for blocks that are left out.
pub(super) struct Void<'a> {
    ranges: Vec<Range<u64>>,
    without: &'a BTreeSet<BlockAddr>,
}

impl<'a> Void<'a> {
    pub(super) const fn without(without: &'a BTreeSet<BlockAddr>) -> Self {
        Self { ranges: Vec::new(), without }
    }

    fn add(&mut self, range: Range<BlockAddr>) {
        let mut start = range.start;
        for kept in self.without.range(range.clone()) {
            self.join(start..*kept);
            start = BlockAddr(kept.0 + 1);
        }
        self.join(start..range.end);
    }

    fn join(&mut self, range: Range<BlockAddr>) {
        let range = u64::from(range.start.0)..u64::from(range.end.0);
        match self.ranges.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
    }

    /// Adds the blocks of a section from `from` on that nothing needs.
    pub(super) fn add_section(
        &mut self,
        segments: &Segments,
        section: SpaceSection,
        from: BlockAddr,
        per_section: u32,
    ) {
        let Some(start) = segments.section_start(section) else { return };
        let slot = segments.slot_of(section);
        for step in 0..per_section {
            let first = start.0 + step * BLOCKS_PER_SEGMENT;
            let needed = slot.map(|slot| segments.needed(SegNo(slot * per_section + step)));
            let free = ValidMap::full().without(&needed.unwrap_or_default());
            let mut at = from.0.saturating_sub(first).min(BLOCKS_PER_SEGMENT);
            while let Some(begin) = free.next_set(at) {
                let end = free.next_clear(begin).unwrap_or(BLOCKS_PER_SEGMENT);
                self.add(BlockAddr(first + begin)..BlockAddr(first + end));
                at = end;
            }
        }
    }
}

impl Void<'_> {
    /// Discards what is void, and waits for it.
    pub(super) async fn discard(self, mount: &MountInfo, append: &AppendSpace) -> Result<()> {
        for some in self.ranges.chunks(TOGETHER) {
            let discard = |range: &Range<u64>| {
                let blocks = range.end - range.start;
                append.count(|counts| counts.mount_discarded_blocks += blocks);
                mount.env.device.submit(Bio::discard(Lba(range.start), blocks as u32))
            };
            let replies: Vec<_> = some.iter().map(discard).collect();
            for reply in in_turn(replies).await {
                reply?;
            }
        }
        Ok(())
    }
}
