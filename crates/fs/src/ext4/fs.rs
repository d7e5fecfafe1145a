//! The contract, kept by a mounted ext4.

use super::inode::kept;
use super::namei::New;
use super::options::DataMode;
use super::volume::{FsyncTimes, Volume};
use crate::contract::{
    Allocate, Attr, Caller, Data, DirEntry, FileSystem, FsError, Ino, Io, Kind, RenameMode, Result,
    SetAttr, StatFs, XattrMode,
};
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
    /// What the journal did since mount.
    #[must_use]
    pub fn journal_counts(&self) -> super::journal::Counts {
        self.0.journal.counts()
    }

    /// Where the time of fsyncs went since mount.
    #[must_use]
    pub fn fsync_times(&self) -> FsyncTimes {
        self.0.fsync_times.get()
    }

    /// File-level records written since mount.
    #[must_use]
    pub fn file_records(&self) -> u64 {
        self.0.files.borrow().as_ref().map_or(0, |files| files.written().0)
    }

    /// Blocks of the journal's area that they took.
    #[must_use]
    pub fn file_record_blocks(&self) -> u64 {
        self.0.files.borrow().as_ref().map_or(0, |files| files.written().1)
    }

    /// Pages of files that readers asked for since mount.
    #[must_use]
    pub fn page_lookups(&self) -> crate::cache::Lookups {
        self.0.cache.lookups()
    }

    /// Pages of files in memory.
    #[must_use]
    pub fn cached_pages(&self) -> u64 {
        self.0.cache.resident()
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
        let volume = &self.0;
        let inode = volume.inode_of(ino).await?;
        let _alone = inode.lock.write().await;
        if inode.deleted.get() {
            return Err(FsError::NoEntry);
        }
        if let Some(size) = change.size {
            super::file::check_extent_of_file(&inode, size, 0)?;
            volume.set_length(&inode, size).await?;
        }
        let tx = volume.begin(4, 0).await?;
        inode.touch(volume.now(), false);
        {
            let mut raw = inode.raw.borrow_mut();
            let kind = raw.file_type();
            raw.mode = change.mode.map_or(raw.mode, |mode| kind | mode & 0o7777);
            raw.uid = change.uid.unwrap_or(raw.uid);
            raw.gid = change.gid.unwrap_or(raw.gid);
            if let Some(time) = change.atime {
                let time = kept(&raw, time);
                raw.set_atime(time);
            }
            if let Some(time) = change.mtime {
                let time = kept(&raw, time);
                raw.set_mtime(time);
            }
        }
        volume.write_inode(&tx, &inode, false).await?;
        tx.stop();
        Ok(inode.attr())
    }

    async fn create(&self, caller: Caller, dir: Ino, name: &[u8], mode: u16) -> Result<Attr> {
        let make = async || self.0.make(caller, dir, name, New::File, mode).await;
        Ok(self.0.with_space(make).await?.attr())
    }

    async fn mkdir(&self, caller: Caller, dir: Ino, name: &[u8], mode: u16) -> Result<Attr> {
        let make = async || self.0.make(caller, dir, name, New::Directory, mode).await;
        Ok(self.0.with_space(make).await?.attr())
    }

    async fn symlink(&self, caller: Caller, dir: Ino, name: &[u8], target: &[u8]) -> Result<Attr> {
        match target.len() {
            0 => return Err(FsError::NoEntry),
            len if len > TARGET_MAX => return Err(FsError::NameTooLong),
            _ => {}
        }
        let make = async || self.0.make(caller, dir, name, New::Symlink(target), 0o777).await;
        Ok(self.0.with_space(make).await?.attr())
    }

    async fn readlink(&self, _caller: Caller, ino: Ino) -> Result<Vec<u8>> {
        let inode = self.0.inode_of(ino).await?;
        match inode.kind() {
            Kind::Symlink => self.0.target(&inode).await,
            _ => Err(FsError::Invalid("not a symbolic link")),
        }
    }

    async fn link(&self, caller: Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let link = async || self.0.add_link(caller, ino, dir, name).await;
        Ok(self.0.with_space(link).await?.attr())
    }

    async fn unlink(&self, _caller: Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.0.take_name(dir, name, false).await
    }

    async fn rmdir(&self, _caller: Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.0.take_name(dir, name, true).await
    }

    async fn rename(
        &self,
        caller: Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<()> {
        let rename = async || self.0.move_name(caller, from, to, mode).await;
        self.0.with_space(rename).await
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
        let inode = self.0.inode_of(ino).await?;
        let opens = inode.opens.get().checked_sub(1);
        inode.opens.set(opens.ok_or(FsError::Invalid("closed without an open"))?);
        self.0.delete_if_unused(&inode).await
    }

    async fn read(&self, caller: Caller, ino: Ino, offset: u64, len: u64, io: Io) -> Result<Data> {
        let inode = self.0.inode_of(ino).await?;
        super::file::check_extent_of_file(&inode, 0, 0)?;
        let _shared = inode.lock.read().await;
        if inode.deleted.get() {
            return Err(FsError::NoEntry);
        }
        match io {
            Io::Direct if self.0.options.data != DataMode::Journal => {
                self.0.read_direct(&inode, offset, len).await
            }
            _ => self.0.read_file(caller, &inode, offset, len).await,
        }
    }

    async fn write(
        &self,
        caller: Caller,
        ino: Ino,
        offset: u64,
        data: Data,
        io: Io,
    ) -> Result<u64> {
        let inode = self.0.inode_of(ino).await?;
        if data.is_empty() {
            return Ok(0);
        }
        if !data.fits(offset) {
            return Err(FsError::Invalid(
                "sectors, and parts of them, go to their place in a page",
            ));
        }
        let direct = io == Io::Direct && self.0.options.data != DataMode::Journal;
        let write = async || {
            // Writes past the cache that leave the length alone run beside each other, as in Linux.
            if direct {
                let _shared = inode.lock.read().await;
                if !inode.deleted.get() && !inode.grows_on_disk(offset, data.len()) {
                    return self.0.write_direct(caller, &inode, offset, &data).await;
                }
            }
            let _alone = inode.lock.write().await;
            match inode.deleted.get() {
                true => Err(FsError::NoEntry),
                false if direct => self.0.write_direct(caller, &inode, offset, &data).await,
                false => self.0.write_file(caller, &inode, offset, &data).await,
            }
        };
        let written = self.0.with_space(write).await?;
        if !direct {
            self.0.cache.throttle(written.div_ceil(4096)).await;
        }
        Ok(written)
    }

    async fn fallocate(
        &self,
        caller: Caller,
        ino: Ino,
        what: Allocate,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        let inode = self.0.inode_of(ino).await?;
        let allocate = async || {
            let _alone = inode.lock.write().await;
            if inode.deleted.get() {
                return Err(FsError::NoEntry);
            }
            self.0.allocate(caller, &inode, what, offset, len).await
        };
        self.0.with_space(allocate).await
    }

    async fn fsync(&self, _caller: Caller, ino: Ino) -> Result<()> {
        let inode = self.0.inode_of(ino).await?;
        self.0.sync_file(&inode, false).await
    }

    async fn fdatasync(&self, _caller: Caller, ino: Ino) -> Result<()> {
        let inode = self.0.inode_of(ino).await?;
        self.0.sync_file(&inode, true).await
    }

    async fn syncfs(&self, _caller: Caller) -> Result<()> {
        self.0.sync_all().await
    }

    async fn statfs(&self, _caller: Caller) -> Result<StatFs> {
        let sb = self.0.sb.borrow();
        let free = self.0.free_blocks.get().saturating_sub(self.0.promised.get());
        Ok(StatFs {
            block_bytes: 4096,
            blocks: sb.blocks_count.saturating_sub(sb.overhead_clusters.into()),
            free,
            available: free.saturating_sub(sb.r_blocks_count),
            files: sb.inodes_count.into(),
            files_free: self.0.free_inodes.get(),
        })
    }

    async fn getxattr(&self, _caller: Caller, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        let inode = self.0.inode_of(ino).await?;
        let _shared = inode.lock.read().await;
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
        let inode = self.0.inode_of(ino).await?;
        let _alone = inode.lock.write().await;
        self.0.change_xattr(caller, &inode, name, Some(value), mode).await
    }

    async fn listxattr(&self, _caller: Caller, ino: Ino) -> Result<Vec<Vec<u8>>> {
        let inode = self.0.inode_of(ino).await?;
        let _shared = inode.lock.read().await;
        self.0.list_xattrs(&inode).await
    }

    async fn removexattr(&self, caller: Caller, ino: Ino, name: &[u8]) -> Result<()> {
        let inode = self.0.inode_of(ino).await?;
        let _alone = inode.lock.write().await;
        self.0.change_xattr(caller, &inode, name, None, XattrMode::Set).await
    }

    async fn unmount(&self) -> Result<()> {
        self.0.close().await
    }
}
