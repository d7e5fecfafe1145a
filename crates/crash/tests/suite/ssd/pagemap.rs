//! Campaigns on a conventional SSD: it keeps every promise with a volatile and with a power-safe buffer, on edge-case
//! devices and with faults, and each safety rule left out is noticed. `nandscape crash --stack ssd` is the long form.

use crate::ssd::{caught, caught_in_seed, held, held_on_edge_cases, refused_nothing};
use nandscape_crash::Options;
use nandscape_ftl::device::{BufferConfig, Config};
use nandscape_ftl::{FtlConfig, OmittedRule};

fn options(power_safe: bool) -> Options {
    let plain = Config::default();
    let config = Config { buffer: BufferConfig { power_safe, ..plain.buffer }, ..plain };
    super::options(FtlConfig::Device(config), "nvmevirt-970pro")
}

/// With faults as the seed draws them, lost sectors too.
#[test]
fn ssd_keeps_every_promise() {
    for power_safe in [false, true] {
        let counts = held(&options(power_safe), 0..200).counts;
        assert!(counts.program_failures > 0 && counts.erase_failures > 0 && counts.unreadable > 0);
    }
}

/// Odd write rules, few parallel units, hardly any space, cells that soon wear out, up to every third program
/// failing, and collection that begins early or late.
#[test]
fn edge_case_ssds_keep_every_promise() {
    for power_safe in [false, true] {
        held_on_edge_cases(options(power_safe));
    }
}

/// Without faults nothing may be refused, however little space there is.
#[test]
fn a_good_ssd_refuses_nothing() {
    for power_safe in [false, true] {
        refused_nothing(options(power_safe));
    }
}

fn assert_caught(rule: OmittedRule, power_safe: bool) {
    let report = caught(rule, options(power_safe), 0..300);
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
        (OmittedRule::SettledGate, 2),
        (OmittedRule::TrimSequence, 3),
        (OmittedRule::CompactedTrims, 786),
        (OmittedRule::BufferedTrims, 131),
        (OmittedRule::CopyCompletion, 0),
        (OmittedRule::TrimGate, 8),
        (OmittedRule::FuaInstances, 9),
        (OmittedRule::EraseGate, 0),
    ] {
        caught_in_seed(rule, &options(false), seed);
    }
}
