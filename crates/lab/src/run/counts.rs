//! What was counted: by the FTL, its media, and a file system and the calls to it.

use nandscape_fs::cache::Lookups;
use nandscape_fs::ext4::FsyncTimes;
use nandscape_fs::ext4::journal::Counts as Journal;
use nandscape_ftl::pblk::stats::FtlStats;
use nandscape_media::Utilisation;

/// What file system, FTL and media counted.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) ftl: FtlStats,
    pub(super) utilisation: Utilisation,
    /// `None`: there is no file system.
    pub(super) fs: Option<FsCounts>,
}

impl Counts {
    /// Adds what the same device counted later.
    pub(super) fn extend(&mut self, later: &Self) {
        self.ftl.extend(&later.ftl);
        self.utilisation.extend(&later.utilisation);
        if let (Some(fs), Some(later)) = (&mut self.fs, &later.fs) {
            fs.extend(later);
        }
    }
}

/// Counts of a file system, since the measured phase began.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FsCounts {
    /// Sectors of files that jobs read.
    pub read_sectors: u64,
    /// Sectors of files that jobs wrote.
    pub written_sectors: u64,
    /// Calls of fsync and fdatasync.
    pub fsyncs: u64,
    /// Time of theirs until the file system began: their threads had to be free, and calls take some of them.
    pub fsync_thread_ns: u64,
    /// Where their time went from then on.
    pub fsync_times: FsyncTimes,
    /// What the journal did.
    pub journal: Journal,
    /// File-level records, and blocks of the journal's area that they took.
    pub records: u64,
    /// Blocks of the journal's area that they took.
    pub record_blocks: u64,
    /// Pages of files that were read through the cache.
    pub lookups: Lookups,
    /// Pages of files in memory at the end.
    pub cached_pages: u64,
}

impl FsCounts {
    /// Every count of a sum, beside its like.
    fn pairs<'a>(&'a mut self, other: &'a Self) -> [(&'a mut u64, u64); 19] {
        let (ours, theirs) = (&mut self.journal, &other.journal);
        [
            (&mut self.read_sectors, other.read_sectors),
            (&mut self.written_sectors, other.written_sectors),
            (&mut self.fsyncs, other.fsyncs),
            (&mut self.fsync_thread_ns, other.fsync_thread_ns),
            (&mut self.fsync_times.data_ns, other.fsync_times.data_ns),
            (&mut self.fsync_times.commit_ns, other.fsync_times.commit_ns),
            (&mut self.fsync_times.flush_ns, other.fsync_times.flush_ns),
            (&mut ours.commits, theirs.commits),
            (&mut ours.log_blocks, theirs.log_blocks),
            (&mut ours.copies, theirs.copies),
            (&mut ours.frozen, theirs.frozen),
            (&mut ours.revoke_blocks, theirs.revoke_blocks),
            (&mut ours.home_blocks, theirs.home_blocks),
            (&mut ours.forced_checkpoints, theirs.forced_checkpoints),
            (&mut ours.superblocks, theirs.superblocks),
            (&mut self.records, other.records),
            (&mut self.record_blocks, other.record_blocks),
            (&mut self.lookups.hits, other.lookups.hits),
            (&mut self.lookups.misses, other.lookups.misses),
        ]
    }

    /// What was counted since `earlier`.
    pub(super) fn since(mut self, earlier: &Self) -> Self {
        self.pairs(earlier).into_iter().for_each(|(sum, before)| *sum = sum.saturating_sub(before));
        self
    }

    /// Adds what the same file system counted later.
    pub(super) fn extend(&mut self, later: &Self) {
        self.pairs(later).into_iter().for_each(|(sum, more)| *sum += more);
        self.cached_pages = later.cached_pages;
    }
}
