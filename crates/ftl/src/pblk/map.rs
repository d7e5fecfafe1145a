//! Keeping table, valid counts and ring in step (pblk-map.c, pblk-rb.c `__pblk_rb_update_l2p`).
//!
//! A sector's table entry names its ring slot from insertion until the slot is about to be reused,
//! and only then media. A unit's entries leave the ring together, once the unit is durable and the
//! device would serve a read of them: an open chunk refuses its last `mw_cunits` sectors.

use super::Pblk;
use super::ids::BufferId;
use super::units::WriteUnit;
use crate::common::ids::LineId;
use crate::common::l2p::{L2p, MapEntry};
use crate::common::lines::LineState;
use crate::common::oob::key_lba;
use crate::kind::OmittedRule;
use nandscape_media::{KEY_TRIM, OpenChannel, Ppa};

impl<M: OpenChannel> Pblk<M> {
    /// Free ring slots after recycling until `wanted` are free, or none can be recycled. One slot
    /// stays reserved while trim records wait for it, so that a flush never waits for space.
    #[inline]
    pub(super) fn make_ring_room(&mut self, id: BufferId, wanted: u32) -> u32 {
        let reserved = u32::from(id == 0 && self.buffers.trims.has_pending());
        let free = |pblk: &Self| pblk.buffers.all[usize::from(id)].rb.free();
        while free(self) < wanted.saturating_add(reserved) && self.recycle(id) {}
        free(self).saturating_sub(reserved)
    }

    /// Lets the oldest unit's entries leave the ring. Whether there was one that could.
    #[inline]
    pub(super) fn recycle(&mut self, id: BufferId) -> bool {
        let served =
            |unit: &&WriteUnit| self.flash.is_served(unit.at.plus(unit.entries.saturating_sub(1)));
        let unit = self.buffers.all[usize::from(id)].units.oldest().filter(served).copied();
        unit.map(|unit| self.release_unit(id, &unit)).is_some()
    }

    /// The entries of the oldest unit leave the ring.
    fn release_unit(&mut self, id: BufferId, unit: &WriteUnit) {
        let buffer = &mut self.buffers.all[usize::from(id)];
        buffer.units.pop();
        let (mut live, mut index) = (0, 0);
        buffer.rb.run(unit.first, unit.entries).for_each(|(slot, key)| {
            let switched = switch_to_media(&mut self.flash.l2p, slot, key, unit.at.plus(index));
            live |= u64::from(switched) << index;
            index += 1;
        });
        buffer.rb.l2p_update += u64::from(unit.entries);
        self.flash.lines.set_valid(unit.line, unit.at, live);
        if live.count_ones() < unit.entries && self.flash.media.may_drop() {
            self.flash.note_stale(&self.rules, &self.buffers, id, unit);
        }
        self.entries_left(id, unit, live);
        self.settle(unit);
    }

    /// The unit's entries are no longer pending in their line. What did not become valid was
    /// superseded by something in the ring, which must be durable before the line is erased.
    fn settle(&mut self, unit: &WriteUnit) {
        let gate = if self.rules.run.omits(OmittedRule::SettledGate) {
            0
        } else {
            self.buffers.gate(self.flash.next_seq)
        };
        let line = self.flash.lines.get_mut(unit.line);
        line.gate = line.gate.max(gate);
        line.pending -= unit.entries;
        self.line_lowered(unit.line);
    }

    /// A sector on media was superseded by a change that is durable when everything before `gate`
    /// is.
    #[inline]
    pub(super) fn invalidate(&mut self, at: Ppa, gate: u64) {
        let id = self.flash.lines.clear_valid(at, gate);
        self.line_lowered(id);
    }

    /// A line lost valid or pending sectors.
    #[inline]
    pub(super) fn line_lowered(&mut self, id: LineId) {
        let line = self.flash.lines.get(id);
        if line.valid == 0 && line.pending == 0 {
            self.line_emptied(id);
        } else if line.state == LineState::Closed && !line.is_map() {
            self.flash.victims.lower(id, self.flash.lines.weight(id));
        }
    }

    /// A line without valid or pending sectors is on its way to the free list, if it is closed. A
    /// victim gets there when its last copy is handled.
    #[cold]
    pub(super) fn line_emptied(&mut self, id: LineId) {
        match self.flash.lines.get(id).state {
            LineState::Closed if self.flash.lines.get(id).is_map() => {
                self.flash.map_victims.retain(|&other| other != id);
                self.quarantine_line(id);
            }
            LineState::Closed => {
                self.flash.victims.remove(id);
                self.stats.gc.empty_victims += 1;
                let origin = self.flash.lines.get(id).origin;
                self.stats.buffers[usize::from(origin)].empty_victims += 1;
                self.line_is_garbage(id);
            }
            LineState::Corrupt => self.quarantine_line(id),
            _ => {}
        }
    }

    /// An empty line is quarantined; forgets the erase rule when that is asked for.
    pub(super) fn quarantine_line(&mut self, id: LineId) {
        if self.rules.run.omits(OmittedRule::EraseRule) {
            self.flash.lines.get_mut(id).gate = 0;
        }
        self.flash.lines.quarantine_line(id);
        self.release_durable_lines();
    }

    /// Frees the lines whose gate has been passed, and drops what is dead.
    pub(super) fn release_durable_lines(&mut self) {
        if !self.flash.dead.is_empty() {
            let durable = self.buffers.durable(self.flash.next_seq);
            self.flash.drop_dead(durable);
        }
        if self.flash.lines.quarantined() > 0 {
            let durable = self.buffers.durable(self.flash.next_seq)
                + u64::from(self.rules.run.omits(OmittedRule::EraseGate));
            if self.flash.lines.release_durable_lines(durable) {
                self.limiter_update();
            }
        }
    }

    /// Gives the limiter the free space. Garbage collection is active while it is short.
    pub(super) fn limiter_update(&mut self) {
        let (chunks, lines) = self.frontiers.limiter_free(&self.flash, &self.rules, None);
        let werr = self.has_werr();
        for buffer in &mut self.buffers.all {
            buffer.rl.update(chunks, lines, werr);
        }
        if self.collector.thread.is_paced() {
            let short = self.space().wants_lines();
            self.collector.thread.set_active(werr || short);
        }
    }
}

/// Points the sector of an entry at media if it is still in the ring. Whether `at` is valid then.
#[inline]
fn switch_to_media(l2p: &mut L2p, slot: u32, key: u32, at: Ppa) -> bool {
    match key_lba(key) {
        Some(lba) => l2p.switch(lba, MapEntry::Buffered(slot), MapEntry::Flash(at)),
        None => key == KEY_TRIM,
    }
}
