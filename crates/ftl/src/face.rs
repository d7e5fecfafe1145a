//! What every FTL offers beyond serving bios: sizes, counts, memory, what it takes of the host, and the way on and off
//! the media.
//! Nothing here is called per sector but [`Ftl::sectors`] and [`Ftl::now`], which do not allocate.

use crate::kind::{FtlKind, Side};
use crate::report::{FtlReport, SectorCounts};
use nandscape_block::BlockDevice;
use nandscape_media::{DeviceTiming, HostLink, LinkTiming, OpenChannel};
use nandscape_rt::{Host, Nanos};
use serde::Serialize;

/// A flash translation layer on the open-channel SSD [`Ftl::Media`].
pub trait Ftl: BlockDevice {
    /// What it stands on.
    type Media: OpenChannel;

    /// Its kind.
    fn kind(&self) -> FtlKind;

    /// The time that it has reached.
    fn now(&self) -> Nanos;

    /// Sizes; they never change.
    fn size(&self) -> DeviceSize;

    /// Sectors written to media since the last reset. Sampled often: a copy of eight numbers.
    fn sectors(&self) -> SectorCounts;

    /// Everything counted since the last reset.
    fn report(&self) -> FtlReport;

    /// Begins a new period of counting.
    fn reset_counts(&mut self);

    /// Bytes of RAM that it takes, on its side of the link.
    fn memory(&self) -> MemoryUse;

    /// Every erase unit's state and counts, in the order of their numbers.
    fn erase_units(&self) -> Vec<EraseUnit>;

    /// How many of them are free. Sampled often: those that have many lines count them as they change.
    fn free_erase_units(&self) -> u64 {
        let units = self.erase_units();
        units.iter().filter(|unit| unit.state == EraseUnitState::Free).count() as u64
    }

    /// Logical sectors that hold something, in its buffers or on media. Reads the whole map.
    fn mapped_sectors(&self) -> u64;

    /// Those of them in append-only regions and regions that the device moves them to.
    fn appended_sectors(&self) -> u64 {
        0
    }

    /// Connects it to what a run provides. On a device at rest only. An FTL that was just formatted or
    /// mounted has no host: its own work takes no time.
    fn attach(&mut self, attach: Attach);

    /// Whether flushes make durable what they cover although the configuration has them wait for idle units alone
    /// ([`crate::device::Flush`]). They do at first, while a device is made or mounted, and should before its power goes in
    /// order. On a device at rest only.
    fn keep_flushed(&mut self, _keeps: bool) {}

    /// From now on logs up to `room` spans of host CPU time, or none; returns what was logged so far. An
    /// FTL on the device returns nothing.
    fn cpu_spans(&mut self, room: Option<usize>) -> Vec<CpuSpan>;

    /// The link between the host and the SSD: below an FTL of [`Side::Host`], above one of [`Side::Device`].
    /// Its counts begin again with those of the FTL.
    fn link(&self) -> &HostLink;

    /// The media.
    fn media(&self) -> &Self::Media;

    /// The media, in order to change how it behaves.
    fn media_mut(&mut self) -> &mut Self::Media;

    /// When collection comes to rest, and whether it can; `None` where a fixed number of free erase units is kept.
    /// Reads the whole map.
    fn rest(&self) -> Option<Rest> {
        None
    }

    /// Drops everything in RAM and returns the media: a power cut, as the media see it.
    fn power_off(self) -> Self::Media
    where
        Self: Sized;

    /// Whether its tables, counts and media agree; slow, for tests and campaigns.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    fn check_invariants(&self) -> Result<(), String>;
}

/// What a run provides to an FTL.
#[derive(Debug)]
pub struct Attach {
    /// The host on whose cores an FTL of [`Side::Host`] works, at the costs of its configuration; `None`: its
    /// work takes no time. An FTL of [`Side::Device`] ignores it.
    pub host: Option<Host>,
    /// Timing of the link, which is at rest. Its counts go on.
    pub link: LinkTiming,
    /// What copying a sector in the host's memory takes: into a write buffer on the host, or out of it. An FTL
    /// of [`Side::Device`] ignores it.
    pub copy_ns_per_sector: u64,
    /// Whether accesses of the firmware of an FTL of [`Side::Device`] to its maps take the time of its configuration; they take
    /// none before.
    pub times_firmware: bool,
}

impl Attach {
    /// Copying 4 KiB moves them twice, out of memory and into it, at 8.5 GB/s: a core's share of the
    /// memory bandwidth of a Xeon E5-2620 v4 (docs/formats/stack.md, `host.copy_ns`).
    pub const COPY_NS_PER_SECTOR: u64 = 1_000;

    /// `host`, whose copies take so long, and a device of this timing. On one without any, copying takes no time
    /// either: no virtual time passes there.
    #[must_use]
    pub fn new(host: Option<Host>, timing: &DeviceTiming, copy_ns_per_sector: u64) -> Self {
        let is_instant = *timing == DeviceTiming::none();
        let copy_ns_per_sector = if is_instant { 0 } else { copy_ns_per_sector };
        Self { host, link: timing.link, copy_ns_per_sector, times_firmware: true }
    }
}

/// What collection waits for before it rests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rest {
    /// Collection goes on while fewer chunks are free.
    pub wanted_chunks: u64,
    /// Chunks that can be free at once, with as much on the device as there is now and no stale sector left.
    pub free_chunks_max: u64,
    /// Chunks of the device.
    pub chunks: u64,
    /// Chunks of an erase unit.
    pub line_chunks: u64,
    /// Logical sectors that hold something.
    pub mapped_sectors: u64,
}

impl Rest {
    /// The share of the device that may be stale at rest, as its inverse: with less, a line that is collected is
    /// more than 98 % valid, and collecting it frees next to nothing.
    pub const STALE_INVERSE: u64 = 64;

    /// Chunks that stale sectors take at rest.
    #[must_use]
    pub const fn stale_chunks(&self) -> u64 {
        self.chunks / Self::STALE_INVERSE
    }

    /// Whether collection comes to rest, but for a device that is hardly written.
    #[must_use]
    pub const fn is_possible(&self) -> bool {
        self.free_chunks_max >= self.wanted_chunks + self.stale_chunks()
    }
}

/// Sizes of the device, in sectors of 4 KiB. An erase unit is what the FTL erases and collects as a whole
/// (pblk: line; device FTLs: superblock).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct DeviceSize {
    /// Sectors of good chunks.
    pub physical_sectors: u64,
    /// Sectors that the host can address.
    pub logical_sectors: u64,
    /// Sectors of the address space that may hold data at once; less than `logical_sectors` on a device
    /// whose address space is larger than its media.
    #[serde(rename = "usable_sectors")]
    pub live_sectors: u64,
    /// Erase units, bad ones included.
    #[serde(rename = "lines")]
    pub erase_units: u32,
    /// Sectors of an erase unit without bad chunks.
    #[serde(rename = "line_sectors")]
    pub erase_unit_sectors: u32,
    /// Those of them that can hold data.
    #[serde(skip)]
    pub erase_unit_data_sectors: u32,
}

impl DeviceSize {
    /// Data sectors beyond those that may hold data at once: what there is for data that were superseded, and for
    /// erase units that are being written.
    #[must_use]
    pub fn spare_sectors(&self) -> u64 {
        let (all, data) = (self.erase_unit_sectors.max(1), self.erase_unit_data_sectors);
        let data = u128::from(self.physical_sectors) * u128::from(data) / u128::from(all);
        u64::try_from(data).unwrap_or(u64::MAX).saturating_sub(self.live_sectors)
    }

    /// Overprovisioning in percent of all sectors of good chunks, metadata included: as pblk counts it.
    #[must_use]
    pub fn op_percent_of_raw(&self) -> f64 {
        self.op_percent_of(self.physical_sectors)
    }

    /// Overprovisioning in percent of what holds data: as SNIA and vendors count it.
    #[must_use]
    pub fn op_percent_of_usable(&self) -> f64 {
        self.op_percent_of(self.live_sectors)
    }

    fn op_percent_of(&self, whole: u64) -> f64 {
        let spare = self.physical_sectors.saturating_sub(self.live_sectors);
        if whole == 0 { 0.0 } else { 100.0 * spare as f64 / whole as f64 }
    }
}

/// An erase unit as a report shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EraseUnit {
    /// State.
    pub state: EraseUnitState,
    /// Valid sectors.
    pub valid: u32,
    /// Data sectors written, padding included.
    pub written: u32,
}

/// State of an erase unit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EraseUnitState {
    /// Holds nothing valid; erased, or to be erased before its next use.
    #[default]
    Free,
    /// Prepared for data, taking data, or about to be closed.
    Open,
    /// Takes no more data; may be a victim, or is being collected.
    Full,
    /// Holds sectors that media cannot correct, and is kept until they are overwritten.
    Corrupt,
    /// Has too few good chunks to be used.
    Bad,
}

/// Bytes of RAM that an FTL takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryUse {
    /// Whose RAM it is.
    pub side: Side,
    /// Bytes by part; parts are disjoint. Every FTL has a part `map`.
    pub parts: Vec<(&'static str, u64)>,
    /// What the part `map` is made of, then figures by other reckonings, which no total contains. Empty
    /// for a table that is one array.
    pub map: Vec<(&'static str, u64)>,
}

impl MemoryUse {
    /// Everything together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.parts.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Bytes of a part; none of one that the FTL does not have.
    #[must_use]
    pub fn part(&self, name: &str) -> u64 {
        let found = self.parts.iter().find(|(part, _)| *part == name);
        found.map_or(0, |(_, bytes)| *bytes)
    }
}

/// What a core, a lock or a thread does for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpuWork {
    /// A read of the host.
    Read,
    /// A write of the host.
    Write,
    /// A flush.
    Flush,
    /// A discard.
    Discard,
    /// Building a write command.
    Build,
    /// Copying for garbage collection.
    Copy,
    /// Reading mapping blocks.
    LoadMap,
    /// Writing mapping blocks.
    WriteMap,
}

/// Who does it, for a timeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpuTrack {
    /// A core.
    Core(u16),
    /// The writer thread of a buffer.
    Writer(u8),
    /// The collecting thread.
    Collector,
    /// The mapping thread.
    Mapper,
    /// The lock of a buffer.
    Ring(u8),
    /// The lock of the mapping.
    Map,
}

/// A time for which something on the host was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuSpan {
    /// What was taken.
    pub track: CpuTrack,
    /// For what.
    pub work: CpuWork,
    /// Which core did it.
    pub core: u16,
    /// From when.
    pub start: Nanos,
    /// Until when.
    pub end: Nanos,
}
