//! `fs.cpu`: a preset's name, or a table that overrides a preset's costs one by one and scales all of them.

use crate::stack::place::StackError;
use crate::stack::reader::{Field, Section};
use crate::stack::units::did_you_mean;
use nandscape_fs::f2fs::CpuCosts;

type Cost = (&'static str, fn(&mut CpuCosts) -> &mut u64);

const COSTS: &[Cost] = &[
    ("lookup_ns", |costs| &mut costs.lookup_ns),
    ("node_page_ns", |costs| &mut costs.node_page_ns),
    ("allocation_ns", |costs| &mut costs.allocation_ns),
    ("move_ns", |costs| &mut costs.move_ns),
    ("checkpoint_ns", |costs| &mut costs.checkpoint_ns),
    ("checkpoint_block_ns", |costs| &mut costs.checkpoint_block_ns),
];
/// The largest scale.
const SCALE_MAX: f64 = 1_000_000.0;

/// What the file system costs the host's CPU. The resolved stack has every cost, if any was asked for.
pub(super) fn read(fs: &mut Section<'_>) -> Result<CpuCosts, StackError> {
    if fs.node("cpu").is_none() {
        return Ok(CpuCosts::default());
    }
    let (name, mut costs, scale) = if fs.holds_table("cpu") {
        read_table(fs.section("cpu", "fs.cpu")?)?
    } else {
        let name: String = fs.unwritten("cpu")?.unwrap_or_default();
        let costs = preset(&name).map_err(|message| fs.reject("cpu", message))?;
        (name, costs, 1.0)
    };
    let show = |(key, cost): &Cost| format!(", {key} = {}", cost(&mut costs));
    let costs_text: String = COSTS.iter().map(show).collect();
    let preset = name.show();
    fs.write("cpu", &format!("{{ preset = {preset}, scale = {}{costs_text} }}", scale.show()));
    Ok(costs.scaled(scale))
}

/// A preset with overrides, and the scale of all; without a preset, everything else is free.
fn read_table(mut table: Section<'_>) -> Result<(String, CpuCosts, f64), StackError> {
    let name = table.or("preset", "none".to_owned())?;
    let mut costs = preset(&name).map_err(|message| table.reject("preset", message))?;
    let scale = table.or("scale", 1.0)?;
    let is_scale = (0.0..=SCALE_MAX).contains(&scale);
    table.check("scale", is_scale, "must be 0 to 1,000,000")?;
    for (key, cost) in COSTS {
        if let Some(value) = table.optional(key)? {
            table.check(key, value <= CpuCosts::NS_MAX, "must be at most 10,000,000,000 (10 s)")?;
            *cost(&mut costs) = value;
        }
    }
    table.close()?;
    Ok((name, costs, scale))
}

fn preset(name: &str) -> Result<CpuCosts, String> {
    CpuCosts::preset(name).ok_or_else(|| {
        let hint = did_you_mean(name, CpuCosts::PRESETS);
        let expected = CpuCosts::PRESETS.join(" | ");
        format!("expected {expected}, found {}{hint}", name.to_owned().show())
    })
}
