//! The sectors that a trace reads or writes: what is there on the device that it was taken from.

use super::fit::Extents;
use std::ops::Range;

/// Extents between two merges at least.
const PENDING_MIN: usize = 1 << 16;

/// Sectors that a trace reads or writes, as ranges that are in order and do not touch.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Footprint {
    ranges: Vec<Range<u64>>,
    /// Ranges at the front that are merged already.
    merged: usize,
}

impl Footprint {
    /// No sector.
    pub const NOTHING: Self = Self { ranges: Vec::new(), merged: 0 };

    /// The ranges, in order.
    #[must_use]
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Sectors in all.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// Takes in a read or a write. RAM stays within twice what the ranges take.
    pub(crate) fn add(&mut self, extents: Extents) {
        let ranges = extents.into_iter().flatten();
        self.ranges.extend(ranges.map(|at| at.lba.0..at.lba.0 + u64::from(at.sectors)));
        if self.ranges.len() >= 2 * self.merged + PENDING_MIN {
            *self = std::mem::take(self).whole();
        }
    }

    /// Puts the ranges in order and merges those that touch.
    pub(crate) fn whole(mut self) -> Self {
        self.ranges.sort_unstable_by_key(|range| range.start);
        self.ranges.dedup_by(|next, range| {
            let touches = next.start <= range.end;
            if touches {
                range.end = range.end.max(next.end);
            }
            touches
        });
        self.merged = self.ranges.len();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::fit::Extent;
    use nandscape_block::Lba;

    /// Every sector counts once, whatever the order and however often it is named.
    #[test]
    fn sectors_count_once() {
        let at = |lba, sectors| Some(Extent { lba: Lba(lba), sectors });
        let mut footprint = Footprint::default();
        for extents in [
            [at(98, 2), at(0, 2)],
            [at(1, 4), None],
            [at(97, 2), None],
            [None, None],
            [at(7, 1), None],
        ] {
            footprint.add(extents);
        }
        let footprint = footprint.whole();
        assert_eq!(footprint.ranges(), [0..5, 7..8, 97..100]);
        assert_eq!(footprint.sectors(), 9);
    }

    /// Merging on the way changes nothing.
    #[test]
    fn many_requests_are_merged_on_the_way() {
        let mut footprint = Footprint::default();
        for n in 0..300_000_u64 {
            footprint.add([Some(Extent { lba: Lba(n * 7_919 % 1_000), sectors: 1 }), None]);
        }
        assert!(footprint.ranges.len() < 2 * PENDING_MIN, "{}", footprint.ranges.len());
        let whole = footprint.whole();
        assert_eq!((whole.ranges().len(), whole.sectors()), (1, 1_000));
    }
}
