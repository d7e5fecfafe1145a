//! What became of mutants: a file with one line per mutant, appended when its checks have ended, so that an
//! interrupted run resumes. A mutant that was caught stays caught when the sources change, as tests and campaigns are added and not
//! taken away; a survivor is run again.

use super::checks::{End, Place};
use super::table::Mutant;
use crate::files;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One mutant.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub(super) struct Record {
    /// Of `crates`, as git names its tree.
    pub(super) sources: String,
    pub(super) id: String,
    /// What the mutant puts in place of its snippet.
    pub(super) replace: String,
    /// The check that caught it; absent for a survivor.
    pub(super) check: Option<String>,
    /// What that check reports.
    pub(super) what: Option<String>,
    /// Where a campaign found it.
    pub(super) place: Option<Place>,
    /// Of all checks up to that one.
    pub(super) seconds: f64,
    /// Checks that ran.
    pub(super) checks: u32,
    /// Whether CI missed it, and a longer campaign was run.
    pub(super) long: bool,
}

impl Record {
    /// Notes how its last check ended.
    pub(super) fn note(&mut self, check: &str, end: End) {
        if let End::Caught { what, place } = end {
            self.check = Some(check.to_owned());
            self.what = Some(what);
            self.place = place;
        }
    }

    pub(super) fn is_caught(&self) -> bool {
        self.check.is_some()
    }
}

/// The file of records.
pub(super) struct Records {
    file: PathBuf,
    sources: String,
    all: Vec<Record>,
}

impl Records {
    /// Those that are there.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn open(file: &Path, sources: &str, restart: bool) -> Result<Self, String> {
        if restart {
            files::restart(file)?;
        }
        let text = files::log(file)?;
        Ok(Self { file: file.to_owned(), sources: sources.to_owned(), all: parse(&text) })
    }

    /// The last one of a mutant that counts for these sources.
    pub(super) fn find(&self, mutant: &Mutant) -> Option<&Record> {
        let counts = |record: &&Record| {
            record.id == mutant.id
                && record.replace == mutant.replace
                && (record.is_caught() || record.sources == self.sources)
        };
        self.all.iter().rev().find(counts)
    }

    /// # Errors
    /// The file cannot be written.
    pub(super) fn add(&mut self, record: Record) -> Result<(), String> {
        files::append(&self.file, &serde_json::to_string(&record).map_err(|e| e.to_string())?)?;
        self.all.push(record);
        Ok(())
    }
}

fn parse(text: &str) -> Vec<Record> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let record = Record {
            sources: "abc".into(),
            id: "a".into(),
            replace: "true".into(),
            check: Some("crash".into()),
            what: None,
            place: Some(Place { seed: 3, operations: Some([90, 4]) }),
            seconds: 1.5,
            checks: 1,
            long: false,
        };
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(parse(&format!("{line}\n{{}}\n")), [record]);
    }
}
