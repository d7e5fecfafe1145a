//! What a pblk is made of, before anything is in it.

use super::buffers::Buffer;
use super::capacity::Capacity;
use super::ids::FrontierId;
use super::layout::line_layout;
use super::mapping::Mapping;
use super::plan::Plan;
use crate::common::l2p::L2p;
use crate::common::layout::Layout;
use crate::common::lines::Lines;
use crate::error::FtlError;
use crate::kind::FtlRun;
use crate::pblk::config::{Config, FlushScope};
use nandscape_block::DeviceCaps;
use nandscape_media::Geometry;

/// The tables and buffers of a pblk.
pub(super) struct Parts {
    pub(super) layout: Layout,
    pub(super) plan: Plan,
    pub(super) buffers: Vec<Buffer>,
    pub(super) l2p: L2p,
    pub(super) lines: Lines,
    pub(super) mapping: Option<Box<Mapping>>,
}

impl Parts {
    /// Makes them, empty.
    ///
    /// # Errors
    /// A choice that does not fit, or no address space.
    pub(super) fn new(
        geometry: &Geometry,
        (config, run): (&Config, &FtlRun),
        capacity: &Capacity,
    ) -> Result<Self, FtlError> {
        let layout = line_layout(geometry, config.line_set)?;
        let plan = Plan::new(config, &layout)?;
        let buffers = plan.make_buffers(geometry, config, capacity)?;
        let l2p = L2p::new(capacity.logical_sectors, geometry.ppa_end());
        let lines = Lines::new(geometry, layout, capacity.line_data_sectors);
        let (Some(l2p), Some(mut lines)) = (l2p, lines) else {
            return Err(FtlError::AddressSpace);
        };
        lines.kept = capacity.map_lines;
        let (entry_bytes, frontier) = (l2p.entry_bytes(), plan.frontiers() as FrontierId);
        let mapping =
            Mapping::new((config, run), geometry, capacity.logical_sectors, entry_bytes, frontier)?;
        Ok(Self { layout, plan, buffers, l2p, lines, mapping })
    }
}

/// Writable sectors that are enough whatever the buffers hold and however it is spread: what the rings
/// can hold, two lines and three rows; with several frontiers also what each may keep from the others.
pub(super) fn ample_sectors(
    geometry: &Geometry,
    capacity: &Capacity,
    plan: &Plan,
    rings: impl Iterator<Item = u32>,
) -> u64 {
    let row = u64::from(geometry.ws_opt * geometry.total_units());
    let kept = if plan.frontiers() == 1 { 0 } else { 4 * u64::from(plan.frontiers()) };
    rings.map(u64::from).sum::<u64>()
        + (2 + kept + u64::from(capacity.map_lines)) * u64::from(capacity.line_data_sectors)
        + 3 * row
}

/// What the device can do.
pub(super) fn caps(config: &Config, run: &FtlRun, capacity: &Capacity) -> DeviceCaps {
    DeviceCaps {
        max_sectors: u32::MAX,
        keeps_content: run.keep_content,
        scoped_flush: matches!(config.flush_scope, FlushScope::FileRing | FlushScope::FileEntries),
        ..DeviceCaps::conventional(capacity.logical_sectors)
    }
}
