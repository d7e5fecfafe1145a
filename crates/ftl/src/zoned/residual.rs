//! Saving power-safe buffers when power fails: the energy that the device has left programs, into erased chunks, one
//! record per page that is not on media, and one per finished zone that media do not know as such.

use super::ZonedFtl;
use super::savelog::{FINISHED, page_keys, record_cmd};
use super::zone::{Mark, PageId, PageState};
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::SectorData;
use nandscape_media::OpenChannel;
use std::collections::BTreeMap;

/// Where each unit takes the next record: chunk and row.
type Places = BTreeMap<u32, (u32, u32)>;

impl<M: OpenChannel> ZonedFtl<M> {
    /// Everything in RAM is gone, but for power-safe buffers, which are saved.
    pub(super) fn lose_power(mut self) -> M {
        if self.config.keeps_buffer() && !self.run.omits(OmittedRule::BufferSave) {
            // Media that refuse are off already: the cut reached them first.
            let _ = self.save_buffers();
        }
        self.front.power_off()
    }

    fn save_buffers(&mut self) -> Result<(), FtlError> {
        let mut places = Places::new();
        for zone in std::mem::take(&mut self.dirty) {
            for stream in 0..self.shape.streams {
                let pages = self.zones.stream(zone, stream).pages.clone();
                for id in pages {
                    self.save_residual_page(&mut places, id)?;
                }
            }
            if matches!(self.zones.get(zone).mark, Mark::Due | Mark::Issued) {
                if self.zones.get(zone).generation == 0 {
                    self.begin_generation(zone);
                }
                let keys = vec![self.start_of(zone).0 as u32; self.shape.page as usize];
                self.set_record(keys, self.zones.get(zone).generation | FINISHED);
                self.write_residual(&mut places, self.first_unit(zone), &[])?;
            }
        }
        Ok(())
    }

    fn save_residual_page(&mut self, places: &mut Places, id: PageId) -> Result<(), FtlError> {
        let page = self.pages.get(id);
        if page.state == PageState::Done || page.saved == page.filled() {
            return Ok(());
        }
        let generation = self.zones.get(page.zone).generation;
        let (mut data, lost) = (page.data.clone(), page.lost);
        data.resize(self.shape.page as usize, SectorData::Absent);
        self.set_record(page_keys(self, id), generation);
        self.note_lost(lost);
        let unit = self.unit_of_page(id);
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
        let place = places.entry(unit).or_insert((0, self.shape.rows));
        if place.1 == self.shape.rows {
            let Some(chunk) = free.pop_front() else { return Ok(()) };
            *place = (chunk, 0);
        }
        let at = self.shape.at(unit, place.0, place.1);
        place.1 += 1;
        let number = self.next_record;
        self.next_record += 1;
        let cmd = record_cmd(at, number, (&self.keys, &self.aux), data);
        self.front.media_mut().write_residual(cmd)?;
        Ok(())
    }
}
