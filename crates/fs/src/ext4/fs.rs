//! The contract, kept by a mounted ext4. Calls that change something are done to their end, even if
//! the caller drops them.

use super::counts::Counts;
use super::format::BLOCK_BYTES;
use super::inode::Inode;
use super::journal::FileJournal;
use super::namei::NewInode;
use super::options::DataMode;
use super::volume::Volume;
use crate::contract::{
    Allocate, Attr, Caller, Data, DirEntry, Fh, FileSystem, FsError, Ino, Io, Kind, OpenFlags,
    RenameMode, Result, SetAttr, StatFs, Whence, WriteHint, XattrMode,
};
use crate::counts::FsMemory;
use crate::vfs::content::{self, Writer};
use crate::vfs::{DataPath, VolumeEnv, calls, direct, retry_after_commit, sync};
use async_trait::async_trait;
use std::rc::Rc;

/// The longest target of a symbolic link: a block with its end mark.
const TARGET_MAX: usize = 4095;

/// A mounted ext4. Cheap to clone; clones are the same mount.
pub struct Ext4(pub(super) Rc<Volume>);

impl Clone for Ext4 {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl Ext4 {
    /// Runs a call that changes something to its end ([`calls::run`]).
    async fn run<T: 'static>(
        &self,
        work: impl AsyncFnOnce(&Rc<Volume>) -> Result<T> + 'static,
    ) -> Result<T> {
        calls::run(&self.0, work).await
    }

    /// Makes a file, directory or symbolic link.
    async fn make(
        &self,
        caller: Caller,
        dir: Ino,
        name: &[u8],
        what: NewInode,
        mode: u16,
    ) -> Result<Attr> {
        let name = name.to_vec();
        self.run(async move |volume| {
            let make = async || volume.make(caller, dir, &name, &what, mode).await;
            Ok(retry_after_commit(&**volume, make).await?.attr())
        })
        .await
    }

    async fn sync_file(&self, ino: Ino, data_only: bool) -> Result<()> {
        self.run(async move |volume| {
            let inode = volume.inode_of(ino).await?;
            sync::sync_file(volume, &inode, data_only).await
        })
        .await
    }

    async fn change_xattr(
        &self,
        caller: Caller,
        ino: Ino,
        name: &[u8],
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<()> {
        let (name, value) = (name.to_vec(), value.map(<[u8]>::to_vec));
        self.run(async move |volume| {
            let inode = volume.inode_of(ino).await?;
            let change = async || {
                let _exclusive = inode.lock_exclusive().await?;
                volume.change_xattr(caller, &inode, &name, value.as_deref(), mode).await
            };
            retry_after_commit(&**volume, change).await
        })
        .await
    }

    async fn take_name(&self, dir: Ino, name: &[u8], of_directory: bool) -> Result<()> {
        let name = name.to_vec();
        self.run(async move |volume| volume.take_name(dir, &name, of_directory).await).await
    }

    /// What the mount stands on.
    pub(crate) fn env(&self) -> &VolumeEnv<Inode> {
        &self.0.env
    }

    /// What only ext4 counts, since the mount.
    pub(crate) fn counts(&self) -> Counts {
        let files = self.0.file_commit.journal.borrow();
        let (records, record_blocks) = files.as_ref().map_or((0, 0), FileJournal::written);
        Counts { journal: self.0.meta.journal.counts(), records, record_blocks }
    }

    /// What the mount keeps in memory now.
    pub(crate) fn memory(&self) -> FsMemory {
        FsMemory {
            cached_pages: self.0.env.cache.resident(),
            metadata_bytes: (self.0.meta.buffers.len() * BLOCK_BYTES) as u64,
            inodes: self.0.inodes.len() as u64,
        }
    }

    /// The error that made it read-only, if one did.
    pub(crate) fn fault(&self) -> Option<String> {
        self.0.meta.journal.aborted()
    }
}

#[async_trait(?Send)]
impl FileSystem for Ext4 {
    fn root(&self) -> Ino {
        Ino(super::format::ROOT_INODE.into())
    }

    async fn lookup(&self, _caller: Caller, dir: Ino, name: &[u8]) -> Result<Attr> {
        Ok(self.0.look_up(dir, name).await?.attr())
    }

    async fn getattr(&self, _caller: Caller, ino: Ino) -> Result<Attr> {
        Ok(self.0.inode_of(ino).await?.attr())
    }

    async fn setattr(&self, _caller: Caller, ino: Ino, change: SetAttr) -> Result<Attr> {
        self.run(async move |volume| volume.set_attributes(ino, change).await).await
    }

    async fn create(&self, caller: Caller, dir: Ino, name: &[u8], mode: u16) -> Result<Attr> {
        self.make(caller, dir, name, NewInode::File, mode).await
    }

    async fn mkdir(&self, caller: Caller, dir: Ino, name: &[u8], mode: u16) -> Result<Attr> {
        self.make(caller, dir, name, NewInode::Directory, mode).await
    }

    async fn symlink(&self, caller: Caller, dir: Ino, name: &[u8], target: &[u8]) -> Result<Attr> {
        match target.len() {
            0 => Err(FsError::NoEntry),
            len if len > TARGET_MAX => Err(FsError::NameTooLong),
            _ if target.contains(&0) => Err(FsError::Invalid("a target has no NUL")),
            _ => self.make(caller, dir, name, NewInode::Symlink(target.to_vec()), 0o777).await,
        }
    }

    async fn readlink(&self, _caller: Caller, ino: Ino) -> Result<Vec<u8>> {
        let inode = self.0.inode_of(ino).await?;
        let _shared = inode.lock_shared().await?;
        match inode.kind() {
            Kind::Symlink => self.0.target(&inode).await,
            _ => Err(FsError::Invalid("not a symbolic link")),
        }
    }

    async fn link(&self, caller: Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let name = name.to_vec();
        self.run(async move |volume| {
            let link = async || volume.add_link(caller, ino, dir, &name).await;
            Ok(retry_after_commit(&**volume, link).await?.attr())
        })
        .await
    }

    async fn unlink(&self, _caller: Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.take_name(dir, name, false).await
    }

    async fn rmdir(&self, _caller: Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.take_name(dir, name, true).await
    }

    async fn rename(
        &self,
        caller: Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<()> {
        let (from, to) = ((from.0, from.1.to_vec()), (to.0, to.1.to_vec()));
        self.run(async move |volume| {
            let (from, to) = ((from.0, &from.1[..]), (to.0, &to.1[..]));
            let rename = async || volume.move_name(caller, from, to, mode).await;
            retry_after_commit(&**volume, rename).await
        })
        .await
    }

    async fn readdir(
        &self,
        _caller: Caller,
        dir: Ino,
        cookie: u64,
        count: usize,
    ) -> Result<Vec<DirEntry>> {
        let dir = self.0.dir_of(dir).await?;
        let _shared = dir.i_rwsem.read().await;
        if dir.links() == 0 {
            return Ok(Vec::new());
        }
        self.0.meta.list(&dir, cookie, count).await
    }

    async fn open(&self, _caller: Caller, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        let inode = self.0.inode_of(ino).await?;
        inode.opens.set(inode.opens.get() + 1);
        Ok(Fh { ino, flags })
    }

    async fn close(&self, _caller: Caller, ino: Ino) -> Result<()> {
        self.run(async move |volume| {
            let inode = volume.inode_of(ino).await?;
            let opens = inode.opens.get().checked_sub(1);
            inode.opens.set(opens.ok_or(FsError::Invalid("closed without an open"))?);
            volume.delete_if_unused(&inode).await
        })
        .await
    }

    async fn read(&self, caller: Caller, ino: Ino, offset: u64, len: u64, io: Io) -> Result<Data> {
        let inode = self.0.inode_of(ino).await?;
        self.0.check_range(&inode, 0, 0)?;
        if io == Io::Direct && self.0.options.data != DataMode::Journal {
            let _shared = inode.lock_shared().await?;
            return direct::read(&self.0, &inode, offset, len).await;
        }
        // Not the lock that a writer has while it waits for write-back.
        let _uncut = inode.lock_invalidate_shared().await?;
        content::read(&self.0, caller, &inode, offset, len).await
    }

    async fn write(
        &self,
        caller: Caller,
        ino: Ino,
        offset: u64,
        data: Data,
        io: Io,
    ) -> Result<u64> {
        self.run(async move |volume| {
            let inode = volume.inode_of(ino).await?;
            content::write(volume, caller, &inode, offset, &data, io).await
        })
        .await
    }

    async fn write_at_end(
        &self,
        caller: Caller,
        ino: Ino,
        data: Data,
        io: Io,
    ) -> Result<(u64, u64)> {
        self.run(async move |volume| {
            let inode = volume.inode_of(ino).await?;
            content::append(volume, caller, &inode, &data, io).await
        })
        .await
    }

    async fn seek(&self, _caller: Caller, ino: Ino, offset: u64, whence: Whence) -> Result<u64> {
        let inode = self.0.inode_of(ino).await?;
        content::seek(&self.0, &inode, offset, whence).await
    }

    async fn set_write_hint(&self, _caller: Caller, ino: Ino, hint: WriteHint) -> Result<()> {
        let inode = self.0.inode_of(ino).await?;
        self.0.check_range(&inode, 0, 0)?;
        inode.write_hint.set(hint);
        Ok(())
    }

    async fn fallocate(
        &self,
        caller: Caller,
        ino: Ino,
        what: Allocate,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        self.run(async move |volume| {
            let inode = volume.inode_of(ino).await?;
            let writer = Writer::new(&**volume, caller);
            let allocate = async || {
                let _exclusive = inode.lock_exclusive().await?;
                volume.allocate(&writer, &inode, what, offset, len).await
            };
            let allocated = retry_after_commit(&**volume, allocate).await;
            writer.throttle.balance_dirty().await;
            allocated
        })
        .await
    }

    async fn fsync(&self, _caller: Caller, ino: Ino) -> Result<()> {
        self.sync_file(ino, false).await
    }

    async fn fdatasync(&self, _caller: Caller, ino: Ino) -> Result<()> {
        self.sync_file(ino, true).await
    }

    async fn syncfs(&self, _caller: Caller) -> Result<()> {
        self.run(async move |volume| sync::sync_all(volume, &volume.inodes).await).await
    }

    async fn statfs(&self, _caller: Caller) -> Result<StatFs> {
        let sb = self.0.meta.sb.borrow();
        let free = self.0.meta.alloc.free_blocks.get().saturating_sub(self.0.env.space.reserved());
        Ok(StatFs {
            block_bytes: 4096,
            blocks: sb.blocks_count.saturating_sub(sb.overhead_clusters.into()),
            free,
            available: free.saturating_sub(sb.r_blocks_count),
            kept: self.0.meta.metadata_pool().min(free),
            files: sb.inodes_count.into(),
            files_free: self.0.meta.alloc.free_inodes.get(),
        })
    }

    async fn getxattr(&self, _caller: Caller, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        let inode = self.0.inode_of(ino).await?;
        let _shared = inode.lock_shared().await?;
        self.0.get_xattr(&inode, name).await
    }

    async fn setxattr(
        &self,
        caller: Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
    ) -> Result<()> {
        self.change_xattr(caller, ino, name, Some(value), mode).await
    }

    async fn listxattr(&self, _caller: Caller, ino: Ino) -> Result<Vec<Vec<u8>>> {
        let inode = self.0.inode_of(ino).await?;
        let _shared = inode.lock_shared().await?;
        self.0.list_xattrs(&inode).await
    }

    async fn removexattr(&self, caller: Caller, ino: Ino, name: &[u8]) -> Result<()> {
        self.change_xattr(caller, ino, name, None, XattrMode::Set).await
    }

    async fn unmount(&self) -> Result<()> {
        let volume = Rc::clone(&self.0);
        self.0.env.rt.uncancellable("unmount", async move { volume.close().await }).await
    }
}
