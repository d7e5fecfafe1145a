//! One seed: its device, its run or what is left of it, and the search for the least part that shows its violation.

use super::draw::zones::adversary_caps;
use super::power_switch::Medium;
use super::reduced::{Left, Notes};
use super::rounds::Run;
use super::{Base, FsOptions, Oracle};
use crate::device::drive::CheckFailure;
use crate::device::target::{broken, draw_device, without_device};
use crate::outcome::{SeedOutcome, Violation};
use crate::settings::Settings;
use crate::shrink::minimised::{Minimised, OnRun};
use crate::shrink::reduction::{Cut, Reduction};
use crate::shrink::search::{Budget, Ended, Failing, shrink};
use nandscape_block::{AdversaryDevice, Region, RegionKind};
use nandscape_rt::Stream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Runs one seed, or what is left of it. A panic is a violation like any other.
#[must_use]
pub fn run_fs_seed(seed: u64, options: &FsOptions, oracle: Option<&dyn Oracle>) -> SeedOutcome {
    let Some(only) = &options.only else { return once(seed, options, oracle, Left::All).0 };
    let (_, whole) = once(seed, options, oracle, Left::Noted);
    let left = Left::Reduced(Rc::new(only.clone()), Rc::new(whole.draws));
    once(seed, options, oracle, left).0
}

/// Shrinks the violation of a seed, if it has one, within a budget; `on_run` hears
/// of each, and says whether to go on.
pub fn shrink_fs_seed(
    seed: u64,
    options: &FsOptions,
    oracle: Option<&dyn Oracle>,
    budget: Budget,
    on_run: &mut OnRun<'_>,
) -> Option<Minimised> {
    let (outcome, whole) = once(seed, options, oracle, Left::Noted);
    let wanted = outcome.violation?.class();
    let draws = Rc::new(whole.draws);
    let shrunk = shrink(&whole.reached, budget, &mut |candidate: &Reduction| {
        if !on_run() {
            return Ended { requests: 0, failing: None };
        }
        let left = Left::Reduced(Rc::new(candidate.clone()), Rc::clone(&draws));
        let (outcome, Notes { reached, pins, .. }) = once(seed, options, oracle, left);
        let violation = outcome.violation.filter(|violation| violation.class() == wanted);
        let failing = violation.map(|violation| Failing { reached, pins, found: violation });
        Ended { requests: outcome.counts.requests, failing }
    })?;
    Some(Minimised {
        reduction: shrunk.reduction,
        operations_before: shrunk.operations_before,
        runs: shrunk.runs,
        violation: *shrunk.found,
    })
}

/// One run, and what it noted.
fn once(
    seed: u64,
    options: &FsOptions,
    oracle: Option<&dyn Oracle>,
    left: Left,
) -> (SeedOutcome, Notes) {
    let (device, medium) = match base(seed, options) {
        Ok(base) => base,
        Err(outcome) => return (*outcome, Notes::default()),
    };
    let options = &options.on(medium.caps());
    let mut run = Run::new(seed, options, oracle, left);
    let scenario = device.and(run.settings());
    // Nothing of a panicked run is looked at again but its counts, its event log and its notes.
    let result = catch_unwind(AssertUnwindSafe(|| run.rounds(medium)));
    let result = result
        .unwrap_or_else(|why| Err(CheckFailure::panicked("the file system or the FTL", &*why)));
    let violation = result.err().map(|trouble| {
        Box::new(Violation {
            seed,
            round: run.round(),
            what: trouble.what,
            lba: None,
            expected: Vec::new(),
            got: String::new(),
            event_log: run.event_log(),
            calls: run.calls(),
            scenario: scenario.clone(),
        })
    });
    let mut notes = run.notes.take();
    if violation.is_some() && !notes.pins.contains_key(&run.round()) {
        let round = notes.reached.rounds.get_mut(&run.round());
        round.into_iter().for_each(|round| round.cut = Cut::None);
    }
    let coverage = run.coverage();
    (SeedOutcome { seed, scenario, counts: run.counts(), coverage, violation }, notes)
}

/// What the file system of a seed stands on, and what the seed chose about it; else the outcome without it.
pub(super) fn base(seed: u64, options: &FsOptions) -> Result<(Settings, Medium), Box<SeedOutcome>> {
    let adversary = || Settings::default().with("seed", seed).with("base", "adversary");
    match &options.base {
        Base::Adversary => {
            let rng = Stream::new(seed, "adversary");
            let device = AdversaryDevice::new(options.volume_sectors(), rng);
            Ok((adversary(), Medium::adversary(device)))
        }
        Base::ZonedAdversary => {
            let rng = Stream::new(seed, "adversary");
            let caps = adversary_caps(seed, options.journals());
            let regions: Vec<_> = caps.regions.iter().map(region_settings).collect();
            let line = adversary().with("regions", regions);
            match AdversaryDevice::with_zones(caps, rng) {
                Ok(device) => Ok((line, Medium::adversary(device))),
                Err(error) => Err(Box::new(without_device(seed, line, error.to_string()))),
            }
        }
        Base::Flash(flash) => match draw_device(seed, &options.device_options(flash)) {
            Ok((scenario, target)) => {
                Ok((scenario.device_settings(), Medium::Flash(Box::new(target))))
            }
            Err((scenario, what)) => Err(Box::new(broken(&scenario, what))),
        },
    }
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
