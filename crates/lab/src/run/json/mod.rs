//! A result as JSON: fio's own keys (`fio --output-format=json`, fio 3.36), in which a run looks like
//! fio's, and one key of ours (DESIGN, "JSON of a run").
//!
//! The order of keys is fixed, and everything but `wall_s` and `commit` is the same for the same
//! stack, job and seed.

mod curves;
mod fio;
mod fs;
mod host;
mod ours;
mod wml;

use super::outcome::Outcome;
use fio::Detail;
use serde_json::Value;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Outcome {
    /// The whole result; `commit` is what the program was built from.
    #[must_use]
    pub fn to_json(&self, commit: &str) -> Value {
        self.with_detail(commit, Detail::Percentiles)
    }

    /// The same, and latencies by bin: what fio calls json+.
    #[must_use]
    pub fn to_json_plus(&self, commit: &str) -> Value {
        self.with_detail(commit, Detail::Bins)
    }

    fn with_detail(&self, commit: &str, detail: Detail) -> Value {
        let mut json = self.fio(detail);
        json["nandscape"] = self.ours(commit);
        json
    }
}
