//! What is on the chunks of the zones: whose they are, how far they were written, and the records of the save log.

use super::super::ZonedFtl;
use super::super::config::OFFSET_BITS;
use super::super::savelog::{FINISHED, GENERATION, KIND, RESET};
use super::super::zone::NO_CHUNK;
use crate::common::oob::key_lba;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::Lba;
use nandscape_media::{ChunkId, ChunkState, Internal, Kind, OpenChannel, Ppa, UnitId};
use std::collections::{BTreeMap, BTreeSet};

/// A chunk of a zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZoneChunk {
    pub(super) chunk: u32,
    /// Pages that are whole.
    pub(super) rows: u32,
}

/// A page in the save log: zone, generation, stream and number.
pub(super) type SavedPage = (u32, u32, u32, u32);

/// A chunk of the save log.
#[derive(Clone, Copy, Debug)]
struct LogChunk {
    unit: u32,
    chunk: u32,
    /// The number of its first record.
    number: u64,
    has_resets: bool,
    keep: bool,
}

/// Everything found.
#[derive(Default, Debug)]
pub(super) struct Scan {
    /// The longest chunk of each zone, generation and die.
    pub(super) chunks: BTreeMap<(u32, u32, u32), ZoneChunk>,
    /// Where most sectors of a page are saved, and how many; the oldest such place.
    pub(super) saved: BTreeMap<SavedPage, (Ppa, u32)>,
    /// The last generation that was reset, by zone.
    pub(super) resets: BTreeMap<u32, u32>,
    /// Zones that were finished, with their generation.
    pub(super) finished: BTreeSet<(u32, u32)>,
    pub(super) generation_max: u32,
    pub(super) record_max: u64,
    /// Erased chunks.
    pub(super) free: Vec<(u32, u32)>,
    /// Written chunks that are none of the save log's.
    written: BTreeSet<(u32, u32)>,
    logs: Vec<LogChunk>,
}

impl Scan {
    /// A zone needs this chunk.
    pub(super) fn keep(&mut self, unit: u32, chunk: u32) {
        if chunk != NO_CHUNK {
            self.written.remove(&(unit, chunk));
        }
    }

    /// A zone needs a record on this chunk.
    pub(super) fn keep_log(&mut self, unit: u32, chunk: u32) {
        for log in self.logs.iter_mut().filter(|log| (log.unit, log.chunk) == (unit, chunk)) {
            log.keep = true;
        }
    }

    /// Chunks that nothing needs. Of the save log those without records of resets; all others follow when what they
    /// hide is gone.
    pub(super) fn garbage(&mut self, keeps_logs: bool) -> Vec<(u32, u32)> {
        let mut garbage: Vec<_> = std::mem::take(&mut self.written).into_iter().collect();
        let needed = |log: &LogChunk| log.keep || log.has_resets || keeps_logs;
        garbage.extend(self.logs.iter().filter(|l| !needed(l)).map(|log| (log.unit, log.chunk)));
        self.logs.retain(needed);
        if keeps_logs {
            self.logs.clear();
        }
        garbage
    }

    /// The chunks of the save log that are left, the oldest of each unit first.
    pub(super) fn old_logs(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut logs = self.logs.clone();
        logs.sort_by_key(|log| log.number);
        let mut by_unit = BTreeMap::<u32, Vec<u32>>::new();
        for log in logs {
            by_unit.entry(log.unit).or_default().push(log.chunk);
        }
        by_unit
    }
}

impl<M: OpenChannel> ZonedFtl<M> {
    /// Looks at every chunk of the zones; the device's time is when that is done.
    pub(super) fn scan(&mut self) -> Result<Scan, FtlError> {
        let mut scan = Scan::default();
        let mut logs = Vec::new();
        let mut end = self.now;
        for unit in 0..self.geometry.total_units() {
            for chunk in self.sizes.random_chunks..self.geometry.chunks {
                let id = ChunkId { unit: UnitId(unit), chunk };
                let info = self.front.media().chunk(id);
                if info.state == ChunkState::Free {
                    scan.free.push((unit, chunk));
                }
                if !matches!(info.state, ChunkState::Open | ChunkState::Closed) {
                    continue;
                }
                end = end.max(self.read_ends(unit, chunk, info.wp)?);
                match self.kind_of(unit, chunk, info.wp) {
                    KIND => logs.push((unit, chunk, info.wp)),
                    Kind::Data => {
                        scan.written.insert((unit, chunk));
                        self.scan_chunk(&mut scan, (unit, chunk), info.wp)?;
                    }
                    _ => {
                        scan.written.insert((unit, chunk));
                    }
                }
            }
        }
        for &(unit, chunk, wp) in &logs {
            end = end.max(self.scan_log(&mut scan, (unit, chunk), wp)?);
        }
        self.now = end;
        Ok(scan)
    }

    /// Reads the first and the last page of a chunk; when they are there.
    fn read_ends(
        &mut self,
        unit: u32,
        chunk: u32,
        wp: u32,
    ) -> Result<nandscape_rt::Nanos, FtlError> {
        let (page, now) = (self.shape.page, self.now);
        if wp == 0 {
            return Ok(now);
        }
        let last = (wp - 1) / page;
        let mut end = now;
        for row in [0, last] {
            let sectors = page.min(wp - row * page);
            let at = self.shape.at(unit, chunk, row);
            let read = self.front.media_mut().read(now, now, at, sectors, &mut Internal)?;
            end = end.max(read.at);
        }
        Ok(end)
    }

    /// What a chunk holds, by its first sector that can be read.
    fn kind_of(&self, unit: u32, chunk: u32, wp: u32) -> Kind {
        let first = self.shape.at(unit, chunk, 0);
        let media = self.front.media();
        let readable = (0..wp).map(|sector| first.plus(sector)).find(|&at| media.readable(at));
        readable.map_or(Kind::None, |at| media.oob(at).kind)
    }

    /// Pages of a chunk that are whole: all but one with which it ends, and which is torn.
    fn whole_rows(&self, unit: u32, chunk: u32, wp: u32) -> u32 {
        let page = self.shape.page;
        if self.run.omits(OmittedRule::TornPages) {
            return wp.div_ceil(page);
        }
        let rows = wp / page;
        if !wp.is_multiple_of(page) || rows == 0 {
            return rows;
        }
        let end = self.shape.at(unit, chunk, rows - 1).plus(page - self.geometry.ws_min);
        let is_torn =
            (0..self.geometry.ws_min).all(|sector| !self.front.media().readable(end.plus(sector)));
        rows - u32::from(is_torn)
    }

    /// Takes down whose a chunk of a zone is.
    fn scan_chunk(
        &self,
        scan: &mut Scan,
        (unit, chunk): (u32, u32),
        wp: u32,
    ) -> Result<(), FtlError> {
        let first = self.shape.at(unit, chunk, 0);
        let media = self.front.media();
        let known =
            (0..wp).filter(|&sector| media.readable(first.plus(sector))).find_map(|sector| {
                let oob = media.oob(first.plus(sector));
                Some((sector, key_lba(oob.key)?, oob.seq))
            });
        let Some((sector, lba, seq)) = known else { return Ok(()) };
        let foreign = FtlError::Corrupt { kind: "zone (formatted with other sizes)", line: chunk };
        let (zone, stream, local) = self.owner(lba).ok_or(foreign.clone())?;
        let generation = u32::try_from(seq >> OFFSET_BITS).unwrap_or(u32::MAX);
        let (die, row) = self.shape.die_of(stream, local / self.shape.page);
        let is_here = self.shape.unit(zone, die) == unit
            && row * self.shape.page + local % self.shape.page == sector
            && seq & ((1 << OFFSET_BITS) - 1) == u64::from(local);
        if !is_here {
            return Err(foreign);
        }
        scan.generation_max = scan.generation_max.max(generation);
        let found = ZoneChunk { chunk, rows: self.whole_rows(unit, chunk, wp) };
        let kept = scan.chunks.entry((zone, generation, die)).or_insert(found);
        if found.rows > kept.rows {
            *kept = found;
        }
        Ok(())
    }

    /// The zone, stream and place of an address.
    fn owner(&self, lba: Lba) -> Option<(u32, u32, u32)> {
        if lba.0 < self.sizes.random_sectors || lba.0 >= self.caps.sectors {
            return None;
        }
        let (zone, offset) = self.zone_of(lba);
        let (stream, local) = self.shape.split(offset);
        (offset < self.shape.capacity).then_some((zone, stream, local))
    }

    /// Takes down the records of a chunk of the save log; when they were read.
    fn scan_log(
        &mut self,
        scan: &mut Scan,
        (unit, chunk): (u32, u32),
        wp: u32,
    ) -> Result<nandscape_rt::Nanos, FtlError> {
        let mut end = self.now;
        let mut log = LogChunk { unit, chunk, number: u64::MAX, has_resets: false, keep: false };
        for row in 0..wp / self.shape.page {
            let at = self.shape.at(unit, chunk, row);
            let (now, page) = (self.now, self.shape.page);
            end = end.max(self.front.media_mut().read(now, now, at, page, &mut Internal)?.at);
            self.scan_record(scan, &mut log, at);
        }
        scan.logs.push(log);
        Ok(end)
    }

    fn scan_record(&self, scan: &mut Scan, log: &mut LogChunk, at: Ppa) {
        let media = self.front.media();
        let mut sectors = (0..self.shape.page).map(|sector| at.plus(sector));
        let Some(known) = sectors.find(|&at| media.readable(at)) else { return };
        let oob = media.oob(known);
        let (number, generation) = (oob.seq >> 6, oob.aux & GENERATION);
        log.number = log.number.min(number);
        scan.record_max = scan.record_max.max(number);
        scan.generation_max = scan.generation_max.max(generation);
        let owner = key_lba(oob.key).and_then(|lba| self.owner(lba));
        let Some((zone, stream, local)) = owner else { return };
        if oob.aux & RESET != 0 {
            log.has_resets = true;
            let last = scan.resets.entry(zone).or_default();
            *last = (*last).max(generation);
        } else if oob.aux & FINISHED != 0 {
            scan.finished.insert((zone, generation));
        } else if known == at {
            let count = (0..self.shape.page)
                .take_while(|&sector| {
                    let at = at.plus(sector);
                    media.readable(at) && key_lba(media.oob(at).key).is_some()
                })
                .count() as u32;
            let page = (zone, generation, stream, local / self.shape.page);
            let kept = scan.saved.entry(page).or_insert((at, count));
            let older = |kept: Ppa| media.oob(kept).seq >> 6;
            if count > kept.1 || (count == kept.1 && number < older(kept.0)) {
                *kept = (at, count);
            }
        }
    }
}
