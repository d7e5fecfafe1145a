//! Campaigns over the real pblk: it keeps every promise, and each safety rule left out is noticed.
//!
//! The 10,000-cut campaign is `nandscape crash`, and the gate runs many (`cargo xtask campaigns gate`); these few seeds see that
//! campaigns reach what they count.

use nandscape_crash::composition::{self, Pins, Widths};
use nandscape_crash::family::ScenarioFamily;
use nandscape_crash::matrix::{Matrix, MatrixReport};
use nandscape_crash::{EventKind, Options, Scenario, StackChoice, run_campaign, run_seed};
use nandscape_ftl::pblk::config::{Config, Victim};
use nandscape_ftl::{FtlConfig, OmittedRule};
use nandscape_media::{Delays, DeviceTiming, Geometry};

#[test]
fn pblk_keeps_every_promise() {
    let report = run_campaign(&Options::default(), 0..80, |_| {});
    assert!(report.passed(), "{report}");
    let counts = report.counts;
    assert!(counts.cuts > 240 && counts.cuts_in_recovery > 13, "{report}");
    assert!(counts.erases > 0 && counts.program_failures > 0 && counts.erase_failures > 0);
}

/// Odd write rules, one parallel unit, hardly any space, buffer or cache, cells that soon wear out, and up
/// to every third program failing.
#[test]
fn odd_devices_keep_every_promise() {
    let options = Options { edge_cases: true, ..Options::default() };
    let report = run_campaign(&options, 0..80, |_| {});
    assert!(report.passed(), "{report}");
    let counts = report.counts;
    assert!(counts.cuts > 300 && counts.cuts_in_recovery > 40, "{report}");
    assert!(counts.program_failures > 200 && counts.erase_failures > 200, "{report}");
    assert!(counts.refused > 0, "{report}");
}

/// Sectors that media lose read as errors until they are overwritten, and take no other with them, whether
/// they held data, trim records, mapping blocks, start or end metadata.
#[test]
fn lost_sectors_are_errors_and_cost_no_others() {
    let options = Options { unreadable: Some(100), ..Options::default() };
    let report = run_campaign(&options, 0..50, |_| {});
    assert!(report.passed(), "{report}");
    assert!(report.counts.cuts > 150 && report.counts.unreadable > 300, "{report}");
}

/// What may be lost is forgiven nowhere else: an older copy in place of one that media lost is seen.
#[test]
fn lost_sectors_taken_for_unwritten_are_caught() {
    let omit = Some(OmittedRule::Unreadable);
    assert_caught_with(&Options { omit, unreadable: Some(100), ..Options::default() }, 200);
}

/// A seed in which lines that had start metadata were handed back, and an open chunk with each, on a device
/// that limits these.
#[test]
fn free_lines_have_no_share_in_the_limit_of_open_chunks() {
    let pins = pins("per-core+journal/*/*/*");
    let outcome = run_seed(79, &Options { edge_cases: true, pins, ..as_found() });
    assert!(outcome.violation.is_none(), "{:?}", outcome.violation);
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
    let timing = ("none".to_string(), DeviceTiming::none());
    let config = FtlConfig::Pblk(config);
    let stack = Some(StackChoice { geometry, config, timing });
    let options = Options { stack, ..Options::default() };
    for seed in 0..20 {
        let scenario = Scenario::draw(seed, Vec::new(), &options);
        let g = scenario.geometry;
        assert_eq!((g.ws_min, g.ws_opt, g.mw_cunits), (4, 8, 24));
        assert!(g.check().is_ok() && g.total_sectors() < 32_768, "{scenario}");
        let FtlConfig::Pblk(config) = scenario.config else { panic!("a pblk") };
        assert_eq!(config.victim, Victim::Greedy);
    }
    let report = run_campaign(&options, 0..20, |_| {});
    assert!(report.passed() && report.counts.cuts >= 40, "{report}");
}

fn assert_caught(rule: OmittedRule, seeds: u64) {
    assert_caught_with(&Options { omit: Some(rule), ..Options::default() }, seeds);
}

fn pins(name: &str) -> Pins {
    name.parse().expect("a composition")
}

fn assert_caught_with(options: &Options, seeds: u64) {
    let options = Options { violations_max: 1, ..options.clone() };
    let report = run_campaign(&options, 0..seeds, |_| {});
    assert!(!report.passed(), "{options:?} was never caught\n{report}");
    let violation = &report.violations[0];
    assert!(violation.lba.is_some(), "caught by its content, not by accident: {violation}");
    let cut = violation.event_log.iter().any(|line| line.what == EventKind::PowerCut);
    assert!(cut || violation.what.starts_with("a reset of unit"), "{violation}");
}

#[test]
fn replay_without_sequences_is_caught() {
    assert_caught(OmittedRule::Sequence, 400);
}

#[test]
fn erasing_before_the_successor_is_durable_is_caught() {
    assert_caught(OmittedRule::EraseRule, 400);
}

#[test]
fn a_commit_without_drain_is_caught() {
    assert_caught(OmittedRule::PreflushDrain, 400);
}

#[test]
fn unlogged_discards_are_caught() {
    assert_caught(OmittedRule::LostTrims, 400);
}

#[test]
fn dropping_what_may_come_back_is_caught() {
    assert_caught(OmittedRule::DropEarly, 400);
}

/// Rules that only a narrow window shows: the first seed of `cargo xtask rules` that finds each missing.
#[test]
fn narrow_rules_left_out_are_caught() {
    for (rule, seed) in [(OmittedRule::SettledGate, 1_166), (OmittedRule::MovedTrims, 145)] {
        let outcome = run_seed(seed, &Options { omit: Some(rule), ..Options::default() });
        assert!(outcome.violation.is_some(), "{rule:?} was not caught in seed {seed}");
        let outcome = run_seed(seed, &Options::default());
        assert!(outcome.violation.is_none(), "{seed}: {:?}", outcome.violation);
    }
}

/// A reset that takes a promised copy is noticed at once, whether or not power is cut soon after.
#[test]
fn resets_of_promised_copies_are_caught_without_a_cut() {
    let omit = Some(OmittedRule::EraseRule);
    let options = Options { omit, violations_max: 20, ..Options::default() };
    let report = run_campaign(&options, 0..200, |_| {});
    let at_reset = |what: &str| what.starts_with("a reset of unit");
    let noticed = report.violations.iter().filter(|violation| at_reset(&violation.what)).count();
    assert!(noticed >= 5, "{noticed} of {}", report.violations.len());
}

/// In some seeds completions of units come late and out of order; they keep every promise, too.
#[test]
fn delayed_media_keep_every_promise() {
    let delays = Some(Delays { usual_max_ns: 1 << 20, stall_one_in: 50, stall_max_ns: 50_000_000 });
    let report = run_campaign(&Options { delays, ..Options::default() }, 0..50, |_| {});
    assert!(report.passed() && report.counts.cuts > 150, "{report}");
    let delayed = |seed: &u64| Scenario::draw(*seed, Vec::new(), &Options::default()).delays.any();
    assert!((60..140).contains(&(0..300).filter(delayed).count()), "one in three");
}

/// Linux 4.13's flush: what has been submitted counts as durable.
#[test]
fn a_flush_that_waits_for_submission_only_is_caught() {
    assert_caught_with(&Options { pins: pins("*/submitted-only/*/*"), ..Options::default() }, 200);
}

/// MT-FTL's code: a flush covers the buffer that it is routed to.
#[test]
fn a_flush_of_the_routed_buffer_only_is_caught() {
    assert_caught_with(
        &Options { pins: pins("*/routed-ring-only/*/*"), ..Options::default() },
        200,
    );
}

/// A journal and fsynced files that fall silent hold a few successors in their buffers while others
/// fill the device over and over.
#[test]
fn erasing_beside_idle_buffers_is_caught() {
    for name in ["single+journal/*/device/data", "single+journal+fsync-aware/*/device/*"] {
        let options = Options {
            omit: Some(OmittedRule::EraseRule),
            pins: pins(name),
            family: Some(ScenarioFamily::Overwrite),
            ..Options::default()
        };
        assert_caught_with(&options, 300);
    }
}

#[test]
fn replay_without_sequences_is_caught_with_several_buffers() {
    let pins = pins("per-core+journal/*/*/*");
    let options = Options { omit: Some(OmittedRule::Sequence), pins, ..Options::default() };
    assert_caught_with(&options, 200);
}

/// What happens to the map shows in the map: the table can always be rebuilt from the data, so that no
/// sector is lost, but media say something else about a block than what is true.
fn assert_map_caught(rule: OmittedRule, name: &str) {
    let options =
        Options { omit: Some(rule), pins: pins(name), violations_max: 1, ..Options::default() };
    let report = run_campaign(&options, 0..100, |_| {});
    let what = report.violations.first().map(|violation| violation.what.as_str());
    let matches = what.is_some_and(|what| {
        what.contains("is not what the table says") || what.contains("not what was to be read")
    });
    assert!(matches, "{name}: {what:?}");
}

#[test]
fn a_stale_mapping_block_believed_at_recovery_is_caught() {
    for map in ["lru", "hotness-journal", "dftl-serial"] {
        assert_map_caught(OmittedRule::StaleMap, &format!("*/*/*/*/{map}"));
    }
}

#[test]
fn a_mapping_block_that_leaves_while_it_names_a_ring_is_caught() {
    for map in ["lru-serial", "hotness"] {
        assert_map_caught(OmittedRule::MapPins, &format!("*/*/*/*/{map}"));
    }
}

/// Seeds that once ended read-only although nothing had failed: stale copies took the place of the
/// ring's data, the only free line was a short one, and a mount revived obsolete trim records in lines
/// that were free.
#[test]
fn devices_do_not_run_into_a_corner() {
    let short = "per-core-most-free+journal+per-file/file-entries/channel/own";
    let trims = [2_505, 12_553].map(|seed| (seed, "*"));
    for (seed, name) in [(3_526, "*"), (80_500_004, short)].into_iter().chain(trims) {
        let outcome = run_seed(seed, &Options { pins: pins(name), ..as_found() });
        assert!(outcome.violation.is_none(), "{seed}: {:?}", outcome.violation);
    }
}

/// Seeds that once copied for ever, or until nothing was free: a mapping cache of a block or two had
/// each copy pad a unit of its own, one stripe was collected for no gain while another had room, and
/// what was left of a unit was padded for each victim.
#[test]
fn collection_gains_more_than_it_pads() {
    let seeds = [
        (1_700_180, "per-core-most-free/file-entries/channel/data/hotness"),
        (26_700_001, "per-core+per-file/file-entries/units-2/data/lru"),
        (54_200_004, "per-core-random+journal+fsync-in-normal/all/device/by-origin/lru"),
        (70_700_012, "per-core-most-free+journal/all/channel/by-origin/lru"),
        (73_000_002, "per-core-most-free+journal+fsync-aware/all/device/own/lru"),
        (94_000_002, "per-queue+journal/file-entries/channel/own/lru"),
    ];
    assert_kept(&seeds);
}

/// A seed that once collected what padding had made without end, since lines of the journal were left to
/// die, while a full ring waited for padding of its own; one in which a group that was short of padding
/// alone took the last free line from one that could not write without; and one in which power cuts took
/// more of the reserve than the policy's victims gave back.
#[test]
fn no_task_takes_what_another_waits_for() {
    assert_kept(&[
        (56_200_007, "per-core-random+journal+fsync-in-normal/file-entries/channel/own/resident"),
        (76_800_005, "per-core-most-free+journal+fsync-in-normal/file-ring/channel/data/dftl"),
        (55_500_002, "per-core-random+journal+fsync-in-normal/file-ring/units-2/data/dftl"),
    ]);
}

/// Seeds that once never came to rest: copies of two streams padded what their lines gained, and padding was
/// padded for; and two that ended read-only, for trim records came to a buffer without a line.
#[test]
fn cornered_devices_go_on() {
    let drawn = Options { delays: Some(Delays::default()), ..Options::default() };
    let unreadable = Options { unreadable: Some(100), ..drawn.clone() };
    let seeds = [(51_627, &drawn), (101_619, &unreadable), (201_826, &drawn), (205_258, &drawn)];
    for (seed, options) in seeds {
        let outcome = run_seed(seed, options);
        assert!(outcome.violation.is_none(), "{seed}: {:?}", outcome.violation);
    }
}

/// What seeds chose when they were found: media lost no sectors then, and no command was delayed.
fn as_found() -> Options {
    Options { unreadable: Some(0), delays: Some(Delays::default()), ..Options::default() }
}

fn assert_kept(seeds: &[(u64, &str)]) {
    for &(seed, name) in seeds {
        let outcome = run_seed(seed, &Options { pins: pins(name), ..as_found() });
        assert!(outcome.violation.is_none(), "{seed}: {:?}", outcome.violation);
    }
}

/// A device so worn out that it cannot write its mapping blocks when it comes up serves reads.
#[test]
fn worn_out_maps_can_be_read() {
    for seed in [3_258, 6_378, 8_184, 10_119, 11_681, 14_511] {
        let outcome = run_seed(seed, &as_found());
        assert!(outcome.violation.is_none(), "{seed}: {:?}", outcome.violation);
    }
}

/// Each choice in each kind, and any two of them together; the whole matrix is `nandscape crash`.
#[test]
fn compositions_keep_every_promise() {
    let matrix = Matrix::pairs(&Pins::default(), 12, 0);
    let options = Options { violations_max: 1, ..Options::default() };
    let reports =
        (0..matrix.legal.len()).map(|index| matrix.run(index, &options, &|| false)).collect();
    let report = MatrixReport::new(&matrix, reports);
    assert!(report.violations().next().is_none(), "{:?}", report.violations().next());
    assert!(report.cuts_least() >= 12, "{report}");
}

/// What cannot be is refused with a sentence, and reported; nothing is left out in silence.
#[test]
fn every_composition_is_run_or_refused_with_a_sentence() {
    let matrix = Matrix::all(&Pins::default(), 50, 0);
    assert_eq!(matrix.legal.len() + matrix.refused.len(), composition::all(Widths::Usual).len());
    assert!(matrix.legal.len() > 1_000, "{} legal", matrix.legal.len());
    for (refused, why) in &matrix.refused {
        assert!(why.split_whitespace().count() > 8, "{refused}: {why}");
        assert!(refused.to_string().starts_with("single"), "{refused}: {why}");
    }
}
