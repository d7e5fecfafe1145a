//! The lines of a pblk: over which parallel units they lie, places in them, and how many a power cut may use up.

use crate::common::layout::{Layout, UnitSet};
use crate::error::FtlError;
use crate::pblk::config::LineSet;
use nandscape_media::Geometry;

/// A place in a line: one write unit of one chunk. Ordered as units are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Cursor {
    pub(super) row: u32,
    /// Index of the chunk within the line.
    pub(super) chunk: u32,
}

impl Cursor {
    pub(super) const START: Self = Self { row: 0, chunk: 0 };

    pub(super) fn step(&mut self, width: u32) {
        self.chunk += 1;
        if self.chunk == width {
            *self = Self { row: self.row + 1, chunk: 0 };
        }
    }

    pub(super) fn step_back(&mut self, width: u32) {
        if self.chunk == 0 {
            *self = Self { row: self.row - 1, chunk: width };
        }
        self.chunk -= 1;
    }
}

/// The layout of lines as the configuration divides the device.
///
/// # Errors
/// Units that do not divide into stripes.
pub(super) fn line_layout(geometry: &Geometry, set: LineSet) -> Result<Layout, FtlError> {
    let units = match set {
        LineSet::Device => UnitSet::All,
        LineSet::Channel => UnitSet::Channels(1),
        LineSet::Units(width) => UnitSet::Units(width),
    };
    Layout::of(geometry, units).map_err(|why| FtlError::Config { key: "ftl.line_set", why })
}

/// Lines of garbage collection, beyond one, that a power cut may use up at once, given the most frontiers of a
/// stream: where open chunks are limited recovery leaves none open.
pub(super) fn padded_out(geometry: &Geometry, frontiers_max: u32) -> u32 {
    if geometry.limits_open_chunks() { frontiers_max.saturating_sub(1) } else { 0 }
}
