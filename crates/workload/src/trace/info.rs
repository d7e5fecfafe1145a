//! What a trace is like: how much, of what, where, in which order, and how soon it is written again.
//!
//! Memory grows with the footprint, not with the length of the trace: an entry for each 64 sectors
//! touched, with a time for each of them once one is written.

use super::record::{Action, Record};
use crate::direction::Direction;
use crate::latency::Latencies;
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;
use std::collections::BTreeMap;

/// Classes of sizes: up to 4 KiB, 8 KiB, ... 2 MiB, and beyond.
pub const SIZE_CLASSES: usize = 11;

/// Sectors that share an entry of the map.
const PAGE_SECTORS: u64 = 64;

/// Reads, writes or trims of a trace.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DirectionInfo {
    /// Requests.
    pub requests: u64,
    /// Bytes of them, as the trace names them.
    pub bytes: u64,
    /// The smallest, in bytes; 0 without requests.
    pub min_bytes: u64,
    /// The largest, in bytes.
    pub max_bytes: u64,
    /// Requests that begin where the one before of this direction ended.
    pub sequential: u64,
    /// Requests by size: class *k* holds those up to 4 KiB times 2 to the *k*, the last all beyond.
    pub sizes: [u64; SIZE_CLASSES],
    /// Where the last one ended, in bytes.
    end_bytes: Option<u64>,
}

impl DirectionInfo {
    /// Mean size in bytes; 0 without requests.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.bytes as f64 / self.requests as f64 }
    }

    fn add(&mut self, record: &Record) {
        let bytes = record.length_bytes;
        self.min_bytes = if self.requests == 0 { bytes } else { self.min_bytes.min(bytes) };
        self.max_bytes = self.max_bytes.max(bytes);
        self.sequential += u64::from(self.end_bytes == Some(record.offset_bytes));
        self.end_bytes = Some(record.offset_bytes + bytes);
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let doublings = bytes.div_ceil(SECTOR_BYTES).next_power_of_two().trailing_zeros();
        self.sizes[(doublings as usize).min(SIZE_CLASSES - 1)] += 1;
    }
}

/// What is known of [`PAGE_SECTORS`] sectors.
#[derive(Clone, Default, Debug)]
struct Page {
    /// A bit for each sector that was read.
    read: u64,
    /// A bit for each sector that was written.
    written: u64,
    /// When each was last written; without writes there is none.
    written_at: Option<Box<[Nanos; PAGE_SECTORS as usize]>>,
}

/// A trace in figures, collected request by request.
#[derive(Clone, Default, Debug)]
pub struct Info {
    directions: [DirectionInfo; 3],
    flushes: u64,
    unaligned: u64,
    duration: Nanos,
    end_bytes: u64,
    pages: BTreeMap<u64, Page>,
    update_intervals: Latencies,
}

impl Info {
    /// Takes the next request in.
    pub fn add(&mut self, record: &Record) {
        self.duration = self.duration.max(record.at);
        let Action::Io(direction) = record.action else {
            self.flushes += 1;
            return;
        };
        self.directions[direction as usize].add(record);
        let end_bytes = record.offset_bytes + record.length_bytes;
        self.end_bytes = self.end_bytes.max(end_bytes);
        let aligned = [record.offset_bytes, end_bytes].iter().all(|b| b % SECTOR_BYTES == 0);
        self.unaligned += u64::from(!aligned);
        if direction != Direction::Trim {
            self.touch(record, direction == Direction::Write);
        }
    }

    fn touch(&mut self, record: &Record, is_write: bool) {
        let (first, end) = record.sectors();
        for sector in first..end {
            let page = self.pages.entry(sector / PAGE_SECTORS).or_default();
            let (index, bit) = (sector % PAGE_SECTORS, 1 << (sector % PAGE_SECTORS));
            if !is_write {
                page.read |= bit;
                continue;
            }
            let fresh = || Box::new([Nanos::ZERO; PAGE_SECTORS as usize]);
            let times = page.written_at.get_or_insert_with(fresh);
            let before = std::mem::replace(&mut times[index as usize], record.at);
            if page.written & bit != 0 {
                self.update_intervals.record(record.at.saturating_sub(before));
            }
            page.written |= bit;
        }
    }

    /// Reads, writes or trims.
    #[must_use]
    pub const fn direction(&self, direction: Direction) -> &DirectionInfo {
        &self.directions[direction as usize]
    }

    /// Reads, writes and trims.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.directions.iter().map(|direction| direction.requests).sum()
    }

    /// Flushes.
    #[must_use]
    pub const fn flushes(&self) -> u64 {
        self.flushes
    }

    /// Requests that do not begin and end at whole sectors of 4 KiB.
    #[must_use]
    pub const fn unaligned(&self) -> u64 {
        self.unaligned
    }

    /// Time from the first request to the last.
    #[must_use]
    pub const fn duration(&self) -> Nanos {
        self.duration
    }

    /// The byte behind the last one that any request names: the smallest device that holds it all.
    #[must_use]
    pub const fn end_bytes(&self) -> u64 {
        self.end_bytes
    }

    /// Bytes of the distinct sectors of 4 KiB that were read or written; read; written.
    #[must_use]
    pub fn footprint_bytes(&self) -> [u64; 3] {
        let mut sectors = [0; 3];
        for page in self.pages.values() {
            for (sum, bits) in
                sectors.iter_mut().zip([page.read | page.written, page.read, page.written])
            {
                *sum += u64::from(bits.count_ones());
            }
        }
        sectors.map(|sectors| sectors * SECTOR_BYTES)
    }

    /// Times from one write of a sector of 4 KiB to the next write of the same sector.
    #[must_use]
    pub const fn update_intervals(&self) -> &Latencies {
        &self.update_intervals
    }
}
