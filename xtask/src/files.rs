//! Files that several tasks handle alike: folders in order, and logs of lines that outlive an interruption.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The files of a folder, in order of their names.
///
/// # Errors
/// It cannot be read.
pub(crate) fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A text.
///
/// # Errors
/// It cannot be read.
pub(crate) fn text(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))
}

/// What a log has; nothing if it was not begun.
///
/// # Errors
/// It cannot be read.
pub(crate) fn log(file: &Path) -> Result<String, String> {
    match fs::read_to_string(file) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|e| format!("{}: {e}", file.display())),
    }
}

/// Removes a log, if it was begun.
///
/// # Errors
/// It cannot be removed.
pub(crate) fn restart(file: &Path) -> Result<(), String> {
    match fs::remove_file(file) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(format!("{}: {e}", file.display())),
        _ => Ok(()),
    }
}

/// Adds a line to a log.
///
/// # Errors
/// It cannot be written.
pub(crate) fn append(file: &Path, line: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", file.display());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut log = OpenOptions::new().create(true).append(true).open(file).map_err(failed)?;
    log.write_all(format!("{line}\n").as_bytes()).map_err(failed)
}
