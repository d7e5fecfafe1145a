//! The save log: records of what is durable although its place on media is not programmed.
//!
//! Each parallel unit has its own, in chunks that zones do not use, one page per record. The keys of a record's
//! sectors are logical addresses, their auxiliary value is a generation, and says what the record is; its sequence
//! counts all records of the device.
//! - *Sectors* of a page that is partly filled, on the unit of that page.
//! - *Reset*: nothing of this generation or an earlier one counts; on the unit of the zone's first page. It stands
//!   until the zone's chunks are erased, and as long as there may be older records of the first page.
//! - *Finished*: the zone was finished at this address. Only what is saved when power fails has such records.
//!
//! When the last chunk is full, everything that still counts is written again, into other chunks; then the old ones
//! are erased, the oldest first, one after the other, so that a record of a reset outlives what it hides.

use super::zone::{Page, PageId, PageState};
use super::{After, Event, ZonedFtl};
use crate::error::FtlError;
use nandscape_block::SectorData;
use nandscape_media::{
    Cause, KEY_EMPTY, Kind, OpenChannel, Outcome, Ppa, RuleError, Status, WriteCmd,
};

/// What records are written as.
pub(super) const KIND: Kind = Kind::Smeta;
/// The auxiliary value of a record of a reset, beside the generation.
pub(super) const RESET: u32 = 1 << 31;
/// That of a zone that was finished.
pub(super) const FINISHED: u32 = 1 << 30;
/// That of a sector whose content was lost before it was copied.
pub(super) const SAVED_LOST: u32 = 1 << 29;
/// The generation in an auxiliary value.
pub(super) const GENERATION: u32 = SAVED_LOST - 1;

impl<M: OpenChannel> ZonedFtl<M> {
    /// Saves the sectors that a page holds; whether there is a place for them yet.
    pub(super) fn save_page(&mut self, id: PageId) -> Result<bool, FtlError> {
        let (unit, zone) = (self.unit_of_page(id), self.pages.get(id).zone);
        let is_saved = self.make_room(unit)? && self.write_sectors_record(id)?;
        if !is_saved && self.has_no_room(unit) {
            self.fail_zone(zone)?;
        }
        Ok(is_saved)
    }

    /// Writes the record of a zone's reset; whether there is a place for it yet.
    pub(super) fn save_reset(&mut self, zone: u32) -> Result<bool, FtlError> {
        let unit = self.first_unit(zone);
        Ok(self.make_room(unit)? && self.write_reset_record(zone)?)
    }

    /// Whether no chunk of a unit is free or will be without further work.
    pub(super) fn has_no_room(&self, unit: u32) -> bool {
        let unit = &self.units[unit as usize];
        unit.free.len() as u32 <= self.kept && unit.erasing == 0 && unit.log.old.is_empty()
    }

    /// Whether a unit has a place for a record; begins another chunk where need be.
    fn make_room(&mut self, unit: u32) -> Result<bool, FtlError> {
        let most = self.config.log_chunks(&self.geometry, &self.sizes);
        let log = &self.units[unit as usize].log;
        if !log.set.is_empty() && log.row < self.shape.rows {
            return Ok(true);
        }
        if (log.set.len() as u32) < most {
            return Ok(self.extend(unit));
        }
        if !log.old.is_empty() || log.erasing {
            return Ok(false);
        }
        loop {
            let has_room = self.write_again(unit)?;
            if has_room || self.units[unit as usize].free.len() as u32 <= self.kept {
                return Ok(has_room);
            }
        }
    }

    /// Writes everything that still counts into other chunks, after which the old ones are erased; whether there is
    /// room then.
    fn write_again(&mut self, unit: u32) -> Result<bool, FtlError> {
        let old = std::mem::take(&mut self.units[unit as usize].log.set);
        let mut all = self.extend(unit);
        let (live, resets) = {
            let log = &self.units[unit as usize].log;
            (log.live.clone(), log.resets.clone())
        };
        for id in live {
            all = all
                && (self.pages.get(id).state == PageState::Done
                    || self.write_sectors_record(id)?);
        }
        for zone in resets {
            all = all && self.write_reset_record(zone)?;
        }
        let log = &mut self.units[unit as usize].log;
        if !all {
            // The old ones are needed.
            log.set.splice(0..0, old);
            log.row = self.shape.rows;
            return Ok(false);
        }
        log.old.extend(old);
        log.old_until = log.issued;
        self.erase_old(unit)?;
        Ok(self.units[unit as usize].log.row < self.shape.rows || self.extend(unit))
    }

    /// Adds a chunk to the log of a unit; whether there is one.
    fn extend(&mut self, unit: u32) -> bool {
        let unit = &mut self.units[unit as usize];
        let chunk = unit.take(self.kept);
        unit.log.set.extend(chunk);
        unit.log.row = if chunk.is_some() { 0 } else { unit.log.row };
        chunk.is_some()
    }

    /// Erases the oldest chunk that the log does not need any more, if nothing is in the way.
    pub(super) fn erase_old(&mut self, unit: u32) -> Result<(), FtlError> {
        let log = &mut self.units[unit as usize].log;
        if log.erasing || log.completed < log.old_until {
            return Ok(());
        }
        let Some(chunk) = log.old.pop_front() else { return Ok(()) };
        log.erasing = true;
        self.erase(unit, chunk, After::Log)
    }

    /// A record is on media, and all before it on its unit.
    pub(super) fn record_completed(&mut self, unit: u32, number: u64) -> Result<(), FtlError> {
        let log = &mut self.units[unit as usize].log;
        log.completed = log.completed.max(number);
        self.erase_old(unit)
    }

    /// Writes what a page holds; whether there was a place.
    fn write_sectors_record(&mut self, id: PageId) -> Result<bool, FtlError> {
        let unit = self.unit_of_page(id);
        let page = self.pages.get(id);
        let (zone, sectors, stamp, index) = (page.zone, page.filled(), page.stamp, page.index);
        let lost = page.lost;
        let mut data = page.data.clone();
        data.resize(self.shape.page as usize, SectorData::Absent);
        self.set_record(page_keys(self, id), self.zones.get(zone).generation);
        self.note_lost(lost);
        let Some((at, number)) = self.write_record(unit, &data)? else { return Ok(false) };
        let page = self.pages.get_mut(id);
        if page.saving == 0 {
            self.units[unit as usize].log.live.push(id);
        }
        page.saving = sectors;
        let entry = self.zones.get_mut(zone);
        entry.in_flight += 1;
        entry.saved_first |= index == 0;
        self.counts.own.saved_sectors += u64::from(sectors);
        self.after(at, Event::Saved { unit, number, page: id, stamp, sectors, zone })?;
        Ok(true)
    }

    fn write_reset_record(&mut self, zone: u32) -> Result<bool, FtlError> {
        let unit = self.first_unit(zone);
        let keys = vec![self.start_of(zone).0 as u32; self.shape.page as usize];
        self.set_record(keys, self.zones.get(zone).generation | RESET);
        let Some((at, number)) = self.write_record(unit, &[])? else { return Ok(false) };
        self.zones.get_mut(zone).resetting += 1;
        self.after(at, Event::ResetSaved { unit, number, zone })?;
        Ok(true)
    }

    /// The out-of-band data of the next record.
    pub(super) fn set_record(&mut self, keys: Vec<u32>, aux: u32) {
        self.keys = keys;
        self.aux.clear();
        self.aux.resize(self.shape.page as usize, aux);
    }

    /// Says of sectors of the next record that their content is lost.
    pub(super) fn note_lost(&mut self, lost: u64) {
        let marked = self.aux.iter_mut().enumerate().filter(|(sector, _)| lost >> sector & 1 == 1);
        marked.for_each(|(_, aux)| *aux |= SAVED_LOST);
    }

    /// Writes the next record of a unit; when it is on media, and its number. `None` without a place for it.
    fn write_record(
        &mut self,
        unit: u32,
        data: &[SectorData],
    ) -> Result<Option<(nandscape_rt::Nanos, u64)>, FtlError> {
        loop {
            let log = &self.units[unit as usize].log;
            if log.row >= self.shape.rows && !self.extend(unit) {
                return Ok(None);
            }
            let log = &mut self.units[unit as usize].log;
            let Some(&chunk) = log.set.last() else { return Ok(None) };
            let at = self.shape.at(unit, chunk, log.row);
            log.row += 1;
            let number = self.next_record;
            self.next_record += 1;
            let outcome = self.program_record(at, number, data)?;
            self.counts.sectors.pad += u64::from(self.shape.page);
            if outcome.status == Status::Ok {
                self.units[unit as usize].log.issued = number;
                return Ok(Some((outcome.at, number)));
            }
            self.counts.media_errors.program_failures += 1;
            self.units[unit as usize].log.row = self.shape.rows;
        }
    }

    fn program_record(
        &mut self,
        at: Ppa,
        number: u64,
        data: &[SectorData],
    ) -> Result<Outcome, RuleError> {
        let pad = self.shape.page as u8;
        let cmd = record_cmd(at, number, (&self.keys, &self.aux), data);
        let media = self.front.media_mut();
        media.set_cause(Cause { user: 0, gc: 0, pad });
        media.write(self.now, self.now, cmd)
    }
}

/// The write of a record.
pub(super) const fn record_cmd<'a>(
    at: Ppa,
    number: u64,
    (keys, aux): (&'a [u32], &'a [u32]),
    data: &'a [SectorData],
) -> WriteCmd<'a> {
    // The sectors of a page have sequences that follow each other.
    WriteCmd { at, kind: KIND, seq: number << 6, seq_deltas: &[], aux, keys, data }
}

/// Keys of the sectors that a page holds.
pub(super) fn page_keys<M: OpenChannel>(ftl: &ZonedFtl<M>, id: PageId) -> Vec<u32> {
    let page: &Page = ftl.pages.get(id);
    let first = page.index * ftl.shape.page;
    let key = |sector: u32| match sector < page.filled() {
        true => {
            let offset = ftl.shape.offset(page.stream, first + sector);
            ftl.start_of(page.zone).plus(offset).0 as u32
        }
        false => KEY_EMPTY,
    };
    (0..ftl.shape.page).map(key).collect()
}
