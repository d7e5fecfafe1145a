//! A host of append-only regions: a small log-structured store. A slot's new content goes to the next free
//! address of a log, and the address of the old one is discarded later. Where the device moves data to
//! regions of its own (D2FS, FAST'25), the host fetches the moves, follows them, and completes them.
//!
//! - An object is written once and discarded once. Its address changes when a fetched move is
//!   followed; until that batch is completed both addresses show the same.
//! - A batch is completed after a flush that followed its fetch, after the discards of what was
//!   superseded, and while nothing is in flight: then no request goes to an old address, and after a
//!   power cut the host knows the new one.
//! - After a power cut the host knows the addresses of its last flush: it goes back to the old
//!   address of a move fetched since. Batches that were not completed are fetched again.
//! - A discard that a power cut may have undone is sent again, but not at an address in a region of the
//!   device: unless it was undone, the device may have moved other data there.
//! - Where regions have superblocks, each is written in order, once all of it is free, and none after a power cut.
//! - An address is written again after a flush that covers its discard; where the device moves data,
//!   after every record of that time was fetched and completed, too.
//! - Where media lose sectors, and with them perhaps the record of a discard, no address is written again, and all that was
//!   discarded is discarded again after a power cut.
//! - Slots at the beginning of the device that may be written at random stay where they are.

mod again;
mod scan;

use super::{HostView, Phase, Requests, window_of};
use crate::device::model::Object;
use crate::draw::load::{LoadSource, Next};
use crate::draw::plan::Plan;
use crate::request::{Request, Sender};
use crate::shrink::keep::Keep;
use nandscape_block::{DeviceCaps, Flags, Lba, RegionKind, Reply};
use nandscape_rt::Stream;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Slots at most: a load then comes back to each.
const SLOTS_MAX: u64 = 4_096;
/// Most moves that the host fetches at once: what an upcall of D2FS holds.
const BATCH_MAX: u64 = 256;

/// Number of what happened to the host: a request was sent, or has ended.
type Moment = u64;

/// What the host knows of an object.
#[derive(Clone, Debug)]
struct Entry {
    lba: Lba,
    /// Addresses before moves that are not completed, oldest first.
    old: Vec<Lba>,
    /// Its write has ended.
    written: bool,
    /// Its slot has other content.
    superseded: bool,
    /// Its discard was sent.
    discarded: bool,
}

/// Moves that the host has fetched and not completed.
#[derive(Debug)]
struct Batch {
    id: u64,
    fetched: Moment,
    /// The moves that the host follows.
    followed: Vec<(Object, Lba, Lba)>,
    completing: bool,
}

/// An address that will be free.
#[derive(Clone, Copy, Debug)]
struct Freed {
    lba: Lba,
    at: Moment,
}

/// The host; see the head of this file.
pub(crate) struct Log<'a> {
    plan: &'a Plan,
    /// Slots that stay where they are, from this address on.
    fixed: Range<u64>,
    /// Append-only regions, each with its next address.
    logs: Vec<(Range<u64>, u64)>,
    /// Sectors of the superblocks in which they are written; 1: any free address will do.
    superblock: u64,
    upcalls: bool,
    /// Sectors outside of the fixed slots that may hold data at once.
    live_max: u64,
    /// Object of each further slot; 0: none.
    slots: Vec<u64>,
    /// By number, those of the fixed slots left out.
    entries: BTreeMap<u64, Entry>,
    next_object: u64,
    /// The object at each address that is not free.
    at: BTreeMap<u64, u64>,
    superseded: VecDeque<u64>,
    batches: VecDeque<Batch>,
    freed: VecDeque<Freed>,
    now: Moment,
    reads: u32,
    fetching: Option<Moment>,
    /// Flushes in flight: when they were sent, and what was quiet then.
    flushes: VecDeque<(Moment, Moment)>,
    /// Until when what has ended is durable.
    covered: Moment,
    /// When a fetch was sent that found no record while none was to be completed.
    quiet: Moment,
    /// The last such moment that a flush has followed.
    settled: Moment,
    /// The host needs free addresses.
    starved: bool,
    /// The device refused a flush: it is read-only, and nothing becomes free.
    refused: bool,
    completing: Option<u64>,
    completed: Option<u64>,
    window: u32,
    scan_window: u32,
    phase: Phase,
    requests: Requests<'a>,
    load_rng: Stream,
    scan_rng: Stream,
    rng: Stream,
}

impl<'a> Log<'a> {
    pub(crate) fn new(seed: u64, plan: &'a Plan, caps: &DeviceCaps) -> Self {
        let logs = caps.regions().filter(|region| region.kind == RegionKind::Append);
        let logs: Vec<_> = logs.map(|region| (region.range.clone(), region.range.start)).collect();
        let appendable: u64 = logs.iter().map(|(range, _)| range.end - range.start).sum();
        let slots = (appendable.min(caps.live_sectors()) / 3).clamp(1, SLOTS_MAX);
        let fixed = caps.random_range();
        let fixed = fixed.start..fixed.end.min(fixed.start + slots / 4);
        let random = caps.random_range();
        let live_max = caps.live_sectors().saturating_sub(random.end - random.start);
        let window = window_of(caps);
        Self {
            plan,
            next_object: 1 + fixed.end - fixed.start,
            fixed,
            superblock: caps.superblocks.map_or(1, |of| of.sectors.into()),
            logs,
            upcalls: caps.has_upcalls(),
            live_max,
            slots: vec![0; slots as usize],
            entries: BTreeMap::new(),
            at: BTreeMap::new(),
            superseded: VecDeque::new(),
            batches: VecDeque::new(),
            freed: VecDeque::new(),
            now: 1,
            reads: 0,
            fetching: None,
            flushes: VecDeque::new(),
            covered: 0,
            quiet: 0,
            settled: 0,
            starved: false,
            refused: false,
            completing: None,
            completed: None,
            window,
            scan_window: if plan.unreadable { 1 } else { window },
            phase: Phase::Fill,
            requests: Requests::listed(Vec::new()),
            load_rng: Stream::new(seed, "load"),
            scan_rng: Stream::new(seed, "scan"),
            rng: Stream::new(seed, "log"),
        }
    }

    fn fixed_slots(&self) -> u64 {
        self.fixed.end - self.fixed.start
    }

    /// Slots of a load.
    fn sectors(&self) -> u64 {
        self.fixed_slots() + self.slots.len() as u64
    }

    /// What a request of the load is on this address space, if anything.
    fn translate(&mut self, request: Request) -> Option<Request> {
        let fixed = self.fixed_slots();
        let fits = |slot: Lba, sectors: u32| (fixed - slot.0).min(u64::from(sectors)) as u32;
        match request {
            Request::Read(slot, sectors) if slot.0 < fixed => {
                Some(Request::Read(Lba(self.fixed.start + slot.0), fits(slot, sectors)))
            }
            Request::Write(slot, sectors, flags, sender) if slot.0 < fixed => {
                let at = Lba(self.fixed.start + slot.0);
                Some(Request::Write(at, fits(slot, sectors), flags, sender))
            }
            Request::Discard(slot, sectors) if slot.0 < fixed => {
                Some(Request::Discard(Lba(self.fixed.start + slot.0), fits(slot, sectors)))
            }
            Request::Read(slot, sectors) => self.read(slot.0 - fixed, sectors),
            Request::Write(slot, sectors, flags, sender) => {
                self.write(slot.0 - fixed, sectors, flags, sender)
            }
            Request::Discard(slot, sectors) => {
                (0..u64::from(sectors)).for_each(|i| self.supersede(slot.0 - fixed + i, 0));
                self.discard()
            }
            other => Some(other),
        }
    }

    /// A read of what a slot has; of the address before a move now and then.
    fn read(&mut self, slot: u64, sectors: u32) -> Option<Request> {
        let object = *self.slots.get(slot as usize).filter(|object| **object > 0)?;
        let entry = &self.entries[&object];
        let old = entry.old.first().copied().filter(|_| self.rng.chance(0.5));
        let sectors = if old.is_some() { 1 } else { self.run(object, sectors) };
        Some(Request::Read(old.unwrap_or(self.entries[&object].lba), sectors))
    }

    /// How many of these objects, the first at its address, lie one after the other.
    fn run(&self, first: u64, most: u32) -> u32 {
        let lba = self.entries[&first].lba;
        let follows =
            |i: &u64| self.entries.get(&(first + i)).is_some_and(|entry| entry.lba == lba.plus(*i));
        (0..u64::from(most)).take_while(follows).count() as u32
    }

    /// New content for slots, at the head of a log.
    fn write(&mut self, slot: u64, sectors: u32, flags: Flags, sender: Sender) -> Option<Request> {
        let slots = self.slots.len() as u64;
        let log = (slot * self.logs.len() as u64 / slots) as usize;
        let room = self.live_max.saturating_sub(self.entries.len() as u64);
        let Some(at) = self.free_address(log).filter(|_| room > 0) else {
            self.starved = true;
            return None;
        };
        let most = u64::from(sectors).min(slots - slot).min(room);
        let start = self.logs[log].0.start;
        let end = match self.superblock {
            1 => self.logs[log].0.end,
            step => start + ((at - start) / step + 1) * step,
        };
        let end = end.min(at + most);
        let sectors = (at..end).take_while(|lba| !self.at.contains_key(lba)).count() as u64;
        self.logs[log].1 = at + sectors;
        for i in 0..sectors {
            let object = self.next_object;
            self.next_object += 1;
            let (lba, old) = (Lba(at + i), Vec::new());
            let entry = Entry { lba, old, written: false, superseded: false, discarded: false };
            self.entries.insert(object, entry);
            self.at.insert(at + i, object);
            self.supersede(slot + i, object);
        }
        Some(Request::Write(Lba(at), sectors as u32, flags, sender))
    }

    /// The next free address of a log, round the region. A superblock is begun when all of it is free.
    fn free_address(&self, log: usize) -> Option<u64> {
        let (range, head) = &self.logs[log];
        if self.superblock > 1 {
            let within = (head - range.start) % self.superblock;
            if within > 0 {
                return Some(*head);
            }
            let step = self.superblock as usize;
            let mut starts =
                (*head..range.end).step_by(step).chain((range.start..*head).step_by(step));
            return starts.find(|&at| self.at.range(at..at + self.superblock).next().is_none());
        }
        let mut round = (*head..range.end).chain(range.start..*head);
        round.find(|lba| !self.at.contains_key(lba))
    }

    /// The superblock that a log writes takes no more: the next one is another.
    fn leave_superblock(&mut self, log: usize) {
        let (range, next) = &mut self.logs[log];
        *next = range.start + (*next - range.start).next_multiple_of(self.superblock);
    }

    /// Gives a slot another object, or none.
    fn supersede(&mut self, slot: u64, object: u64) {
        let Some(held) = self.slots.get_mut(slot as usize) else { return };
        let old = std::mem::replace(held, object);
        if let Some(entry) = self.entries.get_mut(&old) {
            entry.superseded = true;
            self.superseded.push_back(old);
        }
    }

    /// A discard of superseded objects that lie one after the other.
    fn discard(&mut self) -> Option<Request> {
        let ready = |entry: &Entry| entry.written && entry.superseded && !entry.discarded;
        let index = self.superseded.iter().position(|object| ready(&self.entries[object]))?;
        let first = self.superseded.remove(index)?;
        let most = self.run(first, self.window);
        let count =
            (0..most).take_while(|i| ready(&self.entries[&(first + u64::from(*i))])).count();
        let Entry { lba, .. } = self.entries[&first];
        let all = first..first + count as u64;
        self.superseded.retain(|object| !all.contains(object));
        all.for_each(|object| {
            self.entries.get_mut(&object).into_iter().for_each(|entry| entry.discarded = true);
        });
        Some(Request::Discard(lba, count as u32))
    }

    /// The next thing to do for free addresses and completed batches, if there is one.
    fn upkeep(&mut self) -> Option<Next> {
        if self.refused {
            return None;
        }
        if let Some(discard) = self.discard() {
            return Some(Next::Submit(discard));
        }
        let flush = Some(Next::Submit(Request::Flush(Sender::ANONYMOUS)));
        if let Some(batch) = self.batches.front() {
            if batch.fetched >= self.covered {
                return flush;
            }
            if self.superseded.is_empty() && !batch.completing {
                self.completing = Some(batch.id);
            }
            return Some(Next::Drain);
        }
        let last = self.freed.back().map_or(0, |freed| freed.at);
        if self.upcalls && (last >= self.quiet || !self.starved) {
            return Some(match self.fetching {
                Some(_) => Next::Drain,
                None => Next::Submit(Request::FetchUpcall(1 + self.rng.below(BATCH_MAX) as u32)),
            });
        }
        // What a flush has covered waits for reads alone.
        let waits = self.freed.front()?.at < self.covered && self.reads > 0;
        if waits { Some(Next::Drain) } else { flush }
    }

    /// Takes the moves of a batch.
    fn follow(&mut self, id: u64, moves: &[(Lba, Lba)]) -> Result<(), String> {
        let mut followed = Vec::new();
        for &(old, new) in moves {
            let Some(object) = self.at.get(&old.0).copied() else { continue };
            if self.uses(new, object) {
                return Err(format!("{old} was moved to {new}, which is in use"));
            }
            let Some(entry) = self.entries.get_mut(&object) else { continue };
            // What was superseded is not followed: the discard of its old address reaches it.
            if entry.lba == old && !entry.superseded {
                entry.old.push(old);
                entry.lba = new;
                self.freed.retain(|freed| freed.lba != new);
                self.at.insert(new.0, object);
                followed.push((Object(object), old, new));
            } else if entry.old.contains(&old) {
                // Followed before a power cut, and offered again.
                followed.push((Object(object), old, new));
            }
        }
        self.batches.push_back(Batch { id, fetched: self.now, followed, completing: false });
        Ok(())
    }

    /// Whether an address is that of an object other than this one.
    fn uses(&self, lba: Lba, object: u64) -> bool {
        let held = self.at.get(&lba.0).filter(|held| **held != object);
        let entry = held.and_then(|held| self.entries.get(held));
        let is_there = |entry: &Entry| entry.lba == lba || entry.old.contains(&lba);
        entry.is_some_and(|entry| !entry.discarded && is_there(entry))
    }

    /// A batch is about to be completed: from now on nothing is read at its old addresses.
    fn forget_old(&mut self, id: u64) {
        let Some(batch) = self.batches.iter_mut().find(|batch| batch.id == id) else { return };
        batch.completing = true;
        for (object, old, _) in &batch.followed {
            if let Some(entry) = self.entries.get_mut(&object.0) {
                entry.old.retain(|lba| lba != old);
            }
        }
    }

    /// The device has dropped the old addresses of a batch, or may have.
    fn release_old(&mut self, batch: Batch) {
        let at = self.now;
        self.freed.extend(batch.followed.into_iter().map(|(_, lba, _)| Freed { lba, at }));
    }

    fn on_complete(&mut self, id: u64) {
        let index = self.batches.iter().position(|batch| batch.id == id);
        if let Some(batch) = index.and_then(|index| self.batches.remove(index)) {
            self.release_old(batch);
            self.completed = Some(id);
        }
    }

    /// Objects that were discarded: their addresses will be free.
    fn release(&mut self, first: Lba, sectors: u32) {
        for i in 0..u64::from(sectors) {
            let Some(object) = self.at.get(&(first.0 + i)).copied() else { continue };
            if let Some(entry) = self.entries.get(&object) {
                let lbas = entry.old.iter().chain([&entry.lba]);
                let at = self.now;
                self.freed.extend(lbas.map(|&lba| Freed { lba, at }));
            }
        }
    }

    /// Addresses whose time has come are free, unless a read may still look at them.
    fn reuse(&mut self) {
        if self.reads > 0 || self.phase != Phase::Load {
            return;
        }
        let until = if self.upcalls { self.settled } else { self.covered };
        while let Some(Freed { lba, .. }) = self.freed.pop_front_if(|freed| freed.at < until) {
            let object = match self.plan.unreadable {
                true => self.at.get(&lba.0).copied(),
                false => self.at.remove(&lba.0),
            };
            let Some(object) = object else { continue };
            if self.entries.get(&object).is_some_and(|entry| entry.discarded && entry.lba == lba) {
                self.entries.remove(&object);
            }
        }
    }

    fn on_flush(&mut self, ok: bool) {
        self.refused |= !ok;
        if let Some((sent, quiet)) = self.flushes.pop_front().filter(|_| ok) {
            self.covered = self.covered.max(sent);
            self.settled = self.settled.max(quiet);
        }
    }

    fn on_fetch(&mut self, reply: Option<&Reply>) -> Result<(), String> {
        let sent = self.fetching.take().unwrap_or_default();
        match reply {
            Some(Reply::Upcall(id, moves)) if !moves.is_empty() => self.follow(*id, moves),
            Some(Reply::None) if self.batches.is_empty() => {
                self.quiet = sent;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Power was cut: moves that no flush has followed are not known to the host any more.
    fn go_back(&mut self, batch: Batch) {
        if batch.completing {
            return self.release_old(batch);
        }
        for (object, old, new) in batch.followed.into_iter().rev() {
            let Some(entry) = self.entries.get_mut(&object.0) else { continue };
            if batch.fetched >= self.covered && entry.lba == new {
                entry.lba = old;
                entry.old.retain(|lba| *lba != old);
                self.at.remove(&new.0);
            }
        }
    }
}

/// Whether the host writes at an address.
fn is_appendable(logs: &[(Range<u64>, u64)], lba: Lba) -> bool {
    logs.iter().any(|(range, _)| range.contains(&lba.0))
}

impl HostView for Log<'_> {
    fn begin(&mut self, phase: Phase, keep: Keep) {
        self.phase = phase;
        self.requests = match phase {
            Phase::Fill => self.fill(keep),
            Phase::Load => Requests::Drawn(LoadSource::new(&self.plan.load, self.sectors(), keep)),
            Phase::Inspect => Requests::listed(self.inspect()),
            Phase::Finish => Requests::listed(self.finish()),
        };
    }

    fn requests(&self) -> &Requests<'_> {
        &self.requests
    }

    fn load_rng(&mut self) -> &mut Stream {
        &mut self.load_rng
    }

    fn next(&mut self) -> Next {
        if self.phase != Phase::Load {
            return self.requests.next(&mut self.load_rng);
        }
        if let Some(id) = self.completing.take() {
            return Next::Submit(Request::CompleteUpcall(id));
        }
        if self.rng.below(64) == 0
            && let Some(id) = self.completed.take()
        {
            return Next::Submit(Request::CompleteUpcallAgain(id));
        }
        loop {
            if self.starved || self.rng.below(6) == 0 {
                match self.upkeep() {
                    Some(next) => return next,
                    None => self.starved = false,
                }
            }
            match self.requests.next(&mut self.load_rng) {
                Next::Submit(request) => {
                    if let Some(request) = self.translate(request) {
                        return Next::Submit(request);
                    }
                }
                next => return next,
            }
        }
    }

    fn object(&self, lba: Lba) -> Object {
        if self.fixed.contains(&lba.0) {
            return Object(1 + lba.0 - self.fixed.start);
        }
        // Object 0 is no content of the host.
        Object(self.at.get(&lba.0).copied().unwrap_or(0))
    }

    fn address(&self, object: Object) -> Lba {
        let fixed = Lba((self.fixed.start + object.0).saturating_sub(1));
        self.entries.get(&object.0).map_or(fixed, |entry| entry.lba)
    }

    fn sent(&mut self, request: &Request, _number: u64) {
        self.now += 1;
        match request {
            Request::Read(..) => self.reads += 1,
            Request::Flush(sender) if sender.file().is_none() => {
                self.flushes.push_back((self.now, self.quiet));
            }
            Request::FetchUpcall(_) => self.fetching = Some(self.now),
            Request::CompleteUpcall(id) => self.forget_old(*id),
            _ => {}
        }
    }

    fn ended(&mut self, request: &Request, reply: Option<&Reply>) -> Result<(), String> {
        match *request {
            Request::Read(..) => self.reads = self.reads.saturating_sub(1),
            Request::Write(lba, sectors, ..) => {
                for at in lba.0..lba.0 + u64::from(sectors) {
                    let object = self.at.get(&at).copied().unwrap_or(0);
                    self.entries.get_mut(&object).into_iter().for_each(|it| it.written = true);
                }
            }
            Request::Discard(lba, sectors) if !self.fixed.contains(&lba.0) => {
                self.release(lba, sectors);
            }
            Request::Flush(sender) if sender.file().is_none() => self.on_flush(reply.is_some()),
            Request::FetchUpcall(_) => {
                self.refused |= reply.is_none();
                self.on_fetch(reply)?;
            }
            Request::CompleteUpcall(id) => self.on_complete(id),
            _ => {}
        }
        self.reuse();
        Ok(())
    }

    fn power_cut(&mut self) {
        (self.reads, self.fetching, self.completing, self.completed) = (0, None, None, None);
        (self.starved, self.refused, self.flushes) = (false, false, VecDeque::new());
        (0..self.logs.len()).for_each(|log| self.leave_superblock(log));
        while let Some(batch) = self.batches.pop_back() {
            self.go_back(batch);
        }
        self.discard_again();
        if self.plan.unreadable {
            self.discard_all_again();
        }
    }
}
