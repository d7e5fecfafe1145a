//! The checker is checked: a right device passes any campaign, and each way of being wrong is
//! caught, with an event log that names the sector.

use crate::toy;

use nandscape_crash::plan::Plan;
use nandscape_crash::{CampaignReport, EventKind, SeedOutcome, run_device};
use toy::{Damage, Toy};

fn run(seed: u64, damage: Damage) -> SeedOutcome {
    let drawn = Plan::draw(seed, None, None, 100);
    let plan = Plan { unreadable: damage.loses_sectors(), ..drawn };
    let again = || Some(Toy::new(seed, damage));
    run_device(seed, &plan, plan.settings(), Toy::new(seed, damage), again)
}

fn campaign(damage: Damage, seeds: u64) -> CampaignReport {
    let mut report = CampaignReport::default();
    (0..seeds).for_each(|seed| report.add(run(seed, damage)));
    report
}

/// A device that loses any subset of what is not covered, and nothing else, is right.
#[test]
fn a_right_device_keeps_every_promise() {
    let report = campaign(Damage::None, 500);
    assert!(report.passed(), "{report}");
    assert!(report.counts.cuts > 1_500 && report.counts.cuts_in_recovery > 100, "{report}");
}

/// The seeds in 50 that notice a damage; none means that the campaign is blind to it.
fn caught(damage: Damage) -> Vec<SeedOutcome> {
    let outcomes = (0..50).map(|seed| run(seed, damage));
    let caught: Vec<_> = outcomes.filter(|o| o.violation.is_some()).collect();
    assert!(!caught.is_empty(), "{damage:?} is never caught");
    caught
}

fn assert_caught(damage: Damage, got: &str) {
    let caught = caught(damage);
    let named = caught.iter().filter_map(|o| o.violation.as_ref()).any(|v| v.got.contains(got));
    assert!(
        named,
        "{damage:?} is never seen as {got:?}: {}",
        caught[0].violation.as_ref().unwrap()
    );
}

#[test]
fn lost_covered_data_is_caught() {
    assert_caught(Damage::LosesCovered, "stale data");
}

#[test]
fn lost_fua_data_is_caught() {
    assert_caught(Damage::IgnoresFua, "stale data");
}

#[test]
fn a_commit_that_overtakes_what_it_covers_is_caught() {
    assert_caught(Damage::IgnoresPreflush, "stale data");
}

#[test]
fn an_old_read_in_operation_is_caught() {
    assert_caught(Damage::ReadsOlder, "stale data");
}

#[test]
fn a_torn_sector_is_caught() {
    assert_caught(Damage::MixesSectors, "torn sector");
}

#[test]
fn data_of_another_sector_is_caught() {
    assert_caught(Damage::SwapsSectors, "data of another LBA");
}

#[test]
fn a_discard_undone_is_caught() {
    assert_caught(Damage::ResurrectsTrims, "stale data");
}

#[test]
fn a_version_that_was_lost_and_comes_back_is_caught() {
    assert_caught(Damage::RevivesVoid, "rolled back");
}

#[test]
fn a_recovery_that_cannot_be_cut_is_caught() {
    assert_caught(Damage::FragileRecovery, "torn sector");
}

/// A device whose media lose sectors is right if reads of these fail, and of no others.
#[test]
fn a_device_that_fails_where_media_lost_a_sector_is_right() {
    let report = campaign(Damage::OnlyLosesSectors, 200);
    assert!(report.passed(), "{report}");
    assert!(report.counts.unreadable > 1_000, "{report}");
}

#[test]
fn a_lost_sector_that_shows_zeroes_is_caught() {
    assert_caught(Damage::ZeroesLostSectors, "zeroes");
}

#[test]
fn a_lost_sector_that_shows_older_data_is_caught() {
    assert_caught(Damage::RevertsLostSectors, "stale data");
}

#[test]
fn a_read_that_fails_although_nothing_was_lost_is_caught() {
    let caught = caught(Damage::FailsWithoutLoss);
    let what = &caught[0].violation.as_ref().expect("caught").what;
    assert!(what.starts_with("read #") && what.contains(" failed: I/O error"), "{what}");
}

#[test]
fn an_unanswered_request_is_caught() {
    let caught = caught(Damage::LosesRequests);
    let what = &caught[0].violation.as_ref().expect("caught").what;
    assert!(what.contains("in flight: #"), "{what}");
}

/// A violation is reproduced by its seed alone, and logs the events of its sector.
#[test]
fn a_seed_reproduces_its_violation() {
    let first = caught(Damage::LosesCovered).swap_remove(0);
    let again = run(first.seed, Damage::LosesCovered);
    assert_eq!(first, again);
    let violation = again.violation.expect("caught");
    assert!(violation.event_log.iter().any(|line| line.what == EventKind::PowerCut), "{violation}");
}
