//! Why the journal does not do what it is asked, each with its place.

use super::tid::Tid;
use nandscape_block::BlockError;
use nandscape_rt::invariant::Defect;
use thiserror::Error;

/// An error of the journal.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// The device failed. Of a write this aborts the journal.
    #[error(transparent)]
    Io(#[from] BlockError),
    /// An earlier error aborted the journal: nothing more is written (`EROFS`).
    #[error("the journal was aborted: {0}")]
    Aborted(String),
    /// The journal asks for what is not supported, by name.
    #[error("journal: {0}")]
    Incompatible(String),
    /// A stored structure contradicts itself.
    #[error("corrupt journal, {place}: {what}")]
    Corrupt {
        /// Where: the superblock, or a block of the log.
        place: LogPlace,
        /// What is wrong.
        what: &'static str,
    },
    /// The log holds transactions that were not recovered.
    #[error("the journal needs recovery")]
    NeedsRecovery,
    /// What was asked needs an empty log, or one that is long enough.
    #[error("the journal is too full or too short: {0}")]
    NoRoom(&'static str),
    /// A handle changed or revoked more blocks than it asked credits for: a defect of the caller.
    #[error("a handle of {0} has no credits left")]
    NoCredits(Tid),
    /// No transaction can hold as many blocks.
    #[error("{asked} blocks in one transaction, which holds at most {most}")]
    TooLarge {
        /// Blocks asked for.
        asked: u32,
        /// Blocks that fit.
        most: u32,
    },
}

impl From<Defect> for JournalError {
    fn from(defect: Defect) -> Self {
        Self::Io(defect.into())
    }
}

/// A place in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogPlace {
    /// The journal's superblock.
    Superblock,
    /// The log's extents on the device.
    Extents,
    /// A block of the log, counted from the superblock, which is 0.
    Block(u32),
    /// The copy of a home block in a transaction.
    Copy {
        /// The transaction.
        tid: Tid,
        /// The home block.
        block: u64,
    },
}

impl std::fmt::Display for LogPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Superblock => write!(f, "superblock"),
            Self::Extents => write!(f, "extents"),
            Self::Block(block) => write!(f, "log block {block}"),
            Self::Copy { tid, block } => write!(f, "{tid}, copy of block {block}"),
        }
    }
}
