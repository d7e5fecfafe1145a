//! The copies' way into the ring (pblk-gc.c). When a request's data has arrived its sectors go through the ring like
//! user data; each is looked up again on insertion, and a sector that the user overwrote on the way is stored as stale.

use super::Pblk;
use super::cpu::Task;
use super::ids::BufferId;
use super::intake::EntryState;
use super::rb::Origin;
use crate::common::l2p::MapEntry;
use crate::common::oob::{key_is_live, key_lba};
use crate::common::trims::decode_trims;
use crate::kind::OmittedRule;
use nandscape_block::SectorData;
use nandscape_media::{KEY_TRIM, OpenChannel, Ppa};
use nandscape_rt::invariant;
use std::ops::Range;

impl<M: OpenChannel> Pblk<M> {
    /// Moves arrived copies into the ring, as far as there is room. Whether any moved.
    pub(super) fn insert_copies(&mut self) -> bool {
        let mut moved = false;
        while let Some(&number) = self.collector.ready.front() {
            if self.cpu.as_ref().is_some_and(|cpu| cpu.is_collecting())
                || self.collector.awaits.is_some()
            {
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
                let request = &mut self.collector.requests[number];
                let room = match &mut self.mapping {
                    Some(mapping) => mapping.ready_copies(&self.flash, request, room),
                    None => room,
                };
                if room == 0 {
                    let request = &self.collector.requests[number];
                    let (_, key) = request.sectors[request.inserted];
                    self.collector.awaits = key_lba(key)
                        .zip(self.mapping.as_ref())
                        .map(|(lba, mapping)| mapping.awaited_block(lba, true));
                    break;
                }
                self.insert_request(number, room);
                moved = true;
            }
            if self.collector.requests[number].inserted
                == self.collector.requests[number].sectors.len()
            {
                self.collector.ready.pop_front();
                if let Some(index) = self.collector.request_done(number) {
                    self.supply().finish_victim(index);
                }
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

    /// Inserts the next `room` copies, up to the first trim sector, which is logged again.
    fn insert_request(&mut self, number: usize, room: u32) {
        let request = &mut self.collector.requests[number];
        let (id, from) = (request.buffer, request.inserted);
        let next = &request.sectors[from..from + room as usize];
        let copies = next.iter().position(|&(_, key)| key == KEY_TRIM).unwrap_or(next.len());
        let trim = next.get(copies).map(|&(at, _)| at);
        let inserted = copies + usize::from(trim.is_some());
        request.inserted += inserted;
        self.collector.pending_sectors -= inserted as u64;
        self.collector.plan_copies(&self.flash, &self.buffers, &self.rules);
        self.insert_run(number, from..from + copies);
        if let Some(at) = trim {
            let data = self.flash.media.data(at);
            self.relog_trims(at, &data);
        }
        self.buffers.all[usize::from(id)].rl.gc_in(copies as u32);
        if let Some(cpu) = &mut self.cpu {
            let task = Task::Copy(id, copies as u32);
            cpu.run_task(&mut self.flash, &mut self.buffers, &self.rules, task);
        }
    }

    /// Inserts copies of a request. Their line is being collected, so that what it has left is not looked at.
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
            let line = request.line;
            let Some(lba) = moved else {
                rb.mark_stale();
                if key_is_live(key) && self.flash.lines.is_valid(at) {
                    let blind = self.mapping.as_mut().and_then(|mapping| mapping.blind.as_mut());
                    let held = blind.zip(key_lba(key)).map(|(blind, lba)| blind.settle(lba));
                    invariant!(held.is_some(), "a valid sector is the newest of its address");
                    self.flash
                        .shadow
                        .note(|ledger| ledger.superseded(line, self.flash.next_seq - 2));
                    self.flash.lines.clear_bit(at);
                    (cleared, gate) = (cleared + 1, self.flash.next_seq);
                }
                continue;
            };
            invariant!(
                self.flash.media.oob(at).seq < self.flash.next_seq - 1,
                "a copy of {at:?} is younger than its source"
            );
            self.flash.shadow.note(|ledger| {
                ledger.entered(request.buffer, self.flash.next_seq - 1);
                ledger.superseded(line, self.flash.next_seq - 1);
            });
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
        let records = decode_trims(data);
        invariant!(records.is_some(), "a valid sector of trim records holds some: that at {at:?}");
        for record in records.unwrap_or_default() {
            if self.buffers.trimmed.is_needed(&record) {
                self.buffers.log_trim(&mut self.flash, &mut self.progress, record);
            } else {
                invariant!(
                    !self.buffers.trimmed.hides_an_end(&record),
                    "a record is dropped when younger ones, or writes, hide all that it hides"
                );
            }
        }
        let (line, newest) = (self.flash.lines.of(at), self.flash.next_seq - 1);
        self.flash.shadow.note(|ledger| {
            ledger.superseded(line, newest);
            ledger.discarded_by_any(line);
        });
        let gate = if self.rules.run.omits(OmittedRule::RelogGate) {
            0
        } else {
            self.buffers.gate(self.flash.next_seq)
        };
        if let Some(id) = self.flash.invalidate(at, gate) {
            self.supply().line_emptied(id);
        }
    }
}
