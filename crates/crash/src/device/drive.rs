//! Drives a device through the requests of a host in virtual time, keeps the reference model
//! informed, and stops the moment that power is cut.
//!
//! What counts as seen by the host: completions strictly before the instant of the cut, in order
//! of time. When power goes off between two media commands, everything that the device answered
//! in that very call is void.

use crate::device::host::HostView;
use crate::device::model::{Issue, Mismatch, Model, Object};
use crate::device::resets::LostCopy;
use crate::device::subject::{DeviceUnderTest, Power, TriggerMode};
use crate::draw::load::Next;
use crate::draw::plan::{CutPlan, Trigger};
use crate::event::{Content, EventKind};
use crate::outcome::Counts;
use crate::request::Request;
use crate::shrink::reduction::Cut as Pin;
use nandscape_block::{
    BlockError, Completion, Done, Lba, Payload, Reply, SectorData, Submit, Token,
};
use nandscape_rt::Nanos;
use std::any::Any;
use std::collections::BTreeMap;

/// Steps without time passing after which the device counts as stuck.
const STEPS_WITHOUT_PROGRESS_MAX: u32 = 2_000_000;

/// What broke, before anybody knows in which seed.
#[derive(Clone, Debug)]
pub(crate) struct CheckFailure {
    pub(crate) what: String,
    pub(crate) mismatch: Option<Mismatch>,
}

impl CheckFailure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), mismatch: None }
    }

    /// `who` panicked, with these words.
    pub(crate) fn panicked(who: &str, payload: &(dyn Any + Send)) -> Self {
        let words = payload.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| payload.downcast_ref::<&str>().copied());
        Self::new(format!("{who} panicked: {}", words.unwrap_or("without words")))
    }

    /// The object at fault.
    pub(crate) fn object(&self) -> Option<Object> {
        self.mismatch.as_ref().map(|mismatch| mismatch.object)
    }

    pub(crate) fn content(what: &str, mismatch: Mismatch) -> Self {
        Self { what: what.into(), mismatch: Some(mismatch) }
    }
}

/// How a phase ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Power is to be cut at this instant, which is this in relation to the last request of the load.
    Cut(Nanos, Pin),
    /// All requests are answered.
    Finished,
}

/// A submitted request.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    request: Request,
    issue: Issue,
}

/// What the next step is.
enum Step {
    Device,
    Completion,
    Submit(Request),
}

/// Progress of the cut that is planned.
#[derive(Debug)]
struct Cut<'a> {
    plan: &'a CutPlan,
    requests: u64,
    submitted: u64,
    acked: u64,
    /// What the device has written for itself, and how often that has grown.
    background: (u64, u64),
    at: Nanos,
    last: LastRequest,
}

/// The last request of the load that was submitted: its number, when, and the media commands before it.
#[derive(Clone, Copy, Debug)]
struct LastRequest {
    number: u32,
    at: Nanos,
    commands: u64,
}

impl<'a> Cut<'a> {
    fn new(plan: &'a CutPlan, began: Nanos, device: &impl DeviceUnderTest) -> Self {
        let at = match plan.trigger {
            Trigger::Instant(after) => began + after + Nanos(1),
            _ => Nanos::MAX,
        };
        let last = LastRequest { number: 0, at: began, commands: device.media_commands() };
        let background = (device.background_sectors(), 0);
        Self { plan, requests: 0, submitted: 0, acked: 0, background, at, last }
    }

    fn watch(&self) -> TriggerMode {
        match self.plan.trigger {
            Trigger::Command(kind, n) => TriggerMode::Notice(kind, n),
            Trigger::OffAfter(n) => TriggerMode::OffAfter(n),
            _ => TriggerMode::Nothing,
        }
    }

    /// Where the cut is in relation to the last request: by media commands if it is between two of them.
    fn pin(&self, at: Nanos, power: Power, commands: u64) -> Pin {
        match power {
            Power::Off(_) => Pin::AfterCommands(commands - self.last.commands),
            _ => Pin::After(at.saturating_sub(self.last.at + Nanos(1))),
        }
    }

    fn note_submitted(&mut self, request: &Request) {
        self.requests += 1;
        self.submitted += u64::from(request.is_barrier());
    }

    /// Sets the instant of the cut when the trigger has come, or the load has ended without it.
    fn update(&mut self, now: Nanos, device: &impl DeviceUnderTest, ended: bool) {
        if let Trigger::BackgroundWrite(_) = self.plan.trigger {
            let (before, grown) = self.background;
            let sectors = device.background_sectors();
            self.background = (sectors, grown + u64::from(sectors > before));
        }
        let due = match (self.plan.trigger, device.power()) {
            (Trigger::Request(n), _) => self.requests >= n,
            (Trigger::BarrierSubmitted(n), _) => self.submitted >= n,
            (Trigger::BarrierAcked(n), _) => self.acked >= n,
            (Trigger::BackgroundWrite(n), _) => self.background.1 >= n,
            (_, Power::Noticed(_)) => true,
            _ => false,
        };
        if due || ended {
            self.at = self.at.min(now + self.plan.delay + Nanos(1));
        }
    }
}

/// A device being driven.
pub(crate) struct Driver<'a, 'h, S> {
    device: &'a mut S,
    host: &'a mut (dyn HostView + 'h),
    model: &'a mut Model,
    counts: &'a mut Counts,
    faulty: bool,
    now: Nanos,
    tokens: u64,
    in_flight: BTreeMap<Token, InFlight>,
    /// Completions whose time is known, by time and order of arrival.
    due: BTreeMap<(Nanos, u64), Completion>,
    fresh: Vec<Completion>,
    /// What media have lost of the sectors of each read in flight. While it goes on copies may be superseded, and erased.
    lost: BTreeMap<Token, Vec<(Lba, SectorData)>>,
    /// Contents of reads, kept instead of checked.
    collected: Option<Vec<(Object, SectorData)>>,
}

impl<'a, 'h, S: DeviceUnderTest> Driver<'a, 'h, S> {
    /// Continues at `now`. With `faulty`, refused requests are no trouble.
    pub(crate) fn new(
        device: &'a mut S,
        host: &'a mut (dyn HostView + 'h),
        model: &'a mut Model,
        counts: &'a mut Counts,
        faulty: bool,
        now: Nanos,
    ) -> Self {
        Self {
            device,
            host,
            model,
            counts,
            faulty,
            now,
            tokens: 0,
            in_flight: BTreeMap::new(),
            due: BTreeMap::new(),
            fresh: Vec::new(),
            lost: BTreeMap::new(),
            collected: None,
        }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// Runs the host's phase until the planned cut, or to its end when none is planned.
    pub(crate) fn run(&mut self, plan: Option<&CutPlan>) -> Result<End, CheckFailure> {
        let mut cut = plan.map(|plan| Cut::new(plan, self.now, &*self.device));
        self.device.watch(cut.as_ref().map_or(TriggerMode::Nothing, Cut::watch));
        let next = self.host.next();
        let depth = self.host.requests().depth();
        let mut queue = Queue { next, depth, not_before: self.now };
        let mut idle_steps = 0;
        loop {
            if matches!(self.device.power(), Power::Off(_)) {
                return match &cut {
                    Some(cut) if cut.plan.trigger.is_off() => {
                        Ok(self.end_at(cut, self.now + Nanos(1)))
                    }
                    _ => Err(self.stuck("device not idle within the command limit")),
                };
            }
            queue.settle(self.host, self.now, self.in_flight.is_empty());
            let ended = queue.next == Next::End;
            if ended && cut.is_none() && self.in_flight.is_empty() {
                return Ok(End::Finished);
            }
            let cut_at = cut.as_mut().map_or(Nanos::MAX, |cut| {
                cut.update(self.now, &*self.device, ended);
                cut.at
            });
            let Some((at, step)) = self.next_step(&queue).filter(|(at, _)| *at < cut_at) else {
                if let Some(cut) = cut.filter(|cut| cut.at < Nanos::MAX) {
                    return Ok(self.end_at(&cut, cut_at));
                }
                return Err(self.stuck("deadlock: no pending event"));
            };
            idle_steps = if at > self.now { 0 } else { idle_steps + 1 };
            if idle_steps > STEPS_WITHOUT_PROGRESS_MAX {
                return Err(self.stuck("no virtual-time progress"));
            }
            self.now = self.now.max(at);
            match step {
                Step::Device => {
                    self.advance();
                    self.check_resets()?;
                }
                Step::Completion => self.complete(cut.as_mut())?,
                Step::Submit(request) => {
                    cut.iter_mut().for_each(|cut| self.note_last(cut));
                    self.submit(request);
                    self.check_resets()?;
                    cut.iter_mut().for_each(|cut| cut.note_submitted(&request));
                    queue.next = self.host.next();
                }
            }
        }
    }

    fn end_at(&self, cut: &Cut<'_>, at: Nanos) -> End {
        End::Cut(at, cut.pin(at, self.device.power(), self.device.media_commands()))
    }

    /// A request is about to be submitted: notes it, and the power switch may count from here.
    fn note_last(&mut self, cut: &mut Cut<'_>) {
        let number = self.host.requests().drawn();
        if number == cut.last.number {
            return;
        }
        cut.last = LastRequest { number, at: self.now, commands: self.device.media_commands() };
        if let Trigger::OffAfterLastRequest(n) = cut.plan.trigger
            && self.host.requests().is_drawn()
        {
            self.device.watch(TriggerMode::OffAfter(n));
        }
    }

    /// Runs the host's phase to its end and returns what it read.
    pub(crate) fn read_all(&mut self) -> Result<Vec<(Object, SectorData)>, CheckFailure> {
        self.collected = Some(Vec::new());
        self.run(None)?;
        Ok(self.collected.take().unwrap_or_default())
    }

    /// The earliest of: the device's own work, a completion, a submission; in this order.
    fn next_step(&self, queue: &Queue) -> Option<(Nanos, Step)> {
        let device = self.device.next_event().map(|at| (at, Step::Device));
        let completion = self.due.keys().next().map(|(at, _)| (*at, Step::Completion));
        let submit = match queue.next {
            Next::Submit(request) if self.in_flight.len() < queue.depth => {
                Some((queue.not_before.max(self.now), Step::Submit(request)))
            }
            _ => None,
        };
        [device, completion, submit].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn advance(&mut self) {
        self.device.advance(self.now, &mut self.fresh);
        let on = !matches!(self.device.power(), Power::Off(_));
        for completion in std::mem::take(&mut self.fresh) {
            if on {
                self.expect(completion);
            }
        }
    }

    /// No reset may take the newest durable copy of a sector whose loss a power cut would show.
    pub(crate) fn check_resets(&mut self) -> Result<(), CheckFailure> {
        for lost in self.device.lost_copies() {
            let checked = self.model.check_left(self.host.object(lost.lba), &lost.left);
            checked.map_err(|mismatch| {
                let LostCopy { lba, chunk, at, .. } = lost;
                let what = format!(
                    "a reset of unit {} chunk {} at {at} erases the only durable copy of {lba}",
                    chunk.unit.0, chunk.chunk
                );
                CheckFailure { what, mismatch: Some(mismatch) }
            })?;
        }
        Ok(())
    }

    fn expect(&mut self, completion: Completion) {
        self.tokens += 1;
        if let Err(BlockError::Io { lba, .. }) = completion.done.result {
            self.note_lost(completion.token, lba, 1);
        }
        self.due.insert((completion.done.at, self.tokens), completion);
    }

    fn note_lost(&mut self, token: Token, first: Lba, sectors: u32) {
        let lost = self.device.unreadable(first.0..first.0 + u64::from(sectors));
        if !lost.is_empty() {
            self.lost.entry(token).or_default().extend(lost);
        }
    }

    fn submit(&mut self, request: Request) {
        self.tokens += 1;
        let token = Token(self.tokens);
        if let Request::Read(lba, sectors) = request {
            self.note_lost(token, lba, sectors);
        }
        let (issue, payload) = self.issue(&request);
        self.counts.requests += 1;
        self.in_flight.insert(token, InFlight { request, issue });
        self.log(&issue, |_| EventKind::Submitted(issue.number(), request));
        self.host.sent(&request, issue.number());
        let submit = self.device.submit(self.now, request.bio(payload), token);
        if let (Submit::Done(done), Power::On | Power::Noticed(_)) = (submit, self.device.power()) {
            self.expect(Completion { token, done });
        }
    }

    fn issue(&mut self, request: &Request) -> (Issue, Payload) {
        let issue = match *request {
            Request::Read(lba, sectors) => {
                self.counts.sectors_read += u64::from(sectors);
                self.model.read(self.host.object(lba), sectors)
            }
            Request::Write(lba, sectors, flags, sender)
            | Request::Append(_, lba, sectors, flags, sender) => {
                self.counts.sectors_written += u64::from(sectors);
                return self.model.write(self.host.object(lba), sectors, flags, sender);
            }
            Request::Discard(lba, sectors) | Request::Reset(_, lba, sectors) => {
                self.counts.sectors_discarded += u64::from(sectors);
                self.model.discard(self.host.object(lba), sectors)
            }
            Request::Flush(sender) => {
                self.counts.flushes += 1;
                self.model.flush(sender)
            }
            Request::Report(..)
            | Request::FetchUpcall(_)
            | Request::CompleteUpcall(_)
            | Request::CompleteUpcallAgain(_) => self.model.inquire(),
        };
        (issue, Payload::None)
    }

    fn complete(&mut self, cut: Option<&mut Cut<'_>>) -> Result<(), CheckFailure> {
        let Some(((at, _), Completion { token, done })) = self.due.pop_first() else {
            return Ok(());
        };
        let Some(InFlight { request, issue }) = self.in_flight.remove(&token) else {
            return Err(CheckFailure::new(format!(
                "token {}: a request completed twice, or was never submitted",
                token.0
            )));
        };
        if at < self.now {
            return Err(CheckFailure::new(format!("#{} completed in the past", issue.number())));
        }
        if let Some(cut) = cut {
            cut.acked += u64::from(request.is_barrier() && done.result.is_ok());
        }
        self.log(&issue, |model| {
            let result = done.result.as_ref().map_err(BlockError::clone);
            let read = result.map(|reply| watched(model, &request, &issue, reply));
            EventKind::Completed(issue.number(), request, read)
        });
        match request {
            Request::Read(lba, _) => {
                let lost = self.lost.remove(&token).unwrap_or_default();
                self.end_read(&issue, lba, done, &lost)?;
                self.heard(&request, None)
            }
            Request::CompleteUpcallAgain(id) if done.result.is_ok() => {
                Err(CheckFailure::new(format!("batch {id} was completed twice")))
            }
            Request::CompleteUpcallAgain(_) => self.heard(&request, None),
            _ => self.end_change(&issue, &request, done.result),
        }
    }

    fn end_read(
        &mut self,
        issue: &Issue,
        first: Lba,
        done: Done,
        lost: &[(Lba, SectorData)],
    ) -> Result<(), CheckFailure> {
        let at = |lba: Lba| issue.first().plus(lba.0.wrapping_sub(first.0));
        let lost_of = |lba| -> Vec<SectorData> {
            lost.iter().filter(|(of, _)| *of == lba).map(|(_, data)| data.clone()).collect()
        };
        let payload = match done.result {
            Ok(Reply::Data(payload)) => payload,
            Err(BlockError::Io { lba, .. })
                if lba >= first && self.model.may_fail(issue, at(lba), &lost_of(lba)) =>
            {
                self.counts.unreadable += 1;
                return Ok(());
            }
            Err(error) => {
                let number = issue.number();
                return Err(CheckFailure::new(format!(
                    "read #{number} of {first} failed: {error}"
                )));
            }
            Ok(_) => return Err(CheckFailure::new(format!("{first}: a read without data"))),
        };
        if !well_formed(&payload, issue.sectors()) {
            return Err(CheckFailure::new(format!("{first}: read of another length")));
        }
        if let Some(collected) = &mut self.collected {
            collected.extend(self.model.contents(issue, &payload));
            return Ok(());
        }
        let checked = self.model.check_read(issue, &payload);
        checked
            .map_err(|m| CheckFailure::content("a read in operation returned the wrong content", m))
    }

    fn end_change(
        &mut self,
        issue: &Issue,
        request: &Request,
        result: Result<Reply, BlockError>,
    ) -> Result<(), CheckFailure> {
        self.model.complete(issue, result.is_ok());
        let error = match result {
            Ok(reply) => return self.heard(request, Some(&reply)),
            Err(error) => error,
        };
        let is_due = match error {
            BlockError::ReadOnly(_) | BlockError::Io { .. } => true,
            BlockError::Zone { status, .. } => self.host.may_refuse(request, status),
            _ => false,
        };
        if !is_due || !self.faulty {
            let number = issue.number();
            return Err(CheckFailure::new(format!("request #{number} failed: {error}")));
        }
        self.counts.refused += 1;
        self.heard(request, None)
    }

    fn heard(&mut self, request: &Request, reply: Option<&Reply>) -> Result<(), CheckFailure> {
        self.host.ended(request, reply).map_err(CheckFailure::new)
    }

    fn log(&mut self, issue: &Issue, what: impl FnOnce(&Model) -> EventKind) {
        if self.model.watches(issue) {
            let what = what(self.model);
            self.model.log(self.now, || what);
        }
    }

    fn stuck(&self, why: &str) -> CheckFailure {
        let waiting = self.in_flight.values().map(|f| format!("#{}", f.issue.number()));
        let waiting = match waiting.collect::<Vec<_>>() {
            none if none.is_empty() => "no request is in flight".to_owned(),
            some => format!("in flight: {}", some.join(", ")),
        };
        CheckFailure::new(format!("{why} at {}; {waiting}", self.now))
    }
}

/// The next request and when it may go.
struct Queue {
    next: Next,
    depth: usize,
    not_before: Nanos,
}

impl Queue {
    /// Takes the waits that are over.
    fn settle(&mut self, host: &mut dyn HostView, now: Nanos, idle: bool) {
        loop {
            match self.next {
                Next::Pause(span) => self.not_before = now.saturating_add(span),
                Next::Drain if idle => {}
                _ => return,
            }
            self.next = host.next();
        }
    }
}

/// The watched sector of what a read returned, and what it holds.
fn watched(
    model: &Model,
    request: &Request,
    issue: &Issue,
    reply: &Reply,
) -> Option<(Lba, Content)> {
    let (Request::Read(first, _), Reply::Data(payload)) = (request, reply) else { return None };
    let (sector, content) = model.watched_content(issue, payload)?;
    Some((Lba(first.0 + u64::from(sector)), content))
}

fn well_formed(payload: &Payload, sectors: u32) -> bool {
    payload.sectors().is_none_or(|len| len == sectors as usize)
}
