//! A file that takes the place of another only once it is whole: written beside it, under the same name
//! with the process's number and `.part`, which nothing else may have, then renamed. Until then what was
//! there stays as it was. Neither an error nor an interruption leaves anything behind; who kills the program
//! finds no more than the part. The permissions stay, and a link goes on leading to the file. What is no
//! regular file, such as a device or a pipe, is written to directly.

use crate::output::Failure;
use anyhow::Context;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is being written, each with the file that a user waits for, if one does.
type Parts = BTreeMap<PathBuf, Option<PathBuf>>;

static PARTS: Mutex<Parts> = Mutex::new(Parts::new());

fn parts() -> MutexGuard<'static, Parts> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what is being written. While the answer lives, nothing takes a place and nothing is begun.
pub(crate) fn abandon() -> MutexGuard<'static, Parts> {
    let parts = parts();
    for part in parts.keys() {
        // Nothing more can be done about it.
        let _ = fs::remove_file(part);
    }
    parts
}

/// A file that is to take a place, and is gone if it does not.
pub(crate) struct Part {
    name: PathBuf,
    place: PathBuf,
}

impl Part {
    /// The file that is to be `place`, under a name that nothing has; a user knows it as `known`.
    pub(crate) fn create(place: &Path, known: Option<&Path>) -> io::Result<(File, Self)> {
        let stem = place.file_name().ok_or(ErrorKind::IsADirectory)?;
        let mut parts = parts();
        let mut number = 0;
        loop {
            let mut name = stem.to_owned();
            // Numbers of processes come again, and so may one that was killed.
            let more = if number == 0 { String::new() } else { format!("-{number}") };
            name.push(format!(".{}{more}.part", std::process::id()));
            let name = place.with_file_name(name);
            match File::create_new(&name) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
                Ok(file) => {
                    parts.insert(name.clone(), known.map(Path::to_owned));
                    return Ok((file, Self { name, place: place.to_owned() }));
                }
            }
        }
    }

    /// It is whole.
    pub(crate) fn take_place(self) -> io::Result<()> {
        let mut parts = parts();
        fs::rename(&self.name, &self.place)?;
        parts.remove(&self.name);
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if parts().remove(&self.name).is_some() {
            // Nothing more can be done about it.
            let _ = fs::remove_file(&self.name);
        }
    }
}

/// Writes the file `path`, and gives what `write` gives.
pub(crate) fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(place) = place_of(path) else {
        return put(told(path, File::create(path))?, path, write);
    };
    let (file, part) = told(path, Part::create(&place, Some(path)))?;
    let permitted = |out: &mut BufWriter<File>| {
        if let Ok(old) = fs::metadata(&place) {
            told(path, out.get_ref().set_permissions(old.permissions()))?;
        }
        write(out)
    };
    let value = put(file, path, permitted)?;
    told(path, part.take_place())?;
    Ok(value)
}

/// Refuses a file that [`replace`] could not write once all is done.
pub(crate) fn expect_replaceable(path: &Path) -> Result<(), Failure> {
    let Some(place) = place_of(path) else { return Ok(()) };
    let made = Part::create(&place, None).map(drop);
    made.with_context(|| format!("cannot write {}", path.display())).map_err(Failure::Input)
}

/// Where a file is to be, through links to the file itself if there is one; nothing for what is no regular
/// file.
fn place_of(path: &Path) -> Option<PathBuf> {
    if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return None;
    }
    Some(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
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

fn told<T>(path: &Path, result: io::Result<T>) -> Result<T, Failure> {
    result.with_context(|| format!("cannot write {}", path.display())).map_err(Failure::Run)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of processes come again: a part that one left which was killed is in nobody's way.
    #[test]
    fn a_forgotten_part_is_passed_by() {
        let folder = std::env::temp_dir().join(format!("nandscape-part-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let place = folder.join("a");
        let (_, forgotten) = Part::create(&place, None).unwrap();
        let (mut file, part) = Part::create(&place, None).unwrap();
        let dropped = Part::create(&place, None).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
        drop(dropped);
        file.write_all(b"whole").unwrap();
        part.take_place().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"whole");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        assert!(forgotten.name.exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
