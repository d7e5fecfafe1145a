//! The figures of every shipped stack under short loads are what they were when `corpus.json` was recorded: fio
//! jobs on the device or on files, Filebench workloads, a block trace, a run until steady state, and devices that were
//! saved and loaded. See `nandscape_corpus` for how rows are recorded and compared.

mod keys;
mod loads;

use keys::{KEYS, STACKS};
use loads::Load;
use nandscape_corpus::{Corpus, Row};
use nandscape_lab::run::Outcome;
use nandscape_lab::stack::SHIPPED;
use std::path::Path;

/// Overrides that make any shipped stack small, as in the golden run.
const SMALL: [&str; 3] = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35"];

fn row(outcome: &Outcome) -> Row {
    Row::numbers(&outcome.to_json("corpus"), &KEYS)
}

/// The name of a stack in the names of rows.
fn recorded(stack: &str) -> &str {
    STACKS.iter().find(|(_, new)| *new == stack).map_or(stack, |(old, _)| old)
}

#[test]
fn figures_are_as_recorded() {
    let mut corpus = Corpus::default();
    for (name, _) in SHIPPED {
        for (load, device) in Load::of_stack(name) {
            corpus.add(&format!("{}/{load}", recorded(name)), row(&device.job(load)));
        }
    }
    for name in ["ext4-pblk", loads::COMBINED] {
        for (file, set) in loads::WORKLOADS {
            let outcome = Load::small(name).workload(file, set);
            corpus.add(&format!("{}/{file}", recorded(name)), row(&outcome));
        }
    }
    corpus.add("pblk/trace", row(&Load::aged("pblk").trace()));
    corpus.add("pblk/until-steady", row(&Load::small("pblk").until_steady()));
    for (name, outcome) in Load::aged("pblk").saved_and_loaded() {
        corpus.add(&format!("pblk/{name}"), row(&outcome));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus.json");
    let settled = corpus.settle(&file, Path::new(env!("CARGO_TARGET_TMPDIR")));
    settled.unwrap_or_else(|report| panic!("{report}"));
}
