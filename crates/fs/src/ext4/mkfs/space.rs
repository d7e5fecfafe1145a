//! Which blocks are taken while a file system is made, as a set of runs; and the searches that
//! libext2fs places things by.

use std::collections::BTreeMap;
use std::ops::Range;

/// Runs of blocks that are taken: their first block, and the one behind.
pub(super) struct Space {
    blocks: u64,
    taken: BTreeMap<u64, u64>,
}

impl Space {
    pub(super) const fn new(blocks: u64) -> Self {
        Self { blocks, taken: BTreeMap::new() }
    }

    /// Takes a run that is free.
    pub(super) fn take(&mut self, run: Range<u64>) {
        let before = self.taken.range(..=run.start).next_back().map(|(start, end)| (*start, *end));
        let start =
            before.filter(|(_, end)| *end == run.start).map_or(run.start, |(start, _)| start);
        let end = self.taken.remove(&run.end).unwrap_or(run.end);
        self.taken.insert(start, end);
    }

    /// Blocks that are taken.
    pub(super) fn used(&self) -> u64 {
        self.taken.iter().map(|(start, end)| end - start).sum()
    }

    /// The parts of a run that are taken.
    pub(super) fn taken_in(&self, run: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let first = self.taken.range(..run.start).next_back();
        let rest = self.taken.range(run.clone());
        let parts = first
            .into_iter()
            .chain(rest)
            .map(move |(start, end)| *start.max(&run.start)..*end.min(&run.end));
        parts.filter(|part| !part.is_empty())
    }

    /// The first place from `from` on, and before `before`, of `len` free blocks that follow each
    /// other; behind `before` they may go on.
    pub(super) fn find(&self, from: u64, before: u64, len: u64) -> Option<u64> {
        let mut at = from;
        while at < before && at + len <= self.blocks {
            match self.taken_in(at..at + len).last() {
                Some(taken) => at = self.run_end(taken.start),
                None => return Some(at),
            }
        }
        None
    }

    /// Where the run that holds this block ends.
    fn run_end(&self, block: u64) -> u64 {
        self.taken.range(..=block).next_back().map_or(block, |(_, end)| *end)
    }

    /// Takes the first free block from `goal` on, or from the beginning.
    pub(super) fn take_one(&mut self, goal: u64) -> Option<u64> {
        let block = self.find(goal, self.blocks, 1).or_else(|| self.find(0, goal, 1))?;
        self.take(block..block + 1);
        Some(block)
    }

    /// Takes up to `len` free blocks that follow each other, the first run from `goal` on, or from the
    /// beginning.
    pub(super) fn take_up_to(&mut self, goal: u64, len: u64) -> Option<Range<u64>> {
        let start = self.find(goal, self.blocks, 1).or_else(|| self.find(0, goal, 1))?;
        let limit = (start + len).min(self.blocks);
        let end = self.taken.range(start..limit).next().map_or(limit, |(next, _)| *next);
        self.take(start..end);
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Searches find what a walk over an array of flags finds.
        #[test]
        fn searches_agree_with_a_walk(
            requests in proptest::collection::vec((0..100_u64, 1..12_u64), 1..20),
            from in 0..100_u64,
            width in 0..100_u64,
            len in 1..20_u64,
        ) {
            let (mut space, mut flags) = (Space::new(100), [false; 100]);
            for (goal, len) in requests {
                if let Some(run) = space.take_up_to(goal, len) {
                    prop_assert!(flags[run.start as usize..run.end as usize].iter().all(|used| !used));
                    flags[run.start as usize..run.end as usize].fill(true);
                }
            }
            prop_assert_eq!(space.used(), flags.iter().filter(|used| **used).count() as u64);
            let free = |at: u64| flags.get(at as usize..(at + len) as usize).is_some_and(|f| f.iter().all(|used| !used));
            let expected = (from..from + width).find(|at| free(*at));
            prop_assert_eq!(space.find(from, from + width, len), expected);
            let taken: u64 = space.taken_in(from..100).map(|part| part.end - part.start).sum();
            prop_assert_eq!(taken, flags[from as usize..].iter().filter(|used| **used).count() as u64);
        }
    }
}
