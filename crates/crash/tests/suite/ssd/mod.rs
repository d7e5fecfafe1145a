//! Campaigns on SSDs whose firmware is a device FTL, and on F2FS where their address spaces are append-only: the long form of
//! each is `nandscape crash --stack NAME`.

mod appended;
mod coupled;
mod interval;
mod pagemap;

use nandscape_crash::{CampaignReport, FaultRates, Options, StackChoice, run_campaign, run_seed};
use nandscape_ftl::{FtlConfig, OmittedRule};
use nandscape_media::{DeviceTiming, Geometry};
use std::ops::Range;

/// The shape of the stacks `ssd`, `iplfs-ssd` and `d2fs-ssd`, which campaigns scale down.
const GEOMETRY: Geometry = Geometry {
    groups: 8,
    units: 2,
    chunks: 512,
    sectors: 256,
    ws_min: 8,
    ws_opt: 8,
    mw_cunits: 0,
    maxoc: 0,
    maxocpu: 0,
};

/// Campaigns on such a device with these choices, and a timing of this name.
fn options(config: FtlConfig, timing: &str) -> Options {
    let preset = DeviceTiming::preset(timing).expect("a preset");
    let stack = StackChoice { geometry: GEOMETRY, config, timing: (timing.to_owned(), preset) };
    Options { stack: Some(stack), ..Options::default() }
}

/// Runs seeds, none of which may be violated; cuts must be many, and some of them during recovery.
fn held(options: &Options, seeds: Range<u64>) -> CampaignReport {
    let count = seeds.end - seeds.start;
    let report = run_campaign(options, seeds, |_| {});
    assert!(report.passed(), "{report}");
    let counts = report.counts;
    assert!(counts.cuts > 3 * count && counts.cuts_in_recovery > count / 4, "{report}");
    report
}

/// On edge-case devices programs fail often, and some requests are refused.
fn held_on_edge_cases(options: Options) {
    let counts = held(&Options { edge_cases: true, ..options }, 0..60).counts;
    assert!(counts.program_failures > 100 && counts.refused > 0, "{counts:?}");
}

/// Without faults nothing may be refused, however little space there is.
fn refused_nothing(options: Options) {
    let report = held(&Options { faults: Some(FaultRates::default()), ..options }, 0..60);
    assert_eq!(report.counts.refused, 0, "{report}");
}

/// Without a rule some seed is violated: the report, which ends there.
fn caught(rule: OmittedRule, options: Options, seeds: Range<u64>) -> CampaignReport {
    let options = Options { omit: Some(rule), violations_max: 1, ..options };
    let report = run_campaign(&options, seeds, |_| {});
    assert!(!report.passed(), "{rule:?} was never caught\n{report}");
    report
}

/// A seed is violated without a rule, and not with it.
fn caught_in_seed(rule: OmittedRule, options: &Options, seed: u64) {
    let outcome = run_seed(seed, &Options { omit: Some(rule), ..options.clone() });
    assert!(outcome.violation.is_some(), "{rule:?} was not caught in seed {seed}");
    let outcome = run_seed(seed, options);
    assert!(outcome.violation.is_none(), "{seed}: {:?}", outcome.violation);
}

/// Seeds as an environment variable has them, `FIRST..END`; those of CI without it.
fn seeds(variable: &str, of_ci: Range<u64>) -> Range<u64> {
    let given = std::env::var(variable).ok();
    let range = given.as_deref().and_then(|text| text.split_once(".."));
    range.map_or(of_ci, |(first, end)| first.parse().unwrap()..end.parse().unwrap())
}
