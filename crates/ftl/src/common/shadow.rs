//! A second bookkeeping of what is durable, which invariants compare with the first ([`Shadow`](nandscape_rt::Shadow)).
//!
//! [`Ledger`] knows, sequence by sequence, what is not durable, and of each line the newest thing that superseded a
//! sector of it. It learns of sectors when they enter a buffer and when their program has ended, and of nothing in
//! between: no pointer of a ring, no order of programs, no gate. What it says is therefore exact where the FTL
//! is careful, and an FTL that says more than it breaks a promise with the next power cut.

use super::ids::LineId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What superseded sectors of a line last.
#[derive(Clone, Copy, Default, Debug)]
struct Superseded {
    by_sector: u64,
    by_record: u64,
}

/// What is not durable of an FTL whose buffers or write points are numbered by `K`.
#[derive(Clone, Debug)]
pub(crate) struct Ledger<K> {
    /// Sequences of sectors that hold something.
    sectors: BTreeMap<K, BTreeSet<u64>>,
    /// Programs on their way, by their numbers, with the sequences that they hold.
    programs: BTreeMap<(K, u64), Vec<u64>>,
    /// Trim records in the order in which they were logged: at which position, and the sequences of the sectors that
    /// they are in.
    records: VecDeque<(u64, Option<u64>)>,
    lines: BTreeMap<LineId, Superseded>,
}

impl<K> Default for Ledger<K> {
    fn default() -> Self {
        Self {
            sectors: BTreeMap::new(),
            programs: BTreeMap::new(),
            records: VecDeque::new(),
            lines: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Copy> Ledger<K> {
    /// A sector entered a buffer.
    pub(crate) fn entered(&mut self, buffer: K, seq: u64) {
        self.sectors.entry(buffer).or_default().insert(seq);
    }

    /// A trim record was logged.
    pub(crate) fn logged(&mut self, position: u64) {
        self.records.push_back((position, None));
    }

    /// So many records, the oldest of those that wait, are in a sector.
    pub(crate) fn emitted(&mut self, records: usize, sector: u64) {
        let waiting = self.records.iter_mut().filter(|(_, sector)| sector.is_none());
        waiting.take(records).for_each(|record| record.1 = Some(sector));
    }

    /// So many records, the oldest of those that wait, are where they survive a power cut.
    pub(crate) fn kept(&mut self, records: usize) {
        self.records.drain(..records);
    }

    /// A program of sectors with these sequences was sent.
    pub(crate) fn sent(&mut self, buffer: K, number: u64, sectors: impl Iterator<Item = u64>) {
        self.programs.insert((buffer, number), sectors.collect());
    }

    /// A program has ended well.
    pub(crate) fn ended(&mut self, buffer: K, number: u64) {
        let ended = self.programs.remove(&(buffer, number)).unwrap_or_default();
        let sectors = self.sectors.entry(buffer).or_default();
        for seq in &ended {
            sectors.remove(seq);
        }
        self.records.retain(|(_, sector)| sector.is_none_or(|seq| !ended.contains(&seq)));
    }

    /// A sector of a line was superseded by one with this sequence.
    pub(crate) fn superseded(&mut self, line: LineId, by: u64) {
        let of = self.lines.entry(line).or_default();
        of.by_sector = of.by_sector.max(by);
    }

    /// A sector of a line was superseded by the record that is logged at this position, or by an older one.
    pub(crate) fn discarded(&mut self, line: LineId, position: u64) {
        let of = self.lines.entry(line).or_default();
        of.by_record = of.by_record.max(position);
    }

    /// A sector of a line was superseded by some record.
    pub(crate) fn discarded_by_any(&mut self, line: LineId) {
        if let Some(&(youngest, _)) = self.records.back() {
            self.discarded(line, youngest);
        }
    }

    /// A line was erased.
    pub(crate) fn erased(&mut self, line: LineId) {
        self.lines.remove(&line);
    }

    /// Whether the sectors that superseded those of a line are durable: they are in these buffers.
    pub(crate) fn may_erase_after(&self, line: LineId, of: impl IntoIterator<Item = K>) -> bool {
        self.lines.get(&line).is_none_or(|by| self.are_durable(of, by.by_sector + 1))
    }

    /// Whether the records that superseded sectors of a line are durable.
    pub(crate) fn may_erase_after_records(&self, line: LineId) -> bool {
        self.lines.get(&line).is_none_or(|by| self.are_logged(by.by_record + 1))
    }

    /// Whether everything that superseded sectors of a line is durable.
    pub(crate) fn may_erase(&self, line: LineId) -> bool {
        self.may_erase_after(line, self.sectors.keys().copied())
            && self.may_erase_after_records(line)
    }

    /// Whether everything before a sequence is durable in these buffers.
    pub(crate) fn are_durable(&self, buffers: impl IntoIterator<Item = K>, before: u64) -> bool {
        let oldest =
            |buffer| self.sectors.get(&buffer).and_then(|sectors| sectors.first().copied());
        buffers.into_iter().filter_map(oldest).all(|oldest| oldest >= before)
    }

    /// Whether a sector is durable.
    pub(crate) fn is_durable(&self, buffer: K, seq: u64) -> bool {
        self.sectors.get(&buffer).is_none_or(|sectors| !sectors.contains(&seq))
    }

    /// Whether all records that were logged before a position are durable.
    pub(crate) fn are_logged(&self, before: u64) -> bool {
        self.records.front().is_none_or(|&(oldest, _)| oldest >= before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line may be erased when what superseded its sectors is durable: sectors in the buffers that count, and records
    /// with the sector that they are in.
    #[test]
    fn a_line_waits_for_what_superseded_its_sectors() {
        let mut ledger = Ledger::default();
        for (buffer, seq) in [(0, 5), (0, 6), (1, 7)] {
            ledger.entered(buffer, seq);
        }
        ledger.superseded(3, 6);
        assert!(!ledger.may_erase_after(3, [0]) && ledger.may_erase_after(3, [1]));
        ledger.sent(0, 1, 5..=6);
        assert!(!ledger.may_erase(3));
        ledger.ended(0, 1);
        assert!(ledger.may_erase(3) && ledger.is_durable(0, 6) && !ledger.is_durable(1, 7));
    }

    /// Records are durable with the sector that they are in, or when they are where they survive.
    #[test]
    fn a_line_waits_for_records() {
        let mut ledger = Ledger::default();
        ledger.logged(8);
        ledger.discarded_by_any(3);
        assert!(!ledger.may_erase(3) && ledger.are_logged(8) && !ledger.are_logged(9));
        ledger.entered(0, 9);
        ledger.emitted(1, 9);
        ledger.logged(10);
        ledger.sent(0, 2, [9].into_iter());
        assert!(!ledger.are_logged(9));
        ledger.ended(0, 2);
        assert!(ledger.may_erase(3) && !ledger.are_logged(11));
        ledger.kept(1);
        assert!(ledger.are_logged(u64::MAX));
        ledger.superseded(4, 20);
        ledger.erased(4);
        assert!(ledger.may_erase(4));
    }
}
