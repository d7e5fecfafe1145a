//! Making a fresh device, and mounting what a power cut left:
//! 1. the first and the last page of every written chunk are read, and every record of the save log (`scan.rs`);
//! 2. of each zone the highest generation counts that was not reset and whose first sector is there. Its content is
//!    the longest prefix of whole units of the write granularity of which every sector is on media, or in the save log
//!    (`prefix.rs`);
//! 3. chunks that hold nothing of that are erased, those of the save log the oldest first;
//! 4. what the save log holds of pages that are partly filled goes into the buffer, and is saved again;
//! 5. a chunk that was written too far, torn, or closed by a failed program is copied to a spare one, so that its zone
//!    can be written on at its write pointer;
//! 6. pages that only the save log holds as a whole are programmed, and finished zones marked;
//! 7. the old chunks of the save log are erased, the oldest first;
//! 8. where they cannot be, so that a unit lacks chunks for what a power-safe buffer holds when power fails, zones that
//!    are not full become read-only.
//!
//! A step begins when everything of the one before it is on media. So a power cut during recovery leaves the same
//! prefixes, and the next one has the same work to do again.
//!
//! A page of which the last write unit cannot be read, and with which its chunk ends, counts as torn. A sector that
//! cannot be read anywhere else is one that media lost: it stays a part of its zone.

mod prefix;
mod scan;

use super::front::Front;
use super::oob::{LOST, SAVED_LOST};
use super::rules::Rules;
use super::store::{After, Store};
use super::zone::{Mark, NO_CHUNK, Page, PageState, Zone};
use super::{Config, ZonedCounts};
use crate::error::FtlError;
use crate::kind::{FtlRun, OmittedRule};
use nandscape_block::SectorData;
use nandscape_block::zone::{ZoneAction, ZoneId, ZoneState};
use nandscape_media::{ChunkId, ChunkState, LinkTiming, OpenChannel, Ppa, UnitId};
use nandscape_rt::Nanos;
use prefix::{Prefix, Prefixes, Source};
use scan::{Scan, Scanner};

impl<M: OpenChannel> Store<M> {
    /// Makes a fresh device on `media`, below a link with this timing, beginning at time zero.
    ///
    /// # Errors
    /// The choice that does not fit the geometry, too many bad chunks, or that power went off.
    pub(super) fn format(
        media: M,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
    ) -> Result<Self, FtlError> {
        let geometry = *media.geometry();
        let sizes = config.sizes(&geometry)?;
        let front = Front::format(media, &config, &sizes, (run, link))?;
        let now = front.now();
        let rules = Rules::new(geometry, config, (run, link), sizes);
        let mut store = Self::new(front, rules, now);
        for unit in 0..geometry.total_units() {
            for chunk in sizes.random_chunks..geometry.chunks {
                store.erase(unit, chunk, After::Free)?;
            }
        }
        store.settle_all()?;
        store.check_pools()?;
        store.counts = ZonedCounts::default();
        Ok(store)
    }

    /// Whether every unit has chunks for its zones, and the spare ones that promises need.
    fn check_pools(&self) -> Result<(), FtlError> {
        let needed = self.rules.config.spare_needed(&self.rules.geometry, &self.rules.sizes);
        let mut wanted = vec![needed; self.units.len()];
        for zone in 0..self.rules.sizes.zones {
            for die in 0..self.zones.shape.dies {
                wanted[self.zones.shape.unit(zone, die) as usize] += 1;
            }
        }
        let short = (0..).zip(&wanted).zip(&self.units);
        let mut short = short.filter(|((_, wanted), unit)| (unit.free.len() as u32) < **wanted);
        match short.next() {
            None => Ok(()),
            Some(((unit, wanted), pool)) => {
                let why = format!(
                    "unit {unit} has {} good chunks, and its zones and their promises need {wanted}",
                    pool.free.len()
                );
                Err(FtlError::Config { key: "ftl.zone.spare_chunks", why })
            }
        }
    }

    /// Mounts what is on `media`, below a link with this timing, beginning at `now`.
    ///
    /// # Errors
    /// The media comes back with the reason: power went off again, the choices do not fit, or the media holds
    /// something else.
    pub(super) fn recover(
        media: M,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        let geometry = *media.geometry();
        let sizes = match config.sizes(&geometry) {
            Ok(sizes) => sizes,
            Err(error) => return Err((media, error)),
        };
        let front = Front::recover(media, &config, &sizes, (run, link), now)?;
        let now = front.now().max(now);
        let rules = Rules::new(geometry, config, (run, link), sizes);
        let mut store = Self::new(front, rules, now);
        match store.mount() {
            Ok(()) => Ok(store),
            Err(error) => Err((store.front.power_off(), error)),
        }
    }

    fn mount(&mut self) -> Result<(), FtlError> {
        let Self { front, rules, zones, now, .. } = self;
        let shape = &zones.shape;
        let (mut scan, end) =
            Scanner { media: front.media_mut(), rules, shape, now: *now }.scan()?;
        *now = end;
        self.zones.next_generation = scan.generation_max + 1;
        self.next_record = scan.record_max + 1;
        let shape = &self.zones.shape;
        let write_sectors = match shape.streams {
            // Pages are whole, but for those that other firmware saved: it writes less to its zones.
            1 => 1,
            _ => self.rules.config.write_sectors(&self.rules.geometry),
        };
        let known = Prefixes { media: self.front.media(), shape, scan: &scan, write_sectors };
        let mut prefixes: Vec<_> =
            (0..self.rules.sizes.zones).filter_map(|zone| known.of(zone)).collect();
        self.erase_garbage(&mut scan, &mut prefixes)?;
        for prefix in &prefixes {
            self.load(prefix)?;
        }
        self.settle_all()?;
        for prefix in &prefixes {
            self.make_writable(prefix)?;
        }
        self.settle_all()?;
        for prefix in &prefixes {
            self.complete_pages(prefix)?;
        }
        self.settle_all()?;
        self.release_logs(&mut scan)?;
        self.erase_old_logs(&mut scan)?;
        self.fail_unsaved()?;
        self.counts = ZonedCounts::default();
        Ok(())
    }

    /// What a zone takes could not be saved when power fails where a unit lacks erased chunks for that: it becomes
    /// read-only. A zone that is full takes nothing, and its reset gives back chunks.
    fn fail_unsaved(&mut self) -> Result<(), FtlError> {
        for zone in 0..self.rules.sizes.zones {
            let is_short = |die| {
                let unit = &self.units[self.zones.shape.unit(zone, die) as usize];
                (unit.free.len() as u32) < self.rules.kept
            };
            let is_full = self.table.info(ZoneId(zone))?.state == ZoneState::Full;
            if !is_full && (0..self.zones.shape.dies).any(is_short) {
                self.fail_zone(zone)?;
            }
        }
        Ok(())
    }

    /// What the save log held counts elsewhere from now on. Where media took it nowhere, the log stays, and zones that
    /// it would bring back after a reset become read-only.
    fn release_logs(&mut self, scan: &mut Scan) -> Result<(), FtlError> {
        let is_lost = |page: &Page| page.state == PageState::Stuck && page.saving < page.filled();
        let is_unmarked = |zone: &Zone| matches!(zone.mark, Mark::Due | Mark::Issued);
        if !self.zones.pages.iter().any(is_lost) && !self.zones.all.iter().any(is_unmarked) {
            scan.release_logs();
            return Ok(());
        }
        for (zone, generation) in scan.kept_zones() {
            let entry = self.zones.get(zone);
            if entry.generation == generation && !entry.failed {
                self.fail_zone(zone)?;
            }
        }
        Ok(())
    }

    /// Waits until everything in flight is done.
    fn settle_all(&mut self) -> Result<(), FtlError> {
        while let Some(at) = self.events.next_at() {
            self.now = self.now.max(at);
            if let Some((_, event)) = self.events.pop_due(self.now, u64::MAX) {
                self.completed(event)?;
            }
        }
        Ok(())
    }

    /// Erases what no prefix needs, and fills the pools.
    fn erase_garbage(&mut self, scan: &mut Scan, prefixes: &mut [Prefix]) -> Result<(), FtlError> {
        for prefix in &*prefixes {
            prefix.chunks.iter().zip(0..).for_each(|(&chunk, die)| {
                scan.keep(self.zones.shape.unit(prefix.zone, die), chunk);
            });
        }
        let saved = prefixes.iter_mut().flat_map(Prefix::saved).map(|(page, _)| page).collect();
        let chosen = scan.choose(&saved, &self.rules.geometry);
        for (page, at) in prefixes.iter_mut().flat_map(Prefix::saved) {
            *at = chosen.get(&page).copied().unwrap_or(*at);
        }
        for prefix in prefixes.iter().filter(|prefix| prefix.lacks_mark()) {
            scan.keep_finish(prefix.zone, prefix.generation);
        }
        for (unit, chunk) in scan.take_garbage() {
            self.erase(unit, chunk, After::Free)?;
        }
        self.settle_all()?;
        if self.rules.run.omits(OmittedRule::StaleRecords) {
            scan.drop_logs();
        }
        self.erase_old_logs(scan)?;
        for (unit, chunk) in std::mem::take(&mut scan.free) {
            self.units[unit as usize].free.push_back(chunk);
        }
        let Self { units, front, .. } = self;
        for (number, unit) in (0..).map(UnitId).zip(units.iter_mut()) {
            let erases = |&chunk: &u32| front.media().chunk(ChunkId { unit: number, chunk }).erases;
            unit.free.make_contiguous().sort_by_key(|chunk| (erases(chunk), *chunk));
        }
        Ok(())
    }

    /// Erases chunks of the save log that nothing needs, one after the other.
    fn erase_old_logs(&mut self, scan: &mut Scan) -> Result<(), FtlError> {
        while let Some((unit, chunk)) = scan.take_old_log() {
            self.erase(unit, chunk, After::Free)?;
            self.settle_all()?;
        }
        Ok(())
    }

    /// Takes a zone over as it is on media; what it holds elsewhere goes to the buffer, and is saved there.
    fn load(&mut self, prefix: &Prefix) -> Result<(), FtlError> {
        let (zone, id) = (prefix.zone, ZoneId(prefix.zone));
        self.zones.chunks_mut(zone).copy_from_slice(&prefix.chunks);
        let entry = self.zones.get_mut(zone);
        (entry.generation, entry.admitted) = (prefix.generation, prefix.written);
        if prefix.finished || prefix.finished_by_record {
            self.table.act(id, ZoneAction::Finish)?;
        }
        self.table.power_cut(id, self.zones.shape.start_of(zone).plus(prefix.written))?;
        for (stream, of) in (0..).zip(&prefix.streams) {
            self.zones.stream_mut(zone, stream).first = of.on_media;
            self.zones.in_use += u64::from(of.on_media) * u64::from(self.zones.shape.page);
            for (index, source) in (of.on_media..).zip(&of.pages) {
                self.load_page((zone, stream, index), source)?;
            }
        }
        if prefix.finished {
            self.zones.get_mut(zone).mark = Mark::Durable;
        } else if prefix.lacks_mark() {
            self.zones.get_mut(zone).mark = Mark::Due;
            self.zones.dirty.insert(zone);
        }
        Ok(())
    }

    fn load_page(
        &mut self,
        (zone, stream, index): (u32, u32, u32),
        source: &Source,
    ) -> Result<(), FtlError> {
        let id = self.zones.new_page(zone, stream, index);
        let (at, sectors) = match *source {
            Source::Media => {
                self.zones.pages.get_mut(id).state = PageState::Done;
                self.zones.in_use += u64::from(self.zones.shape.page);
                return Ok(());
            }
            Source::Saved(at, sectors) | Source::Part(at, sectors) => (at, sectors),
        };
        let content = |sector| self.content(at.plus(sector));
        let data: Vec<SectorData> = (0..sectors).map(content).collect();
        let mark = if matches!(source, Source::Saved(..)) { SAVED_LOST } else { LOST };
        let is_lost = |sector: &u32| self.front.media().oob(at.plus(*sector)).aux & mark != 0;
        let lost = (0..sectors).filter(is_lost).fold(0, |lost, sector| lost | 1 << sector);
        let page = self.zones.pages.get_mut(id);
        page.data.extend(data);
        page.lost = lost;
        self.zones.pages.get_mut(id).ready = self.now;
        self.zones.get_mut(zone).used += sectors;
        self.zones.dirty.insert(zone);
        if sectors == self.zones.shape.page_sectors(stream, index) {
            return Ok(());
        }
        match self.save_page(id)? {
            true => Ok(()),
            false => {
                let why = "no chunk is left for the save log".into();
                Err(FtlError::Config { key: "ftl.zone.spare_chunks", why })
            }
        }
    }

    /// Content of a sector on media.
    fn content(&self, at: Ppa) -> SectorData {
        match self.rules.run.keep_content {
            true => self.front.media().data(at),
            false => SectorData::Absent,
        }
    }

    /// Has every chunk of a zone end where the zone is written next.
    fn make_writable(&mut self, prefix: &Prefix) -> Result<(), FtlError> {
        let zone = prefix.zone;
        let is_full = prefix.finished || prefix.written == self.zones.shape.capacity;
        if is_full && !prefix.has_saved_pages() {
            return Ok(());
        }
        for die in 0..self.zones.shape.dies {
            let unit = self.zones.shape.unit(zone, die);
            let chunk = self.zones.chunks(zone)[die as usize];
            if chunk == NO_CHUNK {
                let free = self.units[unit as usize].take(self.rules.kept);
                match free {
                    Some(chunk) => self.zones.chunks_mut(zone)[die as usize] = chunk,
                    None => self.fail_zone(zone)?,
                }
                continue;
            }
            let rows = prefix.rows[die as usize];
            let info = self.front.media().chunk(ChunkId { unit: UnitId(unit), chunk });
            let is_full = rows == self.zones.shape.rows;
            let takes = matches!(info.state, ChunkState::Free | ChunkState::Open) || is_full;
            if (!takes || info.wp != rows * self.zones.shape.page)
                && !self.relocate(zone, die, rows)?
            {
                self.fail_zone(zone)?;
            }
        }
        Ok(())
    }

    /// Programs pages that only the save log held, or saves them again where media take no more of the zone; and marks a
    /// zone of which the log said that it was finished.
    fn complete_pages(&mut self, prefix: &Prefix) -> Result<(), FtlError> {
        let zone = prefix.zone;
        for stream in 0..self.zones.shape.streams {
            let pages: Vec<_> = self.zones.stream(zone, stream).pages.iter().copied().collect();
            for id in pages {
                let page = self.zones.pages.get(id);
                let is_full = page.filled() == self.zones.shape.page_sectors(stream, page.index);
                if page.state != PageState::Filling || !is_full {
                    continue;
                }
                self.program(id, false)?;
                if self.zones.pages.get(id).state == PageState::Stuck {
                    self.save_page(id)?;
                }
            }
        }
        if self.zones.get(zone).mark == Mark::Due {
            self.mark(zone)?;
        }
        Ok(())
    }
}
