//! What can be wrong with a trace, always with its file and line.

use crate::place::Place;
use thiserror::Error;

/// Why a trace cannot be read, or a request of it not be carried out.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error("{place}: {problem}")]
pub struct TraceError {
    /// File and line.
    pub place: Place,
    /// What is wrong.
    pub problem: String,
}
