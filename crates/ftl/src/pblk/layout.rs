//! The lines of a pblk: over which parallel units they lie, and how many a power cut may use up.

use crate::common::layout::{Layout, UnitSet};
use crate::error::FtlError;
use crate::pblk::config::LineSet;
use nandscape_media::Geometry;

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
