//! Repository chores: `cargo xtask tidy` checks what neither the compiler nor clippy can know, `cargo xtask verdicts`
//! sets reproductions of papers beside each other.
//!
//! Exit codes: 0 nothing to say; 1 findings; 2 called wrongly, or the repository cannot be read.

mod tidy;
mod verdicts;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy | verdicts LABEL=PAPER.JSON...";

fn main() -> ExitCode {
    match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [task] if task == "tidy" => check_tree(),
        [task, columns @ ..] if task == "verdicts" && !columns.is_empty() => verdicts(columns),
        _ => complain(USAGE),
    }
}

/// Prints the table of the reproductions that `columns` name.
fn verdicts(columns: &[String]) -> ExitCode {
    let columns =
        columns.iter().map(|one| verdicts::Column::read(one)).collect::<Result<Vec<_>, _>>();
    match columns.and_then(|columns| verdicts::table(&columns)) {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(error) => complain(&format!("verdicts: {error}")),
    }
}

/// Prints every finding of the repository that cargo runs this program for. What it was built from may be
/// another one, if the two share a folder of builds.
fn check_tree() -> ExitCode {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| "xtask".into());
    let tree = match tidy::Tree::load(&Path::new(&xtask).join("..")) {
        Ok(tree) => tree,
        Err(error) => return complain(&format!("tidy: {error}")),
    };
    let findings = tidy::check(&tree);
    findings.iter().for_each(|finding| println!("{finding}"));
    println!("tidy: {} files, {} findings", tree.files.len(), findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn complain(what: &str) -> ExitCode {
    eprintln!("{what}");
    ExitCode::from(2)
}
