//! `media.timing`: a preset's name, or a table that overrides a preset's parameters one by one.

use super::place::StackError;
use super::reader::{Field, Section, Words};
use super::units::did_you_mean;
use nandscape_media::{MultiPlane, Placing, ReadPriority, Timing};
use std::ops::RangeInclusive;

/// Timing parameters and what they are called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedTiming {
    /// The preset, and the parameters that were overridden.
    pub name: String,
    /// The parameters.
    pub timing: Timing,
}

type Parameter = (&'static str, fn(&mut Timing) -> &mut u64);

const PARAMETERS: &[Parameter] = &[
    ("command_ns", |timing| &mut timing.command_ns),
    ("firmware_small_ns", |timing| &mut timing.firmware_small_ns),
    ("firmware_large_ns", |timing| &mut timing.firmware_large_ns),
    ("firmware_small_bytes", |timing| &mut timing.firmware_small_bytes),
    ("read_sector_lsb_ns", |timing| &mut timing.read_sector_lsb_ns),
    ("read_sector_msb_ns", |timing| &mut timing.read_sector_msb_ns),
    ("read_page_lsb_ns", |timing| &mut timing.read_page_lsb_ns),
    ("read_page_msb_ns", |timing| &mut timing.read_page_msb_ns),
    ("program_ns", |timing| &mut timing.program_ns),
    ("erase_ns", |timing| &mut timing.erase_ns),
    ("flash_page_bytes", |timing| &mut timing.flash_page_bytes),
    ("one_shot_bytes", |timing| &mut timing.one_shot_bytes),
    ("channel_bytes_per_s", |timing| &mut timing.channel_bytes_per_s),
    ("channel_sector_ns", |timing| &mut timing.channel_sector_ns),
    ("max_transfer_bytes", |timing| &mut timing.max_transfer_bytes),
    ("pcie_bytes_per_s", |timing| &mut timing.pcie_bytes_per_s),
    ("buffer_base_ns", |timing| &mut timing.buffer_base_ns),
    ("buffer_sector_ns", |timing| &mut timing.buffer_sector_ns),
    ("planes", |timing| &mut timing.planes),
    ("late_ns", |timing| &mut timing.late_ns),
    ("suspensions", |timing| &mut timing.suspensions),
    ("program_suspend_ns", |timing| &mut timing.program_suspend_ns),
    ("erase_suspend_ns", |timing| &mut timing.erase_suspend_ns),
    ("resume_ns", |timing| &mut timing.resume_ns),
];

/// Planes that a unit may have.
const PLANES: RangeInclusive<u64> = 1..=16;

const MULTI_PLANE: Words<MultiPlane> = Words {
    here: &[
        ("both", MultiPlane::Both),
        ("program", MultiPlane::Program),
        ("read", MultiPlane::Read),
        ("none", MultiPlane::None),
    ],
    later: &[],
};

const READ_PRIORITY: Words<ReadPriority> = Words {
    here: &[
        ("none", ReadPriority::None),
        ("ahead", ReadPriority::Ahead),
        ("suspend-erase", ReadPriority::SuspendErase),
        ("suspend-program", ReadPriority::SuspendProgram),
        ("suspend", ReadPriority::Suspend),
    ],
    later: &[],
};

const PLACING: Words<Placing> =
    Words { here: &[("backfill", Placing::Backfill), ("fifo", Placing::Fifo)], later: &[] };

/// Reads `timing` out of `[media]`.
pub(super) fn read(media: &mut Section<'_>) -> Result<NamedTiming, StackError> {
    if !media.holds_table("timing") {
        let name: String = media.required("timing")?;
        let timing = preset(&name).map_err(|message| media.reject("timing", message))?;
        return Ok(NamedTiming { name, timing });
    }
    let (named, inline) = read_table(media.section("timing", "media.timing")?)?;
    media.write("timing", &inline);
    Ok(named)
}

/// A preset with overrides, and both as an inline table.
fn read_table(mut table: Section<'_>) -> Result<(NamedTiming, String), StackError> {
    let preset_name: String = table.required("preset")?;
    let mut timing = preset(&preset_name).map_err(|message| table.reject("preset", message))?;
    for (key, parameter) in PARAMETERS {
        if let Some(value) = table.optional(key)? {
            *parameter(&mut timing) = value;
        }
    }
    if let Some(placing) = table.optional_choice("placing", &PLACING)? {
        timing.placing = placing;
    }
    if let Some(multi_plane) = table.optional_choice("multi_plane", &MULTI_PLANE)? {
        timing.multi_plane = multi_plane;
    }
    if let Some(read_priority) = table.optional_choice("read_priority", &READ_PRIORITY)? {
        timing.read_priority = read_priority;
    }
    table.check("planes", PLANES.contains(&timing.planes), "must be between 1 and 16")?;
    let lines = table.close()?;
    let inline = lines.lines().collect::<Vec<_>>().join(", ");
    let overrides: Vec<&str> = lines.lines().skip(1).collect();
    let name = match overrides.as_slice() {
        [] => preset_name,
        _ => format!("{preset_name}, {}", overrides.join(", ")),
    };
    Ok((NamedTiming { name, timing }, format!("{{ {inline} }}")))
}

fn preset(name: &str) -> Result<Timing, String> {
    Timing::preset(name).ok_or_else(|| {
        let names = Timing::PRESETS.iter().copied();
        let expected = Timing::PRESETS.join(" | ");
        format!(
            "expected {expected}, found {}{}",
            name.to_owned().show(),
            did_you_mean(name, names)
        )
    })
}
