//! What every campaign prints after its counts: the verdict, the violations, and the commands that make them again.

use super::again;
use crate::args::CrashArgs;
use crate::command::COMMIT;
use crate::output::Failure;
use anyhow::anyhow;
use nandscape_crash::composition::Composition;
use nandscape_crash::{Minimised, Violation, verdict};
use nandscape_lab::run::VERSION;
use nandscape_rt::words::{counted, grouped};

/// Seeds, as messages count them.
pub(super) const SEEDS: [&str; 2] = ["seed", "seeds"];

/// Why a campaign ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// All of it ran.
    Whole,
    /// There were as many failing seeds as are wanted.
    Stopped,
    /// A signal came.
    Interrupted,
}

/// A violation.
#[derive(Clone, Debug)]
pub(super) struct Found<'a> {
    /// The composition that it is of.
    pub(super) composition: Option<&'a Composition>,
    pub(super) violation: &'a Violation,
    /// The least part of its run, where it was searched for.
    pub(super) minimised: Option<Minimised>,
}

impl<'a> Found<'a> {
    /// One that is not minimised.
    pub(super) const fn new(
        composition: Option<&'a Composition>,
        violation: &'a Violation,
    ) -> Self {
        Self { composition, violation, minimised: None }
    }
}

/// The findings of a campaign.
pub(super) struct Findings<'a> {
    pub(super) args: &'a CrashArgs,
    pub(super) end: End,
    /// Seeds that ran.
    pub(super) seeds: u64,
    /// What of all that was wanted is finished.
    pub(super) finished: String,
    /// In the order of seeds.
    pub(super) violations: Vec<Found<'a>>,
    /// What ran, and for how long.
    pub(super) what: String,
    pub(super) wall_s: f64,
}

impl Findings<'_> {
    /// All of it, below the counts.
    pub(super) fn text(&self, counts: &str) -> String {
        let mut text = format!("{counts}{}", self.verdict());
        if let Some((first, others)) = self.violations.split_first() {
            text.push_str(&self.in_full(first));
            match self.args.verbose {
                true => others.iter().for_each(|found| text.push_str(&self.in_full(found))),
                false => text.push_str(&self.in_short(others)),
            }
        }
        let Self { what, wall_s, .. } = self;
        let again = again::campaign(self.args);
        text + &format!(
            "\n  nandscape {VERSION} ({COMMIT}): {what} in {wall_s:.2} s\n  Reproduce: {again}\n"
        )
    }

    fn verdict(&self) -> String {
        let of = counted(self.seeds, SEEDS);
        let verdict = verdict(self.violations.len() as u64, &of);
        match self.end {
            End::Whole => verdict + "\n",
            End::Stopped => {
                let failing = ["failing seed", "failing seeds"];
                let failing = counted(self.violations.len() as u64, failing);
                format!("{verdict}; stopped after {failing} (--max-violations)\n")
            }
            End::Interrupted => {
                format!("{verdict}\nPARTIAL: interrupted; {} finished\n", self.finished)
            }
        }
    }

    fn in_full(&self, found: &Found<'_>) -> String {
        let Found { composition, violation, minimised } = found;
        let command = |only| again::seed(self.args, *composition, violation.seed, only);
        let (prefix, whole) = (prefix(*composition), command(self.args.only.as_ref()));
        let minimised = minimised.as_ref().map_or_else(String::new, |minimised| {
            let command = command(Some(&minimised.reduction));
            format!("\n{prefix}seed {}, {minimised}\n  reproduce: {command}\n", violation.seed)
        });
        format!("\n{prefix}{violation}\n  reproduce: {whole}\n{minimised}")
    }

    fn in_short(&self, others: &[Found<'_>]) -> String {
        if others.is_empty() {
            return String::new();
        }
        let count = counted(others.len() as u64, ["other failing seed", "other failing seeds"]);
        let lines = others.iter().map(|Found { composition, violation, .. }| {
            format!("  {}{}\n", prefix(*composition), violation.summary())
        });
        format!("\n{count} (--verbose prints each in full):\n{}", lines.collect::<String>())
    }

    /// A violation is a failure, and so is an interruption.
    pub(super) fn result(&self) -> Result<(), Failure> {
        match (self.end, self.violations.len()) {
            (End::Interrupted, _) => {
                Err(Failure::Interrupted(anyhow!("interrupted: {} finished", self.finished)))
            }
            (_, 0) => Ok(()),
            (_, n) => {
                let seeds = counted(self.seeds, SEEDS);
                Err(Failure::run(anyhow!("violations in {} of {seeds}", grouped(n as u64))))
            }
        }
    }
}

fn prefix(composition: Option<&Composition>) -> String {
    composition.map_or_else(String::new, |composition| format!("{composition}: "))
}
