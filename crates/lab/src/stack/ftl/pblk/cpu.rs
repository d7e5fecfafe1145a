//! `ftl.cpu`: a preset's name, or a table that overrides a preset's costs one by one.

use crate::stack::costs::CostTable;
use crate::stack::place::StackError;
use crate::stack::reader::{Section, Words};
use nandscape_ftl::pblk::costs::{CpuCosts, MapUpdate};

const COSTS: CostTable<CpuCosts> = CostTable {
    path: "ftl.cpu",
    presets: &CpuCosts::PRESETS,
    preset: CpuCosts::preset,
    ns_max: CpuCosts::NS_MAX,
    costs: &[
        ("submit_ns", |costs| &mut costs.submit_ns),
        ("ring_request_ns", |costs| &mut costs.ring_request_ns),
        ("ring_sector_ns", |costs| &mut costs.ring_sector_ns),
        ("map_sector_ns", |costs| &mut costs.map_sector_ns),
        ("copy_sector_ns", |costs| &mut costs.copy_sector_ns),
        ("writer_unit_ns", |costs| &mut costs.writer_unit_ns),
        ("writer_sector_ns", |costs| &mut costs.writer_sector_ns),
        ("gc_sector_ns", |costs| &mut costs.gc_sector_ns),
        ("map_command_ns", |costs| &mut costs.map_command_ns),
        ("map_block_sector_ns", |costs| &mut costs.map_block_sector_ns),
    ],
};

const MAP_UPDATE: Words<MapUpdate> =
    Words { here: &[("locked", MapUpdate::Locked), ("atomic", MapUpdate::Atomic)] };

/// What the FTL costs the host's CPU.
pub(super) fn read(ftl: &mut Section<'_>) -> Result<(CpuCosts, MapUpdate), StackError> {
    let update = ftl.optional_choice("map_update", &MAP_UPDATE)?.unwrap_or_default();
    let asked = COSTS.read(ftl, |_| Ok(()))?;
    let Some(mut asked) = asked else { return Ok((CpuCosts::default(), update)) };
    COSTS.write(ftl, &mut asked, "");
    Ok((asked.costs, update))
}
