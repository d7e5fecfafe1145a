//! A file that takes the place of another only once it is whole: written beside it, under the same name
//! with the process's number and `.part`, which nothing else may have, then renamed. Until then what was
//! there stays as it was. An error leaves nothing behind, and who ends the program on the way finds no more
//! than the part. The permissions stay, and a link goes on leading to the file. What is no regular file,
//! such as a device or a pipe, is written to directly.

use crate::output::Failure;
use anyhow::Context;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes the file `path`, and gives what `write` gives.
pub(crate) fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return put(told(path, File::create(path))?, path, write);
    }
    // Through links, to the file itself if there is one.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (file, part) = told(path, create_part(&place))?;
    let permitted = |out: &mut BufWriter<File>| {
        if let Ok(old) = fs::metadata(&place) {
            told(path, out.get_ref().set_permissions(old.permissions()))?;
        }
        write(out)
    };
    let written = put(file, path, permitted)
        .and_then(|value| told(path, fs::rename(&part, &place)).map(|()| value));
    if written.is_err() {
        // Nothing more can be done about it.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Writes `file`, which errors call `name`.
fn put<T>(
    file: File,
    name: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut out = BufWriter::new(file);
    let value = write(&mut out)?;
    told(name, out.flush())?;
    Ok(value)
}

/// Makes the file that is to be `place`, under a name that nothing has.
pub(crate) fn create_part(place: &Path) -> io::Result<(File, PathBuf)> {
    let mut name = place.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = place.with_file_name(name);
    Ok((File::create_new(&part)?, part))
}

fn told<T>(path: &Path, result: io::Result<T>) -> Result<T, Failure> {
    result.with_context(|| format!("cannot write {}", path.display())).map_err(Failure::Run)
}
