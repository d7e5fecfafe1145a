//! Campaigns on an SSD with append-only regions and interval maps: it keeps every promise, also with a power-safe buffer and
//! on edge-case devices, and each safety rule left out is noticed. `nandscape crash --stack iplfs-ssd` is the long form.

use crate::ssd::{caught, caught_in_seed, held, held_on_edge_cases, refused_nothing};
use nandscape_crash::{Options, run_seed};
use nandscape_ftl::device::{BufferConfig, Config as PagesConfig};
use nandscape_ftl::interval::Config;
use nandscape_ftl::{FtlConfig, OmittedRule};

fn options(power_safe: bool) -> Options {
    let plain = Config::default();
    let buffer = BufferConfig { power_safe, ..plain.pages.buffer };
    let config = Config { pages: PagesConfig { buffer, ..plain.pages }, ..plain };
    super::options(FtlConfig::Interval(config), "nvmevirt-970pro")
}

/// With faults as the seed draws them, lost sectors too.
#[test]
fn interval_ssds_keep_every_promise() {
    for power_safe in [false, true] {
        let counts = held(&options(power_safe), 0..200).counts;
        assert!(counts.program_failures > 0 && counts.erase_failures > 0 && counts.unreadable > 0);
        assert!(counts.sectors_discarded > 5_000, "{counts:?}");
    }
}

#[test]
fn edge_case_interval_ssds_keep_every_promise() {
    for power_safe in [false, true] {
        held_on_edge_cases(options(power_safe));
    }
}

/// Without faults nothing may be refused, however little space there is.
#[test]
fn a_good_interval_ssd_refuses_nothing() {
    for power_safe in [false, true] {
        refused_nothing(options(power_safe));
    }
}

/// A discard whose record found no page is durable before a write with PREFLUSH that follows it (seed 3444), also where it
/// took the last sequence.
#[test]
fn preflush_waits_for_records_without_a_page() {
    let outcome = run_seed(3_444, &options(false));
    assert!(outcome.violation.is_none(), "{:?}", outcome.violation);
}

#[test]
fn every_rule_left_out_is_caught() {
    for (rule, power_safe) in [
        (OmittedRule::Sequence, false),
        (OmittedRule::EraseRule, false),
        (OmittedRule::PreflushDrain, false),
        (OmittedRule::LostTrims, false),
        (OmittedRule::OneShotFlush, false),
        (OmittedRule::EraseGate, false),
        (OmittedRule::SettledGate, false),
        (OmittedRule::TrimGate, false),
        (OmittedRule::TrimSequence, false),
        (OmittedRule::FuaInstances, false),
        (OmittedRule::CopyCompletion, false),
        (OmittedRule::DropEarly, false),
        (OmittedRule::BufferSave, true),
    ] {
        caught(rule, options(power_safe), 0..300);
    }
}

/// Rules that only a narrow window shows: for each a seed that finds it missing.
#[test]
fn narrow_rules_left_out_are_caught() {
    for (rule, seed) in [(OmittedRule::CompactedTrims, 951), (OmittedRule::BufferedTrims, 731)] {
        caught_in_seed(rule, &options(false), seed);
    }
}
