//! A minimised violation.

use super::reduction::Reduction;
use crate::outcome::Violation;

/// The most runs of a search, by default.
pub const RUNS_MAX: u32 = 500;

/// What is left of a violation, and its story.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Minimised {
    /// What is left of the seed's run.
    pub reduction: Reduction,
    /// Operations of the seed's run until the violation.
    pub operations_before: usize,
    /// Runs of the search.
    pub runs: u32,
    /// The violation of the reduced run. Its log is the story: all that happened.
    pub violation: Violation,
}
