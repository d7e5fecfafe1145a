//! Cases as text and as runs.

use super::*;
use crate::calls::{Call, Case, parse};
use crate::fs::{Base, FsOptions};
use crate::kernel_loss::KernelLoss;
use nandscape_fs::{FsConfig, FsKind};

/// One case per call and expectation of the language.
const EVERYTHING: &str = "\
case everything
create a; mkdir d
symlink d/s target 40
write a 0 8k o
write a 100 200 n
write d/b 4k 4k tag:1f direct
append a 10 jbd2:2 # a comment
truncate a 5000
fallocate a 8k 8k keep-size; zero a 0 4k; punch a 4k 100
chmod a 640; chown a 7
setxattr a user.x v 300; removexattr a user.x
setxattr a user.y w
link a c; rename a e; exchange e d/b
open c @h append dsync
write @h 0 4k 0
unlink c
fsync @h; close @h; fdatasync d/b
mkdir g; rmdir g
sleep 10ms
sync
CUT
has d directory
not a
data e 4k 4k tag:1f unless K3
size e 8k
xattr d/b user.y w
same e e unless K1 K2
";

fn options(config: FsConfig, base: Base) -> CallsOptions {
    CallsOptions { fs: FsOptions::new(base, config), cuts: CutPoints::All, seed: 1 }
}

fn f2fs(modes: &[(&'static str, &str)]) -> FsConfig {
    let mut config = FsKind::F2fs.config();
    modes.iter().for_each(|(key, value)| config.choose(key, value).unwrap());
    config
}

fn run_case(case: &Case, options: &CallsOptions) -> CaseOutcome {
    CaseRunner::new(options).run(case)
}

fn one(text: &str) -> Case {
    let mut cases = parse(text).unwrap();
    assert_eq!(cases.len(), 1);
    cases.remove(0)
}

/// What is printed reads as the same.
#[test]
fn cases_print_as_they_read() {
    let case = one(EVERYTHING);
    let again = one(&case.to_string());
    let calls = |case: &Case| case.calls.iter().map(|call| call.is.clone()).collect::<Vec<_>>();
    assert_eq!(calls(&again), calls(&case));
    assert_eq!(calls(&case).len(), 29);
    assert_eq!(again.to_string(), case.to_string());
    assert_eq!(again.expectations.len(), 6);
}

/// A call behind what must hold begins another case, as a line with `case` does.
#[test]
fn cases_follow_each_other() {
    let cases = parse("sync; CUT; not a\nmkdir a; sync; CUT\nhas a\ncase third\nsync").unwrap();
    let lines: Vec<usize> = cases.iter().map(|case| case.calls[0].line).collect();
    assert_eq!(lines, [1, 2, 5]);
    let expected: Vec<usize> = cases.iter().map(|case| case.expectations.len()).collect();
    assert_eq!(expected, [1, 1, 0]);
    assert_eq!(cases[2].name, "third");
}

/// Other names of calls are those calls.
#[test]
fn calls_have_other_names() {
    let case =
        one("touch a; creat b; ren a c; xchg b c; mv b d; ln d e; rm e; syncfs; crash; has d");
    let calls: Vec<String> = case.calls.iter().map(|call| call.is.to_string()).collect();
    let expected =
        "create a; create b; rename a c; exchange b c; rename b d; link d e; unlink e; sync";
    assert_eq!(calls.join("; "), expected);
    assert_eq!(case.expectations.len(), 1);
}

/// An error has its line, and says what would be right.
#[test]
fn a_wrong_line_is_named() {
    for (text, line, said) in [
        ("", 1, "no call"),
        ("mkdir a\n\nmkdri b", 3, "`mkdri`: no call; expected one of create, mkdir,"),
        ("write a 0 4k", 1, "write: expected `write FILE OFFSET LENGTH CONTENT [direct]`"),
        ("write a 0 4x o", 1, "write: `4x`: expected bytes up to"),
        ("write a 0 4k o directly", 1, "`directly` is too much"),
        ("fsync a b", 1, "`b` is too much; fsync: expected `fsync FILE`"),
        ("mkdir ../a", 1, "names of a path are not empty"),
        ("mkdir a\nhas a", 2, "has: what must hold stands behind CUT"),
        ("mkdir a\nCUT\nholds a", 3, "`holds`: behind CUT expected one of has, not,"),
        ("mkdir a; CUT; CUT", 1, "a second CUT"),
        ("mkdir a\nCUT\nhas a unless K9", 3, "`K9`: expected classes of losses: K1, K2, K3"),
        ("case one\ncase two\nsync", 1, "case one: no call"),
        ("open a h", 1, "`h`: a handle is `@NAME`"),
        ("sleep 5", 1, "sleep: `5`: expected a time"),
        ("punch a 0 0", 1, "punch: 0 bytes"),
        ("setxattr a x v", 1, "a name begins with user."),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.line == line && error.what.contains(said), "{text:?}: {error}");
    }
}

/// A case that asks for what cannot be is refused at its line.
#[test]
fn what_cannot_be_is_refused() {
    for (text, said) in [
        ("sync\nrename a b", "rename a b: a: no such file or directory"),
        ("mkdir a\nmkdir a", "mkdir a: a: exists already"),
        ("mkdir a\nrename a a/b", "a/b: nothing moves below itself"),
        ("mkdir a\nwrite a 0 4k o", "a: no regular file"),
        ("create a\ntruncate @h 0", "@h: no open file of this name"),
        ("create a\nwrite a 0 10 o direct", "direct: bytes 0 to 10: no whole pages"),
        ("write a/b 0 10 o\nsync", "a: no such file or directory"),
        ("mkdir a; create a/b\nrmdir a", "a: not empty: a/b"),
        ("sync\nwrite a 0 512m o", "no space: the volume is too small for this"),
        ("sync\nsymlink a b 9000", "the name is too long"),
    ] {
        let outcome = run_case(&one(text), &options(f2fs(&[]), Base::Adversary));
        let (line, why) = outcome.refused.unwrap_or_else(|| panic!("{text:?} is not refused"));
        assert!(why.contains(said), "{text:?}: {why}");
        assert_eq!(line, if text.starts_with("write a/b") { 1 } else { 2 }, "{text:?}");
    }
}

/// Every call of the language runs, on both file systems and both bases, and keeps what it made durable.
#[test]
fn every_call_runs() {
    let case = one(EVERYTHING);
    for kind in FsKind::ALL {
        let outcome = run_case(&case, &options(kind.config(), Base::Adversary));
        assert_eq!((outcome.finding, outcome.refused), (None, None), "{}", kind.name());
        assert!(outcome.cuts >= 20, "{}: {}", kind.name(), outcome.cuts);
    }
    let flash = crate::Options {
        faults: Some(crate::FaultRates::default()),
        ftl: FsOptions::ftl_kind(FsKind::Ext4),
        ..crate::Options::default()
    };
    let mut options = options(FsKind::Ext4.config(), Base::Flash(Box::new(flash)));
    options.cuts = CutPoints::Some(3);
    let outcome = run_case(&case, &options);
    assert_eq!((outcome.finding, outcome.refused, outcome.cuts), (None, None, 4));
}

/// A file that was synced ceases to exist on F2FS, as in the kernel: an expectation says so, or names the class. With
/// `fsync_mode=strict`, and on ext4, it stays.
#[test]
fn a_replaced_file_is_found_or_named() {
    let text = "write log 0 64k o; fsync log; sync; rename log log.1; write log 0 100 n; fsync log
        CUT
        data log 0 100 n
        data log.1 0 64k o";
    let posix = run_case(&one(text), &options(f2fs(&[]), Base::Adversary));
    let finding = posix.finding.unwrap();
    assert_eq!(finding.what, "log.1 is missing");
    assert_eq!(finding.losses, [KernelLoss::Replaced]);
    assert!(finding.at_end);
    assert_eq!(finding.expected.unwrap().line, 4);

    let named = one(&format!("{text} unless K1"));
    let named = run_case(&named, &options(f2fs(&[]), Base::Adversary));
    assert_eq!(named.finding, None);
    assert!(named.losses[&KernelLoss::Replaced] >= 8, "{:?}", named.losses);
    for config in [f2fs(&[("fsync_mode", "strict")]), FsKind::Ext4.config()] {
        let kept = run_case(&one(text), &options(config, Base::Adversary));
        assert_eq!((kept.finding, kept.losses.len()), (None, 0));
    }
}

/// A new file that was synced is at the former path of its directory, if that was exchanged or lies below a directory that
/// was renamed: on F2FS also with `fsync_mode=strict`, as in the kernel.
#[test]
fn a_former_path_is_found_or_named() {
    let exchanged = "mkdir A; mkdir B; sync; exchange A B; create A/bar; fsync A/bar
        CUT
        has A/bar";
    let renamed = "mkdir A; mkdir A/B; sync; rename A Z; create Z/B/f; fsync Z/B/f
        CUT
        has Z/B/f";
    for text in [exchanged, renamed] {
        for mode in ["posix", "strict"] {
            let options = options(f2fs(&[("fsync_mode", mode)]), Base::Adversary);
            let finding = run_case(&one(text), &options).finding.unwrap();
            assert_eq!(finding.losses, [KernelLoss::FormerPath], "{mode}: {text}");
            let named = run_case(&one(&format!("{text} unless K2")), &options);
            assert_eq!(named.finding, None);
        }
        let kept = run_case(&one(text), &options(FsKind::Ext4.config(), Base::Adversary));
        assert_eq!((kept.finding, kept.losses.len()), (None, 0));
    }
}

/// A rule that is left out is found by a cut on the way or at the end.
#[test]
fn a_broken_rule_is_found() {
    let mut config = FsKind::Ext4.config();
    config.omit("fsync-flush").unwrap();
    let case = one("write a 0 8k o; sync; write a 0 4k n; fsync a; CUT; data a 0 4k n");
    let finding = run_case(&case, &options(config, Base::Adversary)).finding.unwrap();
    assert!(finding.what.contains("page 0"), "{}", finding.what);
}

/// The sequences of one call, on a device that does the worst it may: no violation, and each is one that can be made.
#[test]
fn every_single_call_is_kept() {
    let all = Enumeration::new(1);
    let mut options = options(FsKind::Ext4.config(), Base::Adversary);
    for config in [FsKind::Ext4.config(), f2fs(&[])] {
        options.fs = FsOptions::new(Base::Adversary, config);
        options.cuts = CutPoints::Some(2);
        let (mut runner, mut cases) = (CaseRunner::new(&options), 0);
        for case in (0..all.numbers()).filter_map(|number| all.case(number)) {
            let outcome = runner.run(&case);
            assert_eq!((outcome.finding, outcome.refused), (None, None), "{case}");
            cases += 1;
        }
        assert!(cases > 100, "{cases}");
    }
}

/// Sequences of two calls that begin with a name: each can be made, whatever the name leads to.
#[test]
fn sequences_of_names_can_be_made() {
    let all = Enumeration::new(2);
    let mut options = options(FsKind::Ext4.config(), Base::Adversary);
    options.cuts = CutPoints::Some(0);
    let mut runner = CaseRunner::new(&options);
    let cases = (0..all.numbers()).step_by(11).filter_map(|number| all.case(number));
    let links =
        cases.filter(|case| matches!(&case.calls[6].is, Call::Symlink(..) | Call::Link(..)));
    let mut count = 0;
    for case in links {
        let outcome = runner.run(&case);
        assert_eq!((outcome.finding, outcome.refused), (None, None), "{case}");
        count += 1;
    }
    assert!(count > 50, "{count}");
}

/// Numbers of two calls: how many are sequences, and that each is another one.
#[test]
fn sequences_of_two_calls_are_distinct() {
    let all = Enumeration::new(2);
    let cases: std::collections::BTreeSet<String> = (0..all.numbers())
        .filter_map(|number| all.case(number))
        .map(|case| Case { name: String::new(), ..case }.to_string())
        .collect();
    let count = (0..all.numbers()).filter(|number| all.case(*number).is_some()).count();
    assert_eq!(cases.len(), count);
    assert!(count > 10_000, "{count}");
}
