//! Shrinking on devices: violations of FTLs that leave out a rule.

use nandscape_crash::{Options, RUNS_MAX, lines, run_seed, shrink_seed};
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
            match shrink_seed(seed, &options, RUNS_MAX, &mut || {}) {
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
