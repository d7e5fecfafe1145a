//! A page-mapped region: a table entry for each mapping unit of 1 to 16 sectors. Units go to the FTL instances
//! in turn (NVMeVirt, `conv_ftl.c`: LPN modulo partitions); the sectors of a unit lie in a row, on media and in
//! the write buffer.

use super::RegionMap;
use crate::common::firmware::Walk;
use crate::common::l2p::{L2p, MapEntry};
use crate::common::table::Table;
use crate::kind::FtlKind;
use nandscape_block::Lba;
use std::ops::Range;

/// The table and its arithmetic.
#[derive(Debug)]
pub struct Pages {
    l2p: L2p,
    unit_bits: u32,
    instance_mask: u64,
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
}

impl Table for Pages {
    #[inline]
    fn get(&self, unit: Lba) -> MapEntry {
        self.l2p.get(unit)
    }

    #[inline]
    fn replace(&mut self, unit: Lba, place: MapEntry) -> MapEntry {
        self.l2p.replace(unit, place)
    }

    fn end(&self) -> u64 {
        self.l2p.len()
    }

    fn next_mapped(&self, units: Range<u64>) -> Option<u64> {
        self.l2p.next_mapped(units)
    }

    fn next_unmapped(&self, units: Range<u64>) -> Option<u64> {
        self.l2p.next_unmapped(units)
    }
}

impl RegionMap for Pages {
    const KIND: FtlKind = FtlKind::PageMap;
    const COUNTS_LIVE: bool = false;

    #[inline]
    fn unit_bits(&self) -> u32 {
        self.unit_bits
    }

    #[inline]
    fn instance_of(&self, unit: u64) -> usize {
        (unit & self.instance_mask) as usize
    }

    fn may_be_in(&self, unit: u64, instance: u32) -> bool {
        self.instance_of(unit) as u32 == instance
    }

    #[inline]
    fn switch(&mut self, unit: Lba, from: MapEntry, to: MapEntry, walk: &mut Walk) -> bool {
        walk.access(1);
        self.l2p.switch(unit, from, to)
    }

    fn has(&self, lba: Lba) -> bool {
        self.unit_of(lba) < self.l2p.len()
    }

    fn spaces(&self) -> impl Iterator<Item = Range<u64>> {
        std::iter::once(0..self.l2p.len())
    }

    #[inline]
    fn prefetch(&self, unit: Lba) {
        self.l2p.prefetch(unit);
    }

    fn mapped(&self) -> u64 {
        self.l2p.mapped()
    }

    fn bytes(&self) -> u64 {
        self.l2p.bytes()
    }

    fn parts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
