//! Sweep files with the stacks, jobs and workloads that they name, all in the input.

use crate::grid::points;
use crate::input::Files;
use nandscape_lab::stack::document::parse;
use nandscape_lab::sweep::Sweep;

/// Points up to which a sweep is read.
const POINTS_MAX: usize = 64;

/// Reads a sweep file.
pub fn sweep(input: &[u8]) {
    let Some(files) = Files::of(input) else { return };
    let Ok(table) = parse(&"sweep.toml".into(), files.first) else { return };
    if points(&table) > POINTS_MAX {
        return;
    }
    let Ok(sweep) = Sweep::parse("sweep.toml", files.first, &files) else { return };
    assert!(sweep.runs() > 0);
    drop(sweep.notices());
    sweep.cases.iter().for_each(|case| drop(case.label()));
}
