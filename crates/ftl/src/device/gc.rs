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
//! Nobody waits inside a collection.

use super::DeviceFtl;
use super::instance::Stream;
use crate::common::ids::LineId;
use crate::common::l2p::MapEntry;
use crate::common::lines::LineState;
use crate::common::oob::key_lba;
use crate::common::trims::{TRIMS_PER_SECTOR, TrimRecord, decode_trims, encode_trims};
use crate::error::FtlError;
use nandscape_block::{BlockError, Lba, SectorData};
use nandscape_media::{Cause, Internal, KEY_EMPTY, KEY_TRIM, OpenChannel, Ppa};
use nandscape_rt::Nanos;
use std::cmp::Reverse;

impl<M: OpenChannel> DeviceFtl<M> {
    /// The host wrote so many sectors in an instance: collects when its credits are used up.
    #[inline]
    pub(super) fn use_credits(&mut self, instance: usize, sectors: u32) -> Result<(), FtlError> {
        let credits = &mut self.instances[instance].credits;
        *credits -= i64::from(sectors);
        if *credits > 0 {
            return Ok(());
        }
        let gained = if self.is_short(instance) {
            self.collect(instance)?.unwrap_or(0)
        } else {
            self.sizes.line_sectors
        };
        self.instances[instance].credits += i64::from(gained);
        Ok(())
    }

    /// Collects one victim, if there is one and its copies fit. How many sectors that gains.
    pub(super) fn collect(&mut self, instance: usize) -> Result<Option<u32>, FtlError> {
        let Some(victim) = self.choose_victim(instance) else { return Ok(None) };
        let line = *self.lines.get(victim);
        self.counts.gc.victims += 1;
        self.counts.gc.victim_valid += u64::from(line.valid);
        self.counts.gc.victim_data += u64::from(line.data);
        self.victims.remove(victim);
        self.lines.get_mut(victim).state = LineState::Gc;
        self.copy_line(instance, victim)?;
        self.write_trims(instance)?;
        let gate = self.next_seq;
        let entry = self.lines.get_mut(victim);
        entry.gate = entry.gate.max(gate);
        if entry.valid == 0 {
            self.quarantine(victim)?;
        } else {
            entry.state = LineState::Corrupt;
        }
        Ok(Some(line.capacity.saturating_sub(line.valid)))
    }

    /// The policy's victim among those that gain a page, or the least valid one if its copies do not fit.
    fn choose_victim(&mut self, instance: usize) -> Option<LineId> {
        let stripe = instance as u32;
        let gc = &self.instances[instance].gc;
        let filled = gc.page.map_or(0, |id| self.buffer.get(id).filled);
        let page = self.sizes.page;
        let open = self.places_left(gc.line) * page + gc.page.map_or(0, |_| page - filled);
        let room = open + self.lines.free_sectors_of(stripe, 2 * self.sizes.line_sectors);
        let (lines, layout) = (&self.lines, self.layout);
        // A page that is full is programmed, and copies are whole units: sectors are what counts.
        let fits = |line: LineId| lines.get(line).valid <= room;
        let gains = |line: LineId| lines.get(line).valid + page <= lines.get(line).capacity;
        let found = self.victims.find([stripe], |victims, stripe| {
            victims.choose(|index| gains(layout.line(index, stripe)))
        });
        found.filter(|&line| fits(line)).or_else(|| {
            self.victims.find([stripe], |victims, stripe| {
                let line = |index| layout.line(index, stripe);
                victims.least_valid(|index| gains(line(index)) && fits(line(index)))
            })
        })
    }

    /// Copies what is valid in a victim, row by row.
    fn copy_line(&mut self, instance: usize, victim: LineId) -> Result<(), FtlError> {
        let page = self.sizes.page;
        for row in 0..self.geometry.sectors / page {
            for index in 0..self.layout.width {
                let chunk = self.layout.chunk(victim, index);
                let at = self.layout.format.ppa(chunk, row * page);
                let valid = self.lines.valid_mask(at, page);
                if valid != 0 {
                    self.copy_page(instance, victim, at, valid)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a page from its first valid sector to its last one, and copies the valid units.
    fn copy_page(
        &mut self,
        instance: usize,
        victim: LineId,
        at: Ppa,
        valid: u64,
    ) -> Result<(), FtlError> {
        let (first, end) = (valid.trailing_zeros(), 64 - valid.leading_zeros());
        self.media.set_cause(Cause { gc: valid.count_ones() as u8, ..Cause::default() });
        let (now, sectors) = (self.now, end - first);
        let read = self.media.read(now, now, at.plus(first), sectors, &mut Internal)?;
        let (unit, mut copied) = (self.pages.unit_sectors(), 0);
        let mut rest = valid;
        while rest != 0 {
            let index = rest.trailing_zeros();
            rest &= !(self.pages.unit_mask() << index);
            copied += self.copy_unit(instance, at.plus(index), read.at)?;
        }
        let sectors = copied * unit;
        self.lines.cleared(victim, sectors, 0);
        Ok(())
    }

    /// Copies a unit that is valid, and was read at `ready`. Whether it could be; its bits are cleared then.
    fn copy_unit(&mut self, instance: usize, at: Ppa, ready: Nanos) -> Result<u32, FtlError> {
        let unit = self.pages.unit_sectors();
        if !self.unit_readable(at) {
            self.counts.media_errors.uncorrectable += 1;
            return Ok(0);
        }
        let key = self.media.oob(at).key;
        match key_lba(key) {
            Some(lba) => self.copy_data(instance, lba, at, ready)?,
            None if key == KEY_TRIM => {
                let records = decode_trims(&self.media.data(at)).unwrap_or_default();
                let hiding = records.into_iter().filter(|record| self.still_hides(record));
                let hiding: smallvec::SmallVec<[TrimRecord; 16]> = hiding.collect();
                self.instances[instance].trims.extend(hiding);
                self.discards.places.remove(&at);
            }
            None => {}
        }
        for index in 0..unit {
            self.lines.clear_bit(at.plus(index));
        }
        Ok(1)
    }

    /// Whether all can be read that a unit holds: trim records are one sector.
    pub(super) fn unit_readable(&self, at: Ppa) -> bool {
        let readable = |index| self.media.readable(at.plus(index));
        readable(0)
            && (self.media.oob(at).key == KEY_TRIM || (1..self.pages.unit_sectors()).all(readable))
    }

    fn copy_data(
        &mut self,
        instance: usize,
        lba: Lba,
        at: Ppa,
        ready: Nanos,
    ) -> Result<(), FtlError> {
        let slot = self.copy_slot(instance, ready)?;
        let number = Lba(self.pages.unit_of(lba));
        if !self.pages.l2p.switch(number, MapEntry::Flash(at), MapEntry::Buffered(slot)) {
            self.counts.media_errors.mismatches += 1;
        }
        let id = self.buffer.page_of(slot);
        for index in 0..self.pages.unit_sectors() {
            let data = self.kept(|ftl| ftl.media.data(at.plus(index)));
            let key = lba.0 as u32 + index;
            self.buffer.push(id, key, self.next_seq, data);
            self.next_seq += 1;
        }
        self.counts.sectors.gc += u64::from(self.pages.unit_sectors());
        self.program_full(instance, Stream::Gc)
    }

    /// The slot of the next copy, which is there at `ready`.
    fn copy_slot(&mut self, instance: usize, ready: Nanos) -> Result<u32, FtlError> {
        if let Some(id) = self.instances[instance].gc.page
            && !self.buffer.takes(id, self.next_seq)
        {
            self.program(instance, Stream::Gc)?;
        }
        if self.instances[instance].gc.page.is_none() && !self.open_page(instance, Stream::Gc)? {
            return Err(BlockError::ReadOnly("no erase unit takes copies").into());
        }
        let id = instance as u32;
        let page = self.buffer.get_mut(id);
        page.ready = page.ready.max(ready);
        Ok(self.buffer.first_slot(id) + self.buffer.get(id).filled)
    }

    /// Content, where any is kept.
    #[inline]
    pub(super) fn kept(&self, data: impl FnOnce(&Self) -> SectorData) -> SectorData {
        if self.run.keep_content { data(self) } else { SectorData::Absent }
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

    /// Writes the trim records that a victim held and that are still needed; never more sectors of them
    /// than the victim had.
    fn write_trims(&mut self, instance: usize) -> Result<(), FtlError> {
        if self.instances[instance].trims.is_empty() {
            return Ok(());
        }
        let mut records = std::mem::take(&mut self.instances[instance].trims);
        records.sort_unstable_by_key(|r| (r.lba, r.sectors, Reverse(r.seq)));
        records.dedup_by_key(|record| (record.lba, record.sectors));
        for sector in records.chunks(TRIMS_PER_SECTOR) {
            let slot = self.copy_slot(instance, self.now)?;
            self.push_trims(self.buffer.page_of(slot), sector);
            self.program_full(instance, Stream::Gc)?;
        }
        records.clear();
        self.instances[instance].trims = records;
        Ok(())
    }

    /// Adds a unit of trim records to a page.
    pub(super) fn push_trims(&mut self, page: u32, records: &[TrimRecord]) {
        self.buffer.push(page, KEY_TRIM, self.next_seq, encode_trims(records));
        self.next_seq += 1;
        for _ in 1..self.pages.unit_sectors() {
            self.buffer.push(page, KEY_EMPTY, self.next_seq, SectorData::Absent);
            self.next_seq += 1;
        }
        self.counts.sectors.trim += 1;
        self.counts.sectors.pad += u64::from(self.pages.unit_sectors()) - 1;
    }
}
