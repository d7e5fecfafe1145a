//! Documents speak of code that exists: every `snake_case` name in backticks in docs/ is a word of some
//! Rust or stack file. So a promise in docs/semantics cannot outlive the test that it names.

use super::source::words;
use super::tree::File;
use super::{Finding, Tree};
use std::collections::BTreeSet;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let sources = tree.files.iter().filter(|f| f.is_rust() || f.path.ends_with(".toml"));
    let known: BTreeSet<&str> =
        sources.flat_map(|file| words(&file.text).map(|(_, word)| word)).collect();
    let documents = tree.files.iter().filter(|f| f.path.starts_with("docs/") && is_document(f));
    documents.flat_map(|document| unknown(document, &known)).collect()
}

fn is_document(file: &File) -> bool {
    file.path.ends_with(".md")
}

fn unknown(document: &File, known: &BTreeSet<&str>) -> Vec<Finding> {
    let missing = names(&document.text).filter(|(_, name)| !known.contains(name));
    missing
        .map(|(at, name)| Finding::at(document, at, "names", format!("no code knows `{name}`")))
        .collect()
}

/// Names in backticks that only code can mean.
fn names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let spans = text.split('`').enumerate().filter_map(move |(index, span)| {
        let from = at;
        at += span.len() + 1;
        (index % 2 == 1).then_some((from, span))
    });
    spans.filter(|(_, span)| {
        let name = |c: char| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit();
        span.starts_with(|c: char| c.is_ascii_lowercase())
            && span.contains('_')
            && span.chars().all(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let sources =
            [("crates/a/tests/t.rs", "//! T.\nfn it_holds() {}"), ("s.toml", "op_percent = 1")];
        let tree = Tree::of(&[&[("docs/a.md", text)], sources.as_slice()].concat());
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_name_that_no_code_knows_is_caught() {
        let expected = ["docs/a.md:2: names: no code knows `it_held`"];
        assert_eq!(found("promise\nchecked by `it_held`, `it_holds`"), expected);
    }

    #[test]
    fn what_is_no_name_passes() {
        assert!(
            found("`op_percent`, `a/b_c.rs`, `Model::a_b`, `cargo run`, a_b, `x`, `0xff_ff`")
                .is_empty()
        );
    }
}
