//! The rig of a run: its stack, built. The FTL behind the hints of the stack, on the host of the run, and what is
//! between it and the load: nothing, the page cache of the block device, or a file system.
//!
//! Everything that a run reads of its stack, or changes of it, goes through [`Rig`]; only the inner loops of loads
//! know which of the two kinds it is.

use super::counts::{Counts, Sample, ZoneReport};
use super::device::{self, HintedDevice, RunFtl};
use super::error::RunError;
use super::hang::{describe_waiting, is_hang, run_with_timeout};
use super::observer::Observer;
use super::queue::DeviceQueue;
use crate::stack::Stack;
use crate::timeline::{LOG_ROOM, Levels, Request, Requests};
use nandscape_block::{
    AsyncDevice, Bio, BlockDevice, Completion, DeviceCaps, Owner, Submit, Token,
};
use nandscape_fs::contract::SyscallCost;
use nandscape_ftl::{Detail, Ftl, SectorCounts};
use nandscape_media::{Layer, OpenChannel};
use nandscape_rt::host::Lease;
use nandscape_rt::{Executor, Host, Nanos};
use nandscape_workload::target::{FileCounts, FileTarget, IoTarget};
use nandscape_workload::wml::engine::CreatedFileset;
use std::ops::Range;

/// What a load runs on.
pub(super) enum Rig {
    /// The block device, without anything between.
    Device(HintedDevice),
    /// A page cache, most often of a file system, over the block device.
    Mounted(Box<MountedRig>),
}

/// A page cache over the device of a rig, and the executor that both run on.
pub(super) struct MountedRig {
    pub(super) executor: Executor,
    device: AsyncDevice<HintedDevice>,
    target: FileTarget,
    pub(super) host: Host,
    /// What calls take of a core.
    pub(super) cost: SyscallCost,
    /// Filesets of a workload that were created, until it takes them.
    pub(super) filesets: Vec<CreatedFileset>,
    /// Memory of the host that the FTL, the file system and the page cache take.
    _memory: Vec<Lease>,
    caps: DeviceCaps,
    /// What was counted when counters were reset.
    reset: FileCounts,
    /// Kept for a timeline.
    requests: Option<Box<Requests>>,
    /// Calls in flight, and when the last one began or ended.
    in_flight: usize,
    progress: Nanos,
}

impl MountedRig {
    /// `target` over `device`, which no other task uses, on `host`.
    pub(super) fn new(
        executor: Executor,
        device: AsyncDevice<HintedDevice>,
        target: FileTarget,
        (host, memory, cost): (Host, Vec<Lease>, SyscallCost),
        filesets: Vec<CreatedFileset>,
    ) -> Self {
        let caps = device.with(|device| target.caps(device.caps()));
        Self {
            executor,
            device,
            target,
            host,
            cost,
            filesets,
            _memory: memory,
            caps,
            reset: FileCounts::default(),
            requests: None,
            in_flight: 0,
            progress: Nanos::ZERO,
        }
    }

    /// What calls go to.
    pub(super) const fn target(&self) -> &FileTarget {
        &self.target
    }

    /// Brings the executor to `now`, and notes a call.
    fn begin_call(&mut self, now: Nanos, bio: &Bio, token: Token) {
        self.executor.run_until(now);
        if let Some(requests) = &mut self.requests {
            requests.opened(Request::new(now, bio, token));
        }
        (self.in_flight, self.progress) = (self.in_flight + 1, now);
    }

    fn counts(&self) -> FileCounts {
        self.target.counts().since(&self.reset)
    }

    /// What the series of a run samples.
    pub(super) fn sample(&self) -> Sample {
        let fs = self.counts();
        self.device.with(|device| Sample::of(&device.ftl, Some(&fs)))
    }
}

/// The target beside its executor: whatever is due on the executor happens before a request, and before
/// completions are taken.
impl IoTarget for MountedRig {
    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.begin_call(now, &bio, token);
        self.target.submit(now, bio, token)
    }

    fn takes_bytes(&self, owner: Owner) -> bool {
        self.target.takes_bytes(owner)
    }

    fn submit_bytes(&mut self, now: Nanos, bio: Bio, bytes: Range<u64>, token: Token) -> Submit {
        self.begin_call(now, &bio, token);
        self.target.submit_bytes(now, bio, bytes, token)
    }

    /// None while calls hang, although daemons have timers.
    fn next_event(&self) -> Option<Nanos> {
        let executors = || self.executor.next_event();
        let hangs = |next: Nanos| self.in_flight > 0 && is_hang(self.progress, next);
        self.target.next_event().or_else(|| executors().filter(|next| !hangs(*next)))
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.executor.run_until(now);
        let known = done.len();
        self.target.advance(now, done);
        if done.len() > known {
            (self.in_flight, self.progress) = (self.in_flight + known - done.len(), now);
        }
        if let Some(requests) = &mut self.requests {
            requests.completed(&done[known..]);
        }
    }
}

impl Rig {
    /// Changes the FTL, or the requests that are noted for a timeline.
    fn with<R>(&mut self, change: impl FnOnce(&mut RunFtl, &mut Option<Box<Requests>>) -> R) -> R {
        match self {
            Self::Device(device) => change(&mut device.ftl, &mut device.requests),
            Self::Mounted(mounted) => {
                let requests = &mut mounted.requests;
                mounted.device.with(|device| change(&mut device.ftl, requests))
            }
        }
    }

    /// Reads from the FTL.
    pub(super) fn look<R>(&self, look: impl FnOnce(&RunFtl) -> R) -> R {
        match self {
            Self::Device(device) => look(&device.ftl),
            Self::Mounted(mounted) => mounted.device.with(|device| look(&device.ftl)),
        }
    }

    /// The page cache, if there is one.
    pub(super) fn mounted(&mut self) -> Option<&mut MountedRig> {
        match self {
            Self::Device(_) => None,
            Self::Mounted(mounted) => Some(mounted),
        }
    }

    /// The host of the run.
    pub(super) const fn host(&self) -> &Host {
        match self {
            Self::Device(device) => &device.host,
            Self::Mounted(mounted) => &mounted.host,
        }
    }

    /// What loads can do on it.
    pub(super) fn caps(&self) -> &DeviceCaps {
        match self {
            Self::Device(device) => device.caps(),
            Self::Mounted(mounted) => &mounted.caps,
        }
    }

    /// The parts of the address space that the files of each job instance are; none: this is a block
    /// device.
    pub(super) fn file_ranges(&self) -> Vec<Vec<Range<u64>>> {
        match self {
            Self::Device(_) => Vec::new(),
            Self::Mounted(mounted) => mounted.target.file_ranges(),
        }
    }

    /// The time that it has reached.
    fn now(&self) -> Nanos {
        match self {
            Self::Device(device) => device.ftl.now(),
            Self::Mounted(mounted) => mounted.executor.handle().now(),
        }
    }

    /// Everything up to `now` happens. For loads that submit nothing themselves.
    pub(super) fn advance(&mut self, now: Nanos) {
        match self {
            Self::Device(device) => BlockDevice::advance(device, now, &mut Vec::new()),
            Self::Mounted(mounted) => mounted.advance(now, &mut Vec::new()),
        }
    }

    /// What tasks of a file system wait for now, in words, if there is one.
    pub(super) fn waiting(&self) -> Option<String> {
        match self {
            Self::Device(_) => None,
            Self::Mounted(mounted) => Some(describe_waiting(&mounted.executor.waiting())),
        }
    }

    /// The measured phase begins: I/O takes time, the stack's faults strike, flushes are those of the stack, and counters begin
    /// at zero.
    pub(super) fn begin_measuring(&mut self, stack: &Stack) {
        let host = self.host().clone();
        self.with(|ftl, _| {
            *ftl.media_mut().faults_mut() = stack.media.faults.measured();
            ftl.media_mut().inner_mut().set_timing(stack.timing().nand);
            ftl.attach(stack.attach(host));
            ftl.keep_flushed(false);
        });
        self.reset_counts();
    }

    /// Writes out the page cache and unmounts the file system, if there is one.
    pub(super) fn close(&mut self) -> Result<(), String> {
        let Self::Mounted(mounted) = self else { return Ok(()) };
        let target = mounted.target.clone();
        let closed = run_with_timeout(&mut mounted.executor, async move { target.close().await });
        closed.flatten().map_err(|error| format!("the file system was not unmounted: {error}"))
    }

    /// The FTL, once everything above it is gone; `None`: something is not.
    pub(super) fn release(self) -> Option<RunFtl> {
        match self {
            Self::Device(device) => Some(device.ftl),
            Self::Mounted(mounted) => {
                let MountedRig { executor, device, target, .. } = *mounted;
                drop((executor, target));
                device.into_inner().map(|device| device.ftl)
            }
        }
    }
}

/// Counters.
impl Rig {
    /// What the page cache and the file system counted since the last reset, if there are any.
    fn fs_counts(&self) -> Option<FileCounts> {
        match self {
            Self::Device(_) => None,
            Self::Mounted(mounted) => Some(mounted.counts()),
        }
    }

    /// Bytes of memory of the parts of the file system, if there is one that reports them.
    pub(super) fn fs_memory(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Device(_) => Vec::new(),
            Self::Mounted(mounted) => {
                mounted.target.fs().map_or_else(Vec::new, |fs| fs.memory_parts())
            }
        }
    }

    /// Sectors placed since the last reset.
    pub(super) fn sectors(&self) -> SectorCounts {
        self.look(Ftl::sectors)
    }

    /// Data sectors that can be written without reclaiming anything.
    pub(super) fn free_sectors(&self) -> u64 {
        self.look(device::free_sectors)
    }

    /// The zones of the device, if it has any.
    pub(super) fn zones(&mut self) -> Result<Option<ZoneReport>, RunError> {
        match self.look(|ftl| ftl.caps().has_zones()) {
            true => self.with(|ftl, _| ZoneReport::of(ftl)).map(Some),
            false => Ok(None),
        }
    }

    /// What was counted since the last reset.
    pub(super) fn counts(&self) -> Counts {
        let (cores, fs) = (self.host().busy(self.now()), self.fs_counts());
        let queue = self.queue().counts(self.now());
        self.look(|ftl| Counts {
            ftl: ftl.report(),
            ftl_detail: ftl.detail(),
            utilisation: ftl.media().inner().utilisation(),
            link: ftl.link().counts(),
            queue,
            cores,
            fs,
        })
    }

    /// Requests in the device.
    fn queue(&self) -> DeviceQueue {
        match self {
            Self::Device(device) => device.queue,
            Self::Mounted(mounted) => mounted.device.with(|device| device.queue),
        }
    }

    /// What the series of a run samples.
    pub(super) fn sample(&self) -> Sample {
        match self {
            Self::Device(device) => Sample::of(&device.ftl, None),
            Self::Mounted(mounted) => mounted.sample(),
        }
    }

    /// All counters begin at zero.
    pub(super) fn reset_counts(&mut self) {
        if let Self::Mounted(mounted) = self {
            mounted.reset = mounted.target.counts();
        }
        let now = self.now();
        self.host().reset_busy(now);
        match self {
            Self::Device(device) => device.queue.reset(now),
            Self::Mounted(mounted) => mounted.device.with(|device| device.queue.reset(now)),
        }
        self.with(|ftl, _| {
            ftl.reset_counts();
            ftl.media_mut().inner_mut().reset_utilisation();
        });
    }
}

/// The timeline of a run, if its observer wants one.
impl Rig {
    /// Whether a timeline is being written.
    pub(super) const fn is_logged(&self) -> bool {
        match self {
            Self::Device(device) => device.requests.is_some(),
            Self::Mounted(mounted) => mounted.requests.is_some(),
        }
    }

    /// The run begins: its engine has slots of these jobs.
    pub(super) fn begin_timeline<'a>(
        &mut self,
        observer: &mut dyn Observer,
        slots: impl Iterator<Item = (usize, &'a str)>,
    ) {
        let Some(timeline) = observer.timeline() else { return };
        self.with(|ftl, requests| {
            timeline.begin(ftl.media().geometry(), slots);
            if let Detail::Pblk(detail) = ftl.detail() {
                timeline.name_host(detail.cpu.as_ref());
            }
            timeline.start(ftl.media_mut().inner_mut(), requests);
            ftl.cpu_spans(Some(LOG_ROOM));
        });
    }

    /// The run pauses.
    pub(super) fn sample_timeline(&mut self, observer: &mut dyn Observer, now: Nanos) {
        let Some(timeline) = observer.timeline().filter(|_| self.is_logged()) else { return };
        self.with(|ftl, requests| {
            timeline.write_host(ftl.cpu_spans(Some(LOG_ROOM)));
            let levels = Levels::of(ftl);
            timeline.sample(now, levels, ftl.media_mut().inner_mut(), requests);
            if requests.is_none() {
                ftl.cpu_spans(None);
            }
        });
    }

    /// The run has ended, with a result or an error.
    pub(super) fn end_timeline(&mut self, observer: &mut dyn Observer) {
        let Some(timeline) = observer.timeline().filter(|_| self.is_logged()) else { return };
        self.with(|ftl, requests| {
            timeline.write_host(ftl.cpu_spans(None));
            timeline.end(ftl.media_mut().inner_mut(), requests);
        });
    }
}
