//! What the host sees: admission of writes, flushes, FUA, PREFLUSH and discards (pblk-cache.c,
//! pblk-rb.c flush points), with the crash model's promises instead of the kernel's:
//! - a flush covers everything acknowledged before it was submitted;
//! - a write with PREFLUSH enters the ring only when that is durable;
//! - a write with FUA completes when it is durable itself;
//! - a discard is a logged write.

use super::Pblk;
use super::format::{TrimRecord, encode_trims};
use super::l2p::Place;
use super::rb::Origin;
use super::units::{Submitted, WriteUnit};
use crate::config::{Broken, Discard};
use nandscape_block::{Bio, Completion, Done, Flags, Lba, Op, Payload, SectorData, Submit, Token};
use nandscape_media::{KEY_TRIM, OpenChannel};
use nandscape_rt::Nanos;
use std::collections::VecDeque;

/// A bio that waits for admission; `inserted` of its sectors are in the ring.
#[derive(Debug)]
struct Queued {
    lba: Lba,
    sectors: u32,
    inserted: u32,
    flags: Flags,
    discard: bool,
    payload: Payload,
    token: Token,
    since: Nanos,
}

impl Queued {
    /// Keeps of a write or discard what admission needs.
    #[inline]
    fn new(bio: Bio, token: Token, since: Nanos) -> Self {
        Self {
            lba: bio.lba,
            sectors: bio.sectors,
            inserted: 0,
            flags: bio.flags,
            discard: bio.op == Op::Discard,
            payload: bio.payload,
            token,
            since,
        }
    }
}

/// A bio that waits until everything before `target` is durable.
#[derive(Debug)]
struct Waiter {
    target: u64,
    token: Token,
    since: Nanos,
    before: Submitted,
    /// A write with PREFLUSH goes on to the ring then; anything else is complete.
    then: Option<Bio>,
}

/// Bios under way.
#[derive(Default, Debug)]
pub(super) struct Host {
    queue: VecDeque<Queued>,
    /// In order of target.
    waiters: VecDeque<Waiter>,
    /// Completions not yet handed out.
    pub(super) done: Vec<Completion>,
}

impl Host {
    /// Whether anybody waits for the FTL to move.
    pub(super) fn is_waiting(&self) -> bool {
        !self.queue.is_empty() || !self.waiters.is_empty()
    }

    /// Every bio under way, given up.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = Token> {
        let queued = self.queue.drain(..).map(|queued| queued.token);
        queued.chain(self.waiters.drain(..).map(|waiter| waiter.token))
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        (self.queue.capacity() * size_of::<Queued>()
            + self.waiters.capacity() * size_of::<Waiter>()
            + self.done.capacity() * size_of::<Completion>()) as u64
    }
}

impl<M: OpenChannel> Pblk<M> {
    /// A write, flush or discard comes in.
    #[inline]
    pub(super) fn accept(&mut self, bio: Bio, token: Token) -> Submit {
        let preflush = bio.op == Op::Flush || bio.flags.has(Flags::PREFLUSH);
        if preflush && (bio.op == Op::Flush || self.config.broken != Broken::PreflushDrain) {
            return self.drain_first(bio, token);
        }
        self.admit_or_queue(bio, token, self.now)
    }

    /// Waits until what came before is durable; done at once when it is.
    fn drain_first(&mut self, bio: Bio, token: Token) -> Submit {
        self.emit_trims();
        if self.rb.sync == self.rb.mem {
            self.stats.flush.empty += 1;
            if bio.op == Op::Flush {
                return Submit::Done(Done::ok(self.now));
            }
            return self.admit_or_queue(bio, token, self.now);
        }
        let then = (bio.op != Op::Flush).then_some(bio);
        self.wait_for_ring(token, self.now, then);
        self.needs_pump = true;
        Submit::Pending
    }

    /// Waits until everything now in the ring is durable.
    fn wait_for_ring(&mut self, token: Token, since: Nanos, then: Option<Bio>) {
        self.rb.flush_all();
        let (target, before) = (self.rb.mem, self.units.submitted);
        self.host.waiters.push_back(Waiter { target, token, since, before, then });
    }

    #[inline]
    fn admit_or_queue(&mut self, bio: Bio, token: Token, since: Nanos) -> Submit {
        let mut queued = Queued::new(bio, token, since);
        if self.host.queue.is_empty() {
            if let Some(submit) = self.admit(&mut queued) {
                return submit;
            }
            self.needs_pump = true;
        }
        self.host.queue.push_back(queued);
        Submit::Pending
    }

    /// Inserts as much as there is room for; the answer when all of it is in the ring.
    #[inline]
    fn admit(&mut self, queued: &mut Queued) -> Option<Submit> {
        let room = self.room_for(queued.discard, queued.sectors - queued.inserted)?;
        self.admit_part(queued, room)
    }

    /// How many of `wanted` sectors may go on now; `None` when none may.
    #[inline]
    fn room_for(&mut self, discard: bool, wanted: u32) -> Option<u32> {
        if discard {
            return self.discard_has_room().then_some(wanted);
        }
        Some(self.user_room(wanted)).filter(|&room| room > 0)
    }

    #[inline]
    fn admit_part(&mut self, queued: &mut Queued, room: u32) -> Option<Submit> {
        if queued.discard {
            return Some(self.discard(queued));
        }
        self.insert_user(queued, room);
        queued.inserted += room;
        (queued.inserted == queued.sectors).then(|| self.admitted(queued))
    }

    /// All of the bio is in the ring: acknowledge it, or have it wait for durability.
    #[inline]
    fn admitted(&mut self, queued: &Queued) -> Submit {
        if self.rb.backlog() >= self.geometry.ws_opt {
            self.needs_pump = true;
        }
        if queued.flags.has(Flags::FUA) {
            self.emit_trims();
            self.wait_for_ring(queued.token, queued.since, None);
            self.needs_pump = true;
            return Submit::Pending;
        }
        Submit::Done(Done::ok(self.now + self.media.buffer_write(queued.sectors)))
    }

    /// Admits bios that wait, in order. Whether anything moved.
    pub(super) fn admit_queued(&mut self) -> bool {
        let mut moved = false;
        while let Some(front) = self.host.queue.front() {
            let (discard, wanted) = (front.discard, front.sectors - front.inserted);
            let Some(room) = self.room_for(discard, wanted) else { break };
            let Some(mut queued) = self.host.queue.pop_front() else { break };
            moved = true;
            let Some(submit) = self.admit_part(&mut queued, room) else {
                self.host.queue.push_front(queued);
                break;
            };
            self.stats.stall_ns_max = self.stats.stall_ns_max.max(self.now - queued.since);
            if let Submit::Done(done) = submit {
                self.host.done.push(Completion { token: queued.token, done });
            }
        }
        moved
    }

    /// How many of `wanted` user sectors may go into the ring: by the limiter, by free slots, and so
    /// that garbage collection can always fill one more line.
    #[inline]
    fn user_room(&mut self, wanted: u32) -> u32 {
        let room = wanted.min(self.rl.user_room());
        let room = room.min(self.ring_room(room));
        room.min(u32::try_from(self.user_space()).unwrap_or(u32::MAX))
    }

    /// Sectors that user data and trim records may take without ever cornering garbage collection.
    #[inline]
    fn user_space(&self) -> u64 {
        let plenty = self.lines.writable >= self.plenty && self.gc.is_idle();
        if plenty { u64::MAX } else { self.scarce_space() }
    }

    /// Garbage collection needs a line to fill, and a second one should a power cut pad out the first.
    #[cold]
    fn scarce_space(&self) -> u64 {
        let row = u64::from(self.geometry.ws_opt * self.geometry.total_units());
        let line = u64::from(self.capacity.line_data_sectors);
        let used = self.lines.writable - self.uncommitted().min(self.lines.writable);
        self.lines.writable.saturating_sub(used.max(self.committed() + 2 * line) + row)
    }

    /// Inserts the next `sectors` sectors of a write.
    #[inline]
    fn insert_user(&mut self, queued: &Queued, sectors: u32) {
        for index in queued.inserted..queued.inserted + sectors {
            let lba = queued.lba.plus(u64::from(index));
            let data = if self.config.keep_content {
                queued.payload.sector(index)
            } else {
                SectorData::Absent
            };
            let position = self.rb.push(lba.0 as u32, Origin::User, data);
            let slot = self.rb.slot(position);
            if let Place::Media(at) = self.l2p.replace(lba, Place::Cached(slot)) {
                self.invalidate(at, position + 1);
            }
        }
        self.rl.user_in(sectors, self.now);
        let sectors = u64::from(sectors);
        self.stats.user_written += sectors;
        self.in_use_sum += u128::from(self.lines.in_use) * u128::from(sectors);
        if queued.flags.has(Flags::JOURNAL) {
            self.stats.sectors.journal += sectors;
        }
    }

    fn logs_discards(&self) -> bool {
        self.config.discard == Discard::Durable && self.config.broken != Broken::LostTrims
    }

    /// A discard that is logged needs a ring slot in reserve for its record, and space on media for a
    /// padded unit.
    fn discard_has_room(&mut self) -> bool {
        let unit = u64::from(self.geometry.ws_opt);
        !self.logs_discards() || (self.trim_has_slot() && self.user_space() >= unit)
    }

    fn discard(&mut self, queued: &Queued) -> Submit {
        let durable = self.logs_discards();
        let (lba, sectors) = (queued.lba, queued.sectors);
        let gate = self.rb.mem + u64::from(durable);
        let mut hidden = false;
        for lba in (lba.0..lba.0 + u64::from(sectors)).map(Lba) {
            match self.l2p.replace(lba, Place::Nowhere) {
                Place::Media(at) => self.invalidate(at, gate),
                Place::Cached(_) => {}
                Place::Nowhere => continue,
            }
            hidden = true;
        }
        self.stats.discarded += u64::from(sectors);
        if hidden && durable {
            self.log_trim(TrimRecord { lba: lba.0 as u32, sectors, seq: self.rb.mem });
        }
        if queued.flags.has(Flags::FUA) {
            return self.admitted(queued);
        }
        Submit::Done(Done::ok(self.now))
    }

    /// Whether the ring keeps, or can keep, a slot for trim records.
    fn trim_has_slot(&mut self) -> bool {
        self.trims.has_pending() || self.ring_room(1) > 0
    }

    /// Logs a record; a full sector of them goes into the ring, in the slot kept for it.
    pub(super) fn log_trim(&mut self, record: TrimRecord) {
        self.trims.log(record, self.rb.mem);
        if self.trims.is_full() {
            self.emit_trims();
        }
    }

    /// Sends the pending trim records into the ring.
    pub(super) fn emit_trims(&mut self) {
        if self.trims.has_pending() {
            let records = self.trims.emit(self.rb.mem);
            self.rb.push(KEY_TRIM, Origin::Trim, encode_trims(&records));
            self.rl.user_in(1, self.now);
            self.needs_pump = true;
        }
    }

    /// `sync` has passed `unit`: whoever waited for that goes on.
    pub(super) fn serve_waiters(&mut self, at: Nanos, unit: &WriteUnit) {
        while self.host.waiters.front().is_some_and(|waiter| waiter.target <= self.rb.sync) {
            let Some(waiter) = self.host.waiters.pop_front() else { return };
            self.count_flush(at, &waiter, unit);
            match waiter.then {
                None => {
                    let completion = Completion { token: waiter.token, done: Done::ok(at) };
                    self.host.done.push(completion);
                }
                Some(bio) => {
                    self.host.queue.push_back(Queued::new(bio, waiter.token, at));
                }
            }
        }
    }

    /// Divides the waiting time: until the last unit was submitted, by what was submitted meanwhile;
    /// then its program, by what it wrote.
    fn count_flush(&mut self, at: Nanos, waiter: &Waiter, last: &WriteUnit) {
        let total = (at - waiter.since).0;
        let waited = last.submitted.saturating_sub(waiter.since).0;
        let ahead_gc = last.before.gc.saturating_sub(waiter.before.gc);
        let ahead = ahead_gc + last.before.user.saturating_sub(waiter.before.user);
        let gc = share(waited, ahead_gc, ahead);
        let ws_opt = u64::from(self.geometry.ws_opt);
        let padding = share(total - waited, ws_opt - u64::from(last.entries), ws_opt);
        let flush = &mut self.stats.flush;
        flush.waited += 1;
        flush.total_ns += total;
        flush.queue_ns += waited - gc;
        flush.gc_ns += gc;
        flush.padding_ns += padding;
        flush.program_ns += total - waited - padding;
    }
}

/// `part / whole` of `ns`.
fn share(ns: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 { 0 } else { (u128::from(ns) * u128::from(part) / u128::from(whole)) as u64 }
}
