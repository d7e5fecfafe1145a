//! Whether what is to be written at the end can be, asked before anything runs.

use crate::args::STDIO;
use crate::output::Failure;
use crate::replace::{Part, place_of};
use anyhow::{Context, anyhow};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// Refuses files that could not be written once all is done, that are read, or that two things would be
/// written to. What is there stays as it is, and nothing is there afterwards that was not before.
pub(crate) fn expect_writable<'a>(
    outputs: impl IntoIterator<Item = Option<&'a Path>>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let read = inputs.into_iter().filter(|input| input.is_file());
    let mut taken: Vec<PathBuf> = read.filter_map(|input| place_of(input).ok()?).collect();
    for file in outputs.into_iter().flatten() {
        let cannot = || format!("cannot write {}", file.display());
        if file == Path::new(STDIO) {
            let why = "standard output takes results alone; ./- is a file of this name";
            return Err(Failure::Input(anyhow!("{}: {why}", cannot())));
        }
        let place = try_to_write(file).with_context(cannot).map_err(Failure::Input)?;
        if place.as_ref().is_some_and(|place| taken.contains(place)) {
            let why = "it is also an input or another output";
            return Err(Failure::Input(anyhow!("{}: {why}", cannot())));
        }
        taken.extend(place);
    }
    Ok(())
}

/// The place of a file that could be written now; nothing for what is written to directly, of which many can
/// make use. Opening that might wait: a pipe for its reader.
fn try_to_write(file: &Path) -> std::io::Result<Option<PathBuf>> {
    let Some(place) = place_of(file)? else { return Ok(None) };
    if place.exists() {
        OpenOptions::new().write(true).open(&place)?;
    }
    // Under another name: another process may be about to make the file.
    Part::create(&place, None)?;
    Ok(Some(place))
}
