//! The text of the job that a command runs.

use crate::args::{RunArgs, STDIO};
use crate::output::Failure;
use anyhow::Context;
use nandscape_lab::workload::fio::{COMMAND_LINE, HostEnvironment, JobFile, JobSources, JobText};
use std::path::Path;

/// The job that runs when none is named.
const EXAMPLE: &str = include_str!("../../../examples/randwrite.fio");
const EXAMPLE_NAME: &str = "built-in job";
/// What messages call standard input.
const STDIN_NAME: &str = "standard input";

/// The text of the job at `path`, or the built-in one, and its name.
pub(crate) fn job_text(path: Option<&Path>) -> Result<(String, String), Failure> {
    let Some(path) = path else {
        return Ok((EXAMPLE_NAME.to_owned(), EXAMPLE.to_owned()));
    };
    let (name, text) = match path == Path::new(STDIO) {
        true => (STDIN_NAME.to_owned(), std::io::read_to_string(std::io::stdin())),
        false => (path.display().to_string(), std::fs::read_to_string(path)),
    };
    let text = text.with_context(|| name.clone());
    Ok((name, text.map_err(Failure::Input)?))
}

/// The jobs of the command line and of all files, and a name for all of them.
pub(crate) fn read_jobs(args: &RunArgs) -> Result<(String, JobFile), Failure> {
    let texts = match args.files.as_slice() {
        [] if args.jobs.is_empty() => vec![job_text(None)?],
        files => files.iter().map(|file| job_text(Some(file))).collect::<Result<_, _>>()?,
    };
    let sources = JobSources {
        command_line: &args.jobs,
        files: texts.iter().map(|(name, text)| JobText { name, text }).collect(),
        sections: &args.section,
        runtime: args.length.runtime,
    };
    let jobs = sources.read(&HostEnvironment).map_err(Failure::input)?;
    let line = (!args.jobs.is_empty()).then_some(COMMAND_LINE);
    let names = line.into_iter().chain(texts.iter().map(|(name, _)| name.as_str()));
    Ok((names.collect::<Vec<_>>().join(", "), jobs))
}
