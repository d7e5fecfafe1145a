//! What is given to campaigns on a file system, and what of it is one kind's: how small its volumes are,
//! and how a seed's choices reach its mounts.

use super::rounds::Choices;
use super::{Base, VOLUME_SECTORS};
use nandscape_fs::FsConfig;
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::ext4::mkfs::MkfsOptions;
use nandscape_fs::ext4::{Commit, Config, MountOptions};
use nandscape_rt::Nanos;
use std::fmt;

/// Blocks of ext4's smallest journal.
const JOURNAL_BLOCKS: u32 = 1_024;
/// Rings of file records and their blocks: little, so that they fill.
const IJOURNAL: Commit = Commit::Ijournal { slots: 2, slot_blocks: 24 };

/// What is given from outside; the seed chooses the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FsOptions {
    /// What the file system stands on.
    pub base: Base,
    /// The file system: its modes, and the rule that it leaves out, if any.
    fs: FsConfig,
    /// Rounds a seed, one cut each at least.
    pub rounds: u32,
    /// The oracle sees one in so many cuts.
    pub oracle_every: u64,
}

impl FsOptions {
    /// A file system on this base, as small as campaigns need it.
    #[must_use]
    pub fn new(base: Base, mut fs: FsConfig) -> Self {
        match &mut fs {
            FsConfig::Ext4(config) => {
                if config.mount.commit != Commit::Jbd2 {
                    config.mount.commit = IJOURNAL;
                }
            }
        }
        Self { base, fs, rounds: 4, oracle_every: 20 }
    }

    /// The file system.
    #[must_use]
    pub const fn fs(&self) -> &FsConfig {
        &self.fs
    }

    /// How a seed makes and mounts its volume; `mount` counts its mounts.
    pub(super) fn config(&self, seed: u64, mount: u64, choices: &Choices) -> FsConfig {
        match &self.fs {
            FsConfig::Ext4(config) => FsConfig::Ext4(small_ext4(config, seed, mount, choices)),
        }
    }

    /// Whether tools of others can recover such a volume, or only check what our recovery left.
    pub(super) fn oracle_recovers(&self) -> bool {
        match &self.fs {
            // The kernel and e2fsck know nothing of file-level records.
            FsConfig::Ext4(config) => config.mount.commit == Commit::Jbd2,
        }
    }
}

fn small_ext4(config: &Config, seed: u64, mount: u64, choices: &Choices) -> Config {
    let format = MkfsOptions {
        blocks: Some(VOLUME_SECTORS),
        journal_blocks: Some(JOURNAL_BLOCKS),
        inode_ratio: Some(1 << 14),
        fresh: true,
        ..MkfsOptions::new(seed)
    };
    let cache = CacheConfig {
        pages: choices.cache_pages,
        period: Nanos((choices.write_back.0 / 4).max(1)),
        age: choices.write_back,
        ..CacheConfig::default()
    };
    let mount = MountOptions {
        data: config.mount.data,
        commit: config.mount.commit,
        commit_interval: choices.commit_interval,
        cache,
        // Generations must not come again: they tell files apart.
        seed: seed.wrapping_mul(1_000).wrapping_add(mount),
        defect: config.mount.defect,
        ..MountOptions::default()
    };
    Config { format: Some(format), mount }
}

impl fmt::Display for FsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fs {
            FsConfig::Ext4(config) => {
                let MountOptions { data, commit, defect, .. } = &config.mount;
                write!(f, "data={data:?} commit={commit:?} defect={defect:?}")?;
            }
        }
        write!(f, " rounds={}", self.rounds)
    }
}
