//! `ftl.cpu`: a preset's name, or a table that overrides a preset's costs one by one.

use crate::stack::place::StackError;
use crate::stack::reader::{Field, Section, Words};
use crate::stack::units::did_you_mean;
use nandscape_ftl::pblk::costs::{CpuCosts, MapUpdate};

type Cost = (&'static str, fn(&mut CpuCosts) -> &mut u64);

const COSTS: &[Cost] = &[
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
];

const MAP_UPDATE: Words<MapUpdate> =
    Words { here: &[("locked", MapUpdate::Locked), ("atomic", MapUpdate::Atomic)], later: &[] };

/// What the FTL costs the host's CPU. The resolved stack has every cost, if any was asked for.
pub(super) fn read(ftl: &mut Section<'_>) -> Result<(CpuCosts, MapUpdate), StackError> {
    let update = ftl.optional_choice("map_update", &MAP_UPDATE)?.unwrap_or_default();
    if ftl.node("cpu").is_none() {
        return Ok((CpuCosts::default(), update));
    }
    let (name, mut costs) = if ftl.holds_table("cpu") {
        read_table(ftl.section("cpu", "ftl.cpu")?)?
    } else {
        let name: String = ftl.unwritten("cpu")?.unwrap_or_default();
        let costs = preset(&name).map_err(|message| ftl.reject("cpu", message))?;
        (name, costs)
    };
    let show = |(key, cost): &Cost| format!(", {key} = {}", cost(&mut costs));
    let costs_text: String = COSTS.iter().map(show).collect();
    ftl.write("cpu", &format!("{{ preset = {}{costs_text} }}", name.show()));
    Ok((costs, update))
}

/// A preset with overrides; without a preset, everything else is free.
fn read_table(mut table: Section<'_>) -> Result<(String, CpuCosts), StackError> {
    let name = table.or("preset", "none".to_owned())?;
    let mut costs = preset(&name).map_err(|message| table.reject("preset", message))?;
    for (key, cost) in COSTS {
        if let Some(value) = table.optional(key)? {
            table.check(key, value <= CpuCosts::NS_MAX, "must be at most 10,000,000,000 (10 s)")?;
            *cost(&mut costs) = value;
        }
    }
    table.close()?;
    Ok((name, costs))
}

fn preset(name: &str) -> Result<CpuCosts, String> {
    CpuCosts::preset(name).ok_or_else(|| {
        let hint = did_you_mean(name, CpuCosts::PRESETS);
        let expected = CpuCosts::PRESETS.join(" | ");
        format!("expected {expected}, found {}{hint}", name.to_owned().show())
    })
}
