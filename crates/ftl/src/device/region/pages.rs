//! A page-mapped region: a table entry for each mapping unit of 1 to 16 sectors. Units go to the FTL instances
//! in turn (NVMeVirt, `conv_ftl.c`: LPN modulo partitions); the sectors of a unit lie in a row, on media and in
//! the write buffer.

use crate::common::l2p::{L2p, MapEntry};
use nandscape_block::Lba;
use nandscape_media::Ppa;
use std::ops::Range;

/// The table and its arithmetic.
#[derive(Debug)]
pub(in crate::device) struct Pages {
    pub(in crate::device) l2p: L2p,
    unit_bits: u32,
    instance_mask: u64,
}

/// A part of a mapping unit that a bio covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::device) struct Piece {
    /// The mapping unit.
    pub(in crate::device) unit: u64,
    /// First sector within the unit.
    pub(in crate::device) first: u32,
    /// Sectors.
    pub(in crate::device) sectors: u32,
}

impl Pages {
    /// An empty table; `None` when the process cannot have the address space.
    pub(in crate::device) fn new(
        sectors: u64,
        unit_sectors: u32,
        instances: u32,
        ppa_end: u64,
    ) -> Option<Self> {
        let unit_bits = unit_sectors.ilog2();
        let l2p = L2p::new(sectors >> unit_bits, ppa_end)?;
        Some(Self { l2p, unit_bits, instance_mask: u64::from(instances) - 1 })
    }

    /// Sectors of a unit.
    #[inline]
    pub(in crate::device) const fn unit_sectors(&self) -> u32 {
        1 << self.unit_bits
    }

    /// The bits of a unit's sectors.
    #[inline]
    pub(in crate::device) const fn unit_mask(&self) -> u64 {
        u64::MAX >> (64 - self.unit_sectors())
    }

    /// The unit of a sector.
    #[inline]
    pub(in crate::device) const fn unit_of(&self, lba: Lba) -> u64 {
        lba.0 >> self.unit_bits
    }

    /// The first sector of a unit.
    #[inline]
    pub(in crate::device) const fn first_of(&self, unit: u64) -> Lba {
        Lba(unit << self.unit_bits)
    }

    /// The place of a sector within its unit.
    #[inline]
    pub(in crate::device) const fn index_of(&self, lba: Lba) -> u32 {
        lba.0 as u32 & (self.unit_sectors() - 1)
    }

    /// The instance of a unit.
    #[inline]
    pub(in crate::device) const fn instance_of(&self, unit: u64) -> usize {
        (unit & self.instance_mask) as usize
    }

    /// The first piece of these sectors.
    #[inline]
    pub(in crate::device) fn piece(&self, lba: Lba, sectors: u64) -> Piece {
        let first = self.index_of(lba);
        let sectors = sectors.min(u64::from(self.unit_sectors() - first)) as u32;
        Piece { unit: self.unit_of(lba), first, sectors }
    }

    /// The units that lie in these sectors as a whole.
    pub(in crate::device) const fn whole_units(&self, lba: Lba, sectors: u64) -> Range<u64> {
        let unit = self.unit_sectors() as u64;
        let first = lba.0.div_ceil(unit);
        let end = (lba.0 + sectors) / unit;
        first..if end < first { first } else { end }
    }

    /// Where a sector on media is, if its unit is there.
    #[inline]
    pub(in crate::device) fn on_media(&self, lba: Lba) -> Option<Ppa> {
        match self.l2p.get(Lba(self.unit_of(lba))) {
            MapEntry::Flash(at) => Some(at.plus(self.index_of(lba))),
            _ => None,
        }
    }
}
