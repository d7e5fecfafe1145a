//! Call sequences: the published cases on every mode, and enumerated ones; each finds a rule that is left out.

use nandscape_crash::KernelLoss;
use nandscape_crash::calls::{Case, parse};
use nandscape_crash::fs::calls::{CallsOptions, CaseRunner, CutPoints, Enumeration};
use nandscape_crash::fs::{Base, FsOptions};
use nandscape_fs::{FsConfig, FsKind};
use std::collections::BTreeSet;

const PUBLISHED: &str = include_str!("../../../../examples/crashmonkey.calls");

/// Modes of a file system, and the classes in which the published cases lose something.
type Mode = (FsKind, &'static [(&'static str, &'static str)], &'static [KernelLoss]);

const MODES: [Mode; 7] = [
    (FsKind::Ext4, &[], &[]),
    (FsKind::Ext4, &[("data", "journal")], &[]),
    (FsKind::Ext4, &[("data", "writeback")], &[]),
    (FsKind::Ext4, &[("commit", "ijournal")], &[]),
    (FsKind::F2fs, &[], &[KernelLoss::Replaced, KernelLoss::FormerPath]),
    (FsKind::F2fs, &[("allocation", "adaptive")], &[KernelLoss::Replaced, KernelLoss::FormerPath]),
    (FsKind::F2fs, &[("fsync_mode", "strict")], &[]),
];

fn config(kind: FsKind, modes: &[(&'static str, &str)]) -> FsConfig {
    let mut config = kind.config();
    modes.iter().for_each(|(key, value)| config.choose(key, value).unwrap());
    config
}

fn options(config: FsConfig, cuts: CutPoints) -> CallsOptions {
    CallsOptions { fs: FsOptions::new(Base::Adversary, config), cuts, seed: 1 }
}

/// What CrashMonkey and xfstests published is kept in every mode, or lost in a class that has a name.
#[test]
fn published_cases_are_kept_or_named() {
    let cases = parse(PUBLISHED).unwrap();
    assert!(cases.len() >= 48, "{}", cases.len());
    assert!(cases.iter().all(|case| !case.expectations.is_empty()));
    for (kind, modes, lost) in MODES {
        let options = options(config(kind, modes), CutPoints::All);
        let mut runner = CaseRunner::new(&options);
        let mut losses = BTreeSet::new();
        for case in &cases {
            let outcome = runner.run(case);
            let named = format!("{} {modes:?}, case {}", kind.name(), case.name);
            assert_eq!((outcome.finding, outcome.refused), (None, None), "{named}");
            losses.extend(outcome.losses.keys().copied());
        }
        // Which pages show what their block held is up to the device.
        losses.remove(&KernelLoss::FormerBlock);
        assert_eq!(losses, lost.iter().copied().collect(), "{} {modes:?}", kind.name());
    }
}

/// The published cases find rules that are left out.
#[test]
fn published_cases_find_broken_rules() {
    let cases = parse(PUBLISHED).unwrap();
    for (kind, rule) in [
        (FsKind::Ext4, "link-sync"),
        (FsKind::Ext4, "rename-sync"),
        (FsKind::Ext4, "link-count"),
        (FsKind::Ext4, "xattr-sync"),
        (FsKind::Ext4, "commit-fua"),
        (FsKind::F2fs, "fsync-rename"),
        (FsKind::F2fs, "fsync-parent"),
        (FsKind::F2fs, "fsync-flush"),
        (FsKind::F2fs, "dentry-mark"),
        (FsKind::F2fs, "checkpoint-preflush"),
    ] {
        let mut config = kind.config();
        config.omit(rule).unwrap();
        let options = options(config, CutPoints::All);
        let mut runner = CaseRunner::new(&options);
        let found = cases.iter().any(|case| runner.run(case).finding.is_some());
        assert!(found, "{rule} left out is not found");
    }
}

/// Drawn sequences of two calls find a rule that is left out, within a number that a gate has time for.
#[test]
fn enumerated_sequences_find_broken_rules() {
    let all = Enumeration::new(2);
    for (kind, rule) in [(FsKind::Ext4, "link-sync"), (FsKind::F2fs, "fsync-rename")] {
        let mut config = kind.config();
        config.omit(rule).unwrap();
        let options = options(config, CutPoints::Some(2));
        let mut runner = CaseRunner::new(&options);
        // A stride that is prime to the number of sequences visits all parts of the space.
        let drawn = (0..all.numbers()).step_by(97).filter_map(|number| all.case(number));
        let found = drawn.take(400).find(|case: &Case| runner.run(case).finding.is_some());
        assert!(found.is_some(), "{rule} left out is not found");
    }
}
