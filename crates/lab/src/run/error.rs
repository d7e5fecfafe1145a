//! Why a run could not begin or did not end.

use crate::stack::{FaultsFrom, Stack, StackError};
use crate::state::StateError;
use nandscape_block::BlockError;
use nandscape_ftl::FtlError;
use nandscape_media::MediaError;
use nandscape_workload::trace::TraceError;
use thiserror::Error;

/// Keys of faults that strike commands, and the value with which none does.
const FAULTS: [&str; 3] = ["program_rate", "erase_rate", "unreadable_rate"];
const NO_FAULTS: &str = "0.0";
/// Keys that take chunks away.
const FEWER_CHUNKS: [&str; 2] = ["media.endurance_erases", "media.faults.bad_chunk_rate"];

/// Why there is no result.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum RunError {
    /// Keys of the stack that do not go together: bad input.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The job does not fit the device: bad input.
    #[error("{0}")]
    Job(String),
    /// The trace is malformed or does not fit the device: bad input.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A state that cannot be used: bad input.
    #[error(transparent)]
    State(#[from] StateError),
    /// The virtual media needs more RAM than it may take.
    #[error(
        "the virtual media reached its memory cap of {cap_bytes} bytes (media.memory_cap); raise \
         it, use media.payload = \"none\", or a smaller device"
    )]
    MemoryCap {
        /// The cap.
        cap_bytes: u64,
    },
    /// The device failed a request of the preconditioning.
    #[error("preconditioning: {0}")]
    Precondition(BlockError),
    /// Requests are in flight and the device has nothing to do: a defect.
    #[error("internal error: requests outstanding but the device has no pending event")]
    Stuck,
    /// Without timing, something took time: a defect.
    #[error("defect: virtual time passed on a device without timing")]
    TimePassed,
    /// The observer interrupted it before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// The workload stopped early.
    #[error("{0}")]
    Failed(String),
}

impl RunError {
    /// Whether the input was wrong, rather than the run.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        matches!(self, Self::Stack(_) | Self::Job(_) | Self::Trace(_) | Self::State(_))
    }

    /// A device that stopped because the media may take no more RAM.
    pub(super) const fn memory_cap(stack: &Stack) -> Self {
        Self::MemoryCap { cap_bytes: stack.media.memory_cap_bytes }
    }

    /// A request of the preconditioning failed.
    pub(super) fn precondition(stack: &Stack, error: Self) -> Self {
        match error {
            Self::Precondition(BlockError::MemoryCap) => Self::memory_cap(stack),
            Self::Precondition(error) => match failing_keys(stack) {
                Some(why) => Self::Failed(format!("preconditioning: {error}; {why}")),
                None => Self::Precondition(error),
            },
            other => other,
        }
    }

    /// A device that cannot be made as the stack says.
    pub(super) fn media(stack: &Stack, error: &MediaError) -> Self {
        match error {
            MediaError::Geometry(shape) => stack.geometry_error(shape).into(),
            MediaError::Memory { .. } => stack.error("media.memory_cap", &error.to_string()).into(),
            other => stack.error("media.chunks", &other.to_string()).into(),
        }
    }

    /// An FTL that cannot be made as the stack says.
    pub(super) fn ftl(stack: &Stack, error: FtlError) -> Self {
        match error {
            FtlError::Config { key, why } => stack.ftl_error(key, &why).into(),
            FtlError::MemoryCap => Self::memory_cap(stack),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// The keys of a stack by which its media fail while they are preconditioned, and what to do; `None`: there are none.
fn failing_keys(stack: &Stack) -> Option<String> {
    let strikes = stack.media.faults.from == FaultsFrom::Start;
    let is_fault = |key: &str| {
        let name = key.strip_prefix("media.faults.");
        strikes && name.is_some_and(|name| FAULTS.contains(&name))
    };
    let set = |counts: &dyn Fn(&str) -> bool| {
        let keys = stack.resolved_keys();
        let set = keys.filter(|(key, value)| counts(key) && *value != NO_FAULTS);
        set.map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>()
    };
    let (faults, fewer) = (set(&is_fault), set(&|key| FEWER_CHUNKS.contains(&key)));
    let remedy = match (faults.is_empty(), fewer.is_empty()) {
        (true, true) => return None,
        (false, _) => "media.faults.from = \"measured\" lets faults begin with the measured phase",
        (true, false) => "write less before measuring ([precondition]), or change these keys",
    };
    let keys = [faults, fewer].concat().join(", ");
    Some(format!("media fail while the device is preconditioned, too ({keys}); {remedy}"))
}

impl From<BlockError> for RunError {
    fn from(error: BlockError) -> Self {
        Self::Precondition(error)
    }
}
