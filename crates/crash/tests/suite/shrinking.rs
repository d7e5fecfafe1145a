//! Shrinking: violations of FTLs and file systems that leave out a rule, whose least runs show them again.

use nandscape_crash::calls::parse;
use nandscape_crash::fs::{Base, FsOptions, run_fs_seed, shrink_fs_seed};
use nandscape_crash::{
    Budget, EventKind, FaultRates, LogEvent, Minimised, Options, run_seed, shrink_seed,
};
use nandscape_fs::FsKind;
use nandscape_ftl::FtlKind;

/// A kind of FTL without a rule.
fn without(ftl: FtlKind, rule: &str) -> Options {
    let omit = ftl.rules().iter().copied().find(|known| known.name() == rule);
    assert!(omit.is_some(), "{ftl} has no {rule}");
    Options { ftl, omit, ..Options::default() }
}

/// A file system without a rule, on a small device of the kind that it has.
fn fs_without(kind: FsKind, base: Base, rule: &str) -> FsOptions {
    let mut fs = kind.config();
    fs.omit(rule).unwrap();
    FsOptions::new(base, fs)
}

fn flash(kind: FsKind) -> Base {
    Base::Flash(Box::new(Options {
        ftl: FsOptions::ftl_kind(kind),
        faults: Some(FaultRates::default()),
        ..Options::default()
    }))
}

fn has_power_cut(log: &[LogEvent]) -> bool {
    log.iter().any(|event| event.what == EventKind::PowerCut)
}

/// Of each kind of FTL a violation becomes small, the same at each search, and its part of the run shows it again.
#[test]
fn violations_on_devices_shrink() {
    let cases = [
        (FtlKind::Pblk, "lost-trims", 5, 12),
        (FtlKind::PageMap, "preflush-drain", 26, 6),
        (FtlKind::Zoned, "zone-save", 5, 4),
        (FtlKind::Interval, "one-shot-flush", 3, 12),
        (FtlKind::Coupled, "zone-save", 3, 4),
    ];
    for (ftl, rule, seed, most) in cases {
        let options = without(ftl, rule);
        let search = || shrink_seed(seed, &options, Budget::DEVICE, &mut || true).unwrap();
        let Minimised { reduction, operations_before, runs, violation } = search();
        assert_eq!(search().reduction, reduction, "{ftl} {rule}");
        let operations = reduction.operations();
        assert!(operations <= most && most < operations_before, "{ftl} {rule}: {reduction}");
        assert!(runs <= Budget::DEVICE.runs);
        assert!(has_power_cut(&violation.event_log), "{ftl} {rule}: {:?}", violation.event_log);
        let only = Options { only: Some(reduction.clone()), ..options.clone() };
        assert_eq!(run_seed(seed, &only).violation.as_deref(), Some(&violation), "{reduction}");
        let whole = Options { omit: None, ..only };
        assert_eq!(run_seed(seed, &whole).violation, None, "{ftl}: {reduction}");
    }
}

/// No operation can be left out of a least part alone.
#[test]
fn what_is_left_is_needed() {
    let options = without(FtlKind::Pblk, "lost-trims");
    let least = shrink_seed(5, &options, Budget::DEVICE, &mut || true).unwrap();
    let class = least.violation.class();
    for (round, left) in &least.reduction.rounds {
        for (source, numbers) in &left.operations {
            for number in numbers.iter() {
                let mut only = least.reduction.clone();
                let left = only.rounds.get_mut(round).unwrap();
                left.operations.get_mut(source).unwrap().remove(number);
                let outcome = run_seed(5, &Options { only: Some(only), ..options.clone() });
                let same = outcome.violation.is_some_and(|it| it.class() == class);
                assert!(!same, "round {round}, {source} {number}");
            }
        }
    }
}

/// A search that is to end returns what it has.
#[test]
fn a_search_that_is_to_end_returns_what_it_has() {
    let options = without(FtlKind::Pblk, "lost-trims");
    let mut runs = 0;
    let mut on_run = || {
        runs += 1;
        runs < 10
    };
    let some = shrink_seed(5, &options, Budget::DEVICE, &mut on_run).unwrap();
    let only = Options { only: Some(some.reduction), ..options };
    assert_eq!(run_seed(5, &only).violation.as_deref(), Some(&some.violation));
}

/// Violations under file systems become small, too: on flash, and on a device that does the worst it may.
#[test]
fn violations_under_file_systems_shrink() {
    let cases = [
        (FsKind::Ext4, flash(FsKind::Ext4), "missing-barrier", 1, 12),
        (FsKind::Ext4, Base::Adversary, "commit-fua", 1, 8),
        (FsKind::Ext4, Base::Adversary, "orphan-unlink", 1, 4),
    ];
    for (kind, base, rule, seed, most) in cases {
        let mut options = fs_without(kind, base, rule);
        let least = shrink_fs_seed(seed, &options, None, Budget::FILES, &mut || true).unwrap();
        let Minimised { reduction, operations_before, violation, .. } = least;
        let operations = reduction.operations();
        assert!(operations <= most && most < operations_before, "{rule}: {reduction}");
        assert!(has_power_cut(&violation.event_log), "{rule}: {:?}", violation.event_log);
        // Its calls are a case of call sequences.
        let text = violation.calls.join("\n");
        let cases = parse(&text).unwrap_or_else(|error| panic!("{rule}: {error}: {text}"));
        assert!(cases.len() == 1 && cases[0].calls.len() > 1, "{rule}: {text}");
        assert!(violation.calls.contains(&"CUT".to_owned()), "{rule}: {text}");
        options.only = Some(reduction.clone());
        let again = run_fs_seed(seed, &options, None).violation;
        assert_eq!(again.as_deref(), Some(&violation), "{rule}: {reduction}");
        let mut whole = FsOptions::new(options.base.clone(), kind.config());
        whole.only = Some(reduction);
        assert_eq!(run_fs_seed(seed, &whole, None).violation, None, "{rule}");
    }
}
