//! The invariants, checked the slow way: for tests and campaigns.

use super::store::Store;
use super::zone::{Mark, NO_CHUNK, PageState};
use crate::face::Ftl;
use nandscape_block::zone::ZoneId;
use nandscape_media::{ChunkId, ChunkState, OpenChannel, UnitId};
use std::collections::BTreeSet;

fn hold(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Zones that are looked at.
pub(super) struct Check<'a, M>(pub(super) &'a Store<M>);

impl<M: OpenChannel> Check<'_, M> {
    pub(super) fn all(&self) -> Result<(), String> {
        if let Some(pages) = self.0.front.pages() {
            pages.check_invariants()?;
        }
        self.check_chunks()?;
        let (mut pages, mut in_use) = (0, 0);
        for zone in 0..self.0.rules.sizes.zones {
            let (held, programmed) = self.check_zone(zone)?;
            pages += held;
            in_use += u64::from(programmed) * u64::from(self.0.zones.shape.page);
        }
        hold(pages == self.0.zones.pages.used(), || {
            format!("{} pages are in use, {pages} of zones", self.0.zones.pages.used())
        })?;
        hold(in_use == self.0.zones.in_use, || {
            format!("{} sectors in use, {in_use} by zones", self.0.zones.in_use)
        })
    }

    /// No chunk is in two places, and those in a pool are erased.
    fn check_chunks(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        let mut once = |unit: u32, chunk: u32| {
            hold(seen.insert((unit, chunk)), || format!("unit {unit} chunk {chunk} is used twice"))
        };
        for (number, unit) in (0..).zip(&self.0.units) {
            for &chunk in &unit.free {
                once(number, chunk)?;
                let info = self.0.front.media().chunk(ChunkId { unit: UnitId(number), chunk });
                hold(info.state == ChunkState::Free && info.wp == 0, || {
                    format!("unit {number} chunk {chunk} is in the pool, and {info:?}")
                })?;
            }
            for &chunk in unit.log.set.iter().chain(&unit.log.old) {
                once(number, chunk)?;
            }
        }
        for zone in 0..self.0.rules.sizes.zones {
            for (die, &chunk) in (0..).zip(self.0.zones.chunks(zone)) {
                if chunk != NO_CHUNK {
                    once(self.0.zones.shape.unit(zone, die), chunk)?;
                }
            }
        }
        Ok(())
    }

    /// A zone against its pages and chunks; pages that it has in the buffer, and that are on media.
    fn check_zone(&self, zone: u32) -> Result<(usize, u32), String> {
        let of = self.0.zones.get(zone);
        let (mut pages, mut used, mut programmed) = (0, 0, 0);
        for stream in 0..self.0.zones.shape.streams {
            let entry = self.0.zones.stream(zone, stream);
            let mut sectors = entry.first * self.0.zones.shape.page;
            programmed += entry.first;
            for (index, &id) in (entry.first..).zip(&entry.pages) {
                let page = self.0.zones.pages.get(id);
                let place = (page.zone, page.stream, page.index);
                hold(place == (zone, stream, index), || {
                    format!("zone {zone} stream {stream} page {index} is {place:?}")
                })?;
                programmed += u32::from(is_programmed(page.state));
                pages += 1;
                used += page.filled();
                let is_known = page.state != PageState::Done || page.filled() > 0;
                let whole = self.0.zones.shape.page_sectors(stream, index);
                sectors =
                    index * self.0.zones.shape.page + if is_known { page.filled() } else { whole };
            }
            let expected = self.0.zones.shape.locals_before(stream, of.admitted);
            let is_marked = of.mark != Mark::None || of.resets > 0 || entry.pages.is_empty();
            hold(is_marked || sectors == expected, || {
                format!("zone {zone} stream {stream} holds {sectors} sectors, not {expected}")
            })?;
        }
        hold(used == of.used, || format!("zone {zone} uses {}, its pages {used}", of.used))?;
        let info = self.0.table.info(ZoneId(zone)).map_err(|error| error.to_string())?;
        let is_idle = of.queue.is_empty();
        hold(!is_idle || of.failed || info.written() == of.admitted, || {
            format!("zone {zone} has {} sectors, and {info:?}", of.admitted)
        })?;
        let is_dirty = pages > 0 || of.mark == Mark::Due;
        hold(self.0.zones.dirty.contains(&zone) == is_dirty, || {
            format!("zone {zone} dirty: {is_dirty}")
        })?;
        self.check_rows(zone)?;
        Ok((pages, programmed))
    }

    /// Every chunk of a zone that can be written ends with its last page.
    fn check_rows(&self, zone: u32) -> Result<(), String> {
        let of = self.0.zones.get(zone);
        if of.generation == 0 || of.failed || of.resets > 0 {
            return Ok(());
        }
        for (die, &chunk) in (0..).zip(self.0.zones.chunks(zone)) {
            let stream = self.0.zones.stream(zone, self.0.zones.shape.stream_of(die));
            let is_here = |index: u32| {
                self.0.zones.shape.page_at(die, 0) % self.stream_dies()
                    == index % self.stream_dies()
            };
            let of_buffer = (stream.first..).zip(&stream.pages).filter(|(index, id)| {
                is_here(*index) && is_programmed(self.0.zones.pages.get(**id).state)
            });
            let rows = self.0.zones.shape.rows_of(die, stream.first) + of_buffer.count() as u32;
            let id = ChunkId { unit: UnitId(self.0.zones.shape.unit(zone, die)), chunk };
            let wp = self.0.front.media().chunk(id).wp;
            hold(wp == rows * self.0.zones.shape.page, || {
                format!("zone {zone} die {die} ends at {wp}, and has {rows} pages")
            })?;
        }
        Ok(())
    }

    const fn stream_dies(&self) -> u32 {
        self.0.zones.shape.dies / self.0.zones.shape.streams
    }
}

/// Whether a page takes part in what is on media.
const fn is_programmed(state: PageState) -> bool {
    matches!(state, PageState::InFlight | PageState::Done)
}
