//! How much of a section is used: all of it, or less where sections are zones whose capacity is below their size
//! (`f2fs_usable_segs_in_sec`, `f2fs_usable_blks_in_seg`). Linux 6.1 applies the capacity to sections before the first
//! zone, too, and refuses a volume that has valid blocks beyond it.

use crate::f2fs::format::BLOCKS_PER_SEGMENT;

/// Blocks that are used, by section and segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Capacity {
    /// Segments of a section.
    per_section: u32,
    /// The first section that is a zone.
    first_zone: u32,
    /// Blocks of a section that are used, from its first one on.
    blocks: u32,
}

impl Capacity {
    /// Of sections all of whose blocks can be written.
    pub(crate) const fn whole(per_section: u32) -> Self {
        Self { per_section, first_zone: u32::MAX, blocks: per_section * BLOCKS_PER_SEGMENT }
    }

    /// Of sections that are zones from one on, of so many blocks each.
    pub(crate) const fn zones(per_section: u32, first_zone: u32, blocks: u32) -> Self {
        Self { per_section, first_zone, blocks }
    }

    /// Of a section.
    pub(crate) const fn of_section(&self) -> u32 {
        self.blocks
    }

    /// Segments of a section that hold something.
    pub(crate) const fn segments(&self) -> u32 {
        self.blocks.div_ceil(BLOCKS_PER_SEGMENT)
    }

    /// Whether a section is a zone: it is written at its write pointer, and reset as a whole.
    pub(crate) const fn is_zone(&self, section: u32) -> bool {
        section >= self.first_zone
    }

    /// Of a segment: none of one beyond the capacity of its section.
    pub(crate) const fn of_segment(&self, segment: u32) -> u32 {
        let before = segment % self.per_section * BLOCKS_PER_SEGMENT;
        // None where the section ends before it.
        let left = self.blocks.saturating_sub(before);
        if left < BLOCKS_PER_SEGMENT { left } else { BLOCKS_PER_SEGMENT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments hold what the capacity of their section leaves them, also before the first zone.
    #[test]
    fn zones_end_at_their_capacity() {
        let capacity = Capacity::zones(4, 2, 2 * BLOCKS_PER_SEGMENT + 100);
        let blocks: Vec<_> = (4..13).map(|segment| capacity.of_segment(segment)).collect();
        assert_eq!(blocks, [512, 512, 100, 0, 512, 512, 100, 0, 512]);
        assert_eq!((capacity.segments(), capacity.of_section()), (3, 1_124));
        assert_eq!((capacity.is_zone(1), capacity.is_zone(2)), (false, true));
        let whole = Capacity::whole(2);
        assert_eq!((whole.of_segment(7), whole.of_section(), whole.segments()), (512, 1_024, 2));
    }
}
