//! Whether what is to be written at the end can be, asked before anything runs.

use crate::args::STDIO;
use crate::output::Failure;
use crate::replace::Part;
use anyhow::{Context, anyhow};
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

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
