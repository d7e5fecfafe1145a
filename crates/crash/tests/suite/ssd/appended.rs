//! Campaigns on F2FS in append-only address spaces: in D2FS mode on coupled SSDs, in IPLFS mode on SSDs with interval maps.
//! Files and names keep every promise, device and volume agree on what is valid, and in most seeds the device collects.
//! `nandscape crash --fs f2fs --stack d2fs-ssd` and `--stack iplfs-ssd` are the long form.

use crate::ssd::seeds;
use nandscape_crash::fs::{Base, FsOptions, run_fs_seed};
use nandscape_crash::{CampaignReport, FaultRates, Options};
use nandscape_fs::FsKind;
use nandscape_ftl::{FtlConfig, coupled, interval};
use std::ops::Range;

fn options(config: FtlConfig) -> FsOptions {
    let flash = Options {
        faults: Some(FaultRates::default()),
        ..super::options(config, "nvmevirt-970pro")
    };
    FsOptions::new(Base::Flash(Box::new(flash)), FsKind::F2fs.config())
}

/// Runs the seeds, or others by `NANDSCAPE_APPENDED_SEEDS=FIRST..END`; the report, and in how many of them the device
/// collected: by this count of its collection.
fn campaign(options: &FsOptions, of_ci: Range<u64>, collected: &str) -> (CampaignReport, u64) {
    let (mut report, mut seeds_collected) = (CampaignReport::default(), 0);
    for seed in seeds("NANDSCAPE_APPENDED_SEEDS", of_ci) {
        let outcome = run_fs_seed(seed, options, None);
        let has = |row: (&str, &str, u64)| row.0 == "collection" && row.1 == collected && row.2 > 0;
        seeds_collected += u64::from(outcome.coverage.rows().any(has));
        report.add(outcome);
    }
    println!("{report}\n{}\ncollected in {seeds_collected} seeds", report.coverage);
    (report, seeds_collected)
}

/// Every seed holds, most devices collect, and cuts come while migrations are open.
#[test]
fn volumes_in_d2fs_mode_keep_every_promise() {
    let options = options(FtlConfig::Coupled(coupled::Config::default()));
    options.check(0).expect("a volume that fits");
    let (report, collected) = campaign(&options, 0..8, "sectors moved");
    assert!(report.passed(), "{report}");
    assert!(2 * collected > report.seeds, "{collected} of {} seeds collected", report.seeds);
    let between = ("cuts", "upcall fetched, not completed");
    assert!(
        report.coverage.rows().any(|(group, name, count)| (group, name) == between && count > 0)
    );
}

/// The same where the device collects without a change of addresses.
#[test]
fn volumes_in_iplfs_mode_keep_every_promise() {
    let options = options(FtlConfig::Interval(interval::Config::default()));
    options.check(0).expect("a volume that fits");
    // In seed 49 a checkpoint that voids nothing follows one that was cut off.
    let (report, collected) = campaign(&options, 44..52, "valid sectors of victims");
    assert!(report.passed(), "{report}");
    assert!(2 * collected > report.seeds, "{collected} of {} seeds collected", report.seeds);
}

/// Modes that fit no append-only region are refused by name, before anything runs.
#[test]
fn modes_of_other_devices_are_refused() {
    for (key, value) in [("allocation", "adaptive"), ("reclaim", "gc-journal")] {
        let mut fs = FsKind::F2fs.config();
        fs.choose(key, value).expect("a mode");
        let base = options(FtlConfig::Coupled(coupled::Config::default())).base;
        let refused = FsOptions::new(base, fs).check(0).expect_err("a mode that does not fit");
        assert_eq!(refused.key, key, "{refused:?}");
    }
}
