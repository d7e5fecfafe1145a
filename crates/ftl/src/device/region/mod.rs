//! Regions of the address space, by how they are mapped. A conventional SSD is one region of pages (`pages.rs`); the
//! SSD of IPLFS has one for metadata, and append-only ones with interval maps (`partitions.rs`, `interval/`).
//!
//! A device is made for one of these maps at compile time: what a map does not have costs nothing.

pub(super) mod interval;
pub(super) mod pages;
pub(super) mod partitions;

use crate::common::firmware::{Firmware, Walk};
use crate::common::l2p::MapEntry;
use crate::common::table::Table;
use crate::kind::FtlKind;
use nandscape_block::{BlockError, Lba};
use nandscape_media::Ppa;
use nandscape_rt::Nanos;
use std::ops::Range;

/// A part of a mapping unit that a bio covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The mapping unit.
    pub(in crate::device) unit: u64,
    /// First sector within the unit.
    pub(in crate::device) first: u32,
    /// Sectors.
    pub(in crate::device) sectors: u32,
}

/// Whether sectors can be written now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// They can.
    Admitted,
    /// They can when the discards so far are durable.
    AfterDiscards,
    /// A rule of their region forbids it.
    Refused(BlockError),
}

/// The logical-to-physical map of a device, with the rules of its regions.
pub trait RegionMap: Table {
    /// The kind of device that it makes.
    const KIND: FtlKind;

    /// Whether it counts the sectors that may hold data after a power cut.
    const COUNTS_LIVE: bool;

    /// log2 of the sectors of a mapping unit.
    fn unit_bits(&self) -> u32;

    /// The FTL instance that the next write of a unit goes to.
    fn instance_of(&self, unit: u64) -> usize;

    /// Whether a copy of a unit may be in an instance.
    fn may_be_in(&self, unit: u64, instance: u32) -> bool;

    /// Where a unit is, as the firmware looks it up.
    #[inline]
    fn look_up(&self, unit: Lba, walk: &mut Walk) -> MapEntry {
        walk.access(1);
        self.get(unit)
    }

    /// Stores `place` and returns what it replaces, as the firmware does.
    #[inline]
    fn update(&mut self, unit: Lba, place: MapEntry, walk: &mut Walk) -> MapEntry {
        walk.access(1);
        self.replace(unit, place)
    }

    /// Stores `to` if the unit is still at `from`; whether it was.
    fn switch(&mut self, unit: Lba, from: MapEntry, to: MapEntry, walk: &mut Walk) -> bool;

    /// The first of these units that is mapped, as the firmware searches: what it passes counts, what it finds does not.
    fn search(&self, units: Range<u64>, walk: &mut Walk) -> Option<u64> {
        let found = self.next_mapped(units.clone());
        walk.access(found.unwrap_or(units.end).saturating_sub(units.start));
        found
    }

    /// Whether there is such an address.
    fn has(&self, lba: Lba) -> bool;

    /// Each part of the address space without gaps, as mapping units.
    fn spaces(&self) -> impl Iterator<Item = Range<u64>>;

    /// Pulls the entry of a unit towards the caches.
    fn prefetch(&self, unit: Lba);

    /// Units that are mapped; may look at all entries.
    fn mapped(&self) -> u64;

    /// Those of them in append-only regions.
    fn appended(&self) -> u64 {
        0
    }

    /// Bytes of RAM.
    fn bytes(&self) -> u64;

    /// What these are made of; nothing for one array.
    fn parts(&self) -> Vec<(&'static str, u64)>;

    /// A unit that was not mapped is now, in this instance.
    #[inline]
    fn came(&mut self, _instance: usize) {}

    /// A unit is not mapped any more.
    #[inline]
    fn went(&mut self) {}

    /// The discard of a unit of this instance is durable.
    #[inline]
    fn settled(&mut self, _instance: usize) {}

    /// Whether sectors can be written now.
    #[inline]
    fn admits(&self, _lba: Lba, _sectors: u32) -> Admission {
        Admission::Admitted
    }

    /// Does what is due in the background.
    #[inline]
    fn tick(&mut self, _now: Nanos, _firmware: &mut Firmware) {}

    /// Begins a new period of counting.
    #[inline]
    fn reset_counts(&mut self) {}

    /// Whether what it knows of itself is so, with so many units in each instance that are mapped, or whose discard is not
    /// durable; slow.
    ///
    /// # Errors
    /// What is not, in words.
    fn check(&self, _live: &[u64]) -> Result<(), String> {
        Ok(())
    }

    /// Sectors of a unit.
    #[inline]
    fn unit_sectors(&self) -> u32 {
        1 << self.unit_bits()
    }

    /// The bits of a unit's sectors.
    #[inline]
    fn unit_mask(&self) -> u64 {
        u64::MAX >> (64 - self.unit_sectors())
    }

    /// The unit of a sector.
    #[inline]
    fn unit_of(&self, lba: Lba) -> u64 {
        lba.0 >> self.unit_bits()
    }

    /// The first sector of a unit.
    #[inline]
    fn first_of(&self, unit: u64) -> Lba {
        Lba(unit << self.unit_bits())
    }

    /// The place of a sector within its unit.
    #[inline]
    fn index_of(&self, lba: Lba) -> u32 {
        lba.0 as u32 & (self.unit_sectors() - 1)
    }

    /// The first piece of these sectors.
    #[inline]
    fn piece(&self, lba: Lba, sectors: u64) -> Piece {
        let first = self.index_of(lba);
        let sectors = sectors.min(u64::from(self.unit_sectors() - first)) as u32;
        Piece { unit: self.unit_of(lba), first, sectors }
    }

    /// The units that lie in these sectors as a whole.
    fn whole_units(&self, lba: Lba, sectors: u64) -> Range<u64> {
        let unit = u64::from(self.unit_sectors());
        let first = lba.0.div_ceil(unit);
        let end = (lba.0 + sectors) / unit;
        first..end.max(first)
    }

    /// Where a sector on media is, if its unit is there.
    #[inline]
    fn on_media(&self, lba: Lba) -> Option<Ppa> {
        match self.get(Lba(self.unit_of(lba))) {
            MapEntry::Flash(at) => Some(at.plus(self.index_of(lba))),
            _ => None,
        }
    }
}
