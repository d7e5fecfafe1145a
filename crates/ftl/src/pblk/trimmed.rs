//! Which trim record hides each discarded sector: the youngest one that covers it. Collection logs a record again only
//! while a sector is left that no younger record hides, so that records stay fewer than discarded sectors
//! however long a range is written and discarded again.
//!
//! Invariants:
//! - A sector is in a range exactly while a discard that is logged was the last change of it.
//! - Ranges do not overlap, and each lies in its record's.
//!
//! A record that is dropped was superseded by a record or a write that may be in a buffer yet: the gate of its line
//! waits for what was logged until then ([`Pblk::relog_trims`](super::Pblk)).

use crate::common::trims::TrimRecord;
use nandscape_block::Lba;
use nandscape_rt::invariant;
use std::collections::BTreeMap;
use std::ops::Range;

/// Discarded sectors that one record hides, up to `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Hidden {
    end: u64,
    by: TrimRecord,
}

/// Discarded sectors, by the first of each range.
#[derive(Default, Debug)]
pub(super) struct Trimmed {
    ranges: BTreeMap<u64, Hidden>,
}

impl Trimmed {
    /// A record younger than all others hides its sectors.
    pub(super) fn hide(&mut self, record: TrimRecord) {
        let first = u64::from(record.lba);
        self.hide_part(first..first + u64::from(record.sectors), record);
    }

    /// A record hides a part of its sectors, and no other does from now on.
    pub(super) fn hide_part(&mut self, sectors: Range<u64>, by: TrimRecord) {
        self.show(sectors.clone());
        let before = self.ranges.range_mut(..sectors.start).next_back();
        match before.filter(|(_, before)| before.end == sectors.start && before.by == by) {
            Some((_, before)) => {
                before.end = sectors.end;
                invariant!(
                    before.end <= u64::from(before.by.lba) + u64::from(before.by.sectors),
                    "each range lies in its record's: {before:?}"
                );
            }
            None => drop(self.ranges.insert(sectors.start, Hidden { end: sectors.end, by })),
        }
    }

    /// A sector that held nothing is written.
    #[inline]
    pub(super) fn written(&mut self, lba: Lba) {
        if !self.ranges.is_empty() {
            self.show(lba.0..lba.0 + 1);
        }
    }

    /// No record hides these sectors.
    fn show(&mut self, sectors: Range<u64>) {
        let behind = if cfg!(debug_assertions) { self.hider(sectors.end) } else { None };
        self.split(sectors.start);
        self.split(sectors.end);
        while let Some((&first, _)) = self.ranges.range(sectors.clone()).next() {
            self.ranges.remove(&first);
        }
        invariant!(
            self.hider(sectors.end) == behind && self.hider(sectors.start).is_none(),
            "a change of {sectors:?} changes what hides these, and no other"
        );
    }

    /// The record that hides a sector.
    fn hider(&self, sector: u64) -> Option<TrimRecord> {
        let (_, last) = self.ranges.range(..=sector).next_back()?;
        (last.end > sector).then_some(last.by)
    }

    /// Whether records hide the ends of these sectors.
    pub(super) fn hides(&self, sectors: Range<u64>) -> bool {
        self.hider(sectors.start).is_some() && self.hider(sectors.end - 1).is_some()
    }

    /// Whether a record hides its first sector, or its last.
    pub(super) fn hides_an_end(&self, record: &TrimRecord) -> bool {
        let first = u64::from(record.lba);
        let ends = [first, first + u64::from(record.sectors) - 1];
        ends.into_iter().any(|sector| self.hider(sector) == Some(*record))
    }

    /// No range goes on across `at`.
    fn split(&mut self, at: u64) {
        let before = self.ranges.range_mut(..at).next_back();
        if let Some((_, before)) = before.filter(|(_, before)| before.end > at) {
            let behind = Hidden { end: std::mem::replace(&mut before.end, at), by: before.by };
            self.ranges.insert(at, behind);
        }
    }

    /// Whether a record hides a sector that no younger one does.
    pub(super) fn is_needed(&self, record: &TrimRecord) -> bool {
        let first = u64::from(record.lba);
        let within = self.ranges.range(first..first + u64::from(record.sectors));
        within.map(|(_, hidden)| hidden.by).any(|by| by == *record)
    }

    /// The discarded sectors.
    pub(super) fn sectors(&self) -> impl Iterator<Item = Lba> {
        self.ranges.iter().flat_map(|(&first, hidden)| (first..hidden.end).map(Lba))
    }
}

#[cfg(test)]
mod tests;
