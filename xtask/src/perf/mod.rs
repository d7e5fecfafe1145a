//! Speed as instructions per unit of work, which callgrind counts: seconds differ by half between two runs on a
//! shared machine, instructions by less than one in ten thousand.
//!
//! A measurement runs the same load with two lengths and takes the difference, so that neither preconditioning
//! nor start and end of the program count. `xtask/perf.json` holds the figures that later ones are compared with.

mod base;
mod loads;
mod measure;

use crate::repository::Repository;
use base::Base;
use std::path::PathBuf;

/// What a measurement may be of its base.
const RATIO_MAX: f64 = 1.05;

/// How measurements are made.
#[derive(Default)]
pub(crate) struct Options {
    /// Make the figures the new base.
    pub(crate) write: bool,
    /// The program to measure; `None`: the release build of the repository.
    pub(crate) binary: Option<PathBuf>,
}

/// Measures, prints a table, and returns whether every figure is at most [`RATIO_MAX`] of its base.
///
/// # Errors
/// Something cannot be built, run or read.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<bool, String> {
    let file = repository.root().join("xtask/perf.json");
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => repository.release_binary()?,
    };
    let found = measure::all(&binary, &repository.target().join("perf"))?;
    if options.write {
        found.write(&file)?;
    }
    let base = Base::read(&file)?;
    let (table, passed) = judge(&base, &found);
    print!("{table}");
    Ok(passed)
}

/// A table of both, and whether every figure may be what it is.
fn judge(base: &Base, found: &Base) -> (String, bool) {
    let row = |cells: [&str; 5]| {
        let [name, unit, base, now, ratio] = cells;
        format!("{name:<7} {unit:<18} {base:>12} {now:>12} {ratio:>6}\n")
    };
    let mut table = row(["load", "instructions", &base.commit, &found.commit, "ratio"]);
    let mut passed = true;
    for load in &loads::LOADS {
        let [old, new] = [base, found].map(|it| it.instructions.get(load.name).copied());
        let ratio = match (old, new) {
            (Some(old), Some(new)) if old > 0.0 => Some(new / old),
            _ => None,
        };
        passed &= ratio.is_some_and(|ratio| ratio <= RATIO_MAX);
        let text = |figure: Option<f64>, digits: usize| {
            figure.map_or("none".into(), |figure| format!("{figure:.digits$}"))
        };
        let unit = format!("per {}", load.unit.name());
        table += &row([load.name, &unit, &text(old, 1), &text(new, 1), &text(ratio, 3)]);
    }
    if !passed {
        table += &format!("a figure is above {RATIO_MAX} of its base, or has none\n");
    }
    (table, passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(steady: f64, names: &[&str]) -> Base {
        let of = |name: &&str| ((*name).into(), if *name == "steady" { steady } else { 100.0 });
        Base { commit: "abc".into(), instructions: names.iter().map(of).collect() }
    }

    const ALL: [&str; 3] = ["steady", "empty", "read"];

    /// Five per cent are permitted, and any gain; more is not, nor is a load without a base.
    #[test]
    fn slower_programs_fail() {
        let base = figures(100.0, &ALL);
        for (steady, passes) in [(80.0, true), (105.0, true), (105.2, false), (200.0, false)] {
            let (table, passed) = judge(&base, &figures(steady, &ALL));
            assert_eq!(passed, passes, "{table}");
            assert!(table.contains(&format!("{:.3}", steady / 100.0)), "{table}");
        }
        assert!(!judge(&figures(100.0, &ALL[..2]), &base).1);
    }
}
