//! Errors of the layers below in the words of the contract.

use super::format::{FormatError, Place};
use super::journal::JournalError;
use super::raw::RawError;
use crate::contract::FsError;

/// A structure at `place` that contradicts others.
pub(crate) fn corrupt(what: &'static str, place: Place) -> FsError {
    FsError::corrupt(what, place.to_string())
}

impl From<FormatError> for FsError {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Corrupt { place, byte, what } => {
                Self::corrupt(what, format!("{place}, byte {byte}"))
            }
            FormatError::Checksum { place, .. } => Self::corrupt("checksum", place.to_string()),
            FormatError::Incompatible { .. } => Self::Incompatible(error.to_string()),
        }
    }
}

impl From<RawError> for FsError {
    fn from(error: RawError) -> Self {
        match error {
            RawError::Format(error) => error.into(),
            RawError::Device(error) => Self::Io(error),
        }
    }
}

impl From<JournalError> for FsError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Io(error) => Self::Io(error),
            JournalError::Aborted(_) => Self::ReadOnly,
            JournalError::Incompatible(what) => Self::Incompatible(format!("journal: {what}")),
            JournalError::NoRoom(what) => Self::Invalid(what),
            other => Self::corrupt("journal", other.to_string()),
        }
    }
}
