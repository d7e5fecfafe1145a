//! What a zone holds after a power cut.

use super::super::oob::UNWRITTEN;
use super::super::shape::Shape;
use super::super::zone::NO_CHUNK;
use super::scan::{SavedPage, Scan};
use nandscape_media::{OpenChannel, Ppa};

/// Where a page of a prefix is that does not follow its predecessors on media.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// At its place.
    Media,
    /// So many sectors in the save log.
    Saved(Ppa, u32),
    /// So many sectors at its place, where more of it was written than counts.
    Part(Ppa, u32),
}

/// What a stream holds.
#[derive(Clone, Default, Debug)]
pub(super) struct StreamPrefix {
    /// Pages on media before the first that is not.
    pub(super) on_media: u32,
    /// Those after them.
    pub(super) pages: Vec<Source>,
}

/// What a zone holds.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    pub(super) zone: u32,
    pub(super) generation: u32,
    /// Sectors before the write pointer.
    pub(super) written: u64,
    /// Media say that it was finished.
    pub(super) finished: bool,
    /// The save log says so.
    pub(super) finished_by_record: bool,
    /// Its chunks, by die.
    pub(super) chunks: Vec<u32>,
    /// Pages of each that count.
    pub(super) rows: Vec<u32>,
    pub(super) streams: Vec<StreamPrefix>,
}

impl Prefix {
    /// Its pages in the save log, and where each is.
    pub(super) fn saved(&mut self) -> impl Iterator<Item = (SavedPage, &mut Ppa)> + '_ {
        let (zone, generation) = (self.zone, self.generation);
        (0..).zip(&mut self.streams).flat_map(move |(stream, of)| {
            let pages = (of.on_media..).zip(&mut of.pages);
            pages.filter_map(move |(index, page)| match page {
                Source::Saved(at, _) => Some(((zone, generation, stream, index), at)),
                Source::Media | Source::Part(..) => None,
            })
        })
    }

    /// The save log says that the zone was finished, and media do not.
    pub(super) const fn lacks_mark(&self) -> bool {
        self.finished_by_record && !self.finished
    }

    pub(super) fn has_saved_pages(&self) -> bool {
        let mut pages = self.streams.iter().flat_map(|stream| &stream.pages);
        pages.any(|page| matches!(page, Source::Saved(..)))
    }
}

/// What is known of the pages of a stream.
struct Pages {
    /// Where they are, up to the first that is not whole.
    sources: Vec<Source>,
    /// Sectors in them.
    sectors: u32,
}

/// What the zones hold, by media and by what a scan of them found.
pub(super) struct Prefixes<'a, M> {
    pub(super) media: &'a M,
    pub(super) shape: &'a Shape,
    pub(super) scan: &'a Scan,
    /// Sectors of which all count or none. Without a buffer a write goes to a page of each stream, and power may fail between
    /// their programs.
    pub(super) write_sectors: u32,
}

impl<M: OpenChannel> Prefixes<'_, M> {
    /// What a zone holds, if anything.
    pub(super) fn of(&self, zone: u32) -> Option<Prefix> {
        let generation = self.generation_of(zone)?;
        let found: Vec<_> = (0..self.shape.dies)
            .map(|die| self.scan.chunks.get(&(zone, generation, die)))
            .collect();
        let chunks: Vec<u32> = found.iter().map(|of| of.map_or(NO_CHUNK, |of| of.chunk)).collect();
        let rows: Vec<u32> = found.iter().map(|of| of.map_or(0, |of| of.rows)).collect();
        let streams: Vec<Pages> = (0..self.shape.streams)
            .map(|stream| self.pages_of((zone, generation, stream), (&chunks, &rows)))
            .collect();
        let ends = (0..).zip(&streams).map(|(stream, of)| self.shape.offset(stream, of.sectors));
        let written = ends.min().unwrap_or(0).min(self.shape.capacity);
        let written = written - written % u64::from(self.write_sectors);
        let finished = self.is_finished((zone, written), (&chunks, &rows));
        let finished_by_record = self.scan.finished.contains(&(zone, generation));
        if written == 0 && !finished && !finished_by_record {
            return None;
        }
        let streams: Vec<_> = (0..)
            .zip(streams)
            .map(|(stream, of)| self.cut((zone, stream), of, (written, finished), &chunks))
            .collect();
        let rows = (0..self.shape.dies).map(|die| {
            let of = &streams[self.shape.stream_of(die) as usize];
            let kept = of.on_media + of.pages.len() as u32;
            let is_on_media = |row: &u32| {
                let index = self.shape.page_at(die, *row);
                index < of.on_media
                    || of.pages.get((index - of.on_media) as usize) == Some(&Source::Media)
            };
            (0..self.shape.rows_of(die, kept)).take_while(is_on_media).count() as u32
        });
        let rows = rows.collect();
        Some(Prefix {
            zone,
            generation,
            written,
            finished,
            finished_by_record,
            chunks,
            rows,
            streams,
        })
    }

    /// The highest generation that was not reset, and whose first sector is there; of a zone that was finished empty,
    /// whose mark is.
    fn generation_of(&self, zone: u32) -> Option<u32> {
        let reset = self.scan.resets.get(&zone).copied().unwrap_or(0);
        let on_media = self.scan.chunks.range((zone, reset + 1, 0)..(zone + 1, 0, 0));
        let on_media = on_media.filter(|((_, _, die), of)| *die == 0 && of.rows > 0);
        let on_media = on_media.map(|((_, generation, _), _)| *generation).next_back();
        let saved = self.scan.saved.range((zone, reset + 1, 0, 0)..(zone + 1, 0, 0, 0));
        let saved = saved.filter(|((_, _, stream, index), (_, sectors))| {
            (*stream, *index) == (0, 0) && *sectors > 0
        });
        let saved = saved.map(|((_, generation, ..), _)| *generation).next_back();
        let finished = self.scan.finished.range((zone, reset + 1)..(zone + 1, 0));
        let finished = finished.map(|(_, generation)| *generation).next_back();
        on_media.max(saved).max(finished)
    }

    /// Sectors of a page on media that were written: not all, where its zone was finished in it.
    fn written_of(&self, at: Ppa, sectors: u32) -> u32 {
        let is_unwritten = |sector: &u32| {
            let at = at.plus(*sector);
            self.media.readable(at) && self.media.oob(at).aux == UNWRITTEN
        };
        (0..sectors).find(is_unwritten).unwrap_or(sectors)
    }

    /// The pages of a stream that follow each other, on media or in the save log.
    fn pages_of(
        &self,
        (zone, generation, stream): (u32, u32, u32),
        (chunks, rows): (&[u32], &[u32]),
    ) -> Pages {
        let mut pages = Pages { sources: Vec::new(), sectors: 0 };
        loop {
            let index = pages.sources.len() as u32;
            let whole = self.shape.page_sectors(stream, index);
            let (die, row) = self.shape.die_of(stream, index);
            let (source, sectors) = if whole > 0 && row < rows[die as usize] {
                let at = self.shape.at(self.shape.unit(zone, die), chunks[die as usize], row);
                let is_last = row + 1 == rows[die as usize];
                (Source::Media, if is_last { self.written_of(at, whole) } else { whole })
            } else {
                let saved = self.scan.saved.get(&(zone, generation, stream, index));
                match saved.and_then(|(places, sectors)| Some((*places.first()?, *sectors))) {
                    Some((at, sectors)) if sectors > 0 => {
                        (Source::Saved(at, sectors), sectors.min(whole))
                    }
                    _ => return pages,
                }
            };
            if sectors > 0 || source == Source::Media {
                pages.sources.push(source);
            }
            pages.sectors += sectors;
            if sectors < whole || whole == 0 {
                return pages;
            }
        }
    }

    /// Whether media say that a zone was finished at this sector.
    fn is_finished(&self, (zone, written): (u32, u64), (chunks, rows): (&[u32], &[u32])) -> bool {
        if written >= self.shape.capacity {
            return false;
        }
        let (stream, local) = self.shape.split(written);
        let (die, row) = self.shape.die_of(stream, local / self.shape.page);
        if row >= rows[die as usize] {
            return false;
        }
        let at = self.shape.at(self.shape.unit(zone, die), chunks[die as usize], row);
        let at = at.plus(local % self.shape.page);
        self.media.readable(at) && self.media.oob(at).aux == UNWRITTEN
    }

    /// What of a stream lies before the write pointer.
    fn cut(
        &self,
        (zone, stream): (u32, u32),
        of: Pages,
        (written, finished): (u64, bool),
        chunks: &[u32],
    ) -> StreamPrefix {
        let sectors = self.shape.locals_before(stream, written);
        let mut pages = Vec::new();
        for (index, source) in (0..).zip(of.sources) {
            let first = index * self.shape.page;
            let whole = self.shape.page_sectors(stream, index);
            let kept = sectors.saturating_sub(first).min(whole);
            if finished && source == Source::Media {
                pages.push(source);
            } else if kept == 0 {
                break;
            } else {
                pages.push(match source {
                    Source::Saved(at, _) => Source::Saved(at, kept),
                    Source::Media if kept < whole => {
                        let (die, row) = self.shape.die_of(stream, index);
                        let unit = self.shape.unit(zone, die);
                        Source::Part(self.shape.at(unit, chunks[die as usize], row), kept)
                    }
                    source => source,
                });
            }
        }
        let on_media = pages.iter().take_while(|page| **page == Source::Media).count();
        StreamPrefix { on_media: on_media as u32, pages: pages.split_off(on_media) }
    }
}
