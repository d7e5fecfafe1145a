//! The contract between file systems and whoever uses them: workloads, the crash campaigns' models,
//! and later a FUSE mount. POSIX, by inode number; every promise is numbered and tested
//! (docs/semantics/posix.md).
//!
//! - Calls name a directory and a name, or an inode number; walking paths is the caller's part, as
//!   are permission bits: they are kept and never enforced.
//! - [`FileSystem::open`] pins an inode: while it is open, its content outlives its last name.
//! - Calls may overlap. Each takes effect at one instant between its start and its end, but for
//!   reads and writes of more than a page, which are atomic only against each other on one file.
//! - Futures may be dropped; what was begun is finished or has not happened.
//! - Native futures, generic all the way: nothing is boxed, nothing is `dyn`.

mod data;
mod error;
mod types;

pub use data::Data;
pub use error::{FsError, Result};
pub use types::{
    Allocate, Attr, Caller, DirEntry, Ino, Io, Kind, RenameMode, SetAttr, StatFs, Timestamp,
    XattrMode,
};

use std::future::Future;

/// Longest name in a directory, in bytes.
pub const NAME_MAX: usize = 255;

/// A mounted file system.
pub trait FileSystem {
    /// The root directory.
    fn root(&self) -> Ino;

    /// What `name` in `dir` names.
    fn lookup(&self, caller: Caller, dir: Ino, name: &[u8]) -> impl Future<Output = Result<Attr>>;

    /// What an inode is now.
    fn getattr(&self, caller: Caller, ino: Ino) -> impl Future<Output = Result<Attr>>;

    /// Changes attributes, all or none, and the length with its content.
    fn setattr(
        &self,
        caller: Caller,
        ino: Ino,
        change: SetAttr,
    ) -> impl Future<Output = Result<Attr>>;

    /// Makes an empty regular file; it is not opened.
    fn create(
        &self,
        caller: Caller,
        dir: Ino,
        name: &[u8],
        mode: u16,
    ) -> impl Future<Output = Result<Attr>>;

    /// Makes an empty directory.
    fn mkdir(
        &self,
        caller: Caller,
        dir: Ino,
        name: &[u8],
        mode: u16,
    ) -> impl Future<Output = Result<Attr>>;

    /// Makes a symbolic link that holds `target`.
    fn symlink(
        &self,
        caller: Caller,
        dir: Ino,
        name: &[u8],
        target: &[u8],
    ) -> impl Future<Output = Result<Attr>>;

    /// What a symbolic link holds.
    fn readlink(&self, caller: Caller, ino: Ino) -> impl Future<Output = Result<Vec<u8>>>;

    /// Gives a file one more name.
    fn link(
        &self,
        caller: Caller,
        ino: Ino,
        dir: Ino,
        name: &[u8],
    ) -> impl Future<Output = Result<Attr>>;

    /// Takes a name from anything but a directory. Content goes with the last name, or with the last
    /// close after that.
    fn unlink(&self, caller: Caller, dir: Ino, name: &[u8]) -> impl Future<Output = Result<()>>;

    /// Removes an empty directory.
    fn rmdir(&self, caller: Caller, dir: Ino, name: &[u8]) -> impl Future<Output = Result<()>>;

    /// Moves a name: (directory, name) to (directory, name), at one instant.
    fn rename(
        &self,
        caller: Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
    ) -> impl Future<Output = Result<()>>;

    /// At most about `count` names after `cookie`, 0 being the start; an empty answer is the end.
    /// A name that stays while a directory is listed is listed exactly once.
    fn readdir(
        &self,
        caller: Caller,
        dir: Ino,
        cookie: u64,
        count: usize,
    ) -> impl Future<Output = Result<Vec<DirEntry>>>;

    /// Pins an inode until as many closes have come.
    fn open(&self, caller: Caller, ino: Ino) -> impl Future<Output = Result<()>>;

    /// Undoes one open.
    fn close(&self, caller: Caller, ino: Ino) -> impl Future<Output = Result<()>>;

    /// Up to `len` bytes from `offset`; less at the file's end, nothing beyond it.
    fn read(
        &self,
        caller: Caller,
        ino: Ino,
        offset: u64,
        len: u64,
        io: Io,
    ) -> impl Future<Output = Result<Data>>;

    /// Writes all of `data`; the file grows to hold it. Returns the bytes written.
    fn write(
        &self,
        caller: Caller,
        ino: Ino,
        offset: u64,
        data: Data,
        io: Io,
    ) -> impl Future<Output = Result<u64>>;

    /// Gives blocks to a range, or takes them away.
    fn fallocate(
        &self,
        caller: Caller,
        ino: Ino,
        what: Allocate,
        offset: u64,
        len: u64,
    ) -> impl Future<Output = Result<()>>;

    /// Makes content and attributes durable, and the names that lead to the file.
    fn fsync(&self, caller: Caller, ino: Ino) -> impl Future<Output = Result<()>>;

    /// Makes content durable, and what is needed to read it.
    fn fdatasync(&self, caller: Caller, ino: Ino) -> impl Future<Output = Result<()>>;

    /// Makes everything durable.
    fn syncfs(&self, caller: Caller) -> impl Future<Output = Result<()>>;

    /// How much is left.
    fn statfs(&self, caller: Caller) -> impl Future<Output = Result<StatFs>>;

    /// The value of an extended attribute, by full name (`user.x`).
    fn getxattr(
        &self,
        caller: Caller,
        ino: Ino,
        name: &[u8],
    ) -> impl Future<Output = Result<Vec<u8>>>;

    /// Gives an extended attribute a value.
    fn setxattr(
        &self,
        caller: Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
    ) -> impl Future<Output = Result<()>>;

    /// The full names of all extended attributes.
    fn listxattr(&self, caller: Caller, ino: Ino) -> impl Future<Output = Result<Vec<Vec<u8>>>>;

    /// Removes an extended attribute.
    fn removexattr(
        &self,
        caller: Caller,
        ino: Ino,
        name: &[u8],
    ) -> impl Future<Output = Result<()>>;

    /// Writes everything out and leaves the volume clean. Calls after that fail.
    fn unmount(&self) -> impl Future<Output = Result<()>>;
}
