//! Requests of a load as calls of a file system, or of the page cache of a block device.
//!
//! On files, whose address space is one file behind the other ([`FileLayout`]):
//! - A read or write of a part of the address space is a read or write of each file in it, in order.
//! - A flush is an fsync (or fdatasync) of each file that its job has written since its last one; of the
//!   job's first file if there is none. A durable write ([`Flags::FUA`]) is followed by a sync of what it
//!   wrote, as one with `O_SYNC` or `O_DSYNC`.
//! - A discard punches a hole.
//! - Each job is a thread of the host. Each call takes so much of the thread's core before the file system
//!   begins, and waits for other work on that core.

use super::IoTarget;
use super::bytes::{all_bytes, pieces};
use super::counts::FileCounts;
use super::page_cache::CacheCalls;
use crate::fio::FileLayout;
use nandscape_block::{Bio, BlockError, Completion, DeviceCaps, Done, Flags, Op, Payload, Submit};
use nandscape_block::{Lba, Owner, Reply, SECTOR_BYTES, Token};
use nandscape_fs::MountedFs;
use nandscape_fs::bdev::CachedDevice;
use nandscape_fs::contract::{Allocate, Caller, Data, FsError, Ino, Io, Result, SyscallCost};
use nandscape_rt::{Handle, Host, Nanos};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

/// Files of jobs, or a block device behind its page cache, as the target of a load. Each request is a task.
///
/// The tasks run on an executor whose owner lets it reach `now` before each call of [`IoTarget`] with that time,
/// and takes its events beside those of the target.
#[derive(Clone)]
pub struct FileTarget(Rc<Calls>);

/// Calls to a page cache, and the host that they work on.
struct Calls {
    handle: Handle,
    service: Service,
    /// What calls take of their threads.
    cost: SyscallCost,
    /// The host that calls work on.
    host: Host,
    /// Calls that ended.
    done: RefCell<Vec<Completion>>,
    /// Time of flushes until they began.
    fsync_thread_ns: Cell<u64>,
}

/// What serves calls.
enum Service {
    /// Files of a file system.
    Files(FileCalls),
    /// A block device behind its page cache.
    Device(CacheCalls),
}

impl FileTarget {
    /// The files of `layout`, which have these numbers on `fs`; calls work on cores of `host` at this cost.
    #[must_use]
    pub fn on_files(
        handle: &Handle,
        (host, cost): (&Host, SyscallCost),
        fs: Rc<dyn MountedFs>,
        layout: FileLayout,
        inodes: Vec<Ino>,
    ) -> Self {
        let (written, counts) = Default::default();
        let files = FileCalls { fs, layout, inodes, written, counts };
        Self::new(handle, (host, cost), Service::Files(files))
    }

    /// A block device behind its page cache; `direct` says of each job instance whether it bypasses the cache.
    #[must_use]
    pub fn on_device(
        handle: &Handle,
        (host, cost): (&Host, SyscallCost),
        cached: CachedDevice,
        direct: Vec<bool>,
    ) -> Self {
        Self::new(handle, (host, cost), Service::Device(CacheCalls::new(cached, direct)))
    }

    fn new(handle: &Handle, (host, cost): (&Host, SyscallCost), service: Service) -> Self {
        let (done, fsync_thread_ns) = Default::default();
        let (handle, host) = (handle.clone(), host.clone());
        Self(Rc::new(Calls { handle, service, cost, host, done, fsync_thread_ns }))
    }

    /// What it can do on a device that can do this. Behind a page cache, nothing is atomic.
    #[must_use]
    pub fn caps(&self, device: &DeviceCaps) -> DeviceCaps {
        match &self.0.service {
            Service::Device(_) => DeviceCaps { atomic_sectors: 0, ..device.clone() },
            Service::Files(files) => DeviceCaps {
                atomic_sectors: 0,
                scoped_flush: true,
                keeps_content: device.keeps_content,
                ..DeviceCaps::conventional(files.layout.sectors())
            },
        }
    }

    /// The file system; none behind the page cache of a block device.
    #[must_use]
    pub fn fs(&self) -> Option<&Rc<dyn MountedFs>> {
        match &self.0.service {
            Service::Files(files) => Some(&files.fs),
            Service::Device(_) => None,
        }
    }

    /// The parts of the address space that the files of each job instance are; none of a block device.
    #[must_use]
    pub fn file_ranges(&self) -> Vec<Vec<Range<u64>>> {
        match &self.0.service {
            Service::Files(files) => files.layout.ranges(),
            Service::Device(_) => Vec::new(),
        }
    }

    /// All that was counted since the mount.
    #[must_use]
    pub fn counts(&self) -> FileCounts {
        let counts = match &self.0.service {
            Service::Files(files) => files.counts(),
            Service::Device(device) => device.counts(),
        };
        FileCounts { fsync_thread_ns: self.0.fsync_thread_ns.get(), ..counts }
    }

    /// Everything is written out, and a file system unmounted.
    ///
    /// # Errors
    /// Why not, and the error that made the file system read-only, if one did.
    pub async fn close(&self) -> Result<(), String> {
        let closed = match &self.0.service {
            Service::Files(files) => files.fs.unmount().await,
            Service::Device(device) => device.close().await,
        };
        closed.map_err(|error| match self.0.fault() {
            Some(fault) if error == FsError::ReadOnly => format!("{error}: {fault}"),
            _ => error.to_string(),
        })
    }
}

impl IoTarget for FileTarget {
    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        let bytes = all_bytes(&bio);
        self.submit_bytes(now, bio, bytes, token)
    }

    fn takes_bytes(&self, owner: Owner) -> bool {
        match &self.0.service {
            Service::Files(_) => true,
            Service::Device(device) => !device.is_direct(owner.file as usize),
        }
    }

    fn submit_bytes(&mut self, _: Nanos, bio: Bio, bytes: Range<u64>, token: Token) -> Submit {
        let calls = Rc::clone(&self.0);
        drop(self.0.handle.spawn("call", async move { calls.serve(bio, bytes, token).await }));
        Submit::Pending
    }

    /// Now, if calls have ended. What happens before that are events of the executor.
    fn next_event(&self) -> Option<Nanos> {
        (!self.0.done.borrow().is_empty()).then(|| self.0.handle.now())
    }

    fn advance(&mut self, _: Nanos, done: &mut Vec<Completion>) {
        done.append(&mut self.0.done.borrow_mut());
    }
}

impl Calls {
    /// Serves a request for these bytes, and notes its end.
    async fn serve(&self, bio: Bio, bytes: Range<u64>, token: Token) {
        let caller = caller(&bio);
        let mut thread_ns = 0;
        if let Some(cost) = self.cost_of(&bio, bytes.end - bytes.start) {
            let core = self.host.core(caller.thread);
            thread_ns = self.host.work(&self.handle, core, cost).await.0;
        }
        let result = match &self.service {
            Service::Files(files) => files.call(caller, &bio, bytes).await,
            Service::Device(device) => device.call(caller, instance_of(&bio), &bio, bytes).await,
        };
        let result = result.map_err(|error| block_error(error, bio.lba, self.fault()));
        if bio.op == Op::Flush && result.is_ok() {
            self.fsync_thread_ns.set(self.fsync_thread_ns.get() + thread_ns);
        }
        let done = Done::new(self.handle.now(), result);
        self.done.borrow_mut().push(Completion { token, done });
    }

    /// What a request takes of its thread's core. Direct I/O on a block device takes nothing, as on one without a page
    /// cache.
    fn cost_of(&self, bio: &Bio, bytes: u64) -> Option<Nanos> {
        let instance = instance_of(bio);
        let io = match &self.service {
            Service::Files(files) => files.io_mode(instance),
            Service::Device(device) if device.is_direct(instance) => return None,
            Service::Device(_) => Io::Buffered,
        };
        let moves = matches!(bio.op, Op::Read | Op::Write);
        Some(self.cost.for_bytes(if moves { bytes } else { 0 }, io))
    }

    /// The error that made a file system read-only, if one did.
    fn fault(&self) -> Option<String> {
        match &self.service {
            Service::Files(files) => files.fs.fault(),
            Service::Device(_) => None,
        }
    }
}

/// Calls to open files.
struct FileCalls {
    fs: Rc<dyn MountedFs>,
    layout: FileLayout,
    /// The files' numbers.
    inodes: Vec<Ino>,
    /// Files that each job instance has written since its last sync.
    written: RefCell<BTreeMap<usize, BTreeSet<usize>>>,
    counts: Cell<FileCounts>,
}

impl FileCalls {
    async fn call(&self, caller: Caller, bio: &Bio, bytes: Range<u64>) -> Result<Reply> {
        let instance = instance_of(bio);
        let io = self.io_mode(instance);
        match bio.op {
            Op::Read => self.read(caller, bio, bytes, io).await,
            Op::Write => self.write(caller, bio, bytes, (io, instance)).await.map(|()| Reply::None),
            Op::Discard => self.punch(caller, bio).await.map(|()| Reply::None),
            Op::Flush => self.sync(caller, instance).await.map(|()| Reply::None),
            _ => Err(FsError::Unsupported("anything but reads, writes, trims and syncs of files")),
        }
    }

    /// How the I/O of a job instance goes.
    fn io_mode(&self, instance: usize) -> Io {
        let direct = self.layout.instances.get(instance).is_some_and(|instance| instance.direct);
        if direct { Io::Direct } else { Io::Buffered }
    }

    fn parts(&self, bio: &Bio) -> impl Iterator<Item = (usize, u64, u64)> {
        self.layout.parts(bio.lba.0, bio.sectors.into())
    }

    /// The parts of files that `bytes` of a request are: index, where the file begins, and the bytes.
    fn parts_of_bytes(
        &self,
        bio: &Bio,
        bytes: &Range<u64>,
    ) -> impl Iterator<Item = (usize, u64, Range<u64>)> {
        let bytes = bytes.clone();
        self.parts(bio).map(move |(file, first, sectors)| {
            let base = self.layout.files[file].base * SECTOR_BYTES;
            let start = base + first * SECTOR_BYTES;
            let end = start + sectors * SECTOR_BYTES;
            (file, base, start.max(bytes.start)..end.min(bytes.end))
        })
    }

    async fn read(&self, caller: Caller, bio: &Bio, bytes: Range<u64>, io: Io) -> Result<Reply> {
        let mut content = Vec::new();
        for (file, base, part) in self.parts_of_bytes(bio, &bytes) {
            let (offset, len) = (part.start - base, part.end - part.start);
            let data = self.fs.read(caller, self.inodes[file], offset, len, io).await?;
            if bytes != all_bytes(bio) {
                continue;
            }
            let Data::Sectors(payload, sectors) = data else {
                return Err(FsError::corrupt("length", format!("inode {}", self.inodes[file].0)));
            };
            if !bio.flags.has(Flags::NO_DATA) {
                content.extend((0..sectors).map(|sector| payload.sector(sector)));
            }
        }
        self.count(|counts| counts.read_sectors += u64::from(bio.sectors));
        match bio.flags.has(Flags::NO_DATA) {
            true => Ok(Reply::None),
            false => Ok(Reply::Data(Payload::collect(content))),
        }
    }

    async fn write(
        &self,
        caller: Caller,
        bio: &Bio,
        bytes: Range<u64>,
        (io, instance): (Io, usize),
    ) -> Result<()> {
        let durable = bio.flags.has(Flags::FUA);
        let durable = durable.then(|| self.layout.instances.get(instance)).flatten();
        for (file, base, part) in self.parts_of_bytes(bio, &bytes) {
            for (at, data) in pieces(bio, part) {
                self.fs.write_all(caller, self.inodes[file], at - base, data, io).await?;
            }
            self.note_written(instance, file);
            if let Some(job) = durable {
                self.sync_file(caller, file, job.writes_data_only).await?;
            }
        }
        self.count(|counts| counts.written_sectors += u64::from(bio.sectors));
        Ok(())
    }

    async fn punch(&self, caller: Caller, bio: &Bio) -> Result<()> {
        for (file, first, sectors) in self.parts(bio) {
            let (offset, len) = (first * SECTOR_BYTES, sectors * SECTOR_BYTES);
            let hole = Allocate::PunchHole;
            self.fs.fallocate(caller, self.inodes[file], hole, offset, len).await?;
        }
        Ok(())
    }

    async fn sync(&self, caller: Caller, instance: usize) -> Result<()> {
        let Some(job) = self.layout.instances.get(instance) else { return Ok(()) };
        let written = self.written.borrow_mut().remove(&instance);
        let files = written.unwrap_or_else(|| job.files.iter().take(1).copied().collect());
        for file in files {
            self.sync_file(caller, file, job.data_only).await?;
        }
        Ok(())
    }

    async fn sync_file(&self, caller: Caller, file: usize, data_only: bool) -> Result<()> {
        self.count(|counts| counts.fsyncs += 1);
        match data_only {
            true => self.fs.fdatasync(caller, self.inodes[file]).await,
            false => self.fs.fsync(caller, self.inodes[file]).await,
        }
    }

    fn note_written(&self, instance: usize, file: usize) {
        self.written.borrow_mut().entry(instance).or_default().insert(file);
    }

    fn count(&self, change: impl FnOnce(&mut FileCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    fn counts(&self) -> FileCounts {
        FileCounts {
            fs: self.fs.counts(),
            cached_pages: self.fs.memory().cached_pages,
            space: self.fs.space(),
            ..self.counts.get()
        }
    }
}

/// The job instance that issued a request.
fn instance_of(bio: &Bio) -> usize {
    bio.owner.map_or(0, |owner| owner.file as usize)
}

/// The thread that issued a request.
fn caller(bio: &Bio) -> Caller {
    bio.owner.map_or_else(Caller::default, |owner| Caller {
        thread: owner.thread,
        core: owner.core,
        ..Caller::default()
    })
}

/// What a file system returns, as a block device would; read-only for the reason that is known.
fn block_error(error: FsError, lba: Lba, fault: Option<String>) -> BlockError {
    match error {
        FsError::Io(error) => error,
        FsError::NoSpace => BlockError::Io { lba, what: "no space left" },
        FsError::ReadOnly => BlockError::ReadOnly(fault.map_or_else(
            || "the file system met an error".into(),
            |fault| format!("the file system met an error: {fault}").into(),
        )),
        FsError::Unsupported(what) => BlockError::Unsupported(what),
        FsError::Corrupt { what, .. } => BlockError::Corrupt { kind: what, lba },
        other => BlockError::Defect(other.to_string()),
    }
}
