//! The contract between file systems and their users: workloads, the crash campaigns' models,
//! and later a FUSE mount. POSIX, by inode number; every promise is numbered and tested
//! (docs/semantics/posix.md).
//!
//! - Calls name a directory and a name, or an inode number; walking paths is the caller's part, as
//!   are permission bits: they are kept and never enforced.
//! - [`FileSystem::open`] pins an inode: while it is open, its content outlives its last name.
//! - Calls may overlap. Each takes effect at one instant between its start and its end, but for
//!   reads and writes of more than a page, which are atomic only against each other on one file.
//! - Futures may be dropped; a call that has begun to change something goes on to its end without its
//!   caller, and unmount waits for it.
//! - A call is one boxed future, and a mounted file system may be a `dyn FileSystem`: callers
//!   are compiled without the file system. Below this border nothing is boxed.

mod cost;
mod data;
mod error;
mod handle;
mod types;

pub use cost::SyscallCost;
pub use data::Data;
pub use error::{FsError, Result};
pub use handle::{Fh, OpenFlags, Whence, WriteHint};
pub use types::{
    Allocate, Attr, Caller, DirEntry, Ino, Io, Kind, RenameMode, SetAttr, StatFs, Timestamp,
    XattrMode,
};

use async_trait::async_trait;

/// Longest name in a directory, in bytes.
pub const NAME_MAX: usize = 255;

/// A mounted file system.
#[async_trait(?Send)]
pub trait FileSystem {
    /// The root directory.
    fn root(&self) -> Ino;

    /// What `name` in `dir` names.
    async fn lookup(&self, caller: Caller, dir: Ino, name: &[u8]) -> Result<Attr>;

    /// What an inode is now.
    async fn getattr(&self, caller: Caller, ino: Ino) -> Result<Attr>;

    /// Changes attributes, all or none, and the length with its content.
    async fn setattr(&self, caller: Caller, ino: Ino, change: SetAttr) -> Result<Attr>;

    /// Makes an empty regular file; it is not opened.
    async fn create(&self, caller: Caller, dir: Ino, name: &[u8], mode: u16) -> Result<Attr>;

    /// Makes an empty directory.
    async fn mkdir(&self, caller: Caller, dir: Ino, name: &[u8], mode: u16) -> Result<Attr>;

    /// Makes a symbolic link that holds `target`.
    async fn symlink(&self, caller: Caller, dir: Ino, name: &[u8], target: &[u8]) -> Result<Attr>;

    /// What a symbolic link holds.
    async fn readlink(&self, caller: Caller, ino: Ino) -> Result<Vec<u8>>;

    /// Gives a file one more name.
    async fn link(&self, caller: Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr>;

    /// Takes a name from anything but a directory. Content goes with the last name, or with the last
    /// close after that.
    async fn unlink(&self, caller: Caller, dir: Ino, name: &[u8]) -> Result<()>;

    /// Removes an empty directory.
    async fn rmdir(&self, caller: Caller, dir: Ino, name: &[u8]) -> Result<()>;

    /// Moves a name: (directory, name) to (directory, name), at one instant.
    async fn rename(
        &self,
        caller: Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<()>;

    /// At most about `count` names after `cookie`, 0 being the start; an empty answer is the end.
    /// A name that stays while a directory is listed is listed exactly once.
    async fn readdir(
        &self,
        caller: Caller,
        dir: Ino,
        cookie: u64,
        count: usize,
    ) -> Result<Vec<DirEntry>>;

    /// Pins an inode until as many closes have come. The flags are kept in the handle: calls by inode
    /// number do not look at them, [`FileSystem::read_open`] and [`FileSystem::write_open`] do.
    async fn open(&self, caller: Caller, ino: Ino, flags: OpenFlags) -> Result<Fh>;

    /// Undoes one open.
    async fn close(&self, caller: Caller, ino: Ino) -> Result<()>;

    /// Up to `len` bytes from `offset`; less at the file's end, nothing beyond it.
    async fn read(&self, caller: Caller, ino: Ino, offset: u64, len: u64, io: Io) -> Result<Data>;

    /// Writes `data`; the file grows to hold it. Returns the bytes written: all, or as many as there were
    /// before an error, which the write of the rest returns. Of sectors, whole ones.
    async fn write(&self, caller: Caller, ino: Ino, offset: u64, data: Data, io: Io)
    -> Result<u64>;

    /// Writes all of `data`.
    ///
    /// # Errors
    /// What kept it from writing the rest.
    async fn write_all(
        &self,
        caller: Caller,
        ino: Ino,
        mut offset: u64,
        mut data: Data,
        io: Io,
    ) -> Result<()> {
        loop {
            let len = data.len();
            let written = self.write(caller, ino, offset, data.clone(), io).await?;
            if written >= len {
                return Ok(());
            }
            data = data.behind(written);
            offset += written;
        }
    }

    /// Writes `data` at the end of the file, wherever that is once no other write is in progress. Returns
    /// that offset and the bytes written, as [`FileSystem::write`] does.
    async fn write_at_end(
        &self,
        caller: Caller,
        ino: Ino,
        data: Data,
        io: Io,
    ) -> Result<(u64, u64)>;

    /// Reads from an open file as its flags say.
    async fn read_open(&self, caller: Caller, file: Fh, offset: u64, len: u64) -> Result<Data> {
        self.read(caller, file.ino, offset, len, file.flags.io()).await
    }

    /// Writes to an open file as its flags say; `offset` counts unless it appends. Returns the offset and
    /// the bytes written, which are durable with `sync` or `dsync`.
    async fn write_open(
        &self,
        caller: Caller,
        Fh { ino, flags }: Fh,
        offset: u64,
        data: Data,
    ) -> Result<(u64, u64)> {
        let written = if flags.append {
            self.write_at_end(caller, ino, data, flags.io()).await?
        } else {
            (offset, self.write(caller, ino, offset, data, flags.io()).await?)
        };
        match flags {
            OpenFlags { sync: true, .. } => self.fsync(caller, ino).await?,
            OpenFlags { dsync: true, .. } => self.fdatasync(caller, ino).await?,
            _ => {}
        }
        Ok(written)
    }

    /// The first offset from `offset` on that is data, or in a hole. Preallocated space that was not
    /// written is a hole, and so is what lies behind the end of the file.
    ///
    /// # Errors
    /// [`FsError::BeyondEnd`] if there is none: `offset` is not before the end of the file, or no data
    /// follows it.
    async fn seek(&self, caller: Caller, ino: Ino, offset: u64, whence: Whence) -> Result<u64>;

    /// Says how long data that is written to a file from now on will live, until the inode leaves memory.
    /// Devices with placement handles get the hint with each bio.
    async fn set_write_hint(&self, caller: Caller, ino: Ino, hint: WriteHint) -> Result<()>;

    /// Gives blocks to a range, or takes them away.
    async fn fallocate(
        &self,
        caller: Caller,
        ino: Ino,
        what: Allocate,
        offset: u64,
        len: u64,
    ) -> Result<()>;

    /// Makes content and attributes durable, and the names that lead to the file.
    async fn fsync(&self, caller: Caller, ino: Ino) -> Result<()>;

    /// Makes content durable, and what is needed to read it.
    async fn fdatasync(&self, caller: Caller, ino: Ino) -> Result<()>;

    /// Makes everything durable.
    async fn syncfs(&self, caller: Caller) -> Result<()>;

    /// How much is left.
    async fn statfs(&self, caller: Caller) -> Result<StatFs>;

    /// The value of an extended attribute, by full name (`user.x`).
    async fn getxattr(&self, caller: Caller, ino: Ino, name: &[u8]) -> Result<Vec<u8>>;

    /// Gives an extended attribute a value.
    async fn setxattr(
        &self,
        caller: Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
    ) -> Result<()>;

    /// The full names of all extended attributes.
    async fn listxattr(&self, caller: Caller, ino: Ino) -> Result<Vec<Vec<u8>>>;

    /// Removes an extended attribute.
    async fn removexattr(&self, caller: Caller, ino: Ino, name: &[u8]) -> Result<()>;

    /// Writes everything out and leaves the volume clean. Calls after that fail.
    async fn unmount(&self) -> Result<()>;
}
