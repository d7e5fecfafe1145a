//! `fs.cpu`: a preset's name, or a table that overrides a preset's costs one by one and scales all of them.

use crate::stack::costs::CostTable;
use crate::stack::place::StackError;
use crate::stack::reader::{Field, Section};
use nandscape_fs::f2fs::CpuCosts;

const COSTS: CostTable<CpuCosts> = CostTable {
    path: "fs.cpu",
    presets: &CpuCosts::PRESETS,
    preset: CpuCosts::preset,
    ns_max: CpuCosts::NS_MAX,
    costs: &[
        ("lookup_ns", |costs| &mut costs.lookup_ns),
        ("node_page_ns", |costs| &mut costs.node_page_ns),
        ("allocation_ns", |costs| &mut costs.allocation_ns),
        ("move_ns", |costs| &mut costs.move_ns),
        ("upcall_ns", |costs| &mut costs.upcall_ns),
        ("record_ns", |costs| &mut costs.record_ns),
        ("checkpoint_ns", |costs| &mut costs.checkpoint_ns),
        ("checkpoint_block_ns", |costs| &mut costs.checkpoint_block_ns),
    ],
};
/// The largest scale.
const SCALE_MAX: f64 = 1_000_000.0;

/// What the file system costs the host's CPU: costs times a scale.
pub(super) fn read(fs: &mut Section<'_>) -> Result<CpuCosts, StackError> {
    let mut scale = 1.0;
    let asked = COSTS.read(fs, |table| {
        scale = table.or("scale", scale)?;
        let is_scale = (0.0..=SCALE_MAX).contains(&scale);
        table.check("scale", is_scale, "must be 0 to 1,000,000")
    })?;
    let Some(mut asked) = asked else { return Ok(CpuCosts::default()) };
    COSTS.write(fs, &mut asked, &format!(", scale = {}", scale.show()));
    Ok(asked.costs.scaled(scale))
}
