//! How much of a section can be written: all of it, or less where it is a zone whose capacity is below its size
//! (`f2fs_usable_segs_in_sec`, `f2fs_usable_blks_in_seg`).

use crate::f2fs::format::BLOCKS_PER_SEGMENT;

/// Blocks that can be written, by section and segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Capacity {
    /// Segments of a section.
    per_section: u32,
    /// The first section that is a zone.
    first_zone: u32,
    /// Blocks of a zone that can be written, from its first one on.
    zone_blocks: u32,
}

impl Capacity {
    /// Of sections all of whose blocks can be written.
    pub(crate) const fn whole(per_section: u32) -> Self {
        Self { per_section, first_zone: u32::MAX, zone_blocks: per_section * BLOCKS_PER_SEGMENT }
    }

    /// Of sections that are zones from one on, of so many blocks each.
    pub(crate) const fn zones(per_section: u32, first_zone: u32, zone_blocks: u32) -> Self {
        Self { per_section, first_zone, zone_blocks }
    }

    /// Of a section that is cleaned or opened: the least of them.
    pub(crate) const fn least(&self) -> u32 {
        self.zone_blocks
    }

    /// Segments of a section that hold something.
    pub(crate) const fn segments(&self) -> u32 {
        self.zone_blocks.div_ceil(BLOCKS_PER_SEGMENT)
    }

    /// Whether a section is a zone: it is written at its write pointer, and reset as a whole.
    pub(crate) const fn is_zone(&self, section: u32) -> bool {
        section >= self.first_zone
    }

    /// Of a section.
    pub(crate) const fn of_section(&self, section: u32) -> u32 {
        if self.is_zone(section) { self.zone_blocks } else { self.per_section * BLOCKS_PER_SEGMENT }
    }

    /// Of a segment: none of one beyond the capacity of its zone.
    pub(crate) const fn of_segment(&self, segment: u32) -> u32 {
        let before = segment % self.per_section * BLOCKS_PER_SEGMENT;
        let left = self.of_section(segment / self.per_section).saturating_sub(before);
        if left < BLOCKS_PER_SEGMENT { left } else { BLOCKS_PER_SEGMENT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of a zone hold what its capacity leaves them; other sections are whole.
    #[test]
    fn zones_end_at_their_capacity() {
        let capacity = Capacity::zones(4, 2, 2 * BLOCKS_PER_SEGMENT + 100);
        let blocks: Vec<_> = (4..13).map(|segment| capacity.of_segment(segment)).collect();
        assert_eq!(blocks, [512, 512, 512, 512, 512, 512, 100, 0, 512]);
        assert_eq!((capacity.of_section(1), capacity.of_section(2)), (2_048, 1_124));
        assert_eq!((capacity.segments(), capacity.least()), (3, 1_124));
        assert_eq!((capacity.is_zone(1), capacity.is_zone(2)), (false, true));
        let whole = Capacity::whole(2);
        assert_eq!((whole.of_segment(7), whole.of_section(3), whole.segments()), (512, 1_024, 2));
    }
}
