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

use super::bits::bit;
use super::l2p::{L2p, MapEntry};
use super::lines::Lines;
use super::trims::TrimRecord;
use nandscape_block::Lba;
use nandscape_media::Ppa;
use std::cmp::Reverse;
use std::ops::Range;

/// Copies and records found on media, weighed against each other.
pub(crate) struct Replay {
    /// Order of the newest copy of each mapping unit, where orders are not sequences.
    orders: Option<Vec<u64>>,
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
    /// Nothing found yet on a device of so many mapping units of `1 << unit_bits` sectors. Whether orders are
    /// sequences.
    pub(crate) fn new(units: u64, unit_bits: u32, by_sequence: bool) -> Self {
        let orders = (!by_sequence).then(|| vec![0; units as usize]);
        Self { orders, unit_bits, trims: Vec::new(), seq_max: 0 }
    }

    /// A copy of mapping unit `unit` lies at `at`: the table points at it if it is the newest so far. `seq_of`
    /// reads the sequence of a place on media.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        l2p: &mut L2p,
        unit: Lba,
        order: u64,
        at: Ppa,
        seq_of: impl Fn(Ppa) -> u64,
    ) {
        if self.order_of(l2p, unit, seq_of).is_none_or(|best| order >= best) {
            if let Some(orders) = &mut self.orders {
                orders[unit.0 as usize] = order;
            }
            l2p.replace(unit, MapEntry::Flash(at));
        }
    }

    /// The order of the copy that the table points at.
    #[inline]
    fn order_of(&self, l2p: &L2p, unit: Lba, seq_of: impl Fn(Ppa) -> u64) -> Option<u64> {
        let MapEntry::Flash(at) = l2p.get(unit) else { return None };
        Some(self.orders.as_ref().map_or_else(|| seq_of(at), |orders| orders[unit.0 as usize]))
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
    pub(crate) fn hide_trimmed(&self, l2p: &mut L2p, seq_of: impl Fn(Ppa) -> u64) {
        for &(order, record) in self.trims.iter().flat_map(|sector| &sector.records) {
            for unit in units_of(&record, self.unit_bits, l2p).map(Lba) {
                if self.order_of(l2p, unit, &seq_of).is_some_and(|best| best < order) {
                    l2p.replace(unit, MapEntry::Unmapped);
                }
            }
        }
    }

    /// Sets the valid bits: of every sector that the table points at, and of trim sectors with a
    /// record that hides what no younger one does. Others may be in lines that were free already:
    /// one whose sectors were written and then discarded again looks needed, and is not. The places of the trim
    /// sectors; `hides` gets each unit that is unmapped, with the youngest record that hides it.
    pub(crate) fn count_valid(
        self,
        l2p: &L2p,
        lines: &mut Lines,
        mut hides: impl FnMut(u64, &TrimRecord),
    ) -> Vec<Ppa> {
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
        let unit_bits = self.unit_bits;
        let mut copies: Vec<_> = self.trims.into_iter().flat_map(copy).collect();
        copies.sort_by_key(|&(order, seq, ..)| Reverse((order, seq)));
        // A bit for each unit that a younger record hides.
        let words = if copies.is_empty() { 0 } else { l2p.len().div_ceil(64) };
        let mut hidden = vec![0_u64; words as usize];
        let mut needed = Vec::new();
        for (_, _, at, record) in copies {
            let mut news = false;
            for unit in units_of(&record, unit_bits, l2p) {
                let (word, bit) = bit(unit);
                let word = &mut hidden[word];
                if l2p.get(Lba(unit)) == MapEntry::Unmapped && *word & bit == 0 {
                    hides(unit, &record);
                    news = true;
                }
                *word |= bit;
            }
            if news && !lines.is_valid(at) {
                lines.set_valid(lines.of(at), at, mask);
                needed.push(at);
            }
        }
        needed
    }
}

/// The mapping units of a record that the table has.
fn units_of(record: &TrimRecord, unit_bits: u32, l2p: &L2p) -> Range<u64> {
    let first = u64::from(record.lba);
    let end = (first + u64::from(record.sectors)) >> unit_bits;
    first.div_ceil(1 << unit_bits)..end.min(l2p.len())
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
        let mut replay = Replay::new(4, 0, true);
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
            replay.count_valid(&l2p, &mut lines, |unit, by| hides.push((unit, by.seq))),
            [Ppa(10)]
        );
        assert_eq!(hides, [(1, 8)], "the younger record hides what is unmapped");
        let valid: Vec<u64> = (0..64).filter(|&at| lines.is_valid(Ppa(at))).collect();
        assert_eq!(valid, [2, 4, 10], "the older record hides nothing that the younger does not");
    }
}
