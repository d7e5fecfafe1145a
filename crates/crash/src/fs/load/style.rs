//! What a seed chooses about the load of all writers: how many there are, how long they work, and how often
//! they do what.

use super::full::{Full, Layer};
use crate::draw::sample::{log_uniform, pick};
use crate::settings::Settings;
use nandscape_rt::Stream;

/// What a writer does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Write,
    WritePart,
    Append,
    UseOpen,
    Read,
    Truncate,
    Allocate,
    Owner,
    Xattr,
    Look,
    Symlink,
    Link,
    Unlink,
    Rename,
    Exchange,
    MakeDirectory,
    RemoveDirectory,
    MoveDirectory,
    Open,
    Close,
    SyncBeside,
    Pause,
    BlocksAgain,
    Shelf,
    Redirty,
    GrowAndSync,
    Preallocate,
    Replace,
    Orphan,
    ManyExtents,
    Fill,
}

/// All steps, each with its name and its usual weight.
const STEPS: [(Step, &str, u64); 31] = [
    (Step::Write, "write", 60),
    (Step::WritePart, "write-part", 24),
    (Step::Append, "append", 16),
    (Step::UseOpen, "use-open", 16),
    (Step::Read, "read", 8),
    (Step::Truncate, "truncate", 20),
    (Step::Allocate, "allocate", 16),
    (Step::Owner, "owner", 4),
    (Step::Xattr, "xattr", 8),
    (Step::Look, "look", 6),
    (Step::Symlink, "symlink", 3),
    (Step::Link, "link", 8),
    (Step::Unlink, "unlink", 12),
    (Step::Rename, "rename", 16),
    (Step::Exchange, "exchange", 4),
    (Step::MakeDirectory, "make-directory", 8),
    (Step::RemoveDirectory, "remove-directory", 4),
    (Step::MoveDirectory, "move-directory", 6),
    (Step::Open, "open", 10),
    (Step::Close, "close", 8),
    (Step::SyncBeside, "sync-beside", 12),
    (Step::Pause, "pause", 12),
    (Step::BlocksAgain, "blocks-again", 4),
    (Step::Shelf, "shelf", 6),
    (Step::Redirty, "redirty", 4),
    (Step::GrowAndSync, "grow-and-sync", 4),
    (Step::Preallocate, "preallocate", 4),
    (Step::Replace, "replace", 4),
    (Step::Orphan, "orphan", 4),
    (Step::ManyExtents, "many-extents", 2),
    (Step::Fill, "fill", 1),
];

/// What a seed makes of a usual weight: this, in quarters.
const LEANS: [u64; 6] = [0, 1, 4, 4, 8, 24];

/// What a seed chooses about the load of all writers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Style {
    /// Writers.
    pub(crate) writers: u16,
    /// Operations of each until it stops.
    pub(crate) operations: u64,
    /// Of a hundred operations so many are syncs.
    pub(crate) sync_percent: u64,
    /// Longest pause; none is 0.
    pub(crate) pause_ns: u64,
    /// Blocks of the volume that are left to the writers.
    pub(crate) spare_blocks: u64,
    /// Of a hundred operations so many scatter writes: where sections are to be cleaned with no checkpoint between.
    pub(crate) scatter_percent: u64,
    /// What is driven to its end, where that is what a campaign is about.
    pub(crate) full: Option<Full>,
    weights: [u64; STEPS.len()],
}

impl Style {
    pub(crate) fn draw(seed: u64, scatters: bool, full: bool) -> Self {
        let usual = Self::usual(seed, scatters);
        if full { usual.to_the_end(&mut Stream::new(seed, "fs-full")) } else { usual }
    }

    /// With less room and fewer operations, of which some drive layers to their ends.
    fn to_the_end(self, rng: &mut Stream) -> Self {
        let full = Full::draw(rng);
        let spare_blocks = match full.layer {
            Layer::Log => 640,
            _ => 24 << rng.below(5),
        };
        Self {
            writers: [1, 1, 1, 2, 3][rng.below(5) as usize],
            operations: 8 + rng.below(24),
            spare_blocks,
            full: Some(full),
            ..self
        }
    }

    fn usual(seed: u64, scatters: bool) -> Self {
        let rng = &mut Stream::new(seed, "fs-load");
        let leaning = rng.chance(0.8);
        let weights = STEPS.map(|(.., usual)| {
            let lean = LEANS[rng.below(LEANS.len() as u64) as usize];
            usual * if leaning { lean } else { 4 }
        });
        Self {
            writers: 1 + rng.below(4) as u16,
            operations: 25 << pick(rng, &[3, 3, 3, 3, 3, 2, 1]),
            sync_percent: [5, 15, 30, 50][rng.below(4) as usize],
            pause_ns: if rng.chance(0.5) { log_uniform(rng, 1 << 34) } else { 0 },
            spare_blocks: if rng.chance(0.25) { 48 + rng.below(300) } else { 640 },
            scatter_percent: match scatters {
                true => [0, 30, 80, 95][Stream::new(seed, "fs-scatter").below(4) as usize],
                false => 0,
            },
            full: None,
            weights,
        }
    }

    /// Draws a step.
    pub(super) fn step(&self, rng: &mut Stream) -> Step {
        STEPS[pick(rng, &self.weights)].0
    }
}

impl Style {
    /// All of it, as keys and values; of the weights of steps those that are far from usual.
    pub(crate) fn settings(&self) -> Settings {
        let named = |is: fn(u64, u64) -> bool| {
            let steps = STEPS.iter().zip(self.weights);
            let steps = steps.filter(|((.., usual), weight)| is(*usual, *weight));
            steps.map(|((_, name, _), _)| *name).collect::<Vec<_>>()
        };
        Settings::default()
            .with("writers", u32::from(self.writers))
            .with("operations", self.operations)
            .with("sync_percent", self.sync_percent)
            .with("pause_max_ns", self.pause_ns)
            .with("spare_blocks", self.spare_blocks)
            .with("scatter_percent", self.scatter_percent)
            .with_some("full_layer", self.full.map(|full| full.layer.name()))
            .with_some("full_percent", self.full.map(|full| full.percent))
            .with("frequent", named(|usual, weight| weight > 4 * usual))
            .with("never", named(|_, weight| weight == 0))
    }
}
