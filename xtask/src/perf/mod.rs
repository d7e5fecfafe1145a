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
use loads::Limit;
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

/// Measures, prints a table, and returns whether every figure is at most [`RATIO_MAX`] of its base, or what its load
/// says of another.
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
        format!("{name:<10} {unit:<18} {base:>12} {now:>12} {ratio:>6}\n")
    };
    let mut table = row(["load", "instructions", &base.commit, &found.commit, "ratio"]);
    let mut passed = true;
    for load in &loads::LOADS {
        let new = found.instructions.get(load.name).copied();
        let (old, most) = match load.limit {
            Limit::Base => (base.instructions.get(load.name).copied(), RATIO_MAX),
            Limit::Load(other, most) => (found.instructions.get(other).copied(), most),
            Limit::None => (None, f64::INFINITY),
        };
        let ratio = match (old, new) {
            (Some(old), Some(new)) if old > 0.0 => Some(new / old),
            _ => None,
        };
        passed &= match load.limit {
            Limit::None => new.is_some(),
            _ => ratio.is_some_and(|ratio| ratio <= most),
        };
        let text = |figure: Option<f64>, digits: usize| {
            figure.map_or("none".into(), |figure| format!("{figure:.digits$}"))
        };
        let unit = format!("per {}", load.unit.name());
        table += &row([load.name, &unit, &text(old, 1), &text(new, 1), &text(ratio, 3)]);
    }
    if !passed {
        table += &format!(
            "a figure is above {RATIO_MAX} of its base, or what it may be of another, or is missing\n"
        );
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

    const ALL: [&str; 7] = ["steady", "empty", "read", "ext4", "f2fs", "cleaned", "gc-journal"];

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

    /// F2FS may take a quarter more than ext4 in the same measurement, whatever the base says.
    #[test]
    fn kinds_are_compared_with_each_other() {
        let base = figures(100.0, &ALL);
        for (f2fs, passes) in [(125.0, true), (126.0, false)] {
            let mut found = figures(100.0, &ALL);
            found.instructions.insert("f2fs".into(), f2fs);
            assert_eq!(judge(&base, &found).1, passes, "{f2fs}");
        }
    }
}
