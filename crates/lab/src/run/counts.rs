//! What was counted: by the FTL, its media, and a file system and the calls to it.

use nandscape_fs::{FsCounts, FsSpace};
use nandscape_ftl::FtlReport;
use nandscape_media::{LinkUse, Utilisation};
use nandscape_rt::counts::Counts as _;
use nandscape_rt::host::CoreTimes;

/// What file system, FTL and media counted.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) ftl: FtlReport,
    pub(super) utilisation: Utilisation,
    pub(super) link: LinkUse,
    /// For what each core of the host was used.
    pub(super) cores: Vec<CoreTimes>,
    /// `None`: there is no file system.
    pub(super) fs: Option<FileCounts>,
}

impl Counts {
    /// Adds what the same device counted later.
    pub(super) fn extend(&mut self, later: &Self) {
        self.ftl.add(&later.ftl);
        self.utilisation.extend(&later.utilisation);
        self.link.extend(&later.link);
        self.cores.iter_mut().zip(&later.cores).for_each(|(sum, more)| sum.extend(more));
        if let (Some(fs), Some(later)) = (&mut self.fs, &later.fs) {
            fs.extend(later);
        }
    }
}

/// Counts of calls to a file system, and its own, since the measured phase began.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FileCounts {
    /// Sectors of files that jobs read.
    pub read_sectors: u64,
    /// Sectors of files that jobs wrote.
    pub written_sectors: u64,
    /// Calls of fsync and fdatasync.
    pub fsyncs: u64,
    /// Time of theirs until the file system began: their threads had to be free, and calls take some of them.
    pub fsync_thread_ns: u64,
    /// What the file system itself counted.
    pub fs: FsCounts,
    /// Pages of files in memory at the end.
    pub cached_pages: u64,
    /// Segments and blocks at the end.
    pub space: Option<FsSpace>,
}

impl FileCounts {
    /// The counts of calls, each with its counterpart.
    fn pairs<'a>(&'a mut self, other: &'a Self) -> [(&'a mut u64, u64); 4] {
        [
            (&mut self.read_sectors, other.read_sectors),
            (&mut self.written_sectors, other.written_sectors),
            (&mut self.fsyncs, other.fsyncs),
            (&mut self.fsync_thread_ns, other.fsync_thread_ns),
        ]
    }

    /// What was counted since `earlier`.
    pub(super) fn since(mut self, earlier: &Self) -> Self {
        self.pairs(earlier).into_iter().for_each(|(sum, before)| *sum = sum.saturating_sub(before));
        self.fs = self.fs.since(&earlier.fs);
        self
    }

    /// Adds what the same file system counted later.
    pub(super) fn extend(&mut self, later: &Self) {
        self.pairs(later).into_iter().for_each(|(sum, more)| *sum += more);
        self.fs.extend(&later.fs);
        self.cached_pages = later.cached_pages;
        self.space = later.space;
    }
}
