//! What became of mutants: `xtask/mutants/records.jsonl` has one line per mutant, appended when its checks have ended, so
//! that an interrupted run resumes, also on another machine.
//!
//! A record counts while what it stands on is the same ([`super::basis`]): that of a caught mutant on the file that the mutant changes
//! and on the check that caught it, that of a survivor on all sources. A check that went, or changed, has to catch the
//! mutant anew.

use super::checks::{End, Place};
use super::table::Mutant;
use crate::files;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One mutant.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub(super) struct Record {
    /// What it stands on.
    pub(super) basis: String,
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
    /// One whose checks have not run; what it stands on if all miss it.
    pub(super) fn of(mutant: &Mutant, basis: &str) -> Self {
        Self {
            basis: basis.to_owned(),
            id: mutant.id.clone(),
            replace: mutant.replace.clone(),
            check: None,
            what: None,
            place: None,
            seconds: 0.0,
            checks: 0,
            long: false,
        }
    }

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
    all: Vec<Record>,
}

impl Records {
    /// Those that are there.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn open(file: &Path, restart: bool) -> Result<Self, String> {
        if restart {
            files::restart(file)?;
        }
        Ok(Self { file: file.to_owned(), all: parse(&files::log(file)?) })
    }

    /// The last one of a mutant, whether or not it still counts.
    pub(super) fn last(&self, mutant: &Mutant) -> Option<&Record> {
        let is_its = |record: &&Record| record.id == mutant.id && record.replace == mutant.replace;
        self.all.iter().rev().find(is_its)
    }

    /// # Errors
    /// The file cannot be written.
    pub(super) fn add(&mut self, record: Record) -> Result<(), String> {
        files::append(&self.file, &serde_json::to_string(&record).map_err(|e| e.to_string())?)?;
        self.all.push(record);
        Ok(())
    }

    /// Leaves the last record of each of these mutants alone, in their order: the file is committed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn compact(&mut self, mutants: &[Mutant]) -> Result<(), String> {
        self.all = mutants.iter().filter_map(|mutant| self.last(mutant).cloned()).collect();
        let lines: Result<Vec<String>, _> = self.all.iter().map(serde_json::to_string).collect();
        let text: String =
            lines.map_err(|e| e.to_string())?.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&self.file, text).map_err(|e| format!("{}: {e}", self.file.display()))
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
            basis: "abc".into(),
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
