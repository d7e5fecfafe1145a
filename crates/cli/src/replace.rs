//! Files that are written: every one takes its place only once it is whole. It is written beside that, under
//! the same name with the process's number and `.part`, which nothing else may have, then renamed. Until then
//! what was there stays as it was. Neither an error nor an interruption leaves anything behind; who kills the
//! program finds no more than the part. The permissions stay, and a symbolic link goes on leading to the file.
//! What is no regular file, such as a device or a pipe, is written to directly, and so is the file that
//! standard output or standard error goes to.

use crate::output::{Failure, print};
use anyhow::{Context, Error};
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
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
#[derive(Debug)]
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

    /// Where it is as yet.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// It is whole. A file that is mounted by itself, as containers have them, cannot be replaced: it takes
    /// over the content.
    pub(crate) fn take_place(self) -> io::Result<()> {
        let mut parts = parts();
        match fs::rename(&self.name, &self.place) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                fs::copy(&self.name, &self.place)?;
                fs::remove_file(&self.name)?;
            }
            renamed => renamed?,
        }
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

/// The beginning of the file that a user knows as `path`, and what is to take its place once it is whole;
/// nothing for what is written to directly.
pub(crate) fn begin(path: &Path) -> io::Result<(File, Option<Part>)> {
    let Some(place) = place_of(path)? else { return Ok((open(path)?, None)) };
    let (file, part) = Part::create(&place, Some(path))?;
    if let Ok(old) = fs::metadata(&place) {
        file.set_permissions(old.permissions())?;
    }
    Ok((file, Some(part)))
}

/// Writes the file `path`, and gives what `write` gives.
pub(crate) fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (file, part) = with_path(path, begin(path))?;
    let mut out = BufWriter::new(file);
    let value = write(&mut out)?;
    with_path(path, out.flush().and_then(|()| part.map_or(Ok(()), Part::take_place)))?;
    Ok(value)
}

/// Prints to standard output, or writes to `file`.
pub(crate) fn deliver(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else { return print(text) };
    replace(file, |out| with_path(file, out.write_all(text.as_bytes())))
}

/// The same result, whose error names the file that could not be written.
pub(crate) fn with_path<T, E: Into<Error>>(
    path: &Path,
    result: Result<T, E>,
) -> Result<T, Failure> {
    let named = |error: E| error.into().context(format!("cannot write {}", path.display()));
    result.map_err(|error| Failure::Run(named(error)))
}

/// Makes a folder that files are to be in, and those that it is in.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Failure> {
    let made = fs::create_dir_all(folder);
    made.with_context(|| format!("cannot make {}", folder.display())).map_err(Failure::Input)
}

/// Where a file is to be: through links, and without `.` and `..`; nothing for what is written to directly.
pub(crate) fn place_of(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(data) if !data.is_file() || standard(&data).is_some() => Ok(None),
        Ok(_) => fs::canonicalize(path).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => place_of_new(path).map(Some),
        Err(error) => Err(error),
    }
}

/// The same for a file that is not there. A link may lead to it.
fn place_of_new(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    // In a circle they do not lead, or the file system would have said so.
    while let Ok(target) = fs::read_link(&place) {
        place.pop();
        place.push(target);
    }
    let name = place.file_name().filter(|_| !is_folder_by_name(&place));
    let name = name.ok_or(ErrorKind::IsADirectory)?;
    let folder = place.parent().filter(|folder| *folder != Path::new(""));
    Ok(fs::canonicalize(folder.unwrap_or(Path::new(".")))?.join(name))
}

/// Whether a path can name nothing but a folder.
fn is_folder_by_name(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(std::path::MAIN_SEPARATOR_STR.as_bytes())
}

/// Opens what is written to directly. Who writes to standard output goes on behind what is there.
fn open(path: &Path) -> io::Result<File> {
    match standard(&fs::metadata(path)?) {
        Some(standard) => Ok(standard),
        None => File::create(path),
    }
}

/// Standard output or standard error, if that goes to the file.
#[cfg(unix)]
fn standard(data: &Metadata) -> Option<File> {
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::fs::MetadataExt;
    let of = |stream: BorrowedFd<'_>| {
        let file = File::from(stream.try_clone_to_owned().ok()?);
        let own = file.metadata().ok()?;
        ((own.dev(), own.ino()) == (data.dev(), data.ino())).then_some(file)
    };
    of(io::stdout().as_fd()).or_else(|| of(io::stderr().as_fd()))
}

#[cfg(not(unix))]
fn standard(_: &Metadata) -> Option<File> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of processes come again: the part of a process that was killed is replaced.
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
