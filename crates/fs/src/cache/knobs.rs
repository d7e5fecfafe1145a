//! The page cache's timers and thresholds, for every file system.

use super::CacheConfig;
use crate::knob::{Knob, KnobUnit};
use nandscape_rt::Nanos;

/// Fewer pages than this leave nothing to the writers of a campaign.
const PAGES_MIN: u64 = 96;

/// All of them. A period of nothing would be a loop without time, so looking has none that acts at once.
pub const KNOBS: [Knob; 6] = [
    Knob {
        name: "cache-pages",
        least: PAGES_MIN,
        most: 8_192,
        at_once: None,
        never: None,
        unit: KnobUnit::Blocks,
    },
    Knob::timer("write-back-period", 250_000, 5_000_000_000, None),
    Knob::timer("write-back-age", 1_000_000, 30_000_000_000, Some(0)),
    Knob {
        name: "dirty-background",
        least: 2,
        most: 60,
        at_once: Some(0),
        never: Some(100),
        unit: KnobUnit::Percent,
    },
    Knob {
        name: "dirty",
        least: 4,
        most: 90,
        at_once: Some(1),
        never: Some(100),
        unit: KnobUnit::Percent,
    },
    Knob {
        name: "read-ahead",
        least: 1,
        most: 256,
        at_once: None,
        never: Some(0),
        unit: KnobUnit::Blocks,
    },
];

impl CacheConfig {
    /// Sets a knob; whether there is one of that name.
    pub(crate) fn set_knob(&mut self, name: &str, value: u64) -> bool {
        let percent = value.min(100) as u8;
        match name {
            "cache-pages" => self.pages = value.max(PAGES_MIN),
            "write-back-period" => self.period = Nanos(value.max(1)),
            "write-back-age" => self.age = Nanos(value),
            "dirty-background" => self.background_percent = percent,
            "dirty" => self.dirty_percent = percent,
            "read-ahead" => self.read_ahead_pages = value.min(u64::from(u32::MAX)) as u32,
            _ => return false,
        }
        true
    }
}
