//! Copies that neither a read nor a mount will return again: media need not keep what they hold.
//!
//! A unit on media is dead when a newer copy of it, or a trim record that hides it, is durable: recovery takes the
//! copy with the highest sequence, and what is durable is erased only when something newer is. Reads take their
//! content when they are submitted, so none is in flight. Media are notified for the sake of the host's memory
//! alone: a dead unit still counts as written, it keeps its out-of-band data, and it is erased with its erase unit.
//!
//! - A slot of the buffer knows the copy that it supersedes. When its program completes that copy is dead.
//! - A unit that was superseded while it waited for its program is dead once the unit that superseded it is
//!   durable.
//! - A copy that a discard superseded waits here until the records of the discard are durable.
//! - Sources that collection copied are not treated: their erase unit is erased when the copies are durable.
//! - Of what a mount finds everything is durable, so all that the table does not point at is dead.
//!
//! A mount does not take a copy that was dropped. That matters only where media lost what had superseded it, and what
//! that had superseded was erased meanwhile.
//!
//! A dead copy keeps what it holds until its erase where what superseded it cannot be read, and trim records
//! always do.

use super::DeviceFtl;
use super::buffer::PageId;
use super::region::RegionMap;
use crate::common::l2p::MapEntry;
use crate::common::oob::key_lba;
use crate::kind::OmittedRule;
use nandscape_block::Lba;
use nandscape_media::{Kind, OpenChannel, Ppa};

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// Whether dropping a unit on media would free anything.
    #[inline]
    fn is_droppable(&self, at: Ppa) -> bool {
        (0..self.map.unit_sectors()).any(|index| self.media.is_droppable(at.plus(index)))
    }

    /// A unit in the buffer supersedes one on media.
    #[inline]
    pub(super) fn note_superseded(&mut self, slot: u32, at: Ppa) {
        if self.media.may_drop() && self.is_droppable(at) {
            self.note_droppable(slot, at);
        }
    }

    fn note_droppable(&mut self, slot: u32, at: Ppa) {
        self.buffer.set_superseded(slot, at);
        if self.run.omits(OmittedRule::DropEarly) {
            self.drop_unit(at);
        }
    }

    /// A discard, whose record was logged, supersedes a unit on media.
    pub(super) fn note_discarded(&mut self, at: Ppa) {
        if self.is_droppable(at) {
            self.discarded.push(at, self.gate(), self.next_seq);
        }
    }

    /// The units of a page are on media, and as the table points at them: drops what they supersede, and those of
    /// them that were superseded meanwhile.
    pub(super) fn drop_superseded(&mut self, id: PageId) {
        let page = *self.buffer.get(id);
        let first = self.buffer.first_slot(id);
        for index in (0..page.filled).step_by(self.map.unit_sectors() as usize) {
            let (slot, here) = (first + index, page.at.plus(index));
            if let Some(before) = self.buffer.superseded(slot) {
                self.drop_older(before, here);
            }
            if let Some(lba) = key_lba(self.buffer.key(slot))
                && !self.lines.is_valid(here)
                && self.is_droppable(here)
            {
                self.drop_later(Lba(self.map.unit_of(lba)), here);
            }
        }
    }

    /// A unit was superseded before it was on media: it is dead when what superseded it is durable.
    #[cold]
    fn drop_later(&mut self, unit: Lba, here: Ppa) {
        match self.map.get(unit) {
            // That of the slot which is known already is as old, and stays until its erase.
            MapEntry::Buffered(slot) if self.buffer.superseded(slot).is_none() => {
                self.buffer.set_superseded(slot, here);
            }
            MapEntry::Buffered(_) => {}
            // It is durable, or it is a copy in flight of one that is.
            MapEntry::Flash(newer) => self.drop_older(here, newer),
            MapEntry::Unmapped => self.note_discarded(here),
        }
    }

    /// Drops a unit if it is an older copy of one that is durable. It may be another one by now: a power-safe buffer
    /// lets its erase unit be used again before what superseded it is programmed.
    fn drop_older(&mut self, before: Ppa, newer: Ppa) {
        let (old, new) = (self.media.oob(before), self.media.oob(newer));
        let is_older = old.kind == Kind::Data && old.key == new.key && old.seq < new.seq;
        if is_older && !self.lines.is_valid(before) && self.unit_readable(newer) {
            self.drop_unit(before);
        }
    }

    /// Drops the copies whose discards are durable.
    #[inline]
    pub(super) fn drop_discarded(&mut self) {
        if self.discarded.is_empty() {
            return;
        }
        let durable = self.trims_durable();
        while let Some((at, record)) = self.discarded.pop(durable) {
            let oob = self.media.oob(at);
            let is_older = oob.kind == Kind::Data && key_lba(oob.key).is_some() && oob.seq < record;
            if is_older && !self.lines.is_valid(at) {
                self.drop_unit(at);
            }
        }
    }

    /// Drops every copy that a mount found and did not choose.
    pub(super) fn drop_not_chosen(&mut self) {
        let chunks = (0..self.sizes.lines)
            .flat_map(|line| (0..self.layout.width).map(move |index| (line, index)));
        for (line, index) in chunks {
            let chunk = self.layout.chunk(line, index);
            let first = self.layout.format.ppa(chunk, 0);
            for at in (0..self.media.chunk(chunk).wp).map(|sector| first.plus(sector)) {
                let is_dead = self.media.is_droppable(at) && !self.lines.is_valid(at);
                if is_dead && key_lba(self.media.oob(at).key).is_some() {
                    self.media.drop_content(at);
                }
            }
        }
    }

    /// Drops what a unit on media holds.
    fn drop_unit(&mut self, at: Ppa) {
        for index in 0..self.map.unit_sectors() {
            let dropped = self.media.drop_content(at.plus(index));
            self.counts.dropped_sectors += u64::from(dropped);
        }
    }
}
