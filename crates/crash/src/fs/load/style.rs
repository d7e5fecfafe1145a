//! What a seed chooses about the load of all writers: how many there are, how long they work, and how often
//! they do what.

use crate::draw::sample::{log_uniform, pick};
use nandscape_rt::{Nanos, Stream};
use std::fmt;

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

/// All steps, each with its usual weight.
const STEPS: [(Step, u64); 31] = [
    (Step::Write, 60),
    (Step::WritePart, 24),
    (Step::Append, 16),
    (Step::UseOpen, 16),
    (Step::Read, 8),
    (Step::Truncate, 20),
    (Step::Allocate, 16),
    (Step::Owner, 4),
    (Step::Xattr, 8),
    (Step::Look, 6),
    (Step::Symlink, 3),
    (Step::Link, 8),
    (Step::Unlink, 12),
    (Step::Rename, 16),
    (Step::Exchange, 4),
    (Step::MakeDirectory, 8),
    (Step::RemoveDirectory, 4),
    (Step::MoveDirectory, 6),
    (Step::Open, 10),
    (Step::Close, 8),
    (Step::SyncBeside, 12),
    (Step::Pause, 12),
    (Step::BlocksAgain, 4),
    (Step::Shelf, 6),
    (Step::Redirty, 4),
    (Step::GrowAndSync, 4),
    (Step::Preallocate, 4),
    (Step::Replace, 4),
    (Step::Orphan, 4),
    (Step::ManyExtents, 2),
    (Step::Fill, 1),
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
    weights: [u64; STEPS.len()],
}

impl Style {
    pub(crate) fn draw(seed: u64, scatters: bool) -> Self {
        let rng = &mut Stream::new(seed, "fs-load");
        let leaning = rng.chance(0.8);
        let weights = STEPS.map(|(_, usual)| {
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
            weights,
        }
    }

    /// Draws a step.
    pub(super) fn step(&self, rng: &mut Stream) -> Step {
        STEPS[pick(rng, &self.weights)].0
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writers, operations, sync_percent, pause_ns, spare_blocks, .. } = self;
        let Self { scatter_percent, weights, .. } = self;
        write!(
            f,
            "writers={writers} operations={operations} syncs={sync_percent}% pause={} spare={spare_blocks}",
            Nanos(*pause_ns)
        )?;
        if *scatter_percent > 0 {
            write!(f, " scatter={scatter_percent}%")?;
        }
        let leaning = STEPS.iter().zip(weights).filter(|((_, usual), weight)| **weight > 4 * usual);
        let much: Vec<String> = leaning.map(|((step, _), _)| format!("{step:?}")).collect();
        let none = STEPS.iter().zip(weights).filter(|(_, weight)| **weight == 0);
        let none: Vec<String> = none.map(|((step, _), _)| format!("{step:?}")).collect();
        write!(f, " much={} none={}", much.join("+"), none.join("+"))
    }
}
