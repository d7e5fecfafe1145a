//! Space that ends and comes back: volumes that are driven to the end of each part of the stack keep every promise, and lose
//! nothing; a leak is caught.

use nandscape_crash::fs::{Base, FsOptions, run_fs_seed};
use nandscape_crash::{CampaignReport, FaultRates, Options};
use nandscape_fs::{FsConfig, FsKind, ext4, f2fs};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rows of the coverage of a layer.
const ROWS: [&str; 5] =
    ["seeds that lean to it", "driven to the end", "refused", "cuts meanwhile", "accounts taken"];

fn flash(kind: FsKind) -> Base {
    let ftl = FsOptions::ftl_kind(kind);
    Base::Flash(Box::new(Options {
        ftl,
        faults: Some(FaultRates::default()),
        ..Options::default()
    }))
}

fn full(base: Base, fs: FsConfig) -> FsOptions {
    let mut options = FsOptions::new(base, fs);
    options.full = true;
    options
}

fn campaign(options: &FsOptions, seeds: Range<u64>) -> CampaignReport {
    let mut report = CampaignReport::default();
    seeds.for_each(|seed| report.add(run_fs_seed(seed, options, None)));
    assert!(report.passed(), "{options}: {report}");
    report
}

/// Every layer is driven to its end in some seeds, refuses there, is cut there, and gives all back.
fn reaches_every_layer(report: &CampaignReport) {
    let mut layers: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for (group, name, count) in report.coverage.rows() {
        if let Some(layer) = group.strip_prefix("full: ") {
            layers.entry(layer).or_default().insert(name, count);
        }
    }
    assert_eq!(layers.len(), 6, "{layers:?}");
    for (layer, rows) in layers {
        for row in ROWS {
            assert!(rows[row] > 0, "{layer}: {row}");
        }
    }
}

#[test]
fn ext4_at_its_ends_keeps_every_promise() {
    let fs = FsKind::Ext4.config();
    let mut report = campaign(&full(flash(FsKind::Ext4), fs.clone()), 0..24);
    let adverse = campaign(&full(Base::Adversary, fs), 0..24);
    report.coverage += &adverse.coverage;
    reaches_every_layer(&report);
}

#[test]
fn f2fs_at_its_ends_keeps_every_promise() {
    let mut report = campaign(&full(flash(FsKind::F2fs), FsKind::F2fs.config()), 0..6);
    let adverse = campaign(&full(Base::Adversary, FsKind::F2fs.config()), 0..12);
    report.coverage += &adverse.coverage;
    reaches_every_layer(&report);
}

/// What the first seed says that catches a rule left out.
fn caught(mut fs: FsConfig, rule: &str) -> Option<String> {
    fs.omit(rule).expect("a rule");
    let options = full(Base::Adversary, fs);
    (1..60).find_map(|seed| Some(run_fs_seed(seed, &options, None).violation?.what))
}

/// Space that is promised for ever is missed, although no image of the volume shows it.
#[test]
fn a_reservation_that_is_not_given_back_is_caught() {
    let rule = ext4::OmittedRule::DroppedReservation.name();
    let what = caught(FsKind::Ext4.config(), rule).expect("a violation");
    assert!(what.contains("space is lost"), "{what}");
}

/// An inode that a refused call leaves behind is missed.
#[test]
fn an_inode_that_a_refused_call_leaves_is_caught() {
    let rule = f2fs::OmittedRule::RefusedInode.name();
    let what = caught(FsKind::F2fs.config(), rule).expect("a violation");
    assert!(what.contains("space is lost"), "{what}");
}
