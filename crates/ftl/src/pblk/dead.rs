//! Copies that neither a read nor a mount will return again: media need not keep what they hold.
//!
//! A sector on media is dead when everything before the gate of its line is durable, as that was when the sector was
//! superseded: recovery takes the copy with the highest sequence, or what a durable trim record leaves, and what is
//! durable is erased only when something newer is. Reads take their content when they are submitted, and copies of
//! collection only while the table points at their source, so none is in flight. Media are notified for the sake of
//! the host's memory alone: a dead sector still counts as written, it keeps its out-of-band data, and it is erased
//! with its line.
//!
//! A mount does not take a copy that was dropped. That matters only where media lost what had superseded it, and what
//! that had superseded was erased meanwhile.
//!
//! A dead copy keeps what it holds until its erase where what superseded it cannot be read, and where a discard that
//! is not logged superseded it. Sources that collection copied do, as their line is erased when the copies are
//! durable; so do trim records and mapping blocks. Of what a mount finds everything is durable, so all copies that the
//! table does not point at are dead.

use super::flash::Flash;
use super::ids::BufferId;
use super::intake::Buffers;
use super::rules::Rules;
use super::units::MAX_UNIT;
use super::units::WriteUnit;
use crate::common::l2p::MapEntry;
use crate::common::oob::key_lba;
use crate::kind::OmittedRule;
use nandscape_media::{KEY_EMPTY, Kind, OpenChannel, Ppa};

impl<M: OpenChannel> Flash<M> {
    /// A sector on media was superseded by a change that is durable when everything before `gate` is.
    #[inline]
    pub(super) fn note_dead(&mut self, rules: &Rules, at: Ppa, gate: u64) {
        if self.media.may_drop() {
            self.note_droppable(rules, at, gate);
        }
    }

    #[inline(never)]
    fn note_droppable(&mut self, rules: &Rules, at: Ppa, gate: u64) {
        if self.media.is_droppable(at) {
            self.dead.push(at, gate, gate - 1);
            if rules.run.omits(OmittedRule::DropEarly) {
                self.drop_content(at);
            }
        }
    }

    /// A unit was programmed. If any of it cannot be read, what it supersedes is kept.
    #[inline]
    pub(super) fn keep_superseded(&mut self, unit: &WriteUnit) {
        let lost = |index| !self.media.readable(unit.at.plus(index));
        if !self.dead.is_empty() && (0..unit.entries).any(lost) {
            self.dead.keep_all();
        }
    }

    /// Whether a line or a copy waits until what superseded it is durable.
    #[inline]
    pub(super) fn awaits_durability(&self) -> bool {
        !self.dead.is_empty() || self.lines.quarantined() > 0
    }

    /// Drops what superseded copies hold, given that everything before `durable` is durable. A line is erased later, so
    /// that each is still in its place.
    pub(super) fn drop_dead(&mut self, durable: u64) {
        while let Some((at, by)) = self.dead.pop(durable) {
            let oob = self.media.oob(at);
            let is_older = oob.kind == Kind::Data && key_lba(oob.key).is_some() && oob.seq < by;
            if is_older && !self.lines.is_valid(at) {
                self.drop_content(at);
            }
        }
    }

    /// Drops every copy that a mount found and did not choose.
    pub(super) fn drop_not_chosen(&mut self) {
        for chunk in self.geometry.all_chunks() {
            let first = self.layout.format.ppa(chunk, 0);
            for at in (0..self.media.chunk(chunk).wp).map(|sector| first.plus(sector)) {
                let is_dead = self.media.is_droppable(at) && !self.lines.is_valid(at);
                let oob = self.media.oob(at);
                if is_dead && oob.kind == Kind::Data && key_lba(oob.key).is_some() {
                    self.media.drop_content(at);
                }
            }
        }
    }

    fn drop_content(&mut self, at: Ppa) {
        self.counts.dropped_sectors += u64::from(self.media.drop_content(at));
    }

    /// The entries of a unit leave the ring: notes those that were superseded there.
    pub(super) fn note_stale(
        &mut self,
        rules: &Rules,
        buffers: &Buffers,
        id: BufferId,
        unit: &WriteUnit,
    ) {
        let (gate, logged) = (buffers.gate(self.next_seq), rules.logs_discards());
        let mut keys = [KEY_EMPTY; MAX_UNIT];
        let keys = &mut keys[..unit.entries as usize];
        buffers.all[usize::from(id)].rb.copy_keys(unit.first, keys);
        for (&mut key, at) in keys.iter_mut().zip((unit.at.0..).map(Ppa)) {
            let Some(lba) = key_lba(key).filter(|_| !self.lines.is_valid(at)) else {
                continue;
            };
            if logged || self.l2p.get(lba) != MapEntry::Unmapped {
                self.note_dead(rules, at, gate);
            }
        }
    }
}
