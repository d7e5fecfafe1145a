//! What a run found out. Everything but wall times and the commit is a function of stack, job and
//! seed. All figures are of the measured phase.

use super::counts::{Sample, ZoneReport};
use super::load::{AppBytes, RoundsRun};
use super::queue::QueueCounts;
use super::sense::{Busy, Law, effective_op_percent};
use super::series::{self, Point, WriteAmplification};
use crate::stack::{FsStack, Stack};
use crate::state::{Origin, Preconditioned, StateKey};
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::{Detail, DeviceSize, EraseUnit, EraseUnitState, FtlReport, MemoryUse};
use nandscape_media::{LinkUse, Utilisation, Wear};
use nandscape_rt::Nanos;
use nandscape_rt::host::CoreTimes;
use nandscape_workload::engine::{JobResult, Results};
use nandscape_workload::replay::TraceCounts;
use nandscape_workload::target::FileCounts;
use nandscape_workload::wml::engine::Report;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;

/// Classes of [`Outcome::line_valid`].
pub const VALID_CLASSES: usize = 20;

/// How many full erase units have how large a share of valid sectors.
pub(super) fn line_valid(units: &[EraseUnit]) -> [u64; VALID_CLASSES] {
    let mut classes = [0; VALID_CLASSES];
    let full = |unit: &&EraseUnit| {
        matches!(unit.state, EraseUnitState::Full | EraseUnitState::Corrupt) && unit.written > 0
    };
    for unit in units.iter().filter(full) {
        let class = u64::from(unit.valid) * VALID_CLASSES as u64 / u64::from(unit.written);
        classes[(class as usize).min(VALID_CLASSES - 1)] += 1;
    }
    classes
}

/// Classes of [`EraseCounts`] at most.
const ERASE_CLASSES: u32 = 32;

/// How many chunks in service were erased how often.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct EraseCounts {
    /// Erases of the first class.
    pub first: u32,
    /// Width of a class in erases.
    pub step: u32,
    /// Chunks by class.
    pub chunks: Vec<u64>,
}

impl EraseCounts {
    /// Of chunks whose erases lie within those of `wear`.
    pub(super) fn of(wear: &Wear, erases: impl Iterator<Item = u32>) -> Self {
        let range = wear.erases_max - wear.erases_min;
        let step = range / ERASE_CLASSES + 1;
        let mut chunks = vec![0; (range / step) as usize + 1];
        erases.for_each(|erases| chunks[((erases - wear.erases_min) / step) as usize] += 1);
        Self { first: wear.erases_min, step, chunks }
    }
}

/// Seconds of real time that a run took; the only part of an outcome that differs from run to run.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct WallTime {
    /// Of preconditioning.
    pub precondition_s: f64,
    /// Of the measured phase.
    pub measured_s: f64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What ran.
    pub stack: Stack,
    /// Where its randomness came from.
    pub seed: u64,
    /// Sizes.
    pub size: DeviceSize,
    /// What was written before measuring.
    pub preconditioned: Preconditioned,
    /// Sectors of a trace's footprint that were written after that, in order and untimed.
    pub prefilled: u64,
    /// Names the device state that this left; `None`: the device was fresh.
    pub state: Option<StateKey>,
    /// What wrote that, if not preconditioning.
    pub origin: Option<Origin>,
    /// Virtual length of the measured phase.
    pub virtual_time: Nanos,
    /// Real time.
    pub wall: WallTime,
    /// What each job did.
    pub workload: Results<Sample>,
    /// How the trace was treated, if one was replayed.
    pub trace: Option<TraceCounts>,
    /// What flowops did, if a workload of them ran.
    pub flowops: Option<Report>,
    /// What the FTL did.
    pub ftl: FtlReport,
    /// What only this kind of FTL counts.
    pub ftl_detail: Detail,
    /// What the file system did; `None`: there is none.
    pub fs: Option<FileCounts>,
    /// RAM of the FTL.
    pub memory: MemoryUse,
    /// Host memory that was reserved, by part, in bytes; none without a file system.
    pub host_memory: Vec<(&'static str, u64)>,
    /// RAM of the file system by part, in bytes; none of a kind that does not say.
    pub fs_memory: Vec<(&'static str, u64)>,
    /// RAM of the virtual media.
    pub media_bytes: u64,
    /// Wear since the device was new, preconditioning included.
    pub wear: Wear,
    /// How often chunks were erased, likewise.
    pub erase_counts: EraseCounts,
    /// Time that units and channels were taken.
    pub utilisation: Utilisation,
    /// What crossed the link between host and device.
    pub link: LinkUse,
    /// Requests in the device, over time.
    pub queue: QueueCounts,
    /// What theory has for the load, if there is a law for it.
    pub law: Option<Law>,
    /// For what each core of the host was used.
    pub cores: Vec<CoreTimes>,
    /// Full lines at the end, by share of their sectors that are valid: class *k* of
    /// [`VALID_CLASSES`] begins at *k* / [`VALID_CLASSES`]; entirely valid ones are in the last.
    pub line_valid: [u64; VALID_CLASSES],
    /// The zones of the device at the end, if it has any.
    pub zones: Option<ZoneReport>,
    /// The course of the run.
    pub series: Vec<Point>,
    /// Why the figures are not those of a steady state; `None`: they are.
    pub not_steady: Option<String>,
    /// How a run until steady state went, if it was one.
    pub rounds: Option<RoundsRun>,
    /// Whether it was ended before its end: all figures are of what had happened until then.
    pub interrupted: bool,
    /// What a reader should know before believing a figure.
    pub warnings: Vec<String>,
}

impl Outcome {
    /// Whether the figures are those of a steady state.
    #[must_use]
    pub const fn is_steady(&self) -> bool {
        self.not_steady.is_none()
    }

    /// Shares of time in which parallel units were busy.
    #[must_use]
    pub fn busy(&self) -> Busy {
        Busy::of(&self.utilisation, self.virtual_time)
    }

    /// Write amplification, three ways; none where it would say nothing ([`Outcome::amplification_min`]).
    #[must_use]
    pub fn write_amplification(&self) -> WriteAmplification {
        let sectors = &self.ftl.sectors;
        if sectors.user < self.amplification_min() {
            return WriteAmplification::default();
        }
        WriteAmplification::of(sectors)
    }

    /// User sectors below which there is no write amplification. Garbage is collected an erase unit at a time, so
    /// copies belong to a smaller number of user sectors by accident only. Without copies, one sector will do.
    #[must_use]
    pub fn amplification_min(&self) -> u64 {
        let sectors = &self.ftl.sectors;
        let copies = sectors.gc + sectors.stale > 0;
        if copies { self.size.erase_unit_data_sectors.into() } else { 1 }
    }

    /// What media were written for, in media sectors per user sector. Together they are
    /// [`WriteAmplification::media`].
    #[must_use]
    pub fn amplification_parts(&self) -> [(&'static str, f64); 6] {
        series::amplification_parts(&self.ftl.sectors)
    }

    /// Sectors that the device took from a file system for each that jobs wrote to files; `None` if it took none.
    #[must_use]
    pub fn fs_amplification(&self) -> Option<f64> {
        let files = self.fs?.written_sectors;
        (files > 0 && self.ftl.host.written > 0)
            .then(|| self.ftl.host.written as f64 / files as f64)
    }

    /// Bytes that media were written for each byte that the application wrote, whatever they were written for: its data, file
    /// system metadata and journals, padding, copies, metadata of the FTL. `None` if the application wrote nothing, if the device
    /// wrote nothing of it, and where there is no write amplification ([`Outcome::amplification_min`]).
    #[must_use]
    pub fn total_amplification(&self) -> Option<f64> {
        let written = AppBytes::of(&self.workload, self.flowops.as_ref()).written;
        let known = self.write_amplification().media.is_some() && written > 0;
        let programmed = WriteAmplification::media_sectors(&self.ftl.sectors) * SECTOR_BYTES;
        known.then(|| programmed as f64 / written as f64)
    }

    /// The overprovisioning that collection worked with, in percent of what the device holds; `None` if it did not, or if the
    /// device was not full.
    #[must_use]
    pub fn effective_op_percent(&self) -> Option<f64> {
        effective_op_percent(&self.size, &self.ftl)
    }

    /// Mean share of valid sectors in a victim; `None` without victims.
    #[must_use]
    pub fn victim_valid_ratio(&self) -> Option<f64> {
        let gc = &self.ftl.gc;
        (gc.victim_data > 0).then(|| gc.victim_valid as f64 / gc.victim_data as f64)
    }

    /// The way of a job's I/O. Without a page cache, and for traces, it is direct.
    #[must_use]
    pub fn io_path(&self, job: &JobResult) -> IoPath {
        let cache = self.host_memory.iter().find(|(name, _)| *name == "page_cache");
        let cache_bytes = cache.map_or(0, |(_, bytes)| *bytes);
        // With data=journal, direct I/O goes through the cache, too.
        let bypasses = |fs: &FsStack| !fs.config.choices().contains(&("data", "journal"));
        let direct = match self.stack.fs.as_ref().map(bypasses) {
            _ if cache_bytes == 0 => job.jobs,
            Some(false) => 0,
            _ => job.direct_jobs.min(job.jobs),
        };
        IoPath { direct, buffered: job.jobs - direct, cache_bytes }
    }
}

/// The way of the I/O of a job, or of the jobs that report together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoPath {
    /// Jobs that bypassed the page cache.
    pub direct: u32,
    /// Jobs that went through it.
    pub buffered: u32,
    /// Its limit in bytes.
    pub cache_bytes: u64,
}

impl IoPath {
    /// As part of a result (docs/formats/result.md).
    pub(super) fn json(self, job: &str) -> Value {
        let word = match (self.direct, self.buffered) {
            (_, 0) => "direct",
            (0, _) => "buffered",
            _ => "direct and buffered",
        };
        let cache = (self.buffered > 0).then_some(self.cache_bytes);
        json!({ "job": job, "io": word, "page_cache_bytes": cache })
    }
}

impl fmt::Display for IoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direct, buffered, cache_bytes } = *self;
        let cache = format!("page cache of {} MiB", cache_bytes >> 20);
        match (direct, buffered) {
            (_, 0) => f.write_str("direct"),
            (0, _) => write!(f, "buffered ({cache})"),
            _ => write!(f, "{direct} direct, {buffered} buffered ({cache})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every chunk is in one class, and classes stay few however far apart counts are.
    #[test]
    fn erase_counts_cover_all_chunks() {
        for (min, max) in [(0, 0), (3, 3), (0, 31), (0, 32), (7, 5_000)] {
            let wear = Wear { erases_min: min, erases_max: max, ..Wear::default() };
            let counts = EraseCounts::of(&wear, min..=max);
            assert_eq!(counts.chunks.iter().sum::<u64>(), u64::from(max - min) + 1);
            assert!(counts.chunks.len() <= ERASE_CLASSES as usize, "{counts:?}");
        }
    }

    /// A group of jobs says how many went which way.
    #[test]
    fn paths_are_named() {
        let path =
            |direct, buffered| IoPath { direct, buffered, cache_bytes: 64 << 20 }.to_string();
        assert_eq!(path(2, 0), "direct");
        assert_eq!(path(0, 2), "buffered (page cache of 64 MiB)");
        assert_eq!(path(1, 3), "1 direct, 3 buffered (page cache of 64 MiB)");
    }
}
