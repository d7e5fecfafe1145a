//! `nandscape run`: a fio job file on a stack.

use crate::args::{OutputFormat, RunArgs, StackArgs};
use crate::output::{Failure, complain, deliver};
use crate::progress::Progress;
use crate::report::report_run;
use crate::summary::summary;
use anyhow::{Context, anyhow};
use nandscape_lab::run::{Observer, Outcome, Phase, RunError, run as run_in_lab};
use nandscape_lab::stack::{DEFAULT, Stack};
use nandscape_lab::workload::fio::{HostEnvironment, JobFile, parse};
use serde_json::Value;
use std::path::Path;

/// The job that runs when none is named.
const EXAMPLE: &str = include_str!("../../../examples/randwrite.fio");
const EXAMPLE_NAME: &str = "examples/randwrite.fio";

/// The commit that this program was built from.
pub(crate) const COMMIT: &str = env!("NANDSCAPE_COMMIT");

impl Observer for Progress {
    fn wall_s(&self) -> f64 {
        Progress::wall_s(self)
    }

    fn progress(&mut self, phase: Phase, fraction: f64) {
        self.update(phase.name(), fraction);
    }
}

/// Runs, and writes the result where it is wanted.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let stack = Stack::load(&args.stack.stack, &args.stack.set).map_err(Failure::input)?;
    let (job_name, job) = read_job(args.job.as_deref())?;
    for notice in &job.notices {
        complain(&format!("{notice}"));
    }
    let outcome = run_in_lab(&stack, &job, args.seed, &mut Progress::new()).map_err(classify)?;
    let again = again(args);
    let text = match args.output.output_format {
        OutputFormat::Normal => summary(&outcome, &job_name, COMMIT, &again),
        OutputFormat::Json => pretty(&result(&outcome, &again))?,
    };
    deliver(&text, args.output.output.as_deref())?;
    if let Some(html) = &args.report.html {
        report_run(html, &job_name, result(&outcome, &again))?;
    }
    verdict(&outcome)
}

pub(crate) fn classify(error: RunError) -> Failure {
    if error.is_bad_input() { Failure::input(error) } else { Failure::run(error) }
}

/// The text of the job at `path`, or the built-in one, and its name.
pub(crate) fn job_text(path: Option<&Path>) -> Result<(String, String), Failure> {
    let Some(path) = path else {
        return Ok((EXAMPLE_NAME.to_owned(), EXAMPLE.to_owned()));
    };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| name.clone());
    Ok((name, text.map_err(Failure::Input)?))
}

fn read_job(path: Option<&Path>) -> Result<(String, JobFile), Failure> {
    let (name, text) = job_text(path)?;
    let job = parse(&text, &name, &HostEnvironment).map_err(Failure::input)?;
    Ok((name, job))
}

/// A result as JSON, with the command that makes the same.
pub(crate) fn result(outcome: &Outcome, again: &str) -> Value {
    let mut result = outcome.to_json(COMMIT);
    result["nandscape"]["command"] = again.into();
    result
}

/// A result as JSON text.
pub(crate) fn pretty(result: &Value) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(result)
        .context("the result has no JSON form")
        .map_err(Failure::Run)?;
    text.push('\n');
    Ok(text)
}

/// A job that failed fails the run, after its result was written.
pub(crate) fn verdict(outcome: &Outcome) -> Result<(), Failure> {
    let failed = outcome.workload.jobs.iter().find(|job| job.failed());
    failed.map_or(Ok(()), |job| {
        let why = job.failures.first().map_or_else(String::new, |failure| format!(": {failure}"));
        Err(Failure::run(anyhow!("job {} failed{why}", job.name)))
    })
}

/// The command that makes the same result.
fn again(args: &RunArgs) -> String {
    let mut words = vec!["nandscape".to_owned(), "run".to_owned()];
    words.extend(args.job.as_ref().map(|job| quoted(&job.display().to_string())));
    words.extend(stack_words(&args.stack));
    words.extend(["--seed".to_owned(), args.seed.to_string()]);
    words.join(" ")
}

/// The arguments that choose a stack.
pub(crate) fn stack_words(args: &StackArgs) -> Vec<String> {
    let mut words = Vec::new();
    if args.stack != DEFAULT {
        words.extend(["--stack".to_owned(), quoted(&args.stack)]);
    }
    words.extend(set_words(&args.set));
    words
}

/// The arguments that change keys of a stack.
pub(crate) fn set_words(set: &[String]) -> Vec<String> {
    set.iter().flat_map(|set| ["--set".to_owned(), quoted(set)]).collect()
}

/// For a shell, where it needs it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
