//! Replay of out-of-band data: which copy of each logical sector is the newest, and which trim records
//! still hide something (the mapping table's recovery of pblk-recovery.c, by sequence).
//!
//! Copies and records are weighed by *order*, which is the global write sequence unless a test asks for
//! another one. Of two copies with one order the one offered last wins. A record hides the copies with
//! lower orders. The table has an entry a mapping unit of one or more sectors; a record counts for the units
//! that lie in it as a whole.
//!
//! The sequence of the newest copy so far is read again where the table points, for those few units of which there
//! are several copies. A column of sequences would take twice the memory of the table.

use super::l2p::MapEntry;
use super::lines::Lines;
use super::table::{RunSet, Table};
use super::trims::TrimRecord;
use nandscape_block::Lba;
use nandscape_media::Ppa;
use nandscape_rt::invariant;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// Copies and records found on media, weighed against each other.
pub(crate) struct Replay {
    /// Order of the newest copy of each mapping unit, where orders are not sequences.
    orders: Option<BTreeMap<u64, u64>>,
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
    /// Nothing found yet on a device with mapping units of `1 << unit_bits` sectors. Whether orders are sequences.
    pub(crate) fn new(unit_bits: u32, by_sequence: bool) -> Self {
        let orders = (!by_sequence).then(BTreeMap::new);
        Self { orders, unit_bits, trims: Vec::new(), seq_max: 0 }
    }

    /// A copy of mapping unit `unit` lies at `at`: the table points at it if it is the newest so far. `seq_of`
    /// reads the sequence of a place on media.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        l2p: &mut impl Table,
        unit: Lba,
        order: u64,
        at: Ppa,
        seq_of: impl Fn(Ppa) -> u64,
    ) {
        if self.order_of(l2p, unit, seq_of).is_none_or(|best| order >= best) {
            if let Some(orders) = &mut self.orders {
                orders.insert(unit.0, order);
            }
            l2p.replace(unit, MapEntry::Flash(at));
        }
    }

    /// The order of the copy that the table points at.
    #[inline]
    fn order_of(&self, l2p: &impl Table, unit: Lba, seq_of: impl Fn(Ppa) -> u64) -> Option<u64> {
        let MapEntry::Flash(at) = l2p.get(unit) else { return None };
        match &self.orders {
            Some(orders) => orders.get(&unit.0).copied(),
            None => Some(seq_of(at)),
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
    pub(crate) fn hide_trimmed(&self, l2p: &mut impl Table, seq_of: impl Fn(Ppa) -> u64) {
        for &(order, record) in self.trims.iter().flat_map(|sector| &sector.records) {
            let mut units = units_of(&record, self.unit_bits, l2p.end());
            while let Some(unit) = l2p.next_mapped(units.clone()) {
                units.start = unit + 1;
                if self.order_of(l2p, Lba(unit), &seq_of).is_some_and(|best| best < order) {
                    l2p.replace(Lba(unit), MapEntry::Unmapped);
                }
            }
        }
    }

    /// Sets the valid bits: of every sector that the table points at, and of trim sectors with a
    /// record that hides what no younger one does. Others may be in lines that were free already:
    /// one whose sectors were written and then discarded again looks needed, and is not. The places of the trim
    /// sectors; `hides` gets each run of units that are unmapped, with the youngest record that hides it.
    pub(crate) fn count_valid(
        self,
        l2p: &impl Table,
        lines: &mut Lines,
        mut hides: impl FnMut(Range<u64>, &TrimRecord),
    ) -> Vec<Ppa> {
        let mask = u64::MAX >> (64 - (1 << self.unit_bits));
        for unit in l2p.mapped_in(0..l2p.end()).map(Lba) {
            if let MapEntry::Flash(at) = l2p.get(unit) {
                lines.set_valid(lines.of(at), at, mask);
            }
        }
        let copy = |sector: TrimSector| {
            let TrimSector { seq, at, records } = sector;
            records.into_iter().map(move |(order, record)| (order, seq, at, record))
        };
        let unit_bits = self.unit_bits;
        let mut copies: Vec<_> = self.trims.into_iter().flat_map(copy).collect();
        copies.sort_by_key(|&(order, seq, ..)| Reverse((order, seq)));
        // What a younger record hides.
        let mut hidden = RunSet::default();
        let mut needed = Vec::new();
        let mut younger = u64::MAX;
        for (order, _, at, record) in copies {
            invariant!(order <= younger, "of records that hide a sector the youngest is kept");
            younger = order;
            let mut news = false;
            let units = units_of(&record, unit_bits, l2p.end());
            let units = if units.is_empty() { Vec::new() } else { hidden.add(units) };
            for run in units.into_iter().flat_map(|units| l2p.unmapped_runs(units)) {
                hides(run, &record);
                news = true;
            }
            if news && !lines.is_valid(at) {
                lines.set_valid(lines.of(at), at, mask);
                needed.push(at);
            }
        }
        needed
    }
}

/// The mapping units of a record that a table of so many has.
fn units_of(record: &TrimRecord, unit_bits: u32, units: u64) -> Range<u64> {
    let first = u64::from(record.lba);
    let end = (first + u64::from(record.sectors)) >> unit_bits;
    first.div_ceil(1 << unit_bits)..end.min(units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::l2p::L2p;
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
        let mut replay = Replay::new(0, true);
        let copies = [(0, 9, 2), (0, 7, 1), (1, 5, 3), (2, 12, 4)];
        let seq_of = |place| {
            let copy = copies.into_iter().find(|&(.., at)| Ppa(at) == place);
            copy.map_or(0, |(_, seq, _)| seq)
        };
        for (lba, order, at) in copies {
            replay.offer(&mut l2p, Lba(lba), order, Ppa(at), seq_of);
        }
        let record = |seq| TrimRecord { lba: 0, sectors: 3, seq };
        for (seq, at) in [(8, 10), (6, 11)] {
            replay.add_trims(seq, Ppa(at), [(seq, record(seq))].into_iter());
        }
        replay.hide_trimmed(&mut l2p, seq_of);
        let at = |at| MapEntry::Flash(Ppa(at));
        let entries = [0, 1, 2, 3].map(|lba| l2p.get(Lba(lba)));
        assert_eq!(entries, [at(2), MapEntry::Unmapped, at(4), MapEntry::Unmapped]);
        let mut hides = Vec::new();
        assert_eq!(
            replay.count_valid(&l2p, &mut lines, |units, by| hides.push((units, by.seq))),
            [Ppa(10)]
        );
        assert_eq!(hides, [(1..2, 8)], "the younger record hides what is unmapped");
        let valid: Vec<u64> = (0..64).filter(|&at| lines.is_valid(Ppa(at))).collect();
        assert_eq!(valid, [2, 4, 10], "the older record hides nothing that the younger does not");
    }

    /// A record hides the mapping units that it covers as a whole, and none of which it covers a part.
    #[test]
    fn records_hide_whole_units() {
        let units = |lba, sectors| units_of(&TrimRecord { lba, sectors, seq: 1 }, 2, 4);
        assert_eq!(units(4, 8), 1..3);
        assert_eq!(units(3, 9), 1..3, "the last sector of the first unit");
        assert_eq!(units(4, 11), 1..3, "the first sectors of the last unit");
        assert!(units(5, 2).is_empty());
        assert_eq!(units(8, 100), 2..4, "the table ends there");
    }
}
