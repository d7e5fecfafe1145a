//! Programs: a full or padded page goes to its place, and what it holds becomes valid there.
//!
//! Completion times are known at submission. The host's pages stay in the buffer until their program
//! completes, and serve reads. Copies are on media as soon as their program was submitted: their
//! source is not erased before it completed. A program that fails closes its chunk; its page goes to another
//! place.

use super::DeviceFtl;
use super::buffer::PageId;
use super::flash::EventKind;
use super::instance::Stream;
use super::region::RegionMap;
use crate::common::firmware::Walk;
use crate::common::ids::LineId;
use crate::common::l2p::MapEntry;
use crate::common::lines::LineState;
use crate::common::oob::key_lba;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::{BlockError, Lba};
use nandscape_media::{Cause, KEY_TRIM, Kind, OpenChannel, Outcome, Ppa, Status, WriteCmd};
use nandscape_rt::invariant;

/// What superseded sectors on media.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// Sectors with sequences below the next one, of the same instance.
    Write,
    /// Records in the trim log.
    Discard,
}

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// Programs the page that a stream fills, if there is anything in it. Whether there was.
    pub(super) fn program(&mut self, instance: usize, stream: Stream) -> Result<bool, FtlError> {
        let point = self.instances[instance].point(stream);
        let Some(id) = point.page.filter(|&id| self.buffer.get(id).filled > 0) else {
            return Ok(false);
        };
        point.page = None;
        let padding = self.buffer.pad(id);
        let number =
            self.instances[instance].point(stream).flight.push(self.buffer.get(id).first_seq);
        let first = self.buffer.first_slot(id);
        let slots = first..first + self.buffer.get(id).filled;
        let sectors = slots.map(|slot| self.buffer.seq(slot));
        self.shadow.note(|ledger| ledger.sent((instance, stream), number, sectors));
        let outcome = self.write_page(instance, stream, id, padding)?;
        let event = match stream {
            Stream::Host => EventKind::Host { instance: instance as u8, number, page: id },
            Stream::Gc => {
                self.settle(id)?;
                self.buffer.clear(id);
                EventKind::Gc { instance: instance as u8, number }
            }
        };
        if outcome.at <= self.flash.now {
            self.completed(event)?;
        } else {
            self.flash.events.push(outcome.at, event);
        }
        Ok(true)
    }

    /// Writes a page at its place, or at others until one takes it.
    fn write_page(
        &mut self,
        instance: usize,
        stream: Stream,
        id: PageId,
        padding: u32,
    ) -> Result<Outcome, FtlError> {
        loop {
            let page = *self.buffer.get(id);
            let gc = if stream == Stream::Gc { page.filled as u8 } else { 0 };
            let user = page.filled as u8 - gc;
            self.flash.media.set_cause(Cause { user, gc, pad: padding as u8 });
            let cmd = WriteCmd {
                at: page.at,
                kind: Kind::Data,
                seq: page.first_seq,
                seq_deltas: self.buffer.deltas(id),
                keys: self.buffer.keys(id),
                aux: &[],
                data: self.buffer.contents(id),
            };
            let ready = page.ready.max(self.flash.begins());
            let outcome = self.flash.media.write(self.flash.now, ready, cmd)?;
            if outcome.status == Status::Ok {
                self.flash.counts.sectors.pad += u64::from(padding);
                self.buffer.get_mut(id).began = self.flash.media.begins();
                return Ok(outcome);
            }
            self.program_failed(instance, stream, id)?;
            self.buffer.get_mut(id).ready = outcome.at;
        }
    }

    /// A chunk closed early: its rest is lost, and the page gets another place.
    #[cold]
    fn program_failed(
        &mut self,
        instance: usize,
        stream: Stream,
        id: PageId,
    ) -> Result<(), FtlError> {
        let (at, line) = (self.buffer.get(id).at, self.buffer.get(id).line);
        self.flash.counts.media_errors.program_failures += 1;
        self.flash.counts.sectors.pad += u64::from(self.flash.rules.sizes.page);
        let rest = self.flash.rules.geometry.sectors
            - self.flash.rules.layout.format.sector_of(at)
            - self.flash.rules.sizes.page;
        self.flash.lines.write_off(line, rest);
        let entry = self.flash.lines.get_mut(line);
        entry.werr = true;
        entry.pending -= self.flash.rules.sizes.page;
        self.retire_full(instance, stream)?;
        self.close_if_written(line)?;
        match self.take_place(instance, stream)? {
            Some((at, line)) => {
                let page = self.buffer.get_mut(id);
                (page.at, page.line) = (at, line);
                Ok(())
            }
            None => Err(BlockError::ReadOnly("no erase unit takes programs".into()).into()),
        }
    }

    /// What a page holds is valid at its place, unless it was superseded meanwhile.
    pub(super) fn settle(&mut self, id: PageId) -> Result<(), FtlError> {
        let page = *self.buffer.get(id);
        let (first, unit) = (self.buffer.first_slot(id), self.flash.map.unit_sectors());
        let (mask, mut valid, mut walk) = (self.flash.map.unit_mask(), 0, Walk::default());
        for index in (0..page.filled).step_by(unit as usize) {
            let slot = first + index;
            let key = self.buffer.key(slot);
            let live = match key_lba(key) {
                Some(lba) => {
                    let unit = Lba(self.flash.map.unit_of(lba));
                    let at = page.at.plus(index);
                    let (from, to) = (MapEntry::Buffered(slot), MapEntry::Flash(at));
                    let live = self.flash.map.switch(unit, from, to, &mut walk);
                    if !live {
                        self.note_outdated(unit, at);
                    }
                    live
                }
                None if key == KEY_TRIM => self.settle_trims(page.at.plus(index)),
                None => false,
            };
            valid |= if live { mask << index } else { 0 };
        }
        self.flash.access(&mut walk);
        self.flash.lines.set_valid(page.line, page.at, valid);
        if page.supersedes || valid.count_ones() < page.filled {
            self.drop_superseded(id);
        }
        // What did not become valid was superseded by something that may not be durable yet.
        if !self.flash.rules.run.omits(OmittedRule::SettledGate) {
            self.discards.raise_gate(page.line, self.flash.gate());
            let line = self.flash.lines.get_mut(page.line);
            line.gate = line.gate.max(self.flash.next_seq);
        }
        let line = self.flash.lines.get_mut(page.line);
        line.pending -= self.flash.rules.sizes.page;
        self.close_if_written(page.line)
    }

    /// A unit of trim records is on media. Whether it was not before.
    fn settle_trims(&mut self, at: Ppa) -> bool {
        if !self.flash.media.readable(at) {
            self.discards.dead.keep_all();
        }
        self.discards.places.insert(at)
    }

    fn note_ended(&mut self, instance: usize, stream: Stream, number: u64) {
        self.shadow.note(|ledger| ledger.ended((instance, stream), number));
    }

    /// A program completed, or a read for copies.
    pub(super) fn completed(&mut self, event: EventKind) -> Result<(), FtlError> {
        match event {
            EventKind::Host { instance, number, page } => {
                self.note_ended(usize::from(instance), Stream::Host, number);
                self.settle(page)?;
                self.port.note_programmed(|| self.flash.programmed(self.buffer.get(page)));
                self.buffer.release(page);
                self.instances[usize::from(instance)].host.flight.complete(number);
            }
            EventKind::Gc { instance, number } => {
                self.note_ended(usize::from(instance), Stream::Gc, number);
                self.instances[usize::from(instance)].gc.flight.complete(number);
                self.advance(usize::from(instance))?;
            }
            EventKind::Read { instance, at } => return self.read_ended(usize::from(instance), at),
            // Who waits for it looks by itself.
            EventKind::Idle => return Ok(()),
        }
        self.drop_discarded();
        if P::COUNTS_LIVE {
            self.settle_discards();
        }
        self.release_durable()
    }

    /// The sectors of a unit on media were superseded.
    #[inline]
    pub(super) fn invalidate(&mut self, at: Ppa, by: By) -> Result<(), FtlError> {
        let line = self.flash.lines.of(at);
        invariant!(
            self.is_superseded(at, by),
            "erase rule: {at:?} was superseded by a write of its instance, or by a record"
        );
        let gate = match by {
            By::Write => self.flash.next_seq,
            By::Discard => {
                if !self.flash.rules.run.omits(OmittedRule::TrimGate) {
                    self.discards.raise_gate(line, self.flash.gate());
                }
                0
            }
        };
        for index in 0..self.flash.map.unit_sectors() {
            self.flash.lines.clear_bit(at.plus(index));
        }
        let unit = self.flash.map.unit_sectors();
        self.flash.lines.cleared(line, unit, gate);
        if self.flash.lines.get(line).state == LineState::Gc {
            self.flash.lines.leave(line, unit);
        }
        self.line_lowered(line)
    }

    /// Whether the unit at `at` was superseded by what is said to have: a write of the same instance is in the buffer; a
    /// record hides the unit, or replaces that at `at`.
    fn is_superseded(&self, at: Ppa, by: By) -> bool {
        let Some(lba) = key_lba(self.flash.media.oob(at).key) else { return by == By::Discard };
        let stripe = self.flash.rules.layout.stripe_of(self.flash.lines.of(at)) as usize;
        let newer = self.flash.map.get(Lba(self.flash.map.unit_of(lba)));
        match by {
            By::Write => {
                matches!(newer, MapEntry::Buffered(_)) && self.home_of(newer) == Some(stripe)
            }
            By::Discard => newer == MapEntry::Unmapped,
        }
    }

    /// A line lost valid sectors.
    #[inline]
    fn line_lowered(&mut self, id: LineId) -> Result<(), FtlError> {
        let line = self.flash.lines.get(id);
        match line.state {
            LineState::Closed if line.valid == 0 => {
                self.flash.victims.remove(id);
                self.flash.counts.gc.empty_victims += 1;
                self.quarantine(id)
            }
            LineState::Closed => {
                self.flash.victims.lower(id, self.flash.lines.weight(id));
                Ok(())
            }
            LineState::Corrupt if line.valid == 0 => self.quarantine(id),
            _ => Ok(()),
        }
    }
}
