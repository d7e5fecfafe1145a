//! What README.md shows is what the program does.

mod common;

use common::{Folder, err, out};
use std::path::PathBuf;

/// The sample is what the first command prints, but for commit and wall times, which are of the machine
/// that it was printed on.
#[test]
fn the_sample_is_what_is_printed() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (_, rest) = readme.split_once("<!-- sample -->\n```text\n").unwrap();
    let (sample, _) = rest.split_once("```\n<!-- /sample -->").unwrap();
    let output = Folder::new("readme").run(&["run"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(lasting(sample), lasting(&out(&output)), "run it again and copy what it prints");
}

/// Without commit and wall times: of `nandscape VERSION (COMMIT): simulated TIME in ...` the virtual time alone.
fn lasting(text: &str) -> String {
    let virtual_time = |line: &str| {
        let (_, after) = line.split_once("): simulated ")?;
        Some(after.split_once(" in ")?.0.to_owned())
    };
    let lines = text.lines().map(|line| virtual_time(line).unwrap_or_else(|| line.to_owned()));
    lines.collect::<Vec<_>>().join("\n")
}
