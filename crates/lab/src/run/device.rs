//! The device under a run: an FTL over media, with or without injected faults, and the hint
//! that stands between it and the workload.

use super::counts::{Counts, FileCounts};
use super::error::RunError;
use super::free::free_sectors;
use super::observer::Observer;
use crate::stack::{Fsync, Hints, Stack};
use crate::timeline::{LOG_ROOM, Request, Requests};
use nandscape_block::{
    Attention, Bio, BlockDevice, Completion, DeviceCaps, Flags, FlushScope, Lba, Op, Reply, Submit,
    Token,
};
use nandscape_fs::MountedFs;
use nandscape_fs::contract::CallCost;
use nandscape_ftl::{AnyFtl, Detail, Ftl, FtlRun, SectorCounts};
use nandscape_media::{FaultInjector, Faults, Layer, LinkTiming, Media, OpenChannel, PayloadMode};
use nandscape_rt::{Handle, Host, Nanos};
use nandscape_workload::wml::engine::Planted;
use std::ops::Range;
use std::rc::Rc;

/// The media of every run: without faults where the stack injects none, so that everything above is
/// compiled once.
pub(super) type Flash = FaultInjector<Media>;

/// The FTL of every run, whatever its kind.
pub(super) type RunFtl = AnyFtl<Flash>;

/// `media` with the faults of the stack.
pub(super) fn flash(stack: &Stack, media: Media, seed: u64) -> Flash {
    FaultInjector::new(media, stack.media.faults.commands.clone().unwrap_or_default(), seed)
}

/// `media` without faults.
pub(super) fn without_faults(media: Media) -> Flash {
    FaultInjector::new(media, Faults::default(), 0)
}

/// Serves a bio, however long that takes.
pub(super) fn serve(ftl: &mut RunFtl, bio: Bio) -> Result<Reply, RunError> {
    let token = Token(u64::MAX);
    let mut completions: Vec<Completion> = Vec::new();
    let done = match ftl.submit(ftl.now(), bio, token) {
        Submit::Done(done) => done,
        Submit::Pending => loop {
            if let Some(ours) = completions.drain(..).find(|completion| completion.token == token) {
                break ours.done;
            }
            let next = ftl.next_event().ok_or(RunError::Stuck)?;
            ftl.advance(next, &mut completions);
        },
    };
    done.result.map_err(|error| RunError::Failed(error.to_string()))
}

/// The media once power is gone: what the FTL did not flush is lost, what is under way is done.
pub(super) fn power_off(ftl: RunFtl) -> Flash {
    let mut media = ftl.power_off();
    media.inner_mut().power_cycle();
    media
}

/// What a run on `stack` decides beside the choices of its FTL.
pub(super) fn ftl_run(stack: &Stack, seed: u64) -> FtlRun {
    FtlRun { seed, keep_content: stack.media.payload != PayloadMode::None, omit: None }
}

/// A fresh FTL over `media`, as the stack says.
pub(super) fn format(stack: &Stack, media: Flash, seed: u64) -> Result<RunFtl, RunError> {
    let made = stack.ftl.format(media, ftl_run(stack, seed), LinkTiming::none());
    made.map_err(|error| RunError::ftl(stack, error))
}

/// An FTL behind the hints of a stack: writes that begin in the journal's range carry JOURNAL, and
/// flushes ask for their job's file only, if that is wanted.
pub(super) struct HintedDevice {
    pub(super) ftl: RunFtl,
    /// The host of the run.
    host: Host,
    /// Empty where nothing was hinted.
    journal: Range<u64>,
    fsync: Fsync,
    /// CacheLookup for a timeline.
    requests: Option<Box<Requests>>,
}

impl HintedDevice {
    /// `ftl` of a run on `host` behind these hints.
    pub(super) fn new(ftl: RunFtl, hints: &Hints, host: &Host) -> Self {
        let journal = hints.journal_range.clone().unwrap_or(0..0);
        let host = host.clone();
        Self { ftl, host, journal, fsync: hints.fsync, requests: None }
    }
}

/// A file system over a device, and what a workload needs to run on it.
pub(super) struct Mounted {
    pub(super) rt: Handle,
    pub(super) host: Host,
    pub(super) fs: Rc<dyn MountedFs>,
    /// Filesets that are there, once.
    pub(super) planted: Vec<Planted>,
    /// What calls take of a core.
    pub(super) cost: CallCost,
}

/// What a load runs on: an FTL behind hints, or files of a file system over one.
pub(super) trait LabDevice: BlockDevice {
    /// Changes the FTL, or the requests that are noted for a timeline.
    fn with<R>(&mut self, look: impl FnOnce(&mut RunFtl, &mut Option<Box<Requests>>) -> R) -> R;

    /// Looks at the FTL.
    fn look<R>(&self, look: impl FnOnce(&RunFtl) -> R) -> R;

    /// The host of the run.
    fn host(&self) -> &Host;

    /// The time that it has reached.
    fn now(&self) -> Nanos {
        self.look(Ftl::now)
    }

    /// Whether a timeline is being written.
    fn is_logged(&self) -> bool;

    /// The parts of the address space that the files of each clone of a job are; none: this is a block
    /// device.
    fn files(&self) -> Vec<Vec<Range<u64>>> {
        Vec::new()
    }

    /// What the file system counted since the last reset, if there is one.
    fn fs_counts(&self) -> Option<FileCounts> {
        None
    }

    /// Bytes of memory that the parts of the file system take, if there is one that can say.
    fn fs_memory(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The file system counts anew.
    fn reset_fs_counts(&mut self) {}

    /// The file system, for whoever calls it himself.
    fn mounted(&mut self) -> Option<Mounted> {
        None
    }

    /// What tasks of a file system wait for now, in words, if there is one.
    fn waiting(&self) -> Option<String> {
        None
    }

    /// The run is over: a file system is unmounted.
    fn close(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// The FTL, once everything above it is gone; `None`: something is not.
    fn release(self) -> Option<RunFtl>;

    /// Sectors placed since the last reset.
    fn sectors(&self) -> SectorCounts {
        self.look(Ftl::sectors)
    }

    /// Data sectors that can be written without reclaiming anything.
    fn free_sectors(&self) -> u64 {
        self.look(free_sectors)
    }

    /// What was counted since the last reset.
    fn counts(&self) -> Counts {
        let (cores, fs) = (self.host().busy(self.now()), self.fs_counts());
        self.look(|ftl| Counts {
            ftl: ftl.report(),
            utilisation: ftl.media().inner().utilisation(),
            link: ftl.link().counts(),
            cores,
            fs,
        })
    }

    /// Counts begin anew.
    fn reset_counts(&mut self) {
        self.reset_fs_counts();
        self.host().reset_busy(self.now());
        self.with(|ftl, _| {
            ftl.reset_counts();
            ftl.media_mut().inner_mut().reset_utilisation();
        });
    }

    /// The run begins: its engine has slots of these jobs.
    fn begin_timeline<'a>(
        &mut self,
        observer: &mut dyn Observer,
        slots: impl Iterator<Item = (usize, &'a str)>,
    ) {
        let Some(timeline) = observer.timeline() else { return };
        self.with(|ftl, requests| {
            timeline.begin(ftl.media().geometry(), slots);
            if let Detail::Pblk(detail) = ftl.report().detail {
                timeline.name_host(detail.cpu.as_ref());
            }
            timeline.start(ftl.media_mut().inner_mut(), requests);
            ftl.cpu_spans(Some(LOG_ROOM));
        });
    }

    /// The run pauses.
    fn sample_timeline(&mut self, observer: &mut dyn Observer, now: Nanos) {
        let Some(timeline) = observer.timeline().filter(|_| self.is_logged()) else { return };
        self.with(|ftl, requests| {
            timeline.write_host(ftl.cpu_spans(Some(LOG_ROOM)));
            timeline.sample(now, ftl.media_mut().inner_mut(), requests);
            if requests.is_none() {
                ftl.cpu_spans(None);
            }
        });
    }

    /// The run has ended, well or not.
    fn end_timeline(&mut self, observer: &mut dyn Observer) {
        let Some(timeline) = observer.timeline().filter(|_| self.is_logged()) else { return };
        self.with(|ftl, requests| {
            timeline.write_host(ftl.cpu_spans(None));
            timeline.end(ftl.media_mut().inner_mut(), requests);
        });
    }
}

impl LabDevice for HintedDevice {
    fn with<R>(&mut self, look: impl FnOnce(&mut RunFtl, &mut Option<Box<Requests>>) -> R) -> R {
        look(&mut self.ftl, &mut self.requests)
    }

    fn look<R>(&self, look: impl FnOnce(&RunFtl) -> R) -> R {
        look(&self.ftl)
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn is_logged(&self) -> bool {
        self.requests.is_some()
    }

    fn release(self) -> Option<RunFtl> {
        Some(self.ftl)
    }
}

impl HintedDevice {
    /// Submits a bio, and notes it.
    #[cold]
    fn submit_noted(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        let request = Request::new(now, &bio, token);
        let submit = self.ftl.submit(now, bio, token);
        if let Some(requests) = &mut self.requests {
            match &submit {
                Submit::Done(done) => requests.ended(request, done),
                Submit::Pending => requests.opened(request),
            }
        }
        submit
    }
}

impl BlockDevice for HintedDevice {
    #[inline]
    fn caps(&self) -> &DeviceCaps {
        self.ftl.caps()
    }

    #[inline]
    fn submit(&mut self, now: Nanos, mut bio: Bio, token: Token) -> Submit {
        if self.journal.contains(&bio.lba.0) && bio.op == Op::Write {
            bio.flags |= Flags::JOURNAL;
        }
        if self.fsync == Fsync::File {
            bio.scope = FlushScope::Owner;
        }
        if self.requests.is_some() {
            return self.submit_noted(now, bio, token);
        }
        self.ftl.submit(now, bio, token)
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        self.ftl.next_event()
    }

    #[inline]
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        let known = done.len();
        self.ftl.advance(now, done);
        if let Some(requests) = &mut self.requests {
            requests.completed(&done[known..]);
        }
    }

    #[inline]
    fn attention(&self) -> Attention {
        self.ftl.attention()
    }

    #[inline]
    fn prefetch_far(&self, lba: Lba) {
        self.ftl.prefetch_far(lba);
    }

    #[inline]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        self.ftl.prefetch_near(op, lba);
    }
}
