//! What can be wrong with a trace, always with its file and line, and why a replay ended early.

use crate::engine::EngineError;
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

/// Why a replay has no results.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// The trace is malformed, or does not fit the device: bad input.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The device went wrong.
    #[error(transparent)]
    Device(#[from] EngineError),
}
