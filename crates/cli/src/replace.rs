//! A file that takes the place of another only once it is whole: written beside it, under the same name
//! with `.part`, then renamed. Until then what was there stays as it was. An error leaves nothing behind,
//! and who ends the program on the way finds no more than the part. The permissions stay, and a link goes
//! on leading to the file. What is no regular file, such as a device or a pipe, is written to directly.

use crate::output::Failure;
use anyhow::{Context, anyhow};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes the file `path`, and gives what `write` gives.
pub(crate) fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return put(path, path, write);
    }
    // Through links, to the file itself if there is one.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let part = part(&place)
        .ok_or_else(|| Failure::input(anyhow!("{}: not the name of a file", path.display())))?;
    let permitted = |out: &mut BufWriter<File>| {
        if let Ok(old) = fs::metadata(&place) {
            told(path, out.get_ref().set_permissions(old.permissions()))?;
        }
        write(out)
    };
    let written = put(&part, path, permitted)
        .and_then(|value| told(path, fs::rename(&part, &place)).map(|()| value));
    if written.is_err() {
        // Nothing more can be done about it.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Writes `file`, which errors call `name`.
fn put<T>(
    file: &Path,
    name: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut out = BufWriter::new(told(name, File::create(file))?);
    let value = write(&mut out)?;
    told(name, out.flush())?;
    Ok(value)
}

/// Where a file is written that is to be `place`.
fn part(place: &Path) -> Option<PathBuf> {
    let mut name = place.file_name()?.to_owned();
    name.push(".part");
    Some(place.with_file_name(name))
}

fn told<T>(path: &Path, result: io::Result<T>) -> Result<T, Failure> {
    result.with_context(|| format!("cannot write {}", path.display())).map_err(Failure::Run)
}
