//! `media.timing`: a preset's name, or a table that overrides parameters of the preset's NAND one by
//! one. The preset also selects the link that `[link]` overrides.

use super::place::StackError;
use super::reader::{Field, Section, Words};
use super::units::did_you_mean;
use nandscape_media::{
    DeviceTiming, LinkScheduling, LinkTiming, MultiPlane, NandTiming, ReadPriority,
};
use std::ops::RangeInclusive;

/// Timing parameters and what they are called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedTiming {
    /// The preset, and the parameters that were overridden.
    pub name: String,
    /// The parameters.
    pub nand: NandTiming,
}

type Parameter = (&'static str, fn(&mut NandTiming) -> &mut u64);

const PARAMETERS: &[Parameter] = &[
    ("read_sector_lsb_ns", |nand| &mut nand.read_sector_lsb_ns),
    ("read_sector_msb_ns", |nand| &mut nand.read_sector_msb_ns),
    ("read_page_lsb_ns", |nand| &mut nand.read_page_lsb_ns),
    ("read_page_msb_ns", |nand| &mut nand.read_page_msb_ns),
    ("program_ns", |nand| &mut nand.program_ns),
    ("erase_ns", |nand| &mut nand.erase_ns),
    ("flash_page_bytes", |nand| &mut nand.flash_page_bytes),
    ("one_shot_bytes", |nand| &mut nand.one_shot_bytes),
    ("channel_bytes_per_s", |nand| &mut nand.channel_bytes_per_s),
    ("channel_sector_ns", |nand| &mut nand.channel_sector_ns),
    ("max_transfer_bytes", |nand| &mut nand.max_transfer_bytes),
    ("planes", |nand| &mut nand.planes),
    ("max_read_preemption_ns", |nand| &mut nand.max_read_preemption_ns),
    ("max_suspensions", |nand| &mut nand.max_suspensions),
    ("program_suspend_ns", |nand| &mut nand.program_suspend_ns),
    ("erase_suspend_ns", |nand| &mut nand.erase_suspend_ns),
    ("resume_ns", |nand| &mut nand.resume_ns),
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
};

const READ_PRIORITY: Words<ReadPriority> = Words {
    here: &[
        ("none", ReadPriority::None),
        ("ahead", ReadPriority::Ahead),
        ("suspend-erase", ReadPriority::SuspendErase),
        ("suspend-program", ReadPriority::SuspendProgram),
        ("suspend", ReadPriority::Suspend),
    ],
};

pub(super) const PLACING: Words<LinkScheduling> =
    Words { here: &[("backfill", LinkScheduling::Backfill), ("fifo", LinkScheduling::Fifo)] };

/// Reads `timing` out of `[media]`; and the link of the preset.
pub(super) fn read(media: &mut Section<'_>) -> Result<(NamedTiming, LinkTiming), StackError> {
    if !media.holds_table("timing") {
        let name: String = media.required("timing")?;
        let DeviceTiming { nand, link } =
            preset(&name).map_err(|message| media.reject("timing", message))?;
        return Ok((NamedTiming { name, nand }, link));
    }
    let (named, link, inline) = read_table(media.section("timing", "media.timing")?)?;
    media.write("timing", &inline);
    Ok((named, link))
}

/// A preset's NAND with overrides, the preset's link, and the overrides as an inline table.
fn read_table(mut table: Section<'_>) -> Result<(NamedTiming, LinkTiming, String), StackError> {
    let preset_name: String = table.required("preset")?;
    let DeviceTiming { mut nand, link } =
        preset(&preset_name).map_err(|message| table.reject("preset", message))?;
    for (key, parameter) in PARAMETERS {
        if let Some(value) = table.optional(key)? {
            check_time(&table, key, value)?;
            *parameter(&mut nand) = value;
        }
    }
    if let Some(placing) = table.optional_choice("placing", &PLACING)? {
        nand.placing = placing;
    }
    if let Some(multi_plane) = table.optional_choice("multi_plane", &MULTI_PLANE)? {
        nand.multi_plane = multi_plane;
    }
    if let Some(read_priority) = table.optional_choice("read_priority", &READ_PRIORITY)? {
        nand.read_priority = read_priority;
    }
    table.check("planes", PLANES.contains(&nand.planes), "must be between 1 and 16")?;
    let lines = table.close()?;
    let inline = lines.lines().collect::<Vec<_>>().join(", ");
    let overrides: Vec<&str> = lines.lines().skip(1).collect();
    let name = match overrides.as_slice() {
        [] => preset_name,
        _ => format!("{preset_name}, {}", overrides.join(", ")),
    };
    Ok((NamedTiming { name, nand }, link, format!("{{ {inline} }}")))
}

/// Checks the value of a key of the NAND or the link that is a time.
///
/// # Errors
/// A time that the device would shorten to [`NandTiming::NS_MAX`].
pub(super) fn check_time(section: &Section<'_>, key: &str, value: u64) -> Result<(), StackError> {
    let holds = !key.ends_with("_ns") || value <= NandTiming::NS_MAX;
    section.check(key, holds, "must be at most 10,000,000,000 (ten seconds)")
}

fn preset(name: &str) -> Result<DeviceTiming, String> {
    DeviceTiming::preset(name).ok_or_else(|| {
        let names = DeviceTiming::PRESETS.iter().copied();
        let expected = DeviceTiming::PRESETS.join(" | ");
        format!(
            "expected {expected}, found {}{}",
            name.to_owned().show(),
            did_you_mean(name, names)
        )
    })
}
