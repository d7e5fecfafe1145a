//! Writes on their way into the pages of a zone.
//!
//! A write needs its share of the zone's buffer before its data cross the link; what does not fit waits, and with it what
//! follows in its zone. It enters as room is made, a one-shot page or more at a time: if all of it had to fit at once, as
//! in NVMeVirt (`zns_write`), large writes would leave a part of the buffer unused, and so be slower than small ones.
//! Without a buffer everything crosses at once, and its programs begin when it has arrived. Chunks come from the pools at
//! the first write after a reset.

use super::store::Store;
use super::zone::{PageState, Request};
use crate::error::FtlError;
use nandscape_block::zone::ZoneId;
use nandscape_block::{BlockError, Flags, SectorData};
use nandscape_media::OpenChannel;
use nandscape_rt::{Nanos, invariant};

impl<M: OpenChannel> Store<M> {
    /// Gives a zone its chunks, if it has none; whether it has them. A zone for which media have none fails.
    pub(super) fn open_zone(&mut self, zone: u32) -> Result<bool, FtlError> {
        if self.zones.get(zone).generation > 0 {
            return Ok(true);
        }
        if !self.can_save_another()? {
            return Ok(false);
        }
        let reserve = self.rules.config.spare_needed(&self.rules.geometry, &self.rules.sizes);
        for die in 0..self.zones.shape.dies {
            let unit = &self.units[self.zones.shape.unit(zone, die) as usize];
            let (free, erasing) = (unit.free.len() as u32, unit.erasing);
            // The log may have more than its share, as it has another chunk after each program of it that failed.
            let reserved = reserve.saturating_sub(unit.log.chunks()).max(self.rules.kept);
            if free > reserved {
                continue;
            }
            if erasing > 0 {
                return Ok(false);
            }
            if free <= self.rules.kept {
                self.fail_zone(zone)?;
                return Ok(true);
            }
        }
        for die in 0..self.zones.shape.dies {
            let unit = self.zones.shape.unit(zone, die);
            let Some(chunk) = self.units[unit as usize].take(self.rules.kept) else {
                let what = format!("zone {zone} is opened without a chunk of unit {unit}");
                return Err(BlockError::Defect(what).into());
            };
            self.zones.chunks_mut(zone)[die as usize] = chunk;
        }
        self.zones.begin_generation(zone);
        Ok(true)
    }

    /// Whether the spare chunks hold what one more zone has in its buffer. They are provided for as many zones as may
    /// be active, so one that is full, finished or reset and has programs in flight is waited for.
    fn can_save_another(&self) -> Result<bool, FtlError> {
        let most = self.rules.config.zone.max_active as usize;
        if self.rules.sizes.buffer == 0 || most == 0 {
            return Ok(true);
        }
        let (mut buffered, mut draining) = (0, false);
        for &zone in &self.zones.dirty {
            let entry = self.zones.get(zone);
            let counts = entry.used > 0 && !entry.failed;
            buffered += usize::from(counts);
            let is_active = self.table.info(ZoneId(zone))?.state.is_active();
            draining |= counts && entry.in_flight > 0 && !is_active;
        }
        Ok(buffered < most || !draining)
    }

    /// Admits as much of a write as fits; whether that was all, or the rest will never be: media failed the zone.
    pub(super) fn admit(&mut self, zone: u32, request: &mut Request) -> Result<bool, FtlError> {
        while request.done < request.sectors {
            let left = request.sectors - request.done;
            let part = match self.rules.sizes.buffer {
                0 => left,
                size => {
                    let page = self.zones.shape.page;
                    // Without a program in flight, pages that are being filled take all but this.
                    let least = left.min(page).min(size - self.zones.shape.streams * (page - 1));
                    let room = size - self.zones.get(zone).used;
                    if room < least {
                        return Ok(false);
                    }
                    left.min(room)
                }
            };
            invariant!(
                request.at.plus(request.done.into())
                    == self.zones.shape.start_of(zone).plus(self.zones.get(zone).admitted),
                "prefix: zone {zone} is written in the order of its addresses"
            );
            let begins = self.begins();
            let (_, link) = self.front.parts();
            let arrived = link.data_in(self.now, begins, part).end;
            request.arrived = request.arrived.max(arrived);
            self.count_write(request, part);
            let programmed = self.take_sectors(zone, request, part, arrived)?;
            if self.rules.sizes.buffer == 0 {
                request.arrived = request.arrived.max(programmed);
            }
            if self.zones.get(zone).failed {
                return Ok(true);
            }
        }
        Ok(true)
    }

    fn count_write(&mut self, request: &Request, sectors: u32) {
        let sectors = u64::from(sectors);
        self.counts.host.written += sectors;
        self.counts.sectors.user += sectors;
        if request.flags.has(Flags::JOURNAL) {
            self.counts.sectors.journal += sectors;
        }
        self.counts.in_use_sum += u128::from(self.zones.in_use) * u128::from(sectors);
    }

    /// Puts the next sectors of a write, which have arrived then, into pages, and programs those that are full; when
    /// the last of these is.
    fn take_sectors(
        &mut self,
        zone: u32,
        request: &mut Request,
        sectors: u32,
        arrived: Nanos,
    ) -> Result<Nanos, FtlError> {
        let mut programmed = arrived;
        for _ in 0..sectors {
            let offset = self.zones.get(zone).admitted;
            let (stream, local) = self.zones.shape.split(offset);
            let id = self.zones.page_for(zone, stream, local / self.zones.shape.page);
            let data = match self.rules.run.keep_content {
                true => request.payload.sector(request.done),
                false => SectorData::Absent,
            };
            request.done += 1;
            programmed = programmed.max(self.push_sector(zone, id, data, arrived)?);
        }
        self.zones.dirty.insert(zone);
        self.zones.clean(zone);
        Ok(programmed)
    }

    /// Puts a sector that is there then into the page that it belongs to, and programs that if it is full; when it is
    /// programmed.
    #[inline]
    pub(super) fn push_sector(
        &mut self,
        zone: u32,
        id: u32,
        data: SectorData,
        ready: Nanos,
    ) -> Result<Nanos, FtlError> {
        let offset = self.zones.get(zone).admitted;
        self.note_admitted(zone, offset);
        let page = self.zones.pages.get_mut(id);
        invariant!(page.state == PageState::Filling, "a page that takes a sector is being filled");
        invariant!(
            self.zones.shape.split(offset)
                == (page.stream, page.index * self.zones.shape.page + page.filled()),
            "places: sector {offset} of zone {zone} follows those that its page holds"
        );
        page.data.push(data);
        page.ready = page.ready.max(ready);
        let (stream, index, filled) = (page.stream, page.index, page.filled());
        let entry = self.zones.get_mut(zone);
        entry.admitted += 1;
        entry.used += 1;
        if filled == self.zones.shape.page_sectors(stream, index) {
            return self.program(id, false);
        }
        Ok(ready)
    }
}
