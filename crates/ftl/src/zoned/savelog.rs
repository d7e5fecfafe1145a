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

use super::oob::{FINISHED, KIND, RESET};
use super::store::{After, Event, Saved, Store};
use super::zone::{Mark, PageId, PageState};
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::SectorData;
use nandscape_media::{Cause, OpenChannel, Outcome, Ppa, RuleError, Status, WriteCmd};
use nandscape_rt::{Nanos, defect, invariant};
use std::collections::BTreeMap;

impl<M: OpenChannel> Store<M> {
    /// Saves the sectors that a page holds; whether there is a place for them yet.
    pub(super) fn save_page(&mut self, id: PageId) -> Result<bool, FtlError> {
        let (unit, zone) = (self.zones.unit_of_page(id), self.zones.pages.get(id).zone);
        let is_saved = self.make_room(unit)? && self.write_sectors_record(id)?;
        if !is_saved && self.units[unit as usize].has_no_room(self.rules.kept) {
            self.fail_zone(zone)?;
        }
        Ok(is_saved)
    }

    /// Writes the record of a zone's reset; whether there is a place for it yet.
    pub(super) fn save_reset(&mut self, zone: u32) -> Result<bool, FtlError> {
        let unit = self.zones.shape.first_unit(zone);
        Ok(self.make_room(unit)? && self.write_reset_record(zone)?)
    }

    /// Whether a unit has a place for a record; begins another chunk where need be.
    fn make_room(&mut self, unit: u32) -> Result<bool, FtlError> {
        let most = self.rules.config.log_chunks(&self.rules.geometry, &self.rules.sizes);
        let log = &self.units[unit as usize].log;
        if !log.set.is_empty() && log.row < self.zones.shape.rows {
            return Ok(true);
        }
        if (log.set.len() as u32) < most {
            return Ok(self.units[unit as usize].extend_log(self.rules.kept));
        }
        if !log.old.is_empty() || log.erasing {
            return Ok(false);
        }
        loop {
            let has_room = self.write_again(unit)?;
            if has_room || self.units[unit as usize].free.len() as u32 <= self.rules.kept {
                return Ok(has_room);
            }
        }
    }

    /// Writes everything that still counts into other chunks, after which the old ones are erased; whether there is
    /// room then.
    fn write_again(&mut self, unit: u32) -> Result<bool, FtlError> {
        let old = std::mem::take(&mut self.units[unit as usize].log.set);
        let mut all = self.units[unit as usize].extend_log(self.rules.kept);
        let (live, resets) = {
            let log = &self.units[unit as usize].log;
            (log.live.clone(), log.resets.clone())
        };
        for id in live {
            all = all
                && (self.zones.pages.get(id).state == PageState::Done
                    || self.write_sectors_record(id)?);
        }
        for zone in resets {
            all = all && self.write_reset_record(zone)?;
        }
        let log = &mut self.units[unit as usize].log;
        if !all {
            // The old ones are needed.
            log.set.splice(0..0, old);
            log.row = self.zones.shape.rows;
            return Ok(false);
        }
        log.old.extend(old);
        log.old_until = log.issued;
        self.erase_old(unit)?;
        Ok(self.units[unit as usize].log.row < self.zones.shape.rows
            || self.units[unit as usize].extend_log(self.rules.kept))
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
        let unit = self.zones.unit_of_page(id);
        let page = self.zones.pages.get(id);
        let (zone, sectors, stamp, index) = (page.zone, page.filled(), page.stamp, page.index);
        let lost = page.lost;
        let mut data = page.data.clone();
        data.resize(self.zones.shape.page as usize, SectorData::Absent);
        self.oob.set_record(self.zones.page_keys(id), self.zones.get(zone).generation);
        self.oob.note_lost(lost);
        let Some((at, saved)) = self.write_record(unit, &data)? else { return Ok(false) };
        let page = self.zones.pages.get_mut(id);
        if page.saving == 0 {
            self.units[unit as usize].log.live.push(id);
        }
        page.saving = sectors;
        let entry = self.zones.get_mut(zone);
        entry.in_flight += 1;
        entry.saved_first |= index == 0;
        self.counts.own.saved_sectors += u64::from(sectors);
        self.after(at, Event::Saved { saved, page: id, stamp, sectors, zone })?;
        Ok(true)
    }

    fn write_reset_record(&mut self, zone: u32) -> Result<bool, FtlError> {
        let unit = self.zones.shape.first_unit(zone);
        let keys = vec![self.zones.shape.start_of(zone).0 as u32; self.zones.shape.page as usize];
        self.oob.set_record(keys, self.zones.get(zone).generation | RESET);
        let Some((at, saved)) = self.write_record(unit, &[])? else { return Ok(false) };
        self.zones.get_mut(zone).resetting += 1;
        self.after(at, Event::ResetSaved { saved, zone })?;
        Ok(true)
    }

    /// Writes the next record of a unit; when it is on media. `None` without a place for it.
    fn write_record(
        &mut self,
        unit: u32,
        data: &[SectorData],
    ) -> Result<Option<(Nanos, Saved)>, FtlError> {
        loop {
            let log = &self.units[unit as usize].log;
            if log.row >= self.zones.shape.rows
                && !self.units[unit as usize].extend_log(self.rules.kept)
            {
                return Ok(None);
            }
            let log = &mut self.units[unit as usize].log;
            let Some(&chunk) = log.set.last() else {
                return Err(defect!("a unit that takes a record has a chunk for it").into());
            };
            let at = self.zones.shape.at(unit, chunk, log.row);
            log.row += 1;
            let number = self.next_record;
            self.next_record += 1;
            let outcome = self.program_record(at, number, data)?;
            self.counts.sectors.pad += u64::from(self.zones.shape.page);
            if outcome.status == Status::Ok {
                self.units[unit as usize].log.issued = number;
                let saved = Saved { unit, number, began: self.front.media().begins() };
                return Ok(Some((outcome.at, saved)));
            }
            self.counts.media_errors.program_failures += 1;
            self.units[unit as usize].log.row = self.zones.shape.rows;
        }
    }

    fn program_record(
        &mut self,
        at: Ppa,
        number: u64,
        data: &[SectorData],
    ) -> Result<Outcome, RuleError> {
        let pad = self.zones.shape.page as u8;
        let cmd = record_cmd(at, number, (&self.oob.keys, &self.oob.aux), data);
        let media = self.front.media_mut();
        media.set_cause(Cause { user: 0, gc: 0, pad });
        media.write(self.now, self.now, cmd)
    }
}

/// Where each unit takes the next record: chunk and row.
type Places = BTreeMap<u32, (u32, u32)>;

/// Saving power-safe buffers when power fails: the energy that the device has left programs, into erased chunks, one
/// record per page that is not on media, and one per finished zone that media do not know as such.
impl<M: OpenChannel> Store<M> {
    /// Everything in RAM is gone, but for power-safe buffers, which are saved.
    pub(super) fn lose_power(mut self) -> M {
        if self.rules.config.keeps_buffer() && !self.rules.run.omits(OmittedRule::BufferSave) {
            // Media that refuse are off already: the cut reached them first.
            let _ = self.save_buffers();
        }
        self.front.power_off()
    }

    fn save_buffers(&mut self) -> Result<(), FtlError> {
        let mut places = Places::new();
        for zone in std::mem::take(&mut self.zones.dirty) {
            for stream in 0..self.zones.shape.streams {
                let pages = self.zones.stream(zone, stream).pages.clone();
                for id in pages {
                    self.save_residual_page(&mut places, id)?;
                }
            }
            if matches!(self.zones.get(zone).mark, Mark::Due | Mark::Issued) {
                if self.zones.get(zone).generation == 0 {
                    self.zones.begin_generation(zone);
                }
                let keys =
                    vec![self.zones.shape.start_of(zone).0 as u32; self.zones.shape.page as usize];
                self.oob.set_record(keys, self.zones.get(zone).generation | FINISHED);
                self.write_residual(&mut places, self.zones.shape.first_unit(zone), &[])?;
            }
        }
        Ok(())
    }

    fn save_residual_page(&mut self, places: &mut Places, id: PageId) -> Result<(), FtlError> {
        let page = self.zones.pages.get(id);
        if page.state == PageState::Done || page.saved == page.filled() {
            invariant!(
                self.is_known_on_media(id),
                "power-safe buffers: a page that is not saved is on media"
            );
            return Ok(());
        }
        let generation = self.zones.get(page.zone).generation;
        let (mut data, lost) = (page.data.clone(), page.lost);
        data.resize(self.zones.shape.page as usize, SectorData::Absent);
        self.oob.set_record(self.zones.page_keys(id), generation);
        self.oob.note_lost(lost);
        let unit = self.zones.unit_of_page(id);
        self.write_residual(places, unit, &data)
    }

    /// Writes the next record of a unit, which takes no time and is not undone by the cut.
    fn write_residual(
        &mut self,
        places: &mut Places,
        unit: u32,
        data: &[SectorData],
    ) -> Result<(), FtlError> {
        let free = &mut self.units[unit as usize].free;
        let place = places.entry(unit).or_insert((0, self.zones.shape.rows));
        if place.1 == self.zones.shape.rows {
            // A mount that found too few erased chunks refuses to write: what it has in the buffer is in the save log yet.
            let Some(chunk) = free.pop_front() else { return Ok(()) };
            *place = (chunk, 0);
        }
        let at = self.zones.shape.at(unit, place.0, place.1);
        place.1 += 1;
        let number = self.next_record;
        self.next_record += 1;
        let cmd = record_cmd(at, number, (&self.oob.keys, &self.oob.aux), data);
        self.front.media_mut().write_residual(cmd)?;
        Ok(())
    }
}

/// The write of a record.
const fn record_cmd<'a>(
    at: Ppa,
    number: u64,
    (keys, aux): (&'a [u32], &'a [u32]),
    data: &'a [SectorData],
) -> WriteCmd<'a> {
    // The sectors of a page have sequences that follow each other.
    WriteCmd { at, kind: KIND, seq: number << 6, seq_deltas: &[], aux, keys, data }
}
