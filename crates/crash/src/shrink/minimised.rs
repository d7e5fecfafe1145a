//! A minimised violation.

use super::reduction::Reduction;
use crate::event::lines;
use crate::outcome::Violation;
use nandscape_rt::words::{counted, grouped};
use std::fmt;

/// Hears of each run of a search before it begins; with false no more run.
pub type OnRun<'a> = dyn FnMut() -> bool + 'a;

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

/// What is left, the violation, and the events.
impl fmt::Display for Minimised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations = counted(self.operations_before as u64, ["operation", "operations"]);
        let rounds = counted(self.reduction.rounds.len() as u64, ["round", "rounds"]);
        let runs = counted(self.runs.into(), ["run", "runs"]);
        let left = grouped(self.reduction.operations() as u64);
        let faults = if self.reduction.faults { ", with injected faults" } else { "" };
        writeln!(f, "minimised to {left} of {operations}, in {rounds}{faults}, by {runs}:")?;
        writeln!(f, "  {}", self.violation.what)?;
        if let Some(mismatch) = self.violation.mismatch() {
            writeln!(f, "  {mismatch}")?;
        }
        write!(f, "  events:")?;
        let events = lines(&self.violation.event_log);
        events.iter().try_for_each(|line| write!(f, "\n    {line}"))?;
        if !self.violation.calls.is_empty() {
            write!(f, "\n  calls, as --calls takes them:")?;
        }
        self.violation.calls.iter().try_for_each(|call| write!(f, "\n    {call}"))
    }
}
