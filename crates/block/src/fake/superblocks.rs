//! Superblocks of append-only regions: each is written in order, from its first sector on, and begins anew only when it
//! holds nothing.

use crate::address::Lba;
use crate::caps::DeviceCaps;
use crate::error::BlockError;
use crate::region::RegionKind;
use std::collections::BTreeMap;
use std::ops::Range;

/// A superblock that was written.
#[derive(Clone, Copy)]
struct Written {
    /// Where it is written next.
    next: u64,
    /// When it was written last, in writes; none if it takes no more.
    turn: Option<u64>,
}

/// The superblocks of a device; none where sectors are written in any order.
#[derive(Default)]
pub(super) struct SuperblockTable {
    regions: Vec<Range<u64>>,
    sectors: u64,
    open_max: usize,
    /// By first sector.
    written: BTreeMap<u64, Written>,
    turns: u64,
}

impl SuperblockTable {
    pub(super) fn of(caps: &DeviceCaps) -> Self {
        let Some(superblocks) = caps.superblocks else { return Self::default() };
        let is_append = |region: &crate::region::Region| region.kind == RegionKind::Append;
        let regions = caps.regions().filter(is_append).map(|region| region.range);
        Self {
            regions: regions.collect(),
            sectors: superblocks.sectors.into(),
            open_max: superblocks.open_max as usize,
            ..Self::default()
        }
    }

    /// The superblock that a sector lies in, if it lies in one.
    fn superblock_of(&self, lba: u64) -> Option<Range<u64>> {
        let region = self.regions.iter().find(|region| region.contains(&lba))?;
        let start = lba - (lba - region.start) % self.sectors.max(1);
        Some(start..start + self.sectors)
    }

    /// Whether a write is one of its superblock. `is_empty` says whether nothing is there, and no migration names it.
    pub(super) fn check(
        &self,
        range: &Range<u64>,
        is_empty: impl FnOnce(Range<u64>) -> bool,
    ) -> Result<(), BlockError> {
        let refuse = |what| Err(BlockError::Region { lba: Lba(range.start), what });
        let Some(superblock) = self.superblock_of(range.start) else { return Ok(()) };
        if range.end > superblock.end {
            return refuse("a write across superblocks");
        }
        let known = self.written.get(&superblock.start);
        match known.filter(|known| known.turn.is_some()) {
            Some(known) if known.next == range.start => Ok(()),
            Some(_) if range.start != superblock.start => {
                refuse("a write out of order in its superblock")
            }
            _ if range.start != superblock.start => {
                refuse("a write to a superblock that takes no more writes")
            }
            _ if is_empty(superblock) => Ok(()),
            _ => refuse("a superblock that is written again and is not empty"),
        }
    }

    /// A write was taken. One superblock more than may be partly written closes the one that was written least recently.
    pub(super) fn note(&mut self, range: &Range<u64>) {
        let Some(superblock) = self.superblock_of(range.start) else { return };
        self.turns += 1;
        let turn = (range.end < superblock.end).then_some(self.turns);
        self.written.insert(superblock.start, Written { next: range.end, turn });
        let region = self.regions.iter().find(|region| region.contains(&range.start));
        let Some(region) = region.cloned() else { return };
        let open = self.written.range(region).filter_map(|(start, one)| Some((one.turn?, *start)));
        let open: Vec<_> = open.collect();
        if open.len() > self.open_max
            && let Some(oldest) =
                open.iter().min().and_then(|(_, start)| self.written.get_mut(start))
        {
            oldest.turn = None;
        }
    }

    /// What was written of each superblock. After a power cut none takes more writes.
    pub(super) fn power_cut(&mut self) -> Vec<Range<u64>> {
        self.written.values_mut().for_each(|one| one.turn = None);
        self.written.iter().map(|(start, one)| *start..one.next).collect()
    }
}
