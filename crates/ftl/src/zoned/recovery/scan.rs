//! What is on the chunks of the zones: whose they are, how far they were written, and the records of the save log.

use super::super::config::OFFSET_BITS;
use super::super::oob::{FINISHED, GENERATION, KIND, RESET};
use super::super::rules::Rules;
use super::super::shape::Shape;
use super::super::zone::NO_CHUNK;
use crate::common::oob::key_lba;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::Lba;
use nandscape_media::{ChunkId, ChunkState, Geometry, Internal, Kind, OpenChannel, Ppa, UnitId};
use nandscape_rt::Nanos;
use std::cmp::Reverse;
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
#[derive(Clone, Debug)]
pub(super) struct LogChunk {
    pub(super) unit: u32,
    pub(super) chunk: u32,
    /// The number of its first record.
    number: u64,
    /// Zones and generations whose first sectors it holds, those that it says were finished, and those that it says were
    /// reset.
    first_pages: Vec<(u32, u32)>,
    finished: Vec<(u32, u32)>,
    resets: Vec<(u32, u32)>,
    /// Something that counts is nowhere else.
    keep: bool,
}

impl LogChunk {
    /// Zones and generations that a mount finds by what it holds.
    fn found(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.first_pages.iter().chain(&self.finished).copied()
    }

    /// Whether a reset that it records hides something that another one holds.
    fn hides(&self, other: &Self) -> bool {
        let hidden = |(zone, generation): (u32, u32)| {
            self.resets.iter().any(|&(of, last)| of == zone && generation <= last)
        };
        other.number < self.number && other.found().any(hidden)
    }
}

/// Everything found.
#[derive(Default, Debug)]
pub(super) struct Scan {
    /// The longest chunk of each zone, generation and die.
    pub(super) chunks: BTreeMap<(u32, u32, u32), ZoneChunk>,
    /// Where most sectors of a page are saved, and how many.
    pub(super) saved: BTreeMap<SavedPage, (Vec<Ppa>, u32)>,
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

    /// Of the places at which each of these pages is saved one, so that few chunks of the save log are needed: they
    /// are marked.
    pub(super) fn choose(
        &mut self,
        pages: &BTreeSet<SavedPage>,
        geometry: &Geometry,
    ) -> BTreeMap<SavedPage, Ppa> {
        let mut chosen = BTreeMap::new();
        let mut left: BTreeSet<SavedPage> = pages.clone();
        while !left.is_empty() {
            let mut held = BTreeMap::<ChunkId, Vec<(SavedPage, Ppa)>>::new();
            for page in &left {
                for &at in self.saved.get(page).into_iter().flat_map(|(places, _)| places) {
                    held.entry(geometry.chunk_of(at)).or_default().push((*page, at));
                }
            }
            let most = held.into_iter().max_by_key(|(id, pages)| (pages.len(), Reverse(*id)));
            let Some((id, pages)) = most else { break };
            for (page, at) in pages {
                left.remove(&page);
                chosen.insert(page, at);
            }
            let is_it = |log: &&mut LogChunk| (log.unit, log.chunk) == (id.unit.0, id.chunk);
            self.logs.iter_mut().filter(is_it).for_each(|log| log.keep = true);
        }
        chosen
    }

    /// A chunk of the save log that says that this generation of a zone was finished is needed: media do not say it. One
    /// that is needed anyway does.
    pub(super) fn keep_finish(&mut self, zone: u32, generation: u32) {
        let says = |log: &LogChunk| log.finished.contains(&(zone, generation));
        if !self.logs.iter().any(|log| log.keep && says(log))
            && let Some(log) = self.logs.iter_mut().find(|log| says(log))
        {
            log.keep = true;
        }
    }

    /// Written chunks that no zone needs, and none of the save log.
    pub(super) fn take_garbage(&mut self) -> BTreeSet<(u32, u32)> {
        std::mem::take(&mut self.written)
    }

    /// The oldest chunk of the save log that nothing needs: what its resets hide is gone.
    pub(super) fn take_old_log(&mut self) -> Option<(u32, u32)> {
        self.logs.sort_by_key(|log| log.number);
        let is_free = |log: &LogChunk| !log.keep && !self.logs.iter().any(|other| log.hides(other));
        let index = self.logs.iter().position(is_free)?;
        let log = self.logs.remove(index);
        Some((log.unit, log.chunk))
    }

    /// Zones and generations that a mount finds by needed chunks of the save log.
    pub(super) fn kept_zones(&self) -> Vec<(u32, u32)> {
        self.logs.iter().filter(|log| log.keep).flat_map(LogChunk::found).collect()
    }

    /// What the save log held counts elsewhere from now on.
    pub(super) fn release_logs(&mut self) {
        self.logs.iter_mut().for_each(|log| log.keep = false);
    }

    /// Forgets the save log, whose chunks are never erased.
    pub(super) fn drop_logs(&mut self) {
        self.logs.clear();
    }
}

/// Looks at the chunks of the zones.
pub(super) struct Scanner<'a, M> {
    pub(super) media: &'a mut M,
    pub(super) rules: &'a Rules,
    pub(super) shape: &'a Shape,
    pub(super) now: Nanos,
}

impl<M: OpenChannel> Scanner<'_, M> {
    /// Looks at every chunk of the zones; what was found, and when that is done.
    pub(super) fn scan(&mut self) -> Result<(Scan, Nanos), FtlError> {
        let mut scan = Scan::default();
        let mut logs = Vec::new();
        let mut end = self.now;
        for unit in 0..self.rules.geometry.total_units() {
            for chunk in self.rules.sizes.random_chunks..self.rules.geometry.chunks {
                let id = ChunkId { unit: UnitId(unit), chunk };
                let info = self.media.chunk(id);
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
        Ok((scan, end))
    }

    /// Reads the first and the last page of a chunk; when they are there.
    fn read_ends(&mut self, unit: u32, chunk: u32, wp: u32) -> Result<Nanos, FtlError> {
        let (page, now) = (self.shape.page, self.now);
        if wp == 0 {
            return Ok(now);
        }
        let last = (wp - 1) / page;
        let mut end = now;
        for row in [0, last] {
            let sectors = page.min(wp - row * page);
            let at = self.shape.at(unit, chunk, row);
            let read = self.media.read(now, now, at, sectors, &mut Internal)?;
            end = end.max(read.at);
        }
        Ok(end)
    }

    /// What a chunk holds, by its first sector that can be read.
    fn kind_of(&self, unit: u32, chunk: u32, wp: u32) -> Kind {
        let first = self.shape.at(unit, chunk, 0);
        let media = &*self.media;
        let readable = (0..wp).map(|sector| first.plus(sector)).find(|&at| media.readable(at));
        readable.map_or(Kind::None, |at| media.oob(at).kind)
    }

    /// Pages of a chunk that are whole: all but one with which it ends, and which is torn.
    fn whole_rows(&self, unit: u32, chunk: u32, wp: u32) -> u32 {
        let page = self.shape.page;
        if self.rules.run.omits(OmittedRule::TornPages) {
            return wp.div_ceil(page);
        }
        let rows = wp / page;
        if !wp.is_multiple_of(page) || rows == 0 {
            return rows;
        }
        let end = self.shape.at(unit, chunk, rows - 1).plus(page - self.rules.geometry.ws_min);
        let is_torn =
            (0..self.rules.geometry.ws_min).all(|sector| !self.media.readable(end.plus(sector)));
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
        let media = &*self.media;
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
        if !is_here || generation > GENERATION {
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
        if lba.0 < self.rules.sizes.random_sectors || lba.0 >= self.rules.caps.sectors {
            return None;
        }
        let (zone, offset) = self.shape.zone_of(lba);
        let (stream, local) = self.shape.split(offset);
        (offset < self.shape.capacity).then_some((zone, stream, local))
    }

    /// Takes down the records of a chunk of the save log; when they were read.
    fn scan_log(
        &mut self,
        scan: &mut Scan,
        (unit, chunk): (u32, u32),
        wp: u32,
    ) -> Result<Nanos, FtlError> {
        let mut end = self.now;
        let (first_pages, finished, resets) = (Vec::new(), Vec::new(), Vec::new());
        let number = u64::MAX;
        let mut log = LogChunk { unit, chunk, number, first_pages, finished, resets, keep: false };
        for row in 0..wp / self.shape.page {
            let at = self.shape.at(unit, chunk, row);
            let (now, page) = (self.now, self.shape.page);
            end = end.max(self.media.read(now, now, at, page, &mut Internal)?.at);
            self.scan_record(scan, &mut log, at);
        }
        scan.logs.push(log);
        Ok(end)
    }

    fn scan_record(&self, scan: &mut Scan, log: &mut LogChunk, at: Ppa) {
        let media = &*self.media;
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
            log.resets.push((zone, generation));
            let last = scan.resets.entry(zone).or_default();
            *last = (*last).max(generation);
        } else if oob.aux & FINISHED != 0 {
            log.finished.push((zone, generation));
            scan.finished.insert((zone, generation));
        } else if known == at {
            let count = (0..self.shape.page)
                .take_while(|&sector| {
                    let at = at.plus(sector);
                    media.readable(at) && key_lba(media.oob(at).key).is_some()
                })
                .count() as u32;
            let page = (zone, generation, stream, local / self.shape.page);
            if (page.2, page.3) == (0, 0) {
                log.first_pages.push((zone, generation));
            }
            let kept = scan.saved.entry(page).or_insert((Vec::new(), count));
            if count > kept.1 {
                *kept = (Vec::new(), count);
            }
            if count == kept.1 {
                kept.0.push(at);
            }
        }
    }
}
