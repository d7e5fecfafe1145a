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
use loads::LOADS;
use std::path::PathBuf;

/// What a measurement may be of its base.
const RATIO_MAX: f64 = 1.01;
/// Below this ratio a base is so old that it would hide a loss.
const RATIO_OLD: f64 = 0.99;

/// How measurements are made.
#[derive(Default)]
pub(crate) struct Options {
    /// Make the figures the new base.
    pub(crate) write: bool,
    /// The program to measure; `None`: the release build of the repository.
    pub(crate) binary: Option<PathBuf>,
}

/// Measures, prints a table, and returns whether every figure is at most [`RATIO_MAX`] of its base, and what its load says of
/// another one.
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
    let mut table = row(["load", "instructions", &base.commit, &found.commit, "ratio", ""]);
    let mut passed = true;
    for load in LOADS {
        let unit = format!("per {}", load.unit.name());
        let figures = [base, found].map(|of| of.instructions.get(load.name).copied());
        passed &= compare(&mut table, [load.name, &unit], figures, (RATIO_OLD, RATIO_MAX));
    }
    for (load, (other, most)) in LOADS.iter().filter_map(|load| Some((load, load.at_most?))) {
        let figures = [other, load.name].map(|name| found.instructions.get(name).copied());
        passed &= compare(&mut table, [load.name, &format!("of {other}")], figures, (0.0, most));
    }
    (table, passed)
}

/// Adds a row that compares a figure with one before it. Whether the ratio is at most what it may be; below the lower bound the
/// row says that the base is old.
fn compare(
    table: &mut String,
    [name, unit]: [&str; 2],
    [old, new]: [Option<f64>; 2],
    (renew, most): (f64, f64),
) -> bool {
    let ratio = match (old, new) {
        (Some(old), Some(new)) if old > 0.0 => Some(new / old),
        _ => None,
    };
    let verdict = match ratio {
        None => "FAILS: a figure is missing".into(),
        Some(ratio) if ratio > most => format!("FAILS: above {most:.2}"),
        Some(ratio) if ratio < renew => "the base can be renewed".into(),
        Some(_) => String::new(),
    };
    let text = |figure: Option<f64>, digits: usize| {
        figure.map_or("none".into(), |figure| format!("{figure:.digits$}"))
    };
    *table += &row([name, unit, &text(old, 1), &text(new, 1), &text(ratio, 3), &verdict]);
    ratio.is_some_and(|ratio| ratio <= most)
}

/// A line of the table.
fn row([name, unit, base, now, ratio, verdict]: [&str; 6]) -> String {
    let line = format!("{name:<10} {unit:<18} {base:>12} {now:>12} {ratio:>6}  {verdict}");
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred for every load, but another figure for one.
    fn figures(load: &str, figure: f64) -> Base {
        let of = |it: &loads::Load| (it.name.into(), if it.name == load { figure } else { 100.0 });
        Base { commit: "abc".into(), instructions: LOADS.iter().map(of).collect() }
    }

    /// The row of a load in the table.
    fn row_of<'a>(table: &'a str, load: &str, unit: &str) -> &'a str {
        table.lines().find(|row| row.starts_with(load) && row.contains(unit)).unwrap()
    }

    /// One per cent is permitted, and any gain; more is not. The row of the load says so.
    #[test]
    fn slower_programs_fail() {
        let base = figures("steady", 100.0);
        for load in ["steady", "zoned", "state"] {
            for (figure, passes, verdict) in [
                (80.0, true, "the base can be renewed"),
                (98.9, true, "the base can be renewed"),
                (99.0, true, ""),
                (101.0, true, ""),
                (101.1, false, "FAILS: above 1.01"),
                (200.0, false, "FAILS: above 1.01"),
            ] {
                let (table, passed) = judge(&base, &figures(load, figure));
                assert_eq!(passed, passes, "{table}");
                let row = row_of(&table, load, "per ");
                assert!(row.ends_with(verdict), "{table}");
                assert!(row.contains(&format!("{:.3}", figure / 100.0)), "{table}");
                assert_eq!(table.contains("FAILS"), !passes, "{table}");
            }
        }
    }

    /// A load that is missing on one side fails, whichever it is.
    #[test]
    fn a_load_without_a_figure_fails() {
        let whole = figures("steady", 100.0);
        for load in LOADS {
            let mut part = whole.clone();
            part.instructions.remove(load.name);
            for (base, found) in [(&part, &whole), (&whole, &part)] {
                let (table, passed) = judge(base, found);
                assert!(!passed, "{table}");
                let row = row_of(&table, load.name, "per ");
                assert!(row.ends_with("FAILS: a figure is missing"), "{table}");
            }
        }
    }

    /// Some are compared with each other in the same measurement, too, whatever the base says.
    #[test]
    fn loads_are_compared_with_each_other() {
        for (load, other, figure, passes) in [
            ("f2fs", "ext4", 125.0, true),
            ("f2fs", "ext4", 126.0, false),
            ("gc-journal", "cleaned", 100.0, true),
            ("gc-journal", "cleaned", 100.1, false),
        ] {
            let both = figures(load, figure);
            let (table, passed) = judge(&both, &both);
            assert_eq!(passed, passes, "{table}");
            let row = row_of(&table, load, &format!("of {other}"));
            assert_eq!(row.contains("FAILS"), !passes, "{table}");
        }
    }
}
