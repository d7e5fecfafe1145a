//! Power cuts under a file system: on an FTL over media, or on a hostile device in memory.
//!
//! A seed chooses device, load and cuts. After each cut the FTL recovers, then the journal, each perhaps
//! cut again on the way; then every file and name must be one that the `model` permits
//! (docs/semantics/posix.md). A sample of what the cuts left also goes to an [`Oracle`]: other tools
//! that recover the same image, and judge what our recovery made of it. A seed's run is a function of
//! the seed and the options alone, with an oracle or without.

mod damage;
mod draw;
mod glances;
mod load;
mod model;
mod options;
mod oracle;
mod other_cuts;
mod power_switch;
mod rounds;
mod tree;

use crate::device::drive::CheckFailure;
use crate::device::target::{broken, draw_device, without_device};
use crate::outcome::{SeedOutcome, Violation};
use crate::settings::Settings;
use draw::zones::adversary_caps;
use nandscape_block::{AdversaryDevice, Region, RegionKind};
use nandscape_fs::contract::FsError;
use nandscape_rt::{Nanos, Stream};
pub use options::{Base, DAMAGE_EVERY, FsOptions};
pub use oracle::{Image, Oracle};
use power_switch::Medium;
use rounds::Run;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Latency of the device under copies of volumes.
const LATENCY: Nanos = Nanos::from_us(40);

impl From<FsError> for CheckFailure {
    fn from(error: FsError) -> Self {
        Self::new(error.to_string())
    }
}

/// Runs one seed. A panic is a violation like any other.
#[must_use]
pub fn run_fs_seed(seed: u64, options: &FsOptions, oracle: Option<&dyn Oracle>) -> SeedOutcome {
    let adversary = || Settings::default().with("seed", seed).with("base", "adversary");
    let (device, medium) = match &options.base {
        Base::Adversary => {
            let rng = Stream::new(seed, "adversary");
            let device = AdversaryDevice::new(options.volume_sectors(), rng);
            (adversary(), Medium::adversary(device))
        }
        Base::ZonedAdversary => {
            let rng = Stream::new(seed, "adversary");
            let caps = adversary_caps(seed, options.journals());
            let regions: Vec<_> = caps.regions.iter().map(region_settings).collect();
            let line = adversary().with("regions", regions);
            match AdversaryDevice::with_zones(caps, rng) {
                Ok(device) => (line, Medium::adversary(device)),
                Err(error) => return without_device(seed, line, error.to_string()),
            }
        }
        Base::Flash(flash) => match draw_device(seed, &options.device_options(flash)) {
            Ok((scenario, target)) => (scenario.device_settings(), Medium::Flash(Box::new(target))),
            Err((scenario, what)) => return broken(&scenario, what),
        },
    };
    let options = &options.on(medium.caps());
    let mut run = Run::new(seed, options, oracle);
    let scenario = device.and(run.settings());
    // Nothing of a panicked run is looked at again but its counts and its event log.
    let result = catch_unwind(AssertUnwindSafe(|| run.rounds(medium)));
    let result =
        result.unwrap_or_else(|_| Err(CheckFailure::new("the file system or the FTL panicked")));
    let violation = result.err().map(|trouble| {
        Box::new(Violation {
            seed,
            round: run.round(),
            what: trouble.what,
            lba: None,
            expected: Vec::new(),
            got: String::new(),
            event_log: run.event_log(),
            scenario: scenario.clone(),
        })
    });
    let coverage = run.coverage();
    SeedOutcome { seed, scenario, counts: run.counts(), coverage, violation }
}

/// A region of a device.
fn region_settings(region: &Region) -> Settings {
    let kind = match region.kind {
        RegionKind::Random => "random",
        RegionKind::Zones(_) => "zones",
        RegionKind::Append => "append",
        RegionKind::DeviceOwned { .. } => "device-owned",
    };
    Settings::default()
        .with("kind", kind)
        .with("first_lba", region.range.start)
        .with("sectors", region.sectors())
        .with("zones", region.zones())
}
