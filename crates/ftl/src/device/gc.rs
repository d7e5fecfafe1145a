//! Collection: which victims, and when their commands go to the NAND.
//!
//! An instance collects its own erase units, by one of two schedules ([`Schedule`]):
//!
//! *Pipelined.* Pages of a victim are read a row ahead, and copied when their read has ended; so few commands are on their way
//! that reads of the host wait for a program or two, and enough that no unit waits for another one. When all pages of a
//! victim are being read, the next one begins. Three levels of space decide ([`Levels`]), where space is what is free
//! or will be without further copies, and a victim counts as far as it was copied:
//! - below `begin` an instance collects, whether or not the host writes;
//! - below `hold` it collects with more commands, and the host opens a page only when copies have
//!   made room for it. So the host's writes go on in proportion to the copies, and are not stopped for a whole victim;
//! - the reserve is left alone (`space.rs`).
//!
//! *Nvmevirt* (`conv_ftl.c`: `check_and_refill_write_credit`, `foreground_gc`, `do_gc`). An instance has write credits, a
//! full erase unit of them at first. When the host has used them up, and few erase units are free, one victim is
//! copied as a whole, and the host gets as many credits as that gained. All commands are sent at once, and no
//! program waits for its read; they delay the host through the parallel units that they occupy. NVMeVirt also counts
//! the victim as free at once; here it is when its erase is permitted.
//!
//! *Femu* (`ftl.c`: `ssd_write`; `ftl-line-gc.c`: `do_gc`). Victims are copied as a whole, too: one after each write while few
//! erase units are free and the victim gains enough, and as many as it takes before a write when hardly any are.
//!
//! Invariants:
//! - A collection is begun only if its copies fit: the open erase unit of copies and the free ones hold all that is valid
//!   in the victims in flight, padding of the page that is being filled included. All but the first victim in flight
//!   take one free erase unit together, so power cuts use up no more than one.
//! - While an instance copies, a read or a program of its is in flight, or the next page is read at once: so what waits for
//!   its space waits for an event.
//! - A unit gets a new sequence when it is copied, if the table still points at it then. Its source is erased only when the
//!   copy is durable, so a power cut at any time in between loses nothing.

use super::DeviceFtl;
use super::config::Schedule;
use super::copying::Copying;
use super::flash::{EventKind, Flash};
use super::instance::{Instance, Stream};
use super::port::InstanceSet;
use super::region::RegionMap;
use super::space::Space;
use crate::common::firmware::Walk;
use crate::common::ids::LineId;
use crate::common::l2p::MapEntry;
use crate::common::lines::{Line, LineState};
use crate::common::oob::key_lba;
use crate::common::trims::{TRIMS_PER_SECTOR, TrimRecord, decode_trims, encode_trims};
use crate::error::FtlError;
use nandscape_block::{Lba, SectorData};
use nandscape_media::{Cause, Internal, KEY_EMPTY, KEY_TRIM, OpenChannel, Ppa};
use nandscape_rt::{Nanos, defect, invariant};
use std::cmp::Reverse;

/// Rows of pages of an instance that are on their way while the host is held back, reads and programs together: with one of
/// programs that wait and one of reads behind those that run, no unit of a row waits for another one.
const ROWS_HOLDING: usize = 3;
/// The same while it is not.
const ROWS_AHEAD: usize = 2;
/// FEMU collects after a write while at most one of so many erase units is free (`gc_thres_pcent`: 75 % are not).
const BACKGROUND_SHARE: u32 = 4;
/// FEMU collects before a write while at most one of so many erase units is free (`gc_thres_pcent_high`: 95 % are not).
const FORCED_SHARE: u32 = 20;
/// Most victims in flight in an instance.
const VICTIMS_MAX: usize = 4;

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// The host wrote so many sectors in an instance, which may have used up its credits.
    #[inline]
    pub(super) fn use_credits(&mut self, instance: usize, sectors: u32) -> Result<(), FtlError> {
        if self.flash.rules.config.schedule != Schedule::Nvmevirt {
            return Ok(());
        }
        let credits = &mut self.instances[instance].credits;
        *credits -= i64::from(sectors);
        if *credits > 0 {
            return Ok(());
        }
        let gained = if self.flash.is_short(instance) {
            match self.victim(instance) {
                Some(victim) => self.collect_at_once(instance, victim)?.unwrap_or(0),
                None => 0,
            }
        } else {
            self.flash.rules.sizes.line_sectors
        };
        self.instances[instance].credits += i64::from(gained);
        Ok(())
    }

    /// A write begins, before which FEMU collects while hardly any erase units of an instance are free.
    pub(super) fn collect_before(&mut self) -> Result<(), FtlError> {
        if self.flash.rules.config.schedule != Schedule::Femu {
            return Ok(());
        }
        for instance in 0..self.instances.len() {
            while self.flash.frees_at_most(instance, FORCED_SHARE)
                && let Some(victim) = self.victim(instance)
                && self.collect_at_once(instance, victim)?.is_some()
            {}
        }
        Ok(())
    }

    /// A write to these instances is in the buffer, after which FEMU collects a victim of each that has few free erase units.
    pub(super) fn collect_after(&mut self, instances: InstanceSet) -> Result<(), FtlError> {
        if self.flash.rules.config.schedule != Schedule::Femu {
            return Ok(());
        }
        for instance in (0..self.instances.len()).filter(|at| instances >> at & 1 != 0) {
            if self.flash.frees_at_most(instance, BACKGROUND_SHARE)
                && let Some(victim) = self.victim(instance)
                && gains(self.flash.lines.get(victim), self.flash.rules.sizes.line_sectors / 8)
            {
                self.collect_at_once(instance, victim)?;
            }
        }
        Ok(())
    }

    /// Whether the host may open a page as far as collection is concerned: it keeps ahead, or there is nothing to collect.
    pub(super) fn keeps_pace(&mut self, instance: usize) -> Result<bool, FtlError> {
        if self.flash.rules.config.schedule != Schedule::Pipelined
            || self.space_now(instance) >= self.flash.rules.levels.hold
        {
            return Ok(true);
        }
        self.advance(instance)?;
        Ok(self.instances[instance].copying.is_empty())
    }

    /// Collects one victim more, if none is in flight, there is one, and its copies fit.
    pub(super) fn collect(&mut self, instance: usize) -> Result<Space, FtlError> {
        self.advance(instance)?;
        if !self.instances[instance].copying.is_empty() {
            return Ok(Space::InFlight);
        }
        match self.victim(instance) {
            Some(victim) => self.collect_line(instance, victim),
            None => Ok(Space::Exhausted),
        }
    }

    /// Collects the least valid erase unit that can save the buffer, even if all of it is valid, so that its content
    /// goes to others, if there is one whose copies fit.
    pub(super) fn collect_spare(&mut self, instance: usize) -> Result<Space, FtlError> {
        let room = self.room_for_copies(instance);
        let suits = |&(id, line): &(LineId, &Line)| {
            self.flash.rules.layout.stripe_of(id) == instance as u32
                && line.state == LineState::Closed
                && line.valid <= room
                && self.flash.can_save(id)
        };
        let victim = self.flash.lines.iter().filter(suits).min_by_key(|(_, line)| line.valid);
        match victim {
            Some((victim, _)) => self.collect_line(instance, victim),
            None => Ok(Space::Exhausted),
        }
    }

    /// Collects a victim whose copies fit.
    fn collect_line(&mut self, instance: usize, victim: LineId) -> Result<Space, FtlError> {
        match self.flash.rules.config.schedule {
            Schedule::Nvmevirt | Schedule::Femu => {
                let gained = self.collect_at_once(instance, victim)?;
                Ok(if gained.is_some() { Space::Made } else { Space::Exhausted })
            }
            Schedule::Pipelined => {
                let copying = self.flash.begin_copying(victim);
                self.instances[instance].copying.push_back(copying);
                self.advance(instance)?;
                // All of it may have been trim records that nothing needs.
                let ended = self.instances[instance].copying.is_empty();
                Ok(if ended { Space::Made } else { Space::InFlight })
            }
        }
    }

    /// Sends all commands of a collection. How many sectors that gains, unless programs failed.
    fn collect_at_once(
        &mut self,
        instance: usize,
        victim: LineId,
    ) -> Result<Option<u32>, FtlError> {
        let mut copying = self.flash.begin_copying(victim);
        while let Some(at) = copying.take(&self.flash) {
            self.flash.read_for_copies(at)?;
            copying.ended = !self.copy_page(instance, at, &mut copying.trims)?;
        }
        let capacity = self.flash.lines.get(victim).capacity;
        invariant!(
            capacity >= copying.valid,
            "erase unit {victim} holds no more than its good chunks do"
        );
        let gained = capacity - copying.valid;
        Ok(self.end_copying(instance, copying)?.then_some(gained))
    }

    /// Has an instance collect as far as its levels ask for it and as many commands may be on their way.
    pub(super) fn advance(&mut self, instance: usize) -> Result<(), FtlError> {
        if self.flash.rules.config.schedule != Schedule::Pipelined || self.stopped.is_some() {
            return Ok(());
        }
        let width = self.flash.rules.layout.width as usize;
        let rows = match self.space_now(instance) < self.flash.rules.levels.hold {
            true => ROWS_HOLDING,
            false => ROWS_AHEAD,
        };
        loop {
            let Instance { copying, gc, .. } = &self.instances[instance];
            let reads = copying.iter().map(|copying| copying.reads as usize).sum::<usize>();
            if reads >= width || reads + gc.flight.len() >= rows * width {
                return Ok(());
            }
            let Some(at) = self.next_page(instance)? else { return Ok(()) };
            let there = self.flash.read_for_copies(at)?;
            self.flash.events.push(there, EventKind::Read { instance: instance as u8, at });
        }
    }

    /// The next page to be read in an instance, of another victim if all of the last one are.
    fn next_page(&mut self, instance: usize) -> Result<Option<Ppa>, FtlError> {
        loop {
            if let Some(copying) = self.instances[instance].copying.back_mut() {
                if let Some(at) = copying.take(&self.flash) {
                    copying.reads += 1;
                    return Ok(Some(at));
                }
                if copying.reads == 0
                    && let Some(copying) = self.instances[instance].copying.pop_back()
                {
                    self.end_copying(instance, copying)?;
                    continue;
                }
            }
            let Some(victim) = self.next_victim(instance) else { return Ok(None) };
            let copying = self.flash.begin_copying(victim);
            self.instances[instance].copying.push_back(copying);
        }
    }

    /// The next victim of an instance that wants one and has room for its copies.
    fn next_victim(&mut self, instance: usize) -> Option<LineId> {
        let copying = &self.instances[instance].copying;
        // A compaction of the trim log has counted the places that it needs.
        let compacts = instance == 0 && self.discards.compacts();
        if compacts || copying.len() >= VICTIMS_MAX || !self.is_wanted(instance) {
            return None;
        }
        let room = self.room_for_copies(instance);
        match self.instances[instance].copying.is_empty() {
            true => self.flash.choose_victim(instance, room),
            false => self
                .flash
                .policy_victim(instance)
                .filter(|&id| self.flash.lines.get(id).valid <= room),
        }
    }

    /// A page of a victim was read: copies what is still valid of it, unless the device has stopped. Then the page that
    /// collection fills may hold what found no place, and serves reads.
    pub(super) fn read_ended(&mut self, instance: usize, at: Ppa) -> Result<(), FtlError> {
        if self.stopped.is_some() {
            return Ok(());
        }
        let line = self.flash.lines.of(at);
        let copying = &mut self.instances[instance].copying;
        let Some(index) = copying.iter().position(|copying| copying.line == line) else {
            return Err(FtlError::Corrupt { kind: "collection (no victim)", line });
        };
        let mut trims = std::mem::take(&mut copying[index].trims);
        let copied = copying[index].ended || self.copy_page(instance, at, &mut trims)?;
        let copying = &mut self.instances[instance].copying[index];
        copying.trims = trims;
        copying.ended |= !copied;
        copying.reads -= 1;
        if copying.reads == 0
            && copying.seek(&self.flash).is_none()
            && let Some(copying) = self.instances[instance].copying.remove(index)
        {
            self.end_copying(instance, copying)?;
        }
        self.advance(instance)
    }

    /// Everything in a victim was copied that could be: it waits for its erase, or is a victim again if programs failed.
    /// Whether all copies had places.
    fn end_copying(&mut self, instance: usize, mut copying: Copying) -> Result<bool, FtlError> {
        let copied = !copying.ended && self.copy_trims(instance, &mut copying.trims)?;
        let gate = self.flash.next_seq;
        let entry = self.flash.lines.get_mut(copying.line);
        entry.gate = entry.gate.max(gate);
        if copied && entry.valid > 0 {
            entry.state = LineState::Corrupt;
            invariant!(
                self.flash.is_lost(copying.line),
                "all of victim {} that can be read was copied",
                copying.line
            );
        } else {
            entry.state = LineState::Closing;
            self.close_if_written(copying.line)?;
        }
        Ok(copied)
    }

    /// Copies the units of a page of a victim that are valid, but for its trim records, whose places it notes. Whether
    /// there were places for them.
    fn copy_page(
        &mut self,
        instance: usize,
        at: Ppa,
        trims: &mut Vec<Ppa>,
    ) -> Result<bool, FtlError> {
        let mut rest = self.flash.lines.valid_mask(at, self.flash.rules.sizes.page);
        let mut walk = Walk::default();
        while rest != 0 {
            let index = rest.trailing_zeros();
            rest &= !(self.flash.map.unit_mask() << index);
            let unit = at.plus(index);
            if !self.flash.unit_readable(unit) {
                self.flash.counts.media_errors.uncorrectable += 1;
                continue;
            }
            let key = self.flash.media.oob(unit).key;
            if let Some(lba) = key_lba(key) {
                let Some(slot) = self.copy_slot(instance)? else { return Ok(false) };
                self.copy_data(instance, (lba, unit), slot, &mut walk)?;
            } else if key == KEY_TRIM {
                trims.push(unit);
            }
        }
        Ok(true)
    }

    /// Copies a unit of data into a slot, and programs the page when it is full.
    fn copy_data(
        &mut self,
        instance: usize,
        (lba, at): (Lba, Ppa),
        slot: u32,
        walk: &mut Walk,
    ) -> Result<(), FtlError> {
        let number = Lba(self.flash.map.unit_of(lba));
        if !self.flash.map.switch(number, MapEntry::Flash(at), MapEntry::Buffered(slot), walk) {
            self.flash.counts.media_errors.mismatches += 1;
        }
        self.flash.access(walk);
        let (id, unit) = (self.buffer.page_of(slot), self.flash.map.unit_sectors());
        let (seq, line) = (self.flash.next_seq, self.flash.lines.of(at));
        invariant!(
            (0..unit).all(|index| self.flash.media.readable(at.plus(index))),
            "all of a unit that is copied can be read"
        );
        invariant!(
            self.flash.media.oob(at).seq < seq,
            "sequence: a copy of {at:?} is younger than its source"
        );
        self.note_entered(instance, Stream::Gc, seq);
        self.shadow.note(|ledger| ledger.superseded(line, seq));
        for index in 0..unit {
            let data = self.flash.kept(|| self.flash.media.data(at.plus(index)));
            let key = lba.0 as u32 + index;
            self.buffer.push(id, key, self.flash.next_seq, data);
            self.flash.next_seq += 1;
        }
        self.flash.clear_copied(at);
        self.flash.counts.sectors.gc += u64::from(unit);
        self.program_full(instance, Stream::Gc)
    }

    /// The slot of the next copy; none if no erase unit takes copies.
    fn copy_slot(&mut self, instance: usize) -> Result<Option<u32>, FtlError> {
        if let Some(id) = self.instances[instance].gc.page
            && !self.buffer.takes(id, self.flash.next_seq)
        {
            self.program(instance, Stream::Gc)?;
        }
        if self.instances[instance].gc.page.is_none() && !self.open_page(instance, Stream::Gc)? {
            return Ok(None);
        }
        let id = instance as u32;
        Ok(Some(self.buffer.first_slot(id) + self.buffer.get(id).filled))
    }

    /// Programs the page that a stream fills if it is full.
    #[inline]
    pub(super) fn program_full(&mut self, instance: usize, stream: Stream) -> Result<(), FtlError> {
        let page = self.instances[instance].point(stream).page;
        if page.is_some_and(|id| self.buffer.is_full(id)) {
            self.program(instance, stream)?;
        }
        Ok(())
    }

    /// Writes the trim records at these places of a victim that are still needed; never more units of them than
    /// the victim had. Whether there were places.
    fn copy_trims(&mut self, instance: usize, places: &mut Vec<Ppa>) -> Result<bool, FtlError> {
        // A compaction of the trim log may have replaced some since they were read.
        places.retain(|&at| self.flash.lines.is_valid(at));
        let mut records = Vec::new();
        for &at in &*places {
            let Some(found) = decode_trims(&self.flash.media.data(at)) else {
                return Err(defect!("a valid unit of trim records holds some: {at:?}").into());
            };
            records.extend(found.into_iter().filter(|record| self.flash.still_hides(record)));
        }
        keep_youngest(&mut records);
        for sector in records.chunks(TRIMS_PER_SECTOR) {
            let Some(slot) = self.copy_slot(instance)? else { return Ok(false) };
            self.note_entered(instance, Stream::Gc, self.flash.next_seq);
            self.push_trims(self.buffer.page_of(slot), sector);
            self.program_full(instance, Stream::Gc)?;
        }
        let by = self.flash.next_seq - 1;
        for at in places.drain(..) {
            self.shadow.note(|ledger| ledger.superseded(self.flash.lines.of(at), by));
            self.discards.places.remove(&at);
            self.flash.clear_copied(at);
        }
        Ok(true)
    }

    /// Adds a unit of trim records to a page.
    pub(super) fn push_trims(&mut self, page: u32, records: &[TrimRecord]) {
        self.buffer.push(page, KEY_TRIM, self.flash.next_seq, encode_trims(records));
        self.flash.next_seq += 1;
        for _ in 1..self.flash.map.unit_sectors() {
            self.buffer.push(page, KEY_EMPTY, self.flash.next_seq, SectorData::Absent);
            self.flash.next_seq += 1;
        }
        self.flash.counts.sectors.trim += 1;
        self.flash.counts.sectors.pad += u64::from(self.flash.map.unit_sectors()) - 1;
    }

    /// The next victim of an instance whose copies fit.
    fn victim(&mut self, instance: usize) -> Option<LineId> {
        self.flash.choose_victim(instance, self.room_for_copies(instance))
    }

    /// Sectors that further copies in an instance may take. A page that is full is programmed, and copies are whole units, so
    /// sectors are what counts.
    fn room_for_copies(&self, instance: usize) -> u32 {
        let Instance { host, copying, .. } = &self.instances[instance];
        // The victim may wait for trim records, which must find a place.
        let for_trims = instance == 0 && self.flash.places_left(host.line) == 0;
        let line = self.flash.rules.sizes.line_sectors;
        let kept = if for_trims { line } else { 0 };
        let most = if copying.is_empty() { 2 * line } else { line };
        let free = self.flash.lines.free_sectors_of(instance as u32, most + kept);
        let free = free.saturating_sub(kept).min(most);
        (self.open_for_copies(instance) + free).saturating_sub(self.to_be_copied(instance))
    }

    /// Sectors that the host could write in an instance by now: those of its open erase units, of those that are free or
    /// wait for their erase, and of victims as far as they were copied.
    fn space_now(&self, instance: usize) -> u32 {
        let copied = |(copying, line): (&Copying, &Line)| {
            invariant!(
                line.valid <= copying.valid,
                "nothing becomes valid in victim {}",
                copying.line
            );
            let copied = u64::from(copying.valid - line.valid);
            let share = u64::from(line.capacity) * copied / u64::from(copying.valid.max(1));
            share as u32
        };
        self.space_open(instance) + self.copying(instance).map(copied).sum::<u32>()
    }

    /// Whether an instance is to begin another victim: what it has, and will have when those in flight are copied, is
    /// below the level.
    fn is_wanted(&self, instance: usize) -> bool {
        let gains = |(_, line): (&Copying, &Line)| line.capacity - line.valid;
        let gained = self.copying(instance).map(gains).sum::<u32>();
        self.space_open(instance) + gained < self.flash.rules.levels.begin
    }

    /// Whether what is still valid in the victims in flight of an instance has places.
    pub(super) fn copies_fit(&self, instance: usize) -> bool {
        let taken = self.to_be_copied(instance);
        let free = self.flash.lines.free_sectors_of(instance as u32, taken);
        taken <= self.open_for_copies(instance) + free
    }

    /// Sectors that the open erase unit of copies takes, and the page that is being filled.
    fn open_for_copies(&self, instance: usize) -> u32 {
        let gc = &self.instances[instance].gc;
        let page = self.flash.rules.sizes.page;
        let in_page = gc.page.map_or(0, |id| page - self.buffer.get(id).filled);
        self.flash.places_left(gc.line) * page + in_page
    }

    /// Sectors that are valid in the victims in flight.
    fn to_be_copied(&self, instance: usize) -> u32 {
        self.copying(instance).map(|(_, line)| line.valid).sum()
    }

    /// The victims in flight of an instance.
    fn copying(&self, instance: usize) -> impl Iterator<Item = (&Copying, &Line)> {
        let copying = self.instances[instance].copying.iter();
        copying.map(|copying| (copying, self.flash.lines.get(copying.line)))
    }

    /// Sectors of the open erase units of an instance, and of those that are free or wait for their erase; beyond the
    /// level at which collection begins they are not counted.
    fn space_open(&self, instance: usize) -> u32 {
        let Instance { host, gc, .. } = &self.instances[instance];
        let page = self.flash.rules.sizes.page;
        let open = (self.flash.places_left(host.line) + self.flash.places_left(gc.line)) * page;
        open + self.flash.empty_sectors(instance, self.flash.rules.levels.begin)
    }
}

impl<M: OpenChannel, P: RegionMap> Flash<M, P> {
    /// Whether at most one of so many erase units of an instance is free, or waits for its erase.
    fn frees_at_most(&self, instance: usize, share: u32) -> bool {
        let lines = self.rules.sizes.lines / self.rules.config.instances;
        self.lacks(instance, lines / share + 1)
    }

    /// A closed erase unit becomes a victim.
    fn begin_copying(&mut self, victim: LineId) -> Copying {
        let line = *self.lines.get(victim);
        self.counts.gc.victims += 1;
        self.counts.gc.victim_valid += u64::from(line.valid);
        self.counts.gc.victim_data += u64::from(line.data);
        self.victims.remove(victim);
        self.lines.get_mut(victim).state = LineState::Gc;
        self.lines.leave(victim, line.data - line.valid);
        Copying::new(victim, line.valid)
    }

    /// Reads a page of a victim from its first valid sector to its last one; when it is there.
    fn read_for_copies(&mut self, at: Ppa) -> Result<Nanos, FtlError> {
        let valid = self.lines.valid_mask(at, self.rules.sizes.page);
        let (first, end) = (valid.trailing_zeros(), 64 - valid.leading_zeros());
        self.media.set_cause(Cause { gc: valid.count_ones() as u8, ..Cause::default() });
        let read =
            self.media.read(self.now, self.now, at.plus(first), end - first, &mut Internal)?;
        Ok(read.at)
    }

    /// The policy's victim among those that gain a page, or the least valid one if there is no room for its copies.
    fn choose_victim(&mut self, instance: usize, room: u32) -> Option<LineId> {
        let found = self.policy_victim(instance);
        if found.is_none_or(|line| self.lines.get(line).valid <= room) {
            return found;
        }
        let page = self.rules.sizes.page;
        let (lines, layout) = (&self.lines, self.rules.layout);
        // What an erase unit with bad chunks lacks counts as valid when victims are compared.
        let most = room.saturating_add(self.lacking);
        self.victims.find([instance as u32], |victims, stripe| {
            victims.least_valid(most, |index| {
                let line = lines.get(layout.line(index, stripe));
                gains(line, page) && line.valid <= room
            })
        })
    }

    /// The policy's victim among those that gain a page.
    fn policy_victim(&mut self, instance: usize) -> Option<LineId> {
        let page = self.rules.sizes.page;
        let (lines, layout) = (&self.lines, self.rules.layout);
        self.victims.find([instance as u32], |victims, stripe| {
            victims.choose(|index| gains(lines.get(layout.line(index, stripe)), page))
        })
    }
}

/// Whether collecting an erase unit gains so many sectors.
const fn gains(line: &Line, sectors: u32) -> bool {
    line.valid + sectors <= line.capacity
}

/// Of trim records with the same range the youngest stays: it hides what the others do.
fn keep_youngest(records: &mut Vec<TrimRecord>) {
    records.sort_unstable_by_key(|r| (r.lba, r.sectors, Reverse(r.seq)));
    records.dedup_by_key(|record| (record.lba, record.sectors));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record that is written again hides what was written between two discards of its range.
    #[test]
    fn the_youngest_record_of_a_range_is_written_again() {
        let record = |(lba, sectors, seq)| TrimRecord { lba, sectors, seq };
        let mut records: Vec<_> =
            [(4, 2, 3), (4, 2, 9), (4, 3, 5), (4, 2, 7), (1, 1, 1)].map(record).into();
        keep_youngest(&mut records);
        assert_eq!(records, [(1, 1, 1), (4, 2, 9), (4, 3, 5)].map(record));
    }
}
