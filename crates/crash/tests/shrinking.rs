//! Shrinking on devices: violations of FTLs that leave out a rule.

use nandscape_crash::{Options, RUNS_MAX, lines, run_seed, shrink_seed};
use nandscape_crash::FaultRates;
use nandscape_crash::fs::{Base, FsOptions, run_fs_seed, shrink_fs_seed};
use nandscape_fs::FsKind;
use nandscape_ftl::FtlKind;

#[test]
#[ignore]
fn explore() {
    for ftl in FtlKind::ALL {
        for rule in ftl.rules() {
            let options = Options { ftl, omit: Some(*rule), ..Options::default() };
            let Some(seed) = (1..300).find(|seed| run_seed(*seed, &options).violation.is_some()) else {
                println!("{ftl} {}: nothing found", rule.name());
                continue;
            };
            let started = std::time::Instant::now();
            let before = run_seed(seed, &options).violation.unwrap();
            match shrink_seed(seed, &options, RUNS_MAX, &mut || true) {
                None => println!("{ftl} {} seed {seed}: NOT SHRUNK: {}", rule.name(), before.what),
                Some(m) => {
                    println!(
                        "{ftl} {} seed {seed}: {} of {} ops, {} rounds, {} runs, {:?}, lines {}: {} | {}",
                        rule.name(), m.reduction.operations(), m.operations_before,
                        m.reduction.rounds.len(), m.runs, started.elapsed(),
                        lines(&m.violation.event_log).len(),
                        m.reduction, m.violation.what
                    );
                    let only = Options { only: Some(m.reduction.clone()), ..options.clone() };
                    let again = run_seed(seed, &only).violation;
                    if again.as_deref() != Some(&m.violation) { println!("   DIFFERS {:?}", again.map(|v| v.what)); }
                }
            }
        }
    }
}

#[test]
#[ignore]
fn explore_fs() {
    for kind in FsKind::ALL {
        for rule in kind.rules() {
            for flash in [true, false] {
            let mut fs = kind.config();
            fs.omit(rule).unwrap();
            let base = match flash {
                true => Base::Flash(Box::new(Options { ftl: FsOptions::ftl_kind(kind), faults: Some(FaultRates::default()), ..Options::default() })),
                false => Base::Adversary,
            };
            let name = if flash {"flash"} else {"adv"};
            let options = FsOptions::new(base, fs);
            let found = (1..40).find_map(|seed| Some((seed, run_fs_seed(seed, &options, None).violation?)));
            let Some((seed, before)) = found else {
                println!("{} {name} {rule}: nothing found", kind.name());
                continue;
            };
            let started = std::time::Instant::now();
            match shrink_fs_seed(seed, &options, None, 300, &mut || true) {
                None => println!("{} {name} {rule} seed {seed}: NOT SHRUNK: {}", kind.name(), before.what),
                Some(m) => {
                    println!(
                        "{} {name} {rule} seed {seed}: {} of {} ops, {} rounds, {} runs, {:?}, lines {}: {} | {}",
                        kind.name(), m.reduction.operations(), m.operations_before,
                        m.reduction.rounds.len(), m.runs, started.elapsed(),
                        lines(&m.violation.event_log).len(),
                        m.reduction, m.violation.what
                    );
                    let mut only = options.clone();
                    only.only = Some(m.reduction.clone());
                    let again = run_fs_seed(seed, &only, None).violation;
                    if again.as_deref() != Some(&m.violation) { println!("   DIFFERS {:?}", again.map(|v| v.what)); }
                }
            }
            }
        }
    }
}
