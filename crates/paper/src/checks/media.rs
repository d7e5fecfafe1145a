//! Media: no run programs faster than the cells and the channels of its stack allow. The limits follow
//! from geometry and timing of the resolved stack.

use super::{Facts, Finding, holds};
use nandscape_lab::SECTOR_BYTES;
use nandscape_lab::stack::{MediaStack, Stack};

/// Write units that a unit may have under way at an end of the measured phase.
const UNITS_UNDER_WAY: f64 = 8.0;
/// Rounding of shares and times.
const SLACK: f64 = 1.01;

/// What the media of a stack can do.
pub(super) struct Limits {
    /// Units in all.
    pub(super) units: f64,
    /// Channels.
    channels: f64,
    /// Time of a unit's cells for each sector programmed.
    pub(super) program_s: f64,
    /// Time of a channel for each sector; zero if transfers take none.
    channel_s: f64,
    /// The least and the most time of a unit that reading a sector takes.
    pub(super) read_s: (f64, f64),
    /// Sectors that one command may have under way on a unit.
    write_unit: f64,
}

impl Limits {
    pub(super) fn of(stack: &Stack) -> Self {
        let MediaStack { geometry, timing, .. } = &stack.media;
        let timing = &timing.device.nand;
        let sectors = |bytes: u64| (bytes / SECTOR_BYTES).max(1) as f64;
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let channel_s = match timing.channel_bytes_per_s {
            0 => 0.0,
            bytes => SECTOR_BYTES as f64 / bytes as f64,
        };
        let sense_min = seconds(timing.read_page_lsb_ns.min(timing.read_page_msb_ns));
        let sense_max = seconds(timing.read_sector_msb_ns.max(timing.read_page_msb_ns));
        Self {
            units: f64::from(geometry.groups) * f64::from(geometry.units),
            channels: f64::from(geometry.groups),
            program_s: seconds(timing.program_ns) / sectors(timing.one_shot_bytes),
            channel_s,
            read_s: (
                sense_min / sectors(timing.flash_page_bytes) + channel_s,
                sense_max + channel_s,
            ),
            write_unit: f64::from(geometry.ws_opt),
        }
    }

    /// Time of a unit for each sector programmed, transfer and all.
    pub(super) fn written_s(&self) -> f64 {
        self.program_s + self.channel_s
    }
}

/// Programmed sectors, less those that may still have been under way.
fn programmed(facts: &Facts<'_>, limits: &Limits) -> Option<f64> {
    let all = facts.count("/utilisation/programmed_sectors")? as f64;
    Some((all - UNITS_UNDER_WAY * limits.units * limits.write_unit).max(0.0))
}

/// All units together program no more than all of their cells can.
pub(super) fn program_rate(facts: &Facts<'_>) -> Finding {
    let limits = Limits::of(facts.stack.as_ref()?);
    let (sectors, seconds) = (programmed(facts, &limits)?, facts.number("/virtual_s")?);
    let can = limits.units * seconds / limits.program_s;
    holds(sectors <= can * SLACK, || {
        format!("{sectors:.0} sectors programmed in {seconds} s, cells allow {can:.0}")
    })
}

/// All channels together carry no more than their bandwidth.
pub(super) fn channel_rate(facts: &Facts<'_>) -> Finding {
    let limits = Limits::of(facts.stack.as_ref()?);
    let (sectors, seconds) = (programmed(facts, &limits)?, facts.number("/virtual_s")?);
    let can = limits.channels * seconds / limits.channel_s;
    holds(sectors <= can * SLACK, || {
        format!("{sectors:.0} sectors carried in {seconds} s, channels allow {can:.0}")
    })
}

/// The time that units were taken holds the time of the programs.
pub(super) fn busy_time(facts: &Facts<'_>) -> Finding {
    let limits = Limits::of(facts.stack.as_ref()?);
    let shares = facts.at("/utilisation/units")?.as_array()?;
    let busy: f64 = shares.iter().filter_map(|share| share.as_f64()).sum();
    let busy_s = busy * facts.number("/virtual_s")?;
    let cells_s = programmed(facts, &limits)? * limits.program_s;
    holds(cells_s <= busy_s * SLACK, || {
        format!("programs last {cells_s} s in all, units were taken for {busy_s} s")
    })
}
