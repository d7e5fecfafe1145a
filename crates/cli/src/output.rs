//! Printing that survives a closed pipe, and the ways to fail.

use anyhow::Context;
use nandscape_lab::run::RunError;
use serde_json::Value;
use std::io::{ErrorKind, Write};
use std::path::Path;
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
        complain(&without_numbers(&format!("{error:#}")));
        ExitCode::from(code)
    }
}

/// Without the numbers that follow the system's own words: `(os error 2)`.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |said, part| said + part.split_once(')').map_or(part, |(_, rest)| rest))
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

/// Says where something was written.
pub(crate) fn wrote(what: &str, path: &Path) {
    complain(&format!("{what} in {}", path.display()));
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

/// JSON as text.
pub(crate) fn pretty(json: &Value) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(json)
        .context("the result has no JSON form")
        .map_err(Failure::Run)?;
    text.push('\n');
    Ok(text)
}

/// Rows as comma-separated values (RFC 4180, lines end as in Unix).
pub(crate) fn comma_separated(
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).map_err(Failure::run)?;
    }
    let bytes = writer.into_inner().context("the table has no CSV form");
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).context("the table is no text"));
    text.map_err(Failure::Run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_errors_are_left_out() {
        let said =
            without_numbers("a.fio: No such file or directory (os error 2); b (os error 13)");
        assert_eq!(said, "a.fio: No such file or directory; b");
        assert_eq!(without_numbers("as it is (os)"), "as it is (os)");
    }
}
