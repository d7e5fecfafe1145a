//! Reads, writes and trims.

use nandscape_block::Op;

/// Direction of an I/O; an index into every `[_; 3]` of this crate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// Read.
    Read = 0,
    /// Write.
    Write = 1,
    /// Trim (discard).
    Trim = 2,
}

impl Direction {
    /// In the order of fio's comma-separated values.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// fio's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }

    /// What it asks of a device.
    #[must_use]
    pub const fn op(self) -> Op {
        match self {
            Self::Read => Op::Read,
            Self::Write => Op::Write,
            Self::Trim => Op::Discard,
        }
    }
}
