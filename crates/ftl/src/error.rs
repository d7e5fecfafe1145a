//! Errors of building or mounting an FTL.

use nandscape_block::BlockError;
use nandscape_media::RuleError;
use nandscape_rt::invariant::Defect;
use thiserror::Error;

/// Why an FTL could not be made, or stopped.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum FtlError {
    /// The choices do not fit the geometry.
    #[error("{key}: {why}")]
    Config {
        /// The key at fault, as in a stack file.
        key: &'static str,
        /// What is wrong, and what would help.
        why: String,
    },
    /// The process cannot have the address space for the tables.
    #[error("no address space for the tables of a device of this size")]
    AddressSpace,
    /// The virtual media would need more RAM than it may take.
    #[error("the virtual media reached its memory cap")]
    MemoryCap,
    /// Power went off; the media holds what the crash model says.
    #[error("power was lost")]
    PowerLost,
    /// The media refused a command: a defect of the FTL.
    #[error("defect: {0}")]
    Defect(RuleError),
    /// The device came to a stop while it was being made.
    #[error(transparent)]
    Stopped(BlockError),
    /// What is stored contradicts itself.
    #[error("corrupt {kind} in line {line}")]
    Corrupt {
        /// What was read.
        kind: &'static str,
        /// Where.
        line: u32,
    },
}

impl From<RuleError> for FtlError {
    fn from(rule: RuleError) -> Self {
        match rule.rule {
            RuleError::POWER_OFF => Self::PowerLost,
            RuleError::MEMORY_CAP => Self::MemoryCap,
            _ => Self::Defect(rule),
        }
    }
}

impl From<BlockError> for FtlError {
    fn from(error: BlockError) -> Self {
        match error {
            BlockError::PowerLost => Self::PowerLost,
            BlockError::MemoryCap => Self::MemoryCap,
            other => Self::Stopped(other),
        }
    }
}

impl From<Defect> for FtlError {
    fn from(defect: Defect) -> Self {
        Self::Stopped(defect.into())
    }
}

impl From<FtlError> for BlockError {
    fn from(error: FtlError) -> Self {
        match error {
            FtlError::PowerLost => Self::PowerLost,
            FtlError::MemoryCap => Self::MemoryCap,
            FtlError::Stopped(error) => error,
            other => Self::Defect(other.to_string()),
        }
    }
}
