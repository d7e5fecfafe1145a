//! A victim whose content is being copied, and how far that has come: pages are read row by row, round the chunks of the erase
//! unit.

use super::flash::Flash;
use super::region::RegionMap;
use crate::common::ids::LineId;
use nandscape_media::{OpenChannel, Ppa};

/// A victim whose content is being copied.
#[derive(Debug)]
pub(super) struct Copying {
    pub(super) line: LineId,
    /// The next page to be read: its row, and its chunk within the row.
    row: u32,
    index: u32,
    /// Pages that are being read.
    pub(super) reads: u32,
    /// Sectors that were valid when it was chosen.
    pub(super) valid: u32,
    /// Places of its units of trim records.
    pub(super) trims: Vec<Ppa>,
    /// Whether its copies found no place: programs that failed used up what they fitted into.
    pub(super) ended: bool,
}

impl Copying {
    pub(super) const fn new(line: LineId, valid: u32) -> Self {
        Self { line, row: 0, index: 0, reads: 0, valid, trims: Vec::new(), ended: false }
    }

    /// Goes on to the next page that holds anything valid, if there is another one to be read.
    pub(super) fn seek<M: OpenChannel, P: RegionMap>(
        &mut self,
        flash: &Flash<M, P>,
    ) -> Option<Ppa> {
        let page = flash.rules.sizes.page;
        let (rows, layout) = (flash.rules.geometry.sectors / page, flash.rules.layout);
        while self.row < rows && !self.ended {
            let at = layout.format.ppa(layout.chunk(self.line, self.index), self.row * page);
            if flash.lines.valid_mask(at, page) != 0 {
                return Some(at);
            }
            self.step(layout.width);
        }
        None
    }

    /// Takes the next page that holds anything valid.
    pub(super) fn take<M: OpenChannel, P: RegionMap>(
        &mut self,
        flash: &Flash<M, P>,
    ) -> Option<Ppa> {
        let at = self.seek(flash)?;
        self.step(flash.rules.layout.width);
        Some(at)
    }

    const fn step(&mut self, width: u32) {
        self.index += 1;
        if self.index == width {
            (self.row, self.index) = (self.row + 1, 0);
        }
    }
}

impl<M: OpenChannel, P: RegionMap> Flash<M, P> {
    /// Whether nothing that is valid in an erase unit can be read.
    pub(super) fn is_lost(&self, line: LineId) -> bool {
        let (page, layout) = (self.rules.sizes.page, self.rules.layout);
        let rows = (0..self.rules.geometry.sectors).step_by(page as usize);
        let mut pages = rows.flat_map(|row| {
            (0..layout.width).map(move |index| layout.format.ppa(layout.chunk(line, index), row))
        });
        pages.all(|at| {
            let valid = self.lines.valid_mask(at, page);
            let mut units = (0..page).step_by(self.map.unit_sectors() as usize);
            units.all(|index| valid >> index & 1 == 0 || !self.unit_readable(at.plus(index)))
        })
    }
}
