//! Submission and completion of single I/Os.
//!
//! A slot is a request that may be in flight. Nearly all requests are *plain*: one bio, answered with
//! a time and nothing else, and then only counted. What is not plain (errors, data to be checked,
//! bios split by the device's limit, a write behind a trim, a flush behind a write) takes the same
//! path with a detour.

mod part;

use super::Engine;
use super::error::EngineError;
use super::job::NextIo;
use super::kind::Kind;
use super::record::Completed;
use super::results::FailureKind;
use super::shadow::{self, Content};
use super::shape::{Shape, Then};
use super::zbd::Command;
use crate::target::IoTarget;
use nandscape_block::zone::ZoneAction;
use nandscape_block::{
    Bio, BlockError, Completion, Done, FlushScope, Lba, Op, Payload, Reply, SectorData, Submit,
    Tag, Token,
};
use nandscape_rt::Nanos;

/// Bits of a token that name the slot; the rest is the part's offset in sectors.
const SLOT_BITS: u32 = 32;

/// A request that may be in flight.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    started: Nanos,
    lba: Lba,
    sectors: u32,
    /// Latest completion of its parts.
    latest: Nanos,
    job: u32,
    /// Parts that the device has yet to answer for.
    open_parts: u32,
    /// Latest version when a read that is to be checked was submitted.
    since: shadow::Version,
    kind: Kind,
    then: Then,
    plain: bool,
    /// A read that is to be checked.
    check: bool,
    /// A write or trim that the shadow knows of.
    shadowed: bool,
    /// Units of the first sector that come before a part of sectors.
    head: u8,
    /// Units of a part of sectors; 0 where the job's units are sectors.
    units: u32,
}

impl Slot {
    pub(super) const fn new(job: u32) -> Self {
        Self {
            started: Nanos::ZERO,
            lba: Lba(0),
            sectors: 0,
            latest: Nanos::ZERO,
            job,
            open_parts: 0,
            since: 0,
            kind: Kind::Read,
            then: Then::Nothing,
            plain: true,
            check: false,
            shadowed: false,
            head: 0,
            units: 0,
        }
    }

    pub(super) const fn job(&self) -> usize {
        self.job as usize
    }

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) const fn lba(&self) -> Lba {
        self.lba
    }

    pub(super) const fn started(&self) -> Nanos {
        self.started
    }
}

impl<S> Engine<S> {
    /// Issues all that the job wants to issue now and has slots for.
    #[inline(never)]
    pub(super) fn issue<T: IoTarget>(&mut self, target: &mut T, index: usize) {
        while !self.jobs[index].free.is_empty() {
            let job = &mut self.jobs[index];
            let next_io = job.next_io(target, self.shadow.as_ref(), &mut self.shared, self.now);
            if !self.issue_one(target, index, next_io) {
                break;
            }
        }
        self.wake_held();
    }

    /// Wakes the jobs whose flow went on, or whose zone is free.
    #[inline]
    pub(super) fn wake_held(&mut self) {
        while let Some(job) = self.shared.next_woken() {
            self.set_timer(job as usize, self.now);
        }
    }

    /// Does what the job is to do next, in one of its free slots; whether it may have more to do.
    fn issue_one<T: IoTarget>(&mut self, target: &mut T, index: usize, next_io: NextIo) -> bool {
        let (kind, lba) = match next_io {
            NextIo::Io(next) => (next.direction.into(), Lba(next.first)),
            NextIo::Reread(lba) => (Kind::Reread, lba),
            NextIo::Flush => (Kind::Sync, Lba(0)),
            NextIo::Reset(lba) => (Kind::Reset, lba),
            NextIo::Wake(at) => {
                self.set_timer(index, at);
                return false;
            }
            NextIo::Nothing => return false,
        };
        let job = &mut self.jobs[index];
        let Some(slot) = job.free.pop() else { return false };
        let units = job.units;
        job.in_flight += 1;
        self.begin(target, slot as usize, kind, lba, units);
        true
    }

    /// Puts an I/O into a slot and submits it.
    #[inline(always)]
    fn begin<T: IoTarget>(
        &mut self,
        target: &mut T,
        index: usize,
        kind: Kind,
        lba: Lba,
        sectors: u32,
    ) {
        let slot = &mut self.slots[index];
        slot.started = self.now;
        slot.lba = lba;
        slot.sectors = sectors;
        slot.kind = kind;
        self.submit(target, index);
    }

    /// Submits what the slot describes.
    #[inline(always)]
    fn submit<T: IoTarget>(&mut self, target: &mut T, index: usize) {
        let slot = &mut self.slots[index];
        let shape = &self.jobs[slot.job as usize].shapes[slot.kind as usize];
        slot.plain = shape.plain;
        if !shape.plain {
            return self.submit_rare(target, index);
        }
        if shape.tagged {
            self.version = shadow::next_version(self.version);
        }
        let bio = bio(shape, slot.lba, slot.sectors, self.version);
        self.send(target, index, bio);
    }

    /// Submits what is not plain.
    #[cold]
    fn submit_rare<T: IoTarget>(&mut self, target: &mut T, index: usize) {
        let slot = &mut self.slots[index];
        let shape = self.jobs[slot.job as usize].shapes[slot.kind as usize];
        slot.then = shape.then;
        slot.check = false;
        let job = &mut self.jobs[slot.job as usize];
        if !job.has_whole_sectors() {
            slot.widen();
        }
        let since_began = job.since_began(self.now);
        let (kind, offset, bytes) = (slot.kind, slot.offset(), slot.bytes());
        if kind != Kind::Reset {
            job.log.iter_mut().for_each(|log| log.push(since_began, kind, offset, bytes));
        }
        match slot.part().filter(|part| part.is_unaligned()) {
            Some(part) => self.submit_part(target, index, part, &shape),
            None => self.submit_whole(target, index, &shape),
        }
    }

    /// Submits what is not plain, all sectors of it.
    fn submit_whole<T: IoTarget>(&mut self, target: &mut T, index: usize, shape: &Shape) {
        let slot = &self.slots[index];
        let (kind, lba, sectors) = (slot.kind, slot.lba, slot.sectors);
        if matches!(kind, Kind::Write | Kind::Trim | Kind::Reset) {
            self.version = shadow::next_version(self.version);
        }
        if matches!(kind, Kind::Trim | Kind::Reset)
            && self.jobs[self.slots[index].job()].zoned.is_some()
        {
            return self.submit_to_zone(target, index, shape);
        }
        self.inform_shadow(index, shape);
        if sectors > shape.bio_sectors {
            return self.submit_parts(target, index, shape);
        }
        let bio = bio(shape, lba, sectors, self.version);
        self.send(target, index, bio);
    }

    /// Submits a trim of a job with `zonemode=zbd`, or a reset.
    fn submit_to_zone<T: IoTarget>(&mut self, target: &mut T, index: usize, shape: &Shape) {
        let (lba, owner, kind) =
            (self.slots[index].lba, self.slots[index].job(), self.slots[index].kind);
        let zones = &mut self.shared.zones;
        let zone = zones.at(lba);
        let command = match &mut self.jobs[owner].zoned {
            Some(zoned) if kind == Kind::Trim => zoned.trim(zones, lba),
            _ => zones.command(zone),
        };
        let capacity = zones.capacity(zone);
        let bio = match command {
            Command::Nothing => return self.events.set(index, self.now),
            Command::Discard => bio(shape, lba, self.slots[index].sectors, self.version),
            Command::Reset(id) => {
                let bio = Bio::new(Op::Zone(id, ZoneAction::Reset), lba, 0);
                Bio { owner: Some(shape.owner), ..bio }
            }
        };
        if let Some(shadow) = &mut self.shadow {
            shadow.begin(lba, capacity, self.version, true);
            self.slots[index].shadowed = true;
        }
        self.send(target, index, bio);
    }

    /// Informs the shadow of a change; notes whether a read can be checked.
    fn inform_shadow(&mut self, index: usize, shape: &Shape) {
        let Some(shadow) = &mut self.shadow else { return };
        let slot = &mut self.slots[index];
        if matches!(slot.kind, Kind::Write | Kind::Trim) {
            shadow.begin(slot.lba, slot.sectors, self.version, slot.kind == Kind::Trim);
            slot.shadowed = true;
        } else if shape.checked {
            slot.since = self.version;
            slot.check = !shadow.is_busy(slot.lba, slot.sectors);
            if !slot.check {
                let result = &mut self.jobs[slot.job as usize].result;
                result.unverified_sectors += u64::from(slot.sectors);
            }
        }
    }

    /// Submits an I/O that is larger than a bio may be.
    fn submit_parts<T: IoTarget>(&mut self, target: &mut T, index: usize, shape: &Shape) {
        let slot = &mut self.slots[index];
        let (lba, all) = (slot.lba, slot.sectors);
        slot.latest = self.now;
        slot.open_parts = all.div_ceil(shape.bio_sectors);
        self.events.clear(index);
        for offset in (0..all).step_by(shape.bio_sectors as usize) {
            let sectors = shape.bio_sectors.min(all - offset);
            let bio = bio(shape, lba.plus(u64::from(offset)), sectors, self.version);
            self.submit_bio(target, index, offset, bio);
        }
    }

    /// Hands over one of several bios of the slot, which begins so many sectors behind its address.
    fn submit_bio<T: IoTarget>(&mut self, target: &mut T, index: usize, offset: u32, bio: Bio) {
        let token = Token(u64::from(offset) << SLOT_BITS | index as u64);
        if let Submit::Done(done) = target.submit(self.now, bio, token) {
            self.part_done(index, offset, done);
        }
    }

    /// Hands over the one bio that is the slot's I/O.
    #[inline(always)]
    fn send<T: IoTarget>(&mut self, target: &mut T, index: usize, bio: Bio) {
        match target.submit(self.now, bio, Token(index as u64)) {
            Submit::Done(Done { at, result, .. }) => {
                self.events.set(index, at.max(self.now));
                match result {
                    // The empty reply owns nothing; a call of its drop glue would be felt.
                    Ok(Reply::None) => std::mem::forget(result),
                    _ => self.hold(index, 0, result),
                }
            }
            Submit::Pending => self.pend(index),
        }
    }

    #[inline]
    fn pend(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.open_parts = 1;
        slot.latest = self.now;
        self.events.clear(index);
    }

    /// A part of the slot's I/O has its outcome, which holds from `done.at` on.
    fn part_done(&mut self, index: usize, offset: u32, done: Done) {
        if !matches!(done.result, Ok(Reply::None)) {
            self.hold(index, offset, done.result);
        }
        let slot = &mut self.slots[index];
        slot.latest = slot.latest.max(done.at).max(self.now);
        slot.open_parts -= 1;
        if slot.open_parts == 0 {
            self.events.set(index, slot.latest);
        }
    }

    #[cold]
    fn hold(&mut self, index: usize, offset: u32, result: Result<Reply, BlockError>) {
        self.slots[index].plain = false;
        self.held[index].push((offset, result));
    }

    /// The device's own next event.
    #[inline]
    pub(super) fn target_event<T: IoTarget>(&mut self, target: &mut T) -> Result<(), EngineError> {
        let mut completions = std::mem::take(&mut self.completions);
        target.advance(self.now, &mut completions);
        for Completion { token, done } in completions.drain(..) {
            let index = (token.0 & ((1 << SLOT_BITS) - 1)) as usize;
            if self.slots.get(index).is_none_or(|slot| slot.open_parts == 0) {
                return Err(EngineError::UnknownCompletion { token });
            }
            self.part_done(index, (token.0 >> SLOT_BITS) as u32, done);
        }
        self.completions = completions;
        Ok(())
    }

    /// The slot's I/O has completed.
    #[inline]
    pub(super) fn complete<T: IoTarget>(&mut self, target: &mut T, index: usize) {
        if !self.slots[index].plain {
            return self.complete_rare(target, index);
        }
        self.count(index, self.slots[index].sectors);
        self.release(target, index);
    }

    #[inline]
    fn count(&mut self, index: usize, units: u32) {
        let slot = &self.slots[index];
        let latency = self.now.saturating_sub(slot.started);
        let job = &mut self.jobs[slot.job as usize];
        job.completed(slot.kind, units, latency, self.now);
        if self.recorder.is_some() {
            self.record_completion(index, latency);
        }
    }

    /// Counts an I/O that is not plain.
    fn count_rare(&mut self, index: usize) {
        if let Some(group) = self.jobs[self.slots[index].job()].steady {
            self.check_steady(group);
        }
        let (units, unaligned) = self.slots[index].counted();
        self.count(index, units);
        let slot = &self.slots[index];
        let latency = self.now.saturating_sub(slot.started);
        let direction = slot.kind.direction() as usize;
        self.jobs[slot.job as usize].unaligned[direction] += u64::from(unaligned);
        self.jobs[slot.job as usize].judge(slot.kind, slot.lba, latency, self.now);
    }

    #[cold]
    fn record_completion(&mut self, index: usize, latency: Nanos) {
        let slot = &self.slots[index];
        let job = &self.jobs[slot.job()];
        let io = Completed {
            job: slot.job,
            direction: slot.kind.is_io().then(|| slot.kind.direction()),
            began: job.counted_from(),
            at: self.now,
            latency,
            offset: slot.offset(),
            bytes: slot.bytes(),
        };
        if let Some(recorder) = self.recorder.as_mut().filter(|_| !job.is_ramping()) {
            recorder.completed(&io);
        }
    }

    /// Gives the slot to the job's next I/O, or back.
    #[inline]
    fn release<T: IoTarget>(&mut self, target: &mut T, index: usize) {
        let owner = self.slots[index].job();
        let job = &mut self.jobs[owner];
        match job.next_io(target, self.shadow.as_ref(), &mut self.shared, self.now) {
            NextIo::Io(next) => {
                let (idle, units) = (!job.free.is_empty(), job.units);
                self.begin(target, index, next.direction.into(), Lba(next.first), units);
                if idle {
                    self.issue(target, owner);
                }
            }
            next_io => self.retire(target, index, next_io),
        }
    }

    /// Gives the slot back, and does what its job is to do instead of an I/O.
    #[cold]
    fn retire<T: IoTarget>(&mut self, target: &mut T, index: usize, next_io: NextIo) {
        let owner = self.give_back(index);
        if self.issue_one(target, owner, next_io) {
            self.issue(target, owner);
        }
        self.settle(target, owner);
    }

    /// Gives the slot back to its job.
    fn give_back(&mut self, index: usize) -> usize {
        let owner = self.slots[index].job();
        let job = &mut self.jobs[owner];
        job.in_flight -= 1;
        job.free.push(index as u32);
        self.events.clear(index);
        owner
    }

    /// The completion of an I/O that is not plain.
    #[cold]
    fn complete_rare<T: IoTarget>(&mut self, target: &mut T, index: usize) {
        if self.jobs[self.slots[index].job()].is_governed() {
            self.complete_governed(target, index);
        } else if self.conclude(target, index) {
            self.release(target, index);
        }
    }

    /// The completion of an I/O whose job may take it back later, and asks before it goes on.
    fn complete_governed<T: IoTarget>(&mut self, target: &mut T, index: usize) {
        let slot = &self.slots[index];
        let (owner, kind, last) = (slot.job(), slot.kind, slot.then == Then::Nothing);
        if last && self.jobs[owner].leaves(index as u32, kind) {
            return self.events.clear(index);
        }
        match last.then(|| self.jobs[owner].take_back()).flatten() {
            None => self.conclude_and_free(target, index),
            Some(done) => {
                done.iter().for_each(|slot| self.conclude_and_free(target, *slot as usize));
                self.jobs[owner].taken(done);
            }
        }
        self.issue(target, owner);
        self.settle(target, owner);
    }

    fn conclude_and_free<T: IoTarget>(&mut self, target: &mut T, index: usize) {
        if self.conclude(target, index) {
            self.give_back(index);
        }
    }

    /// What an I/O that is not plain brought, and what follows it; whether its slot is free again.
    fn conclude<T: IoTarget>(&mut self, target: &mut T, index: usize) -> bool {
        let failed = self.look_at_held(index);
        let slot = &mut self.slots[index];
        let (owner, kind) = (slot.job(), slot.kind);
        if let Some(shadow) = self.shadow.as_mut().filter(|_| slot.shadowed) {
            let sectors = match kind {
                Kind::Trim | Kind::Reset if self.jobs[owner].zoned.is_some() => {
                    self.shared.zones.capacity(self.shared.zones.at(slot.lba))
                }
                _ => slot.sectors,
            };
            // A part of a sector makes its content a mixture.
            let mixed = slot.part().is_some_and(|part| part.is_unaligned());
            shadow.end(slot.lba, sectors, failed || mixed);
            slot.shadowed = false;
        }
        let goes_on = !failed && !self.jobs[owner].has_failed();
        match std::mem::replace(&mut slot.then, Then::Nothing) {
            Then::Flush if goes_on => {
                self.events.clear(index);
                let owner = Some(self.jobs[owner].shapes[Kind::Sync as usize].owner);
                self.send(target, index, Bio { owner, ..Bio::flush() });
                false
            }
            Then::Modify if goes_on => {
                let shape = self.jobs[owner].shapes[kind as usize];
                slot.then = shape.then;
                self.submit_whole(target, index, &shape);
                false
            }
            Then::Write if goes_on => {
                let (lba, sectors) = (slot.lba, slot.sectors);
                self.count_rare(index);
                self.begin(target, index, Kind::Write, lba, sectors);
                false
            }
            _ => {
                if !failed && kind != Kind::Reset {
                    self.count_rare(index);
                }
                self.leave_zone(index, failed);
                let slot = &self.slots[index];
                let bytes = slot.offset()..slot.offset() + slot.bytes();
                self.jobs[owner].returned(kind, &bytes, self.now);
                true
            }
        }
    }

    /// The slot's job gives back the zone of an I/O that completed, or goes on behind a reset.
    fn leave_zone(&mut self, index: usize, failed: bool) {
        let slot = &self.slots[index];
        let job = &mut self.jobs[slot.job as usize];
        let Some(zoned) = &mut job.zoned else { return };
        let zones = &mut self.shared.zones;
        match slot.kind {
            Kind::Reset => {
                let latency = self.now.saturating_sub(slot.started);
                job.reset_back(zones, !failed, latency);
            }
            kind => zoned.completed(zones, kind, slot.lba, slot.sectors),
        }
    }

    /// Judges the results that were held for the slot's completion; whether one is an error.
    fn look_at_held(&mut self, index: usize) -> bool {
        let mut held = std::mem::take(&mut self.held[index]);
        let slot = self.slots[index].clone();
        let mut failed = false;
        for (offset, result) in held.drain(..) {
            match result {
                Ok(Reply::Data(payload)) => self.check(&slot, offset, &payload),
                Ok(_) => {}
                Err(error) => {
                    failed = true;
                    let what = FailureKind::Io(slot.kind.name(), error);
                    self.jobs[slot.job()].fail(self.now, slot.lba, slot.kind, what);
                }
            }
        }
        self.held[index] = held;
        failed
    }

    /// Compares what a read brought, from `offset` sectors into the slot's range on.
    fn check(&mut self, slot: &Slot, offset: u32, payload: &Payload) {
        let Some(shadow) = self.shadow.as_ref().filter(|_| slot.check) else { return };
        let job = &mut self.jobs[slot.job()];
        let shape = &job.shapes[slot.kind as usize];
        let sectors = shape.bio_sectors.min(slot.sectors - offset);
        let complete = payload.sectors().is_none_or(|length| length >= sectors as usize);
        for sector in 0..sectors {
            let lba = slot.lba.plus(u64::from(offset + sector));
            let Some(expected) = shadow.expected(lba, slot.since) else {
                job.result.unverified_sectors += 1;
                continue;
            };
            job.result.verified_sectors += 1;
            let got = if complete { payload.sector(sector) } else { SectorData::Absent };
            if got != SectorData::Tag(expected) {
                let (expected, got) = (shadow::content(expected), describe(&got));
                let what = FailureKind::Mismatch { expected, got };
                job.fail(self.now, lba, slot.kind, what);
            }
        }
    }
}

/// The bio for `sectors` of an I/O of this shape, from `lba` on. Put together in one go: a bio that
/// is built and then changed is copied on the way to the device.
#[inline(always)]
fn bio(shape: &Shape, lba: Lba, sectors: u32, version: shadow::Version) -> Bio {
    let payload =
        if shape.tagged { Payload::Run(shadow::tag(lba, version)) } else { Payload::None };
    Bio {
        op: shape.op,
        lba,
        sectors,
        flags: shape.flags,
        placement: shape.placement,
        scope: FlushScope::All,
        owner: Some(shape.owner),
        payload,
    }
}

/// What a sector that reads wrong seems to be.
fn describe(data: &SectorData) -> Content {
    match data {
        SectorData::Absent => Content::Missing,
        SectorData::Tag(tag) => shadow::content(*tag),
        bytes if *bytes == SectorData::Tag(Tag::ZERO) => Content::Zeroes,
        _ => Content::Foreign,
    }
}
