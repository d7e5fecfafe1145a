//! Slots: where the sections of an append-only address space have their entries in SIT and SSA. A slot is a section of
//! what these tables are indexed by; it is given to a section of the address space that holds something, and both
//! directions of the map are kept here.
//!
//! - A slot has at most one section, and a section at most one slot.
//! - Of each region the map keeps a window from the first section with a slot to the last: where logs append for ever,
//!   it moves along.
//!
//! On the device the map stands in the SIT ([`SitEntry::address`](super::SitEntry::address)). Follows the metadata by
//! live segments of IPLFS (ATC '22).

use super::error::{FormatError, Place};
use super::layout::Layout;
use super::sit::{SegmentType, SitEntry};
use super::slot_record::{AddressSpace, AppendMode, SpaceRegion};
use super::{BLOCKS_PER_SEGMENT, BlockAddr, SegNo};
use std::collections::VecDeque;

/// Where the address of a segment stands in its entry.
const ADDRESS_AT: usize = 0x42;
impl AddressSpace {
    /// The region that a log writes.
    #[must_use]
    pub const fn region_of_log(&self, log: SegmentType) -> usize {
        match self.mode {
            AppendMode::Interval => log.number(),
            AppendMode::Coupled => log.is_node() as usize * 2,
        }
    }

    /// The type of blocks that the device moves to a region.
    #[must_use]
    pub const fn moved_type(region: usize) -> SegmentType {
        if region < 2 { SegmentType::ColdData } else { SegmentType::ColdNode }
    }
}

/// A section without a slot.
const NONE: u32 = u32::MAX;

/// The slots of a region's sections.
#[derive(Clone, Debug)]
struct Window {
    region: SpaceRegion,
    /// The section that the first of `slots` is of.
    first: u32,
    slots: VecDeque<u32>,
}

impl Window {
    fn slot(&self, section: u32) -> Option<u32> {
        let at = section.checked_sub(self.first)?;
        self.slots.get(at as usize).copied().filter(|slot| *slot != NONE)
    }

    fn set(&mut self, section: u32, slot: u32) {
        if self.slots.is_empty() {
            self.first = section;
        }
        while section < self.first {
            self.slots.push_front(NONE);
            self.first -= 1;
        }
        let at = (section - self.first) as usize;
        while self.slots.len() <= at {
            self.slots.push_back(NONE);
        }
        self.slots[at] = slot;
    }

    fn clear(&mut self, section: u32) {
        let at = section.wrapping_sub(self.first) as usize;
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = NONE;
        }
        while self.slots.back() == Some(&NONE) {
            self.slots.pop_back();
        }
        while self.slots.front() == Some(&NONE) {
            self.slots.pop_front();
            self.first += 1;
        }
    }
}

/// A section of the address space: its region, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SpaceSection {
    /// The region, counted in order of address.
    pub region: usize,
    /// The section, counted from the region's first.
    pub index: u32,
}

/// Which section has which slot.
#[derive(Clone, Debug)]
pub struct SlotMap {
    space: AddressSpace,
    per_section: u32,
    windows: Vec<Window>,
    /// Of each slot the first block of its section; 0 of a slot without one.
    starts: Vec<BlockAddr>,
}

impl SlotMap {
    /// A map of so many slots, all of them free, for sections of so many segments.
    #[must_use]
    pub fn new(space: AddressSpace, slots: u32, per_section: u32) -> Self {
        let window =
            |region: &SpaceRegion| Window { region: *region, first: 0, slots: VecDeque::new() };
        let windows = space.regions().iter().map(window).collect();
        Self { space, per_section, windows, starts: vec![BlockAddr::NULL; slots as usize] }
    }

    /// The map that the entries of the SIT say, in their order, and what in them is wrong. The address of a segment means
    /// something if the segment has valid blocks or is one of `logs`.
    #[must_use]
    pub fn of_entries<'a>(
        layout: &Layout,
        space: &AddressSpace,
        entries: impl IntoIterator<Item = &'a SitEntry>,
        logs: &[SegNo],
    ) -> (Self, Vec<FormatError>) {
        let per_section = layout.segments_per_section();
        let mut map = Self::new(*space, layout.sections(), per_section);
        let mut wrong = Vec::new();
        for (segno, entry) in (0..).map(SegNo).zip(entries) {
            if (entry.valid_blocks > 0 || logs.contains(&segno))
                && let Err(what) = map.note(segno, entry.address())
            {
                wrong.push(FormatError::corrupt(Place::Segment(segno), ADDRESS_AT, what));
            }
        }
        (map, wrong)
    }

    /// The segment of a slot lies at an address.
    fn note(&mut self, segno: SegNo, at: BlockAddr) -> Result<(), &'static str> {
        let slot = segno.0 / self.per_section;
        let section = self.section_at(at).ok_or("lies outside of the address space")?;
        let start = self.start_of(section);
        let into = segno.0 % self.per_section * BLOCKS_PER_SEGMENT;
        if start.0 + into != at.0 {
            return Err("lies at another place of its section than in its slot");
        }
        match self.slot_of(section) {
            Some(known) if known == slot => Ok(()),
            Some(_) => Err("lies in a section that has another slot"),
            None if self.place(slot, section) => Ok(()),
            None => Err("lies in another section than the rest of its slot"),
        }
    }

    /// The address space.
    #[must_use]
    pub const fn space(&self) -> &AddressSpace {
        &self.space
    }

    const fn section_blocks(&self) -> u32 {
        self.per_section * BLOCKS_PER_SEGMENT
    }

    /// Sections of a region.
    #[must_use]
    pub fn sections(&self, region: usize) -> u32 {
        self.windows.get(region).map_or(0, |window| window.region.blocks / self.section_blocks())
    }

    /// The section that a block lies in; `None` outside of all regions.
    #[must_use]
    pub fn section_at(&self, at: BlockAddr) -> Option<SpaceSection> {
        let region = self.windows.iter().position(|window| window.region.has(at))?;
        let index = (at.0 - self.windows[region].region.start) / self.section_blocks();
        Some(SpaceSection { region, index })
    }

    /// The first block of a section.
    #[must_use]
    pub fn start_of(&self, section: SpaceSection) -> BlockAddr {
        let region = self.windows.get(section.region).map_or(0, |window| window.region.start);
        BlockAddr(region + section.index * self.section_blocks())
    }

    /// The segment, counted by slots, and the offset of a block; `None` of one whose section has no slot.
    #[must_use]
    pub fn segment_of(&self, at: BlockAddr) -> Option<(SegNo, u32)> {
        let window = self.windows.iter().find(|window| window.region.has(at))?;
        let into = at.0 - window.region.start;
        let blocks = self.section_blocks();
        let slot = window.slot(into / blocks)?;
        let segment = slot * self.per_section + into % blocks / BLOCKS_PER_SEGMENT;
        Some((SegNo(segment), into % BLOCKS_PER_SEGMENT))
    }

    /// A block of a segment; `None` of one whose slot is free.
    #[must_use]
    pub fn block(&self, segment: SegNo, offset: u32) -> Option<BlockAddr> {
        let start = *self.starts.get((segment.0 / self.per_section) as usize)?;
        let into = segment.0 % self.per_section * BLOCKS_PER_SEGMENT + offset;
        (start != BlockAddr::NULL && offset < BLOCKS_PER_SEGMENT).then(|| BlockAddr(start.0 + into))
    }

    /// The section of a slot; `None` of a free one.
    #[must_use]
    pub fn section_of_slot(&self, slot: u32) -> Option<SpaceSection> {
        let start = self.starts.get(slot as usize).filter(|start| **start != BlockAddr::NULL)?;
        self.section_at(*start)
    }

    /// The slot of a section; `None` without one.
    #[must_use]
    pub fn slot_of(&self, section: SpaceSection) -> Option<u32> {
        self.windows.get(section.region)?.slot(section.index)
    }

    /// Gives a free slot to a section that has none; whether both were so.
    pub fn place(&mut self, slot: u32, section: SpaceSection) -> bool {
        let is_there = section.index < self.sections(section.region);
        let is_free = self.starts.get(slot as usize) == Some(&BlockAddr::NULL);
        if !is_there || !is_free || self.slot_of(section).is_some() {
            return false;
        }
        self.starts[slot as usize] = self.start_of(section);
        self.windows[section.region].set(section.index, slot);
        true
    }

    /// Takes a slot back; the section that had it.
    pub fn release(&mut self, slot: u32) -> Option<SpaceSection> {
        let section = self.section_of_slot(slot)?;
        self.starts[slot as usize] = BlockAddr::NULL;
        self.windows[section.region].clear(section.index);
        Some(section)
    }

    /// The last section of a region that has a slot.
    #[must_use]
    pub fn last_used(&self, region: usize) -> Option<u32> {
        let window = self.windows.get(region).filter(|window| !window.slots.is_empty())?;
        Some(window.first + window.slots.len() as u32 - 1)
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let windows: usize = self.windows.iter().map(|window| window.slots.capacity()).sum();
        ((self.starts.len() + windows) * size_of::<u32>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Two segments per section, six regions of 20 sections with gaps.
    fn space() -> AddressSpace {
        let region = |index: u32| SpaceRegion { start: 8_192 + index * 32_768, blocks: 20 * 1_024 };
        let regions = [0, 1, 2, 3, 4, 5].map(region);
        AddressSpace { mode: AppendMode::Interval, capacity: 10_000, journal_segments: 1, regions }
    }

    proptest! {
        /// The map is that of a plain table, in both directions, whatever was placed and released.
        #[test]
        fn slots_and_sections_lead_to_each_other(
            steps in proptest::collection::vec((0..16_u32, 0..7_usize, 0..22_u32, any::<bool>()), 1..120),
        ) {
            let mut map = SlotMap::new(space(), 16, 2);
            let mut model: BTreeMap<u32, SpaceSection> = BTreeMap::new();
            for (slot, region, index, release) in steps {
                let section = SpaceSection { region, index };
                if release {
                    prop_assert_eq!(map.release(slot), model.remove(&slot));
                } else {
                    let free = !model.contains_key(&slot) && !model.values().any(|one| *one == section);
                    let there = region < 6 && index < 20;
                    prop_assert_eq!(map.place(slot, section), free && there);
                    if free && there {
                        model.insert(slot, section);
                    }
                }
                for slot in 0..16 {
                    prop_assert_eq!(map.section_of_slot(slot), model.get(&slot).copied());
                    let first = map.block(SegNo(slot * 2 + 1), 7);
                    let expected = model.get(&slot).map(|one| map.start_of(*one).0 + 512 + 7);
                    prop_assert_eq!(first, expected.map(BlockAddr));
                    if let Some(at) = first {
                        prop_assert_eq!(map.segment_of(at), Some((SegNo(slot * 2 + 1), 7)));
                    }
                }
                for region in 0..6 {
                    let last = model.values().filter(|one| one.region == region).map(|one| one.index).max();
                    prop_assert_eq!(map.last_used(region), last);
                }
            }
        }
    }

    /// Blocks outside of all regions have no section.
    #[test]
    fn gaps_hold_nothing() {
        let map = SlotMap::new(space(), 16, 2);
        let section = |at| map.section_at(BlockAddr(at)).map(|one| (one.region, one.index));
        assert_eq!(section(8_191), None);
        assert_eq!(section(8_192), Some((0, 0)));
        assert_eq!(section(8_192 + 20 * 1_024 - 1), Some((0, 19)));
        assert_eq!(section(8_192 + 20 * 1_024), None);
        assert_eq!(section(8_192 + 32_768 + 1_024), Some((1, 1)));
    }
}
