//! Campaigns on a conventional SSD: it keeps every promise with a volatile and with a power-safe buffer, on edge-case
//! devices and with faults, and each safety rule left out is noticed. `nandscape crash --stack ssd` is the long form.

use nandscape_crash::{CampaignReport, Options, StackChoice, run_campaign, run_seed};
use nandscape_ftl::device::{BufferConfig, Config};
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

fn options(power_safe: bool) -> Options {
    let plain = Config::default();
    let config = Config { buffer: BufferConfig { power_safe, ..plain.buffer }, ..plain };
    let timing = DeviceTiming::preset("nvmevirt-970pro").expect("a preset");
    let timing = ("nvmevirt-970pro".to_owned(), timing);
    let stack = StackChoice { geometry: GEOMETRY, config: FtlConfig::Device(config), timing };
    Options { stack: Some(stack), ..Options::default() }
}

fn held(options: &Options, seeds: u64) -> CampaignReport {
    let report = run_campaign(options, 0..seeds, |_| {});
    assert!(report.held(), "{report}");
    assert!(
        report.counts.cuts > 3 * seeds && report.counts.cuts_in_recovery > seeds / 4,
        "{report}"
    );
    report
}

/// With faults as the seed draws them, lost sectors too.
#[test]
fn ssd_keeps_every_promise() {
    for power_safe in [false, true] {
        let counts = held(&options(power_safe), 400).counts;
        assert!(counts.program_failures > 0 && counts.erase_failures > 0 && counts.unreadable > 0);
    }
}

/// Odd write rules, few parallel units, hardly any space, cells that soon wear out, up to every third program
/// failing, and collection that begins early or late.
#[test]
fn edge_case_ssds_keep_every_promise() {
    for power_safe in [false, true] {
        let counts = held(&Options { edge_cases: true, ..options(power_safe) }, 200).counts;
        assert!(counts.program_failures > 100 && counts.refused > 0, "{counts:?}");
    }
}

/// Without faults nothing may be refused, however little space there is.
#[test]
fn a_good_ssd_refuses_nothing() {
    for power_safe in [false, true] {
        let faults = Some(nandscape_crash::FaultRates::default());
        let report = held(&Options { faults, ..options(power_safe) }, 300);
        assert_eq!(report.counts.refused, 0, "{report}");
    }
}

fn assert_caught(rule: OmittedRule, power_safe: bool) {
    let options = Options { omit: Some(rule), violations_max: 1, ..options(power_safe) };
    let report = run_campaign(&options, 0..300, |_| {});
    assert!(!report.held(), "{rule:?} was never caught\n{report}");
    let violation = &report.violations[0];
    assert!(violation.lba.is_some(), "caught by its content, not by accident: {violation}");
}

#[test]
fn every_rule_left_out_is_caught() {
    for rule in [
        OmittedRule::Sequence,
        OmittedRule::EraseRule,
        OmittedRule::PreflushDrain,
        OmittedRule::LostTrims,
        OmittedRule::OneShotFlush,
        OmittedRule::DropEarly,
    ] {
        assert_caught(rule, false);
    }
    assert_caught(OmittedRule::BufferSave, true);
}

/// Rules that only a narrow window shows: for each a seed that finds it missing.
#[test]
fn narrow_rules_left_out_are_caught() {
    for (rule, seed) in [
        (OmittedRule::SettledGate, 13),
        (OmittedRule::TrimSequence, 29),
        (OmittedRule::CompactedTrims, 35),
        (OmittedRule::BufferedTrims, 45),
        (OmittedRule::CopyCompletion, 4),
        (OmittedRule::TrimGate, 8),
        (OmittedRule::FuaInstances, 9),
        (OmittedRule::EraseGate, 4),
    ] {
        let outcome = run_seed(seed, &Options { omit: Some(rule), ..options(false) });
        assert!(outcome.violation.is_some(), "{rule:?} was not caught in seed {seed}");
        let outcome = run_seed(seed, &options(false));
        assert!(outcome.violation.is_none(), "{seed}: {:?}", outcome.violation);
    }
}
