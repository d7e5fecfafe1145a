//! How an open file is used: flags of `open`, write hints, and what `lseek` looks for.

use super::{Ino, Io};

/// Flags of an open file (`O_APPEND`, `O_SYNC`, `O_DSYNC`, `O_DIRECT`). There is none for access times:
/// every mount is `noatime`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpenFlags {
    /// Each write goes to the end of the file.
    pub append: bool,
    /// Each write is followed by an fsync.
    pub sync: bool,
    /// Each write is followed by an fdatasync.
    pub dsync: bool,
    /// Content bypasses the page cache.
    pub direct: bool,
}

impl OpenFlags {
    /// How content moves.
    #[must_use]
    pub const fn io(self) -> Io {
        if self.direct { Io::Direct } else { Io::Buffered }
    }
}

/// An open file: what [`FileSystem::open`](super::FileSystem::open) pinned, and how it is used. File
/// systems keep no table of these; a front end that has file descriptors keeps them there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fh {
    /// The inode that it pins.
    pub ino: Ino,
    /// Its flags.
    pub flags: OpenFlags,
}

/// How long data of a file is expected to live (`F_SET_RW_HINT`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum WriteHint {
    /// Not known.
    #[default]
    None,
    /// Shortest.
    Short,
    /// Longer than short.
    Medium,
    /// Longer than medium.
    Long,
    /// Longest.
    Extreme,
}

/// What `lseek` looks for from an offset on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whence {
    /// Data (`SEEK_DATA`).
    Data,
    /// A hole, or the end of the file (`SEEK_HOLE`).
    Hole,
}
