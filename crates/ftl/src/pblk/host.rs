//! What the host sees: reads, and admission of writes and discards (pblk-cache.c). A write is acknowledged when
//! all of it is in a buffer; where there is no room it waits, in order of arrival at that buffer. A
//! discard is a logged write, and waits at buffer 0.

use super::Pblk;
use super::flushes::Covered;
use super::ids::BufferId;
use super::intake::EntryState;
use super::rb::Origin;
use super::waiting::{Arrival, Queued};
use crate::common::l2p::MapEntry;
use crate::common::reads;
use crate::common::trims::TrimRecord;
use crate::kind::OmittedRule;
use nandscape_block::{Bio, Completion, Done, Flags, Lba, Op, Submit, Token};
use nandscape_media::OpenChannel;
use nandscape_rt::{Shadow, invariant};

impl<M: OpenChannel> Pblk<M> {
    /// Serves a bio that has come in.
    #[inline]
    pub(super) fn serve(&mut self, bio: Bio, token: Token, entered: Arrival) -> Submit {
        if let Some(error) = self.refusal(bio.op) {
            return Submit::Done(Done::new(self.flash.now, Err(error)));
        }
        if bio.op == Op::Read && self.mapping.is_some() {
            return self.read_mapped(bio, token);
        }
        if bio.op == Op::Read {
            return Submit::Done(self.read(&bio));
        }
        self.accept(bio, token, entered)
    }

    /// Serves a read; its outcome is known at once.
    #[inline]
    pub(super) fn read(&mut self, bio: &Bio) -> Done {
        let wants_data = self.rules.run.keep_content && !bio.flags.has(Flags::NO_DATA);
        self.stats.host.read += u64::from(bio.sectors);
        let found = self.flash.read_sectors(&mut self.stats, bio.lba, bio.sectors);
        reads::done(self.flash.now, found, || {
            wants_data.then(|| self.flash.contents(&self.buffers, bio))
        })
    }

    /// A write, flush or discard comes in.
    #[inline]
    fn accept(&mut self, bio: Bio, token: Token, entered: Arrival) -> Submit {
        let preflush = bio.op == Op::Flush || bio.flags.has(Flags::PREFLUSH);
        if preflush && (bio.op == Op::Flush || !self.rules.run.omits(OmittedRule::PreflushDrain)) {
            return self.drain_first(bio, token, entered);
        }
        self.admit_or_queue(bio, token, entered)
    }

    #[inline]
    pub(super) fn admit_or_queue(&mut self, bio: Bio, token: Token, entered: Arrival) -> Submit {
        let id = entered.buffer.unwrap_or_else(|| self.buffers.buffer_for(&bio));
        let mut queued = Queued::new(bio, id, token, entered);
        if self.buffers.all[usize::from(id)].queue.is_empty() {
            if let Some(submit) = self.admit(&mut queued) {
                return submit;
            }
            self.progress.needs_pump = true;
        }
        self.buffers.all[usize::from(id)].queue.push_back(queued);
        Submit::Pending
    }

    /// Whether a request waits for the FTL to move.
    pub(super) fn has_waiters(&self) -> bool {
        !self.buffers.flushes.is_empty()
            || self.buffers.all.iter().any(|buffer| !buffer.queue.is_empty())
            || self.mapping.as_ref().is_some_and(|mapping| !mapping.reads.is_empty())
    }

    /// Every bio in flight, given up.
    pub(super) fn abandon(&mut self) -> Vec<Token> {
        let queues = self.buffers.all.iter_mut().flat_map(|buffer| {
            buffer.waiters.clear();
            buffer.queue.drain(..).map(|queued| queued.token)
        });
        let reads = self.mapping.iter_mut().flat_map(|mapping| mapping.reads.abandon());
        let outside = self.cpu.as_mut().map(|host| host.abandon()).unwrap_or_default();
        queues.chain(self.buffers.flushes.abandon()).chain(reads).chain(outside).collect()
    }

    /// Inserts as much as there is room for; the answer when all of it is in the buffer.
    #[inline]
    fn admit(&mut self, queued: &mut Queued) -> Option<Submit> {
        let wanted = queued.sectors - queued.inserted;
        let room = self.admissible(queued.buffer, queued.discard, wanted)?;
        let room = self.mapped_part(queued, room);
        if room == 0 { None } else { self.admit_part(queued, room) }
    }

    /// How many of `wanted` sectors may go on now; `None` when none may.
    #[inline]
    fn admissible(&mut self, buffer: BufferId, discard: bool, wanted: u32) -> Option<u32> {
        if discard {
            return self.discard_has_room().then_some(wanted);
        }
        Some(self.user_room(buffer, wanted)).filter(|&room| room > 0)
    }

    /// How many of the next `room` sectors of a write or discard have their mapping in RAM.
    #[inline]
    fn mapped_part(&mut self, queued: &mut Queued, room: u32) -> u32 {
        match &mut self.mapping {
            Some(mapping) => mapping.ready_part(queued, room, self.flash.now),
            None => room,
        }
    }

    #[inline]
    fn admit_part(&mut self, queued: &mut Queued, room: u32) -> Option<Submit> {
        if queued.discard {
            self.discard(queued, room);
        } else {
            self.insert_user(queued, room);
        }
        queued.inserted += room;
        (queued.inserted == queued.sectors).then(|| self.admitted(queued))
    }

    /// All of the bio is in the buffer: acknowledge it, or have it wait for durability.
    #[inline]
    fn admitted(&mut self, queued: &Queued) -> Submit {
        if queued.discard && !queued.flags.has(Flags::FUA) {
            // A command is accepted, and a record enters a buffer.
            let accepted = self.flash.media.link().accepted(self.flash.now);
            return Submit::Done(Done::ok(accepted.max(self.flash.now + self.copy_in(1))));
        }
        if self.buffers.all[usize::from(queued.buffer)].rb.backlog() >= self.flash.geometry.ws_opt {
            self.progress.needs_pump = true;
        }
        if queued.flags.has(Flags::FUA) {
            self.buffers.emit_trims(&mut self.flash, &mut self.progress);
        }
        let rb = &self.buffers.all[usize::from(queued.buffer)].rb;
        if queued.flags.has(Flags::FUA) && rb.is_dirty() {
            let target = (queued.buffer, rb.mem);
            let flush = self.buffers.wait_for(
                &mut self.progress,
                &mut self.stats,
                &[target],
                queued.token,
                Arrival::at(queued.since),
                None,
            );
            self.buffers.flushes.covers(
                flush,
                Covered {
                    before: self.flash.next_seq,
                    buffers: 1 << queued.buffer,
                    records: queued.discard,
                },
            );
            return Submit::Pending;
        }
        Submit::Done(Done::ok(self.flash.now + self.copy_in(queued.sectors)))
    }

    /// Admits bios that wait, in order. Whether anything moved.
    pub(super) fn admit_queued(&mut self) -> bool {
        let mut moved = false;
        for id in 0..self.buffers.all.len() {
            moved |= self.admit_queued_at(id);
        }
        moved
    }

    pub(super) fn admit_queued_at(&mut self, id: usize) -> bool {
        let mut moved = false;
        while let Some(front) =
            self.buffers.all[id].queue.front().filter(|_| self.buffers.all[id].awaits.is_none())
        {
            let (buffer, discard) = (front.buffer, front.discard);
            let wanted = front.sectors - front.inserted;
            let Some(room) = self.admissible(buffer, discard, wanted) else { break };
            let Some(mut queued) = self.buffers.all[id].queue.pop_front() else { break };
            let room = self.mapped_part(&mut queued, room);
            if room == 0 {
                let mapping = self.mapping.as_ref();
                self.buffers.all[id].awaits =
                    mapping.map(|mapping| mapping.awaited_block(queued.next(), !discard));
                self.buffers.all[id].queue.push_front(queued);
                break;
            }
            moved = true;
            let Some(submit) = self.admit_part(&mut queued, room) else {
                self.buffers.all[id].queue.push_front(queued);
                break;
            };
            self.buffers.all[id].looked = self.buffers.all[id].looked.saturating_sub(1);
            self.stats.host.stall_ns_max =
                self.stats.host.stall_ns_max.max(self.flash.now - queued.since);
            if let Submit::Done(done) = submit {
                self.done.push(Completion { token: queued.token, done });
            }
        }
        moved
    }

    /// How many of `wanted` user sectors may go into a buffer: by the limiter, by free slots, and so
    /// that garbage collection can always fill one more line.
    #[inline]
    fn user_room(&mut self, id: BufferId, wanted: u32) -> u32 {
        let room = wanted.min(self.buffers.all[usize::from(id)].rl.user_room());
        let room = room.min(self.make_ring_room(id, room));
        if room == 0 { 0 } else { u64::from(room).min(self.space().user_space(id)) as u32 }
    }

    /// Inserts the next `sectors` sectors of a write.
    #[inline]
    fn insert_user(&mut self, queued: &Queued, sectors: u32) {
        let id = usize::from(queued.buffer);
        for index in queued.inserted..queued.inserted + sectors {
            let lba = queued.lba.plus(u64::from(index));
            let seq = self.flash.next_seq;
            self.flash.next_seq += 1;
            let rb = &mut self.buffers.all[id].rb;
            let slot = rb.push(lba.0 as u32, Origin::User, seq);
            self.flash.shadow.note(|ledger| ledger.entered(queued.buffer, seq));
            if self.rules.run.keep_content {
                rb.keep(queued.payload.sector(index));
            }
            rb.owned_by(queued.file);
            let before = self.flash.l2p.replace(lba, MapEntry::Buffered(slot));
            if before == MapEntry::Unmapped {
                self.buffers.trimmed.written(lba);
            }
            self.supersede(lba, before, seq + 1);
            let named = if self.mapping.is_some() {
                self.buffers.entry_state(before)
            } else {
                EntryState::OnMedia
            };
            if let Some(mapping) = &mut self.mapping {
                mapping.changed(lba, named, EntryState::BufferedVolatile);
            }
        }
        let buffer = &mut self.buffers.all[id];
        buffer.rl.user_in(sectors, self.flash.now);
        self.buffers.router.note(queued.file, queued.buffer, buffer.rb.mem);
        let sectors = u64::from(sectors);
        self.stats.host.written += sectors;
        self.in_use_sum += u128::from(self.flash.lines.in_use) * u128::from(sectors);
        if queued.flags.has(Flags::JOURNAL) {
            self.flash.counts.sectors.journal += sectors;
        }
    }

    /// A sector's table entry changes from `before`: invalidates that place, now or at the merge.
    #[inline]
    fn supersede(&mut self, lba: Lba, before: MapEntry, gate: u64) {
        let at = match before {
            MapEntry::Flash(at) => Some(at),
            MapEntry::Buffered(_) | MapEntry::Unmapped => None,
        };
        if let Some(mapping) = &mut self.mapping
            && mapping.add_blind(lba, at)
        {
            return;
        }
        if let Some(at) = at {
            invariant!(
                self.flash.media.oob(at).seq < gate - 1,
                "the copy of {lba} at {at:?} is older than what supersedes it"
            );
            let line = self.flash.lines.of(at);
            self.flash.shadow.note(|ledger| ledger.superseded(line, gate - 1));
            self.flash.note_dead(&self.rules, at, gate);
            if let Some(id) = self.flash.invalidate(at, gate) {
                self.supply().line_emptied(id);
            }
        }
    }

    /// A discard that is logged needs a ring slot in reserve for its record, and space on media for a
    /// padded unit.
    fn discard_has_room(&mut self) -> bool {
        let unit = u64::from(self.flash.geometry.ws_opt);
        if !self.rules.logs_discards() {
            return true;
        }
        let has_slot = self.buffers.trims.has_pending() || self.make_ring_room(0, 1) > 0;
        has_slot && self.space().user_space(0) >= unit
    }

    /// Hides the next `sectors` sectors of a discard, which have a record of their own.
    fn discard(&mut self, queued: &Queued, sectors: u32) {
        let durable = self.rules.logs_discards();
        let lba = queued.next();
        let awaits_record = durable && !self.rules.run.omits(OmittedRule::TrimGate);
        let gate = self.flash.next_seq + u64::from(awaits_record);
        let range = lba.0..lba.0 + u64::from(sectors);
        let mut hides = Shadow::<bool>::default();
        let mut hidden = false;
        for lba in range.clone().map(Lba) {
            hides.note(|hides| *hides |= self.flash.l2p.get(lba) != MapEntry::Unmapped);
            let before = self.flash.l2p.replace(lba, MapEntry::Unmapped);
            match before {
                MapEntry::Flash(at) => {
                    if durable {
                        let (line, position) = (self.flash.lines.of(at), self.flash.next_seq);
                        self.flash.shadow.note(|ledger| ledger.discarded(line, position));
                        self.flash.note_dead(&self.rules, at, gate);
                    }
                    if let Some(id) = self.flash.invalidate(at, gate) {
                        self.supply().line_emptied(id);
                    }
                }
                MapEntry::Buffered(_) => {}
                MapEntry::Unmapped => continue,
            }
            let named = self.buffers.entry_state(before);
            if let Some(mapping) = &mut self.mapping {
                mapping.changed(lba, named, EntryState::OnMedia);
            }
            hidden = true;
        }
        self.stats.host.discarded += u64::from(sectors);
        if hidden && durable {
            let record = TrimRecord { lba: lba.0 as u32, sectors, seq: self.flash.next_seq };
            self.buffers.trimmed.hide(record);
            self.buffers.log_trim(&mut self.flash, &mut self.progress, record);
        }
        invariant!(
            !durable || hides.agrees(|hides| !hides || self.buffers.trimmed.hides(range)),
            "a discard that changes anything is logged"
        );
    }
}
