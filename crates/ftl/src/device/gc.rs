//! Foreground collection (NVMeVirt `conv_ftl.c`: `check_and_refill_write_credit`, `foreground_gc`).
//!
//! An instance has write credits, a full erase unit of them at first. When the host has used them up, and
//! few erase units are free, one victim is copied as a whole, and the host gets as many credits as that
//! gained. All commands of a collection are submitted at once; they delay the host through the parallel
//! units that they occupy, and through the buffer that empties later.
//!
//! A collection is begun only if its copies fit: the open erase unit of copies and the free ones hold all that
//! is valid in the victim, padding of the page that is being filled included. As the host leaves
//! its reserve free, that is so as soon as what waits for its erase was erased.
//! No request waits inside a collection.

use super::DeviceFtl;
use super::instance::{Instance, Stream};
use super::region::RegionMap;
use crate::common::ids::LineId;
use crate::common::l2p::MapEntry;
use crate::common::lines::{Line, LineState};
use crate::common::oob::key_lba;
use crate::common::trims::{TRIMS_PER_SECTOR, TrimRecord, decode_trims, encode_trims};
use crate::error::FtlError;
use nandscape_block::{Lba, SectorData};
use nandscape_media::{Cause, Internal, KEY_EMPTY, KEY_TRIM, OpenChannel, Ppa};
use nandscape_rt::Nanos;
use std::cmp::Reverse;

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// The host wrote so many sectors in an instance: collects when its credits are used up.
    #[inline]
    pub(super) fn use_credits(&mut self, instance: usize, sectors: u32) -> Result<(), FtlError> {
        let credits = &mut self.instances[instance].credits;
        *credits -= i64::from(sectors);
        if *credits > 0 {
            return Ok(());
        }
        let gained = if self.flash.is_short(instance) {
            self.collect(instance)?.unwrap_or(0)
        } else {
            self.flash.rules.sizes.line_sectors
        };
        self.instances[instance].credits += i64::from(gained);
        Ok(())
    }

    /// Collects one victim, if there is one and its copies fit. How many sectors that gains.
    pub(super) fn collect(&mut self, instance: usize) -> Result<Option<u32>, FtlError> {
        match self.flash.choose_victim(instance, self.room_for_copies(instance)) {
            Some(victim) => self.collect_line(instance, victim),
            None => Ok(None),
        }
    }

    /// Collects the least valid erase unit that can save the buffer, even if all of it is valid, so that its content
    /// goes to others. Whether there is one whose copies fit.
    pub(super) fn collect_spare(&mut self, instance: usize) -> Result<bool, FtlError> {
        let room = self.room_for_copies(instance);
        let suits = |&(id, line): &(LineId, &Line)| {
            self.flash.rules.layout.stripe_of(id) == instance as u32
                && line.state == LineState::Closed
                && line.valid <= room
                && self.flash.can_save(id)
        };
        let victim = self.flash.lines.iter().filter(suits).min_by_key(|(_, line)| line.valid);
        let Some((victim, _)) = victim else { return Ok(false) };
        Ok(self.collect_line(instance, victim)?.is_some())
    }

    /// Collects a victim whose copies fit. How many sectors that gains, unless programs failed.
    fn collect_line(&mut self, instance: usize, victim: LineId) -> Result<Option<u32>, FtlError> {
        let line = *self.flash.lines.get(victim);
        self.flash.counts.gc.victims += 1;
        self.flash.counts.gc.victim_valid += u64::from(line.valid);
        self.flash.counts.gc.victim_data += u64::from(line.data);
        self.flash.victims.remove(victim);
        self.flash.lines.get_mut(victim).state = LineState::Gc;
        let copied = self.copy_line(instance, victim)?;
        let gate = self.flash.next_seq;
        let entry = self.flash.lines.get_mut(victim);
        entry.gate = entry.gate.max(gate);
        if copied && entry.valid > 0 {
            entry.state = LineState::Corrupt;
        } else {
            entry.state = LineState::Closing;
            self.close_if_written(victim)?;
        }
        if !copied {
            // Programs that failed used up what the copies fitted into. The rest is a victim again.
            self.instances[instance].trims.clear();
            self.instances[instance].trim_places.clear();
            return Ok(None);
        }
        Ok(Some(line.capacity.saturating_sub(line.valid)))
    }

    /// Sectors that copies in an instance may take, as far as two erase units. A page that is full is programmed,
    /// and copies are whole units, so sectors are what counts.
    fn room_for_copies(&self, instance: usize) -> u32 {
        let Instance { host, gc, .. } = &self.instances[instance];
        let page = self.flash.rules.sizes.page;
        let in_page = gc.page.map_or(0, |id| page - self.buffer.get(id).filled);
        // The victim may wait for trim records, which must find a place.
        let for_trims = instance == 0 && self.flash.places_left(host.line) == 0;
        let kept = if for_trims { self.flash.rules.sizes.line_sectors } else { 0 };
        let free = self
            .flash
            .lines
            .free_sectors_of(instance as u32, 2 * self.flash.rules.sizes.line_sectors + kept);
        self.flash.places_left(gc.line) * page + in_page + free.saturating_sub(kept)
    }

    /// Copies what is valid in a victim, row by row, and its trim records at last. Whether there were places.
    fn copy_line(&mut self, instance: usize, victim: LineId) -> Result<bool, FtlError> {
        let page = self.flash.rules.sizes.page;
        for row in 0..self.flash.rules.geometry.sectors / page {
            for index in 0..self.flash.rules.layout.width {
                let chunk = self.flash.rules.layout.chunk(victim, index);
                let at = self.flash.rules.layout.format.ppa(chunk, row * page);
                let valid = self.flash.lines.valid_mask(at, page);
                if valid != 0 && !self.copy_page(instance, at, valid)? {
                    return Ok(false);
                }
            }
        }
        self.write_trims(instance)
    }

    /// Reads a page from its first valid sector to its last one, and copies the valid units. Whether there were
    /// places.
    fn copy_page(&mut self, instance: usize, at: Ppa, valid: u64) -> Result<bool, FtlError> {
        let (first, end) = (valid.trailing_zeros(), 64 - valid.leading_zeros());
        self.flash.media.set_cause(Cause { gc: valid.count_ones() as u8, ..Cause::default() });
        let (now, sectors) = (self.flash.now, end - first);
        let read = self.flash.media.read(now, now, at.plus(first), sectors, &mut Internal)?;
        let mut rest = valid;
        while rest != 0 {
            let index = rest.trailing_zeros();
            rest &= !(self.flash.map.unit_mask() << index);
            if !self.copy_unit(instance, at.plus(index), read.at)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies a unit that is valid, and was read at `ready`, unless it cannot be read. Whether there was a place.
    fn copy_unit(&mut self, instance: usize, at: Ppa, ready: Nanos) -> Result<bool, FtlError> {
        if !self.flash.unit_readable(at) {
            self.flash.counts.media_errors.uncorrectable += 1;
            return Ok(true);
        }
        let key = self.flash.media.oob(at).key;
        if let Some(lba) = key_lba(key) {
            let Some(slot) = self.copy_slot(instance, ready)? else { return Ok(false) };
            self.copy_data(instance, lba, at, slot)?;
        } else if key == KEY_TRIM {
            let records = decode_trims(&self.flash.media.data(at)).unwrap_or_default();
            let hiding = records.into_iter().filter(|record| self.flash.still_hides(record));
            let hiding: smallvec::SmallVec<[TrimRecord; 16]> = hiding.collect();
            self.instances[instance].trims.extend(hiding);
            self.instances[instance].trim_places.push(at);
        }
        Ok(true)
    }

    /// Copies a unit of data into a slot, and programs the page when it is full.
    fn copy_data(&mut self, instance: usize, lba: Lba, at: Ppa, slot: u32) -> Result<(), FtlError> {
        let number = Lba(self.flash.map.unit_of(lba));
        if !self.flash.map.switch(number, MapEntry::Flash(at), MapEntry::Buffered(slot)) {
            self.flash.counts.media_errors.mismatches += 1;
        }
        let (id, unit) = (self.buffer.page_of(slot), self.flash.map.unit_sectors());
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

    /// The slot of the next copy, which is there at `ready`; none if no erase unit takes copies.
    fn copy_slot(&mut self, instance: usize, ready: Nanos) -> Result<Option<u32>, FtlError> {
        if let Some(id) = self.instances[instance].gc.page
            && !self.buffer.takes(id, self.flash.next_seq)
        {
            self.program(instance, Stream::Gc)?;
        }
        if self.instances[instance].gc.page.is_none() && !self.open_page(instance, Stream::Gc)? {
            return Ok(None);
        }
        let id = instance as u32;
        let page = self.buffer.get_mut(id);
        page.ready = page.ready.max(ready);
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

    /// Writes the trim records that a victim held and that are still needed; never more units of them than
    /// the victim had. Whether there were places.
    fn write_trims(&mut self, instance: usize) -> Result<bool, FtlError> {
        let mut records = std::mem::take(&mut self.instances[instance].trims);
        keep_youngest(&mut records);
        for sector in records.chunks(TRIMS_PER_SECTOR) {
            let Some(slot) = self.copy_slot(instance, self.flash.now)? else { return Ok(false) };
            self.push_trims(self.buffer.page_of(slot), sector);
            self.program_full(instance, Stream::Gc)?;
        }
        records.clear();
        self.instances[instance].trims = records;
        while let Some(at) = self.instances[instance].trim_places.pop() {
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
