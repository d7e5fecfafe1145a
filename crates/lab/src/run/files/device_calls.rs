//! Bios of the engine as calls on a block device that has a page cache.
//!
//! - Reads and writes of a buffered job go through the page cache. A flush is an fsync of the device: it writes all
//!   dirty pages, whoever wrote them, and flushes. A durable write ([`Flags::FUA`]) goes on with a sync of its sectors.
//! - Bios of a direct job go to the device as they are, after the page cache has written and dropped what it holds of
//!   their sectors. Their flushes are fsyncs of the device, too, as it is the same inode in Linux.
//! - A discard drops the pages of its sectors, an action on a zone those of the zone.

use crate::run::counts::FileCounts;
use crate::run::error::RunError;
use crate::stack::Stack;
use nandscape_block::{Bio, Flags, Op, Reply, SECTOR_BYTES};
use nandscape_fs::bdev::CachedDevice;
use nandscape_fs::contract::{Caller, Data, FsError, Result};
use nandscape_workload::fio::{JobFile, JobSpec};
use std::borrow::Cow;
use std::cell::Cell;

/// Calls on a block device behind its page cache.
pub(super) struct DeviceCalls {
    cached: CachedDevice,
    /// Clones that bypass the cache.
    direct: Vec<bool>,
    counts: Cell<FileCounts>,
}

impl DeviceCalls {
    /// Calls on this device; `direct` says of each clone whether it bypasses the cache.
    pub(super) fn new(cached: CachedDevice, direct: Vec<bool>) -> Self {
        Self { cached, direct, counts: Cell::default() }
    }

    /// Whether a clone bypasses the cache.
    pub(super) fn is_direct(&self, clone: usize) -> bool {
        self.direct.get(clone).copied().unwrap_or(false)
    }

    /// Serves a bio of a clone.
    pub(super) async fn call(&self, caller: Caller, clone: usize, bio: &Bio) -> Result<Reply> {
        let direct = self.is_direct(clone);
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
            Op::Read => self.read(caller, bio).await,
            Op::Write => self.write(caller, bio).await.map(|()| Reply::None),
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

    async fn read(&self, caller: Caller, bio: &Bio) -> Result<Reply> {
        let (at, len) = (bio.lba.0 * SECTOR_BYTES, u64::from(bio.sectors) * SECTOR_BYTES);
        let data = self.cached.read(caller, at, len).await?;
        self.count(|counts| counts.read_sectors += u64::from(bio.sectors));
        match data {
            Data::Sectors(payload, _) if !bio.flags.has(Flags::NO_DATA) => Ok(Reply::Data(payload)),
            _ => Ok(Reply::None),
        }
    }

    async fn write(&self, caller: Caller, bio: &Bio) -> Result<()> {
        let data = Data::Sectors(bio.payload.clone(), bio.sectors);
        self.cached.write(caller, bio.lba.0 * SECTOR_BYTES, data).await?;
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

/// Whether a job goes through the page cache of a block device. What replays a log does not: logs have what left
/// the page cache.
const fn is_buffered(spec: &JobSpec) -> bool {
    !spec.files.direct && spec.replay.files.is_empty()
}

/// Which clones of these jobs bypass the page cache of the block device of `stack`; `None`: all of them do, or it
/// has none.
///
/// # Errors
/// A key of a buffered job that is not supported, with its place.
pub(in crate::run) fn buffered(
    stack: &Stack,
    file: &JobFile,
) -> Result<Option<Vec<bool>>, RunError> {
    if stack.host.device_cache.is_none() || !file.jobs.iter().any(is_buffered) {
        return Ok(None);
    }
    let hinted = file.jobs.iter().find(|spec| is_buffered(spec) && spec.write_hint > 0);
    if let Some(JobSpec { place, name, .. }) = hinted {
        return Err(RunError::Job(format!(
            "{place}: job {name}: write_hint: a buffered block device has one write hint for all of it, which is \
             not supported; use direct=1"
        )));
    }
    let clones = |spec: &JobSpec| vec![!is_buffered(spec); spec.numjobs as usize];
    Ok(Some(file.jobs.iter().flat_map(clones).collect()))
}

/// The jobs as they run on the block device of `stack`, and what is different from what their file asks for: a
/// buffered job has one request in flight, because in Linux the submission of buffered I/O waits for its end.
pub(in crate::run) fn run_as<'a>(
    stack: &Stack,
    file: &'a JobFile,
) -> (Cow<'a, JobFile>, Vec<String>) {
    let mut changed = Cow::Borrowed(file);
    let mut warnings = Vec::new();
    if stack.fs.is_some() || stack.host.device_cache.is_none() {
        return (changed, warnings);
    }
    for (index, spec) in file.jobs.iter().enumerate().filter(|(_, spec)| is_buffered(spec)) {
        if spec.depth() > 1 {
            let JobSpec { name, iodepth, .. } = spec;
            warnings.push(format!(
                "job {name} is buffered: one request is in flight, not iodepth={iodepth}, as the submission of \
                 buffered I/O waits in Linux; direct=1 bypasses the page cache"
            ));
            changed.to_mut().jobs[index].synchronous = true;
        }
    }
    (changed, warnings)
}
