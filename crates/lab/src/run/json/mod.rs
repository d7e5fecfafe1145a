//! A result as JSON: fio's own keys (`fio --output-format=json`, fio 3.36), in which a run looks like
//! fio's, and one key of ours (DESIGN, "JSON of a run").
//!
//! The order of keys is fixed, and everything but `wall_s` and `commit` is the same for the same
//! stack, job and seed.

mod fio;
mod ours;

use super::outcome::Outcome;
use serde_json::Value;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Outcome {
    /// The whole result; `commit` is what the program was built from.
    #[must_use]
    pub fn to_json(&self, commit: &str) -> Value {
        let mut json = self.fio();
        json["nandscape"] = self.ours(commit);
        json
    }
}
