//! What is wrong with a workload file, and where; and what is accepted without effect.

use crate::fio::edit_distance;
use crate::place::Place;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Typing errors that still let a name be recognised.
const DISTANCE_MAX: usize = 2;

/// A position in a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct At {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// Why a workload file cannot be run.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
pub struct WmlError {
    /// Where.
    pub place: Place,
    /// What is wrong, and what would be right.
    pub problem: String,
    /// The line at fault, as it stands in the file.
    pub line: String,
}

impl fmt::Display for WmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)?;
        if self.line.is_empty() {
            return Ok(());
        }
        let before = self.line.chars().take(self.place.column.saturating_sub(1) as usize);
        // Tabs stay, so that the mark stands below its character.
        let blank: String = before.map(|c| if c == '\t' { c } else { ' ' }).collect();
        write!(f, "\n  | {}\n  | {blank}^", self.line)
    }
}

/// Something that was accepted without effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WmlNotice {
    /// Where.
    pub place: Place,
    /// What, and why it does nothing.
    pub text: String,
}

impl fmt::Display for WmlNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// A file's name and text, for errors.
#[derive(Clone, Debug)]
pub(super) struct Source<'a> {
    file: Arc<str>,
    text: &'a str,
}

impl<'a> Source<'a> {
    pub(super) fn new(file: &str, text: &'a str) -> Self {
        Self { file: file.into(), text }
    }

    pub(super) const fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn place(&self, at: At) -> Place {
        Place { file: Arc::clone(&self.file), line: at.line, column: at.column }
    }

    /// An error at `at`.
    pub(super) fn error(&self, at: At, problem: impl Into<String>) -> WmlError {
        let line = self.text.lines().nth(at.line.saturating_sub(1) as usize).unwrap_or_default();
        WmlError { place: self.place(at), problem: problem.into(), line: line.to_owned() }
    }

    /// An error about a name that is none of `known`: the closest, or all of them if they are few.
    pub(super) fn unknown<'k>(
        &self,
        at: At,
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> WmlError {
        let known: Vec<&str> = known.collect();
        let advice = match (closest(name, &known), known.len()) {
            (Some(close), _) => format!("; did you mean \"{close}\"?"),
            (None, 1..=16) => format!("; known: {}", known.join(", ")),
            _ => String::new(),
        };
        self.error(at, format!("{what} is called \"{name}\"{advice}"))
    }
}

/// The known name within two typing errors of `typed`, the closest one if there are several.
fn closest<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let distance = |name: &str| edit_distance(typed.as_bytes(), name.as_bytes());
    let near = known.iter().filter(|name| name.len().abs_diff(typed.len()) <= DISTANCE_MAX);
    let near = near.map(|name| (distance(name), *name));
    let near = near.filter(|(distance, name)| *distance <= DISTANCE_MAX && *distance < name.len());
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mark stands below the character at fault, whatever stands before it.
    #[test]
    fn errors_show_their_line() {
        let source = Source::new("a.f", "run 5\n\tset $x=?");
        let error = source.error(At { line: 2, column: 9 }, "what is this");
        assert_eq!(error.to_string(), "a.f:2:9: what is this\n  | \tset $x=?\n  | \t       ^");
    }

    /// A slip is recognised; otherwise a short list is shown.
    #[test]
    fn names_are_suggested() {
        let source = Source::new("a.f", "x");
        let message = |name: &str| {
            let known = ["entries", "size"].into_iter();
            source.unknown(At { line: 1, column: 1 }, "no attribute", name, known).problem
        };
        assert_eq!(
            message("entreis"),
            "no attribute is called \"entreis\"; did you mean \"entries\"?"
        );
        assert_eq!(message("depth"), "no attribute is called \"depth\"; known: entries, size");
    }
}
