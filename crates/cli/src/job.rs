//! The text of the job or the call sequences that a command runs.

use crate::args::{RunArgs, STDIO};
use crate::output::Failure;
use anyhow::{Context, anyhow};
use nandscape_lab::workload::fio::{
    COMMAND_LINE, HostEnvironment, JobFile, JobSources, JobText, read_all,
};
use std::io::Read;
use std::path::Path;

/// The job that runs when none is named.
const EXAMPLE: &str = include_str!("../../../examples/randwrite.fio");
const EXAMPLE_NAME: &str = "built-in job";
/// What messages call standard input.
const STDIN_NAME: &str = "standard input";

/// The text of the job at `path`, or the built-in one, and its name.
pub(crate) fn job_text(path: Option<&Path>) -> Result<(String, String), Failure> {
    path.map_or_else(|| Ok((EXAMPLE_NAME.to_owned(), EXAMPLE.to_owned())), read_text)
}

/// The text of a file, or of standard input, and its name.
pub(crate) fn read_text(path: &Path) -> Result<(String, String), Failure> {
    let (name, bytes) = match path == Path::new(STDIO) {
        true => (STDIN_NAME.to_owned(), std::io::stdin().lock().bytes().collect()),
        false => (path.display().to_string(), std::fs::read(path)),
    };
    let bytes: Vec<u8> = bytes.with_context(|| name.clone()).map_err(Failure::Input)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Failure::input(anyhow!("{name}:{line}: not a text in UTF-8"))
    })?;
    Ok((name, text))
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
    let jobs = read_all(&sources, &HostEnvironment).map_err(Failure::input)?;
    let line = (!args.jobs.is_empty()).then_some(COMMAND_LINE);
    let names = line.into_iter().chain(texts.iter().map(|(name, _)| name.as_str()));
    Ok((names.collect::<Vec<_>>().join(", "), jobs))
}
