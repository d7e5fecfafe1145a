//! Where a key or a value of a stack came from, and the one error of stack files: a place, the key,
//! and what was expected there (DESIGN, decision 12).

use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Origin of a key or value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A stack file; lines and columns count characters from 1.
    File {
        /// Path as given, or `NAME (built in)`.
        file: Arc<str>,
        /// Line; 0 where the trouble is with the file as a whole.
        line: usize,
        /// Column.
        column: usize,
    },
    /// An override on the command line; its key.
    Set(Arc<str>),
    /// Another argument of the command line, such as a stack that could not be found.
    Argument(&'static str),
}

impl Place {
    /// A file as a whole.
    #[must_use]
    pub fn file(file: &str) -> Self {
        Self::File { file: file.into(), line: 0, column: 0 }
    }

    /// The place of byte `offset` of `text`, which is the content of `file`.
    #[must_use]
    pub fn of(file: &Arc<str>, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self::File {
            file: file.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line: 0, .. } => f.write_str(file),
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Set(key) => write!(f, "--set {key}"),
            Self::Argument(argument) => f.write_str(argument),
        }
    }
}

/// Something wrong with a stack: bad input, never a defect.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error("{place}: {}{message}", prefix(.place, .key))]
pub struct StackError {
    /// Where.
    pub place: Place,
    /// Full path of the key, empty when the trouble is not with one key.
    pub key: String,
    /// What is wrong and what was expected.
    pub message: String,
}

/// The key, unless the place names it already.
fn prefix(place: &Place, key: &str) -> String {
    let is_named = match place {
        Place::File { .. } => false,
        Place::Set(set) => **set == *key,
        Place::Argument(argument) => argument.strip_prefix("--") == Some(key),
    };
    if key.is_empty() || is_named { String::new() } else { format!("{key}: ") }
}

impl StackError {
    /// An error at this place, about this key.
    #[must_use]
    pub fn new(place: &Place, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.clone(), key: key.into(), message: message.into() }
    }
}
