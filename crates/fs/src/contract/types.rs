//! The words of the contract: who calls, what a file is, what may be asked of it.

use nandscape_rt::Nanos;

/// Inode number: the identity of a file while it exists. Numbers are used again after that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ino(pub u64);

/// Who makes a call. Travels down to the bios that the call causes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Caller {
    /// Thread of the application.
    pub thread: u16,
    /// Core that it runs on.
    pub core: u16,
    /// User; 0 may use the blocks that are reserved for the superuser.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A point in time as files keep it: since 1970, to the nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Timestamp {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds on top of them, below 10^9.
    pub nanos: u32,
}

impl Timestamp {
    /// The instant `now` of a run that began at `epoch_s` seconds after 1970.
    #[must_use]
    pub const fn at(epoch_s: i64, now: Nanos) -> Self {
        let seconds = epoch_s.saturating_add((now.0 / 1_000_000_000) as i64);
        Self { seconds, nanos: (now.0 % 1_000_000_000) as u32 }
    }
}

/// What kind of file an inode is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Regular file.
    File,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Named pipe, socket or device: kept and shown, never made here.
    Special,
}

/// What `stat` tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attr {
    /// Inode number.
    pub ino: Ino,
    /// Distinguishes files that had the same number one after the other.
    pub generation: u32,
    /// Kind of file.
    pub kind: Kind,
    /// Permission bits, and set-user-id, set-group-id, sticky.
    pub mode: u16,
    /// Names that lead here; of a directory, also its own `.` and its children's `..`.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Length in bytes.
    pub size: u64,
    /// Space taken, in units of 512 bytes.
    pub blocks: u64,
    /// Last read (kept, changed only by `setattr`: mounts are `noatime`).
    pub atime: Timestamp,
    /// Last change of content.
    pub mtime: Timestamp,
    /// Last change of content or attributes.
    pub ctime: Timestamp,
    /// Creation.
    pub crtime: Timestamp,
}

/// What `setattr` changes; `None` leaves as it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SetAttr {
    /// New permission bits.
    pub mode: Option<u16>,
    /// New owner.
    pub uid: Option<u32>,
    /// New group.
    pub gid: Option<u32>,
    /// New length.
    pub size: Option<u64>,
    /// New time of last read.
    pub atime: Option<Timestamp>,
    /// New time of last change of content.
    pub mtime: Option<Timestamp>,
}

/// A name in a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    /// Where to go on after this entry.
    pub cookie: u64,
    /// What it names.
    pub ino: Ino,
    /// Kind of what it names.
    pub kind: Kind,
    /// The name: any bytes but `/` and NUL.
    pub name: Vec<u8>,
}

/// What `statfs` tells.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StatFs {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks for data, without the format's own.
    pub blocks: u64,
    /// Free blocks, less those promised to data that is still in memory.
    pub free: u64,
    /// Free blocks for users other than 0.
    pub available: u64,
    /// Free blocks that no file's data may have: metadata finds its room there.
    pub kept: u64,
    /// Inodes.
    pub files: u64,
    /// Free inodes.
    pub files_free: u64,
}

/// What `fallocate` does with a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocate {
    /// Give blocks to all of it; they read as zeroes. The file grows unless `keep_size`.
    Reserve {
        /// Leave the length as it is.
        keep_size: bool,
    },
    /// Take its blocks away; it reads as zeroes. The length stays.
    PunchHole,
    /// It reads as zeroes, with blocks. The file grows unless `keep_size`.
    ZeroRange {
        /// Leave the length as it is.
        keep_size: bool,
    },
}

/// What `rename` does when the new name is taken.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RenameMode {
    /// What it named loses that name, in the same instant.
    #[default]
    Replace,
    /// The rename fails.
    NoReplace,
    /// The two names change places; both must exist.
    Exchange,
}

/// How content moves.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Io {
    /// Through the page cache.
    #[default]
    Buffered,
    /// Past it. Offset and length are multiples of 4,096, but for a read at the file's end.
    Direct,
}

/// What an extended attribute's name must be for `setxattr` to succeed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum XattrMode {
    /// New or known.
    #[default]
    Set,
    /// New.
    Create,
    /// Known.
    Replace,
}
