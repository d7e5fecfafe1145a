//! What is given to campaigns on a file system; the seed chooses the rest.

use super::draw::knobs::draw_knob;
use super::draw::{FsDraw, Mounted, sizes};
use crate::draw::scenario::Options;
use nandscape_fs::{FsConfig, Knob};
use std::fmt;

/// What the file system stands on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Base {
    /// An FTL and media that the seed draws, or whose stack is given.
    Flash(Box<Options>),
    /// A device in memory that does whatever the crash model permits
    /// ([`nandscape_block::AdversaryDevice`]).
    Adversary,
}

/// Of so many cuts one leaves copies that are damaged, unless somebody says otherwise.
pub const DAMAGE_EVERY: u64 = 20;

/// What is given from outside; the seed chooses the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FsOptions {
    /// What the file system stands on.
    pub base: Base,
    /// The file system: its modes, and the rule that it leaves out, if any.
    fs: FsConfig,
    /// Rounds a seed, one cut each at least.
    pub rounds: u32,
    /// The oracle sees one in so many cuts.
    pub oracle_every: u64,
    /// Copies of what one in so many cuts left are damaged, by a draw of the seed; 0: none.
    pub damage_every: u64,
}

impl FsOptions {
    /// A file system on this base, as small as campaigns need it.
    #[must_use]
    pub fn new(base: Base, fs: FsConfig) -> Self {
        Self { base, fs: fs.in_small(), rounds: 4, oracle_every: 20, damage_every: DAMAGE_EVERY }
    }

    /// The file system.
    #[must_use]
    pub const fn fs(&self) -> &FsConfig {
        &self.fs
    }

    /// Sectors of a volume.
    #[must_use]
    pub const fn volume_sectors(&self) -> u64 {
        sizes(self.fs.kind()).0
    }

    /// Sectors of the largest media below it.
    pub(super) const fn device_sectors(&self) -> u32 {
        sizes(self.fs.kind()).1
    }

    /// How a seed makes and mounts its volume; `mount` counts its mounts.
    pub(super) fn config(&self, seed: u64, mount: u64) -> FsConfig {
        let mut config = self.fs.for_mount(&Mounted { seed, mount });
        for (knob, value) in self.knobs(seed) {
            let set = config.set_knob(knob.name, value);
            debug_assert_eq!(set, Ok(()));
        }
        config
    }

    /// Every timer and threshold, with the value that a seed draws.
    fn knobs(&self, seed: u64) -> impl Iterator<Item = (Knob, u64)> {
        self.fs.knobs().into_iter().map(move |knob| (knob, draw_knob(seed, &knob)))
    }

    /// The same on one line.
    pub(super) fn write_knobs(&self, seed: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.knobs(seed).try_for_each(|(knob, value)| write!(f, " {}", knob.show(value)))
    }

    /// Whether tools of others can recover such a volume, or only check what our recovery left.
    pub(super) fn oracle_recovers(&self) -> bool {
        self.fs.oracle_recovers()
    }
}

impl fmt::Display for FsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rounds={}", self.fs.describe(), self.rounds)
    }
}
