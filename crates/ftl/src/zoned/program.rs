//! Programs: a full page goes to its place, and stays in the buffer until its program completes. A program that
//! fails closes its chunk; what that holds is copied to a spare chunk of the same unit, and the page goes there.
//! Where there is no spare one left, the zone becomes read-only.
//!
//! Erases: a chunk is in its pool when its erase has completed, so nothing is written over content that a power cut
//! could still leave.

use super::oob::LOST;
use super::store::{After, Event, Store};
use super::zone::{PageId, PageState};
use crate::common::oob::key_lba;
use crate::error::FtlError;
use nandscape_block::SectorData;
use nandscape_media::{
    Cause, ChunkId, ChunkState, Internal, Kind, OpenChannel, Outcome, Ppa, Status, UnitId, WriteCmd,
};
use nandscape_rt::{Nanos, invariant};

impl<M: OpenChannel> Store<M> {
    /// Programs a page that is full, or the last one of a zone that was finished; when that completes.
    pub(super) fn program(&mut self, id: PageId, finished: bool) -> Result<Nanos, FtlError> {
        let page = self.zones.pages.get(id);
        let (zone, stream, index, filled) = (page.zone, page.stream, page.index, page.filled());
        invariant!(
            finished || filled == self.zones.shape.page_sectors(stream, index),
            "places: a page that is partly filled is programmed only when its zone is finished"
        );
        let (die, row) = self.zones.shape.die_of(stream, index);
        while !self.zones.get(zone).failed {
            let unit = self.zones.shape.unit(zone, die);
            let at = self.zones.shape.at(unit, self.zones.chunks(zone)[die as usize], row);
            let outcome = self.write_page(id, at)?;
            if outcome.status == Status::Ok {
                self.counts.sectors.pad += u64::from(self.zones.shape.page - filled);
                self.zones.in_use += u64::from(self.zones.shape.page);
                let began = self.front.media().begins();
                let page = self.zones.pages.get_mut(id);
                (page.state, page.began) = (PageState::InFlight, began);
                self.zones.get_mut(zone).in_flight += 1;
                self.after(outcome.at, Event::Programmed { page: id })?;
                return Ok(outcome.at);
            }
            self.counts.media_errors.program_failures += 1;
            self.counts.sectors.pad += u64::from(self.zones.shape.page);
            let ready = self.zones.pages.get(id).ready.max(outcome.at);
            self.zones.pages.get_mut(id).ready = ready;
            if !self.relocate(zone, die, row)? {
                self.fail_zone(zone)?;
            }
        }
        self.zones.pages.get_mut(id).state = PageState::Stuck;
        Ok(self.now)
    }

    /// Whether a chunk is written up to this place.
    fn is_next(&self, at: Ppa) -> bool {
        let format = self.rules.geometry.format();
        self.front.media().chunk(format.chunk_of(at)).wp == format.sector_of(at)
    }

    fn write_page(&mut self, id: PageId, at: Ppa) -> Result<Outcome, FtlError> {
        invariant!(
            self.is_next(at),
            "places: {at:?} is programmed once, when all before it in its chunk is"
        );
        let page = self.zones.pages.get(id);
        let place = (page.zone, page.stream, page.index);
        let ready = page.ready.max(self.begins());
        let (filled, lost, copies) = (page.filled(), page.lost, page.copies);
        self.oob.set_page(&self.zones.shape, place, filled, lost);
        let seq = self.zones.seq(place.0, place.2);
        let pad = self.zones.shape.page - filled;
        let data = &mut self.zones.pages.get_mut(id).data;
        let is_kept = data.iter().any(|data| !matches!(data, SectorData::Absent));
        data.resize(self.zones.shape.page as usize, SectorData::Absent);
        let contents: &[SectorData] = if is_kept { data } else { &[] };
        let cmd = WriteCmd {
            at,
            kind: Kind::Data,
            seq,
            seq_deltas: &[],
            aux: &self.oob.aux,
            keys: &self.oob.keys,
            data: contents,
        };
        let media = self.front.media_mut();
        let (user, gc) = if copies { (0, filled) } else { (filled, 0) };
        media.set_cause(Cause { user: user as u8, gc: gc as u8, pad: pad as u8 });
        let outcome = media.write(self.now, ready, cmd);
        data.truncate(filled as usize);
        let outcome = outcome?;
        if copies {
            self.counts.copy_ns += (outcome.at - media.begins()).0;
        }
        Ok(outcome)
    }

    /// A page is on media: it leaves the buffer with those that it kept there.
    pub(super) fn programmed(&mut self, id: PageId) -> Result<(), FtlError> {
        self.note_on_media(id, self.zones.pages.get(id).filled());
        let page = self.zones.pages.get_mut(id);
        invariant!(page.state == PageState::InFlight, "a page is programmed once");
        page.state = PageState::Done;
        let (zone, stream) = (page.zone, page.stream);
        self.zones.get_mut(zone).in_flight -= 1;
        while let Some(&first) = self.zones.stream(zone, stream).pages.front() {
            if self.zones.pages.get(first).state != PageState::Done {
                break;
            }
            invariant!(
                self.zones.pages.get(first).index == self.zones.stream(zone, stream).first,
                "prefix: pages leave the buffer in the order of their stream"
            );
            self.zones.stream_mut(zone, stream).pages.pop_front();
            self.zones.stream_mut(zone, stream).first += 1;
            self.release_page(first);
        }
        self.zones.clean(zone);
        Ok(())
    }

    /// A page is not needed any more.
    pub(super) fn release_page(&mut self, id: PageId) {
        let page = self.zones.pages.get(id);
        let (zone, filled, is_saved) = (page.zone, page.filled(), page.saving > 0);
        if is_saved {
            let unit = self.zones.unit_of_page(id);
            self.units[unit as usize].log.live.retain(|&live| live != id);
        }
        invariant!(
            self.zones.get(zone).used >= filled,
            "`used` is the sum of what the pages of zone {zone} hold"
        );
        self.zones.get_mut(zone).used -= filled;
        self.zones.pages.release(id);
    }

    /// Copies the first rows of a die's chunk to a spare one, which takes its place; whether there is one.
    #[cold]
    pub(super) fn relocate(&mut self, zone: u32, die: u32, rows: u32) -> Result<bool, FtlError> {
        let unit = self.zones.shape.unit(zone, die);
        let from = self.zones.chunks(zone)[die as usize];
        while let Some(to) = self.units[unit as usize].take(self.rules.kept) {
            let Some(at) = self.copy_rows(zone, die, (from, to), rows)? else {
                // A reset that does not wait for its erase would leave what was copied.
                self.zones.get_mut(zone).in_flight += 1;
                self.erase(unit, to, After::Retired(zone))?;
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
        let unit = self.zones.shape.unit(zone, die);
        let mut end = self.now;
        for row in 0..rows {
            let (source, target) =
                (self.zones.shape.at(unit, from, row), self.zones.shape.at(unit, to, row));
            let outcome = self.copy_page((zone, die, row), source, target)?;
            if outcome.status != Status::Ok {
                self.counts.media_errors.program_failures += 1;
                return Ok(None);
            }
            self.counts.sectors.gc += u64::from(self.zones.shape.page);
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
        let page = self.zones.shape.page;
        let (stream, index) = (self.zones.shape.stream_of(die), self.zones.shape.page_at(die, row));
        let cause = Cause { user: 0, gc: page as u8, pad: 0 };
        self.front.media_mut().set_cause(cause);
        let read = self.front.media_mut().read(self.now, self.now, source, page, &mut Internal)?;
        self.oob.set_page(&self.zones.shape, (zone, stream, index), page, 0);
        let media = self.front.media();
        let (mut aux, mut data) = (Vec::new(), Vec::new());
        for sector in 0..page {
            let at = source.plus(sector);
            let oob = media.oob(at);
            let lost = !media.readable(at) && key_lba(self.oob.keys[sector as usize]).is_some();
            aux.push(if lost { LOST } else { oob.aux });
            // As it is, but known to be wrong.
            data.push(media.data(at));
            self.counts.media_errors.uncorrectable += u64::from(lost);
        }
        let aux = if aux.iter().any(|&aux| aux != 0) { aux } else { Vec::new() };
        let cmd = WriteCmd {
            at: target,
            kind: Kind::Data,
            seq: self.zones.seq(zone, index),
            seq_deltas: &[],
            aux: &aux,
            keys: &self.oob.keys,
            data: &data,
        };
        let media = self.front.media_mut();
        media.set_cause(cause);
        Ok(media.write(self.now, read.at.max(self.now), cmd)?)
    }

    /// Erases a chunk.
    pub(super) fn erase(&mut self, unit: u32, chunk: u32, after: After) -> Result<(), FtlError> {
        let id = ChunkId { unit: UnitId(unit), chunk };
        let state = self.front.media().chunk(id).state;
        self.units[unit as usize].erasing += 1;
        if !matches!(state, ChunkState::Open | ChunkState::Closed) {
            return self.erased(unit, chunk, state == ChunkState::Free, after);
        }
        let outcome = self.front.media_mut().reset(self.now, self.now, id)?;
        self.counts.erases += 1;
        self.counts.erase_ns += (outcome.at - self.front.media().begins()).0;
        let ok = outcome.status == Status::Ok;
        self.counts.media_errors.erase_failures += u64::from(!ok);
        self.after(outcome.at, Event::Erased { unit, chunk, ok, after })
    }

    /// An erase completed.
    pub(super) fn erased(
        &mut self,
        unit: u32,
        chunk: u32,
        ok: bool,
        after: After,
    ) -> Result<(), FtlError> {
        let pool = &mut self.units[unit as usize];
        pool.erasing -= 1;
        if ok {
            invariant!(!pool.free.contains(&chunk), "chunk {chunk} of unit {unit} is erased once");
            pool.free.push_back(chunk);
        }
        match after {
            After::Free => Ok(()),
            After::Reset(zone) => {
                self.zones.get_mut(zone).resetting -= 1;
                Ok(())
            }
            After::Retired(zone) => {
                self.zones.get_mut(zone).in_flight -= 1;
                Ok(())
            }
            After::Log => {
                self.units[unit as usize].log.erasing = false;
                self.erase_old(unit)
            }
        }
    }
}
