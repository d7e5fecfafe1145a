//! The contract, kept by a mounted ext4. Calls that change something are done to their end, whoever made
//! them ([`Ext4::complete`]).

use super::counts::Counts;
use super::format::BLOCK_BYTES;
use super::journal::FileJournal;
use super::namei::New;
use super::options::DataMode;
use super::volume::Volume;
use crate::contract::{
    Allocate, Attr, Caller, Data, DirEntry, FileSystem, FsError, Ino, Io, Kind, RenameMode, Result,
    SetAttr, StatFs, XattrMode,
};
use crate::counts::{FsCounts, FsDetail, FsMemory};
use crate::kind::MountedFs;
use async_trait::async_trait;
use nandscape_rt::Unbroken;
use std::ops::Deref;
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

/// A call under way that changes something, until it is dropped; it leads to the volume.
struct Call(Rc<Volume>);

impl Deref for Call {
    type Target = Rc<Volume>;

    fn deref(&self) -> &Rc<Volume> {
        &self.0
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.calls.end();
    }
}

impl Ext4 {
    /// Begins a call that changes something.
    fn begin(&self) -> Result<Call> {
        self.0.calls.begin()?;
        Ok(Call(Rc::clone(&self.0)))
    }

    /// Does such a call to its end, although its caller may go away before that.
    fn complete<T: 'static>(
        &self,
        call: impl Future<Output = Result<T>> + 'static,
    ) -> Unbroken<Result<T>> {
        self.0.rt.unbroken("file system", call)
    }

    /// Makes a file, directory or symbolic link.
    async fn make(
        &self,
        caller: Caller,
        dir: Ino,
        name: &[u8],
        what: New,
        mode: u16,
    ) -> Result<Attr> {
        let (call, name) = (self.begin()?, name.to_vec());
        self.complete(async move {
            let make = async || call.make(caller, dir, &name, &what, mode).await;
            Ok(call.with_space(make).await?.attr())
        })
        .await
    }

    async fn sync_file(&self, ino: Ino, data_only: bool) -> Result<()> {
        let call = self.begin()?;
        self.complete(async move {
            let inode = call.inode_of(ino).await?;
            call.sync_file(&inode, data_only).await
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
        let call = self.begin()?;
        let (name, value) = (name.to_vec(), value.map(<[u8]>::to_vec));
        self.complete(async move {
            let inode = call.inode_of(ino).await?;
            let _alone = inode.alone().await?;
            call.change_xattr(caller, &inode, &name, value.as_deref(), mode).await
        })
        .await
    }

    async fn take_name(&self, dir: Ino, name: &[u8], of_directory: bool) -> Result<()> {
        let (call, name) = (self.begin()?, name.to_vec());
        self.complete(async move { call.take_name(dir, &name, of_directory).await }).await
    }
}

impl MountedFs for Ext4 {
    fn counts(&self) -> FsCounts {
        let files = self.0.files.borrow();
        let (records, record_blocks) = files.as_ref().map_or((0, 0), FileJournal::written);
        let journal = self.0.journal.counts();
        FsCounts {
            fsync_times: self.0.fsync_times.get(),
            lookups: self.0.cache.lookups(),
            detail: FsDetail::Ext4(Counts { journal, records, record_blocks }),
        }
    }

    fn memory(&self) -> FsMemory {
        FsMemory {
            cached_pages: self.0.cache.resident(),
            metadata_bytes: (self.0.buffers.len() * BLOCK_BYTES) as u64,
            inodes: self.0.inodes.borrow().len() as u64,
        }
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
        let call = self.begin()?;
        self.complete(async move { call.set_attributes(ino, change).await }).await
    }

    async fn create(&self, caller: Caller, dir: Ino, name: &[u8], mode: u16) -> Result<Attr> {
        self.make(caller, dir, name, New::File, mode).await
    }

    async fn mkdir(&self, caller: Caller, dir: Ino, name: &[u8], mode: u16) -> Result<Attr> {
        self.make(caller, dir, name, New::Directory, mode).await
    }

    async fn symlink(&self, caller: Caller, dir: Ino, name: &[u8], target: &[u8]) -> Result<Attr> {
        match target.len() {
            0 => Err(FsError::NoEntry),
            len if len > TARGET_MAX => Err(FsError::NameTooLong),
            _ if target.contains(&0) => Err(FsError::Invalid("a target has no NUL")),
            _ => self.make(caller, dir, name, New::Symlink(target.to_vec()), 0o777).await,
        }
    }

    async fn readlink(&self, _caller: Caller, ino: Ino) -> Result<Vec<u8>> {
        let inode = self.0.inode_of(ino).await?;
        let _shared = inode.shared().await?;
        match inode.kind() {
            Kind::Symlink => self.0.target(&inode).await,
            _ => Err(FsError::Invalid("not a symbolic link")),
        }
    }

    async fn link(&self, caller: Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let (call, name) = (self.begin()?, name.to_vec());
        self.complete(async move {
            let link = async || call.add_link(caller, ino, dir, &name).await;
            Ok(call.with_space(link).await?.attr())
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
        let call = self.begin()?;
        let (from, to) = ((from.0, from.1.to_vec()), (to.0, to.1.to_vec()));
        self.complete(async move {
            let (from, to) = ((from.0, &from.1[..]), (to.0, &to.1[..]));
            let rename = async || call.move_name(caller, from, to, mode).await;
            call.with_space(rename).await
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
        let _shared = dir.lock.read().await;
        if dir.links() == 0 {
            return Ok(Vec::new());
        }
        self.0.list(&dir, cookie, count).await
    }

    async fn open(&self, _caller: Caller, ino: Ino) -> Result<()> {
        let inode = self.0.inode_of(ino).await?;
        inode.opens.set(inode.opens.get() + 1);
        Ok(())
    }

    async fn close(&self, _caller: Caller, ino: Ino) -> Result<()> {
        let call = self.begin()?;
        self.complete(async move {
            let inode = call.inode_of(ino).await?;
            let opens = inode.opens.get().checked_sub(1);
            inode.opens.set(opens.ok_or(FsError::Invalid("closed without an open"))?);
            call.delete_if_unused(&inode).await
        })
        .await
    }

    async fn read(&self, caller: Caller, ino: Ino, offset: u64, len: u64, io: Io) -> Result<Data> {
        let inode = self.0.inode_of(ino).await?;
        self.0.check_extent_of_file(&inode, 0, 0)?;
        if io == Io::Direct && self.0.options.data != DataMode::Journal {
            let _shared = inode.shared().await?;
            return self.0.read_direct(&inode, offset, len).await;
        }
        // Not the lock that a writer has while it waits for write-back.
        let _uncut = inode.uncut().await?;
        self.0.read_file(caller, &inode, offset, len).await
    }

    async fn write(
        &self,
        caller: Caller,
        ino: Ino,
        offset: u64,
        data: Data,
        io: Io,
    ) -> Result<u64> {
        let call = self.begin()?;
        self.complete(async move { call.write(caller, ino, offset, &data, io).await }).await
    }

    async fn fallocate(
        &self,
        caller: Caller,
        ino: Ino,
        what: Allocate,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        let call = self.begin()?;
        self.complete(async move {
            let inode = call.inode_of(ino).await?;
            let writer = call.writer(caller);
            let allocate = async || {
                let _alone = inode.alone().await?;
                call.allocate(&writer, &inode, what, offset, len).await
            };
            let allocated = call.with_space(allocate).await;
            writer.dirtier.pay().await;
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
        let call = self.begin()?;
        self.complete(async move { call.sync_all().await }).await
    }

    async fn statfs(&self, _caller: Caller) -> Result<StatFs> {
        let sb = self.0.sb.borrow();
        let free = self.0.free_blocks.get().saturating_sub(self.0.promised.get());
        Ok(StatFs {
            block_bytes: 4096,
            blocks: sb.blocks_count.saturating_sub(sb.overhead_clusters.into()),
            free,
            available: free.saturating_sub(sb.r_blocks_count),
            kept: self.0.metadata_pool().min(free),
            files: sb.inodes_count.into(),
            files_free: self.0.free_inodes.get(),
        })
    }

    async fn getxattr(&self, _caller: Caller, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        let inode = self.0.inode_of(ino).await?;
        let _shared = inode.shared().await?;
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
        let _shared = inode.shared().await?;
        self.0.list_xattrs(&inode).await
    }

    async fn removexattr(&self, caller: Caller, ino: Ino, name: &[u8]) -> Result<()> {
        self.change_xattr(caller, ino, name, None, XattrMode::Set).await
    }

    async fn unmount(&self) -> Result<()> {
        let volume = Rc::clone(&self.0);
        self.0.rt.unbroken("unmount", async move { volume.close().await }).await
    }
}
