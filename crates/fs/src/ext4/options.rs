//! What can be chosen at mount.

use super::journal::Buffer;
use super::rules::OmittedRule;
use crate::cache::CacheConfig;
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;

/// How file data and the journal go together (ext4's `data=`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum DataMode {
    /// Data goes through the journal.
    Journal,
    /// New data is on the device before the transaction that leads to it commits.
    #[default]
    Ordered,
    /// Data may come later than what leads to it.
    Writeback,
}

/// What an fsync commits (`commit`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Commit {
    /// The running transaction, with all changes.
    #[default]
    Jbd2,
    /// A record of the file, as far as one will do: see [`super::journal::files`].
    Ijournal {
        /// Rings of records: per-core ijournal areas.
        slots: u32,
        /// Blocks of each; 0: they share a quarter of the log.
        slot_blocks: u32,
    },
}

/// Options of a mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountOptions {
    /// The data mode.
    pub data: DataMode,
    /// What an fsync commits.
    pub commit: Commit,
    /// Age at which a running transaction is committed (ext4's `commit=`).
    pub commit_interval: Nanos,
    /// How often committed metadata that is not at home is looked for.
    pub home_period: Nanos,
    /// When it is old, and written home. Of both the defaults are those of the page cache.
    pub home_age: Nanos,
    /// Share of the log that one transaction may take: a quarter at most, which is the kernel's.
    pub transaction_percent: u8,
    /// A commit moves the tail once so much of the log would come free: a quarter, as in the kernel.
    pub tail_move_percent: u8,
    /// The page cache.
    pub cache: CacheConfig,
    /// Metadata blocks kept in memory.
    pub buffers: usize,
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
    /// Bytes of a metadata block in memory.
    const BUFFER_BYTES: u64 = SECTOR_BYTES + Buffer::OVERHEAD_BYTES as u64;
    /// Bytes of an inode in memory: an object of Linux's `ext4_inode_cache` (`/proc/slabinfo`, x86-64).
    const INODE_BYTES: u64 = 1_088;
    /// Fewer metadata blocks or inodes than this are not asked for.
    const KEPT_MIN: usize = 64;

    /// Limits metadata blocks and inodes in memory to `bytes` for each of both, or to [`Self::KEPT_MIN`] of
    /// them. Returns how many bytes they may take then, by name.
    pub(crate) fn limit_metadata(&mut self, bytes: u64) -> [(&'static str, u64); 2] {
        let limit = |now: usize, each: u64| {
            let fits = usize::try_from(bytes / each).unwrap_or(usize::MAX);
            now.min(fits.max(Self::KEPT_MIN))
        };
        self.buffers = limit(self.buffers, Self::BUFFER_BYTES);
        self.inodes = limit(self.inodes, Self::INODE_BYTES);
        [
            ("metadata", self.buffers as u64 * Self::BUFFER_BYTES),
            ("inodes", self.inodes as u64 * Self::INODE_BYTES),
        ]
    }
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            data: DataMode::default(),
            commit: Commit::default(),
            commit_interval: Nanos::from_secs(5),
            home_period: Nanos::from_secs(5),
            home_age: Nanos::from_secs(30),
            transaction_percent: 25,
            tail_move_percent: 25,
            cache: CacheConfig::default(),
            buffers: 16_384,
            inodes: 16_384,
            epoch_s: 1_700_000_000,
            seed: 1,
            omit: None,
        }
    }
}
