//! Discards on their way: blocks that a checkpoint has made void, by segment, until the device has discarded them.
//! Addresses are counted in segments of 512 blocks, at multiples of which regions begin.
//!
//! Invariants: each block that is void is discarded once; what was sent is recorded until it has ended; `blocks` is what
//! waits and what is on its way.

use crate::f2fs::format::{BLOCKS_PER_SEGMENT, BlockAddr, DiscardRecords, ValidMap};
use nandscape_rt::invariant;
use std::collections::BTreeMap;
use std::ops::Range;

/// Discards of a volume.
#[derive(Default)]
pub(crate) struct PendingDiscards {
    /// Those that the checkpoint which is being written makes safe.
    made: Vec<(BlockAddr, ValidMap)>,
    /// Safe, and not sent: by segment.
    ready: BTreeMap<u32, ValidMap>,
    /// Sent, and not ended: first block and number of blocks.
    sent: BTreeMap<u32, u32>,
    blocks: u64,
}

impl PendingDiscards {
    /// A checkpoint that is being written makes these void.
    pub(crate) fn prepare(&mut self, made: Vec<(BlockAddr, ValidMap)>) {
        self.blocks += made.iter().map(|(_, map)| u64::from(map.count())).sum::<u64>();
        self.made.extend(made);
    }

    /// It is durable: they may be sent.
    pub(crate) fn release(&mut self) {
        for (at, map) in std::mem::take(&mut self.made) {
            let known = self.ready.entry(at.0 / BLOCKS_PER_SEGMENT).or_default();
            let before = known.count();
            *known = known.union(&map);
            // What is void twice waits once.
            self.blocks -= u64::from(before + map.count() - known.count());
        }
    }

    /// Adds blocks that may be sent.
    pub(crate) fn add(&mut self, range: Range<BlockAddr>) {
        let mut at = range.start.0;
        while at < range.end.0 {
            let map = self.ready.entry(at / BLOCKS_PER_SEGMENT).or_default();
            let end = (at - at % BLOCKS_PER_SEGMENT + BLOCKS_PER_SEGMENT).min(range.end.0);
            for block in at..end {
                self.blocks += u64::from(!map.set(block % BLOCKS_PER_SEGMENT));
            }
            at = end;
        }
    }

    /// Whether nothing waits that may be sent, and nothing is on its way.
    #[cfg(test)]
    pub(crate) fn is_drained(&self) -> bool {
        self.ready.is_empty() && self.sent.is_empty()
    }

    /// Blocks that wait, or are on their way.
    pub(crate) const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The first ranges that wait, at most so many; they are on their way from now on.
    pub(crate) fn take(&mut self, most: usize) -> Vec<Range<BlockAddr>> {
        let mut ranges: Vec<Range<BlockAddr>> = Vec::new();
        while let Some(entry) = self.ready.first_entry() {
            let first = *entry.key() * BLOCKS_PER_SEGMENT;
            let runs = runs_of(first, entry.get());
            let joins =
                ranges.last().zip(runs.first()).is_some_and(|(last, next)| last.end == next.start);
            if !ranges.is_empty() && ranges.len() + runs.len() - usize::from(joins) > most {
                break;
            }
            entry.remove();
            for run in runs {
                match ranges.last_mut() {
                    Some(last) if last.end == run.start => last.end = run.end,
                    _ => ranges.push(run),
                }
            }
        }
        self.sent.extend(ranges.iter().map(|range| (range.start.0, range.end.0 - range.start.0)));
        ranges
    }

    /// A range has ended.
    pub(crate) fn end(&mut self, range: &Range<BlockAddr>) {
        let sent = self.sent.remove(&range.start.0);
        invariant!(
            sent == Some(range.end.0 - range.start.0),
            "a discard that has ended was on its way: {range:?}"
        );
        self.blocks -= u64::from(sent.unwrap_or(0));
    }

    /// What a checkpoint has to say of them: all that the device may not have got yet.
    pub(crate) fn records(&self) -> DiscardRecords {
        let mut records = DiscardRecords::default();
        let ready =
            self.ready.iter().map(|(segment, map)| (BlockAddr(segment * BLOCKS_PER_SEGMENT), map));
        for (at, map) in ready.chain(self.made.iter().map(|(at, map)| (*at, map))) {
            let runs = runs_of(at.0, map);
            // A range of 8 bytes says as much as a bitmap of 68.
            if runs.len() <= 2 {
                records.ranges.extend(runs)
            } else {
                records.bitmaps.push((at, *map))
            }
        }
        let sent =
            self.sent.iter().map(|(start, blocks)| BlockAddr(*start)..BlockAddr(start + blocks));
        records.ranges.extend(sent);
        invariant!(
            self.is_recorded(&records),
            "what waits or is on its way is in the records: {} blocks",
            self.blocks
        );
        records
    }
}

impl PendingDiscards {
    /// Whether records have as many blocks as wait or are on their way; what is void twice may be there twice.
    fn is_recorded(&self, records: &DiscardRecords) -> bool {
        let of_maps = records.bitmaps.iter().map(|(_, map)| u64::from(map.count()));
        let of_ranges = records.ranges.iter().map(|run| u64::from(run.end.0 - run.start.0));
        of_maps.chain(of_ranges).sum::<u64>() >= self.blocks
    }
}

/// The runs of blocks that are set in the map of a segment.
pub(crate) fn runs_of(first: u32, map: &ValidMap) -> Vec<Range<BlockAddr>> {
    let mut runs = Vec::new();
    let mut from = 0;
    while let Some(start) = map.next_set(from) {
        let end = map.next_clear(start).unwrap_or(BLOCKS_PER_SEGMENT);
        runs.push(BlockAddr(first + start)..BlockAddr(first + end));
        from = end;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Each block that was made void and released, or added, is sent once, in ranges of at most as many as were asked
        /// for where a segment does not have more; records name all that has not ended.
        #[test]
        fn every_block_is_sent_once(
            made in proptest::collection::vec((0..4_u32, proptest::collection::vec(0..512_u32, 1..40)), 0..12),
            added in (0..1_500_u32, 0..700_u32),
            most in 1..60_usize,
        ) {
            let mut pending = PendingDiscards::default();
            let mut expected = BTreeSet::new();
            for (segment, blocks) in made {
                let mut map = ValidMap::default();
                blocks.iter().for_each(|block| { map.set(*block); });
                expected.extend(blocks.iter().map(|block| segment * 512 + block));
                pending.prepare(vec![(BlockAddr(segment * 512), map)]);
            }
            prop_assert!(pending.is_drained());
            pending.release();
            pending.add(BlockAddr(added.0)..BlockAddr(added.0 + added.1));
            expected.extend(added.0..added.0 + added.1);
            prop_assert_eq!(pending.blocks(), expected.len() as u64);
            let mut sent = Vec::new();
            while !pending.is_drained() {
                let ranges = pending.take(most);
                prop_assert!(ranges.len() <= most.max(256));
                let records = pending.records();
                let of_maps = records.bitmaps.iter().flat_map(|(at, map)| runs_of(at.0, map));
                let named: BTreeSet<u32> =
                    of_maps.chain(records.ranges.clone()).flat_map(|run| run.start.0..run.end.0).collect();
                let left: BTreeSet<u32> =
                    expected.iter().copied().filter(|block| !sent.contains(block)).collect();
                prop_assert_eq!(named, left);
                for range in ranges {
                    pending.end(&range);
                    sent.extend(range.start.0..range.end.0);
                }
            }
            prop_assert_eq!(pending.blocks(), 0);
            let unique: BTreeSet<u32> = sent.iter().copied().collect();
            prop_assert_eq!((unique.len(), &unique), (sent.len(), &expected));
        }
    }
}
