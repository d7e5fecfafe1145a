//! What zones have in the buffer alone, sector by sector, kept a second time for invariants: what programs and records of
//! the save log have put on media is not among it, whatever the state of pages says.

use super::store::Store;
use super::zone::PageId;
use nandscape_media::OpenChannel;
use std::collections::BTreeSet;

impl<M: OpenChannel> Store<M> {
    /// A sector of a zone is in the buffer.
    #[inline(always)]
    pub(super) fn note_admitted(&mut self, zone: u32, offset: u64) {
        self.volatile.note(|zones| _ = zones.entry(zone).or_default().insert(offset));
    }

    /// The first sectors of a page are on media.
    #[inline(always)]
    pub(super) fn note_on_media(&mut self, id: PageId, sectors: u32) {
        let (page, shape) = (self.zones.pages.get(id), &self.zones.shape);
        let first = page.index * shape.page;
        self.volatile.note(|zones| {
            let of = zones.entry(page.zone).or_default();
            for local in first..first + sectors {
                of.remove(&shape.offset(page.stream, local));
            }
        });
    }

    /// A zone holds nothing any more.
    #[inline(always)]
    pub(super) fn note_emptied(&mut self, zone: u32) {
        self.volatile.note(|zones| _ = zones.remove(&zone));
    }

    /// Whether everything of a zone before this sector is durable.
    pub(super) fn is_known_durable(&self, zone: u32, end: u64) -> bool {
        self.rules.run.omits_any()
            || self.rules.config.keeps_buffer()
            || self.volatile.agrees(|zones| {
                let first = zones.get(&zone).and_then(BTreeSet::first);
                first.is_none_or(|&first| first >= end)
            })
    }

    /// Whether all zones are durable, but for those that the media failed, and for these.
    pub(super) fn are_known_durable(&self, but: impl Fn(u32) -> bool) -> bool {
        self.rules.run.omits_any()
            || self.rules.config.keeps_buffer()
            || self.volatile.agrees(|zones| {
                let mut dirty = zones.iter().filter(|(_, sectors)| !sectors.is_empty());
                dirty.all(|(&zone, _)| self.zones.get(zone).failed || but(zone))
            })
    }

    /// Whether all that a page holds is on media.
    pub(super) fn is_known_on_media(&self, id: PageId) -> bool {
        let (page, shape) = (self.zones.pages.get(id), &self.zones.shape);
        let first = page.index * shape.page;
        self.rules.run.omits_any()
            || self.volatile.agrees(|zones| {
                let of = zones.get(&page.zone);
                (first..first + page.filled()).all(|local| {
                    of.is_none_or(|of| !of.contains(&shape.offset(page.stream, local)))
                })
            })
    }
}
