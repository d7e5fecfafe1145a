//! What can be chosen at mount.

use super::cpu::CpuCosts;
use super::format::{GC_JOURNAL_BLOCKS, GcJournalFormat, Layout};
use super::gc_parts::GcWithout;
use super::rules::OmittedRule;
use crate::cache::CacheConfig;
use nandscape_rt::Nanos;

/// How new blocks are placed (`fs.allocation`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Allocation {
    /// Normal logging: blocks are written at the ends of logs only (`mode=lfs`).
    #[default]
    Lfs,
    /// Adaptive logging: in holes of dirty segments when few sections are free, and in place where an fsync asks for it
    /// (`mode=adaptive`).
    Adaptive,
}

/// What adaptive logging does on a volume of at most 8,192 main segments (`fs.small_volume`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SmallVolume {
    /// As the kernel: all data is written over in place, and free segments are looked for from the start of the volume
    /// (`f2fs_tuning_parameters`). Hardly anything is cleaned then.
    #[default]
    Kernel,
    /// As on a larger one.
    Off,
}

/// Where free segments are looked for (`alloc_mode`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum AllocMode {
    /// From where the log is, so that all are used in turn; for hot data and nodes from the start of the volume.
    #[default]
    Default,
    /// From the start of the volume, so that what was freed lately is used again first.
    Reuse,
}

/// What makes segments free that cleaning has emptied (`fs.reclaim`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Reclaim {
    /// The next checkpoint, as the kernel does it.
    #[default]
    Checkpoint,
    /// The GC journal, where it says all that is needed of a segment; else the next checkpoint. The volume has an area
    /// for it.
    GcJournal,
}

/// When a cleaning call in the foreground writes the checkpoint that makes what it emptied free
/// (`fs.gc_checkpoint`), if the GC journal does not.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum GcCheckpoint {
    /// At its end, as kernels of 2014 and 2015 do.
    #[default]
    Call,
    /// At the start of the next one, as later kernels do (5.11).
    Reuse,
}

/// What an fsync of a file guarantees beyond the file (`fsync_mode`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FsyncMode {
    /// What POSIX asks for.
    #[default]
    Posix,
    /// What other Linux file systems do: names that changed in the same directory go with it.
    Strict,
}

/// When freed segments are discarded (`fs.discard_policy`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum DiscardPolicy {
    /// At most 8 requests per round, every 50 ms.
    #[default]
    Kernel,
    /// At most 80,000 requests per round: the setting of D2FS's F2FS baseline.
    Aggressive,
}

/// How the section is chosen that is cleaned in the background.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum VictimPolicy {
    /// Few valid blocks that have not changed for long (the kernel's default).
    #[default]
    CostBenefit,
    /// By age first, none that changed lately (the mount option `atgc`).
    AgeThreshold,
}

/// Options of a mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountOptions {
    /// How new blocks are placed.
    pub allocation: Allocation,
    /// What that does on a small volume.
    pub small_volume: SmallVolume,
    /// Where free segments are looked for.
    pub alloc_mode: AllocMode,
    /// What makes cleaned segments free.
    pub reclaim: Reclaim,
    /// When cleaning writes its checkpoint; not with a GC journal.
    pub gc_checkpoint: GcCheckpoint,
    /// How the GC journal is written.
    pub gc_journal: GcJournalFormat,
    /// Blocks of the GC journal after which a checkpoint is written: up to [`GC_JOURNAL_BLOCKS`].
    pub gc_journal_blocks: u32,
    /// Blocks for which cleaning with a GC journal counts a checkpoint, beside what is dirty: the pack, NAT and SIT, the
    /// flushes, and the operations that wait for it.
    pub checkpoint_cost: u32,
    /// Logs in use: 2, 4 or 6.
    pub active_logs: u8,
    /// What an fsync guarantees.
    pub fsync_mode: FsyncMode,
    /// When freed segments are discarded.
    pub discard_policy: DiscardPolicy,
    /// Batches of migrations that wait for a checkpoint at which one is forced (D2FS's artifact has room for 2,048 in all;
    /// the quarter of it is chosen).
    pub upcalls_waiting: u32,
    /// Whether short files live in their inodes.
    pub inline_data: bool,
    /// Whether short directories live in their inodes.
    pub inline_dentry: bool,
    /// Slots of an inode for extended attributes; 0 for none.
    pub inline_xattr: bool,
    /// Age of the last checkpoint at which another one is written.
    pub checkpoint_interval: Nanos,
    /// Whether a checkpoint waits for file data in flight, and an fsync's nodes for its data to be durable. The
    /// kernel's does neither: after a power cut, data that were being overwritten may be gone.
    pub ordered_data: bool,
    /// Whether cleaning runs in the background when the volume is idle (`background_gc`).
    pub background_gc: bool,
    /// How it chooses.
    pub victim: VictimPolicy,
    /// Age below which [`VictimPolicy::AgeThreshold`] leaves a section alone (`DEF_GC_THREAD_AGE_THRESHOLD`), in
    /// whole seconds.
    pub age_threshold: Nanos,
    /// The least time between two rounds of it, and the steps by which that changes (`DEF_GC_THREAD_MIN_SLEEP_TIME`).
    pub gc_min_sleep: Nanos,
    /// The most (`DEF_GC_THREAD_MAX_SLEEP_TIME`).
    pub gc_max_sleep: Nanos,
    /// The same when there was nothing to clean (`DEF_GC_THREAD_NOGC_SLEEP_TIME`).
    pub gc_no_gc_sleep: Nanos,
    /// Time without an operation after which the volume is idle (`DEF_IDLE_INTERVAL`).
    pub idle_interval: Nanos,
    /// What its work takes of the host's cores.
    pub cpu: CpuCosts,
    /// What is left out of cleaning, for measurements.
    pub gc_without: GcWithout,
    /// The page cache, which has node and meta pages as well.
    pub cache: CacheConfig,
    /// NAT entries kept in memory, those that are dirty not counted.
    pub nat_entries: usize,
    /// The first block of the NAT in which a mount looks for free node numbers, unless the checkpoint names a later one,
    /// where the kernel begins.
    pub nid_search_from: u32,
    /// Inodes kept in memory, those in use not counted.
    pub inodes: usize,
    /// Seconds after 1970 at which the run began, for the times of files.
    pub epoch_s: i64,
    /// Seed of inode generations.
    pub seed: u64,
    /// A rule that is left out, for campaigns that must notice.
    pub omit: Option<OmittedRule>,
}

impl MountOptions {
    /// Segments of the main area up to which a volume is small (`SMALL_VOLUME_SEGMENTS`).
    const SMALL_SEGMENTS: u32 = 8_192;

    /// Whether adaptive logging follows the kernel's rules for small volumes: all data is written over in place
    /// (`F2FS_IPU_FORCE`), and free segments are looked for from the start (`ALLOC_MODE_REUSE`).
    pub(crate) fn has_small_rules(&self, layout: &Layout) -> bool {
        self.allocation == Allocation::Adaptive
            && self.small_volume == SmallVolume::Kernel
            && layout.main_segments() <= Self::SMALL_SEGMENTS
    }

    /// Bytes of a NAT entry in memory: an object of Linux's `f2fs_nat_entry` (`struct nat_entry`, x86-64).
    const NAT_ENTRY_BYTES: u64 = 32;
    /// Bytes of an inode in memory: an object of Linux's `f2fs_inode_cache`; an estimate, of ext4's size and a
    /// tenth more for the extent tree.
    const INODE_BYTES: u64 = 1_200;
    /// Fewer NAT entries or inodes than this are not asked for.
    const KEPT_MIN: usize = 64;

    /// Limits NAT entries and inodes in memory to `bytes` for each of both, or to [`Self::KEPT_MIN`] of them.
    /// Returns how many bytes they may take then, by name. Node and meta pages are the page cache's.
    pub(crate) fn limit_metadata(&mut self, bytes: u64) -> [(&'static str, u64); 2] {
        let limit = |now: usize, each: u64| {
            let fits = usize::try_from(bytes / each).unwrap_or(usize::MAX);
            now.min(fits.max(Self::KEPT_MIN))
        };
        self.nat_entries = limit(self.nat_entries, Self::NAT_ENTRY_BYTES);
        self.inodes = limit(self.inodes, Self::INODE_BYTES);
        [
            ("NAT entries", self.nat_entries as u64 * Self::NAT_ENTRY_BYTES),
            ("inodes", self.inodes as u64 * Self::INODE_BYTES),
        ]
    }
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            allocation: Allocation::default(),
            small_volume: SmallVolume::default(),
            alloc_mode: AllocMode::default(),
            reclaim: Reclaim::default(),
            gc_checkpoint: GcCheckpoint::default(),
            gc_journal: GcJournalFormat::Safe,
            gc_journal_blocks: GC_JOURNAL_BLOCKS,
            checkpoint_cost: 8,
            active_logs: 6,
            fsync_mode: FsyncMode::default(),
            discard_policy: DiscardPolicy::default(),
            upcalls_waiting: 512,
            inline_data: true,
            inline_dentry: true,
            inline_xattr: true,
            checkpoint_interval: Nanos::from_secs(60),
            ordered_data: false,
            background_gc: true,
            victim: VictimPolicy::default(),
            age_threshold: Nanos::from_secs(7 * 24 * 60 * 60),
            gc_min_sleep: Nanos::from_secs(30),
            gc_max_sleep: Nanos::from_secs(60),
            gc_no_gc_sleep: Nanos::from_secs(300),
            idle_interval: Nanos::from_secs(5),
            cpu: CpuCosts::default(),
            gc_without: GcWithout::default(),
            cache: CacheConfig::default(),
            nat_entries: 100_000,
            nid_search_from: 0,
            inodes: 16_384,
            epoch_s: 1_700_000_000,
            seed: 1,
            omit: None,
        }
    }
}
