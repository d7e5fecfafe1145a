//! What replay, and an FTL that keeps several kinds of tables, need of a logical-to-physical table.

use super::l2p::{L2p, MapEntry};
use nandscape_block::Lba;
use std::ops::Range;

/// A logical-to-physical table of mapping units.
pub trait Table {
    /// Where a unit is.
    fn get(&self, unit: Lba) -> MapEntry;

    /// Stores `place` and returns what it replaces.
    fn replace(&mut self, unit: Lba, place: MapEntry) -> MapEntry;

    /// End of the units: their numbers are below it.
    fn end(&self) -> u64;

    /// The first of these units that is mapped.
    fn next_mapped(&self, units: Range<u64>) -> Option<u64>;

    /// The first of these units that is not mapped.
    fn next_unmapped(&self, units: Range<u64>) -> Option<u64>;

    /// Each of these units that is mapped, in order.
    fn mapped_in(&self, units: Range<u64>) -> impl Iterator<Item = u64> {
        let mut from = units.start;
        std::iter::from_fn(move || {
            let unit = self.next_mapped(from..units.end)?;
            from = unit + 1;
            Some(unit)
        })
    }

    /// The runs of these units that are not mapped, in order.
    fn unmapped_runs(&self, units: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut from = units.start;
        std::iter::from_fn(move || {
            let start = self.next_unmapped(from..units.end)?;
            from = self.next_mapped(start..units.end).unwrap_or(units.end);
            Some(start..from)
        })
    }
}

impl Table for L2p {
    #[inline]
    fn get(&self, unit: Lba) -> MapEntry {
        Self::get(self, unit)
    }

    #[inline]
    fn replace(&mut self, unit: Lba, place: MapEntry) -> MapEntry {
        Self::replace(self, unit, place)
    }

    fn end(&self) -> u64 {
        self.len()
    }

    fn next_mapped(&self, mut units: Range<u64>) -> Option<u64> {
        units.find(|&unit| Self::get(self, Lba(unit)) != MapEntry::Unmapped)
    }

    fn next_unmapped(&self, mut units: Range<u64>) -> Option<u64> {
        units.find(|&unit| Self::get(self, Lba(unit)) == MapEntry::Unmapped)
    }
}

/// A set of numbers, as runs.
#[derive(Default, Debug)]
pub(crate) struct RunSet(std::collections::BTreeMap<u64, u64>);

impl RunSet {
    /// Adds a run; the parts of it that were not in the set, in order.
    pub(crate) fn add(&mut self, run: Range<u64>) -> Vec<Range<u64>> {
        let (mut from, mut start, mut end) = (run.start, run.start, run.end);
        let mut news = Vec::new();
        let before = self.0.range(..run.start).next_back().map(|(first, _)| *first);
        let touching: Vec<_> = self
            .0
            .range(before.unwrap_or(run.start)..=run.end)
            .map(|(&first, &end)| (first, end))
            .filter(|&(_, end)| end >= run.start)
            .collect();
        for (first, last) in touching {
            if from < first.min(run.end) {
                news.push(from..first.min(run.end));
            }
            from = from.max(last);
            (start, end) = (start.min(first), end.max(last));
            self.0.remove(&first);
        }
        if from < run.end {
            news.push(from..run.end);
        }
        self.0.insert(start, end);
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The set is what the runs cover, and each addition finds what it adds.
    #[test]
    fn a_run_set_knows_what_is_new() {
        let mut set = RunSet::default();
        let mut add = |run| set.add(run).into_iter().map(|run| (run.start, run.end)).collect();
        let news: [Vec<_>; 5] = [add(10..20), add(30..40), add(12..18), add(5..35), add(40..41)];
        assert_eq!(
            news,
            [vec![(10, 20)], vec![(30, 40)], vec![], vec![(5, 10), (20, 30)], vec![(40, 41)]]
        );
        assert_eq!(set.0.into_iter().collect::<Vec<_>>(), [(5, 41)]);
    }

    /// Runs and mapped units alternate, to the end of what is asked for.
    #[test]
    fn runs_of_a_table() {
        let mut table = L2p::new(20, 1 << 20).expect("address space");
        for unit in [0, 5, 6, 19] {
            table.replace(Lba(unit), MapEntry::Buffered(1));
        }
        assert_eq!(table.mapped_in(1..20).collect::<Vec<_>>(), [5, 6, 19]);
        assert_eq!(table.unmapped_runs(0..18).collect::<Vec<_>>(), [1..5, 7..18]);
    }
}
