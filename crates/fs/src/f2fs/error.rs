//! Errors of the format become errors of calls.

use super::format::FormatError;
use crate::contract::FsError;

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
