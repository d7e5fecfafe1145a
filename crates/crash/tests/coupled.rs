//! Campaigns on a coupled SSD, whose host follows the moves that it makes: it keeps every promise with a volatile and
//! with a power-safe buffer, and each safety rule left out is noticed. `nandscape crash --stack d2fs-ssd` without `--fs`
//! is the long form.

use nandscape_crash::{CampaignReport, Options, StackChoice, run_campaign};
use nandscape_ftl::coupled::Config;
use nandscape_ftl::device::{BufferConfig, Config as PagesConfig};
use nandscape_ftl::{FtlConfig, OmittedRule};
use nandscape_media::{DeviceTiming, Geometry};

/// The shape of the stack `ssd`, which the campaign scales down.
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

fn options(power_safe: bool, timing: &str) -> Options {
    let plain = Config::default();
    let buffer = BufferConfig { power_safe, ..plain.pages.buffer };
    let config = Config { pages: PagesConfig { buffer, ..plain.pages }, ..plain };
    let preset = DeviceTiming::preset(timing).expect("a preset");
    let timing = (timing.to_owned(), preset);
    let stack = StackChoice { geometry: GEOMETRY, config: FtlConfig::Coupled(config), timing };
    Options { stack: Some(stack), ..Options::default() }
}

fn held(options: &Options, seeds: std::ops::Range<u64>) -> CampaignReport {
    let count = seeds.end - seeds.start;
    let report = run_campaign(options, seeds, |_| {});
    assert!(report.held(), "{report}");
    let counts = report.counts;
    assert!(counts.cuts > 3 * count && counts.cuts_in_recovery > count / 4, "{report}");
    report
}

/// The seeds of a run: more of them, and others, by `NANDSCAPE_COUPLED_SEEDS=FIRST..END`.
fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("NANDSCAPE_COUPLED_SEEDS").ok();
    let range = given.as_deref().and_then(|text| text.split_once(".."));
    range.map_or(0..300, |(first, end)| first.parse().unwrap()..end.parse().unwrap())
}

/// With programs and erases that fail as the seed draws them.
#[test]
fn coupled_ssds_keep_every_promise() {
    for (power_safe, timing) in
        [(false, "nvmevirt-970pro"), (true, "nvmevirt-970pro"), (false, "qemu-ocssd")]
    {
        let counts = held(&options(power_safe, timing), seeds()).counts;
        assert!(counts.program_failures > 0 && counts.erase_failures > 0, "{counts:?}");
        assert!(counts.sectors_discarded > 10_000, "{counts:?}");
    }
}

/// Without faults nothing may be refused, but what the host asks twice.
#[test]
fn edge_case_coupled_ssds_keep_every_promise() {
    for power_safe in [false, true] {
        let options = Options { edge_cases: true, ..options(power_safe, "nvmevirt-970pro") };
        let counts = held(&options, 0..200).counts;
        assert!(counts.program_failures > 100 && counts.refused > 0, "{counts:?}");
    }
}

fn assert_caught(rule: OmittedRule, power_safe: bool) {
    let options = options(power_safe, "qemu-ocssd");
    let options = Options { omit: Some(rule), violations_max: 1, ..options };
    let report = run_campaign(&options, 0..1_000, |_| {});
    assert!(!report.held(), "{rule:?} was never caught\n{report}");
    println!("{}: {}", rule.name(), report.violations[0].seed);
}

/// Rules that seeds find soon. Those of moves and records that take thousands of seeds are not among them.
#[test]
fn every_rule_left_out_is_caught() {
    for rule in [
        OmittedRule::PreflushDrain,
        OmittedRule::LostTrims,
        OmittedRule::ProgramOrder,
        OmittedRule::ZoneSave,
        OmittedRule::TornPages,
        OmittedRule::CopyCompletion,
        OmittedRule::RedirectedDiscard,
        OmittedRule::StaleGeneration,
    ] {
        assert_caught(rule, false);
    }
    assert_caught(OmittedRule::BufferSave, true);
}
