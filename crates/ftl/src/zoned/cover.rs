//! What of a zone is durable, and sending the rest on its way to media.
//!
//! Everything before an end of a zone is durable when full pages are at their places, and of a page that is partly
//! filled the sectors are in the save log. A buffer that survives power cuts keeps all promises of its zones at once.

use super::store::Store;
use super::zone::{Mark, PageState};
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_media::OpenChannel;
use nandscape_rt::invariant;

/// What of a zone must be durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) zone: u32,
    generation: u32,
    /// Everything before this sector.
    pub(super) end: u64,
    /// Also that it was finished, the time with this number.
    pub(super) mark: Option<u32>,
}

impl<M: OpenChannel> Store<M> {
    /// Everything of a zone before this sector is durable.
    pub(super) fn durable(&self, zone: u32) -> u64 {
        let mut durable = u64::MAX;
        for stream in 0..self.zones.shape.streams {
            let pages = &self.zones.stream(zone, stream).pages;
            let first = match self.rules.run.omits(OmittedRule::ProgramOrder) {
                true => pages.back(),
                false => pages.front(),
            };
            let Some(page) = first.map(|&id| self.zones.pages.get(id)) else { continue };
            let omitted =
                page.state == PageState::Filling && self.rules.run.omits(OmittedRule::ZoneSave);
            if !omitted && page.state != PageState::Done {
                let local = page.index * self.zones.shape.page + page.saved;
                durable = durable.min(self.zones.shape.offset(stream, local));
            }
        }
        durable
    }

    /// Whether an entry waits for nothing any more.
    pub(super) fn is_covered(&self, entry: &Entry) -> bool {
        let zone = self.zones.get(entry.zone);
        let waits = matches!(zone.mark, Mark::Due | Mark::Issued);
        if entry.mark.is_some_and(|number| number == zone.finishes && waits) {
            return false;
        }
        let covered = zone.generation != entry.generation || self.durable(entry.zone) >= entry.end;
        invariant!(
            !covered || self.is_known_covered(entry),
            "prefix: what an entry covers is on media: {entry:?}"
        );
        covered
    }

    /// Whether all that an entry covers is on media by what came there, whatever pages say of themselves.
    fn is_known_covered(&self, entry: &Entry) -> bool {
        let zone = self.zones.get(entry.zone);
        let is_marked = entry.mark != Some(zone.finishes) || {
            let mut streams = 0..self.zones.shape.streams;
            streams.all(|stream| self.zones.stream(entry.zone, stream).pages.is_empty())
        };
        zone.generation != entry.generation
            || (is_marked && self.is_known_durable(entry.zone, entry.end))
    }

    /// Sends what a zone has in its buffer on its way to media; what is to be waited for.
    pub(super) fn cover_zone(&mut self, zone: u32) -> Result<Entry, FtlError> {
        self.push_out(zone, false)?;
        let of = self.zones.get(zone);
        Ok(Entry { zone, generation: of.generation, end: of.admitted, mark: None })
    }

    /// The same of all zones; what of it is not durable.
    pub(super) fn cover_all(&mut self) -> Result<Vec<Entry>, FtlError> {
        if self.rules.config.keeps_buffer() {
            return Ok(Vec::new());
        }
        let mut entries = Vec::new();
        let mut next = self.zones.dirty.first().copied();
        while let Some(zone) = next {
            self.push_out(zone, true)?;
            let of = self.zones.get(zone);
            let mark = matches!(of.mark, Mark::Due | Mark::Issued).then_some(of.finishes);
            let entry = Entry { zone, generation: of.generation, end: of.admitted, mark };
            if !self.is_covered(&entry) {
                entries.push(entry);
            }
            next = self.zones.dirty.range(zone + 1..).next().copied();
        }
        invariant!(
            self.are_known_durable(|zone| entries.iter().any(|entry| entry.zone == zone)),
            "prefix: a flush covers every zone that has anything in the buffer"
        );
        Ok(entries)
    }

    /// Has the save log take what it has not of a zone's pages that are partly filled; and a finished zone be marked.
    pub(super) fn push_out(&mut self, zone: u32, mark: bool) -> Result<(), FtlError> {
        if self.zones.get(zone).failed || self.rules.config.keeps_buffer() {
            return Ok(());
        }
        if mark && self.zones.get(zone).mark == Mark::Due && self.mark(zone)? {
            return Ok(());
        }
        if self.rules.run.omits(OmittedRule::ZoneSave) {
            return Ok(());
        }
        for stream in 0..self.zones.shape.streams {
            if self.zones.is_filling(zone, stream)
                && let Some(&id) = self.zones.stream(zone, stream).pages.back()
                && self.zones.pages.get(id).saving < self.zones.pages.get(id).filled()
            {
                self.save_page(id)?;
            }
        }
        Ok(())
    }
}
