//! Printing that survives a closed pipe, files instead of it, and the ways to fail.

use crate::args::STDIO;
use crate::replace::Part;
use anyhow::{Context, anyhow};
use nandscape_lab::run::RunError;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Why a command did not do its job.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The run failed or a check did not hold: exit code 1.
    Run(anyhow::Error),
    /// The input was wrong: exit code 2.
    Input(anyhow::Error),
    /// The user said stop: exit code 130, as shells have it.
    Interrupted(anyhow::Error),
}

impl Failure {
    /// Bad input.
    pub(crate) fn input(error: impl Into<anyhow::Error>) -> Self {
        Self::Input(error.into())
    }

    /// A failed run.
    pub(crate) fn run(error: impl Into<anyhow::Error>) -> Self {
        Self::Run(error.into())
    }

    /// Says what happened on standard error, and which exit code stands for it.
    pub(crate) fn report(&self) -> ExitCode {
        let (error, code) = match self {
            Self::Run(error) => (error, 1),
            Self::Input(error) => (error, 2),
            Self::Interrupted(error) => (error, 130),
        };
        complain(&format!("{error:#}"));
        ExitCode::from(code)
    }
}

/// Bad input, a run that failed, or one that was to end.
pub(crate) fn classify(error: RunError) -> Failure {
    match error {
        RunError::Interrupted => Failure::Interrupted(error.into()),
        error if error.is_bad_input() => Failure::input(error),
        error => Failure::run(error),
    }
}

/// Says something on standard error.
pub(crate) fn complain(what: &str) {
    // Nowhere to complain to if standard error is closed.
    let _ = writeln!(std::io::stderr(), "nandscape: {what}");
}

/// Prints to standard output; a reader that went away is not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// The same for what others wrote.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::run(error)),
        _ => Ok(()),
    }
}

/// Prints to standard output, or writes to `file`.
pub(crate) fn deliver(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else { return print(text) };
    std::fs::write(file, text)
        .with_context(|| format!("cannot write {}", file.display()))
        .map_err(Failure::Run)
}

/// Refuses files that could not be written once all is done, that are read, or that two things would be
/// written to. What is there stays as it is, and nothing is there afterwards that was not before.
pub(crate) fn expect_writable<'a>(
    outputs: impl IntoIterator<Item = Option<&'a Path>>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let read = inputs.into_iter().filter(|input| input.is_file());
    let mut taken: Vec<PathBuf> = read.filter_map(place_of).collect();
    for file in outputs.into_iter().flatten() {
        let cannot = || format!("cannot write {}", file.display());
        if file == Path::new(STDIO) {
            let why = "standard output takes results alone; ./- is a file of this name";
            return Err(Failure::Input(anyhow!("{}: {why}", cannot())));
        }
        try_to_write(file).with_context(cannot).map_err(Failure::Input)?;
        if let Some(place) = place_of(file) {
            if taken.contains(&place) {
                let why = "it is read, or something else is written to it";
                return Err(Failure::Input(anyhow!("{}: {why}", cannot())));
            }
            taken.push(place);
        }
    }
    Ok(())
}

/// The file itself, through links; nothing for what is no regular file, of which many can make use.
fn place_of(file: &Path) -> Option<PathBuf> {
    if let Ok(place) = file.canonicalize() {
        return place.is_file().then_some(place);
    }
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(folder.join(file.file_name()?))
}

fn try_to_write(file: &Path) -> std::io::Result<()> {
    match std::fs::metadata(file) {
        Ok(data) if data.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(data) if data.is_file() => OpenOptions::new().write(true).open(file).map(drop),
        // Opening a pipe waits for its reader.
        Ok(_) => Ok(()),
        // Where a link would lead to is known only when it is followed.
        Err(_) if file.is_symlink() => Ok(()),
        // Under a name of our own: somebody else may be about to make the file.
        Err(_) => Part::create(file, None).map(drop),
    }
}

/// JSON as text.
pub(crate) fn pretty(json: &Value) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(json)
        .context("the result has no JSON form")
        .map_err(Failure::Run)?;
    text.push('\n');
    Ok(text)
}
