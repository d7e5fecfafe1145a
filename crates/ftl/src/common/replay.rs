//! Replay of out-of-band data: which copy of each logical sector is the newest, and which trim records
//! still hide something (the mapping table's recovery of pblk-recovery.c, by sequence).
//!
//! Copies and records are weighed by *order*, which is the global write sequence unless a test asks for
//! another one. Of two copies with one order the one offered last wins. A record hides the copies with
//! lower orders. The table has an entry a mapping unit of one or more sectors; a record counts for the units
//! that lie in it as a whole.

use super::l2p::{L2p, MapEntry};
use super::lines::Lines;
use super::trims::TrimRecord;
use nandscape_block::Lba;
use nandscape_media::Ppa;
use std::cmp::Reverse;
use std::ops::Range;

/// Copies and records found on media, weighed against each other.
pub(crate) struct Replay {
    /// Order of the newest copy of each logical sector.
    best: Vec<u64>,
    /// log2 of the sectors of a mapping unit.
    unit_bits: u32,
    /// Sectors of trim records.
    trims: Vec<TrimSector>,
    /// The highest sequence found.
    pub(crate) seq_max: u64,
}

/// A sector of trim records.
struct TrimSector {
    seq: u64,
    at: Ppa,
    /// Each record with the order up to which it hides copies.
    records: Vec<(u64, TrimRecord)>,
}

impl Replay {
    /// Nothing found yet on a device of so many mapping units of `1 << unit_bits` sectors.
    pub(crate) fn new(units: u64, unit_bits: u32) -> Self {
        Self { best: vec![0; units as usize], unit_bits, trims: Vec::new(), seq_max: 0 }
    }

    /// A copy of mapping unit `unit` lies at `at`: the table points at it if it is the newest so far.
    #[inline]
    pub(crate) fn offer(&mut self, l2p: &mut L2p, unit: Lba, order: u64, at: Ppa) {
        let best = &mut self.best[unit.0 as usize];
        if order >= *best {
            *best = order;
            l2p.replace(unit, MapEntry::Flash(at));
        }
    }

    /// A sector with sequence `seq` lies at `at` and holds these records, each with its order.
    pub(crate) fn add_trims(
        &mut self,
        seq: u64,
        at: Ppa,
        records: impl Iterator<Item = (u64, TrimRecord)>,
    ) {
        self.trims.push(TrimSector { seq, at, records: records.collect() });
    }

    /// A record hides the copies with lower orders: the table forgets them.
    pub(crate) fn hide_trimmed(&self, l2p: &mut L2p) {
        for &(order, record) in self.trims.iter().flat_map(|sector| &sector.records) {
            for unit in self.units_of(&record, l2p) {
                if self.best[unit as usize] < order {
                    l2p.replace(Lba(unit), MapEntry::Unmapped);
                }
            }
        }
    }

    /// Sets the valid bits: of every sector that the table points at, and of trim sectors with a
    /// record that hides what no younger one does. Others may be in lines that were free already:
    /// one whose sectors were written and then discarded again looks needed, and is not. The places of the trim
    /// sectors.
    pub(crate) fn count_valid(mut self, l2p: &L2p, lines: &mut Lines) -> Vec<Ppa> {
        let mask = u64::MAX >> (64 - (1 << self.unit_bits));
        for unit in (0..l2p.len()).map(Lba) {
            if let MapEntry::Flash(at) = l2p.get(unit) {
                lines.set_valid(lines.of(at), at, mask);
            }
        }
        let copy = |sector: TrimSector| {
            let TrimSector { seq, at, records } = sector;
            records.into_iter().map(move |(order, record)| (order, seq, at, record))
        };
        let trims = std::mem::take(&mut self.trims);
        let mut copies: Vec<_> = trims.into_iter().flat_map(copy).collect();
        copies.sort_by_key(|&(order, seq, ..)| Reverse((order, seq)));
        let mut needed = Vec::new();
        for (_, _, at, record) in copies {
            if self.claim(&record, l2p) && !lines.is_valid(at) {
                lines.set_valid(lines.of(at), at, mask);
                needed.push(at);
            }
        }
        needed
    }

    /// Notes all sectors that a record hides. Whether any was not noted before.
    fn claim(&mut self, record: &TrimRecord, l2p: &L2p) -> bool {
        let mut news = false;
        let unmapped = |&unit: &u64| l2p.get(Lba(unit)) == MapEntry::Unmapped;
        for unit in self.units_of(record, l2p).filter(unmapped) {
            news |= std::mem::replace(&mut self.best[unit as usize], u64::MAX) != u64::MAX;
        }
        news
    }

    /// The mapping units of a record that the table has.
    fn units_of(&self, record: &TrimRecord, l2p: &L2p) -> Range<u64> {
        let first = u64::from(record.lba);
        let end = (first + u64::from(record.sectors)) >> self.unit_bits;
        first.div_ceil(1 << self.unit_bits)..end.min(l2p.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::layout::{Layout, UnitSet};
    use nandscape_media::Geometry;

    const GEOMETRY: Geometry = Geometry {
        groups: 1,
        units: 1,
        chunks: 4,
        sectors: 64,
        ws_min: 4,
        ws_opt: 8,
        mw_cunits: 0,
        maxoc: 0,
        maxocpu: 0,
    };

    /// Whatever order copies are found in, the newest one counts, a record hides what is older than it is
    /// and nothing else, and only the youngest of two equal records is needed.
    #[test]
    fn the_newest_of_copies_and_records_counts() {
        let mut l2p = L2p::new(4, GEOMETRY.ppa_end()).expect("address space");
        let layout = Layout::of(&GEOMETRY, UnitSet::All).expect("divides");
        let mut lines = Lines::new(&GEOMETRY, layout, 64).expect("address space");
        let mut replay = Replay::new(4, 0);
        for (lba, order, at) in [(0, 9, 2), (0, 7, 1), (1, 5, 3), (2, 12, 4)] {
            replay.offer(&mut l2p, Lba(lba), order, Ppa(at));
        }
        let record = |seq| TrimRecord { lba: 0, sectors: 3, seq };
        for (seq, at) in [(8, 10), (6, 11)] {
            replay.add_trims(seq, Ppa(at), [(seq, record(seq))].into_iter());
        }
        replay.hide_trimmed(&mut l2p);
        let at = |at| MapEntry::Flash(Ppa(at));
        let entries = [0, 1, 2, 3].map(|lba| l2p.get(Lba(lba)));
        assert_eq!(entries, [at(2), MapEntry::Unmapped, at(4), MapEntry::Unmapped]);
        assert_eq!(replay.count_valid(&l2p, &mut lines), [Ppa(10)]);
        let valid: Vec<u64> = (0..64).filter(|&at| lines.is_valid(Ppa(at))).collect();
        assert_eq!(valid, [2, 4, 10], "the older record hides nothing that the younger does not");
    }
}
