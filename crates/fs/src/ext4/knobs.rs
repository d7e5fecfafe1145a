//! ext4's timers and thresholds: all that a seed of a campaign draws about a mount.

use super::options::{Commit, MountOptions};
use crate::cache;
use crate::knob::{Knob, KnobUnit};
use nandscape_rt::Nanos;

/// Those of every mount.
const KNOBS: [Knob; 7] = [
    Knob::timer("commit-interval", 100_000, 5_000_000_000, Some(0)),
    // The defaults, 5 s and 30 s, are longer than the life of most volumes of a campaign.
    Knob::timer("home-period", 100_000, 100_000_000, None),
    Knob::timer("home-age", 100_000, 500_000_000, Some(0)),
    Knob {
        name: "metadata-buffers",
        least: 64,
        most: 4_096,
        at_once: None,
        never: Some(1 << 20),
        unit: KnobUnit::Blocks,
    },
    Knob {
        name: "inodes",
        least: 64,
        most: 4_096,
        at_once: Some(1),
        never: Some(1 << 20),
        unit: KnobUnit::Count,
    },
    // A larger part would not leave room for one transaction behind the one on its way.
    Knob {
        name: "transaction",
        least: 16,
        most: 25,
        at_once: None,
        never: None,
        unit: KnobUnit::Percent,
    },
    Knob {
        name: "tail-move",
        least: 1,
        most: 60,
        at_once: Some(0),
        never: Some(101),
        unit: KnobUnit::Percent,
    },
];

/// Those of rings of file-level records.
const RINGS: [Knob; 2] = [
    Knob {
        name: "record-rings",
        least: 1,
        most: 4,
        at_once: None,
        never: None,
        unit: KnobUnit::Count,
    },
    Knob {
        name: "ring-blocks",
        least: 12,
        most: 64,
        at_once: None,
        never: None,
        unit: KnobUnit::Blocks,
    },
];

impl MountOptions {
    /// The timers and thresholds of such a mount, those of the page cache included.
    pub(crate) fn knobs(&self) -> Vec<Knob> {
        let rings = match self.commit {
            Commit::Jbd2 => &[][..],
            Commit::Ijournal { .. } => &RINGS,
        };
        [&cache::KNOBS[..], &KNOBS, rings].concat()
    }

    /// Sets one of them; whether there is one of that name.
    pub(crate) fn set_knob(&mut self, name: &str, value: u64) -> bool {
        let (percent, count) = (value.min(u8::MAX.into()) as u8, value as usize);
        match (name, &mut self.commit) {
            ("commit-interval", _) => self.commit_interval = Nanos(value),
            ("home-period", _) => self.home_period = Nanos(value.max(1)),
            ("home-age", _) => self.home_age = Nanos(value),
            ("metadata-buffers", _) => self.buffers = count,
            ("inodes", _) => self.inodes = count,
            ("transaction", _) => self.transaction_percent = percent.clamp(1, 25),
            ("tail-move", _) => self.tail_move_percent = percent,
            ("record-rings", Commit::Ijournal { slots, .. }) => *slots = value as u32,
            ("ring-blocks", Commit::Ijournal { slot_blocks, .. }) => *slot_blocks = value as u32,
            _ => return self.cache.set_knob(name, value),
        }
        true
    }
}
