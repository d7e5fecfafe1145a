//! Recorded figures of many short runs. A test fills a [`Corpus`] with rows, one a run, and compares it with
//! the file in which they were recorded; a change that keeps every figure keeps every row.
//!
//! A row is a name and a few tokens `name=value`, most of them hashes of numbers ([`Row::numbers`]), so that
//! a report of differences says which part of a result differs. The environment variable `NANDSCAPE_CORPUS`
//! selects what [`Corpus::settle`] does: nothing is set: compare; `write`: record all rows; `add`: record rows that
//! are not in the file, and compare the others; `dump`: compare, and write what was hashed into text files, which two
//! commits can be compared by.

mod numbers;

pub use numbers::Keys;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Rows with differences that a report shows in full.
const SHOWN_MAX: usize = 40;

/// The figures of one run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Row {
    tokens: BTreeMap<String, String>,
    /// What was hashed, in full.
    hashed: String,
}

impl Row {
    /// A hash for each section of a result: the numbers below each key of `nandscape`, and of `jobs`.
    #[must_use]
    pub fn numbers(result: &Value, keys: &Keys<'_>) -> Self {
        let mut row = Self::default();
        for (section, pairs) in keys.sections(result) {
            let lines: String =
                pairs.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
            row.tokens.insert(section, format!("{}/{}", hash(&lines), pairs.len()));
            row.hashed += &lines;
        }
        row
    }

    /// The row with another token, which is readable.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.tokens.insert(name.into(), value.to_string());
        self
    }

    /// The row with another token: the hash of a text.
    #[must_use]
    pub fn with_hash(mut self, name: &str, text: &str) -> Self {
        self.tokens.insert(name.into(), hash(text));
        let _ = writeln!(self.hashed, "{name}: {text}");
        self
    }

    fn text(&self) -> String {
        let tokens = self.tokens.iter().map(|(name, value)| format!("{name}={value}"));
        tokens.collect::<Vec<_>>().join(" ")
    }
}

/// Rows by name.
#[derive(Clone, Default, Debug)]
pub struct Corpus(BTreeMap<String, Row>);

impl Corpus {
    /// Adds a row.
    ///
    /// # Panics
    /// Another row has this name.
    pub fn add(&mut self, name: &str, row: Row) {
        assert!(self.0.insert(name.into(), row).is_none(), "two rows are called {name}");
    }

    /// Compares with the recorded rows in this file, or records them, as `NANDSCAPE_CORPUS` says. `dump` writes
    /// into a directory of this program's files, `scratch`.
    ///
    /// # Errors
    /// The rows that differ, and in which tokens; or why a file cannot be read or written.
    pub fn settle(&self, file: &Path, scratch: &Path) -> Result<(), String> {
        let mode = std::env::var("NANDSCAPE_CORPUS").unwrap_or_default();
        match mode.as_str() {
            "" => self.compare(&read(file)?),
            "write" => write(file, &self.texts()),
            "add" => {
                let recorded = read(file)?;
                let mut all = self.texts();
                all.extend(recorded.clone());
                write(file, &all)?;
                self.compare(&all)
            }
            "dump" => {
                self.dump(scratch)?;
                self.compare(&read(file)?)
            }
            other => Err(format!("NANDSCAPE_CORPUS={other}: expected write, add or dump")),
        }
    }

    /// Row names and their tokens as text.
    fn texts(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, row)| (name.clone(), row.text())).collect()
    }

    /// Compares with recorded rows.
    ///
    /// # Errors
    /// One line for each row that differs: the tokens that do, recorded and found.
    pub fn compare(&self, recorded: &BTreeMap<String, String>) -> Result<(), String> {
        let found = self.texts();
        let names: BTreeSet<&String> = found.keys().chain(recorded.keys()).collect();
        let different: Vec<String> = names
            .iter()
            .filter_map(|name| match (recorded.get(*name), found.get(*name)) {
                (Some(old), Some(new)) => {
                    difference(old, new).map(|what| format!("{name}: {what}"))
                }
                (Some(_), None) => Some(format!("{name}: recorded, and not run any more")),
                (None, _) => {
                    Some(format!("{name}: not recorded; NANDSCAPE_CORPUS=add records new rows"))
                }
            })
            .collect();
        if different.is_empty() {
            return Ok(());
        }
        let shown = different.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n  ");
        Err(format!("{} of {} rows differ:\n  {shown}", different.len(), names.len()))
    }

    fn dump(&self, scratch: &Path) -> Result<(), String> {
        for (name, row) in &self.0 {
            let file = scratch.join(format!("corpus-{}.txt", name.replace(['/', '*'], "_")));
            std::fs::write(&file, &row.hashed).map_err(|e| format!("{}: {e}", file.display()))?;
        }
        println!("what was hashed is in {}", scratch.display());
        Ok(())
    }
}

/// Tokens in which two rows differ, recorded and found.
fn difference(old: &str, new: &str) -> Option<String> {
    let tokens = |text: &str| -> BTreeMap<String, String> {
        let pairs = text.split(' ').filter_map(|token| token.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let (old, new) = (tokens(old), tokens(new));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let value = |tokens: &BTreeMap<String, String>, name: &String| {
        tokens.get(name).cloned().unwrap_or_else(|| "nothing".into())
    };
    let different: Vec<String> = names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name))
        .map(|name| format!("{name} {} -> {}", value(&old, name), value(&new, name)))
        .collect();
    (!different.is_empty()).then(|| different.join(", "))
}

fn read(file: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))
}

fn write(file: &Path, rows: &BTreeMap<String, String>) -> Result<(), String> {
    let error = |what: String| format!("{}: {what}", file.display());
    let text = serde_json::to_string_pretty(rows).map_err(|e| error(e.to_string()))?;
    std::fs::write(file, text + "\n").map_err(|e| error(e.to_string()))
}

/// Half of a 64-bit hash: rows are compared with one other each, so that chance agreement is rare enough.
fn hash(text: &str) -> String {
    format!("{:08x}", xxhash_rust::xxh3::xxh3_64(text.as_bytes()) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(rows: &[(&str, &str)]) -> Corpus {
        let mut corpus = Corpus::default();
        rows.iter().for_each(|(name, ios)| corpus.add(name, Row::default().with("ios", ios)));
        corpus
    }

    #[test]
    fn equal_rows_agree() {
        let it = corpus(&[("a", "1"), ("b", "2")]);
        assert_eq!(it.compare(&it.texts()), Ok(()));
    }

    /// A report names each row that differs, and only the tokens that do.
    #[test]
    fn differences_are_named() {
        let recorded = corpus(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let mut found = corpus(&[("b", "5"), ("c", "3"), ("d", "4")]);
        found.add("e", Row::default().with_hash("text", "x").with("same", 1));
        let report = found.compare(&recorded.texts()).unwrap_err();
        assert!(report.starts_with("4 of 5 rows differ:"), "{report}");
        for line in ["\n  a: recorded, and not run", "\n  b: ios 2 -> 5", "\n  d: not recorded"] {
            assert!(report.contains(line), "{report}");
        }
        assert!(!report.contains("\n  c:"), "{report}");
        let tokens = difference("ios=1 gc=2 waf=3", "ios=1 gc=4 map=5").unwrap();
        assert_eq!(tokens, "gc 2 -> 4, map nothing -> 5, waf 3 -> nothing");
    }
}
