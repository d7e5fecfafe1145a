//! Campaigns over the real pblk: it keeps every promise, and each safety rule left out is noticed.
//!
//! The 10,000-cut campaign is `nandscape crash`; this is its short form.

use nandscape_crash::{Options, Scenario, StackChoice, run_campaign, run_seed};
use nandscape_ftl::config::{Broken, Config, Victim};
use nandscape_media::{Geometry, Timing};

#[test]
fn pblk_keeps_every_promise() {
    let report = run_campaign(&Options::default(), 0..300, |_| {});
    assert!(report.held(), "{report}");
    let counts = report.counts;
    assert!(counts.cuts > 900 && counts.cuts_in_recovery > 50, "{report}");
    assert!(counts.erases > 0 && counts.program_failures > 0 && counts.erase_failures > 0);
}

#[test]
fn a_seed_is_a_run() {
    let options = Options::default();
    assert_eq!(run_seed(7, &options), run_seed(7, &options));
}

/// A stack given from outside keeps its write rules and policies on a device scaled down.
#[test]
fn a_given_stack_is_scaled_down() {
    let geometry = Geometry {
        groups: 2,
        units: 4,
        chunks: 60,
        sectors: 4096,
        ws_min: 4,
        ws_opt: 8,
        mw_cunits: 24,
        maxoc: 0,
        maxocpu: 0,
    };
    let config = Config { victim: Victim::Greedy, ..Config::default() };
    let timing = ("none".to_string(), Timing::none());
    let stack = Some(StackChoice { geometry, config, timing });
    let options = Options { stack, ..Options::default() };
    for seed in 0..20 {
        let scenario = Scenario::draw(seed, Vec::new(), &options);
        let g = scenario.geometry;
        assert_eq!((g.ws_min, g.ws_opt, g.mw_cunits), (4, 8, 24));
        assert!(g.check().is_ok() && g.total_sectors() < 32_768, "{scenario}");
        assert_eq!(scenario.config.victim, Victim::Greedy);
    }
    let report = run_campaign(&options, 0..20, |_| {});
    assert!(report.held() && report.counts.cuts >= 40, "{report}");
}

fn assert_caught(broken: Broken, seeds: u64) {
    let options = Options { broken, violations_max: 1, ..Options::default() };
    let report = run_campaign(&options, 0..seeds, |_| {});
    assert!(!report.held(), "{broken:?} was never caught\n{report}");
    let violation = &report.violations[0];
    assert!(violation.lba.is_some(), "caught by its content, not by accident: {violation}");
    assert!(violation.story.iter().any(|line| line.contains("power cut")), "{violation}");
}

#[test]
fn replay_without_sequences_is_caught() {
    assert_caught(Broken::Sequence, 400);
}

#[test]
fn erasing_before_the_successor_is_durable_is_caught() {
    assert_caught(Broken::EraseRule, 400);
}

#[test]
fn a_commit_without_drain_is_caught() {
    assert_caught(Broken::PreflushDrain, 400);
}

#[test]
fn unlogged_discards_are_caught() {
    assert_caught(Broken::LostTrims, 400);
}
