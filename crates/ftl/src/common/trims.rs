//! The trim log: discards are writes. A discard hides older copies at once in the table; its record
//! waits here for company, goes into the write buffer as a sector of records at the next flush or when a
//! sector is full, and is durable like any other entry.
//!
//! A record keeps its sequence for life. When garbage collection meets a sector of records it logs
//! again those that still hide something; replay by sequence makes that harmless.

use super::sealed::{seal, u32_at, u64_at, unseal};
use nandscape_block::{SECTOR_BYTES, SectorData};
use nandscape_rt::invariant;
use std::collections::VecDeque;

/// "trim".
pub(crate) const TRIM_MAGIC: u32 = 0x7472_696d;
/// Trim records that fit one sector.
pub(crate) const TRIMS_PER_SECTOR: usize = (SECTOR_BYTES as usize - 16) / 16;

/// One discard: it hides every copy of its sectors with a lower sequence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TrimRecord {
    /// First logical sector.
    pub(crate) lba: u32,
    /// Sectors.
    pub(crate) sectors: u32,
    /// Copies written before this sequence are hidden.
    pub(crate) seq: u64,
}

/// A sector of up to [`TRIMS_PER_SECTOR`] records.
pub(crate) fn encode_trims(records: &[TrimRecord]) -> SectorData {
    let mut bytes = [0; SECTOR_BYTES as usize];
    bytes[4..8].copy_from_slice(&TRIM_MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&(records.len() as u32).to_le_bytes());
    for (record, place) in records.iter().zip(bytes[16..].chunks_exact_mut(16)) {
        place[0..4].copy_from_slice(&record.lba.to_le_bytes());
        place[4..8].copy_from_slice(&record.sectors.to_le_bytes());
        place[8..16].copy_from_slice(&record.seq.to_le_bytes());
    }
    let sector = seal(bytes);
    invariant!(
        decode_trims(&sector).as_deref() == Some(records),
        "a sector of trim records gives back what was put into it"
    );
    sector
}

/// The records of a sector, if these bytes are one.
pub(crate) fn decode_trims(data: &SectorData) -> Option<Vec<TrimRecord>> {
    let bytes = &*unseal(data, TRIM_MAGIC)?;
    let count = u32_at(bytes, 8) as usize;
    let records = bytes[16..].chunks_exact(16).take(count).map(|place| TrimRecord {
        lba: u32_at(place, 0),
        sectors: u32_at(place, 4),
        seq: u64_at(place, 8),
    });
    Some(records.collect())
}

/// Records not yet durable.
#[derive(Debug, Default)]
pub(crate) struct TrimLog {
    /// Oldest first. A compaction logs all that still hide something, which may be millions.
    pending: VecDeque<TrimRecord>,
    /// Position of the write buffer at which the oldest pending record was logged.
    pending_since: u64,
    /// Sectors in the buffer: when their oldest record was logged, and their position.
    emitted: VecDeque<(u64, u64)>,
}

impl TrimLog {
    /// Logs a record when the buffer stands at `position`.
    pub(crate) fn log(&mut self, record: TrimRecord, position: u64) {
        if self.pending.is_empty() {
            self.pending_since = position;
        }
        invariant!(
            self.pending_since <= position,
            "records are logged in the order of positions: the oldest holds the floor"
        );
        self.pending.push_back(record);
    }

    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the pending records fill a sector.
    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= TRIMS_PER_SECTOR
    }

    /// Whether more records are pending than a sector holds.
    pub(crate) fn overflows(&self) -> bool {
        self.pending.len() > TRIMS_PER_SECTOR
    }

    /// Hands pending records over to the buffer's entry at `position`, at most a sector of them, oldest first.
    pub(crate) fn emit(&mut self, position: u64) -> Vec<TrimRecord> {
        invariant!(
            self.emitted.back().is_none_or(|&(since, _)| since <= self.pending_since),
            "sectors of records are emitted in the order in which their oldest was logged"
        );
        self.emitted.push_back((self.pending_since, position));
        if !self.overflows() {
            return std::mem::take(&mut self.pending).into();
        }
        self.pending.drain(..TRIMS_PER_SECTOR).collect()
    }

    /// Bytes of RAM.
    pub(crate) fn bytes(&self) -> u64 {
        let records = self.pending.capacity() * size_of::<TrimRecord>();
        (records + self.emitted.capacity() * size_of::<(u64, u64)>()) as u64
    }

    /// Entries of the buffer changed places, each from one position to another.
    pub(crate) fn entries_moved(&mut self, moves: &[(u64, u64)]) {
        for sector in &mut self.emitted {
            if let Some(&(_, to)) = moves.iter().find(|(from, _)| *from == sector.1) {
                sector.1 = to;
            }
        }
    }

    /// Positions of the sectors that were not durable when this was asked for last.
    pub(crate) fn emitted(&self) -> impl Iterator<Item = u64> {
        self.emitted.iter().map(|&(_, position)| position)
    }

    /// Everything logged before this position is durable, given that all entries before `sync` are.
    pub(crate) fn durable(&mut self, sync: u64) -> u64 {
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

    /// No line is released and no flush ends before a discard logged earlier is durable: the floor stays
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

    /// Of more records than a sector holds the oldest go first, and the floor stays until the last are durable.
    #[test]
    fn a_sector_of_records_is_handed_over_at_a_time() {
        let mut log = TrimLog::default();
        for lba in 0..TRIMS_PER_SECTOR as u32 + 1 {
            log.log(TrimRecord { lba, ..RECORD }, 10);
        }
        assert!(log.overflows());
        assert_eq!(log.emit(20).len(), TRIMS_PER_SECTOR);
        assert!(log.has_pending() && !log.overflows());
        assert_eq!(log.durable(21), 10, "one record is pending");
        let last: Vec<u32> = log.emit(30).iter().map(|record| record.lba).collect();
        assert_eq!((last, log.durable(31)), (vec![TRIMS_PER_SECTOR as u32], u64::MAX));
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
