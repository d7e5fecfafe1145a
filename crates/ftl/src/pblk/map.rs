//! Keeping table, valid counts and ring in step (pblk-map.c, pblk-rb.c `__pblk_rb_update_l2p`).
//!
//! A sector's table entry names its ring slot from insertion until the slot is about to be reused,
//! and only then media. A unit's entries leave the ring together, once the unit is durable and the
//! device would serve a read of them: an open chunk refuses its last `mw_cunits` sectors. A unit of
//! padding has none, and leaves when it is durable.

use super::Pblk;
use super::flash::Flash;
use super::ids::BufferId;
use super::units::WriteUnit;
use crate::common::ids::LineId;
use crate::common::l2p::{L2p, MapEntry};
use crate::common::lines::LineState;
use crate::common::oob::key_lba;
use crate::kind::OmittedRule;
use nandscape_media::{KEY_TRIM, OpenChannel, Ppa};
use nandscape_rt::invariant;

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

    /// Lets the oldest unit's entries leave the ring. Whether there was one that could. Padding waits for nothing: a line
    /// that holds nothing else is freed, and may take the data of another stream when its place is looked at.
    #[inline]
    fn recycle(&mut self, id: BufferId) -> bool {
        let Some(unit) = self.buffers.all[usize::from(id)].units.oldest() else { return false };
        if unit.entries == 0 {
            self.buffers.all[usize::from(id)].units.pop();
            return true;
        }
        let served = self.flash.is_served(unit.at.plus(unit.entries - 1));
        if served {
            let unit = *unit;
            self.release_unit(id, &unit);
        }
        served
    }

    /// Lets whatever can leave the rings. Whether anything could.
    pub(super) fn recycle_all(&mut self) -> bool {
        let mut recycled = false;
        for id in 0..self.buffers.all.len() {
            while self.recycle(id as BufferId) {
                recycled = true;
            }
        }
        recycled
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
        invariant!(
            buffer.rb.l2p_update <= buffer.rb.sync,
            "entries leave the ring when they are durable"
        );
        invariant!(
            (0..unit.entries).all(|index| self.flash.is_served(unit.at.plus(index))),
            "entries leave the ring when the device serves a read of them"
        );
        self.flash.lines.set_valid(unit.line, unit.at, live);
        self.flash.note_outdated(&self.buffers, id, unit, live);
        if live.count_ones() < unit.entries && self.flash.media.may_drop() {
            self.flash.note_stale(&self.rules, &self.buffers, id, unit);
        }
        if let Some(mapping) = &mut self.mapping {
            mapping.entries_left(&self.buffers.all[usize::from(id)].rb, unit, live);
        }
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
        invariant!(
            line.pending >= unit.entries,
            "`pending` counts entries of line {} in the rings",
            unit.line
        );
        line.gate = line.gate.max(gate);
        line.pending -= unit.entries;
        if let Some(id) = self.flash.lowered(unit.line) {
            self.supply().line_emptied(id);
        }
    }
}

impl<M: OpenChannel> Flash<M> {
    /// A sector on media was superseded by a change that is durable when everything before `gate`
    /// is. Its line, if that is empty now.
    #[inline]
    pub(super) fn invalidate(&mut self, at: Ppa, gate: u64) -> Option<LineId> {
        let id = self.lines.clear_valid(at, gate);
        self.lowered(id)
    }

    /// A line lost valid or pending sectors. The line, if it is empty now.
    #[inline]
    pub(super) fn lowered(&mut self, id: LineId) -> Option<LineId> {
        let line = self.lines.get(id);
        if line.valid == 0 && line.pending == 0 {
            return Some(id);
        }
        if line.state == LineState::Closed && !line.is_map() {
            self.victims.lower(id, self.lines.weight(id));
        }
        None
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
