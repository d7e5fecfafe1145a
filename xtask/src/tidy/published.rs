//! Published numbers stand in a paper's `published.toml` and nowhere else: no other file of a paper has a
//! key of a statement or a `[[line]]`, and no file of it nor any code holds a number that is published
//! with three digits or more, which are not written by chance.

use super::tree::File;
use super::{Finding, Tree};
use std::collections::BTreeSet;

/// Keys with which statements state numbers.
const KEYS: [&str; 5] = ["value", "values", "at_most", "at_least", "between"];
/// Significant digits from which on a number is distinct.
const DIGITS: usize = 3;
/// Code that has to do with papers.
const CODE: [&str; 3] = ["crates/paper/src/", "crates/report/src/", "crates/cli/src/"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let is_published = |file: &&File| of_paper(file) && file.path.ends_with("/published.toml");
    let published = tree.files.iter().filter(is_published);
    let known: BTreeSet<String> = published.flat_map(|file| stated(&file.text)).collect();
    let others = tree.files.iter().filter(|file| !is_published(file));
    let beside = others.filter(|file| of_paper(file) || is_code(file));
    beside.flat_map(|file| look(file, &known)).collect()
}

fn of_paper(file: &File) -> bool {
    file.path.starts_with("papers/")
}

fn is_code(file: &File) -> bool {
    file.is_rust() && CODE.iter().any(|folder| file.path.starts_with(folder))
}

/// Key and value of a line of TOML.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    Some((key.trim(), value))
}

/// Numbers that statements state, as far as they are distinct.
fn stated(text: &str) -> impl Iterator<Item = String> {
    let values = text.lines().filter_map(assignment).filter(|(key, _)| KEYS.contains(key));
    let numbers = values.flat_map(|(_, value)| numbers(value));
    numbers.map(|(_, number)| number.to_owned()).filter(|number| digits(number) >= DIGITS)
}

/// Significant digits.
fn digits(number: &str) -> usize {
    let whole = |c: &char| c.is_ascii_digit();
    let all: String = number.chars().filter(whole).collect();
    let all = all.trim_start_matches('0');
    if number.contains('.') { all.len() } else { all.trim_end_matches('0').len() }
}

/// Numbers with the bytes at which they begin; what is a part of a word is none.
fn numbers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    let mut at = 0;
    text.split(move |c| !part(c)).filter_map(move |word| {
        let from = at;
        at += word.len() + 1;
        let word = word.trim_end_matches('.');
        let number = |c: char| c.is_ascii_digit() || c == '.';
        (word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(number))
            .then_some((from, word))
    })
}

fn look(file: &File, known: &BTreeSet<String>) -> Vec<Finding> {
    let finding = |offset, message: String| Finding::at(file, offset, "published", message);
    let mut found = Vec::new();
    if file.path.ends_with(".toml") {
        let mut offset = 0;
        for line in file.text.lines() {
            let key = assignment(line).map(|(key, _)| key).filter(|key| KEYS.contains(key));
            if key.is_some() || line.trim() == "[[line]]" {
                let what = key.unwrap_or("[[line]]");
                found.push(finding(offset, format!("`{what}` belongs in published.toml")));
            }
            offset += line.len() + 1;
        }
    }
    let copies = numbers(&file.text).filter(|(_, number)| known.contains(*number));
    found.extend(copies.map(|(at, number)| {
        finding(at, format!("{number} is a published number, which stands in published.toml alone"))
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: &str = "[[statement]]\nid = \"a\"\nvalues = [2.41, 10]\nwithin = 0.123\n";

    fn found(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[("papers/a/published.toml", PUBLISHED), (path, text)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    /// A published number, and a way to state one, are caught wherever they stand.
    #[test]
    fn copies_are_caught() {
        let copy = "2.41 is a published number, which stands in published.toml alone";
        assert_eq!(
            found("crates/paper/src/a.rs", "//! A.\nconst X: f64 = 2.41;"),
            [format!("crates/paper/src/a.rs:2: published: {copy}")]
        );
        assert_eq!(
            found("papers/a/NOTES.md", "It is 2.41."),
            [format!("papers/a/NOTES.md:1: published: {copy}")]
        );
        let expected = ["papers/a/paper.toml:2: published: `at_most` belongs in published.toml"];
        assert_eq!(found("papers/a/paper.toml", "id = 1\nat_most = 3\n"), expected);
        assert_eq!(found("papers/a/fio.toml", "[[line]]\n").len(), 1);
    }

    /// Numbers that anybody may write, and tolerances, are free; so are other folders.
    #[test]
    fn others_pass() {
        assert!(
            found("papers/a/fio.toml", "iodepth = 10\nx = 0.123\ny = 12.41\nz = \"v2.41\"\n")
                .is_empty()
        );
        assert!(found("docs/results/papers.md", "published: 2.41").is_empty());
    }
}
