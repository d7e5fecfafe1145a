//! Groups of keys that belong together, as a job keeps them. Defaults are fio's.

use super::units::Amount;
use crate::direction::Direction;
use crate::trace::Record;
use nandscape_rt::Nanos;
use std::sync::Arc;

/// The sizes that a direction's I/Os can have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockSizes {
    /// `bs`: one size.
    Fixed(u64),
    /// `bsrange`: multiples of the least, up to the largest.
    Range(u64, u64),
    /// `bssplit`: sizes with percentages, which add up to 100.
    Split(Vec<(u64, u64)>),
}

impl BlockSizes {
    /// The least size in bytes.
    #[must_use]
    pub fn min(&self) -> u64 {
        match self {
            Self::Fixed(bytes) | Self::Range(bytes, _) => *bytes,
            Self::Split(shares) => shares.iter().map(|(bytes, _)| *bytes).min().unwrap_or(0),
        }
    }

    /// The largest size in bytes.
    #[must_use]
    pub fn max(&self) -> u64 {
        match self {
            Self::Fixed(bytes) | Self::Range(_, bytes) => *bytes,
            Self::Split(shares) => shares.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0),
        }
    }

    /// Whether each size is a multiple of so many bytes.
    #[must_use]
    pub fn are_multiples_of(&self, bytes: u64) -> bool {
        match self {
            Self::Fixed(size) => size.is_multiple_of(bytes),
            Self::Range(min, max) => min.is_multiple_of(bytes) && max.is_multiple_of(bytes),
            Self::Split(shares) => shares.iter().all(|(size, _)| size.is_multiple_of(bytes)),
        }
    }

    /// The mean size in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(bytes) => *bytes as f64,
            Self::Range(min, max) => (min + max) as f64 / 2.0,
            Self::Split(shares) => {
                shares.iter().map(|(bytes, percent)| bytes * percent).sum::<u64>() as f64 / 100.0
            }
        }
    }
}

/// The modifier of `rw`, and `rw_sequencer`: where an I/O goes after another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sequence {
    /// Bytes that a sequential job skips after each I/O; negative: it goes backwards.
    pub skip_bytes: i64,
    /// I/Os of a random job per random offset, which the first of them has; the others follow one another.
    pub ios: u64,
    /// `rw_sequencer=identical`: the others repeat the last offset.
    pub identical: bool,
}

impl Sequence {
    /// Every offset is drawn.
    pub const PLAIN: Self = Self { skip_bytes: 0, ios: 1, identical: false };
}

/// A part of the range with its share of the accesses: `random_distribution=zoned` or `zoned_abs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessZone {
    /// Percent of the accesses.
    pub accesses: u64,
    /// Size: percent of the range, or bytes.
    pub size: Amount,
}

/// `zonemode`: what zones are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneMode {
    /// Not said: strided when there is a `zonesize`; fio 3.33 asks for `zonemode`.
    Unsaid,
    /// `none`.
    None,
    /// `strided`: I/O stays in a zone until so many bytes are transferred.
    Strided,
    /// `zbd`: the zones of a zoned block device, written at their write pointers.
    Zbd,
}

/// `zonemode`, `zonesize`, `zonerange`, `zoneskip`, and what belongs to `zonemode=zbd`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Zoning {
    /// `zonemode`.
    pub mode: ZoneMode,
    /// `zonesize`: bytes transferred in a zone; with `zbd`, bytes from one zone to the next, 0: the device's.
    pub size: u64,
    /// `zonerange`: bytes of a zone; 0: as `zonesize`.
    pub range: u64,
    /// `zoneskip`: bytes between two zones.
    pub skip: u64,
    /// `zonecapacity`: writable bytes of a zone, where the device has no zones; 0: as `zonesize`.
    pub capacity: u64,
    /// `max_open_zones`: zones that are written at once by all jobs; 0: the device's limit.
    pub max_open: u32,
    /// `job_max_open_zones`: zones that a clone writes at once; 0: no such limit.
    pub job_max_open: u32,
    /// `ignore_zone_limits`: the device's limit does not count.
    pub ignores_limits: bool,
    /// `read_beyond_wp`: reads do not stop at write pointers.
    pub reads_beyond: bool,
    /// `zone_reset_threshold`: share of the range that must hold data before zones are reset.
    pub reset_threshold: f64,
    /// `zone_reset_frequency`: resets for a write above that threshold, at most 1; 0: none.
    pub reset_frequency: f64,
}

impl Zoning {
    /// No zones.
    pub(super) const NONE: Self = Self {
        mode: ZoneMode::Unsaid,
        size: 0,
        range: 0,
        skip: 0,
        capacity: 0,
        max_open: 0,
        job_max_open: 0,
        ignores_limits: false,
        reads_beyond: false,
        reset_threshold: 0.0,
        reset_frequency: 0.0,
    };

    /// Whether I/O is strided.
    #[must_use]
    pub fn is_strided(&self) -> bool {
        match self.mode {
            ZoneMode::Strided => true,
            ZoneMode::Unsaid => self.size > 0,
            ZoneMode::None | ZoneMode::Zbd => false,
        }
    }

    /// Whether I/O follows write pointers.
    #[must_use]
    pub fn is_zbd(&self) -> bool {
        self.mode == ZoneMode::Zbd
    }

    /// Bytes of a zone.
    #[must_use]
    pub const fn range(&self) -> u64 {
        if self.range > 0 { self.range } else { self.size }
    }
}

/// `iodepth_low`, `iodepth_batch_complete_min` and `_max`: how completed requests are taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reaping {
    /// `iodepth_low`: a full queue drains to this depth before it is filled again; 0: `iodepth`.
    pub low: u32,
    /// `iodepth_batch_complete_min`: requests taken back at once, at least.
    pub min: u32,
    /// `iodepth_batch_complete_max`.
    pub max: u32,
}

impl Reaping {
    pub(super) const DEFAULT: Self = Self { low: 0, min: 1, max: 1 };

    /// Whether fio would look for completions behind every submission, and wait for one: nothing
    /// is ever in flight beside another request.
    #[must_use]
    pub const fn polls(&self) -> bool {
        self.min == 0 && self.max == 0
    }
}

/// What `thinktime_blocks` counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Completed I/Os.
    Completed,
    /// Issued I/Os.
    Issued,
}

/// `thinktime` and what belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThinkTime {
    /// `thinktime`; zero: never.
    pub time: Nanos,
    /// `thinktime_blocks`: I/Os between two pauses; absent: 1, or any number with `io_time`.
    pub blocks: Option<u64>,
    /// `thinktime_blocks_type`.
    pub counted: Counted,
    /// `thinktime_iotime`: time between two pauses; zero: `blocks` alone decides.
    pub io_time: Nanos,
}

impl ThinkTime {
    pub(super) const NONE: Self =
        Self { time: Nanos::ZERO, blocks: None, counted: Counted::Completed, io_time: Nanos::ZERO };
}

/// `latency_target` and what belongs to it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LatencyGoal {
    /// `latency_target`; zero: none.
    pub target: Nanos,
    /// `latency_window`.
    pub window: Nanos,
    /// `latency_percentile`.
    pub percentile: f64,
    /// `latency_run`: goes on at the depth that was found.
    pub goes_on: bool,
}

impl LatencyGoal {
    pub(super) const NONE: Self =
        Self { target: Nanos::ZERO, window: Nanos::ZERO, percentile: 100.0, goes_on: false };
}

/// `filename` and its relatives, which count where a stack has files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileKeys {
    /// `direct`: I/O goes past the page cache.
    pub direct: bool,
    /// `filename`: the one file of all clones; absent: files of their own.
    pub name: Option<String>,
    /// `directory`: where they lie.
    pub directory: String,
    /// `nrfiles`: files of a clone.
    pub count: u32,
    /// `filesize`: least and largest number of bytes of each.
    pub bytes: Option<(u64, u64)>,
    /// `file_service_type`: which of them is next.
    pub service: FileService,
}

/// `file_service_type`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileService {
    /// Which file comes behind another one.
    pub order: FileOrder,
    /// I/Os before another one's turn comes.
    pub ios: u64,
}

/// In which order files have their turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileOrder {
    /// One after the other.
    RoundRobin,
    /// Drawn.
    Random,
    /// One is finished before the next begins.
    Sequential,
}

impl FileKeys {
    pub(super) const DEFAULT: Self = Self {
        direct: false,
        name: None,
        directory: String::new(),
        count: 1,
        bytes: None,
        service: FileService { order: FileOrder::RoundRobin, ios: 1 },
    };
}

/// `exitall`, `exitall_on_error` and `exit_what`: whether the end of a job ends others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExitRule {
    /// `exitall`: when it ends.
    pub when_done: bool,
    /// `exitall_on_error`: when it fails.
    pub when_failed: bool,
    /// `exit_what`.
    pub what: ExitWhat,
}

impl ExitRule {
    pub(super) const NONE: Self =
        Self { when_done: false, when_failed: false, what: ExitWhat::Group };
}

/// Which jobs end together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitWhat {
    /// Those of its reporting group.
    Group,
    /// Those that run; the next stage begins.
    Stage,
    /// All, those that have not begun included.
    All,
}

/// `steadystate`: what is measured, how, and within which limit it must stay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SteadyCriterion {
    /// Bandwidth rather than I/Os per second.
    pub bandwidth: bool,
    /// The slope of the least-squares line rather than the largest deviation from the mean.
    pub slope: bool,
    /// The limit is a percentage of the mean rather than a rate.
    pub percent: bool,
    /// The limit.
    pub limit: f64,
}

impl SteadyCriterion {
    /// Its name in fio's results.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match (self.bandwidth, self.slope) {
            (false, false) => "iops",
            (false, true) => "iops_slope",
            (true, false) => "bw",
            (true, true) => "bw_slope",
        }
    }
}

/// `steadystate`, `steadystate_duration`, `steadystate_ramp_time` and `steadystate_check_interval`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SteadyRule {
    /// `steadystate`.
    pub criterion: Option<SteadyCriterion>,
    /// `steadystate_duration`: the window that is judged; zero: none is.
    pub duration: Nanos,
    /// `steadystate_ramp_time`: time before the first interval that is judged.
    pub ramp: Nanos,
    /// `steadystate_check_interval`: length of an interval.
    pub interval: Nanos,
}

impl SteadyRule {
    pub(super) const NONE: Self = Self {
        criterion: None,
        duration: Nanos::ZERO,
        ramp: Nanos::ZERO,
        interval: Nanos::from_secs(1),
    };

    /// Intervals of the window, where a job is judged.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        self.criterion?;
        (self.duration > Nanos::ZERO).then(|| self.duration.0 / self.interval.0.max(1))
    }
}

/// `flow`, `flow_id`, `flow_sleep`: a share in what several jobs issue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlowShare {
    /// `flow`; 0: takes no part.
    pub weight: u64,
    /// `flow_id`.
    pub id: u64,
    /// `flow_sleep`: how long to wait when ahead of the others; zero: until they have caught up.
    pub sleep: Nanos,
}

/// A log of I/Os that a job replays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IoLog {
    /// The file, as the job names it.
    pub name: Arc<str>,
    /// Its requests.
    pub records: Arc<[Record]>,
}

/// `read_iolog` and the `replay_` keys.
#[derive(Clone, PartialEq, Debug)]
pub struct Replaying {
    /// Files of `read_iolog`; clones take them in turn.
    pub files: Vec<String>,
    /// What they hold.
    pub logs: Vec<IoLog>,
    /// `replay_no_stall`: at once rather than at the log's times.
    pub no_stall: bool,
    /// `replay_time_scale`, percent: 200 is twice as fast.
    pub time_scale: u64,
    /// `replay_scale`: offsets are divided by it; 0: as they are.
    pub scale: u64,
    /// `replay_align`: offsets are rounded down to it, a power of two; 0: as they are.
    pub align: u64,
    /// `replay_skip`: directions that are left out.
    pub skip: [bool; 3],
    /// `replay_skip=sync`.
    pub skip_sync: bool,
}

impl Replaying {
    /// No log is replayed.
    pub const NONE: Self = Self {
        files: Vec::new(),
        logs: Vec::new(),
        no_stall: false,
        time_scale: 100,
        scale: 0,
        align: 0,
        skip: [false; 3],
        skip_sync: false,
    };

    /// Whether requests of this direction are left out.
    #[must_use]
    pub const fn skips(&self, direction: Direction) -> bool {
        self.skip[direction as usize]
    }
}
