//! What can be wrong with a job file, and what is worth telling about one that is right. Both carry
//! a place: file, line and, where it means something, column.

use crate::place::Place;
use std::fmt;
use thiserror::Error;

/// Why a job file cannot be run.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
pub struct JobFileError {
    /// Where.
    pub place: Place,
    /// The key at fault, if one is.
    pub key: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What would have been right, if that can be said.
    pub expected: Option<String>,
}

impl JobFileError {
    /// An error that no key is to blame for.
    pub(crate) fn new(place: Place, problem: impl Into<String>) -> Self {
        Self { place, key: None, problem: problem.into(), expected: None }
    }

    /// The same error, blaming `key`.
    pub(crate) fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// The same error, saying what was expected.
    pub(crate) fn expected(self, expected: impl Into<String>) -> Self {
        Self { expected: Some(expected.into()), ..self }
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.problem)?;
        match &self.expected {
            Some(expected) => write!(f, "; expected {expected}"),
            None => Ok(()),
        }
    }
}

/// Why a key does nothing here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Names of files mean nothing on a block device; on files they do.
    NoFiles,
    /// There are no files to lay out on a block device; on files it would have an effect that is not
    /// carried out, and is refused.
    NotOnFiles,
    /// It does nothing anywhere.
    Always(&'static str),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoFiles => "ignored: all jobs use the simulated block device",
            Self::NotOnFiles => "ignored: a block device has no files",
            Self::Always(why) => why,
        })
    }
}

/// A key that was accepted without effect, or with another effect than on a real machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Where.
    pub place: Place,
    /// The key.
    pub key: String,
    /// Why it does nothing here.
    pub why: Why,
}

impl Notice {
    /// Whether it is true where there are files; elsewhere all are.
    #[must_use]
    pub const fn holds_on_files(&self) -> bool {
        matches!(self.why, Why::Always(_))
    }

    /// Whether the key means something on files, and is not carried out.
    #[must_use]
    pub const fn is_refused_on_files(&self) -> bool {
        matches!(self.why, Why::NotOnFiles)
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.key, self.why)
    }
}
