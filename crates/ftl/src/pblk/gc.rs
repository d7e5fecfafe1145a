//! Garbage collection: victims, their reads, and the copies' way into the ring (pblk-gc.c).
//!
//! A victim is read in requests of up to 64 valid sectors, several at once. When a request's data
//! has arrived its sectors go through the ring like user data; each is looked up again on insertion,
//! and a sector that the user overwrote on the way is stored as stale.

use super::Pblk;
use super::capacity::REQUEST_SECTORS;
use super::flash::Flash;
use super::ids::BufferId;
use super::intake::EntryState;
use super::layout::Cursor;
use super::pacing::Thread;
use super::rb::Origin;
use super::rules::Rules;
use crate::common::ids::LineId;
use crate::common::l2p::MapEntry;
use crate::common::lines::{Line, LineState};
use crate::common::oob::{key_is_live, key_lba};
use crate::common::trims::decode_trims;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use crate::pblk::events::EventKind;
use nandscape_block::SectorData;
use nandscape_media::{Cause, Internal, KEY_TRIM, OpenChannel, Ppa, Status};
use nandscape_rt::Nanos;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;

/// Victims at once (`PBLK_GC_L_QD`).
const VICTIMS_MAX: usize = 4;
/// Requests read and not yet fully inserted (`PBLK_GC_MAX_READERS`).
const REQUESTS_MAX: usize = 8;

/// Requests queued, read or not yet fully inserted (`PBLK_GC_RQ_QD`).
const REQUESTS_QUEUED: usize = 128;

/// A line being collected.
#[derive(Clone, Copy, Debug)]
struct VictimLine {
    id: LineId,
    at: Cursor,
    /// Valid sectors that were not read yet, at most.
    unread: u32,
    /// Requests not yet fully inserted.
    requests: u32,
    /// Nothing can be read before its address list is.
    ready_at: Nanos,
    /// Where its copies go.
    buffer: BufferId,
}

/// Sectors on their way from a victim to the ring.
#[derive(Default, Debug)]
pub(super) struct Request {
    line: LineId,
    buffer: BufferId,
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
    victims: Vec<VictimLine>,
    pub(super) requests: Vec<Request>,
    idle: Vec<usize>,
    ready: VecDeque<usize>,
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

    fn in_flight_requests(&self) -> usize {
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
}

/// The cause of a read of so many sectors by the collector.
const fn copying(sectors: u32) -> Cause {
    Cause { user: 0, gc: sectors as u8, pad: 0 }
}

impl<M: OpenChannel> Flash<M> {
    /// Charges the reading of a victim's address list. It is read again from out-of-band data, so an
    /// uncorrectable sector in it costs nothing more.
    fn read_emeta(&mut self, rules: &Rules, line: LineId) -> Result<Nanos, FtlError> {
        let mut at = self.line_end();
        let mut missing = self.emeta_units(rules);
        let mut ready = self.now;
        while missing > 0 && at > Cursor::START {
            at.step_back(self.layout.width);
            let ppa = self.ppa_at(line, at);
            if self.is_written(ppa) {
                self.media.set_cause(copying(self.geometry.ws_opt));
                let (now, ws_opt) = (self.now, self.geometry.ws_opt);
                ready = ready.max(self.media.read(now, now, ppa, ws_opt, &mut Internal)?.at);
                missing -= 1;
            }
        }
        Ok(ready)
    }
}

impl<M: OpenChannel> Pblk<M> {
    /// Chooses victims and reads them, as far as the limiter and the pacing want. Whether anything was
    /// started.
    pub(super) fn collect(&mut self) -> Result<bool, FtlError> {
        self.supply().return_constrained();
        let mut moved = self.start_victims()?;
        while self.collector.in_flight_requests() < REQUESTS_MAX && self.read_some()? {
            moved = true;
        }
        Ok(moved)
    }

    /// Starts victims until as many are in flight as may be. Whether any was started.
    pub(super) fn fill_victims(&mut self) -> Result<bool, FtlError> {
        let mut moved = false;
        while self.in_flight() < VICTIMS_MAX && self.start_victim()? {
            moved = true;
        }
        self.collector.takes_all &= !moved;
        Ok(moved)
    }

    /// Victims that count against [`VICTIMS_MAX`]: all of them, or, for the kernel's thread, those whose
    /// reads are not all queued yet (`read_inflight_gc`).
    pub(super) fn in_flight(&self) -> usize {
        if !self.collector.thread.is_paced() {
            return self.collector.victims.len();
        }
        let mut slots = REQUESTS_QUEUED.saturating_sub(self.collector.in_flight_requests());
        let queued = |victim: &&VictimLine| {
            let requests = (victim.unread as usize).div_ceil(REQUEST_SECTORS);
            let queued = victim.ready_at <= self.flash.now && requests <= slots;
            slots = slots.saturating_sub(requests);
            !queued
        };
        self.collector.victims.iter().filter(queued).count()
    }

    /// Notes what the victims need. Without order it is room for all that may come. The victims of the
    /// kernel's thread are read one after the other into one buffer, so that each needs room for its
    /// own copies only, once the lines before it are free; the requests in flight may arrive out of
    /// order, and where media lost a sector a line may not become free.
    fn plan_copies(&mut self) {
        let all = self.collector.pending_sectors;
        self.collector.needs = Needs { now: all, another: all as i64 };
        let in_order = self.collector.thread.is_paced()
            && self.buffers.all.len() == 1
            && self.mapping.is_none();
        if !in_order || self.flash.counts.media_errors.uncorrectable > 0 {
            return;
        }
        let out_of_order = (REQUESTS_MAX * REQUEST_SECTORS) as i64;
        let (mut most, mut before) = (0, 0);
        for victim in &self.collector.victims {
            let requests =
                self.collector.requests.iter().filter(|request| request.line == victim.id);
            let read: usize = requests.map(|it| it.sectors.len() - it.inserted).sum();
            let copies = i64::from(victim.unread) + read as i64;
            most = most.max(before + copies);
            before += copies - i64::from(self.flash.lines.get(victim.id).capacity);
        }
        let slack = if self.collector.victims.len() > 1 { out_of_order } else { 0 };
        let now = (most + slack).max(0) as u64;
        self.collector.needs =
            Needs { now: now.min(all), another: (before + out_of_order).min(all as i64) };
    }

    /// Starts on one more victim, if one is wanted and its valid sectors surely find room: the
    /// policy's choice, or, where a power cut has left little room, the line that needs least. While
    /// there is space enough only lines with write errors are wanted.
    fn start_victim(&mut self) -> Result<bool, FtlError> {
        let target = self.copies_target();
        let Some(id) = self.choose_victim(target) else { return Ok(false) };
        let line = *self.flash.lines.get(id);
        let buffer = self.space().copies_of(&line, target);
        self.flash.victims.remove(id);
        self.flash.lines.get_mut(id).state = LineState::Gc;
        self.stats.gc.victims += 1;
        self.stats.gc.victim_valid += u64::from(line.valid);
        self.stats.gc.victim_data += u64::from(line.data);
        let origin = &mut self.stats.buffers[usize::from(line.origin)];
        origin.victims += 1;
        origin.victim_valid += u64::from(line.valid);
        let ready_at =
            if line.emeta { self.flash.read_emeta(&self.rules, id)? } else { self.flash.now };
        let unread = line.valid;
        let victim = VictimLine { id, at: Cursor::START, unread, requests: 0, ready_at, buffer };
        self.collector.victims.push(victim);
        self.collector.pending_sectors += u64::from(unread);
        if self.collector.takes_all {
            self.collector.gathers_in = Some((buffer, self.stats.admitted_sectors()));
        }
        self.plan_copies();
        self.supply().limiter_update();
        Ok(true)
    }

    /// Where copies go that need not stay with their like. Where any line is a victim that gains anything, all
    /// go to one buffer, that with most room: each buffer pads what they leave of a unit, which may be
    /// more than their lines gain.
    fn copies_target(&mut self) -> BufferId {
        if let Some(gc) = self.buffers.router.plan().gc {
            return gc;
        }
        if !self.collector.takes_all {
            return self.buffers.router.copies_in_turn();
        }
        let normal = self.buffers.router.plan().normal.clone();
        let roomiest = || normal.rev().max_by_key(|&id| self.space().uncommitted(id)).unwrap_or(0);
        let gathers =
            self.gathers_in().filter(|_| self.is_gathering() || !self.collector.is_idle());
        gathers.unwrap_or_else(roomiest)
    }

    /// Where lines are short on the whole, the stripe with most to gain is collected first; else each
    /// that is short itself. A victim must gain more than copying it may pad; what flushes of several
    /// buffers pad counts unless users stand still. Lines of the journal that are exempt are victims
    /// when nothing else helps.
    fn choose_victim(&mut self, target: BufferId) -> Option<LineId> {
        let short =
            self.space().wants_victim(self.frontiers.limiter_free(&self.flash, &self.rules, None));
        let stripes = self.flash.layout.stripes();
        let of_stripe = |stripe| {
            stripes > 1
                && self.space().wants_victim(self.frontiers.limiter_free(
                    &self.flash,
                    &self.rules,
                    Some(stripe),
                ))
        };
        let wanted = |stripe: u32| short || of_stripe(stripe);
        if !self.flash.victims.has_werr() && !(0..stripes).any(wanted) {
            return None;
        }
        let wanted: SmallVec<[bool; 8]> = (0..stripes).map(wanted).collect();
        let (lines, room) = (&self.flash.lines, self.space().uncommitted(target));
        let all = self.collector.takes_all;
        let least = all || (self.collector.is_idle() && room < self.space().reserved_lines());
        let halted = all
            || self.buffers.all[0].rl.stops_users(self.frontiers.limiter_free(
                &self.flash,
                &self.rules,
                None,
            ));
        let pressed = self.buffers.all.len() == 1 || halted;
        let flushed = if short && pressed { 0 } else { self.flash.geometry.ws_opt };
        let copied = self.rules.capacity.copy_padding;
        let settled = |line: LineId| lines.get(line).pending == 0;
        let fits = |line: LineId| u64::from(lines.get(line).valid) <= room;
        let gains = |line: LineId| {
            let Line { valid, capacity, .. } = *lines.get(line);
            valid + flushed.max(copied.of(valid)) < capacity
        };
        let order =
            if short { self.flash.victims.by_gain(settled) } else { lines.stripes_by_need() };
        let (plan, spares) = (self.buffers.router.plan(), self.space().spares_journal());
        let spared = |line: LineId| spares && plan.is_journal(lines.get(line).origin);
        self.flash.victims.find(order, |victims, stripe| {
            let line = |index: LineId| self.flash.layout.line(index, stripe);
            let fits = |index: &LineId| fits(line(*index));
            if !wanted[stripe as usize] {
                return victims.choose_werr(|index| settled(line(index))).filter(fits);
            }
            let eligible = |index| {
                let line = line(index);
                settled(line) && gains(line) && !spared(line)
            };
            let chosen = if least { None } else { victims.choose(eligible).filter(fits) };
            chosen.or_else(|| victims.least_valid(eligible).filter(fits))
        })
    }

    /// Reads one request of the oldest victim that is not fully read.
    fn read_some(&mut self) -> Result<bool, FtlError> {
        let end = self.flash.line_end();
        let Some(index) = self.collector.victims.iter().position(|victim| victim.at < end) else {
            return Ok(false);
        };
        let mut victim = self.collector.victims[index];
        let number = self.collector.take_request(&victim);
        let arrived = self.fill_request(&mut victim, number)?;
        self.sort_by_block(number);
        let read = self.collector.requests[number].sectors.len() as u32;
        let before = u64::from(victim.unread);
        let left = victim.unread.saturating_sub(read);
        victim.unread = if victim.at < end { left } else { 0 };
        self.collector.pending_sectors += u64::from(read + victim.unread);
        self.collector.pending_sectors -= before;
        if read == 0 {
            self.collector.idle.push(number);
        } else {
            victim.requests += 1;
            self.flash.events.push(arrived, EventKind::GcRead(number));
        }
        self.collector.victims[index] = victim;
        self.plan_copies();
        self.finish_victim(index);
        Ok(true)
    }

    /// Reads valid sectors from the victim's cursor on until the request is full. When they arrive.
    fn fill_request(&mut self, victim: &mut VictimLine, number: usize) -> Result<Nanos, FtlError> {
        let (width, end, ws_opt) =
            (self.flash.layout.width, self.flash.line_end(), self.flash.geometry.ws_opt);
        let mut arrived = self.flash.now.max(victim.ready_at);
        while victim.at < end {
            let ppa = self.flash.ppa_at(victim.id, victim.at);
            let mask = self.flash.lines.valid_mask(ppa, ws_opt);
            if mask != 0 {
                let room = REQUEST_SECTORS - self.collector.requests[number].sectors.len();
                if mask.count_ones() as usize > room {
                    break;
                }
                arrived = arrived.max(self.read_unit(number, ppa, mask, victim.ready_at)?);
            }
            victim.at.step(width);
        }
        Ok(arrived)
    }

    /// Copies whose mappings are in one block follow each other: they share its load, and where the
    /// cache is full of pinned blocks they share the unit whose padding frees it. Else each copy could
    /// pad a unit, and collecting a line could take more than it gains.
    fn sort_by_block(&mut self, number: usize) {
        let Some(mapping) = &self.mapping else { return };
        let block = |key| key_lba(key).map(|lba| mapping.cache.block_of(lba));
        self.collector.requests[number].sectors.sort_unstable_by_key(|&(at, key)| (block(key), at));
    }

    /// Reads the sectors of one write unit that `mask` names, in one command.
    fn read_unit(
        &mut self,
        number: usize,
        ppa: Ppa,
        mask: u64,
        from: Nanos,
    ) -> Result<Nanos, FtlError> {
        let first = mask.trailing_zeros();
        let span = u64::BITS - mask.leading_zeros() - first;
        self.flash.media.set_cause(copying(span));
        let (now, ready) = (self.flash.now, self.flash.now.max(from));
        let outcome = self.flash.media.read(now, ready, ppa.plus(first), span, &mut Internal)?;
        let sectors = &mut self.collector.requests[number].sectors;
        let mut left = mask;
        while left != 0 {
            let at = ppa.plus(left.trailing_zeros());
            left &= left - 1;
            if outcome.status != Status::Ok && !self.flash.media.readable(at) {
                self.flash.counts.media_errors.uncorrectable += 1;
                continue;
            }
            let key = self.flash.media.oob(at).key;
            if let Some(lba) = key_lba(key) {
                self.flash.l2p.prefetch(lba);
            }
            sectors.push((at, key));
        }
        Ok(outcome.at)
    }

    /// A request's data has arrived.
    pub(super) fn gc_arrived(&mut self, number: usize) {
        self.collector.ready.push_back(number);
    }

    /// Moves arrived copies into the ring, as far as there is room. Whether any moved.
    pub(super) fn insert_copies(&mut self) -> bool {
        let mut moved = false;
        while let Some(&number) = self.collector.ready.front() {
            if self.is_copying() || self.collector.awaits.is_some() {
                break;
            }
            let left = self.collector.requests[number].sectors.len()
                - self.collector.requests[number].inserted;
            if left > 0 {
                let room = self.copy_room(self.collector.requests[number].buffer, left as u32);
                // Where there is no room a mapping would only come in vain.
                if room == 0 {
                    break;
                }
                let room = self.mapped_copies(number, room);
                if room == 0 {
                    let request = &self.collector.requests[number];
                    let (_, key) = request.sectors[request.inserted];
                    self.collector.awaits =
                        key_lba(key).and_then(|lba| self.awaited_block(lba, true));
                    break;
                }
                self.insert_request(number, room);
                moved = true;
            }
            if self.collector.requests[number].inserted
                == self.collector.requests[number].sectors.len()
            {
                self.collector.ready.pop_front();
                self.request_done(number);
                moved = true;
            }
        }
        moved
    }

    /// How many of `wanted` copies may go into the ring. Trim sectors may need two slots, in buffer 0.
    fn copy_room(&mut self, id: BufferId, wanted: u32) -> u32 {
        if id != 0 && self.make_ring_room(0, 2) < 2 {
            return 0;
        }
        let ring = self.make_ring_room(id, wanted.saturating_add(2)).saturating_sub(2);
        let room =
            wanted.min(ring).min(self.buffers.all[usize::from(id)].rl.gc_room(self.flash.now));
        if room == 0 { 0 } else { u64::from(room).min(self.space().copy_space(id)) as u32 }
    }

    /// Inserts the next `room` copies, up to the first trim sector, which is logged anew.
    fn insert_request(&mut self, number: usize, room: u32) {
        let request = &mut self.collector.requests[number];
        let (id, from) = (request.buffer, request.inserted);
        let next = &request.sectors[from..from + room as usize];
        let copies = next.iter().position(|&(_, key)| key == KEY_TRIM).unwrap_or(next.len());
        let trim = next.get(copies).map(|&(at, _)| at);
        let inserted = copies + usize::from(trim.is_some());
        request.inserted += inserted;
        self.collector.pending_sectors -= inserted as u64;
        self.plan_copies();
        self.insert_run(number, from..from + copies);
        if let Some(at) = trim {
            let data = self.flash.media.data(at);
            self.relog_trims(at, &data);
        }
        self.buffers.all[usize::from(id)].rl.gc_in(copies as u32);
        self.copied(id, copies as u32);
    }

    /// Inserts copies of a request. Their line is being collected, so that nobody asks what it has left.
    fn insert_run(&mut self, number: usize, copies: Range<usize>) {
        let request = &self.collector.requests[number];
        let rb = &mut self.buffers.all[usize::from(request.buffer)].rb;
        let (mut cleared, mut gate) = (0, 0);
        for &(at, key) in &request.sectors[copies] {
            let slot = rb.push(key, Origin::Gc, self.flash.next_seq);
            self.flash.next_seq += 1;
            let moved = key_lba(key).filter(|lba| {
                self.flash.l2p.switch(*lba, MapEntry::Flash(at), MapEntry::Buffered(slot))
            });
            let Some(lba) = moved else {
                rb.mark_stale();
                if key_is_live(key) && self.flash.lines.is_valid(at) {
                    let blind = self.mapping.as_mut().and_then(|mapping| mapping.blind.as_mut());
                    let held = blind.zip(key_lba(key)).map(|(blind, lba)| blind.settle(lba));
                    debug_assert!(held.is_some(), "a valid sector is the newest of its address");
                    self.flash.lines.clear_bit(at);
                    (cleared, gate) = (cleared + 1, self.flash.next_seq);
                }
                continue;
            };
            if self.rules.run.keep_content {
                rb.keep(self.flash.media.data(at));
            }
            self.flash.lines.clear_bit(at);
            (cleared, gate) = (cleared + 1, self.flash.next_seq);
            if let Some(mapping) = &mut self.mapping {
                mapping.add_blind(lba, None);
                mapping.changed(lba, EntryState::OnMedia, EntryState::BufferedVolatile);
            }
        }
        self.flash.lines.cleared(request.line, cleared, gate);
    }

    /// Logs again the records of a trim sector that still hide something. The others are dropped: what hides their
    /// sectors instead must be durable before the line is erased.
    pub(super) fn relog_trims(&mut self, at: Ppa, data: &SectorData) {
        for record in decode_trims(data).unwrap_or_default() {
            if self.buffers.trimmed.is_needed(&record) {
                self.buffers.log_trim(&mut self.flash, &mut self.progress, record);
            }
        }
        let gate = if self.rules.run.omits(OmittedRule::RelogGate) {
            0
        } else {
            self.buffers.gate(self.flash.next_seq)
        };
        if let Some(id) = self.flash.invalidate(at, gate) {
            self.supply().line_emptied(id);
        }
    }

    fn request_done(&mut self, number: usize) {
        let line = self.collector.requests[number].line;
        self.collector.idle.push(number);
        if let Some(index) = self.collector.victims.iter().position(|victim| victim.id == line) {
            self.collector.victims[index].requests -= 1;
            self.finish_victim(index);
        }
    }

    /// A victim that is fully read and inserted is empty, or holds what media could not read.
    fn finish_victim(&mut self, index: usize) {
        let victim = self.collector.victims[index];
        if victim.at < self.flash.line_end() || victim.requests > 0 {
            return;
        }
        self.collector.victims.remove(index);
        if self.flash.lines.get(victim.id).valid == 0 {
            self.supply().quarantine_line(victim.id);
        } else {
            self.flash.lines.get_mut(victim.id).state = LineState::Corrupt;
        }
        self.plan_copies();
        self.supply().limiter_update();
    }
}
