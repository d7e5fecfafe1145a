//! The zones of a device as a table, in the form of `nvme zns report-zones`.

use nandscape_lab::run::{ZONE_TYPE, ZoneReport};
use std::fmt::Write;

/// Zones that are shown at the beginning and at the end of a longer list.
const SHOWN: usize = 16;

/// A line for each zone; of many, the first and the last ones. Addresses and capacities are in sectors of 4 KiB.
pub(crate) fn table(report: &ZoneReport) -> String {
    let count = report.zones.len();
    let mut text = format!("\nnr_zones: {count}\n");
    let left_out = SHOWN..count.saturating_sub(SHOWN).max(SHOWN);
    for (number, zone) in report.zones.iter().enumerate() {
        if left_out.contains(&number) {
            if number == left_out.start {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "... {} more", left_out.len());
            }
            continue;
        }
        let (start, pointer) = (zone.start.0, zone.write_pointer.0);
        let _ = writeln!(
            text,
            "SLBA: {start:<#10x} WP: {pointer:<#10x} Cap: {:<#10x} State: {:<12} Type: {ZONE_TYPE:<14} Attrs: 0x0",
            zone.capacity,
            zone.state.name(),
        );
    }
    text
}
