//! What is counted of calls to a file system, or to the page cache of a block device.

use nandscape_fs::{FsCounts, FsSpace};

/// Counts of calls to a page cache, and those of the file system.
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
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        self.pairs(earlier).into_iter().for_each(|(sum, before)| *sum = sum.saturating_sub(before));
        self.fs = self.fs.since(&earlier.fs);
        self
    }

    /// Adds what the same file system counted later.
    pub fn extend(&mut self, later: &Self) {
        self.pairs(later).into_iter().for_each(|(sum, more)| *sum += more);
        self.fs.extend(&later.fs);
        self.cached_pages = later.cached_pages;
        self.space = later.space;
    }
}
