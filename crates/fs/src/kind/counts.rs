//! What a mounted file system counted, whatever its kind: sums since mount, of which two make a window.

use crate::cache::Lookups;
use crate::counts::{CountGroup, FsyncTimes};
use crate::vfs::VolumeEnv;
use crate::{ext4, f2fs};
use nandscape_block::Barriers;

/// Counts that only one kind has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[expect(clippy::large_enum_variant, reason = "a window has few of them, and a copy is wanted")]
pub enum FsDetail {
    /// Nothing more is counted.
    #[default]
    None,
    /// Of ext4: its journal.
    Ext4(ext4::Counts),
    /// Of F2FS: checkpoints, logs, cleaning.
    F2fs(f2fs::Counts),
}

/// Counts since mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FsCounts {
    /// Time of syncs by part.
    pub fsync_times: FsyncTimes,
    /// Pages that readers asked the page cache for.
    pub lookups: Lookups,
    /// Requests to the device that make something durable.
    pub barriers: Barriers,
    /// Counts of the kind.
    pub detail: FsDetail,
}

impl FsCounts {
    /// Those of a mount that stands on `env`.
    pub(crate) fn of<F>(env: &VolumeEnv<F>, detail: FsDetail) -> Self {
        Self {
            fsync_times: env.fsync_times.get(),
            lookups: env.cache.lookups(),
            barriers: env.device.barriers(),
            detail,
        }
    }

    /// What was counted after `earlier`, an earlier value of the same mount.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        self.zip(earlier, |later, earlier| *later = later.saturating_sub(earlier));
        self
    }

    /// Adds what the same file system counted in a later window.
    pub fn extend(&mut self, later: &Self) {
        if self.detail == FsDetail::None {
            self.detail = later.detail.cleared();
        }
        self.zip(later, |sum, more| *sum += more);
    }

    /// Applies `merge` to each count and its counterpart in `other`.
    fn zip(&mut self, other: &Self, merge: impl Fn(&mut u64, u64)) {
        merge(&mut self.fsync_times.data_ns, other.fsync_times.data_ns);
        merge(&mut self.fsync_times.commit_ns, other.fsync_times.commit_ns);
        merge(&mut self.fsync_times.flush_ns, other.fsync_times.flush_ns);
        merge(&mut self.lookups.hits, other.lookups.hits);
        merge(&mut self.lookups.misses, other.lookups.misses);
        merge(&mut self.barriers.flushes, other.barriers.flushes);
        merge(&mut self.barriers.preflush_writes, other.barriers.preflush_writes);
        merge(&mut self.barriers.fua_writes, other.barriers.fua_writes);
        match (&mut self.detail, &other.detail) {
            (FsDetail::Ext4(ours), FsDetail::Ext4(theirs)) => ours.zip(theirs, merge),
            (FsDetail::F2fs(ours), FsDetail::F2fs(theirs)) => ours.zip(theirs, merge),
            _ => {}
        }
    }
}

impl FsDetail {
    /// The same kind with nothing counted.
    fn cleared(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Ext4(_) => Self::Ext4(ext4::Counts::default()),
            Self::F2fs(_) => Self::F2fs(f2fs::Counts::default()),
        }
    }

    /// All counts by name.
    #[must_use]
    pub fn groups(&self) -> Vec<CountGroup> {
        match self {
            Self::None => Vec::new(),
            Self::Ext4(counts) => counts.groups(),
            Self::F2fs(counts) => counts.groups(),
        }
    }

    /// One count by the names of its group and its own.
    #[must_use]
    pub fn count(&self, group: &str, name: &str) -> Option<u64> {
        let group = self.groups().into_iter().find(|known| known.name == group)?;
        group.counts.iter().find(|(known, _)| *known == name).map(|(_, count)| *count)
    }

    /// What to say of them in a line, as phrases; the first is always there if any is.
    #[must_use]
    pub fn phrases(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::Ext4(counts) => counts.phrases(),
            Self::F2fs(counts) => counts.phrases(),
        }
    }
}
