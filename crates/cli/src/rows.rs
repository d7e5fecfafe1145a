//! The file in which a sweep keeps its rows, one line of JSON each (docs/formats/sweep.md).
//!
//! A row is appended as a whole line as soon as its run is finished, so the file is valid after every
//! end, and at worst its last line is cut off; that line is dropped and its run is missing. At the end
//! the rows are put in the sweep's own order, by replacing the file. Rows of other runs stay, behind
//! them. A file that holds anything else is not touched.

use crate::output::Failure;
use crate::replace::{replace, with_path};
use anyhow::{Context, anyhow};
use nandscape_lab::sweep::FinishedRow;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// How every row begins.
const BEGINNING: &str = "{\"run\":\"";

/// Rows by the names of their runs, and the file that keeps them, if there is one.
#[derive(Default)]
pub(crate) struct Rows {
    lines: BTreeMap<String, String>,
    /// The names in the order of the file.
    order: Vec<String>,
    file: Option<(PathBuf, File)>,
}

impl Rows {
    /// The rows that `path` keeps; a file that is not there is made. While these are open, no other
    /// sweep gets the file.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let name = || path.display().to_string();
        let options = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = options.with_context(name).map_err(Failure::Input)?;
        if let Err(error) = file.try_lock() {
            let why = match error {
                TryLockError::WouldBlock => anyhow!("another sweep is writing it"),
                TryLockError::Error(error) => anyhow!("it cannot be locked: {error}"),
            };
            return Err(Failure::Input(why.context(name())));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(name).map_err(Failure::Input)?;
        let mut rows = Self::default();
        let whole = rows.read(&text).with_context(name).map_err(Failure::Input)?;
        if whole < text.len() {
            file.set_len(whole as u64).with_context(name).map_err(Failure::Run)?;
        }
        rows.file = Some((path.to_owned(), file));
        Ok(rows)
    }

    /// Takes in the rows of `text`, and says how many bytes of it are whole lines.
    fn read(&mut self, text: &str) -> Result<usize, anyhow::Error> {
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let not_ours =
            |line: usize| anyhow!("line {line}: not a row of a sweep; nothing is written");
        for (index, line) in text[..whole].lines().enumerate() {
            let row = FinishedRow::parse(line).ok_or_else(|| not_ours(index + 1))?;
            self.insert(row.id, line.to_owned());
        }
        let rest = &text[whole..];
        if !rest.starts_with(BEGINNING) && !BEGINNING.starts_with(rest) {
            return Err(not_ours(text.lines().count()));
        }
        Ok(whole)
    }

    fn insert(&mut self, id: String, line: String) {
        if self.lines.insert(id.clone(), line).is_none() {
            self.order.push(id);
        }
    }

    /// The file that keeps them.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }

    /// The row of a run.
    pub(crate) fn get(&self, id: &str) -> Option<&str> {
        self.lines.get(id).map(String::as_str)
    }

    /// Keeps one more row.
    pub(crate) fn add(&mut self, id: &str, line: String) -> Result<(), Failure> {
        if let Some((path, file)) = &mut self.file {
            let written = file.write_all(format!("{line}\n").as_bytes());
            written.with_context(|| path.display().to_string()).map_err(Failure::Run)?;
        }
        self.insert(id.to_owned(), line);
        Ok(())
    }

    /// Puts the rows of `ids` first, in that order.
    pub(crate) fn sort(&mut self, ids: &[String]) -> Result<(), Failure> {
        let place = |(at, id): (usize, &String)| (id.clone(), at);
        let places: BTreeMap<String, usize> = ids.iter().enumerate().map(place).collect();
        let of = |id: &String| places.get(id).copied().unwrap_or(usize::MAX);
        if self.order.is_sorted_by_key(of) {
            return Ok(());
        }
        self.order.sort_by_key(of);
        self.rewrite()
    }

    /// Writes everything anew.
    fn rewrite(&self) -> Result<(), Failure> {
        let Some((path, _)) = &self.file else { return Ok(()) };
        replace(path, |out| {
            let mut lines = self.order.iter().filter_map(|id| self.lines.get(id));
            let written = lines.try_for_each(|line| writeln!(out, "{line}"));
            with_path(
                path,
                written.and_then(|()| out.flush()).and_then(|()| out.get_ref().sync_all()),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = r#"{"run":"a","result":{}}"#;
    const B: &str = r#"{"run":"b","result":{}}"#;

    fn read(text: &str) -> Result<(usize, Vec<String>), String> {
        let mut rows = Rows::default();
        let whole = rows.read(text).map_err(|error| error.to_string())?;
        Ok((whole, rows.order))
    }

    /// Wherever a power cut or a kill ends the file, every row before that is there.
    #[test]
    fn a_cut_costs_the_last_row_only() {
        let text = format!("{A}\n{B}\n");
        for end in 0..=text.len() {
            let (whole, rows) = read(&text[..end]).unwrap();
            let expected =
                [A.len() + 1, text.len()].iter().filter(|row_end| **row_end <= end).count();
            assert_eq!(rows.len(), expected, "cut at {end}");
            assert!(whole <= end && text[..whole].lines().count() == expected, "cut at {end}");
        }
    }

    /// A file of something else is never written to.
    #[test]
    fn a_strange_file_is_refused() {
        for (text, line) in [("notes", 1), ("[w]\nrw=write\n", 1), ("{}\n", 1)] {
            let message = format!("line {line}: not a row of a sweep; nothing is written");
            assert_eq!(read(text), Err(message), "{text}");
        }
        assert!(read(&format!("{A}\nnotes")).unwrap_err().starts_with("line 2"));
        assert!(read(&format!("{A}\n\n{B}\n")).unwrap_err().starts_with("line 2"));
    }

    /// Rows of the sweep come first and in its order, others stay in theirs.
    #[test]
    fn rows_are_sorted_and_none_is_lost() {
        let mut rows = Rows::default();
        for id in ["x", "c", "w", "a"] {
            rows.add(id, String::new()).unwrap();
        }
        rows.sort(&["a".to_owned(), "b".to_owned(), "c".to_owned()]).unwrap();
        assert_eq!(rows.order, ["a", "c", "x", "w"]);
    }
}
