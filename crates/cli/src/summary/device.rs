//! The device and what it held before, and how the result is made again.

use super::Page;
use super::units::{bytes, sector_bytes};
use crate::paint::Tone;
use nandscape_lab::run::{Outcome, VERSION, ZoneReport};
use nandscape_lab::state::{Origin, Preconditioned};
use nandscape_rt::words::grouped;

impl Page {
    pub(super) fn device(&mut self, outcome: &Outcome) {
        let (stack, size) = (&outcome.stack, &outcome.size);
        let geometry = &stack.media.geometry;
        let unit = sector_bytes(u64::from(size.erase_unit_sectors));
        let shape = format!(
            "{} channels x {} PUs x {} chunks of {} ({} lines of {unit}), timing {}",
            geometry.groups,
            geometry.units,
            grouped(u64::from(geometry.chunks)),
            sector_bytes(u64::from(geometry.sectors)),
            grouped(u64::from(size.erase_units)),
            stack.media.timing.name
        );
        let effective = outcome.effective_op_percent();
        let effective = effective.map_or_else(String::new, |percent| {
            format!("; {percent:.1} % effective, by sectors in use")
        });
        let addresses = match size.logical_sectors > size.live_sectors {
            true => format!(", in an address space of {}", sector_bytes(size.logical_sectors)),
            false => String::new(),
        };
        let sizes = format!(
            "{} raw, {} usable{addresses} (OP {:.1} % of raw, {:.1} % of usable{effective})",
            sector_bytes(size.physical_sectors),
            sector_bytes(size.live_sectors),
            size.op_percent_of_raw(),
            size.op_percent_of_usable()
        );
        let settled = !stack.timing().nand.is_instant();
        let mut before = before(&outcome.preconditioned, outcome.origin, settled);
        if outcome.prefilled > 0 {
            let footprint = sector_bytes(outcome.prefilled);
            before +=
                &format!("; then the trace's footprint of {footprint}, sequentially (untimed)");
        }
        let memory = format!(
            "FTL {} (mapping table {}); simulated media {}",
            bytes(outcome.memory.total() as f64),
            bytes(outcome.memory.part("map") as f64),
            bytes(outcome.media_bytes as f64)
        );
        self.gap();
        let zones = outcome.zones.as_ref().map(zones);
        let lines = [("Device:", Some(shape)), ("", Some(sizes)), ("Zones:", zones)];
        for (first, text) in
            lines.into_iter().chain([("Preconditioning:", Some(before)), ("Memory:", Some(memory))])
        {
            text.into_iter().for_each(|text| self.line(&format!("  {first:<18}"), &text));
        }
    }

    pub(super) fn foot(&mut self, outcome: &Outcome, commit: &str, again: &str) {
        self.gap();
        // Why it is not steady stands above.
        let is_other = |warning: &&String| outcome.not_steady.as_ref() != Some(*warning);
        let warnings: Vec<&String> = outcome.warnings.iter().filter(is_other).collect();
        if !warnings.is_empty() {
            let word = self.paint.paint(Tone::Warning, "Warnings:");
            self.line("  ", &word);
            warnings.iter().for_each(|warning| self.line("  - ", warning));
            self.gap();
        }
        let program = format!(
            "nandscape {VERSION} ({commit}): simulated {:.2} s in {:.2} s wall time (+ {:.2} s preconditioning)",
            outcome.virtual_time.as_secs_f64(),
            outcome.wall.measured_s,
            outcome.wall.precondition_s
        );
        self.line("  ", &self.paint.paint(Tone::Faint, &program));
        // In one line at any width, to be copied.
        self.text.push_str(&format!("  Reproduce: {again}\n"));
    }
}

/// The zones of a device at the end.
fn zones(report: &ZoneReport) -> String {
    let states = report.states().map(|(name, count)| format!("{count} {name}"));
    let capacity = match report.capacity() {
        sectors if sectors == report.zone_sectors => String::new(),
        sectors => format!(", {} writable", sector_bytes(sectors)),
    };
    let random = match report.random_sectors {
        0 => String::new(),
        sectors => {
            format!(", after {} of conventional (random-write) space", sector_bytes(sectors))
        }
    };
    format!(
        "{} of {}{capacity}{random}: {}",
        report.zones.len(),
        sector_bytes(report.zone_sectors),
        states.collect::<Vec<_>>().join(", ")
    )
}

/// What a device held before anything was measured on it, and how that came there.
pub(crate) fn before(done: &Preconditioned, origin: Option<Origin>, settled: bool) -> String {
    let filled = sector_bytes(done.fill_sectors);
    let steady = match done.steady {
        None => "",
        Some(true) => ", until write amplification was steady",
        Some(false) => ", write amplification not steady",
    };
    let over = sector_bytes(done.overwrite_sectors);
    match origin {
        Some(Origin::Image) => format!("{filled} imported from an image"),
        Some(Origin::Run) => format!("{filled}, left by a run"),
        None if *done == Preconditioned::default() => "none (fresh out of box)".to_owned(),
        None => {
            let settles = settled && done.overwrite_sectors > 0;
            let settling = if settles { "untimed, then timed until GC settles" } else { "untimed" };
            format!(
                "{filled} filled sequentially, {over} overwritten at random ({settling}){steady}"
            )
        }
    }
}
