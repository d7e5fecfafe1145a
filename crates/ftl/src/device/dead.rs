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
    /// A unit in the buffer supersedes one on media.
    #[inline]
    pub(super) fn note_superseded(&mut self, slot: u32, at: Ppa) {
        if self.flash.media.may_drop() && self.flash.is_droppable(at) {
            self.note_droppable(slot, at);
        }
    }

    fn note_droppable(&mut self, slot: u32, at: Ppa) {
        self.buffer.set_superseded(slot, at);
        if self.flash.rules.run.omits(OmittedRule::DropEarly) {
            self.flash.drop_unit(at);
        }
    }

    /// A discard, whose record was logged, supersedes a unit on media.
    pub(super) fn note_discarded(&mut self, at: Ppa) {
        if self.flash.is_droppable(at) {
            self.discards.dead.push(at, self.flash.gate(), self.flash.next_seq);
        }
    }

    /// The units of a page are on media, and as the table points at them: drops what they supersede, and those of
    /// them that were superseded meanwhile.
    pub(super) fn drop_superseded(&mut self, id: PageId) {
        let page = *self.buffer.get(id);
        let first = self.buffer.first_slot(id);
        for index in (0..page.filled).step_by(self.flash.map.unit_sectors() as usize) {
            let (slot, here) = (first + index, page.at.plus(index));
            if let Some(before) = self.buffer.superseded(slot) {
                self.flash.drop_older(before, here);
            }
            if let Some(lba) = key_lba(self.buffer.key(slot))
                && !self.flash.lines.is_valid(here)
                && self.flash.is_droppable(here)
            {
                self.drop_later(Lba(self.flash.map.unit_of(lba)), here);
            }
        }
    }

    /// A unit was superseded before it was on media: it is dead when what superseded it is durable.
    #[cold]
    fn drop_later(&mut self, unit: Lba, here: Ppa) {
        match self.flash.map.get(unit) {
            // That of the slot which is known already is as old, and stays until its erase.
            MapEntry::Buffered(slot) if self.buffer.superseded(slot).is_none() => {
                self.buffer.set_superseded(slot, here);
            }
            MapEntry::Buffered(_) => {}
            // It is durable, or it is a copy in flight of one that is.
            MapEntry::Flash(newer) => self.flash.drop_older(here, newer),
            MapEntry::Unmapped => self.note_discarded(here),
        }
    }

    /// Drops the copies whose discards are durable.
    #[inline]
    pub(super) fn drop_discarded(&mut self) {
        if self.discards.dead.is_empty() {
            return;
        }
        let durable = self.trims_durable();
        while let Some((at, record)) = self.discards.dead.pop(durable) {
            let oob = self.flash.media.oob(at);
            let is_older = oob.kind == Kind::Data && key_lba(oob.key).is_some() && oob.seq < record;
            if is_older && !self.flash.lines.is_valid(at) {
                self.flash.drop_unit(at);
            }
        }
    }
}
