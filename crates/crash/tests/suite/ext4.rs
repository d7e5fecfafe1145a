//! ext4 keeps its promises over power cuts, on pblk and on a device whose cache loses any subset; and
//! each rule of its journal, left out, is caught by the same campaign.

use nandscape_crash::fs::{Base, FsOptions, run_fs_seed};
use nandscape_crash::{CampaignReport, FaultRates, Options};
use nandscape_fs::FsConfig;
use nandscape_fs::ext4::{Commit, Config, DataMode, MountOptions, OmittedRule};

const MODES: [DataMode; 3] = [DataMode::Ordered, DataMode::Journal, DataMode::Writeback];
/// Rules without which the same campaign must fail on any base.
const BROKEN: [OmittedRule; 4] = [
    OmittedRule::CommitBeforeData,
    OmittedRule::TailBeforeCheckpoint,
    OmittedRule::MissingRevoke,
    OmittedRule::MissingBarrier,
];
/// Rules that a few seeds do not miss: `cargo xtask rules` says how many each needs, or which test violates it.
const RARE: [OmittedRule; 12] = [
    OmittedRule::TailFua,
    OmittedRule::BarrierSent,
    OmittedRule::TailBeforeCheckpoint,
    OmittedRule::LateHome,
    OmittedRule::ClaimedHome,
    OmittedRule::HomeInFlight,
    OmittedRule::LogChecksums,
    OmittedRule::OrphanTruncate,
    OmittedRule::DirectWritten,
    OmittedRule::AppendOrphan,
    OmittedRule::RecordPlace,
    OmittedRule::UnwrittenEarly,
];
/// Seeds in which a broken rule must show.
const SEEDS_MAX: u64 = 400;

fn flash() -> Base {
    Base::Flash(Box::new(Options { faults: Some(FaultRates::default()), ..Options::default() }))
}

/// ext4 mounted so.
fn ext4(mount: MountOptions) -> FsConfig {
    FsConfig::Ext4(Config { format: None, mount })
}

fn in_mode(base: Base, data: DataMode) -> FsOptions {
    FsOptions::new(base, ext4(MountOptions { data, ..MountOptions::default() }))
}

/// Runs seeds that must keep every promise.
fn campaign(options: &FsOptions, seeds: std::ops::Range<u64>) -> CampaignReport {
    let mut report = CampaignReport::default();
    seeds.for_each(|seed| report.add(run_fs_seed(seed, options, None)));
    assert!(report.passed(), "{options}: {report}");
    report
}

#[test]
fn ext4_on_pblk_keeps_every_promise() {
    for data in MODES {
        let report = campaign(&in_mode(flash(), data), 0..8);
        assert!(report.counts.cuts >= 32 && report.counts.cuts_in_recovery > 4, "{report}");
    }
}

#[test]
fn ext4_on_a_cache_that_loses_any_subset_keeps_every_promise() {
    for data in MODES {
        campaign(&in_mode(Base::Adversary, data), 100..108);
    }
}

#[test]
fn file_level_commits_keep_every_promise() {
    let commit = Commit::Ijournal { slots: 2, slot_blocks: 24 };
    for base in [flash(), Base::Adversary] {
        let fs = ext4(MountOptions { commit, ..MountOptions::default() });
        campaign(&FsOptions::new(base, fs), 200..208);
    }
}

/// Checksums notice what is torn, lost or flipped in a live log, and bits flipped elsewhere.
#[test]
fn damaged_copies_are_noticed() {
    for data in MODES {
        let mut options = in_mode(Base::Adversary, data);
        options.damage_every = 1;
        campaign(&options, 300..312);
    }
}

/// The same seed does the same, whatever ran before it.
#[test]
fn a_seed_is_all_there_is_to_a_run() {
    let options = in_mode(flash(), DataMode::Ordered);
    let [first, again] = [7, 7].map(|seed| run_fs_seed(seed, &options, None));
    assert_eq!(first, again);
}

fn is_caught(base: Base, rule: OmittedRule) -> bool {
    let mount = MountOptions { omit: Some(rule), ..MountOptions::default() };
    let options = FsOptions::new(base, ext4(mount));
    (0..SEEDS_MAX).any(|seed| run_fs_seed(seed, &options, None).violation.is_some())
}

#[test]
fn broken_journals_on_pblk_are_caught() {
    for rule in BROKEN {
        assert!(is_caught(flash(), rule), "{} went unnoticed", rule.name());
    }
}

#[test]
fn broken_journals_on_a_cache_are_caught() {
    for rule in BROKEN {
        assert!(is_caught(Base::Adversary, rule), "{} went unnoticed", rule.name());
    }
}

/// Each rule that is left out is caught where the device does its worst.
#[test]
fn rules_left_out_are_caught() {
    let commit = Commit::Ijournal { slots: 2, slot_blocks: 24 };
    for rule in OmittedRule::ALL.into_iter().filter(|rule| !RARE.contains(rule)) {
        let commit = if rule.name().starts_with("record-") { commit } else { Commit::Jbd2 };
        let mount = MountOptions { omit: Some(rule), commit, ..MountOptions::default() };
        let options = FsOptions::new(Base::Adversary, ext4(mount));
        let caught = (1..100).any(|seed| run_fs_seed(seed, &options, None).violation.is_some());
        assert!(caught, "{} went unnoticed", rule.name());
    }
}

/// Seeds that have found what is mended: with file-level commits a file cut to the length that it had before its record,
/// and tree blocks of older records taken for those of a record; a length that a sync beside `fallocate` left out.
#[test]
fn what_seeds_found_stays_mended() {
    let records = Commit::Ijournal { slots: 2, slot_blocks: 24 };
    for (base, commit, seeds) in [
        (Base::Adversary, records, &[40_063, 40_234, 40_439, 60_037][..]),
        (flash(), records, &[61_090][..]),
        (Base::Adversary, Commit::Jbd2, &[4_400][..]),
    ] {
        let fs = ext4(MountOptions { commit, ..MountOptions::default() });
        let options = FsOptions::new(base, fs);
        for seed in seeds {
            let outcome = run_fs_seed(*seed, &options, None);
            assert!(outcome.violation.is_none(), "{seed}: {:?}", outcome.violation);
        }
    }
}
