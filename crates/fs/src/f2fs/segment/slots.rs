//! Slots of an append-only address space: which section of it each has, and which section a log goes on in.
//!
//! - A section gets a slot when a log opens it, when roll-forward finds a block in it, or when the device has moved a
//!   block there; it loses the slot when nothing in it is valid and a checkpoint says so.
//! - Where logs append for ever, the next section of a log is the one after its region's last. Where data and nodes share
//!   regions, the sections of each are searched in turn; one that lost its slot is busy until the volume gives it back
//!   ([`Segments::give_back`]), since the device may have a use for its addresses still.

use super::Segments;
use crate::contract::{FsError, Result};
use crate::f2fs::error::corrupt;
use crate::f2fs::format::{
    AddressSpace, AppendMode, BlockAddr, SegNo, SegmentType, SlotMap, SpaceSection, SummaryBlock,
    SummaryEntry, ValidMap,
};
use nandscape_rt::invariant;

/// Which sections of a region are free.
#[derive(Default)]
struct RegionUse {
    sections: u32,
    /// Where the search goes on; where logs append for ever, the first section that was never used.
    next: u32,
    /// Of each section whether it is in use; empty where sections are used once.
    busy: Vec<bool>,
    free: u32,
}

impl RegionUse {
    fn new(sections: u32, mode: AppendMode) -> Self {
        let busy = match mode {
            AppendMode::Interval => Vec::new(),
            AppendMode::Coupled => vec![false; sections as usize],
        };
        Self { sections, next: 0, busy, free: sections }
    }

    fn find(&self) -> Option<u32> {
        if self.busy.is_empty() {
            return (self.next < self.sections).then_some(self.next);
        }
        let all = (self.next..self.sections).chain(0..self.next.min(self.sections));
        all.into_iter().find(|section| !self.busy[*section as usize])
    }

    /// A section is in use from now on.
    fn claim(&mut self, section: u32) {
        match self.busy.get_mut(section as usize) {
            Some(busy) => {
                self.free -= u32::from(!*busy);
                *busy = true;
            }
            None => {
                self.next = self.next.max(section + 1);
                self.free = self.sections.saturating_sub(self.next);
            }
        }
    }

    fn give_back(&mut self, section: u32) {
        if let Some(busy) = self.busy.get_mut(section as usize) {
            self.free += u32::from(*busy);
            *busy = false;
        }
    }
}

/// Slots and sections of a volume.
pub(crate) struct Slots {
    map: SlotMap,
    regions: Vec<RegionUse>,
    /// Where the search for a free slot goes on.
    cursor: u32,
    /// Sections that lost their slots.
    retired: Vec<SpaceSection>,
    /// Blocks that the checkpoint which is being written has not, and the one before had, or that were written and
    /// freed between: by segment.
    pub(super) discards: Vec<(BlockAddr, ValidMap)>,
}

impl Slots {
    /// Those that a checkpoint has.
    pub(crate) fn new(map: SlotMap, slots: u32) -> Self {
        let mode = map.space().mode;
        let regions = 0..map.space().regions().len();
        let mut regions: Vec<_> =
            regions.map(|region| RegionUse::new(map.sections(region), mode)).collect();
        for section in (0..slots).filter_map(|slot| map.section_of_slot(slot)) {
            regions[section.region].claim(section.index);
        }
        Self { map, regions, cursor: 0, retired: Vec::new(), discards: Vec::new() }
    }

    pub(super) fn segment_of(&self, at: BlockAddr) -> Option<(SegNo, u32)> {
        self.map.segment_of(at)
    }

    pub(super) fn block(&self, segment: SegNo, offset: u32) -> Option<BlockAddr> {
        self.map.block(segment, offset)
    }

    /// Whether a log finds a section.
    pub(super) fn has_section(&self, log: SegmentType) -> bool {
        self.regions[self.map.space().region_of_log(log)].find().is_some()
    }

    /// Bytes of memory that they take.
    pub(super) fn memory_bytes(&self) -> u64 {
        let busy: usize = self.regions.iter().map(|region| region.busy.len()).sum();
        self.map.memory_bytes() + busy as u64
    }

    pub(super) const fn cursor(&self) -> u32 {
        self.cursor
    }

    /// Gives a free slot to the next section of a log.
    pub(super) fn open(&mut self, slot: u32, log: SegmentType) {
        let region = self.map.space().region_of_log(log);
        let index = self.regions[region].find();
        invariant!(index.is_some(), "a slot is opened when {log:?} finds a section");
        let Some(index) = index else { return };
        self.place(slot, SpaceSection { region, index });
        self.regions[region].next = index + 1;
    }

    fn place(&mut self, slot: u32, section: SpaceSection) {
        self.map.place(slot, section);
        self.regions[section.region].claim(section.index);
        self.cursor = slot + 1;
    }

    pub(super) fn is_placed(&self, slot: u32) -> bool {
        self.map.section_of_slot(slot).is_some()
    }

    pub(super) fn release(&mut self, slot: u32) {
        self.retired.extend(self.map.release(slot));
    }
}

/// How much of a region is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegionFill {
    pub(crate) sections: u32,
    pub(crate) free: u32,
}

/// A block that the device moved, as the segments have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MovedTo {
    pub(crate) segment: SegNo,
    pub(crate) offset: u32,
    pub(crate) kind: SegmentType,
    /// Nothing else in the segment means anything.
    pub(crate) is_first: bool,
}

impl Segments {
    /// The segment of a block, and its offset there.
    #[inline]
    pub(crate) fn segment_of(&self, at: BlockAddr) -> Option<(SegNo, u32)> {
        match &self.slots {
            None => self.layout.segment_of(at),
            Some(slots) => slots.segment_of(at),
        }
    }

    /// A block of a segment.
    #[inline]
    pub(crate) fn block(&self, segment: SegNo, offset: u32) -> Option<BlockAddr> {
        match &self.slots {
            None => self.layout.block(segment, offset),
            Some(slots) => slots.block(segment, offset),
        }
    }

    /// The address space, if it is append-only.
    pub(crate) fn space(&self) -> Option<&AddressSpace> {
        self.slots.as_ref().map(|slots| slots.map.space())
    }

    /// Whether a log could have written a block, in use or not.
    pub(crate) fn is_log_address(&self, at: BlockAddr) -> bool {
        match &self.slots {
            None => self.layout.segment_of(at).is_some(),
            Some(slots) => slots.map.section_at(at).is_some(),
        }
    }

    /// The section of an append-only address space that a block lies in.
    pub(crate) fn section_at(&self, at: BlockAddr) -> Option<SpaceSection> {
        self.slots.as_ref()?.map.section_at(at)
    }

    /// The first block of a section of the address space.
    pub(crate) fn section_start(&self, section: SpaceSection) -> Option<BlockAddr> {
        Some(self.slots.as_ref()?.map.start_of(section))
    }

    /// The slot of a section of the address space.
    pub(crate) fn slot_of(&self, section: SpaceSection) -> Option<u32> {
        self.slots.as_ref()?.map.slot_of(section)
    }

    /// The last section of a region that has a slot.
    pub(crate) fn last_used(&self, region: usize) -> Option<u32> {
        self.slots.as_ref()?.map.last_used(region)
    }

    /// How much of each region is used.
    pub(crate) fn fills(&self) -> Vec<RegionFill> {
        let regions = self.slots.iter().flat_map(|slots| &slots.regions);
        regions.map(|region| RegionFill { sections: region.sections, free: region.free }).collect()
    }

    /// How much of each region is used that the host writes.
    pub(crate) fn host_fills(&self) -> impl Iterator<Item = RegionFill> + '_ {
        self.slots.iter().flat_map(|slots| {
            let own = |region: &usize| !slots.map.space().is_device_owned(*region);
            let regions = (0..slots.regions.len()).filter(own).map(|region| &slots.regions[region]);
            regions.map(|region| RegionFill { sections: region.sections, free: region.free })
        })
    }

    /// Gives a slot to the section of a block that has none: something was found there. Nothing happens in a main area.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if no slot is free, [`FsError::Corrupt`] for a block outside of all regions.
    pub(crate) fn admit(&mut self, at: BlockAddr) -> Result<()> {
        let Some(slots) = &mut self.slots else { return Ok(()) };
        if slots.segment_of(at).is_some() {
            return Ok(());
        }
        let outside = || corrupt("block outside of the address space", at.0);
        let section = slots.map.section_at(at).ok_or_else(outside)?;
        let per_section = self.layout.segments_per_section();
        let first = self.free.next_section(slots.cursor).ok_or(FsError::NoSpace)?;
        slots.place(first / per_section, section);
        Ok(())
    }

    /// The device has moved a valid block: it is at another place now, and its old place is the device's business.
    ///
    /// # Errors
    /// As [`Segments::admit`]; [`FsError::Corrupt`] if the new place holds something. Nothing was changed then.
    pub(crate) fn relocate(&mut self, old: BlockAddr, new: BlockAddr) -> Result<MovedTo> {
        self.admit(new)?;
        let outside = || corrupt("block outside of the address space", new.0);
        let (segment, offset) = self.segment_of(new).ok_or_else(outside)?;
        let section = self.section_at(new).ok_or_else(outside)?;
        let kind = AddressSpace::moved_type(section.region);
        let is_first = self.free.is_free(segment.0);
        self.mark(new, true, 0)?;
        if is_first {
            self.free.take(segment.0);
            self.usage.drop_valid(self.segments[segment.0 as usize].kind);
            self.segments[segment.0 as usize].kind = kind;
            self.usage.take(kind, self.capacity.of_segment(segment.0));
            self.usage.add_valid(kind, 1);
        }
        self.prefree.remove(&segment.0);
        self.check_in_use(segment);
        self.mark(old, false, 0)?;
        self.unkeep(std::iter::once(old));
        self.note_emptied(old);
        Ok(MovedTo { segment, offset, kind, is_first })
    }

    /// What the summaries of a log say of a block of its segment; `None` of other segments.
    pub(crate) fn open_summary(&self, segment: SegNo, offset: u32) -> Option<SummaryEntry> {
        let log = self.logs.iter().find(|log| log.segment == segment)?;
        log.summary.entries.get(offset as usize).copied()
    }

    /// Whether a segment is not free.
    pub(crate) fn is_used(&self, segment: SegNo) -> bool {
        !self.free.is_free(segment.0)
    }

    /// A section may be written again.
    pub(crate) fn give_back(&mut self, section: SpaceSection) {
        if let Some(slots) = &mut self.slots {
            slots.regions[section.region].give_back(section.index);
        }
    }

    /// A section must not be written, although it has no slot.
    pub(crate) fn withhold(&mut self, section: SpaceSection) {
        if let Some(slots) = &mut self.slots {
            slots.regions[section.region].claim(section.index);
        }
    }

    /// Where logs append for ever, they go on after a section.
    pub(crate) fn skip_to(&mut self, log: SegmentType, section: u32) {
        if let Some(slots) = &mut self.slots {
            let region = slots.map.space().region_of_log(log);
            slots.regions[region].next = slots.regions[region].next.max(section);
        }
    }

    /// Sections that lost their slots since this was last asked.
    pub(crate) fn take_retired(&mut self) -> Vec<SpaceSection> {
        self.slots.as_mut().map(|slots| std::mem::take(&mut slots.retired)).unwrap_or_default()
    }

    /// What the checkpoint that is being written makes void, by segment.
    pub(crate) fn take_discards(&mut self) -> Vec<(BlockAddr, ValidMap)> {
        self.slots.as_mut().map(|slots| std::mem::take(&mut slots.discards)).unwrap_or_default()
    }

    /// Blocks of a segment that must not be discarded.
    pub(crate) fn needed(&self, segment: SegNo) -> ValidMap {
        self.segment(segment).map(|found| found.map.union(&found.kept)).unwrap_or_default()
    }

    /// Takes the slot of a section back, if all its segments are free.
    pub(super) fn release_slot(&mut self, slot: u32) {
        let is_empty = self.free.is_free_section(slot);
        let Some(slots) = self.slots.as_mut().filter(|_| is_empty) else { return };
        slots.release(slot);
        if self.reuses_retired {
            for section in std::mem::take(&mut slots.retired) {
                slots.regions[section.region].give_back(section.index);
                slots.regions[section.region].next = section.index;
            }
        }
    }

    /// Valid blocks, and blocks that a checkpoint is needed for before they may be discarded.
    pub(crate) fn live_blocks(&self) -> (u64, u64) {
        (self.usage.all_valid(), self.pinned)
    }

    /// Slots in use, and all of them.
    pub(crate) fn slots_used(&self) -> (u32, u32) {
        let all = self.layout.sections();
        (all - self.free.free_sections(), all)
    }

    /// Has a log leave its section for a fresh one. Returns what belongs into SSA.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if there are not so many.
    pub(crate) fn renew_section(&mut self, log: SegmentType) -> Result<(SegNo, SummaryBlock)> {
        self.make_stale(log);
        self.renew(log)
    }
}
