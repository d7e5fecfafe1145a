//! The address space of the SSD of IPLFS (USENIX ATC '22), as its port to NVMeVirt divides it: equal partitions, of which
//! the first begins with a page-mapped region for metadata, and the next six are append-only regions, one for each log
//! of F2FS, with an interval map each. Addresses between the metadata region and the first log do not exist.
//!
//! - *Append rule.* A sector of a log is written only while nothing is there.
//! - *Live sectors.* Those that hold data, in all regions together, are at most as many as the media hold. A sector counts until
//!   its discard is durable, since a power cut may bring it back: a write for which there is room only then
//!   waits for that.
//! - *Instances.* A sector of the metadata region has its instance by its address, as on a conventional SSD, because an
//!   overwrite must go to the instance of what it supersedes. So has one of a log while that instance holds less than
//!   its share of the live sectors and trim records, which are in instance 0; else it goes to the one that holds least. A host that discards unevenly fills
//!   no instance beyond its share so, and the metadata region is counted twice in the sizes for what it may add.
//! - Sectors of all regions share erase units. Logs separate data by lifetime, which is lost here. That costs little where
//!   one log takes nearly all writes, as that of warm data does in the workloads that the paper measures; six
//!   write points per instance would each hold an erase unit open.
//!
//! *Compaction* looks at all maps once per period of virtual time, in the background. While the firmware reads bitmaps
//! and copies entries at its rate it does nothing else: commands that come meanwhile, and programs, begin when it
//! is done.
//!
//! *Accesses* of the firmware are those of interval maps, and one for an entry of the metadata region. The append rule and the
//! bound on live sectors are checked without any.

use super::interval::{Compaction, IntervalMap, MapBytes, MapShape};
#[cfg(test)]
mod tests;

use super::{Admission, RegionMap};
use crate::common::firmware::{Firmware, Walk};
use crate::common::l2p::{L2p, MapEntry, pack, unpack};
use crate::common::table::Table;
use crate::device::IntervalReport;
use crate::kind::FtlKind;
use nandscape_block::{BlockError, Lba};
use nandscape_rt::{Nanos, invariant};
use std::ops::Range;

/// Append-only regions.
pub(in crate::device) const LOGS: u64 = 6;

/// How the address space is divided, and what the firmware takes for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::device) struct Division {
    /// log2 of the sectors of a partition.
    pub(in crate::device) partition_bits: u32,
    /// Sectors of the metadata region.
    pub(in crate::device) random_sectors: u64,
    /// Sectors that may hold data at once.
    pub(in crate::device) live_max: u64,
    /// Sectors that trim records may take, all of them in instance 0.
    pub(in crate::device) record_sectors: u64,
    /// FTL instances.
    pub(in crate::device) instances: u32,
    /// Interval maps.
    pub(in crate::device) shape: MapShape,
    /// Time between two compactions.
    pub(in crate::device) period: Nanos,
    /// Bytes of maps that the firmware reads or copies per second; 0: that takes no time.
    pub(in crate::device) bytes_per_s: u64,
}

/// The maps of all regions; see the head of this file.
#[derive(Debug)]
pub struct Partitions {
    division: Division,
    random: L2p,
    logs: Box<[IntervalMap]>,
    /// Sectors of each instance that are mapped, or whose discard is not durable.
    live: Box<[u64]>,
    /// Mapped sectors.
    mapped: u64,
    /// When compaction is due.
    due: Nanos,
    counts: IntervalReport,
}

impl Partitions {
    /// Empty maps at `now`, for media with addresses below `ppa_end`, which packed entries can hold; `None` when the process
    /// cannot have the address space.
    pub(in crate::device) fn new(division: Division, ppa_end: u64, now: Nanos) -> Option<Self> {
        let log = || IntervalMap::new(division.shape);
        Some(Self {
            division,
            random: L2p::new(division.random_sectors, ppa_end)?,
            logs: std::iter::repeat_with(log).take(LOGS as usize).collect(),
            live: vec![0; division.instances as usize].into(),
            mapped: 0,
            due: next_period(now, division.period),
            counts: IntervalReport::default(),
        })
    }

    /// What the compactions counted.
    pub(in crate::device) const fn counts(&self) -> IntervalReport {
        self.counts
    }

    /// The log that an address is of, and the address within it.
    #[inline]
    const fn log_of(&self, unit: u64) -> Option<(usize, u64)> {
        let bits = self.division.partition_bits;
        match unit >> bits {
            log @ 1..=LOGS => Some((log as usize - 1, unit & ((1 << bits) - 1))),
            _ => None,
        }
    }

    /// The parts of these units in each region, first the metadata region's and then those of logs.
    fn parts_of(
        &self,
        units: &Range<u64>,
    ) -> impl Iterator<Item = (Option<usize>, Range<u64>)> + use<> {
        let Range { start, end } = *units;
        let bits = self.division.partition_bits;
        let random = start..end.min(self.division.random_sectors);
        let logs = (1..=LOGS).map(move |log| {
            let (first, last) = (log << bits, (log + 1) << bits);
            (Some(log as usize - 1), start.max(first)..end.min(last))
        });
        std::iter::once((None, random)).chain(logs).filter(|(_, part)| part.start < part.end)
    }

    /// The first of these units that is mapped, or that is not, by accesses of the firmware.
    fn next(&self, units: &Range<u64>, mapped: bool, walk: &mut Walk) -> Option<u64> {
        self.parts_of(units).find_map(|(log, part)| {
            let Some(log) = log else {
                let found = if mapped {
                    self.random.next_mapped(part.clone())
                } else {
                    self.random.next_unmapped(part.clone())
                };
                walk.access(found.unwrap_or(part.end) - part.start);
                return found;
            };
            walk.enter(log);
            let first = (log as u64 + 1) << self.division.partition_bits;
            let found = self.logs[log].next(part.start - first..part.end - first, mapped, walk);
            found.map(|at| first + at)
        })
    }

    fn live_sectors(&self) -> u64 {
        self.live.iter().sum()
    }

    /// Whether a write breaks no rule.
    fn admission(&self, lba: Lba, sectors: u32) -> Admission {
        let units = lba.0..lba.0 + u64::from(sectors);
        let refuse = |lba, what| Admission::Refused(BlockError::Region { lba: Lba(lba), what });
        let mapped = self.next_mapped(units.clone());
        let added = match (mapped, self.log_of(lba.0)) {
            (None, _) => u64::from(sectors),
            (Some(lba), Some(_)) => return refuse(lba, "an overwrite in an append-only region"),
            (Some(_), None) => u64::from(sectors) - self.mapped_in(units).count() as u64,
        };
        if self.mapped + added > self.division.live_max {
            return refuse(lba.0, "more live sectors than the device holds");
        }
        match self.live_sectors() + added > self.division.live_max {
            true => Admission::AfterDiscards,
            false => Admission::Admitted,
        }
    }

    /// Compacts what changed, at the time when that was due.
    #[cold]
    fn compact(&mut self, now: Nanos, firmware: &mut Firmware) {
        let at = self.due;
        self.due = next_period(now, self.division.period);
        if !self.logs.iter().any(IntervalMap::has_changed) {
            return;
        }
        let done = self.logs.iter_mut().map(IntervalMap::compact);
        let done = done.fold(Compaction::default(), Compaction::plus);
        let bytes = u128::from(done.read_bytes + done.copied_bytes) * 1_000_000_000;
        let ns = bytes.checked_div(self.division.bytes_per_s.into()).unwrap_or(0);
        let ns = Nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        firmware.occupy(at, ns);
        self.counts.compactions += 1;
        self.counts.candidates += done.candidates;
        self.counts.compacted += done.compacted;
        self.counts.read_bytes += done.read_bytes;
        self.counts.copied_bytes += done.copied_bytes;
        self.counts.freed_bytes += done.freed_bytes;
        self.counts.busy_ns += ns.0;
    }
}

/// The first whole number of periods after `now`.
fn next_period(now: Nanos, period: Nanos) -> Nanos {
    let period = period.0.max(1);
    Nanos((now.0 / period + 1).saturating_mul(period))
}

impl Table for Partitions {
    #[inline]
    fn get(&self, unit: Lba) -> MapEntry {
        if unit.0 < self.division.random_sectors {
            return self.random.get(unit);
        }
        self.log_of(unit.0).map_or(MapEntry::Unmapped, |(log, at)| unpack(self.logs[log].get(at)))
    }

    #[inline]
    fn replace(&mut self, unit: Lba, place: MapEntry) -> MapEntry {
        self.update(unit, place, &mut Walk::default())
    }

    fn end(&self) -> u64 {
        (LOGS + 1) << self.division.partition_bits
    }

    fn next_mapped(&self, units: Range<u64>) -> Option<u64> {
        self.next(&units, true, &mut Walk::default())
    }

    fn next_unmapped(&self, units: Range<u64>) -> Option<u64> {
        self.next(&units, false, &mut Walk::default())
    }
}

impl RegionMap for Partitions {
    const KIND: FtlKind = FtlKind::Interval;
    const COUNTS_LIVE: bool = true;

    #[inline]
    fn unit_bits(&self) -> u32 {
        0
    }

    fn instance_of(&self, unit: u64) -> usize {
        let home = unit as usize & (self.live.len() - 1);
        let Division { live_max, record_sectors, random_sectors, .. } = self.division;
        let share = (live_max + record_sectors) / self.live.len() as u64;
        let records = |instance| if instance == 0 { record_sectors } else { 0 };
        let held = |instance: usize| self.live[instance] + records(instance);
        if unit < random_sectors || held(home) < share {
            return home;
        }
        (0..self.live.len()).min_by_key(|&instance| held(instance)).unwrap_or(home)
    }

    fn may_be_in(&self, unit: u64, instance: u32) -> bool {
        let home = unit & (self.live.len() as u64 - 1);
        unit >= self.division.random_sectors || home == u64::from(instance)
    }

    #[inline]
    fn look_up(&self, unit: Lba, walk: &mut Walk) -> MapEntry {
        if unit.0 < self.division.random_sectors {
            walk.access(1);
            return self.random.get(unit);
        }
        let Some((log, at)) = self.log_of(unit.0) else { return MapEntry::Unmapped };
        walk.enter(log);
        unpack(self.logs[log].look_up(at, walk))
    }

    #[inline]
    fn update(&mut self, unit: Lba, place: MapEntry, walk: &mut Walk) -> MapEntry {
        if unit.0 < self.division.random_sectors {
            walk.access(1);
            return self.random.replace(unit, place);
        }
        invariant!(self.log_of(unit.0).is_some(), "unit {unit} that changes is in a region");
        let Some((log, at)) = self.log_of(unit.0) else { return MapEntry::Unmapped };
        walk.enter(log);
        unpack(self.logs[log].set(at, pack(place), walk))
    }

    fn switch(&mut self, unit: Lba, from: MapEntry, to: MapEntry, walk: &mut Walk) -> bool {
        let current = self.get(unit) == from;
        if current {
            self.update(unit, to, walk);
        } else {
            self.look_up(unit, walk);
        }
        current
    }

    fn search(&self, units: Range<u64>, walk: &mut Walk) -> Option<u64> {
        self.next(&units, true, walk)
    }

    fn has(&self, lba: Lba) -> bool {
        lba.0 < self.division.random_sectors || self.log_of(lba.0).is_some()
    }

    fn spaces(&self) -> impl Iterator<Item = Range<u64>> {
        self.parts_of(&(0..self.end())).map(|(_, part)| part)
    }

    #[inline]
    fn prefetch(&self, unit: Lba) {
        if unit.0 < self.division.random_sectors {
            self.random.prefetch(unit);
        }
    }

    fn mapped(&self) -> u64 {
        self.mapped
    }

    fn appended(&self) -> u64 {
        self.logs.iter().map(IntervalMap::mapped).sum()
    }

    fn bytes(&self) -> u64 {
        self.parts().into_iter().map(|(_, bytes)| bytes).sum()
    }

    fn parts(&self) -> Vec<(&'static str, u64)> {
        let logs = self.logs.iter();
        let bytes = logs.map(IntervalMap::bytes).fold(MapBytes::default(), MapBytes::plus);
        vec![
            ("metadata", self.random.bytes()),
            ("roots", bytes.roots),
            ("middle_nodes", bytes.middles),
            ("leaf_heads", bytes.leaves),
            ("bitmaps", bytes.bitmaps),
            ("directories", bytes.directories),
            ("entries", bytes.entries),
            ("changed_leaves", self.logs.iter().map(IntervalMap::changed_bytes).sum()),
        ]
    }

    fn came(&mut self, instance: usize) {
        invariant!(
            self.mapped < self.division.live_max,
            "no more sectors are mapped than the device holds"
        );
        self.live[instance] += 1;
        self.mapped += 1;
    }

    fn went(&mut self) {
        invariant!(self.mapped > 0, "a sector that goes was mapped");
        self.mapped -= 1;
    }

    fn settled(&mut self, instance: usize) {
        invariant!(
            self.live[instance] > 0,
            "a sector of instance {instance} counts until its discard is durable"
        );
        self.live[instance] -= 1;
    }

    fn admits(&self, lba: Lba, sectors: u32) -> Admission {
        self.admission(lba, sectors)
    }

    #[inline]
    fn tick(&mut self, now: Nanos, firmware: &mut Firmware) {
        if now >= self.due {
            self.compact(now, firmware);
        }
    }

    fn reset_counts(&mut self) {
        self.counts = IntervalReport::default();
    }

    fn check(&self, live: &[u64]) -> Result<(), String> {
        if *self.live != *live {
            return Err(format!("instances count {:?} live sectors of {live:?}", self.live));
        }
        let of_logs: u64 = self.logs.iter().map(IntervalMap::mapped).sum();
        let all = of_logs + self.random.mapped();
        if all != self.mapped {
            return Err(format!("{all} sectors are mapped, {} counted", self.mapped));
        }
        self.logs.iter().try_for_each(IntervalMap::check)
    }
}
