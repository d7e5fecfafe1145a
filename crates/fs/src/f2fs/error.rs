//! Errors of the format become errors of calls.

use super::format::FormatError;
use crate::contract::FsError;
use std::fmt::Display;

impl From<FormatError> for FsError {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Corrupt { place, byte, what } => {
                Self::corrupt(what, format!("{place}, byte {byte}"))
            }
            FormatError::Checksum { place, .. } => Self::corrupt("checksum", place.to_string()),
            FormatError::Incompatible { what, .. } => Self::Incompatible(what),
        }
    }
}

/// A structure that contradicts itself, with its place.
pub(crate) fn corrupt(what: &'static str, place: impl Display) -> FsError {
    FsError::corrupt(what, place.to_string())
}
