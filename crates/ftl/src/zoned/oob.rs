//! Out-of-band data of pages at their places, and of records of the save log: a key and an auxiliary value for each
//! sector.

use super::shape::Shape;
use nandscape_media::Kind;

/// Auxiliary value of a sector whose content was lost before it was copied.
pub(super) const LOST: u32 = 1;
/// Auxiliary value of a sector that was never written: its zone was finished before it.
pub(super) const UNWRITTEN: u32 = 2;

/// What records are written as.
pub(super) const KIND: Kind = Kind::Smeta;
/// The auxiliary value of a record of a reset, beside the generation.
pub(super) const RESET: u32 = 1 << 31;
/// That of a zone that was finished.
pub(super) const FINISHED: u32 = 1 << 30;
/// That of a sector whose content was lost before it was copied.
pub(super) const SAVED_LOST: u32 = 1 << 29;
/// The generation in an auxiliary value.
pub(super) const GENERATION: u32 = SAVED_LOST - 1;

/// Out-of-band data of the page that is programmed next.
#[derive(Debug)]
pub(super) struct Oob {
    pub(super) keys: Vec<u32>,
    pub(super) aux: Vec<u32>,
}

impl Oob {
    /// Of a page of so many sectors.
    pub(super) fn new(page: u32) -> Self {
        let page = page as usize;
        Self { keys: Vec::with_capacity(page), aux: Vec::with_capacity(page) }
    }

    /// The keys of a page, and what it says of each sector if that is anything: those from `filled` on are unwritten.
    #[inline]
    pub(super) fn set_page(
        &mut self,
        shape: &Shape,
        (zone, stream, index): (u32, u32, u32),
        filled: u32,
        lost: u64,
    ) {
        let Self { keys, aux } = self;
        keys.clear();
        aux.clear();
        let first = index * shape.page;
        keys.extend((0..shape.page).map(|i| shape.key(zone, stream, first + i)));
        if lost != 0 || filled < shape.page_sectors(stream, index) {
            aux.extend((0..shape.page).map(|i| match lost >> i & 1 {
                _ if i >= filled => UNWRITTEN,
                0 => 0,
                _ => LOST,
            }));
        }
    }

    /// The out-of-band data of the next record, with a key for each sector of its page.
    pub(super) fn set_record(&mut self, keys: Vec<u32>, aux: u32) {
        self.aux.clear();
        self.aux.resize(keys.len(), aux);
        self.keys = keys;
    }

    /// Says of sectors of the next record that their content is lost.
    pub(super) fn note_lost(&mut self, lost: u64) {
        let marked = self.aux.iter_mut().enumerate().filter(|(sector, _)| lost >> sector & 1 == 1);
        marked.for_each(|(_, aux)| *aux |= SAVED_LOST);
    }
}
