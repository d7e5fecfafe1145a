//! Stack files: everything below the workload, in one TOML file (DESIGN, "The stack file").
//!
//! Strict: an unknown key, a wrong type or a bad value is a [`StackError`] with its place. A file is
//! laid over the stack that it `extends`, `--set` overrides over that, and the result is one
//! [`Stack`] with its resolved text, in which defaults are written out; that text, read again,
//! resolves to itself.

mod cache;
mod costs;
pub mod document;
mod fs;
mod ftl;
mod grammar;
pub mod keys;
mod link;
mod on_device;
mod place;
pub mod reader;
mod recipe;
mod resolved;
pub(crate) mod source;
mod timing;
mod units;

pub use fs::FsStack;
pub(crate) use fs::MEMORY_BYTES_MIN;
pub use grammar::payload_name;
use on_device::RESOLVED;
pub use place::{Place, StackError};
pub use reader::Size;
pub use recipe::recipes;
use source::BUILT_IN;
pub use source::{SHIPPED, shipped, summary};
pub use timing::NamedTiming;
pub(crate) use units::{parse_size, parse_time};

use nandscape_fs::cache::CacheConfig;
use nandscape_fs::contract::SyscallCost;
use nandscape_ftl::{Attach, FtlConfig, FtlError};
use nandscape_media::{
    ChunkId, DeviceTiming, Faults, Geometry, GeometryError, LinkTiming, MediaConfig, PayloadMode,
    UnitId,
};
use nandscape_rt::{HostConfig, Stream};
use nandscape_workload::fio::Notice;
use reader::Places;
use std::ops::Range;

/// The stack that runs when none is named.
pub const DEFAULT: &str = "pblk";

/// A resolved stack.
#[derive(Clone, PartialEq, Debug)]
pub struct Stack {
    /// Its name.
    pub name: String,
    /// The host's resources.
    pub host: Host,
    /// The open-channel SSD.
    pub media: MediaStack,
    /// The host's link to it.
    pub link: LinkTiming,
    /// The FTL.
    pub ftl: FtlConfig,
    /// The file system; `None`: the workload sees the raw block device.
    pub fs: Option<FsStack>,
    /// What a file system would have said.
    pub hints: Hints,
    /// What is written before measuring.
    pub precondition: Precondition,
    /// What the command line set, as `key=value`, in order.
    pub set: Vec<String>,
    /// The resolved stack as TOML.
    pub toml: String,
    /// Where each key stands.
    places: Places,
    /// Where the stack's file begins.
    place: Place,
}

/// `[host]`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Host {
    /// CPU cores.
    pub cores: Option<u32>,
    /// Limit of memory in bytes. Always given with a file system.
    pub memory_bytes: Option<u64>,
    /// The page cache of the block device; `None`: jobs on the block device are direct. `None` with a file system,
    /// which has its own.
    pub device_cache: Option<CacheConfig>,
    /// What shares that memory.
    pub memory_of: MemoryOf,
    /// Time that calls of a file system take of the core of the thread that makes them.
    pub cost: SyscallCost,
}

/// What shares the memory of a host.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MemoryOf {
    /// The page cache alone.
    #[default]
    PageCache,
    /// Everything of the stack that is in host memory.
    All,
}

/// Cores of a host that a stack does not describe.
pub(crate) const DEFAULT_CORES: u32 = 4;

impl Host {
    /// CPU cores, whether the stack says how many or not.
    #[must_use]
    pub fn cores_or_default(&self) -> u32 {
        self.cores.unwrap_or(DEFAULT_CORES)
    }

    /// Limit of memory in bytes, whether the stack gives one or not.
    #[must_use]
    pub fn memory_or_default(&self) -> u64 {
        self.memory_bytes.unwrap_or(fs::MEMORY_BYTES)
    }

    /// A host of these sizes, idle.
    #[must_use]
    pub fn build(&self) -> nandscape_rt::Host {
        nandscape_rt::Host::new(HostConfig {
            cores: u16::try_from(self.cores_or_default()).unwrap_or(u16::MAX),
            memory_bytes: Some(self.memory_or_default()),
        })
    }
}

/// `[media]`.
#[derive(Clone, PartialEq, Debug)]
pub struct MediaStack {
    /// Shape and write rules.
    pub geometry: Geometry,
    /// Timing.
    pub timing: NamedTiming,
    /// What content is kept.
    pub payload: PayloadMode,
    /// RAM that the virtual media may take.
    pub memory_cap_bytes: u64,
    /// Erases after which every further erase of a chunk fails.
    pub endurance_erases: Option<u32>,
    /// What is wrong with the media.
    pub faults: MediaFaults,
}

/// `[media.faults]`.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct MediaFaults {
    /// What strikes commands at random; `None`: nothing does.
    pub commands: Option<Faults>,
    /// Since when it does.
    pub from: FaultsFrom,
    /// Share of the chunks that are bad from the start.
    pub bad_chunk_rate: f64,
    /// A unit whose cell operations take so many percent of their time.
    pub slow_unit: Option<(UnitId, u32)>,
}

/// `media.faults.from`: when faults begin to strike commands.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FaultsFrom {
    /// With the first command, so also while the device is preconditioned.
    #[default]
    Start,
    /// With the measured phase: what writes the device before sees none.
    Measured,
}

impl MediaFaults {
    /// What strikes commands before the measured phase.
    #[must_use]
    pub fn before_measuring(&self) -> Faults {
        match self.from {
            FaultsFrom::Start => self.measured(),
            FaultsFrom::Measured => Faults::default(),
        }
    }

    /// What strikes commands in the measured phase.
    #[must_use]
    pub fn measured(&self) -> Faults {
        self.commands.clone().unwrap_or_default()
    }

    /// The chunks that are bad from the start, drawn from a dedicated stream.
    fn bad_chunks(&self, geometry: &Geometry, seed: u64) -> Vec<ChunkId> {
        if self.bad_chunk_rate == 0.0 {
            return Vec::new();
        }
        let mut rng = Stream::new(seed, "media.faults.bad_chunks");
        geometry.all_chunks().filter(|_| rng.chance(self.bad_chunk_rate)).collect()
    }
}

/// `[hints]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hints {
    /// Sectors whose bios carry JOURNAL.
    pub journal_range: Option<Range<u64>>,
    /// What a job's fsync asks to be durable.
    pub fsync: Fsync,
}

/// What the fsync of a job, which stands for a file, asks to be durable.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Fsync {
    /// Everything: a plain flush.
    #[default]
    Device,
    /// What the job wrote, as a file system would for a file.
    File,
}

/// `[precondition]`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Precondition {
    /// Written in order, times the logical space.
    pub fill: f64,
    /// Random 4 KiB overwrites, times the logical space.
    pub random_overwrite: f64,
    /// Then random overwrites until write amplification is steady, at most so many times the logical
    /// space.
    pub steady_overwrite: f64,
}

impl Precondition {
    /// Whether nothing is written.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self { fill: 0.0, random_overwrite: 0.0, steady_overwrite: 0.0 }
    }

    /// Whether anything is overwritten at random.
    #[must_use]
    pub fn overwrites(&self) -> bool {
        self.random_overwrite + self.steady_overwrite > 0.0
    }
}

impl MediaStack {
    /// The device that this describes, with the bad chunks of this seed; without timing and without
    /// what strikes commands.
    #[must_use]
    pub fn config(&self, seed: u64) -> MediaConfig {
        MediaConfig {
            bad_chunks: self.faults.bad_chunks(&self.geometry, seed),
            ..self.blank_config()
        }
    }

    /// The same without bad chunks.
    #[must_use]
    pub fn blank_config(&self) -> MediaConfig {
        MediaConfig {
            payload: self.payload,
            memory_cap_bytes: Some(self.memory_cap_bytes),
            endurance_erases: self.endurance_erases,
            slow_units: self.faults.slow_unit.into_iter().collect(),
            ..MediaConfig::new(self.geometry)
        }
    }
}

impl Stack {
    /// The shipped stack or the stack file called `name`, with `key.path=value` overrides.
    ///
    /// # Errors
    /// The first thing wrong with it, and where.
    pub fn load<S: AsRef<str>>(name: &str, overrides: &[S]) -> Result<Self, StackError> {
        Self::resolve(source::load(name)?, overrides)
    }

    /// The stack in `text`, which messages call `file`, with overrides. Files that it extends are
    /// looked for in the current folder.
    ///
    /// # Errors
    /// The first thing wrong with it, and where.
    pub fn parse<S: AsRef<str>>(
        file: &str,
        text: &str,
        overrides: &[S],
    ) -> Result<Self, StackError> {
        Self::resolve(source::load_text(file, text)?, overrides)
    }

    fn resolve<S: AsRef<str>>(
        (mut table, place): (document::Table, Place),
        overrides: &[S],
    ) -> Result<Self, StackError> {
        for assignment in overrides {
            document::merge(&mut table, document::parse_set(assignment.as_ref())?);
        }
        let set = overrides.iter().map(|assignment| assignment.as_ref().to_owned()).collect();
        Ok(Self { set, ..Self::from_table(&table, &place)? })
    }

    /// The stack that `table` holds; its file begins at `place`.
    pub(crate) fn from_table(table: &document::Table, place: &Place) -> Result<Self, StackError> {
        let mut stack = grammar::read(table, place)?;
        stack.places = reader::places(table);
        if stack.fs.is_some() {
            fs::check_alone(&stack.hints).map_err(|(key, why)| stack.error(key, why))?;
        }
        Ok(stack)
    }

    /// An error about a key that is well formed and yet does not fit the rest of the stack.
    #[must_use]
    pub fn error(&self, key: &str, why: &str) -> StackError {
        let place = self.places.get(key).unwrap_or(&self.place);
        StackError::new(place, key, format!("{why}{}", self.named_beside(place)))
    }

    /// Which stack is meant and what was set, where `place` is in a file and does not say it.
    fn named_beside(&self, place: &Place) -> String {
        let Place::File { file, .. } = place else { return String::new() };
        let other = file.strip_suffix(BUILT_IN).or_else(|| file.strip_suffix(RESOLVED));
        let is_base = other.is_some_and(|name| name.trim() != self.name);
        match is_base || !self.set.is_empty() {
            true => format!(" (stack {})", self.label()),
            false => String::new(),
        }
    }

    /// Whether the stack, one that it extends, or an override sets `key`.
    #[must_use]
    pub fn sets(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    /// The error of a geometry that no device could have.
    pub(crate) fn geometry_error(&self, shape: &GeometryError) -> StackError {
        self.error(&format!("media.{}", shape.key), shape.rule)
    }

    /// What its FTL refuses, and what to do where no other value will do.
    pub(crate) fn ftl_error(&self, key: &str, why: &str) -> StackError {
        let remedy = match key {
            "media.mw_cunits" | "media.maxoc" => format!(" (--set {key}=0)"),
            _ => String::new(),
        };
        self.error(key, &format!("{why}{remedy}"))
    }

    /// What the device and the link to it take.
    #[must_use]
    pub const fn timing(&self) -> DeviceTiming {
        DeviceTiming { nand: self.media.timing.nand, link: self.link }
    }

    /// What a run on `host` provides to the FTL.
    #[must_use]
    pub fn attach(&self, host: nandscape_rt::Host) -> Attach {
        Attach::new(Some(host), &self.timing(), self.host.cost.copy.0)
    }

    /// Whether a device can be made as it says, all of whose chunks are good.
    ///
    /// # Errors
    /// The key that does not fit the rest.
    pub fn check_device(&self) -> Result<(), StackError> {
        let geometry = &self.media.geometry;
        geometry.check().map_err(|shape| self.geometry_error(&shape))?;
        match self.ftl.check(geometry) {
            Err(FtlError::Config { key, mut why }) => {
                if key == "ftl.op_percent"
                    && let Some(least) = self.ftl.least_op_percent(geometry)
                {
                    why.push_str(&format!("; the least that fits is {least}"));
                }
                Err(self.ftl_error(key, &why))
            }
            _ => Ok(()),
        }
    }

    /// Whether a notice about a job is worth telling where the job runs on this stack.
    #[must_use]
    pub fn applies_to(&self, notice: &Notice) -> bool {
        self.fs.is_none() || notice.holds_on_files()
    }

    /// Its name, and what was set beside it: `pblk + ftl.gc.victim=greedy`.
    #[must_use]
    pub fn label(&self) -> String {
        let set = self.set.iter().map(|assignment| format!(" + {assignment}"));
        format!("{}{}", self.name, set.collect::<String>())
    }

    /// Every key with its value, from the resolved text and in its order.
    pub fn resolved_keys(&self) -> impl Iterator<Item = (String, &str)> {
        let mut section = "";
        self.toml.lines().filter_map(move |line| {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
                return None;
            }
            let (key, value) = line.split_once(" = ")?;
            let dot = if section.is_empty() { "" } else { "." };
            Some((format!("{section}{dot}{key}"), value))
        })
    }

    /// A hash of the resolved text: same hash, same stack.
    #[must_use]
    pub fn hash(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(self.toml.as_bytes())
    }
}
