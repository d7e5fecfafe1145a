//! The contract, kept by a mounted F2FS. Calls that change something run to their end, also if their callers are dropped.

use super::append::AppendSpace;
use super::counts::{Counts, GcCounts, Rolled};
use super::format::BLOCK_BYTES;
use super::inode::{Inode, ROOT_INO};
use super::namei::New;
use super::volume::Volume;
use super::zones::Zones;
use crate::contract::{
    Allocate, Attr, Caller, Data, DirEntry, Fh, FileSystem, FsError, Ino, Io, Kind, OpenFlags,
    RenameMode, Result, SetAttr, StatFs, Whence, WriteHint, XattrMode,
};
use crate::counts::{FsMemory, FsSpace};
use crate::vfs::content::{self, Writer};
use crate::vfs::{DataPath, VolumeEnv, calls, direct, retry_after_commit, sync};
use async_trait::async_trait;
use nandscape_rt::Host;
use std::future::Future;
use std::rc::Rc;

/// The longest target of a symbolic link: a block with its end mark.
const TARGET_MAX: usize = 4095;
/// Node numbers that are no inode's: none, and those of nodes and metadata (`F2FS_RESERVED_NODE_NUM`).
const RESERVED_NODES: u64 = 3;

/// A mounted F2FS. Cheap to clone; clones are the same mount.
pub struct F2fs(pub(super) Rc<Volume>);

impl Clone for F2fs {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl F2fs {
    /// Runs a call that changes something to its end ([`calls::run`]), on its caller's core.
    async fn run<T: 'static>(
        &self,
        caller: Caller,
        work: impl AsyncFnOnce(&Rc<Volume>) -> Result<T> + 'static,
    ) -> Result<T> {
        calls::run(&self.0, async move |volume| {
            volume.mount.cpu.run(caller.core, work(volume)).await
        })
        .await
    }

    /// Runs a call that changes nothing, on its caller's core.
    fn look<T>(
        &self,
        caller: Caller,
        call: impl Future<Output = Result<T>>,
    ) -> impl Future<Output = Result<T>> {
        self.0.mount.env.rt.apart(self.0.mount.cpu.run(caller.core, call))
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
        let name = name.to_vec();
        self.run(caller, async move |volume| {
            let make = async || volume.make(caller, dir, &name, &what, mode).await;
            Ok(retry_after_commit(&**volume, make).await?.attr())
        })
        .await
    }

    async fn sync_file(&self, caller: Caller, ino: Ino, data_only: bool) -> Result<()> {
        self.run(caller, async move |volume| {
            let inode = volume.inode_of(ino).await?;
            inode.begin_fsync(data_only);
            sync::sync_file(volume, &inode, data_only).await
        })
        .await
    }

    async fn change_xattr(
        &self,
        (caller, ino): (Caller, Ino),
        name: &[u8],
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<()> {
        let (name, value) = (name.to_vec(), value.map(<[u8]>::to_vec));
        self.run(caller, async move |volume| {
            volume.balance_fs().await?;
            let inode = volume.inode_of(ino).await?;
            let change = async || {
                let _exclusive = inode.lock_exclusive().await?;
                volume.change_xattr(&inode, &name, value.as_deref(), mode).await
            };
            retry_after_commit(&**volume, change).await
        })
        .await
    }

    async fn take_name(
        &self,
        caller: Caller,
        dir: Ino,
        name: &[u8],
        of_directory: bool,
    ) -> Result<()> {
        let name = name.to_vec();
        self.run(caller, async move |volume| volume.take_name(dir, &name, of_directory).await).await
    }

    /// What the mount stands on.
    pub(crate) fn env(&self) -> &VolumeEnv<Inode> {
        &self.0.mount.env
    }

    /// What only F2FS counts, since the mount.
    pub(crate) fn counts(&self) -> Counts {
        counts_of(&self.0)
    }

    /// What the mount keeps in memory now.
    pub(crate) fn memory(&self) -> FsMemory {
        let metadata = self.0.nodes.file.pages.resident() + self.0.nodes.meta.file.pages.resident();
        FsMemory {
            cached_pages: self.0.mount.env.cache.resident() - metadata,
            metadata_bytes: metadata * BLOCK_BYTES as u64,
            inodes: self.0.inodes.cache.len() as u64,
        }
    }

    /// Bytes of memory that its parts take now, by name; counts them all.
    pub(crate) fn memory_parts(&self) -> Vec<(&'static str, u64)> {
        let volume = &self.0;
        let nodes = volume.nodes.file.pages.memory_bytes();
        let meta = volume.nodes.meta.file.pages.memory_bytes();
        let files = volume.mount.env.cache.memory_bytes().saturating_sub(nodes + meta);
        let inodes = volume.inodes.cache.all();
        let of_inodes = inodes.iter().map(|inode| inode.memory_bytes()).sum();
        vec![
            ("file_pages_bytes", files),
            ("node_pages_bytes", nodes),
            ("meta_pages_bytes", meta),
            ("nat_bytes", volume.nodes.nat.borrow().memory_bytes()),
            ("inodes_bytes", of_inodes),
            ("sit_bytes", volume.segments.borrow().memory_bytes()),
        ]
    }

    /// The error that stopped it, if one did.
    pub(crate) fn fault(&self) -> Option<String> {
        self.0.mount.fault.borrow().as_ref().map(ToString::to_string)
    }

    /// Its segments and blocks now.
    pub(crate) fn space(&self) -> FsSpace {
        let (segments, space) = (self.0.segments.borrow(), &self.0.nodes.space);
        FsSpace {
            main_segments: self.0.mount.layout.main_segments().into(),
            free_segments: segments.free_segments().into(),
            prefree_segments: segments.prefree_segments().into(),
            user_blocks: space.user_blocks(),
            valid_blocks: space.valid_blocks(),
        }
    }

    /// From now on its work takes time of the cores of `host`, if it was configured to cost anything.
    pub(crate) fn attach_host(&self, host: &Host) {
        self.0.mount.cpu.attach(host);
    }
}

#[async_trait(?Send)]
impl FileSystem for F2fs {
    fn root(&self) -> Ino {
        Ino(ROOT_INO.into())
    }

    async fn lookup(&self, caller: Caller, dir: Ino, name: &[u8]) -> Result<Attr> {
        let call = async { Ok(self.0.look_up(dir, name).await?.attr()) };
        self.look(caller, call).await
    }

    async fn getattr(&self, caller: Caller, ino: Ino) -> Result<Attr> {
        let call = async { Ok(self.0.inode_of(ino).await?.attr()) };
        self.look(caller, call).await
    }

    async fn setattr(&self, caller: Caller, ino: Ino, change: SetAttr) -> Result<Attr> {
        self.run(caller, async move |volume| volume.set_attributes(ino, change).await).await
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

    async fn readlink(&self, caller: Caller, ino: Ino) -> Result<Vec<u8>> {
        let call = async {
            let inode = self.0.inode_of(ino).await?;
            let _shared = inode.lock_shared().await?;
            match inode.kind() {
                Kind::Symlink => self.0.nodes.target(&inode).await,
                _ => Err(FsError::Invalid("not a symbolic link")),
            }
        };
        self.look(caller, call).await
    }

    async fn link(&self, caller: Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let name = name.to_vec();
        self.run(caller, async move |volume| {
            let link = async || volume.add_link(ino, dir, &name).await;
            Ok(retry_after_commit(&**volume, link).await?.attr())
        })
        .await
    }

    async fn unlink(&self, caller: Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.take_name(caller, dir, name, false).await
    }

    async fn rmdir(&self, caller: Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.take_name(caller, dir, name, true).await
    }

    async fn rename(
        &self,
        caller: Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<()> {
        let (from, to) = ((from.0, from.1.to_vec()), (to.0, to.1.to_vec()));
        self.run(caller, async move |volume| {
            let (from, to) = ((from.0, &from.1[..]), (to.0, &to.1[..]));
            let rename = async || volume.move_name(from, to, mode).await;
            retry_after_commit(&**volume, rename).await
        })
        .await
    }

    async fn readdir(
        &self,
        caller: Caller,
        dir: Ino,
        cookie: u64,
        count: usize,
    ) -> Result<Vec<DirEntry>> {
        let call = async {
            let dir = self.0.dir_of(dir).await?;
            let _shared = dir.i_rwsem.read().await;
            if dir.links() == 0 {
                return Ok(Vec::new());
            }
            self.0.nodes.list(&dir, cookie, count).await
        };
        self.look(caller, call).await
    }

    async fn open(&self, caller: Caller, ino: Ino, flags: OpenFlags) -> Result<Fh> {
        let call = async {
            let inode = self.0.inode_of(ino).await?;
            inode.opens.set(inode.opens.get() + 1);
            Ok(Fh { ino, flags })
        };
        self.look(caller, call).await
    }

    async fn close(&self, caller: Caller, ino: Ino) -> Result<()> {
        self.run(caller, async move |volume| {
            let inode = volume.inode_of(ino).await?;
            let opens = inode.opens.get().checked_sub(1);
            inode.opens.set(opens.ok_or(FsError::Invalid("closed without an open"))?);
            volume.delete_if_unused(&inode).await
        })
        .await
    }

    async fn read(&self, caller: Caller, ino: Ino, offset: u64, len: u64, io: Io) -> Result<Data> {
        let call = async {
            let inode = self.0.inode_of(ino).await?;
            self.0.check_range(&inode, 0, 0)?;
            if io == Io::Direct {
                let _shared = inode.lock_shared().await?;
                if !inode.is_inline() {
                    return direct::read(&self.0, &inode, offset, len).await;
                }
            }
            // Not the lock that a writer has while it waits for write-back.
            let _uncut = inode.lock_invalidate_shared().await?;
            content::read(&self.0, caller, &inode, offset, len).await
        };
        self.look(caller, call).await
    }

    async fn write(
        &self,
        caller: Caller,
        ino: Ino,
        offset: u64,
        data: Data,
        io: Io,
    ) -> Result<u64> {
        self.run(caller, async move |volume| {
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
        self.run(caller, async move |volume| {
            let inode = volume.inode_of(ino).await?;
            content::append(volume, caller, &inode, &data, io).await
        })
        .await
    }

    async fn seek(&self, caller: Caller, ino: Ino, offset: u64, whence: Whence) -> Result<u64> {
        let call = async {
            let inode = self.0.inode_of(ino).await?;
            content::seek(&self.0, &inode, offset, whence).await
        };
        self.look(caller, call).await
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
        self.run(caller, async move |volume| {
            let inode = volume.inode_of(ino).await?;
            volume.balance_fs().await?;
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

    async fn fsync(&self, caller: Caller, ino: Ino) -> Result<()> {
        self.sync_file(caller, ino, false).await
    }

    async fn fdatasync(&self, caller: Caller, ino: Ino) -> Result<()> {
        self.sync_file(caller, ino, true).await
    }

    async fn syncfs(&self, caller: Caller) -> Result<()> {
        self.run(caller, async move |volume| sync::sync_all(volume, &volume.inodes.cache).await)
            .await
    }

    async fn statfs(&self, _caller: Caller) -> Result<StatFs> {
        let space = &self.0.nodes.space;
        let free = space.free_blocks();
        let nodes = u64::from(space.max_nid()).saturating_sub(RESERVED_NODES);
        let free_nodes = nodes.saturating_sub(space.valid_nodes().into());
        let (files, files_free) = match nodes > space.user_blocks() {
            true => (space.user_blocks(), free),
            false => (nodes, free_nodes.min(free)),
        };
        Ok(StatFs {
            block_bytes: BLOCK_BYTES as u32,
            blocks: space.user_blocks(),
            free,
            available: free,
            kept: 0,
            files,
            files_free,
        })
    }

    async fn getxattr(&self, caller: Caller, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        let call = async {
            let inode = self.0.inode_of(ino).await?;
            let _shared = inode.lock_shared().await?;
            self.0.nodes.get_xattr(&inode, name).await
        };
        self.look(caller, call).await
    }

    async fn setxattr(
        &self,
        caller: Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
    ) -> Result<()> {
        self.change_xattr((caller, ino), name, Some(value), mode).await
    }

    async fn listxattr(&self, caller: Caller, ino: Ino) -> Result<Vec<Vec<u8>>> {
        let call = async {
            let inode = self.0.inode_of(ino).await?;
            let _shared = inode.lock_shared().await?;
            self.0.nodes.list_xattrs(&inode).await
        };
        self.look(caller, call).await
    }

    async fn removexattr(&self, caller: Caller, ino: Ino, name: &[u8]) -> Result<()> {
        self.change_xattr((caller, ino), name, None, XattrMode::Set).await
    }

    async fn unmount(&self) -> Result<()> {
        let volume = Rc::clone(&self.0);
        self.0.mount.env.rt.uncancellable("unmount", async move { volume.close().await }).await
    }
}

/// What a volume counted since it was mounted.
fn counts_of(volume: &Volume) -> Counts {
    let GcCounts {
        calls,
        parts,
        foreground_sections,
        background_sections,
        data_blocks,
        node_blocks,
        reclaimed_blocks,
    } = volume.cleaner.counts.get();
    let Rolled { files, nodes, blocks, moves } = volume.checkpoints.rolled.get();
    let journal = volume.cleaner.journal.as_ref().map(|journal| journal.counts.get());
    let journal = journal.unwrap_or_default();
    let zones = volume.segments.zones.as_ref().map(Zones::counts).unwrap_or_default();
    let waits = volume.writes.parking.as_ref().map_or(0, |parking| parking.waits.get());
    let append = volume.segments.append.as_ref();
    let space = append.map(|append| append.space_counts(&volume.segments));
    let append = append.map(AppendSpace::counts).unwrap_or_default();
    Counts {
        checkpoints: volume.checkpoints.count.get(),
        checkpoint_blocks: volume.checkpoints.blocks.get(),
        summary_blocks: volume.checkpoints.summary_blocks.get(),
        log_blocks: *volume.segments.borrow().written(),
        threaded_blocks: volume.segments.borrow().threaded(),
        in_place_blocks: volume.writes.in_place_blocks.get(),
        foreground_sections,
        background_sections,
        moved_data_blocks: data_blocks,
        moved_node_blocks: node_blocks,
        reclaimed_blocks,
        in_use: volume.segments.in_use_sums.get(),
        gc_calls: calls,
        gc_parts: parts,
        gc_checkpoints: volume.checkpoints.of_cleaning.count.get(),
        gc_checkpoint_blocks: volume.checkpoints.of_cleaning.blocks.get(),
        journal_blocks: journal.blocks,
        journal_entries: journal.entries,
        journal_segments: journal.segments,
        journal_full: journal.full,
        journal_marks: journal.marks,
        discards: volume.segments.discards.sent.get(),
        zone_resets: zones.resets,
        zone_finishes: zones.finishes,
        zone_waits: volume.segments.zones.as_ref().map_or(0, |_| waits),
        rolled_files: files,
        rolled_nodes: nodes,
        rolled_blocks: blocks,
        replayed_moves: moves,
        append,
        space: space.unwrap_or_default(),
        cpu: volume.mount.cpu.times(),
    }
}
