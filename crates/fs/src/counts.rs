//! What file systems count in the same terms, whatever their kind. What only one kind counts is in its folder, and
//! [`FsCounts`](crate::FsCounts) has both.

/// Total time of fsyncs and fdatasyncs that have ended, by part.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FsyncTimes {
    /// Write-back of the file's dirty pages, and waits for those already in flight.
    pub data_ns: u64,
    /// Commit of metadata.
    pub commit_ns: u64,
    /// Flush of the device, if the commit did not already flush it.
    pub flush_ns: u64,
}

/// Memory of a mounted file system.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FsMemory {
    /// Pages of files in the page cache.
    pub cached_pages: u64,
    /// Bytes of cached metadata blocks.
    pub metadata_bytes: u64,
    /// Inodes in memory.
    pub inodes: u64,
}

/// Segments and blocks of a log-structured file system.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FsSpace {
    /// Segments that hold files.
    pub main_segments: u64,
    /// Segments among them to which logs may go on.
    pub free_segments: u64,
    /// Segments among them that a checkpoint will make free.
    pub prefree_segments: u64,
    /// Blocks that users may take.
    pub user_blocks: u64,
    /// Blocks that they have taken.
    pub valid_blocks: u64,
}

/// Counts that belong together, with the names that results give them (docs/formats/result.md).
#[derive(Clone, PartialEq, Debug)]
pub struct CountGroup {
    /// Name of the group.
    pub name: &'static str,
    /// Counts by name.
    pub counts: Vec<(&'static str, u64)>,
    /// Means by name; `None`: of nothing.
    pub means: Vec<(&'static str, Option<f64>)>,
}

impl CountGroup {
    /// A group without means.
    pub(crate) const fn of(name: &'static str, counts: Vec<(&'static str, u64)>) -> Self {
        Self { name, counts, means: Vec::new() }
    }
}
