//! The collector: victims, the requests that read them, and what their copies need of what is writable (pblk-gc.c).
//!
//! A victim is read in requests of up to 64 valid sectors, several at once. Which lines become victims is decided in
//! `gc`; what has arrived goes into rings in `copies`.

use super::capacity::REQUEST_SECTORS;
use super::counts::PblkCounts;
use super::events::EventKind;
use super::flash::Flash;
use super::ids::BufferId;
use super::intake::Buffers;
use super::layout::Cursor;
use super::mapcache::MapCache;
use super::pacing::Thread;
use super::rules::Rules;
use crate::common::ids::LineId;
use crate::common::oob::key_lba;
use crate::error::FtlError;
use nandscape_media::{Cause, Internal, OpenChannel, Ppa, Status};
use nandscape_rt::{Nanos, invariant};
use std::collections::VecDeque;

/// Victims at once (`PBLK_GC_L_QD`).
pub(super) const VICTIMS_MAX: usize = 4;
/// Requests read and not yet fully inserted (`PBLK_GC_MAX_READERS`).
pub(super) const REQUESTS_MAX: usize = 8;

/// Requests queued, read or not yet fully inserted (`PBLK_GC_RQ_QD`).
const REQUESTS_QUEUED: usize = 128;

/// A line being collected.
#[derive(Clone, Copy, Debug)]
pub(super) struct VictimLine {
    pub(super) id: LineId,
    pub(super) at: Cursor,
    /// Valid sectors that were not read yet, at most.
    pub(super) unread: u32,
    /// Requests not yet fully inserted.
    pub(super) requests: u32,
    /// Nothing can be read before its address list is.
    pub(super) ready_at: Nanos,
    /// Where its copies go.
    pub(super) buffer: BufferId,
}

/// Sectors on their way from a victim to the ring.
#[derive(Default, Debug)]
pub(super) struct Request {
    pub(super) line: LineId,
    pub(super) buffer: BufferId,
    pub(super) sectors: Vec<(Ppa, u32)>,
    pub(super) inserted: usize,
    /// Sectors whose mapping was looked up.
    pub(super) looked: u32,
}

/// Writable sectors that garbage collection needs for the victims that it has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Needs {
    /// So many, for every copy to be written.
    pub(super) now: u64,
    /// With so many more than its own valid sectors another victim can be started; fewer than none where
    /// the victims before it free more than that.
    pub(super) another: i64,
}

/// State of garbage collection.
#[derive(Default, Debug)]
pub(super) struct Collector {
    pub(super) thread: Thread,
    pub(super) victims: Vec<VictimLine>,
    pub(super) requests: Vec<Request>,
    pub(super) idle: Vec<usize>,
    pub(super) ready: VecDeque<usize>,
    /// Sectors that [`Self::pending_copies`] yields in all.
    pub(super) pending_sectors: u64,
    /// What they need of what is writable.
    pub(super) needs: Needs,
    /// The next victims may be any lines that gain anything, exempt ones too.
    pub(super) takes_all: bool,
    /// The buffer that took the copies of such victims last, until what they left of a unit is padded, and how many
    /// sectors had been let in then.
    pub(super) gathers_in: Option<(BufferId, u64)>,
    /// The mapping block that the first copy waits for.
    pub(super) awaits: Option<u32>,
}

impl Collector {
    /// Lines being collected.
    pub(super) fn victims(&self) -> u32 {
        self.victims.len() as u32
    }

    /// Whether no line is being collected.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.victims.is_empty()
    }

    pub(super) fn in_flight_requests(&self) -> usize {
        self.requests.len() - self.idle.len()
    }

    /// Copies that may still come, and where they go. A sector that was overwritten after it was read
    /// comes all the same, as a stale one.
    pub(super) fn pending_copies(&self) -> impl Iterator<Item = (BufferId, u64)> {
        let unread = self.victims.iter().map(|victim| (victim.buffer, u64::from(victim.unread)));
        let read = self.requests.iter();
        unread.chain(read.map(|it| (it.buffer, (it.sectors.len() - it.inserted) as u64)))
    }

    /// Whether a line with write errors is waiting for collection, or being collected.
    pub(super) fn has_werr<M: OpenChannel>(&self, flash: &Flash<M>) -> bool {
        let collected = |victim: &VictimLine| flash.lines.get(victim.id).werr;
        flash.victims.has_werr() || self.victims.iter().any(collected)
    }

    fn take_request(&mut self, victim: &VictimLine) -> usize {
        let number = self.idle.pop().unwrap_or_else(|| {
            self.requests.push(Request::default());
            self.requests.len() - 1
        });
        let request = &mut self.requests[number];
        (request.line, request.buffer) = (victim.id, victim.buffer);
        request.sectors.clear();
        (request.inserted, request.looked) = (0, 0);
        number
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let request =
            |r: &Request| size_of::<Request>() + r.sectors.capacity() * size_of::<(Ppa, u32)>();
        self.requests.iter().map(request).sum::<usize>() as u64
    }

    /// Victims that count against [`VICTIMS_MAX`]: all of them, or, for the kernel's thread, those whose
    /// reads are not all queued yet (`read_inflight_gc`).
    pub(super) fn in_flight(&self, now: Nanos) -> usize {
        if !self.thread.is_paced() {
            return self.victims.len();
        }
        let mut slots = REQUESTS_QUEUED.saturating_sub(self.in_flight_requests());
        let queued = |victim: &&VictimLine| {
            let requests = (victim.unread as usize).div_ceil(REQUEST_SECTORS);
            let queued = victim.ready_at <= now && requests <= slots;
            slots = slots.saturating_sub(requests);
            !queued
        };
        self.victims.iter().filter(queued).count()
    }

    /// Notes what the victims need. Without order it is room for all that may come. The victims of the
    /// kernel's thread are read one after the other into one buffer, so that each needs room for its
    /// own copies only, once the lines before it are free; the requests in flight may arrive out of
    /// order, and where media lost a sector a line may not become free.
    pub(super) fn plan_copies<M: OpenChannel>(
        &mut self,
        flash: &Flash<M>,
        buffers: &Buffers,
        rules: &Rules,
    ) {
        let all = self.pending_sectors;
        self.needs = Needs { now: all, another: all as i64 };
        let in_order = self.thread.is_paced() && buffers.all.len() == 1 && !rules.caches_map();
        if !in_order || flash.counts.media_errors.uncorrectable > 0 {
            return;
        }
        let out_of_order = (REQUESTS_MAX * REQUEST_SECTORS) as i64;
        let (mut most, mut before) = (0, 0);
        for victim in &self.victims {
            let requests = self.requests.iter().filter(|request| request.line == victim.id);
            let read: usize = requests.map(|it| it.sectors.len() - it.inserted).sum();
            let copies = i64::from(victim.unread) + read as i64;
            most = most.max(before + copies);
            before += copies - i64::from(flash.lines.get(victim.id).capacity);
        }
        let slack = if self.victims.len() > 1 { out_of_order } else { 0 };
        let now = (most + slack).max(0) as u64;
        self.needs = Needs { now: now.min(all), another: (before + out_of_order).min(all as i64) };
    }

    /// Reads one request of the oldest victim that is not fully read. Which victim that is.
    pub(super) fn read_some<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        cache: Option<&MapCache>,
    ) -> Result<Option<usize>, FtlError> {
        let end = flash.line_end();
        let Some(index) = self.victims.iter().position(|victim| victim.at < end) else {
            return Ok(None);
        };
        let mut victim = self.victims[index];
        let number = self.take_request(&victim);
        let arrived = self.fill_request(flash, &mut victim, number)?;
        if let Some(cache) = cache {
            self.requests[number].sort_by_block(cache);
        }
        let read = self.requests[number].sectors.len() as u32;
        let before = u64::from(victim.unread);
        invariant!(
            victim.unread >= read,
            "of victim {} no more is read than was valid when it was chosen",
            victim.id
        );
        victim.unread = if victim.at < end { victim.unread - read } else { 0 };
        self.pending_sectors += u64::from(read + victim.unread);
        self.pending_sectors -= before;
        if read == 0 {
            self.idle.push(number);
        } else {
            victim.requests += 1;
            flash.events.push(arrived, EventKind::GcRead(number));
        }
        self.victims[index] = victim;
        Ok(Some(index))
    }

    /// Reads valid sectors from the victim's cursor on until the request is full. When they arrive.
    fn fill_request<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        victim: &mut VictimLine,
        number: usize,
    ) -> Result<Nanos, FtlError> {
        let (width, end, ws_opt) = (flash.layout.width, flash.line_end(), flash.geometry.ws_opt);
        let mut arrived = flash.now.max(victim.ready_at);
        while victim.at < end {
            let ppa = flash.ppa_at(victim.id, victim.at);
            let mask = flash.lines.valid_mask(ppa, ws_opt);
            if mask != 0 {
                let room = REQUEST_SECTORS - self.requests[number].sectors.len();
                if mask.count_ones() as usize > room {
                    break;
                }
                arrived = arrived.max(self.requests[number].read_unit(
                    flash,
                    ppa,
                    mask,
                    victim.ready_at,
                )?);
            }
            victim.at.step(width);
        }
        Ok(arrived)
    }

    /// A request's data has arrived.
    pub(super) fn arrived(&mut self, number: usize) {
        self.ready.push_back(number);
    }

    /// All of a request is inserted. Which victim it was of.
    pub(super) fn request_done(&mut self, number: usize) -> Option<usize> {
        let line = self.requests[number].line;
        self.idle.push(number);
        let index = self.victims.iter().position(|victim| victim.id == line)?;
        self.victims[index].requests -= 1;
        Some(index)
    }

    /// The buffer that takes the copies of victims that any line could be, as long as no write was let in.
    pub(super) fn gathers_in(&self, stats: &PblkCounts) -> Option<BufferId> {
        let (buffer, admitted) = self.gathers_in?;
        (admitted == stats.admitted_sectors()).then_some(buffer)
    }

    /// Whether their copies wait for others to fill a unit with them.
    pub(super) fn is_gathering(&self, buffers: &Buffers, stats: &PblkCounts) -> bool {
        self.gathers_in(stats).is_some_and(|id| buffers.all[usize::from(id)].rb.backlog() > 0)
    }
}

impl Request {
    /// Copies whose mappings are in one block follow each other: they share its load, and where the
    /// cache is full of pinned blocks they share the unit whose padding frees it. Else each copy could
    /// pad a unit, and collecting a line could take more than it gains.
    fn sort_by_block(&mut self, cache: &MapCache) {
        let block = |key| key_lba(key).map(|lba| cache.block_of(lba));
        self.sectors.sort_unstable_by_key(|&(at, key)| (block(key), at));
    }

    /// Reads the sectors of one write unit that `mask` names, in one command.
    fn read_unit<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        ppa: Ppa,
        mask: u64,
        from: Nanos,
    ) -> Result<Nanos, FtlError> {
        let first = mask.trailing_zeros();
        let span = u64::BITS - mask.leading_zeros() - first;
        flash.media.set_cause(copying(span));
        let (now, ready) = (flash.now, flash.now.max(from));
        let outcome = flash.media.read(now, ready, ppa.plus(first), span, &mut Internal)?;
        let mut left = mask;
        while left != 0 {
            let at = ppa.plus(left.trailing_zeros());
            left &= left - 1;
            if outcome.status != Status::Ok && !flash.media.readable(at) {
                flash.counts.media_errors.uncorrectable += 1;
                continue;
            }
            let key = flash.media.oob(at).key;
            if let Some(lba) = key_lba(key) {
                flash.l2p.prefetch(lba);
            }
            self.sectors.push((at, key));
        }
        Ok(outcome.at)
    }
}

/// The cause of a read of so many sectors by the collector.
pub(super) const fn copying(sectors: u32) -> Cause {
    Cause { user: 0, gc: sectors as u8, pad: 0 }
}
