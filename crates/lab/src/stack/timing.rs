//! `media.timing`: a preset's name, or a table that overrides a preset's parameters one by one, of the
//! NAND and of the host's link.

use super::place::StackError;
use super::reader::{Field, Section, Words};
use super::units::did_you_mean;
use nandscape_media::{DeviceTiming, LinkScheduling, MultiPlane, ReadPriority};
use std::ops::RangeInclusive;

/// Timing parameters and what they are called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedTiming {
    /// The preset, and the parameters that were overridden.
    pub name: String,
    /// The parameters.
    pub device: DeviceTiming,
}

type Parameter = (&'static str, fn(&mut DeviceTiming) -> &mut u64);

const PARAMETERS: &[Parameter] = &[
    ("command_ns", |device| &mut device.link.command_ns),
    ("firmware_small_ns", |device| &mut device.link.read_small_ns),
    ("firmware_large_ns", |device| &mut device.link.read_large_ns),
    ("firmware_small_bytes", |device| &mut device.link.read_small_bytes),
    ("read_sector_lsb_ns", |device| &mut device.nand.read_sector_lsb_ns),
    ("read_sector_msb_ns", |device| &mut device.nand.read_sector_msb_ns),
    ("read_page_lsb_ns", |device| &mut device.nand.read_page_lsb_ns),
    ("read_page_msb_ns", |device| &mut device.nand.read_page_msb_ns),
    ("program_ns", |device| &mut device.nand.program_ns),
    ("erase_ns", |device| &mut device.nand.erase_ns),
    ("flash_page_bytes", |device| &mut device.nand.flash_page_bytes),
    ("one_shot_bytes", |device| &mut device.nand.one_shot_bytes),
    ("channel_bytes_per_s", |device| &mut device.nand.channel_bytes_per_s),
    ("channel_sector_ns", |device| &mut device.nand.channel_sector_ns),
    ("max_transfer_bytes", |device| &mut device.nand.max_transfer_bytes),
    ("pcie_bytes_per_s", |device| &mut device.link.bytes_per_s),
    ("buffer_base_ns", |device| &mut device.link.buffer_base_ns),
    ("buffer_sector_ns", |device| &mut device.link.buffer_sector_ns),
    ("planes", |device| &mut device.nand.planes),
    ("late_ns", |device| &mut device.nand.late_ns),
    ("suspensions", |device| &mut device.nand.suspensions),
    ("program_suspend_ns", |device| &mut device.nand.program_suspend_ns),
    ("erase_suspend_ns", |device| &mut device.nand.erase_suspend_ns),
    ("resume_ns", |device| &mut device.nand.resume_ns),
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

const PLACING: Words<LinkScheduling> = Words {
    here: &[("backfill", LinkScheduling::Backfill), ("fifo", LinkScheduling::Fifo)],
    later: &[],
};

/// Reads `timing` out of `[media]`.
pub(super) fn read(media: &mut Section<'_>) -> Result<NamedTiming, StackError> {
    if !media.holds_table("timing") {
        let name: String = media.required("timing")?;
        let device = preset(&name).map_err(|message| media.reject("timing", message))?;
        return Ok(NamedTiming { name, device });
    }
    let (named, inline) = read_table(media.section("timing", "media.timing")?)?;
    media.write("timing", &inline);
    Ok(named)
}

/// A preset with overrides, and both as an inline table.
fn read_table(mut table: Section<'_>) -> Result<(NamedTiming, String), StackError> {
    let preset_name: String = table.required("preset")?;
    let mut device = preset(&preset_name).map_err(|message| table.reject("preset", message))?;
    for (key, parameter) in PARAMETERS {
        if let Some(value) = table.optional(key)? {
            *parameter(&mut device) = value;
        }
    }
    if let Some(placing) = table.optional_choice("placing", &PLACING)? {
        (device.nand.placing, device.link.placing) = (placing, placing);
    }
    if let Some(multi_plane) = table.optional_choice("multi_plane", &MULTI_PLANE)? {
        device.nand.multi_plane = multi_plane;
    }
    if let Some(read_priority) = table.optional_choice("read_priority", &READ_PRIORITY)? {
        device.nand.read_priority = read_priority;
    }
    table.check("planes", PLANES.contains(&device.nand.planes), "must be between 1 and 16")?;
    let lines = table.close()?;
    let inline = lines.lines().collect::<Vec<_>>().join(", ");
    let overrides: Vec<&str> = lines.lines().skip(1).collect();
    let name = match overrides.as_slice() {
        [] => preset_name,
        _ => format!("{preset_name}, {}", overrides.join(", ")),
    };
    Ok((NamedTiming { name, device }, format!("{{ {inline} }}")))
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
