//! Campaigns on address spaces other than those written at random: a right device keeps every promise, and
//! each way of being wrong is caught.

mod damaged;

use damaged::{Damage, Damaged, Space};
use nandscape_crash::plan::Plan;
use nandscape_crash::{CampaignReport, SeedOutcome, run_device};

/// Seeds in which a damage must show.
const SEEDS: u64 = 40;

fn run(seed: u64, space: Space, damage: Damage) -> SeedOutcome {
    // A report after a cut is news; one that is wrong without a cut is another matter.
    let rounds = (damage == Damage::ReportsLess).then_some(0);
    let plan = Plan::draw(seed, None, rounds, 100);
    let device = || Damaged::new(seed, space, damage);
    run_device(seed, &plan, plan.settings(), device(), || Some(device()))
}

/// A right device keeps every promise of its address space.
fn assert_kept(space: Space) -> CampaignReport {
    let mut report = CampaignReport::default();
    (0..200).for_each(|seed| report.add(run(seed, space, Damage::None)));
    assert!(report.passed(), "{space:?}: {report}");
    let counts = report.counts;
    assert!(counts.cuts > 600 && counts.cuts_in_recovery > 20, "{report}");
    assert!(counts.sectors_written > 50_000 && counts.sectors_discarded > 10_000, "{report}");
    report
}

/// Some seed finds a damage, and what it finds reads like this.
fn assert_caught(space: Space, damage: Damage, expected: &str) {
    let outcomes = (0..SEEDS).filter_map(|seed| run(seed, space, damage).violation);
    let caught: Vec<_> = outcomes.map(|violation| violation.to_string()).collect();
    assert!(!caught.is_empty(), "{damage:?} is never caught");
    let named = caught.iter().any(|violation| violation.contains(expected));
    assert!(named, "{damage:?} is never seen as {expected:?}: {}", caught[0]);
}

#[test]
fn a_right_zoned_device_keeps_every_promise() {
    assert_kept(Space::Zoned);
}

#[test]
fn a_write_pointer_recovered_too_high_is_caught() {
    assert_caught(Space::Zoned, Damage::PointerTooHigh, "zeroes below the write pointer");
}

#[test]
fn a_write_pointer_recovered_too_low_is_caught() {
    assert_caught(Space::Zoned, Damage::PointerTooLow, "data above the write pointer");
}

#[test]
fn a_zone_that_loses_covered_sectors_is_caught() {
    assert_caught(Space::Zoned, Damage::LosesLast, "(durable since ");
}

#[test]
fn a_reset_that_a_cut_forgets_is_caught() {
    assert_caught(Space::Zoned, Damage::ForgetsReset, "stale data");
}

#[test]
fn a_zone_of_two_generations_is_caught() {
    assert_caught(Space::Zoned, Damage::MixesGenerations, "another generation");
}

#[test]
fn an_append_that_names_another_place_is_caught() {
    assert_caught(Space::Zoned, Damage::MisplacesAppends, "went to");
}

#[test]
fn a_report_that_differs_from_what_was_written_is_caught() {
    assert_caught(Space::Zoned, Damage::ReportsLess, "zone report: expected write pointer");
}

#[test]
fn a_right_append_only_device_keeps_every_promise() {
    assert_kept(Space::Append);
}

#[test]
fn discards_without_effect_are_caught() {
    assert_caught(Space::Append, Damage::IgnoresDiscards, "stale data");
    assert_caught(Space::Coupled, Damage::IgnoresDiscards, "stale data");
}

#[test]
fn a_right_device_that_moves_data_keeps_every_promise() {
    assert_kept(Space::Coupled);
}

#[test]
fn an_old_address_reclaimed_before_completion_is_caught() {
    assert_caught(Space::Coupled, Damage::ReclaimsEarly, ": zeroes; expected");
}

#[test]
fn a_move_that_loses_a_newer_write_is_caught() {
    assert_caught(Space::Coupled, Damage::MovesOlder, "data of another LBA");
}

#[test]
fn a_move_onto_data_is_caught() {
    assert_caught(Space::Coupled, Damage::MovesOntoData, "which is in use");
}

#[test]
fn records_that_a_cut_loses_are_caught() {
    assert_caught(Space::Coupled, Damage::LosesRecords, ": zeroes; expected");
}

#[test]
fn a_batch_that_can_be_completed_twice_is_caught() {
    assert_caught(Space::Coupled, Damage::CompletesTwice, "was completed twice");
}

#[test]
fn a_second_completion_that_frees_another_batch_is_caught() {
    assert_caught(Space::Coupled, Damage::FreesAnother, ": zeroes; expected");
}
