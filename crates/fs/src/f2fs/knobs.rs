//! F2FS's timers and thresholds: all that a seed of a campaign draws about a mount.

use super::format::GC_JOURNAL_BLOCKS;
use super::options::MountOptions;
use crate::cache;
use crate::knob::{Knob, KnobUnit};
use nandscape_rt::Nanos;

/// Those of every mount. A checkpoint that is due at once would be a loop without time.
const KNOBS: [Knob; 8] = [
    // The default, 60 s, is longer than the life of most volumes of a campaign.
    Knob::timer("checkpoint-interval", 100_000, 5_000_000_000, None),
    // Rounds of a campaign are short: what is cleaned by the kernel's clock would never be.
    Knob::timer("gc-sleep", GC_SLEEP_MIN_NS, 5_000_000_000, None),
    Knob::timer("idle-interval", 10_000, 100_000_000, None),
    Knob {
        name: "nat-entries",
        least: 16,
        most: 4_096,
        at_once: Some(1),
        never: Some(1 << 20),
        unit: KnobUnit::Count,
    },
    // Small volumes would never use a number of another NAT block than the first.
    Knob {
        name: "nid-search-from",
        least: 1,
        most: 400,
        at_once: Some(0),
        never: None,
        unit: KnobUnit::Count,
    },
    // A small volume is never cleaned so often that the area would be full.
    Knob {
        name: "gc-journal-blocks",
        least: 2,
        most: 64,
        at_once: Some(1),
        never: Some(GC_JOURNAL_BLOCKS as u64),
        unit: KnobUnit::Count,
    },
    Knob {
        name: "checkpoint-cost",
        least: 1,
        most: 512,
        at_once: Some(0),
        never: Some(u32::MAX as u64),
        unit: KnobUnit::Count,
    },
    Knob {
        name: "inodes",
        least: 64,
        most: 4_096,
        at_once: Some(1),
        never: Some(1 << 20),
        unit: KnobUnit::Count,
    },
];

/// The shortest sleep of the cleaner: a shorter one would be a loop without time.
const GC_SLEEP_MIN_NS: u64 = 100_000;

impl MountOptions {
    /// The timers and thresholds of such a mount, those of the page cache included.
    pub(crate) fn knobs(&self) -> Vec<Knob> {
        [&cache::KNOBS[..], &KNOBS].concat()
    }

    /// Sets one of them; whether there is one of that name.
    pub(crate) fn set_knob(&mut self, name: &str, value: u64) -> bool {
        match name {
            "checkpoint-interval" => self.checkpoint_interval = Nanos(value.max(1)),
            // One to the other as by default.
            "gc-sleep" => {
                let sleep = Nanos(value.max(GC_SLEEP_MIN_NS));
                self.gc_min_sleep = sleep;
                self.gc_max_sleep = Nanos(sleep.0.saturating_mul(2));
                self.gc_no_gc_sleep = Nanos(sleep.0.saturating_mul(10));
            }
            "idle-interval" => self.idle_interval = Nanos(value),
            "nat-entries" => self.nat_entries = value as usize,
            "nid-search-from" => self.nid_search_from = value as u32,
            "gc-journal-blocks" => {
                self.gc_journal_blocks = value.min(GC_JOURNAL_BLOCKS.into()) as u32;
            }
            "checkpoint-cost" => self.checkpoint_cost = value as u32,
            "inodes" => self.inodes = value as usize,
            _ => return self.cache.set_knob(name, value),
        }
        true
    }
}
