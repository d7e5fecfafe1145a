//! Resets, and zones that are finished before they are full.
//!
//! - A reset waits for the programs of its zone. Reads see an empty zone at once. It completes when it is durable:
//!   when the chunk with the zone's first sector is erased. The other chunks are erased after that, so that a power cut
//!   leaves the beginning of the zone, or nothing.
//! - Where the save log may hold the first page, a record in it says that the zone was reset, and the reset completes
//!   when all of its chunks are erased.
//! - An empty zone, or one of which nothing is on media, costs no erase.
//! - A finished zone is marked on media by the first flush that follows: its last page is programmed, padded with
//!   sectors that are known as unwritten.

use super::store::{After, Store};
use super::zone::{Mark, NO_CHUNK, PageState, Request, ResetStage, read_only};
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::zone::ZoneId;
use nandscape_block::{Done, Submit};
use nandscape_media::OpenChannel;
use nandscape_rt::invariant;

impl<M: OpenChannel> Store<M> {
    /// Takes a reset as far as it goes; `None` if it must wait. Notes how long that erases.
    pub(super) fn serve_reset(
        &mut self,
        zone: u32,
        request: &mut Request,
    ) -> Result<Option<Submit>, FtlError> {
        let erased_ns = self.counts.erase_ns;
        let served = self.proceed_with_reset(zone, request);
        self.zones.erase_ns[zone as usize] += self.counts.erase_ns - erased_ns;
        served
    }

    fn proceed_with_reset(
        &mut self,
        zone: u32,
        request: &mut Request,
    ) -> Result<Option<Submit>, FtlError> {
        if request.stage == ResetStage::Waiting && !self.begin_reset(zone, request)? {
            if !self.zones.get(zone).failed {
                return Ok(None);
            }
            // What a read-only zone holds can be read.
            self.zones.get_mut(zone).resets -= 1;
            return Ok(Some(self.refused(read_only(zone))));
        }
        if self.zones.get(zone).resetting > 0 {
            return Ok(None);
        }
        let by_record = self.zones.get(zone).saved_first;
        if request.stage == ResetStage::Committing {
            request.stage = ResetStage::Clearing;
            self.erase_zone(zone, if by_record { After::Reset(zone) } else { After::Free })?;
            if self.zones.get(zone).resetting > 0 {
                return Ok(None);
            }
        }
        if by_record {
            let unit = self.zones.shape.first_unit(zone);
            self.units[unit as usize].log.resets.retain(|&of| of != zone);
        }
        let entry = self.zones.get_mut(zone);
        (entry.generation, entry.saved_first) = (0, false);
        entry.resets -= 1;
        self.counts.own.resets += 1;
        let at = self.no_earlier(self.front.link().command(request.since));
        Ok(Some(Submit::Done(Done::ok(at))))
    }

    /// Begins a reset with what makes it durable; whether it could begin.
    fn begin_reset(&mut self, zone: u32, request: &mut Request) -> Result<bool, FtlError> {
        if self.zones.get(zone).in_flight > 0 {
            return Ok(false);
        }
        if self.zones.get(zone).saved_first {
            if !self.rules.run.omits(OmittedRule::ResetRecord) && !self.save_reset(zone)? {
                let unit = &self.units[self.zones.shape.first_unit(zone) as usize];
                if unit.has_no_room(self.rules.kept) {
                    self.fail_zone(zone)?;
                }
                return Ok(false);
            }
            let unit = self.zones.shape.first_unit(zone);
            self.units[unit as usize].log.resets.push(zone);
        }
        self.drop_pages(zone);
        if !self.zones.get(zone).saved_first && self.zones.get(zone).generation > 0 {
            let (unit, chunk) = (self.zones.shape.first_unit(zone), self.zones.chunks(zone)[0]);
            self.zones.chunks_mut(zone)[0] = NO_CHUNK;
            self.zones.get_mut(zone).resetting += 1;
            self.erase(unit, chunk, After::Reset(zone))?;
        }
        request.stage = ResetStage::Committing;
        Ok(true)
    }

    /// What a zone holds in its buffer is gone.
    fn drop_pages(&mut self, zone: u32) {
        for stream in 0..self.zones.shape.streams {
            let on_media = self.zones.stream(zone, stream).first;
            self.zones.in_use -= u64::from(on_media) * u64::from(self.zones.shape.page);
            while let Some(id) = self.zones.stream_mut(zone, stream).pages.pop_front() {
                if self.zones.pages.get(id).state == PageState::Done {
                    self.zones.in_use -= u64::from(self.zones.shape.page);
                }
                self.release_page(id);
            }
            self.zones.stream_mut(zone, stream).first = 0;
        }
        self.zones.release_room(zone);
        let entry = self.zones.get_mut(zone);
        (entry.admitted, entry.mark) = (0, Mark::None);
        invariant!(entry.used == 0, "`used` is the sum of what the pages of zone {zone} hold");
        self.note_emptied(zone);
        self.zones.dirty.remove(&zone);
    }

    /// Whether the save log says that a zone was reset.
    fn is_noted_as_reset(&self, zone: u32) -> bool {
        let unit = self.zones.shape.first_unit(zone);
        self.zones.get(zone).saved_first && self.units[unit as usize].log.resets.contains(&zone)
    }

    /// Erases the chunks that a zone has left.
    fn erase_zone(&mut self, zone: u32, after: After) -> Result<(), FtlError> {
        invariant!(
            self.zones.chunks(zone)[0] == NO_CHUNK || self.is_noted_as_reset(zone),
            "first sector: that of zone {zone} is erased, or a record says so, before all others are"
        );
        for die in 0..self.zones.shape.dies {
            let chunk = self.zones.chunks(zone)[die as usize];
            if chunk == NO_CHUNK {
                continue;
            }
            self.zones.chunks_mut(zone)[die as usize] = NO_CHUNK;
            if let After::Reset(_) = after {
                self.zones.get_mut(zone).resetting += 1;
            }
            self.erase(self.zones.shape.unit(zone, die), chunk, after)?;
        }
        Ok(())
    }

    /// A zone was finished; that of one that is full, or was finished, says nothing.
    pub(super) fn finish(&mut self, zone: u32) -> Result<(), FtlError> {
        let capacity = self.zones.shape.capacity;
        let entry = self.zones.get_mut(zone);
        if entry.mark != Mark::None || entry.admitted == capacity {
            return Ok(());
        }
        self.counts.own.finishes += 1;
        entry.mark = Mark::Due;
        entry.finishes = entry.finishes.wrapping_add(1);
        self.zones.dirty.insert(zone);
        // Records and buffers of zones that are not active are not provided for.
        let has_records = (0..self.zones.shape.streams).any(|stream| {
            let last = self.zones.stream(zone, stream).pages.back();
            last.is_some_and(|&id| self.zones.pages.get(id).saving > 0)
        });
        if has_records || self.rules.config.keeps_buffer() {
            self.mark(zone).map(drop)
        } else {
            Ok(())
        }
    }

    /// Programs what says that a zone is finished; whether it could.
    pub(super) fn mark(&mut self, zone: u32) -> Result<bool, FtlError> {
        let written = self.table.info(ZoneId(zone))?.written();
        if self.zones.get(zone).admitted != written || !self.zones.get(zone).queue.is_empty() {
            return Ok(false);
        }
        if self.zones.get(zone).failed || !self.open_zone(zone)? || self.zones.get(zone).failed {
            return Ok(false);
        }
        let (marked, local) = self.zones.shape.split(written);
        self.zones.get_mut(zone).mark = Mark::Issued;
        if !self.zones.is_filling(zone, marked) {
            self.zones.new_page(zone, marked, local / self.zones.shape.page);
        }
        for stream in 0..self.zones.shape.streams {
            if self.zones.is_filling(zone, stream)
                && let Some(&id) = self.zones.stream(zone, stream).pages.back()
            {
                self.program(id, true)?;
            }
        }
        self.zones.clean(zone);
        Ok(true)
    }
}
