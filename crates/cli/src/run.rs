//! `nandscape run`: a fio job file on a stack; workload files of Filebench go to `wml.rs`.

use crate::args::{ResultArgs, ResultFormat, RunArgs, StackArgs};
use crate::cache::Cache;
use crate::hdr::job_names;
use crate::logs::Watch;
use crate::output::{Failure, complain, deliver};
use crate::paint::{ColorChoice, Paint};
use crate::report::report_run;
use crate::summary::summary;
use crate::wml;
use anyhow::{Context, anyhow};
use nandscape_lab::run::{Manner, Outcome, RunError, UntilSteady, run_as};
use nandscape_lab::stack::{DEFAULT, Stack};
use nandscape_lab::state::States;
use nandscape_lab::sweep::program;
use nandscape_lab::workload::fio::{HostEnvironment, JobFile, parse};
use nandscape_lab::workload::log::FioLogs;
use nandscape_lab::workload::wml::is_workload;
use nandscape_rt::Nanos;
use serde_json::Value;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The job that runs when none is named.
const EXAMPLE: &str = include_str!("../../../examples/randwrite.fio");
const EXAMPLE_NAME: &str = "examples/randwrite.fio";

/// The commit that this program was built from.
pub(crate) const COMMIT: &str = env!("NANDSCAPE_COMMIT");

/// Runs, and writes the result where it is wanted.
pub(crate) fn run(args: &RunArgs, color: ColorChoice) -> Result<(), Failure> {
    if let Some(file) = args.job.as_deref().filter(|file| is_workload(file)) {
        return wml::run(args, file, color);
    }
    let stack = Stack::load(&args.stack.stack, &args.stack.set).map_err(Failure::input)?;
    let (job_name, job) = read_job(args.job.as_deref())?;
    for notice in job.notices.iter().filter(|notice| stack.tells(notice)) {
        complain(&format!("{notice}"));
    }
    let cache = Cache::open(&args.cache)?;
    let mut watch = Watch::new();
    watch.fio_logs(FioLogs::new(&job), args.log_dir.as_deref())?;
    watch_histograms(&mut watch, &args.output, job_names(&job))?;
    watch.timeline(&args.timeline)?;
    let states = states(args.state.as_deref(), cache.as_ref());
    let manner = Manner { states, program: &program(COMMIT), until_steady: args.until_steady };
    let outcome = run_as(&stack, &job, args.seed, manner, &mut watch);
    let watched = watch.finish();
    let outcome = outcome.map_err(classify)?;
    tell(&outcome, &args.output, color, &job_name, &again(args))?;
    watched?;
    write_iologs(&outcome)?;
    verdict(&outcome)
}

/// Where the preconditioned device comes from: a file that was named, or the cache.
pub(crate) fn states<'a>(file: Option<&'a Path>, cache: Option<&'a Cache>) -> States<'a> {
    file.map_or_else(|| Cache::states(cache), States::File)
}

/// Writes the logs that jobs ask for with `write_iolog`.
fn write_iologs(outcome: &Outcome) -> Result<(), Failure> {
    for log in &outcome.workload.iologs {
        let write = || {
            let mut file = BufWriter::new(File::create(&log.path)?);
            log.write_to(&mut file)?;
            file.flush()
        };
        write().with_context(|| format!("cannot write {}", log.path)).map_err(Failure::Run)?;
    }
    Ok(())
}

/// Has interval histograms written, if they are wanted.
pub(crate) fn watch_histograms(
    watch: &mut Watch,
    args: &ResultArgs,
    jobs: Vec<String>,
) -> Result<(), Failure> {
    let Some(path) = &args.hdr_log else { return Ok(()) };
    watch.hdr_log(path, Nanos::from_ms(args.hdr_interval), jobs)
}

/// Writes the result of `name` where it is wanted; `again` is the command that makes it again.
pub(crate) fn tell(
    outcome: &Outcome,
    args: &ResultArgs,
    color: ColorChoice,
    name: &str,
    again: &str,
) -> Result<(), Failure> {
    let text = match args.output_format {
        ResultFormat::Normal => {
            let paint = Paint::new(color, args.output.is_some());
            summary(outcome, name, COMMIT, again, paint)
        }
        ResultFormat::Json => pretty(&with_command(outcome.to_json(COMMIT), again))?,
        ResultFormat::JsonPlus => pretty(&with_command(outcome.to_json_plus(COMMIT), again))?,
    };
    deliver(&text, args.output.as_deref())?;
    args.report
        .html
        .as_ref()
        .map_or(Ok(()), |html| report_run(html, name, with_command(outcome.to_json(COMMIT), again)))
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

/// A result with the command that makes the same.
fn with_command(mut result: Value, again: &str) -> Value {
    result["nandscape"]["command"] = again.into();
    result
}

/// JSON as text.
pub(crate) fn pretty(json: &Value) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(json)
        .context("the result has no JSON form")
        .map_err(Failure::Run)?;
    text.push('\n');
    Ok(text)
}

/// A job that failed fails the run, after its result was written.
pub(crate) fn verdict(outcome: &Outcome) -> Result<(), Failure> {
    if let Some(why) = outcome.flowops.as_ref().and_then(|report| report.failure()) {
        return Err(Failure::run(anyhow!("the workload ended early: {why}")));
    }
    let failed = outcome.workload.jobs.iter().find(|job| job.failed());
    failed.map_or(Ok(()), |job| {
        let why = job.failures.first().map_or_else(String::new, |failure| format!(": {failure}"));
        Err(Failure::run(anyhow!("job {} failed{why}", job.name)))
    })
}

/// The command that makes the same result.
pub(crate) fn again(args: &RunArgs) -> String {
    let mut words = vec!["nandscape".to_owned(), "run".to_owned()];
    words.extend(args.job.as_ref().map(|job| quoted(&job.display().to_string())));
    words.extend(stack_words(&args.stack));
    words.extend(state_words(args.state.as_deref()));
    words.extend(steady_words(args.until_steady));
    words.extend(["--seed".to_owned(), args.seed.to_string()]);
    words.join(" ")
}

/// The argument that names a state.
pub(crate) fn state_words(state: Option<&Path>) -> Vec<String> {
    let words = |path: &Path| ["--state".to_owned(), quoted(&path.display().to_string())];
    state.into_iter().flat_map(words).collect()
}

/// The argument that asks for steady state.
pub(crate) fn steady_words(until_steady: Option<UntilSteady>) -> Option<String> {
    until_steady.map(|until| match until == UntilSteady::default() {
        true => "--until-steady".to_owned(),
        false => format!("--until-steady={until}"),
    })
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
