//! Bios of the engine as calls of a file system, or of the page cache of a block device.
//!
//! On files:
//! - A read or write of a stretch of the address space is a read or write of each file in it, in order.
//! - A flush is an fsync (or fdatasync) of each file that its job has written since its last one; of the
//!   job's first file if there is none. A durable write ([`Flags::FUA`]) goes on with a sync of what it
//!   wrote, as one with `O_SYNC` or `O_DSYNC`.
//! - A discard punches a hole.
//! - Each job is a thread of the host. Each call takes so much of the thread's core before the file system
//!   begins, and waits for other work on that core.

use super::device_calls::DeviceCalls;
use super::layout::Layout;
use crate::run::counts::FileCounts;
use nandscape_block::{Bio, BlockError, Completion, Done, Flags, Op, Payload};
use nandscape_block::{Lba, Reply, SECTOR_BYTES, Token};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::{Allocate, CallCost, Caller, Data, FsError, Ino, Io, Result};
use nandscape_rt::host::Lease;
use nandscape_rt::{Handle, Host, Nanos};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Calls to a page cache, and the host that they work on.
pub(super) struct Calls {
    pub(super) handle: Handle,
    pub(super) target: Target,
    /// What calls take of their threads.
    pub(super) cost: CallCost,
    /// The host that calls work on.
    pub(super) host: Host,
    /// Its memory that the FTL, the file system and the page cache take.
    _memory: Vec<Lease>,
    /// Calls that ended.
    pub(super) done: RefCell<Vec<Completion>>,
    /// Time of flushes until they began.
    fsync_thread_ns: Cell<u64>,
}

/// What calls go to.
pub(super) enum Target {
    /// Files of a file system.
    Files(FileCalls),
    /// A block device behind its page cache.
    Device(DeviceCalls),
}

impl Target {
    /// The error that made a file system read-only, if one did.
    fn fault(&self) -> Option<String> {
        match self {
            Self::Files(files) => files.fs.fault(),
            Self::Device(_) => None,
        }
    }
}

impl Calls {
    /// Calls to `target` at this cost on cores of `host`.
    pub(super) fn new(
        handle: Handle,
        target: Target,
        (host, memory, cost): (Host, Vec<Lease>, CallCost),
    ) -> Self {
        let (done, fsync_thread_ns) = Default::default();
        Self { handle, target, cost, host, _memory: memory, done, fsync_thread_ns }
    }

    /// Serves a bio, and notes its end.
    pub(super) async fn serve(&self, bio: Bio, token: Token) {
        let caller = caller(&bio);
        let mut thread_ns = 0;
        if let Some(cost) = self.cost_of(&bio) {
            let core = self.host.core(caller.thread);
            thread_ns = self.host.work(&self.handle, core, cost).await.0;
        }
        let result = match &self.target {
            Target::Files(files) => files.call(caller, &bio).await,
            Target::Device(device) => device.call(caller, clone_of(&bio), &bio).await,
        };
        let result = result.map_err(|error| block_error(error, bio.lba, self.target.fault()));
        if bio.op == Op::Flush && result.is_ok() {
            self.fsync_thread_ns.set(self.fsync_thread_ns.get() + thread_ns);
        }
        let done = Done::new(self.handle.now(), result);
        self.done.borrow_mut().push(Completion { token, done });
    }

    /// What a bio takes of its thread's core. Direct I/O on a block device takes nothing, as on one without a page
    /// cache.
    fn cost_of(&self, bio: &Bio) -> Option<Nanos> {
        let clone = clone_of(bio);
        let io = match &self.target {
            Target::Files(files) => files.way(clone),
            Target::Device(device) if device.is_direct(clone) => return None,
            Target::Device(_) => Io::Buffered,
        };
        let moves = matches!(bio.op, Op::Read | Op::Write);
        let bytes = if moves { u64::from(bio.sectors) * SECTOR_BYTES } else { 0 };
        Some(self.cost.of_moving(bytes, io))
    }

    /// All that was counted since the mount.
    pub(super) fn counts(&self) -> FileCounts {
        let counts = match &self.target {
            Target::Files(files) => files.counts(),
            Target::Device(device) => device.counts(),
        };
        FileCounts { fsync_thread_ns: self.fsync_thread_ns.get(), ..counts }
    }

    /// Everything is written out, and a file system unmounted.
    ///
    /// # Errors
    /// Why not, and the error that made the file system read-only, if one did.
    pub(super) async fn close(&self) -> Result<(), String> {
        let closed = match &self.target {
            Target::Files(files) => files.fs.unmount().await,
            Target::Device(device) => device.close().await,
        };
        closed.map_err(|error| match self.target.fault() {
            Some(fault) if error == FsError::ReadOnly => format!("{error}: {fault}"),
            _ => error.to_string(),
        })
    }
}

/// Calls to open files.
pub(super) struct FileCalls {
    pub(super) fs: Rc<dyn MountedFs>,
    pub(super) layout: Layout,
    /// The files' numbers.
    inodes: Vec<Ino>,
    /// Files that each clone has written since its last sync.
    written: RefCell<BTreeMap<usize, BTreeSet<usize>>>,
    counts: Cell<FileCounts>,
}

impl FileCalls {
    /// Calls to `fs`, on which the files of `layout` have these numbers.
    pub(super) fn new(fs: Rc<dyn MountedFs>, layout: Layout, inodes: Vec<Ino>) -> Self {
        Self { fs, layout, inodes, written: RefCell::default(), counts: Cell::default() }
    }

    async fn call(&self, caller: Caller, bio: &Bio) -> Result<Reply> {
        let clone = clone_of(bio);
        let io = self.way(clone);
        match bio.op {
            Op::Read => self.read(caller, bio, io).await,
            Op::Write => self.write(caller, bio, io, clone).await.map(|()| Reply::None),
            Op::Discard => self.punch(caller, bio).await.map(|()| Reply::None),
            Op::Flush => self.sync(caller, clone).await.map(|()| Reply::None),
            _ => Err(FsError::Unsupported("anything but reads, writes, trims and syncs of files")),
        }
    }

    /// How a clone's I/O goes.
    fn way(&self, clone: usize) -> Io {
        let direct = self.layout.clones.get(clone).is_some_and(|clone| clone.direct);
        if direct { Io::Direct } else { Io::Buffered }
    }

    fn parts(&self, bio: &Bio) -> impl Iterator<Item = (usize, u64, u64)> {
        self.layout.parts(bio.lba.0, bio.sectors.into())
    }

    async fn read(&self, caller: Caller, bio: &Bio, io: Io) -> Result<Reply> {
        let mut content = Vec::new();
        for (file, first, sectors) in self.parts(bio) {
            let (offset, len) = (first * SECTOR_BYTES, sectors * SECTOR_BYTES);
            let data = self.fs.read(caller, self.inodes[file], offset, len, io).await?;
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

    async fn write(&self, caller: Caller, bio: &Bio, io: Io, clone: usize) -> Result<()> {
        let durable = bio.flags.has(Flags::FUA).then(|| self.layout.clones.get(clone)).flatten();
        let mut at: u32 = 0;
        for (file, first, sectors) in self.parts(bio) {
            let content = (at..at + sectors as u32).map(|sector| bio.payload.sector(sector));
            let data = Data::Sectors(Payload::collect(content.collect()), sectors as u32);
            self.fs.write_all(caller, self.inodes[file], first * SECTOR_BYTES, data, io).await?;
            self.note_written(clone, file);
            if let Some(job) = durable {
                self.sync_file(caller, file, job.writes_data_only).await?;
            }
            at += sectors as u32;
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

    async fn sync(&self, caller: Caller, clone: usize) -> Result<()> {
        let Some(job) = self.layout.clones.get(clone) else { return Ok(()) };
        let written = self.written.borrow_mut().remove(&clone);
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

    fn note_written(&self, clone: usize, file: usize) {
        self.written.borrow_mut().entry(clone).or_default().insert(file);
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

/// The clone of a job that issued a bio.
fn clone_of(bio: &Bio) -> usize {
    bio.owner.map_or(0, |owner| owner.file as usize)
}

/// Who issued a bio.
fn caller(bio: &Bio) -> Caller {
    bio.owner.map_or_else(Caller::default, |owner| Caller {
        thread: owner.thread,
        core: owner.core,
        ..Caller::default()
    })
}

/// What a file system says, as a block device would; read-only for the reason that is known.
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
