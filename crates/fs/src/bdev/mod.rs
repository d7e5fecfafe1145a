//! The page cache of a raw block device, after Linux's `block/fops.c`: the device as one file whose page *n* is
//! sector *n*. Cache, write-back, throttling and read-ahead are those of file systems.
//!
//! - [`CachedDevice::read`] and [`CachedDevice::write`] go through the cache. A write of a part of a page reads the
//!   rest of the page first.
//! - [`CachedDevice::direct`] passes a bio to the device as it is. Dirty pages of its range are written back before
//!   it; of a write, clean pages are dropped before and after it (`generic_file_direct_write`).
//! - [`CachedDevice::discard`] drops the pages of its range, dirty or not, and lets no read fetch any meanwhile
//!   (`blk_ioctl_discard`).
//! - [`CachedDevice::sync`] writes all dirty pages, of all writers, and flushes the device (`blkdev_fsync`). What
//!   was written before it survives a power cut.
//! - Content that the device refuses at write-back is lost, and the next sync reports that once.

use crate::cache::{CacheConfig, PageLocation, WriteRun, flush_in_background};
use crate::contract::{Caller, Data, FsError, Io, Result};
use crate::counts::FsMemory;
use crate::kind::{FsCounts, FsDetail};
use crate::vfs::content::{self, Places, Writer};
use crate::vfs::sync::{sync_file, write_out_range};
use crate::vfs::writeback::{FileBacking, Submitted, submit};
use crate::vfs::{DataPath, FileCore, Mapped, PAGE, Pages, VolumeEnv, calls};
use nandscape_block::{AsyncDevice, Bio, FlushScope, Lba, Op, Owner, Reply, SectorData};
use nandscape_rt::Handle;
use std::ops::{Deref, Range};
use std::rc::Rc;

/// The file that write-back of a block device names as the owner of its bios: none that a file system or a job has.
const OWNER: Owner = Owner { file: u64::MAX, generation: 0, thread: 0, core: 0 };

/// A block device behind its page cache. Cheap to clone; clones are the same cache.
#[derive(Clone)]
pub struct CachedDevice(Rc<Volume>);

/// The device as a file.
struct DeviceFile(FileCore<Self>);

struct Volume {
    env: VolumeEnv<DeviceFile>,
    file: Rc<DeviceFile>,
    sectors: u64,
}

impl Deref for DeviceFile {
    type Target = FileCore<Self>;

    fn deref(&self) -> &FileCore<Self> {
        &self.0
    }
}

impl CachedDevice {
    /// An empty cache over `device`, which no one else writes to.
    #[must_use]
    pub fn new(rt: &Handle, device: AsyncDevice, config: CacheConfig) -> Self {
        let sectors = device.caps().sectors;
        let env = VolumeEnv::new(rt, device, config, 0);
        let file = Rc::new_cyclic(|file| {
            DeviceFile(FileCore::new(rt, &env.cache, file.clone(), OWNER, sectors * PAGE))
        });
        let volume = Rc::new(Volume { env, file, sectors });
        let flusher =
            flush_in_background(volume.env.cache.clone(), FileBacking(Rc::clone(&volume)));
        drop(rt.spawn_daemon("flusher", flusher));
        Self(volume)
    }

    /// Up to `len` bytes from `offset`; nothing after the end of the device.
    ///
    /// # Errors
    /// Those of the device.
    pub async fn read(&self, caller: Caller, offset: u64, len: u64) -> Result<Data> {
        let _stays = self.0.file.lock_invalidate_shared().await?;
        content::read(&self.0, caller, &self.0.file, offset, len).await
    }

    /// Writes all of `data` to the cache, and waits while too much is dirty.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] after the end of the device; those of the device where the rest of a page is read.
    pub async fn write(&self, caller: Caller, offset: u64, data: Data) -> Result<()> {
        let write = async move |volume: &Rc<Volume>| {
            content::write(volume, caller, &volume.file, offset, &data, Io::Buffered).await
        };
        calls::run(&self.0, write).await.map(drop)
    }

    /// Reads or writes past the cache: the device gets `bio` as it is.
    ///
    /// # Errors
    /// Those of the device, of write-back before the bio included.
    pub async fn direct(&self, bio: Bio) -> Result<Reply> {
        let direct = async move |volume: &Rc<Volume>| {
            let pages = bio.lba.0..bio.lba.0.saturating_add(bio.sectors.into());
            let file = &volume.file;
            write_out_range(volume, file, &pages).await?;
            let writes = bio.op == Op::Write;
            if writes {
                file.pages.invalidate(pages.clone());
            }
            let reply = volume.env.device.submit(bio).await;
            if writes {
                // Reads that ran beside the write may have fetched old content.
                file.pages.invalidate(pages);
            }
            Ok(reply?)
        };
        calls::run(&self.0, direct).await
    }

    /// Submits a discard, or an action on a zone, and drops the pages of its range.
    ///
    /// # Errors
    /// Those of the device.
    pub async fn discard(&self, bio: Bio) -> Result<Reply> {
        let discard = async move |volume: &Rc<Volume>| {
            let _no_reads = volume.file.invalidate_lock.write().await;
            let sectors = match bio.op {
                Op::Zone(zone, _) => {
                    let zone = volume.env.device.caps().zone(zone);
                    zone.map_or(0, |(_, limits)| limits.zone_sectors)
                }
                _ => bio.sectors.into(),
            };
            let pages = bio.lba.0..bio.lba.0.saturating_add(sectors);
            volume.file.pages.written(pages.clone()).await;
            volume.file.pages.discard(pages);
            Ok(volume.env.device.submit(bio).await?)
        };
        calls::run(&self.0, discard).await
    }

    /// Makes everything durable that was written before.
    ///
    /// # Errors
    /// Those of the device; of write-back since the last sync, once.
    pub async fn sync(&self) -> Result<()> {
        let sync = async |volume: &Rc<Volume>| sync_file(volume, &volume.file, true).await;
        calls::run(&self.0, sync).await
    }

    /// Makes durable what was written to these sectors (a write with `O_SYNC`).
    ///
    /// # Errors
    /// As [`CachedDevice::sync`].
    pub async fn sync_range(&self, sectors: Range<u64>) -> Result<()> {
        let sync = async move |volume: &Rc<Volume>| {
            let sent = write_out_range(volume, &volume.file, &sectors).await;
            volume.file.pages.take_error().and(sent)?;
            Ok(volume.env.device.flush().await?)
        };
        calls::run(&self.0, sync).await
    }

    /// Writes out what is dirty, flushes the device, and ends write-back. Calls after that fail.
    ///
    /// # Errors
    /// As [`CachedDevice::sync`].
    pub async fn close(&self) -> Result<()> {
        let synced = self.sync().await;
        self.0.env.calls.close();
        self.0.env.calls.ended().await;
        self.0.env.cache.stop();
        synced
    }

    /// What was counted since the cache was made.
    #[must_use]
    pub fn counts(&self) -> FsCounts {
        FsCounts::of(&self.0.env, FsDetail::None)
    }

    /// What is in memory now.
    #[must_use]
    pub fn memory(&self) -> FsMemory {
        FsMemory { cached_pages: self.0.env.cache.resident(), ..FsMemory::default() }
    }
}

/// Sectors are always there, so nothing is allocated and nothing grows.
impl DataPath for Volume {
    type File = DeviceFile;
    type Placed = ();

    fn env(&self) -> &VolumeEnv<DeviceFile> {
        &self.env
    }

    fn available(&self, _caller: Caller) -> u64 {
        0
    }

    fn check_range(&self, _file: &DeviceFile, offset: u64, len: u64) -> Result<u64> {
        let end = offset.checked_add(len);
        end.filter(|end| *end <= self.sectors * PAGE).ok_or(FsError::NoSpace)
    }

    fn check_write(&self, _file: &DeviceFile, _offset: u64) -> Result<()> {
        Ok(())
    }

    fn may_bypass_cache(&self) -> bool {
        true
    }

    fn flush_scope(&self) -> FlushScope {
        FlushScope::All
    }

    async fn map(&self, _file: &DeviceFile, page: u64, most: u64) -> Result<Mapped> {
        Ok(Mapped::Blocks { start: page, blocks: most, unwritten: false })
    }

    async fn locate(&self, _file: &Rc<DeviceFile>, page: u64, pages: u64) -> Result<PageLocation> {
        Ok(PageLocation::At(Lba(page), pages))
    }

    async fn place(
        self: &Rc<Self>,
        file: &Rc<DeviceFile>,
        run: &WriteRun<DeviceFile>,
        at: u64,
        sync: bool,
    ) -> Result<Submitted<()>> {
        Ok(submit(&**self, file, run, (at..run.end(), at), sync, (), || {}))
    }

    async fn write_done(&self, _: &Rc<DeviceFile>, (): &(), ended: Result<()>) -> Result<()> {
        ended
    }

    async fn gain_space(&self) -> Result<bool> {
        Ok(false)
    }

    async fn touch(&self, _file: &DeviceFile) -> Result<()> {
        Ok(())
    }

    async fn preallocate(&self, _: Caller, _: &DeviceFile, _: &Pages) -> Result<()> {
        Ok(())
    }

    async fn mark_written(&self, _file: &DeviceFile, _pages: &Pages) -> Result<()> {
        Ok(())
    }

    fn grows_on_disk(&self, _file: &DeviceFile, _offset: u64, _len: u64) -> bool {
        false
    }

    async fn begin_growth(&self, _file: &Rc<DeviceFile>) -> Result<()> {
        Ok(())
    }

    async fn end_growth(&self, _file: &Rc<DeviceFile>, _end: u64) -> Result<()> {
        Ok(())
    }

    async fn abandon_growth(&self, _file: &Rc<DeviceFile>) -> Result<()> {
        Ok(())
    }

    async fn write_some(
        self: &Rc<Self>,
        writer: &Writer,
        file: &Rc<DeviceFile>,
        data: (u64, &Data),
        range: Range<u64>,
    ) -> Result<u64> {
        content::delay_some(self, writer, file, data, range, Places::Unknown).await
    }

    async fn rewrite_page(
        &self,
        file: &Rc<DeviceFile>,
        page: u64,
        content: SectorData,
    ) -> Result<u64> {
        Ok(file.pages.write(page, content, false))
    }

    async fn commit_file(self: &Rc<Self>, _: &Rc<DeviceFile>, _data_only: bool) -> Result<bool> {
        Ok(false)
    }

    async fn commit_all(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
