//! Requests of a load as calls on a block device that has a page cache.
//!
//! - Reads and writes of a buffered job go through the page cache. A flush is an fsync of the device: it writes all
//!   dirty pages of all jobs, and flushes. A durable write ([`Flags::FUA`]) is followed by a sync of its sectors.
//! - Requests of a direct job go to the device as they are, after the page cache has written and dropped what it holds of
//!   their sectors. Their flushes are fsyncs of the device, too, as it is the same inode in Linux.
//! - A discard drops the pages of its sectors, an action on a zone those of the zone.

use super::bytes::pieces;
use super::counts::FileCounts;
use nandscape_block::{Bio, Flags, Op, Reply};
use nandscape_fs::bdev::CachedDevice;
use nandscape_fs::contract::{Caller, Data, FsError, Result};
use std::cell::Cell;
use std::ops::Range;

/// Calls on a block device behind its page cache.
pub(super) struct CacheCalls {
    cached: CachedDevice,
    /// Job instances that bypass the cache.
    direct: Vec<bool>,
    counts: Cell<FileCounts>,
}

impl CacheCalls {
    /// Calls on this device; `direct` says of each job instance whether it bypasses the cache.
    pub(super) fn new(cached: CachedDevice, direct: Vec<bool>) -> Self {
        Self { cached, direct, counts: Cell::default() }
    }

    /// Whether a job instance bypasses the cache.
    pub(super) fn is_direct(&self, instance: usize) -> bool {
        self.direct.get(instance).copied().unwrap_or(false)
    }

    /// Serves a request of a job instance, for these bytes.
    pub(super) async fn call(
        &self,
        caller: Caller,
        instance: usize,
        bio: &Bio,
        bytes: Range<u64>,
    ) -> Result<Reply> {
        let direct = self.is_direct(instance);
        let sectors = u64::from(bio.sectors);
        match bio.op {
            Op::Read | Op::Write if direct => {
                let reply = self.cached.direct(bio.clone()).await?;
                let written = bio.op == Op::Write;
                self.count(|counts| match written {
                    true => counts.written_sectors += sectors,
                    false => counts.read_sectors += sectors,
                });
                Ok(reply)
            }
            Op::Read => self.read(caller, bio, bytes).await,
            Op::Write => self.write(caller, bio, bytes).await.map(|()| Reply::None),
            Op::Discard | Op::Zone(..) => self.cached.discard(bio.clone()).await,
            Op::Flush => {
                self.count(|counts| counts.fsyncs += 1);
                self.cached.sync().await.map(|()| Reply::None)
            }
            _ => Err(FsError::Unsupported(
                "anything but reads, writes, trims, zone actions and syncs",
            )),
        }
    }

    async fn read(&self, caller: Caller, bio: &Bio, bytes: Range<u64>) -> Result<Reply> {
        let data = self.cached.read(caller, bytes.start, bytes.end - bytes.start).await?;
        self.count(|counts| counts.read_sectors += u64::from(bio.sectors));
        match data {
            Data::Sectors(payload, _) if !bio.flags.has(Flags::NO_DATA) => Ok(Reply::Data(payload)),
            _ => Ok(Reply::None),
        }
    }

    async fn write(&self, caller: Caller, bio: &Bio, bytes: Range<u64>) -> Result<()> {
        for (offset, data) in pieces(bio, bytes) {
            self.cached.write(caller, offset, data).await?;
        }
        self.count(|counts| counts.written_sectors += u64::from(bio.sectors));
        if bio.flags.has(Flags::FUA) {
            self.count(|counts| counts.fsyncs += 1);
            self.cached.sync_range(bio.lba.0..bio.lba.0 + u64::from(bio.sectors)).await?;
        }
        Ok(())
    }

    fn count(&self, change: impl FnOnce(&mut FileCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// All that was counted.
    pub(super) fn counts(&self) -> FileCounts {
        FileCounts {
            fs: self.cached.counts(),
            cached_pages: self.cached.memory().cached_pages,
            ..self.counts.get()
        }
    }

    /// Everything is written out.
    pub(super) async fn close(&self) -> Result<()> {
        self.cached.close().await
    }
}
