//! How long each check may take with a mutant, kept in a file in the build directory: five times the CPU time that it takes
//! without one, and a minute. Seconds of a busy machine say nothing.

use crate::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
struct Line {
    /// Of `crates`, as git names its tree.
    sources: String,
    check: String,
    /// CPU seconds without a mutant.
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

    /// CPU seconds that a check takes without a mutant; infinite if it did not run yet.
    pub(super) fn cost(&self, check: &str) -> f64 {
        self.seconds.get(check).copied().unwrap_or(f64::INFINITY)
    }

    /// The CPU seconds that a check may take with a mutant.
    pub(super) fn find(&self, check: &str) -> Option<u64> {
        self.seconds.get(check).map(|seconds| (seconds * 5.0 + 60.0) as u64)
    }

    /// Notes the CPU seconds that a check takes without a mutant.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn add(&mut self, check: &str, seconds: f64) -> Result<(), String> {
        let line = Line { sources: self.sources.clone(), check: check.into(), seconds };
        files::append(&self.file, &serde_json::to_string(&line).map_err(|e| e.to_string())?)?;
        self.seconds.insert(line.check, line.seconds);
        Ok(())
    }
}
