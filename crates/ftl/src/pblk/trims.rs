//! The trim log: discards are writes. A discard hides older copies at once in the table; its record
//! waits here for company, goes into the ring as a sector of records at the next flush or when a
//! sector is full, and is durable like any other entry.
//!
//! A record keeps its sequence for life. When garbage collection meets a sector of records it logs
//! again those that still hide something; replay by sequence makes that harmless.

use super::format::{TRIMS_PER_SECTOR, TrimRecord};
use std::collections::VecDeque;

/// Records not yet durable.
#[derive(Debug, Default)]
pub(super) struct TrimLog {
    pending: Vec<TrimRecord>,
    /// Ring position at which the oldest pending record was logged.
    pending_since: u64,
    /// Sectors in the ring: when their oldest record was logged, and their position.
    emitted: VecDeque<(u64, u64)>,
}

impl TrimLog {
    /// Logs a record when the ring stands at `position`.
    pub(super) fn log(&mut self, record: TrimRecord, position: u64) {
        if self.pending.is_empty() {
            self.pending_since = position;
        }
        self.pending.push(record);
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the pending records fill a sector.
    pub(super) fn is_full(&self) -> bool {
        self.pending.len() >= TRIMS_PER_SECTOR
    }

    /// Hands the pending records over to the ring entry at `position`.
    pub(super) fn emit(&mut self, position: u64) -> Vec<TrimRecord> {
        self.emitted.push_back((self.pending_since, position));
        std::mem::take(&mut self.pending)
    }

    /// Entries of the ring changed places, each from one position to another.
    pub(super) fn entries_moved(&mut self, moves: &[(u64, u64)]) {
        for sector in &mut self.emitted {
            if let Some(&(_, to)) = moves.iter().find(|(from, _)| *from == sector.1) {
                sector.1 = to;
            }
        }
    }

    /// Everything logged before this ring position is durable, given the ring's `sync`.
    pub(super) fn durable(&mut self, sync: u64) -> u64 {
        while self.emitted.front().is_some_and(|&(_, position)| position < sync) {
            self.emitted.pop_front();
        }
        let emitted = self.emitted.front().map_or(u64::MAX, |&(since, _)| since);
        let pending = if self.has_pending() { self.pending_since } else { u64::MAX };
        emitted.min(pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: TrimRecord = TrimRecord { lba: 1, sectors: 2, seq: 3 };

    /// No line cools and no flush ends before a discard logged earlier is durable: the floor stays
    /// at the oldest record from logging until `sync` has passed its sector.
    #[test]
    fn the_durable_floor_stays_at_the_oldest_record() {
        let mut log = TrimLog::default();
        assert_eq!(log.durable(50), u64::MAX);
        log.log(RECORD, 10);
        log.log(RECORD, 20);
        assert_eq!(log.durable(50), 10);
        log.emit(30);
        assert_eq!(log.durable(30), 10, "its sector is not durable yet");
        assert_eq!(log.durable(31), u64::MAX);
    }

    /// Later records do not lower the floor of earlier ones, nor raise it.
    #[test]
    fn each_sector_of_records_holds_its_own_floor() {
        let mut log = TrimLog::default();
        log.log(RECORD, 10);
        log.emit(12);
        log.log(RECORD, 14);
        log.emit(16);
        log.log(RECORD, 18);
        assert_eq!([12, 13, 16, 17, 99].map(|sync| log.durable(sync)), [10, 14, 14, 18, 18]);
    }

    #[test]
    fn records_are_handed_over_once_and_in_order() {
        let mut log = TrimLog::default();
        let records = [4, 5, 6].map(|lba| TrimRecord { lba, ..RECORD });
        for record in records {
            log.log(record, 1);
        }
        assert!(log.has_pending());
        assert_eq!(log.emit(2), records);
        assert!(!log.has_pending() && log.emit(3).is_empty());
    }

    #[test]
    fn a_log_is_full_when_its_sector_is() {
        let mut log = TrimLog::default();
        for _ in 0..TRIMS_PER_SECTOR {
            assert!(!log.is_full());
            log.log(RECORD, 1);
        }
        assert!(log.is_full());
    }
}
