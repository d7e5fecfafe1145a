//! Files that several tasks handle alike: folders in order, logs of lines that outlive an interruption, and pages with a
//! row for each name.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
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

/// The whole lines of a log; nothing if it was not begun. A line that an interruption cut does not count.
///
/// # Errors
/// It cannot be read.
pub(crate) fn log(file: &Path) -> Result<String, String> {
    let failed = |e: String| format!("{}: {e}", file.display());
    match fs::read(file) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(failed(e.to_string())),
        Ok(mut bytes) => {
            bytes.truncate(bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
            String::from_utf8(bytes).map_err(|e| failed(e.to_string()))
        }
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

/// Adds a line to a log, in the place of one that an interruption cut.
///
/// # Errors
/// It cannot be written.
pub(crate) fn append(file: &Path, line: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", file.display());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let whole = log(file)?.len() as u64;
    let log = OpenOptions::new().create(true).write(true).truncate(false).open(file);
    let mut log = log.map_err(failed)?;
    log.set_len(whole).map_err(failed)?;
    log.seek(SeekFrom::End(0)).map_err(failed)?;
    log.write_all(format!("{line}\n").as_bytes()).map_err(failed)
}

/// The text of a page with this line as the row of a name: in place of the old one, else at the end.
pub(crate) fn with_row(text: &str, name: &str, line: &str) -> String {
    let mark = format!("| `{name}` |");
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter().position(|old| old.starts_with(&mark)) {
        Some(at) => lines[at] = line,
        None => lines.push(line),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name has one row, the latest; others stay.
    #[test]
    fn a_row_takes_the_place_of_the_older() {
        let text = "# Campaigns\n\n| A | B |\n|---|---|\n";
        let first = with_row(text, "one", "| `one` | 1 |");
        let second = with_row(&first, "two", "| `two` | 2 |");
        let third = with_row(&second, "one", "| `one` | 3 |");
        assert_eq!(third, format!("{text}| `one` | 3 |\n| `two` | 2 |\n"));
    }

    /// A line that an interruption cut is neither read nor in the way of the next one.
    #[test]
    fn logs_hold_whole_lines() {
        let folder = std::env::temp_dir().join(format!("nandscape-log-{}", std::process::id()));
        let file = folder.join("new/log");
        assert_eq!(log(&file), Ok(String::new()));
        append(&file, "first").unwrap();
        fs::write(&file, "first\nsecond cut in \u{e4}".as_bytes().split_last().unwrap().1).unwrap();
        assert_eq!(log(&file), Ok("first\n".to_owned()));
        append(&file, "third").unwrap();
        assert_eq!(log(&file), Ok("first\nthird\n".to_owned()));
        fs::remove_dir_all(folder).unwrap();
    }
}
