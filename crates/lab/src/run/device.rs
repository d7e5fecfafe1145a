//! The device under a run: an FTL over media, with or without injected faults, and the hint
//! that stands between it and the workload.

use super::error::RunError;
use super::queue::DeviceQueue;
use crate::stack::{Fsync, Hints, Stack};
use crate::timeline::{Request, Requests};
use nandscape_block::{
    Attention, Bio, BlockDevice, Completion, DeviceCaps, Flags, FlushScope, Lba, Op, Reply, Submit,
    Token,
};
use nandscape_ftl::{AnyFtl, EraseUnitState, Ftl, FtlRun};
use nandscape_media::{FaultInjector, Faults, Layer, Media, PayloadMode};
use nandscape_rt::{Host, Nanos};
use std::ops::Range;

/// The media of every run: without faults where the stack injects none, so that everything above is
/// compiled once.
pub(super) type Flash = FaultInjector<Media>;

/// The FTL of every run, whatever its kind.
pub(super) type RunFtl = AnyFtl<Flash>;

/// `media` with the faults that the stack has before the measured phase.
pub(super) fn flash(stack: &Stack, media: Media, seed: u64) -> Flash {
    FaultInjector::new(media, stack.media.faults.before_measuring(), seed)
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

/// The media once power is gone: what the FTL did not flush is lost, what is in flight is done.
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
    let made = stack.ftl.format(media, ftl_run(stack, seed), stack.link.untimed());
    made.map_err(|error| RunError::ftl(stack, error))
}

/// Data sectors that can be written to free and open erase units, and to those that only wait to be erased.
pub(super) fn free_sectors(ftl: &impl Ftl) -> u64 {
    let unit_sectors = ftl.size().erase_unit_data_sectors;
    let units = ftl.erase_units().into_iter();
    let free = units.map(|unit| match unit.state {
        EraseUnitState::Free => unit_sectors,
        EraseUnitState::Open => unit_sectors.saturating_sub(unit.written),
        EraseUnitState::Full if unit.valid == 0 => unit_sectors,
        EraseUnitState::Full | EraseUnitState::Corrupt | EraseUnitState::Bad => 0,
    });
    free.map(u64::from).sum()
}

/// An FTL behind the hints of a stack: writes that begin in the journal's range carry JOURNAL, and
/// flushes ask for their job's file only, if that is wanted.
pub(super) struct HintedDevice {
    pub(super) ftl: RunFtl,
    /// The host of the run.
    pub(super) host: Host,
    /// Empty where nothing was hinted.
    journal: Range<u64>,
    fsync: Fsync,
    /// Requests in it, over time.
    pub(super) queue: DeviceQueue,
    /// CacheLookup for a timeline.
    pub(super) requests: Option<Box<Requests>>,
}

impl HintedDevice {
    /// `ftl` of a run on `host` behind these hints.
    pub(super) fn new(ftl: RunFtl, hints: &Hints, host: &Host) -> Self {
        let journal = hints.journal_range.clone().unwrap_or(0..0);
        let host = host.clone();
        let (fsync, queue) = (hints.fsync, DeviceQueue::default());
        Self { ftl, host, journal, fsync, queue, requests: None }
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
        let submit = match self.requests {
            Some(_) => self.submit_noted(now, bio, token),
            None => self.ftl.submit(now, bio, token),
        };
        self.queue.submitted(now, &submit);
        submit
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        self.ftl.next_event()
    }

    #[inline]
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        let known = done.len();
        self.ftl.advance(now, done);
        self.queue.completed(now, &done[known..]);
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
