//! Filebench's workload files, with variables that are set from outside; then the trees of small filesets.

use crate::input::Files;
use nandscape_workload::wml::{Number, Tree, parse, variables};

/// The name of the text that has variables, `NAME=VALUE` in each line.
const SET: &str = "--set";
/// Files and directories up to which a fileset's tree is grown.
const ENTRIES_MAX: u64 = 2_000;

/// Reads a workload file, and grows the trees of its filesets.
pub fn wml(input: &[u8]) {
    let Some(mut files) = Files::of(input) else { return };
    let set = files.take(SET).lines().filter_map(|line| line.split_once('='));
    let set: Vec<_> = set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    drop(variables(files.first, "workload.f"));
    let Ok(workload) = parse(files.first, "workload.f", &set) else { return };
    let fixed = |number: &Number| match number {
        Number::Fixed(number) => *number,
        Number::Drawn(_) => u64::MAX,
    };
    for fileset in &workload.filesets {
        if fixed(&fileset.entries).saturating_add(fixed(&fileset.leafdirs)) <= ENTRIES_MAX {
            drop(Tree::new(fileset, 1));
        }
    }
}
