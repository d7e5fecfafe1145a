//! Power cuts under a file system: on a pblk over media, or on the reference device.
//!
//! A seed chooses device, load and cuts. After each cut the FTL recovers, then the journal, each perhaps
//! cut again on the way; then every file and name must be one that the `model` permits
//! (docs/semantics/posix.md). A sample of what the cuts left also goes to an [`Oracle`]: other tools
//! that recover the same image, and judge what our recovery made of it. A seed's run is a function of
//! the seed and the options alone, with an oracle or without.

mod device;
mod load;
mod model;
mod options;
mod rounds;
mod tree;

use crate::drive::Trouble;
use crate::outcome::{SeedOutcome, Violation};
use crate::pblk::{broken, draw_device};
use crate::scenario::Options;
use device::Medium;
use nandscape_block::{MemDevice, SectorData};
use nandscape_rt::{Nanos, Stream};
pub use options::FsOptions;
use rounds::Run;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Sectors of a volume. Little beside a journal of the smallest size.
pub const VOLUME_SECTORS: u64 = 2_560;
/// Sectors of the largest media below it.
const DEVICE_SECTORS: u32 = 16_384;
/// Latency of the reference device.
const LATENCY: Nanos = Nanos::from_us(40);

/// The content of a volume, sector by sector.
pub type Image = Vec<SectorData>;

/// Tools that share nothing with what they judge.
pub trait Oracle {
    /// Recovers an image that a power cut left.
    ///
    /// # Errors
    /// Why that failed, or what was wrong with the image beyond its journal.
    fn recover(&self, image: &Image) -> Result<Image, String>;

    /// Finds nothing wrong with an image that needs no recovery.
    ///
    /// # Errors
    /// What it found, or why it could not look.
    fn check(&self, image: &Image) -> Result<(), String>;
}

/// What the file system stands on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Base {
    /// An FTL and media that the seed draws, or whose stack is given.
    Flash(Box<Options>),
    /// The reference device, of whose volatile cache any subset survives.
    Memory,
}

/// Runs one seed. A panic is a violation like any other.
#[must_use]
pub fn run_fs_seed(seed: u64, options: &FsOptions, oracle: Option<&dyn Oracle>) -> SeedOutcome {
    let (line, medium) = match &options.base {
        Base::Memory => {
            let device = MemDevice::new(VOLUME_SECTORS).with_latency(LATENCY);
            let rng = Stream::new(seed, "memory");
            (format!("seed={seed} memory"), Medium::Memory(Box::new(device), rng))
        }
        Base::Flash(flash) => {
            let flash = Options {
                sectors_min: VOLUME_SECTORS,
                sectors_max: DEVICE_SECTORS,
                ..(**flash).clone()
            };
            match draw_device(seed, &flash) {
                Ok((scenario, target)) => (scenario.to_string(), Medium::Flash(Box::new(target))),
                Err((scenario, what)) => return broken(&scenario, what),
            }
        }
    };
    let mut run = Run::new(seed, options, oracle);
    let line = format!("{line} {run}");
    // Nothing of a panicked run is looked at again but its counts and its story.
    let result = catch_unwind(AssertUnwindSafe(|| run.rounds(medium)));
    let result =
        result.unwrap_or_else(|_| Err(Trouble::new("the file system or the FTL panicked")));
    let violation = result.err().map(|trouble| {
        Box::new(Violation {
            seed,
            round: run.round(),
            what: trouble.what,
            lba: None,
            expected: Vec::new(),
            got: String::new(),
            story: run.story(),
            scenario: line.clone(),
        })
    });
    SeedOutcome { seed, scenario: line, counts: run.counts(), violation }
}
