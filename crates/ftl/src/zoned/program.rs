//! Programs: a full page goes to its place, and stays in the buffer until its program completes. A program that
//! fails closes its chunk; what that holds is copied to a spare chunk of the same unit, and the page goes there.
//! Where there is no spare one left, the zone becomes read-only.

use super::config::OFFSET_BITS;
use super::zone::{Mark, PageId, PageState};
use super::{Event, ZonedFtl};
use crate::common::oob::key_lba;
use crate::error::FtlError;
use nandscape_block::SectorData;
use nandscape_media::{
    Cause, Internal, KEY_EMPTY, Kind, OpenChannel, Outcome, Ppa, Status, WriteCmd,
};
use nandscape_rt::Nanos;

/// Auxiliary value of a sector whose content was lost before it was copied.
pub(super) const LOST: u32 = 1;
/// Auxiliary value of a sector that was never written: its zone was finished before it.
pub(super) const UNWRITTEN: u32 = 2;

impl<M: OpenChannel> ZonedFtl<M> {
    /// Sequence of a page's first sector: the generation, and its number in the stream.
    fn seq(&self, zone: u32, page: u32) -> u64 {
        u64::from(self.zones.get(zone).generation) << OFFSET_BITS
            | u64::from(page * self.shape.page)
    }

    /// Key of a sector of a stream; none of one beyond the zone's capacity.
    fn key(&self, zone: u32, stream: u32, local: u32) -> u32 {
        let offset = self.shape.offset(stream, local);
        if offset < self.shape.capacity {
            self.start_of(zone).plus(offset).0 as u32
        } else {
            KEY_EMPTY
        }
    }

    /// The keys of a page, and what it says of each sector if that is anything: those from `filled` on are unwritten.
    fn set_keys(&mut self, (zone, stream, index): (u32, u32, u32), filled: u32, lost: u64) {
        let (mut keys, mut aux) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.aux));
        keys.clear();
        aux.clear();
        let first = index * self.shape.page;
        keys.extend((0..self.shape.page).map(|i| self.key(zone, stream, first + i)));
        if lost != 0 || filled < self.shape.page_sectors(stream, index) {
            aux.extend((0..self.shape.page).map(|i| match lost >> i & 1 {
                _ if i >= filled => UNWRITTEN,
                0 => 0,
                _ => LOST,
            }));
        }
        (self.keys, self.aux) = (keys, aux);
    }

    /// Programs a page that is full, or the last one of a zone that was finished; when that completes.
    pub(super) fn program(&mut self, id: PageId, finished: bool) -> Result<Nanos, FtlError> {
        let page = self.pages.get(id);
        let (zone, stream, index, filled) = (page.zone, page.stream, page.index, page.filled());
        debug_assert!(finished || filled == self.shape.page_sectors(stream, index));
        let (die, row) = self.shape.die_of(stream, index);
        while !self.zones.get(zone).failed {
            let unit = self.shape.unit(zone, die);
            let at = self.shape.at(unit, self.zones.chunks(zone)[die as usize], row);
            let outcome = self.write_page(id, at)?;
            if outcome.status == Status::Ok {
                self.counts.sectors.pad += u64::from(self.shape.page - filled);
                self.in_use += u64::from(self.shape.page);
                self.pages.get_mut(id).state = PageState::InFlight;
                self.zones.get_mut(zone).in_flight += 1;
                self.after(outcome.at, Event::Programmed { page: id })?;
                return Ok(outcome.at);
            }
            self.counts.media_errors.program_failures += 1;
            self.counts.sectors.pad += u64::from(self.shape.page);
            let ready = self.pages.get(id).ready.max(outcome.at);
            self.pages.get_mut(id).ready = ready;
            if !self.relocate(zone, die, row)? {
                self.fail_zone(zone)?;
            }
        }
        self.pages.get_mut(id).state = PageState::Stuck;
        Ok(self.now)
    }

    fn write_page(&mut self, id: PageId, at: Ppa) -> Result<Outcome, FtlError> {
        let page = self.pages.get(id);
        let (place, ready) = ((page.zone, page.stream, page.index), page.ready.max(self.now));
        let (filled, lost, copies) = (page.filled(), page.lost, page.copies);
        self.set_keys(place, filled, lost);
        let seq = self.seq(place.0, place.2);
        let pad = self.shape.page - filled;
        let data = &mut self.pages.get_mut(id).data;
        let is_kept = data.iter().any(|data| !matches!(data, SectorData::Absent));
        data.resize(self.shape.page as usize, SectorData::Absent);
        let contents: &[SectorData] = if is_kept { data } else { &[] };
        let cmd = WriteCmd {
            at,
            kind: Kind::Data,
            seq,
            seq_deltas: &[],
            aux: &self.aux,
            keys: &self.keys,
            data: contents,
        };
        let media = self.front.media_mut();
        let (user, gc) = if copies { (0, filled) } else { (filled, 0) };
        media.set_cause(Cause { user: user as u8, gc: gc as u8, pad: pad as u8 });
        let outcome = media.write(self.now, ready, cmd);
        data.truncate(filled as usize);
        Ok(outcome?)
    }

    /// A page is on media: it leaves the buffer with those that it kept there.
    pub(super) fn programmed(&mut self, id: PageId) -> Result<(), FtlError> {
        let page = self.pages.get_mut(id);
        page.state = PageState::Done;
        let (zone, stream) = (page.zone, page.stream);
        self.zones.get_mut(zone).in_flight -= 1;
        while let Some(&first) = self.zones.stream(zone, stream).pages.front() {
            if self.pages.get(first).state != PageState::Done {
                break;
            }
            self.zones.stream_mut(zone, stream).pages.pop_front();
            self.zones.stream_mut(zone, stream).first += 1;
            self.release_page(first);
        }
        self.clean(zone);
        Ok(())
    }

    /// A page is not needed any more.
    pub(super) fn release_page(&mut self, id: PageId) {
        let page = self.pages.get(id);
        let (zone, filled, is_saved) = (page.zone, page.filled(), page.saving > 0);
        if is_saved {
            let unit = self.unit_of_page(id);
            self.units[unit as usize].log.live.retain(|&live| live != id);
        }
        self.zones.get_mut(zone).used -= filled;
        self.pages.release(id);
    }

    /// The parallel unit on which a page lies.
    pub(super) fn unit_of_page(&self, id: PageId) -> u32 {
        let page = self.pages.get(id);
        let (die, _) = self.shape.die_of(page.stream, page.index);
        self.shape.unit(page.zone, die)
    }

    /// Takes a zone from the dirty ones, if media have all of it.
    pub(super) fn clean(&mut self, zone: u32) {
        let streams = 0..self.shape.streams;
        if streams.into_iter().any(|s| !self.zones.stream(zone, s).pages.is_empty()) {
            return;
        }
        let entry = self.zones.get_mut(zone);
        if entry.mark == Mark::Issued {
            entry.mark = Mark::Durable;
        }
        let is_full = entry.admitted == self.shape.capacity || entry.mark == Mark::Durable;
        if entry.mark != Mark::Due {
            self.dirty.remove(&zone);
        }
        if is_full {
            self.zones.release_room(zone);
        }
    }

    /// Copies the first rows of a die's chunk to a spare one, which takes its place; whether there is one.
    #[cold]
    pub(super) fn relocate(&mut self, zone: u32, die: u32, rows: u32) -> Result<bool, FtlError> {
        let unit = self.shape.unit(zone, die);
        let from = self.zones.chunks(zone)[die as usize];
        while let Some(to) = self.units[unit as usize].take(self.kept) {
            let Some(at) = self.copy_rows(zone, die, (from, to), rows)? else {
                // A reset that does not wait for its erase would leave what was copied.
                self.zones.get_mut(zone).in_flight += 1;
                self.erase(unit, to, super::After::Retired(zone))?;
                continue;
            };
            self.zones.chunks_mut(zone)[die as usize] = to;
            self.zones.get_mut(zone).in_flight += 1;
            self.counts.own.relocated_chunks += 1;
            self.after(at, Event::Copied { unit, chunk: from, zone })?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Copies rows of a die's chunk; when the last is there, or `None` if a program failed.
    fn copy_rows(
        &mut self,
        zone: u32,
        die: u32,
        (from, to): (u32, u32),
        rows: u32,
    ) -> Result<Option<Nanos>, FtlError> {
        let unit = self.shape.unit(zone, die);
        let mut end = self.now;
        for row in 0..rows {
            let (source, target) = (self.shape.at(unit, from, row), self.shape.at(unit, to, row));
            let outcome = self.copy_page((zone, die, row), source, target)?;
            if outcome.status != Status::Ok {
                self.counts.media_errors.program_failures += 1;
                return Ok(None);
            }
            self.counts.sectors.gc += u64::from(self.shape.page);
            end = end.max(outcome.at);
        }
        Ok(Some(end))
    }

    fn copy_page(
        &mut self,
        (zone, die, row): (u32, u32, u32),
        source: Ppa,
        target: Ppa,
    ) -> Result<Outcome, FtlError> {
        let page = self.shape.page;
        let (stream, index) = (self.shape.stream_of(die), self.shape.page_at(die, row));
        let cause = Cause { user: 0, gc: page as u8, pad: 0 };
        self.front.media_mut().set_cause(cause);
        let read = self.front.media_mut().read(self.now, self.now, source, page, &mut Internal)?;
        self.set_keys((zone, stream, index), page, 0);
        let media = self.front.media();
        let (mut aux, mut data) = (Vec::new(), Vec::new());
        for sector in 0..page {
            let at = source.plus(sector);
            let oob = media.oob(at);
            let lost = !media.readable(at) && key_lba(self.keys[sector as usize]).is_some();
            aux.push(if lost { LOST } else { oob.aux });
            // As it is, but known to be wrong.
            data.push(media.data(at));
            self.counts.media_errors.uncorrectable += u64::from(lost);
        }
        let aux = if aux.iter().any(|&aux| aux != 0) { aux } else { Vec::new() };
        let cmd = WriteCmd {
            at: target,
            kind: Kind::Data,
            seq: self.seq(zone, index),
            seq_deltas: &[],
            aux: &aux,
            keys: &self.keys,
            data: &data,
        };
        let media = self.front.media_mut();
        media.set_cause(cause);
        Ok(media.write(self.now, read.at.max(self.now), cmd)?)
    }
}
