//! The host's side of the device: bios come in, cross the link, and are admitted to the write buffer in order.
//!
//! - A write needs its share of the buffer before its data cross the link; what does not fit waits, and
//!   everything after it that changes anything. Reads pass.
//! - With early completion a write completes when the buffer has it. A write with FUA, or any write without
//!   early completion, completes when it is programmed, its last page padded.
//! - A flush pads and programs the pages that are being filled and completes when everything that was
//!   admitted is programmed. A buffer that survives power cuts completes both at once. With NVMeVirt's rule
//!   (`config::Flush`) a flush, PREFLUSH and FUA have nothing programmed, and wait until all units have ended what
//!   they were sent; what else has to be durable is as ever.
//! - A discard is in order with writes (`discard.rs`), and durable at the next flush.
//! - A write of a part of a mapping unit is laid over the unit where that still waits in the buffer; else
//!   the rest is read from media (a read-modify-write). If that cannot be read, the write fails.

use super::DeviceFtl;
use super::flash::Flash;
use super::instance::Stream;
use super::program::By;
use super::region::{Admission, Piece, RegionMap};
use crate::common::firmware::Walk;
use crate::common::l2p::MapEntry;
use crate::common::waits::{Idle, Programmed};
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::{
    Bio, BlockError, Completion, Done, Flags, Lba, Op, Payload, SectorData, Submit, Tag, Token,
};
use nandscape_media::OpenChannel;
use nandscape_rt::{Nanos, defect, invariant};
use std::collections::VecDeque;

/// A set of FTL instances.
pub(super) type InstanceSet = u64;

/// A bio that changes something, on its way into the buffer.
#[derive(Debug)]
pub(super) struct Request {
    token: Token,
    op: Op,
    pub(super) lba: Lba,
    pub(super) sectors: u32,
    flags: Flags,
    payload: Payload,
    /// Sectors that are in.
    pub(super) done: u32,
    /// Sectors that crossed the link and have their share of the buffer, but are not in.
    crossed: u32,
    /// When all that crossed has arrived, and the firmware has mapped what is in; of a discard, when the controller has accepted
    /// it, and the firmware has unmapped what is done.
    pub(super) arrived: Nanos,
    /// Instances that it wrote to.
    touched: InstanceSet,
    /// It may begin when everything before this sequence is durable; where flushes wait for idle units, at this time. 0:
    /// nothing precedes it.
    awaits: u64,
    since: Nanos,
    failed: Option<BlockError>,
}

impl Request {
    /// The firmware makes the accesses so far, before which the request is not complete.
    #[inline]
    pub(super) fn note_accesses<M: OpenChannel, P: RegionMap>(&mut self, flash: &mut Flash<M, P>) {
        self.arrived = self.arrived.max(flash.access_for_host());
    }

    /// Content of a sector of the next piece.
    #[inline]
    fn sector(&self, index: u32) -> SectorData {
        match self.op {
            Op::Discard => SectorData::Tag(Tag::ZERO),
            _ => self.payload.sector(self.done + index),
        }
    }
}

/// Something that completes when the host's writes before a sequence are durable in some instances.
#[derive(Debug)]
struct Waiter {
    token: Token,
    covered: u64,
    instances: InstanceSet,
    since: Nanos,
}

/// Something that completes when all units are idle.
#[derive(Debug)]
struct IdleWaiter {
    token: Token,
    idle: Idle,
    since: Nanos,
}

/// What the host waits for.
#[derive(Default, Debug)]
pub(super) struct Port {
    queue: VecDeque<Request>,
    waiters: Vec<Waiter>,
    idle_waiters: Vec<IdleWaiter>,
    /// The last program that completed while something waited.
    programmed: Programmed,
}

impl Port {
    /// A program of a page of the host's completed. Something may have waited for it.
    #[inline]
    pub(super) fn note_programmed(&mut self, programmed: impl FnOnce() -> Programmed) {
        if !self.waiters.is_empty() {
            self.programmed = programmed();
        }
    }

    /// Everything that waits is dropped; its tokens.
    pub(super) fn abandon(&mut self) -> Vec<Token> {
        let queued = self.queue.drain(..).map(|request| request.token);
        let waiters = self.waiters.drain(..).map(|waiter| waiter.token);
        let idle_waiters = self.idle_waiters.drain(..).map(|waiter| waiter.token);
        queued.chain(waiters).chain(idle_waiters).collect()
    }

    /// Bytes of RAM.
    pub(super) fn bytes(&self) -> u64 {
        (self.queue.capacity() * size_of::<Request>()
            + self.waiters.capacity() * size_of::<Waiter>()
            + self.idle_waiters.capacity() * size_of::<IdleWaiter>()) as u64
    }
}

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// The last program that completed while something waited.
    pub(crate) const fn programmed(&self) -> Programmed {
        self.port.programmed
    }

    /// Takes a bio that changes something, or a flush.
    pub(super) fn enter(&mut self, bio: Bio, token: Token) -> Result<Submit, FtlError> {
        let awaits = if bio.flags.has(Flags::PREFLUSH) || bio.op == Op::Flush {
            self.precede(bio.op)?
        } else {
            0
        };
        let mut request = Request {
            token,
            op: bio.op,
            lba: bio.lba,
            sectors: bio.sectors,
            flags: bio.flags,
            payload: bio.payload,
            done: 0,
            crossed: 0,
            arrived: match bio.op {
                Op::Discard => self.flash.link.accepted(self.flash.begins()),
                _ => self.flash.now,
            },
            touched: 0,
            awaits,
            since: self.flash.now,
            failed: None,
        };
        if (self.port.queue.is_empty() || bio.op == Op::Flush)
            && let Some(submit) = self.serve(&mut request)?
        {
            return Ok(submit);
        }
        self.port.queue.push_back(request);
        Ok(Submit::Pending)
    }

    /// Sends on what precedes a flush or a bio with PREFLUSH; what that waits for. A flush by NVMeVirt's rule waits when it
    /// is served.
    fn precede(&mut self, op: Op) -> Result<u64, FtlError> {
        if !self.flash.waits_for_idle() {
            self.push_out(InstanceSet::MAX)?;
            return Ok(self.flash.next_seq);
        }
        let idle = if op == Op::Flush { None } else { self.flash.await_idle(self.flash.now) };
        Ok(idle.map_or(0, |idle| idle.from.0))
    }

    /// Whether what precedes a request has come.
    #[inline]
    fn is_preceded(&mut self, awaits: u64) -> bool {
        if awaits == 0 {
            return true;
        }
        if self.flash.waits_for_idle() {
            return awaits <= self.flash.now.0;
        }
        self.flash.rules.run.omits(OmittedRule::PreflushDrain)
            || self.is_durable(awaits, InstanceSet::MAX)
    }

    /// Serves a request as far as it goes; `None` if it must wait.
    fn serve(&mut self, request: &mut Request) -> Result<Option<Submit>, FtlError> {
        self.flash.walk = Walk::default();
        if request.op == Op::Flush {
            return self.flush(request);
        }
        if !self.is_preceded(request.awaits) {
            return Ok(None);
        }
        let admitted = match request.op {
            Op::Discard => self.discard(request)?,
            _ => self.admit(request)?,
        };
        if !admitted {
            return Ok(None);
        }
        let stalled = self.flash.now - request.since;
        self.flash.counts.host.stall_ns_max = self.flash.counts.host.stall_ns_max.max(stalled);
        self.admitted(request).map(Some)
    }

    /// A request is in the buffer: it completes, or waits until it is durable.
    fn admitted(&mut self, request: &mut Request) -> Result<Submit, FtlError> {
        let at = request.arrived.max(self.flash.now);
        if let Some(error) = request.failed.take() {
            return Ok(Submit::Done(Done::new(at, Err(error))));
        }
        let early = self.flash.rules.config.buffer.early_completion || request.op == Op::Discard;
        let durable = request.flags.has(Flags::FUA) || !early;
        if !durable || self.flash.rules.config.keeps_buffer() {
            return Ok(Submit::Done(Done::ok(at)));
        }
        // A write that completes when it is programmed does so whatever a flush is.
        if early && self.flash.waits_for_idle() {
            return Ok(self.complete_idle(request, at));
        }
        if request.op == Op::Discard {
            request.touched = InstanceSet::MAX;
        }
        self.push_out(request.touched)?;
        let (covered, instances) = (self.flash.next_seq, request.touched);
        if self.is_durable(covered, instances) {
            return Ok(Submit::Done(Done::ok(at)));
        }
        self.wait_durable(request, covered, instances);
        Ok(Submit::Pending)
    }

    /// A flush: everything that was admitted before must be durable, or all units idle.
    fn flush(&mut self, request: &Request) -> Result<Option<Submit>, FtlError> {
        if self.flash.waits_for_idle() {
            return Ok(Some(self.complete_idle(request, self.flush_accepted())));
        }
        if !self.flash.rules.config.keeps_buffer() && !self.emit_all_trims()? {
            return Ok(None);
        }
        self.push_out(InstanceSet::MAX)?;
        let covered = self.flash.next_seq;
        if self.is_durable(covered, InstanceSet::MAX) {
            self.flash.counts.flush.empty += 1;
            return Ok(Some(Submit::Done(Done::ok(self.flush_accepted()))));
        }
        self.wait_durable(request, covered, InstanceSet::MAX);
        Ok(Some(Submit::Pending))
    }

    /// Whether no page of some instances is being filled for the host.
    fn is_sent(&self, instances: InstanceSet) -> bool {
        let of = (0..).zip(&self.instances).filter(|(instance, _)| instances >> instance & 1 != 0);
        of.map(|(_, of)| of.host.page).all(|page| self.buffer.filling(page).is_none())
    }

    /// When a flush that has nothing to wait for completes.
    fn flush_accepted(&self) -> Nanos {
        self.flash.link.command(self.flash.begins())
    }

    fn wait_durable(&mut self, request: &Request, covered: u64, instances: InstanceSet) {
        invariant!(
            self.flash.rules.run.omits_any() || self.is_sent(instances),
            "places before data: what a waiter waits for is on its way to media"
        );
        self.flash.counts.flush.drained_sectors += u64::from(self.buffer.used());
        let Request { token, since, .. } = *request;
        self.port.waiters.push(Waiter { token, covered, instances, since });
    }

    /// A request completes when all units are idle: at `at` if they are by then. It may have waited for that before it was
    /// served.
    fn complete_idle(&mut self, request: &Request, at: Nanos) -> Submit {
        let Request { token, since, awaits, .. } = *request;
        let Some(idle) = self.flash.await_idle(at) else {
            let (flush, media) = (&mut self.flash.counts.flush, &self.flash.media);
            match awaits {
                0 => flush.empty += 1,
                _ => flush.add_idle_wait(media, since..self.flash.now, Idle::of(media).last),
            }
            return Submit::Done(Done::ok(at));
        };
        self.port.idle_waiters.push(IdleWaiter { token, idle, since });
        Submit::Pending
    }

    /// Programs what the host's pages of some instances hold, trim records included.
    pub(super) fn push_out(&mut self, instances: InstanceSet) -> Result<(), FtlError> {
        if self.flash.rules.config.keeps_buffer() {
            return Ok(());
        }
        if instances == InstanceSet::MAX {
            // What finds no page now is sent by `push_awaited`.
            self.emit_all_trims()?;
        }
        if self.flash.rules.omits_one_shot_flush() {
            return Ok(());
        }
        for instance in 0..self.instances.len() {
            if instances >> instance & 1 != 0 {
                self.program(instance, Stream::Host)?;
            }
        }
        Ok(())
    }

    /// Whether the host's writes before a sequence are durable in some instances.
    pub(super) fn is_durable(&mut self, covered: u64, instances: InstanceSet) -> bool {
        if self.flash.rules.config.keeps_buffer() {
            return true;
        }
        let omitted = self.flash.rules.omits_one_shot_flush();
        let all = instances == InstanceSet::MAX && !omitted;
        let trims = if all { self.trims_durable() } else { u64::MAX };
        let of = (0..self.instances.len()).filter(|instance| instances >> instance & 1 != 0);
        let oldest = of
            .filter_map(|instance| {
                let host = &self.instances[instance].host;
                host.flight
                    .oldest()
                    .or_else(|| if omitted { None } else { self.buffer.filling(host.page) })
            })
            .min();
        let durable = oldest.is_none_or(|oldest| oldest >= covered) && trims >= covered;
        invariant!(
            !durable || self.is_known_durable(covered, instances),
            "everything that was admitted before sequence {covered} is durable"
        );
        durable
    }

    /// Serves what waits, as far as it goes, and completes what became durable.
    pub(super) fn pump(&mut self) -> Result<(), FtlError> {
        self.serve_queue()?;
        // On media without latency the program has ended, and the first request waits for no event.
        while self.push_awaited()? {
            self.serve_queue()?;
        }
        let mut index = 0;
        while let Some(waiter) = self.port.waiters.get(index) {
            let (covered, instances) = (waiter.covered, waiter.instances);
            if self.is_durable(covered, instances) {
                let Waiter { token, since, .. } = self.port.waiters.remove(index);
                let time = since..self.flash.now;
                let last = &self.port.programmed;
                self.flash.counts.flush.add_wait(&self.flash.media, time, last);
                self.done.push(Completion { token, done: Done::ok(self.flash.now) });
            } else {
                index += 1;
            }
        }
        self.end_idle_waits();
        Ok(())
    }

    /// Completes what waited for units that are idle now.
    fn end_idle_waits(&mut self) {
        let now = self.flash.now;
        let ended = |waiter: &mut IdleWaiter| waiter.idle.has_come(now);
        for IdleWaiter { token, idle, since } in self.port.idle_waiters.extract_if(.., ended) {
            self.flash.counts.flush.add_idle_wait(&self.flash.media, since..now, idle.last);
            self.done.push(Completion { token, done: Done::ok(now) });
        }
    }

    /// Serves requests in their order, up to the first that must wait.
    fn serve_queue(&mut self) -> Result<(), FtlError> {
        while let Some(mut request) = self.port.queue.pop_front() {
            match self.serve(&mut request) {
                Ok(Some(Submit::Done(done))) => {
                    self.done.push(Completion { token: request.token, done });
                }
                Ok(Some(Submit::Pending)) => {}
                Ok(None) => {
                    self.port.queue.push_front(request);
                    break;
                }
                Err(error) => {
                    self.port.queue.push_front(request);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Sends trim records that a waiter or the first request waits for, and that found no page before. Whether all of them
    /// were.
    fn push_awaited(&mut self) -> Result<bool, FtlError> {
        if self.flash.rules.config.keeps_buffer() || !self.discards.log.has_pending() {
            return Ok(false);
        }
        let waiting =
            self.port.waiters.iter().filter(|waiter| waiter.instances == InstanceSet::MAX);
        let first = self.port.queue.front().map(|request| request.awaits);
        let first = first.filter(|_| !self.flash.waits_for_idle());
        let covered = waiting.map(|waiter| waiter.covered).chain(first).max().unwrap_or(0);
        if self.trims_durable() >= covered || !self.emit_all_trims()? {
            return Ok(false);
        }
        // Records that filled their page were programmed with it.
        if !self.flash.rules.omits_one_shot_flush() {
            self.program(0, Stream::Host)?;
        }
        Ok(true)
    }

    /// Admits as much of a write as fits; whether that was all.
    fn admit(&mut self, request: &mut Request) -> Result<bool, FtlError> {
        if request.done + request.crossed == 0 {
            self.collect_before()?;
            match self.admission(request.lba, request.sectors)? {
                Admission::Admitted => {}
                Admission::AfterDiscards => return Ok(false),
                Admission::Refused(error) => {
                    request.failed = Some(error);
                    return Ok(true);
                }
            }
        }
        while request.done < request.sectors {
            if request.crossed == 0 && !self.cross(request) {
                return Ok(false);
            }
            let lba = request.lba.plus(u64::from(request.done));
            let piece = self.flash.map.piece(lba, u64::from(request.crossed));
            let instance = self.flash.map.instance_of(piece.unit);
            if !self.make_slot(instance)? {
                return Ok(false);
            }
            self.insert(request, instance, piece)?;
            if self.flash.rules.run.omits(OmittedRule::FuaInstances) {
                request.touched = 0;
            }
            request.touched |= 1 << instance;
            request.done += piece.sectors;
            request.crossed -= piece.sectors;
            self.use_credits(instance, self.flash.map.unit_sectors())?;
        }
        self.collect_after(request.touched)?;
        Ok(true)
    }

    /// Has the next part of a write cross the link, if the buffer can take it: all of it, unless that is
    /// more than the buffer holds beside pages that are being filled.
    fn cross(&mut self, request: &mut Request) -> bool {
        let unit = self.flash.map.unit_sectors();
        let largest = self.flash.rules.sizes.buffer
            - self.instances.len() as u32 * self.flash.rules.sizes.page;
        let lba = request.lba.plus(u64::from(request.done));
        let most = (largest / unit).saturating_sub(1).max(1) * unit - self.flash.map.index_of(lba);
        let sectors = (request.sectors - request.done).min(most);
        let units = self.flash.map.unit_of(lba.plus(u64::from(sectors) - 1)) + 1
            - self.flash.map.unit_of(lba);
        if self.buffer.free_sectors() < units as u32 * unit {
            return false;
        }
        request.crossed = sectors;
        let begins = self.flash.begins();
        request.arrived = self.flash.link.data_in(self.flash.now, begins, sectors).end;
        true
    }

    /// Puts a piece of a write into the buffer.
    pub(super) fn insert(
        &mut self,
        request: &mut Request,
        instance: usize,
        piece: Piece,
    ) -> Result<(), FtlError> {
        let unit = self.flash.map.unit_sectors();
        let sectors = if request.op == Op::Discard { 0 } else { piece.sectors };
        self.flash.counts.host.written += u64::from(sectors);
        self.flash.counts.in_use_sum += u128::from(self.flash.lines.in_use) * u128::from(sectors);
        if piece.sectors < unit && self.overlay(request, instance, piece) {
            return Ok(());
        }
        let before = self.flash.map.get(Lba(piece.unit));
        let mut ready = request.arrived;
        if piece.sectors < unit {
            match self.flash.read_rest(piece, before)? {
                Ok(at) => ready = ready.max(at),
                Err(error) => {
                    request.failed.get_or_insert(error);
                    return Ok(());
                }
            }
        }
        let Some(id) = self.instances[instance].host.page else {
            return Err(defect!("a piece that was admitted has a page that is being filled").into());
        };
        let (seq, slot) =
            (self.flash.next_seq, self.buffer.first_slot(id) + self.buffer.get(id).filled);
        self.note_entered(instance, Stream::Host, seq);
        for index in 0..unit {
            let data = self.merged(request, piece, before, index);
            let key = self.flash.map.first_of(piece.unit).0 as u32 + index;
            self.buffer.push(id, key, self.flash.next_seq, data);
            self.flash.next_seq += 1;
        }
        self.buffer.charge(id, unit);
        let page = self.buffer.get_mut(id);
        page.ready = page.ready.max(ready);
        self.flash.counts.sectors.user += u64::from(sectors);
        if request.flags.has(Flags::JOURNAL) {
            self.flash.counts.sectors.journal += u64::from(sectors);
        }
        self.flash.counts.sectors.pad += u64::from(unit - sectors);
        self.flash.counts.own.rmw_sectors += u64::from(unit - sectors);
        let place = MapEntry::Buffered(slot);
        let superseded = self.flash.map.update(Lba(piece.unit), place, &mut self.flash.walk);
        request.note_accesses(&mut self.flash);
        match superseded {
            MapEntry::Flash(at) => {
                invariant!(
                    self.flash.media.oob(at).seq < seq,
                    "sequence: the copy at {at:?} is older than sequence {seq}, which supersedes it"
                );
                let line = self.flash.lines.of(at);
                self.shadow.note(|ledger| ledger.superseded(line, seq));
                self.note_superseded(slot, at);
                self.invalidate(at, By::Write)?;
            }
            MapEntry::Unmapped => self.flash.map.came(instance),
            MapEntry::Buffered(_) => {}
        }
        self.program_full(instance, Stream::Host)
    }

    /// Lays a piece over its unit in the page that is being filled for the host. Whether it is there.
    fn overlay(&mut self, request: &mut Request, instance: usize, piece: Piece) -> bool {
        let found = self.flash.map.look_up(Lba(piece.unit), &mut self.flash.walk);
        request.note_accesses(&mut self.flash);
        let MapEntry::Buffered(slot) = found else { return false };
        let id = self.buffer.page_of(slot);
        if self.instances[instance].host.page != Some(id) {
            return false;
        }
        for index in 0..piece.sectors {
            let data = self.flash.kept(|| request.sector(index));
            self.buffer.set_data(slot + piece.first + index, data);
        }
        let page = self.buffer.get_mut(id);
        page.ready = page.ready.max(request.arrived);
        true
    }

    /// Content of a unit's sector after a piece was laid over it.
    #[inline]
    fn merged(&self, request: &Request, piece: Piece, before: MapEntry, index: u32) -> SectorData {
        let from_host = (piece.first..piece.first + piece.sectors).contains(&index);
        self.flash.kept(|| match before {
            _ if from_host => request.sector(index - piece.first),
            MapEntry::Unmapped => SectorData::Tag(Tag::ZERO),
            MapEntry::Buffered(slot) => self.buffer.data(slot + index).clone(),
            MapEntry::Flash(at) => self.flash.media.data(at.plus(index)),
        })
    }
}
