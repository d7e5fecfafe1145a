//! Campaigns on a coupled SSD, whose host follows the moves that it makes: it keeps every promise with a volatile and
//! with a power-safe buffer, and each safety rule left out is noticed. `nandscape crash --stack d2fs-ssd` without `--fs`
//! is the long form.

use crate::ssd::{caught, held, held_on_edge_cases, seeds};
use nandscape_crash::{Options, run_campaign};
use nandscape_ftl::coupled::Config;
use nandscape_ftl::device::{BufferConfig, Config as PagesConfig};
use nandscape_ftl::{FtlConfig, OmittedRule};

fn options(power_safe: bool, timing: &str) -> Options {
    let plain = Config::default();
    let buffer = BufferConfig { power_safe, ..plain.pages.buffer };
    let config = Config { pages: PagesConfig { buffer, ..plain.pages }, ..plain };
    super::options(FtlConfig::Coupled(config), timing)
}

/// With programs and erases that fail as the seed draws them; other seeds by `NANDSCAPE_COUPLED_SEEDS=FIRST..END`.
#[test]
fn coupled_ssds_keep_every_promise() {
    for (power_safe, timing) in
        [(false, "nvmevirt-970pro"), (true, "nvmevirt-970pro"), (false, "qemu-ocssd")]
    {
        let counts =
            held(&options(power_safe, timing), seeds("NANDSCAPE_COUPLED_SEEDS", 0..60)).counts;
        assert!(counts.program_failures > 0 && counts.erase_failures > 0, "{counts:?}");
        assert!(counts.sectors_discarded > 2_000, "{counts:?}");
    }
}

/// In this seed media fail until no line is free: the first write that is refused is the last one that is looked at.
#[test]
fn a_device_without_lines_takes_no_more_writes() {
    let report = run_campaign(&options(false, "nvmevirt-970pro"), 6_923..6_924, |_| {});
    assert!(report.passed() && report.counts.refused > 0, "{report}");
}

#[test]
fn edge_case_coupled_ssds_keep_every_promise() {
    for power_safe in [false, true] {
        held_on_edge_cases(options(power_safe, "nvmevirt-970pro"));
    }
}

fn assert_caught(rule: OmittedRule, power_safe: bool) {
    let report = caught(rule, options(power_safe, "qemu-ocssd"), 0..1_000);
    println!("{}: {}", rule.name(), report.violations[0].seed);
}

/// Cuts in what the device writes for itself are permitted like others, and find soon that records are not waited for.
#[test]
fn cuts_in_background_writes_lose_no_moves() {
    let options = Options { background_cuts: true, ..options(false, "nvmevirt-970pro") };
    held(&options, 0..30);
    caught(OmittedRule::RecordJournal, options, 0..2_000);
}

/// Rules that seeds find soon. Those of moves and records that take thousands of seeds are staged in
/// `crates/ftl/tests/suite/coupled/rules.rs`.
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
