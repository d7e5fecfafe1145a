//! The text of the job that a command runs.

use crate::output::Failure;
use anyhow::Context;
use std::path::Path;

/// The job that runs when none is named.
const EXAMPLE: &str = include_str!("../../../examples/randwrite.fio");
const EXAMPLE_NAME: &str = "examples/randwrite.fio";

/// The text of the job at `path`, or the built-in one, and its name.
pub(crate) fn job_text(path: Option<&Path>) -> Result<(String, String), Failure> {
    let Some(path) = path else {
        return Ok((EXAMPLE_NAME.to_owned(), EXAMPLE.to_owned()));
    };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| name.clone());
    Ok((name, text.map_err(Failure::Input)?))
}
