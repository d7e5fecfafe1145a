//! What a job asks for, after the text is gone. Defaults are fio's.

use super::error::Notice;
use super::rules::{
    AccessZone, BlockSizes, ExitRule, FileKeys, FlowShare, LatencyGoal, Reaping, Replaying,
    Sequence, SteadyRule, ThinkTime, ZoneMode, Zoning,
};
use super::units::{Amount, UNIT_BYTES};
use crate::direction::Direction;
use crate::place::Place;
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;

/// Which operations a job issues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mix {
    /// One direction only.
    Only(Direction),
    /// Reads and writes, mixed by `rwmixread`.
    ReadWrite,
    /// Every block is trimmed and then written.
    TrimWrite,
}

impl Mix {
    /// Whether I/Os of this direction occur.
    #[must_use]
    pub fn has(self, direction: Direction) -> bool {
        match self {
            Self::Only(only) => only == direction,
            Self::ReadWrite => direction != Direction::Trim,
            Self::TrimWrite => direction != Direction::Read,
        }
    }
}

/// `rw`: which operations, in which order of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Operations.
    pub mix: Mix,
    /// Random addresses rather than ascending ones.
    pub random: bool,
}

/// `random_distribution`: how popular the blocks are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Zipf with this exponent.
    Zipf(f64),
    /// Pareto with this power, fio's `h`.
    Pareto(f64),
    /// Normal; the deviation in percent of the range.
    Normal(f64),
    /// By zones, each with its share ([`JobSpec::zones`]).
    Zoned,
}

/// `continue_on_error`: failures that do not end the job.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tolerated {
    /// By direction.
    pub io: [bool; 3],
    /// Blocks that read back wrong.
    pub verify: bool,
}

/// A key as it stands in the job file, environment variables replaced.
pub type JobOption = (String, Option<String>);

/// The logs that a job writes (docs/formats/logs.md).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Logs {
    /// `write_bw_log`: how its files' names begin; empty: with the job's name.
    pub bandwidth: Option<String>,
    /// `write_lat_log`, likewise.
    pub latency: Option<String>,
    /// `write_iops_log`, likewise.
    pub iops: Option<String>,
    /// `write_hist_log`, likewise.
    pub histogram: Option<String>,
    /// `log_avg_msec`: an entry for so long; zero: for each I/O.
    pub average: Nanos,
    /// `log_hist_msec`: a histogram for so long.
    pub histogram_interval: Nanos,
    /// `log_hist_coarseness`: each one halves the number of bins.
    pub histogram_coarseness: u32,
    /// `log_max_value`: the largest value instead of the mean.
    pub max_value: bool,
    /// `log_offset`: entries tell the offset.
    pub offset: bool,
    /// `per_job_logs`: each job has files of its own.
    pub per_job: bool,
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            bandwidth: None,
            latency: None,
            iops: None,
            histogram: None,
            average: Nanos::ZERO,
            histogram_interval: Nanos::ZERO,
            histogram_coarseness: 0,
            max_value: false,
            offset: false,
            per_job: true,
        }
    }
}

/// What of a write is durable when it completes (`sync`); only files know a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncWrites {
    /// Nothing (`none`).
    No,
    /// The data, and what reading it needs (`dsync`).
    Data,
    /// All (`sync`).
    Whole,
}

/// One job section, with the globals that apply to it.
#[derive(Clone, PartialEq, Debug)]
pub struct JobSpec {
    /// Section name, or `name`.
    pub name: String,
    /// `description`.
    pub description: String,
    /// The section header.
    pub place: Place,
    /// The keys of the section itself, in the order of the file.
    pub options: Vec<JobOption>,
    /// `rw`.
    pub pattern: Pattern,
    /// What follows `rw=...:`, and `rw_sequencer`.
    pub sequence: Sequence,
    /// `filename`, `directory`, `nrfiles`, `filesize`, `file_service_type`, `direct`.
    pub files: FileKeys,
    /// `bs` by direction, in bytes; multiples of 512. [`JobSpec::sizes`] knows what counts.
    pub block_bytes: [u64; 3],
    /// `bsrange` by direction: least and largest, in bytes.
    pub block_range: [Option<(u64, u64)>; 3],
    /// `bssplit` by direction: bytes and percent, which add up to 100; empty: none.
    pub block_split: [Vec<(u64, u64)>; 3],
    /// `blockalign` by direction, in bytes.
    pub block_align: [Option<u64>; 3],
    /// `offset`: start of the range, bytes or percent of the device.
    pub offset: Amount,
    /// `offset_align`: what a percentage is rounded up to, in bytes; absent: the least block.
    pub offset_align: Option<u64>,
    /// `offset_increment`: how much further on each clone begins.
    pub offset_increment: Amount,
    /// `size`: bytes or percent of the device; absent: the rest of the device.
    pub size: Option<Amount>,
    /// `io_size`: what a loop transfers, bytes or percent of `size`; absent: `size`. Several loops
    /// spend it together.
    pub io_size: Option<Amount>,
    /// `number_ios`: at most this many I/Os a loop, which several spend together.
    pub number_ios: Option<u64>,
    /// `loops`.
    pub loops: u64,
    /// `iodepth`.
    pub iodepth: u32,
    /// Whether `ioengine` is one of those that have a single request in flight; absent: it does not say.
    pub synchronous: Option<bool>,
    /// `iodepth_low` and `iodepth_batch_complete_*`.
    pub reaping: Reaping,
    /// `numjobs`.
    pub numjobs: u32,
    /// `runtime`.
    pub runtime: Option<Nanos>,
    /// `time_based`: begin again until `runtime` is over.
    pub time_based: bool,
    /// `ramp_time`: not counted, in front of `runtime`.
    pub ramp_time: Nanos,
    /// `startdelay`: the least and the longest, between which each clone draws its own.
    pub start_delay: (Nanos, Nanos),
    /// `rwmixread`, percent.
    pub rwmixread: u64,
    /// `random_distribution`.
    pub distribution: Distribution,
    /// Zones of `random_distribution=zoned` and `zoned_abs`, by direction.
    pub zones: [Vec<AccessZone>; 3],
    /// `percentage_random`, percent by direction; the rest follows on the I/O before.
    pub percentage_random: [u64; 3],
    /// `zonemode`.
    pub zoning: Zoning,
    /// Without `norandommap`: every block once before any comes again.
    pub random_map: bool,
    /// `random_generator=lfsr`: an order that every pass repeats, and that needs no map.
    pub shift_register: bool,
    /// `randrepeat`: each pass begins with the same draws, unless there is a `randseed`.
    pub repeats: bool,
    /// `randseed`.
    pub randseed: Option<u64>,
    /// `fsync`: a flush after every so many writes; 0: none.
    pub fsync: u64,
    /// `fdatasync`, the same; only files know a difference.
    pub fdatasync: u64,
    /// `end_fsync`: a flush behind the last write of a job that writes.
    pub end_fsync: bool,
    /// `sync`.
    pub sync: SyncWrites,
    /// `rate`, bytes a second.
    pub rate: [Option<u64>; 3],
    /// `rate_iops`.
    pub rate_iops: [Option<u64>; 3],
    /// `rate_min`: below so many bytes a second the job fails.
    pub rate_min: [Option<u64>; 3],
    /// `rate_iops_min`.
    pub rate_iops_min: [Option<u64>; 3],
    /// `rate_cycle`: over what time these are averaged.
    pub rate_cycle: Nanos,
    /// `rate_process=poisson`: I/Os come at random times of that rate.
    pub poisson: bool,
    /// `rate_ignore_thinktime`: what a pause cost is not caught up with.
    pub rate_ignores_thinking: bool,
    /// `thinktime` and its relatives.
    pub thinking: ThinkTime,
    /// `latency_target` and its relatives.
    pub goal: LatencyGoal,
    /// `max_latency` by direction: what takes longer ends the job.
    pub max_latency: [Option<Nanos>; 3],
    /// `flow`.
    pub flow: FlowShare,
    /// `write_hint`: placement of writes, 0 (none) to 4 (extreme).
    pub write_hint: u16,
    /// `read_iolog` and the `replay_` keys.
    pub replay: Replaying,
    /// `write_iolog`: a file for what the job issued.
    pub write_iolog: Option<String>,
    /// `verify`: what was written is read again, and reads are checked for being that.
    pub verify: bool,
    /// `verify=null`: they are not checked.
    pub unchecked: bool,
    /// `do_verify`: what was written is read again behind the writes.
    pub do_verify: bool,
    /// `continue_on_error`.
    pub tolerated: Tolerated,
    /// `serialize_overlap`: an I/O waits for those in flight whose bytes it shares.
    pub serializes_overlaps: bool,
    /// `exitall` and its relatives.
    pub exit: ExitRule,
    /// `wait_for`: a job above that ends before this one begins.
    pub wait_for: Option<String>,
    /// `steadystate` and its relatives.
    pub steady: SteadyRule,
    /// `bs_is_seq_rand`: the first size is that of sequential I/Os, the second one that of random ones.
    pub sizes_by_order: bool,
    /// `group_reporting`.
    pub group_reporting: bool,
    /// `stonewall`: waits for every job before it.
    pub stonewall: bool,
    /// `new_group`: begins a reporting group.
    pub new_group: bool,
    /// `write_bw_log` and the like.
    pub logs: Logs,
}

impl JobSpec {
    /// A section without any key.
    #[must_use]
    pub fn new(name: &str, place: Place) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            place,
            options: Vec::new(),
            pattern: Pattern { mix: Mix::Only(Direction::Read), random: false },
            sequence: Sequence::PLAIN,
            files: FileKeys::DEFAULT,
            block_bytes: [4096; 3],
            block_range: [None; 3],
            block_split: [const { Vec::new() }; 3],
            block_align: [None; 3],
            offset: Amount::Bytes(0),
            offset_align: None,
            offset_increment: Amount::Bytes(0),
            size: None,
            io_size: None,
            number_ios: None,
            loops: 1,
            iodepth: 1,
            synchronous: None,
            reaping: Reaping::DEFAULT,
            numjobs: 1,
            runtime: None,
            time_based: false,
            ramp_time: Nanos::ZERO,
            start_delay: (Nanos::ZERO, Nanos::ZERO),
            rwmixread: 50,
            distribution: Distribution::Uniform,
            zones: [const { Vec::new() }; 3],
            percentage_random: [100; 3],
            zoning: Zoning::NONE,
            random_map: true,
            shift_register: false,
            repeats: true,
            randseed: None,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            sync: SyncWrites::No,
            rate: [None; 3],
            rate_iops: [None; 3],
            rate_min: [None; 3],
            rate_iops_min: [None; 3],
            rate_cycle: Nanos::from_secs(1),
            poisson: false,
            rate_ignores_thinking: false,
            thinking: ThinkTime::NONE,
            goal: LatencyGoal::NONE,
            max_latency: [None; 3],
            flow: FlowShare::default(),
            write_hint: 0,
            replay: Replaying::NONE,
            write_iolog: None,
            verify: false,
            unchecked: false,
            do_verify: true,
            tolerated: Tolerated::default(),
            serializes_overlaps: false,
            exit: ExitRule::NONE,
            wait_for: None,
            steady: SteadyRule::NONE,
            sizes_by_order: false,
            group_reporting: false,
            stonewall: false,
            new_group: false,
            logs: Logs::default(),
        }
    }

    /// Requests that may be in flight at once.
    #[must_use]
    pub const fn depth(&self) -> u32 {
        if matches!(self.synchronous, Some(true)) || self.reaping.polls() {
            1
        } else {
            self.iodepth
        }
    }

    /// Whether requests complete as they are submitted, as with fio's default engine: such a job counts what a pass
    /// transfers by its end only.
    #[must_use]
    pub fn completes_at_once(&self) -> bool {
        self.synchronous.unwrap_or(self.depth() == 1)
    }

    /// The sizes of a direction's I/Os.
    #[must_use]
    pub fn sizes(&self, direction: Direction) -> BlockSizes {
        // As in fio (io_u.c, get_next_buflen), whichever the I/O's own direction is.
        match (self.sizes_by_order, self.pattern.random) {
            (true, false) => self.own_sizes(Direction::Read),
            (true, true) => self.own_sizes(Direction::Write),
            (false, _) => self.own_sizes(direction),
        }
    }

    /// The sizes that keys name for a direction: of `bssplit`, `bsrange` and `bs` the first that was given.
    fn own_sizes(&self, direction: Direction) -> BlockSizes {
        let direction = direction as usize;
        match (&self.block_split[direction], self.block_range[direction]) {
            (split, _) if !split.is_empty() => BlockSizes::Split(split.clone()),
            (_, Some((min, max))) if min < max => BlockSizes::Range(min, max),
            (_, Some((bytes, _))) => BlockSizes::Fixed(bytes),
            (_, None) => BlockSizes::Fixed(self.block_bytes[direction]),
        }
    }

    /// What random addresses of a direction are multiples of, in bytes from the range's start.
    #[must_use]
    pub fn align(&self, direction: Direction) -> u64 {
        let given = self.block_align[direction as usize].filter(|_| self.pattern.random);
        given.unwrap_or_else(|| self.own_sizes(direction).min())
    }

    /// The block of a direction in the random map, in bytes.
    #[must_use]
    pub fn map_block(&self, direction: Direction) -> u64 {
        self.own_sizes(direction).min()
    }

    /// The least block of the I/Os that it issues, in bytes.
    #[must_use]
    pub fn least_block(&self) -> u64 {
        let used = Direction::ALL.into_iter().filter(|direction| self.pattern.mix.has(*direction));
        used.map(|direction| self.sizes(direction).min()).min().unwrap_or(SECTOR_BYTES)
    }

    /// The largest block of the I/Os that it issues, in bytes.
    #[must_use]
    pub fn largest_block(&self) -> u64 {
        let used = Direction::ALL.into_iter().filter(|direction| self.pattern.mix.has(*direction));
        used.map(|direction| self.sizes(direction).max()).max().unwrap_or(SECTOR_BYTES)
    }

    /// The least block of all directions, those that it does not use included, in bytes: what fio
    /// rounds percentages of the device to.
    #[must_use]
    pub fn least_of_all(&self) -> u64 {
        let least = Direction::ALL.map(|direction| self.own_sizes(direction).min());
        least.into_iter().min().unwrap_or(SECTOR_BYTES)
    }

    /// The largest block of all directions, those that it does not use included, in bytes.
    #[must_use]
    pub fn largest_of_all(&self) -> u64 {
        let largest = Direction::ALL.map(|direction| self.sizes(direction).max());
        largest.into_iter().max().unwrap_or(SECTOR_BYTES)
    }

    /// What of the clone's `count` files the one of this number is used for, all behind its offset if
    /// not given. A `size` in bytes is that of all together, in blocks, of which the first ones take what
    /// does not divide; if the files have a `filesize`, it only says how much a loop transfers.
    #[must_use]
    pub fn size_of_file(&self, number: u64, count: u64) -> Option<Amount> {
        match self.size {
            Some(Amount::Bytes(_)) if self.files.bytes.is_some() => None,
            Some(Amount::Bytes(bytes)) => {
                let (block, blocks) = (self.least_block(), bytes / self.least_block());
                let more = u64::from(number < blocks % count);
                Some(Amount::Bytes((blocks / count + more) * block))
            }
            size => size,
        }
    }

    /// What its I/Os begin and end at multiples of, in bytes: a sector of the device (4,096), or 512 where
    /// a size, an alignment or the beginning of its range is no multiple of that.
    #[must_use]
    pub fn unit_bytes(&self) -> u64 {
        let whole = |bytes: u64| bytes.is_multiple_of(SECTOR_BYTES);
        let used = Direction::ALL.into_iter().filter(|direction| self.pattern.mix.has(*direction));
        let mut blocks =
            used.map(|d| self.sizes(d).are_multiples_of(SECTOR_BYTES) && whole(self.align(d)));
        let zoning = &self.zoning;
        let zones = [zoning.size, zoning.range, zoning.skip, zoning.capacity];
        let whole_zones = zoning.mode == ZoneMode::None || zones.into_iter().all(whole);
        let skips_whole = whole(self.sequence.skip_bytes.unsigned_abs());
        let draws_whole = blocks.all(|whole| whole) && whole_zones && skips_whole;
        let aligned = self.replays() || (draws_whole && self.begins_whole());
        if aligned { SECTOR_BYTES } else { UNIT_BYTES }
    }

    /// Whether the ranges of all clones begin at sectors of the device.
    fn begins_whole(&self) -> bool {
        let offsets = [self.offset, self.offset_increment];
        let whole = |amount: &Amount| match amount {
            Amount::Bytes(bytes) => bytes.is_multiple_of(SECTOR_BYTES),
            Amount::Percent(0) => true,
            Amount::Percent(_) => false,
        };
        let rounded = offsets.iter().any(|amount| matches!(amount, Amount::Percent(1..)));
        let to = self.offset_align.unwrap_or(self.least_of_all());
        if rounded { to.is_multiple_of(SECTOR_BYTES) } else { offsets.iter().all(whole) }
    }

    /// Whether the job replays a log rather than drawing its I/Os.
    #[must_use]
    pub fn replays(&self) -> bool {
        !self.replay.files.is_empty()
    }
}

/// A job file that was understood.
#[derive(Clone, PartialEq, Debug)]
pub struct JobFile {
    /// The jobs in file order; clones of `numjobs` are not yet multiplied.
    pub jobs: Vec<JobSpec>,
    /// Keys without effect here.
    pub notices: Vec<Notice>,
    /// The keys of `[global]`, in the order of the file.
    pub options: Vec<JobOption>,
    /// Sizes are scaled down to fit the device ([`JobFile::fit`]).
    pub(super) fits: bool,
}
