//! The choices that make a pblk: every variant is a set of policies, never a copy of the FTL.

pub use crate::common::victims::Victim;
use crate::pblk::costs::{CpuCosts, MapUpdate};
use nandscape_rt::Nanos;

/// Which kernel's capacity, reserve and ring rules apply (pblk changed them over its life).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum CapacityRules {
    /// Linux 4.13: limiter threshold of an eighth of all chunks.
    V4_13,
    /// Linux 4.16: threshold from overprovisioning, one line reserved.
    #[default]
    V4_16,
    /// Linux 5.11: as 4.16, at least `ceil(100 / op)` lines reserved, a larger ring.
    V5_11,
}

/// What shares the write buffer between user writes and garbage collection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Limiter {
    /// The kernel's rate limiter.
    #[default]
    Kernel,
    /// Collect whenever fewer than N lines are free; user writes stall meanwhile.
    Reserve(u32),
}

/// When garbage collection starts a victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pacing {
    /// When the collector's thread runs: at activation, and once per period (`GC_TIME_MSECS`), at most
    /// four victims in flight (pblk-gc.c). Lines without valid sectors are freed then, too.
    Kernel(Nanos),
    /// Whenever one is wanted and fewer than four are in flight.
    Immediate,
}

impl Pacing {
    /// `GC_TIME_MSECS`.
    pub const PERIOD: Nanos = Nanos::from_ms(1_000);
}

/// What happens to discards.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Discard {
    /// Logged with a sequence, durable at flush.
    #[default]
    Durable,
    /// As the kernel's pblk: forgotten by a power cut.
    Kernel,
}

/// Which write buffer takes a user's write where nothing more special applies.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum BaseRouting {
    /// One buffer for everything (pblk).
    #[default]
    Single,
    /// A buffer a core (MT-FTL).
    PerCore(CoreChoice),
    /// A buffer a hardware queue; a core submits to its own queue (QBLK).
    PerQueue,
}

/// Which of the cores' buffers takes a write (MT-FTL's module option).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum CoreChoice {
    /// That of the submitting core; of core 0 when nobody said.
    #[default]
    Core,
    /// Any, at random.
    Random,
    /// The one with most free slots.
    MostFree,
}

/// Where the writes of files go that somebody fsyncs (FA-FTL and the paper's two alternatives).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FileRouting {
    /// Where all others go.
    #[default]
    None,
    /// To one of a few buffers for such files, bound in turn.
    FsyncAware,
    /// To one of the normal buffers, bound in turn.
    FsyncInNormal,
    /// To a buffer of the file's own, as long as there are any.
    PerFile,
}

/// Which write buffer takes a bio. Precedence: the journal's, then the file's, then the base.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Routing {
    /// For whatever nothing else claims.
    pub base: BaseRouting,
    /// Bios with the JOURNAL flag have a buffer and lines of their own (JS-Pblk).
    pub journal: bool,
    /// Files that are fsynced.
    pub files: FileRouting,
}

/// What a flush covers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FlushScope {
    /// Every buffer, whatever the bio asks for.
    #[default]
    All,
    /// Of a bio that asks for its owner's scope: the buffers that hold anything of the owner's file.
    FileRing,
    /// Of such a bio: the file's own entries, wherever they are (RFLUSH).
    FileEntries,
    /// Every buffer, but what has been submitted counts as durable (Linux 4.13). Loses data.
    SubmittedOnly,
    /// The buffer that the flush itself is routed to (MT-FTL's code). Loses data.
    RoutedRingOnly,
}

/// Which chunks make a line.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LineSet {
    /// Chunk *i* of every parallel unit.
    #[default]
    Device,
    /// Chunk *i* of every parallel unit of one channel (QBLK).
    Channel,
    /// Chunk *i* of this many neighbouring parallel units.
    Units(u32),
}

/// How many parallel units each stream writes to at once, where lines are narrower than the device: it has
/// so many units' lines open, which its write units go to in turn. A number is a line's, times a power of two.
/// `None` takes those of the device for the normal buffers, which share their lines, and those of one line
/// for every other buffer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StreamUnits {
    /// The normal buffers together.
    pub normal: Option<u32>,
    /// Each buffer for files that are fsynced.
    pub fsync: Option<u32>,
    /// The journal's buffer.
    pub journal: Option<u32>,
    /// The buffer for copies.
    pub gc: Option<u32>,
}

/// Where garbage collection's copies go.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum GcStream {
    /// To the normal buffers, in turn.
    #[default]
    Data,
    /// To a buffer and lines of their own.
    Own,
    /// To the buffer that filled the line they come from.
    ByOrigin,
}

/// What becomes of the journal's own lines while sectors in them are valid.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum JournalLines {
    /// They are victims as all other lines are.
    #[default]
    Collected,
    /// They are victims only where no other victim helps: a circular log invalidates them without copies.
    Exempt,
}

/// How hot an access makes a mapping block, and how it cools (selective mapping-table loading,
/// section 3.3; the paper states no numbers, the defaults are its authors' published code's).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotnessConfig {
    /// Points for a host read.
    pub read: u32,
    /// Points for a host write.
    pub write: u32,
    /// Points for a look-up by garbage collection or another inner task.
    pub internal: u32,
    /// Points that a journal access earns beyond those of its direction.
    pub journal: u32,
    /// Points for being loaded, so that a block does not leave as soon as it came.
    pub load_bonus: u32,
    /// Points that every block loses whenever a victim is sought.
    pub decay_per_scan: u32,
    /// For each such time of idling it loses one more point then; `None`: idling costs nothing.
    pub idle_per_point: Option<Nanos>,
}

impl HotnessConfig {
    /// Access history alone.
    #[must_use]
    pub const fn history() -> Self {
        Self {
            read: 50,
            write: 10,
            internal: 1,
            journal: 0,
            load_bonus: 1_000,
            decay_per_scan: 1,
            idle_per_point: Some(Nanos::from_ms(2)),
        }
    }

    /// Access history, and the journal hotter.
    #[must_use]
    pub const fn journal() -> Self {
        Self { journal: 500, ..Self::history() }
    }
}

/// What leaves the mapping cache when something else must come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapPolicy {
    /// The mapping block used least recently.
    Lru,
    /// The mapping block with the lowest hotness; with journal points, `hotness-journal`.
    Hotness(HotnessConfig),
    /// Single entries by segmented LRU (DFTL, ASPLOS 2009).
    Dftl {
        /// Share of the cache for entries that were used again. The paper names segmented LRU
        /// without numbers; its authors' simulator keeps 6,552 such entries of 8,192: 80.
        protected_percent: u32,
    },
}

/// Size of the mapping cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheSize {
    /// So many bytes.
    Bytes(u64),
    /// This share of the whole table.
    Percent(u32),
}

impl CacheSize {
    /// Bytes, for a table of `table_bytes`.
    #[must_use]
    pub const fn bytes(self, table_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (table_bytes as u128 * percent as u128 / 100) as u64,
        }
    }
}

/// What a write does whose mapping is not in RAM.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WriteMiss {
    /// It waits for its mapping block.
    #[default]
    Load,
    /// Its entry waits in a buffer, and is merged with others of its block. For caches of whole blocks.
    Blind {
        /// Share of the cache's memory that the buffer takes, 1 to 99.
        percent: u32,
    },
}

/// A mapping table on media, of which a part is cached in RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapConfig {
    /// Bytes of a mapping block (DFTL: translation page): 4, 16 or 64 KiB.
    pub block_bytes: u32,
    /// Size of the cache.
    pub cache: CacheSize,
    /// Replacement.
    pub policy: MapPolicy,
    /// Loads in flight at most, and as many evictions that wait for a write-back; with 1 a miss
    /// blocks every other miss, as the paper's lock does.
    pub loads_max: u32,
    /// Blocks that leave a full cache together; the paper's code evicts 100. DFTL batches by
    /// translation page instead.
    pub evict_batch: u32,
    /// What a write miss does.
    pub write_miss: WriteMiss,
}

impl Default for MapConfig {
    /// The paper's block and cache sizes for a table of 400 MiB, with overlapping misses.
    fn default() -> Self {
        Self {
            block_bytes: 64 << 10,
            cache: CacheSize::Bytes(128 << 20),
            policy: MapPolicy::Hotness(HotnessConfig::journal()),
            loads_max: 64,
            evict_batch: 1,
            write_miss: WriteMiss::Load,
        }
    }
}

/// Where the mapping table is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MapKind {
    /// All of it in RAM (pblk).
    #[default]
    Resident,
    /// On media, a part of it cached.
    Cached(MapConfig),
}

/// All choices of one pblk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Capacity, reserve and ring rules.
    pub capacity_rules: CapacityRules,
    /// Overprovisioning in percent; `None` takes the rules' default (20 for 4.13, else 11).
    pub op_percent: Option<u32>,
    /// Write-buffer entries; `None` takes the rules' size.
    pub ring_sectors: Option<u32>,
    /// Sharing of the write buffer.
    pub limiter: Limiter,
    /// Which write buffer takes a bio.
    pub routing: Routing,
    /// Buffers of `per-core` and `per-queue` routing: core *n* writes to buffer *n* modulo this number.
    pub write_buffers: u32,
    /// Buffers for files that are fsynced; `None` takes as many as `write_buffers`.
    pub fsync_rings: Option<u32>,
    /// A file that was fsynced more often than this is bound to a buffer.
    pub fsync_threshold: u32,
    /// Entries of a buffer for the journal or for fsynced files; `None` takes the normal size.
    pub special_ring_sectors: Option<u32>,
    /// What a flush covers.
    pub flush_scope: FlushScope,
    /// Which chunks make a line.
    pub line_set: LineSet,
    /// How many parallel units each stream writes to at once.
    pub stream_units: StreamUnits,
    /// Where copies go.
    pub gc_stream: GcStream,
    /// Whether copies are made of the journal's own lines.
    pub journal_lines: JournalLines,
    /// Where the mapping table is.
    pub map: MapKind,
    /// What all this costs the host's CPU.
    pub cpu: CpuCosts,
    /// How cores that change the table keep out of each other's way.
    pub map_update: MapUpdate,
    /// Treatment of discards.
    pub discard: Discard,
    /// Victim choice.
    pub victim: Victim,
    /// When victims are started; `None` takes what the limiter goes with ([`Config::pacing`]).
    pub gc_pacing: Option<Pacing>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            capacity_rules: CapacityRules::default(),
            op_percent: None,
            ring_sectors: None,
            limiter: Limiter::default(),
            routing: Routing::default(),
            write_buffers: 4,
            fsync_rings: None,
            fsync_threshold: 1,
            special_ring_sectors: None,
            flush_scope: FlushScope::default(),
            line_set: LineSet::default(),
            stream_units: StreamUnits::default(),
            gc_stream: GcStream::default(),
            journal_lines: JournalLines::default(),
            map: MapKind::default(),
            cpu: CpuCosts::default(),
            map_update: MapUpdate::default(),
            discard: Discard::default(),
            victim: Victim::default(),
            gc_pacing: None,
        }
    }
}

impl Config {
    /// When victims are started: the kernel's limiter goes with the kernel's thread, a reserve of free
    /// lines is refilled at once.
    #[must_use]
    pub fn pacing(&self) -> Pacing {
        let by_limiter = match self.limiter {
            Limiter::Kernel => Pacing::Kernel(Pacing::PERIOD),
            Limiter::Reserve(_) => Pacing::Immediate,
        };
        self.gc_pacing.unwrap_or(by_limiter)
    }

    /// Whether there are buffers for files that are fsynced.
    #[must_use]
    pub fn has_fsync_buffers(&self) -> bool {
        matches!(self.routing.files, FileRouting::FsyncAware | FileRouting::PerFile)
    }

    /// Whether any number of buffers follows from `write_buffers`.
    #[must_use]
    pub fn uses_write_buffers(&self) -> bool {
        let binds_files = self.has_fsync_buffers();
        self.routing.base != BaseRouting::Single || (binds_files && self.fsync_rings.is_none())
    }
}
