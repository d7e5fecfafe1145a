//! How long each check may take with a mutant, kept in a file beside the records: five times as long as without one, and
//! a minute for machines that do something else.

use crate::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Line {
    /// Of `crates`, as git names its tree.
    sources: String,
    check: String,
    /// Without a mutant.
    seconds: f64,
}

/// Those of one state of the sources.
pub(super) struct Limits {
    file: PathBuf,
    sources: String,
    seconds: BTreeMap<String, f64>,
}

impl Limits {
    /// # Errors
    /// The file cannot be read.
    pub(super) fn open(file: &Path, sources: &str, restart: bool) -> Result<Self, String> {
        if restart {
            files::restart(file)?;
        }
        let text = files::log(file)?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let of_sources = lines.filter(|line| line.sources == sources);
        let seconds = of_sources.map(|line| (line.check, line.seconds)).collect();
        Ok(Self { file: file.to_owned(), sources: sources.to_owned(), seconds })
    }

    /// Seconds that a check takes without a mutant; infinite if it did not run yet.
    pub(super) fn cost(&self, check: &str) -> f64 {
        self.seconds.get(check).copied().unwrap_or(f64::INFINITY)
    }

    pub(super) fn find(&self, check: &str) -> Option<Duration> {
        self.seconds.get(check).map(|seconds| Duration::from_secs_f64(seconds * 5.0 + 60.0))
    }

    /// Notes what a check takes without a mutant, and returns its limit.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn add(&mut self, check: &str, took: Duration) -> Result<Duration, String> {
        let line = Line {
            sources: self.sources.clone(),
            check: check.into(),
            seconds: took.as_secs_f64(),
        };
        files::append(&self.file, &serde_json::to_string(&line).map_err(|e| e.to_string())?)?;
        self.seconds.insert(line.check, line.seconds);
        Ok(self.find(check).unwrap_or(took))
    }
}
