//! The host's side of the zones: bios come in, and are served in order per zone.
//!
//! - The zone table checks a command and moves the write pointer when it is submitted; what it refuses changes nothing.
//! - With a buffer a write completes when the buffer has it; without, when it is programmed. One with FUA completes
//!   when it is durable, and with it what precedes it in its zone; where a flush waits for idle units, when these are idle.
//! - A bio with PREFLUSH waits for a flush of both parts of the device.
//! - Reads pass everything.

use super::ZonedFtl;
use super::flush::Waiter;
use super::zone::{Request, read_only};
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::zone::{ZoneAction, ZoneId, ZoneState};
use nandscape_block::{Bio, BlockError, Completion, Done, Flags, Op, Reply, Submit, Token};
use nandscape_media::OpenChannel;
use nandscape_rt::invariant;

impl<M: OpenChannel> ZonedFtl<M> {
    /// Takes a write to a zone, or an append.
    pub(super) fn write_zone(&mut self, bio: Bio, token: Token) -> Result<Submit, FtlError> {
        let (zone, lba) = match bio.op {
            Op::ZoneAppend(ZoneId(zone)) => (zone, None),
            _ => (self.store.zones.shape.zone_of(bio.lba).0, Some(bio.lba)),
        };
        let at = match self.store.table.write(ZoneId(zone), lba, bio.sectors) {
            Ok(at) => at,
            Err(error) => return Ok(self.refused_by_zone(error)),
        };
        self.store.counts.own.appends += u64::from(lba.is_none());
        let mut request = Request::new(bio, at, token, self.store.now);
        if request.flags.has(Flags::PREFLUSH)
            && !self.store.rules.run.omits(OmittedRule::PreflushDrain)
        {
            request.awaits = self.begin_preflush(token)?;
        }
        self.enter(zone, request)
    }

    /// Serves a request if nothing precedes it in its zone, else queues it.
    pub(super) fn enter(&mut self, zone: u32, mut request: Request) -> Result<Submit, FtlError> {
        if self.store.zones.get(zone).queue.is_empty()
            && let Some(submit) = self.serve_request(zone, &mut request)?
        {
            return Ok(submit);
        }
        self.store.zones.get_mut(zone).queue.push_back(request);
        self.waiting.insert(zone);
        Ok(Submit::Pending)
    }

    /// Serves a request as far as it goes; `None` if it must wait.
    fn serve_request(
        &mut self,
        zone: u32,
        request: &mut Request,
    ) -> Result<Option<Submit>, FtlError> {
        match request.op {
            Op::Zone(_, ZoneAction::Finish) => {
                self.store.finish(zone)?;
                let at = self.store.no_earlier(self.store.front.link().command(request.since));
                return Ok(Some(Submit::Done(Done::ok(at))));
            }
            Op::Zone(..) => return self.store.serve_reset(zone, request),
            _ => {}
        }
        if let Some(flush) = request.awaits {
            match self.waiters.take_preflush(flush) {
                None => return Ok(None),
                Some(Err(error)) => {
                    self.abort_writes(zone, &error)?;
                    return Ok(Some(self.store.refused(error)));
                }
                Some(Ok(())) => request.awaits = None,
            }
        }
        if !self.store.zones.get(zone).failed && !self.store.open_zone(zone)? {
            return Ok(None);
        }
        if self.store.zones.get(zone).failed {
            return Ok(Some(self.store.refused(read_only(zone))));
        }
        if !self.store.admit(zone, request)? {
            return Ok(None);
        }
        if request.done < request.sectors {
            return Ok(Some(self.store.refused(read_only(zone))));
        }
        let stalled = self.store.now - request.since;
        self.store.counts.host.stall_ns_max = self.store.counts.host.stall_ns_max.max(stalled);
        self.taken(zone, request).map(Some)
    }

    /// A write is in: it completes, or waits until it is durable.
    fn taken(&mut self, zone: u32, request: &Request) -> Result<Submit, FtlError> {
        let at = request.arrived.max(self.store.now);
        let reply = match request.op {
            Op::ZoneAppend(_) => Reply::Appended(request.at),
            _ => Reply::None,
        };
        if !request.flags.has(Flags::FUA) || self.store.rules.config.keeps_buffer() {
            return Ok(Submit::Done(Done::new(at, Ok(reply))));
        }
        if self.store.waits_for_idle() {
            return Ok(match self.store.await_idle(at) {
                None => Submit::Done(Done::new(at, Ok(reply))),
                Some(idle) => {
                    self.wait(Waiter::write_until(request.token, idle, reply, request.since));
                    Submit::Pending
                }
            });
        }
        let entry = self.store.cover_zone(zone)?;
        if self.store.is_covered(&entry) {
            return Ok(Submit::Done(Done::new(at, Ok(reply))));
        }
        self.wait(Waiter::write(request.token, entry, reply, at, request.since));
        Ok(Submit::Pending)
    }

    /// Takes a write to the page-mapped region.
    pub(super) fn write_random(&mut self, bio: Bio, token: Token) -> Result<Submit, FtlError> {
        let precedes_nothing =
            self.store.rules.config.keeps_buffer() || self.store.waits_for_idle();
        if !bio.flags.has(Flags::PREFLUSH) || precedes_nothing {
            return Ok(self.store.submit_to_front(bio, token));
        }
        let entries = self.store.cover_all()?;
        if entries.is_empty() {
            invariant!(
                self.store.are_known_durable(|_| false),
                "prefix: what precedes a write to the page-mapped region is durable"
            );
            return Ok(self.store.submit_to_front(bio, token));
        }
        self.wait(Waiter::held(bio, token, entries, self.store.now));
        Ok(Submit::Pending)
    }

    /// Serves a zone management command.
    pub(super) fn manage(
        &mut self,
        id: ZoneId,
        action: ZoneAction,
        bio: Bio,
        token: Token,
    ) -> Result<Submit, FtlError> {
        let before = self.store.table.info(id)?;
        if let Err(error) = self.store.table.act(id, action) {
            return Ok(self.refused_by_zone(error));
        }
        let zone = id.0;
        let accepted = Submit::Done(Done::ok(self.store.front.link().command(self.store.now)));
        match action {
            ZoneAction::Open => self.store.counts.own.opens += 1,
            ZoneAction::Close => self.store.counts.own.closes += 1,
            ZoneAction::Finish
                if before.state != ZoneState::Full
                    || !self.store.zones.get(zone).queue.is_empty() =>
            {
                return self.enter(zone, Request::new(bio, before.start, token, self.store.now));
            }
            ZoneAction::Reset
                if before.state != ZoneState::Empty
                    || !self.store.zones.get(zone).queue.is_empty() =>
            {
                self.store.zones.get_mut(zone).resets += 1;
                return self.enter(zone, Request::new(bio, before.start, token, self.store.now));
            }
            ZoneAction::Finish | ZoneAction::Reset => {}
        }
        Ok(accepted)
    }

    /// A command that a zone refuses.
    fn refused_by_zone(&mut self, error: BlockError) -> Submit {
        self.store.counts.own.refused += 1;
        self.store.refused(error)
    }

    /// Serves what waits, as far as it goes, and completes what became durable.
    pub(super) fn pump(&mut self) -> Result<(), FtlError> {
        let mut goes_on = true;
        while goes_on {
            goes_on = self.settle_waiters()?;
            let mut next = self.waiting.first().copied();
            while let Some(zone) = next {
                goes_on |= self.pump_zone(zone)?;
                next = self.waiting.range(zone + 1..).next().copied();
            }
        }
        Ok(())
    }

    /// Serves the requests of a zone in order; whether any was.
    fn pump_zone(&mut self, zone: u32) -> Result<bool, FtlError> {
        let mut served = false;
        while let Some(mut request) = self.store.zones.get_mut(zone).queue.pop_front() {
            let outcome = self.serve_request(zone, &mut request);
            if matches!(outcome, Ok(None) | Err(_)) {
                self.store.zones.get_mut(zone).queue.push_front(request);
                return outcome.map(|_| served);
            }
            if let Ok(Some(Submit::Done(done))) = outcome {
                self.complete(request.token, done);
            }
            served = true;
        }
        self.waiting.remove(&zone);
        Ok(served)
    }

    /// What is queued behind a write that was refused fails, too, and the write pointer is where the zone ends.
    #[cold]
    fn abort_writes(&mut self, zone: u32, error: &BlockError) -> Result<(), FtlError> {
        let is_reset = |request: &Request| matches!(request.op, Op::Zone(_, ZoneAction::Reset));
        while let Some(request) = self.store.zones.get_mut(zone).queue.pop_front() {
            if is_reset(&request) {
                self.store.zones.get_mut(zone).queue.push_front(request);
                return Ok(());
            }
            self.complete(request.token, Done::new(self.store.now, Err(error.clone())));
        }
        let end = self.store.zones.shape.start_of(zone).plus(self.store.zones.get(zone).admitted);
        self.store.table.power_cut(ZoneId(zone), end)?;
        Ok(())
    }

    /// Hands out a completion, at its time or later.
    pub(super) fn complete(&mut self, token: Token, done: Done) {
        self.done.push(Completion { token, done });
    }
}
