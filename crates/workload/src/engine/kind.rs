//! What an I/O is, and where the next one goes.

use crate::fio::Direction;
use nandscape_block::Lba;

/// What an I/O is; an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Read = 0,
    Write = 1,
    Trim = 2,
    Sync = 3,
    /// A read of what the job wrote; counts as a read.
    Reread = 4,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Read, Self::Write, Self::Trim, Self::Sync, Self::Reread];

    /// fio's name.
    pub(super) const fn name(self) -> &'static str {
        ["read", "write", "trim", "sync", "read"][self as usize]
    }

    /// The direction that it counts as; a flush belongs to the writes.
    pub(super) const fn direction(self) -> Direction {
        match self {
            Self::Read | Self::Reread => Direction::Read,
            Self::Write | Self::Sync => Direction::Write,
            Self::Trim => Direction::Trim,
        }
    }
}

impl From<Direction> for Kind {
    #[inline]
    fn from(direction: Direction) -> Self {
        [Self::Read, Self::Write, Self::Trim][direction as usize]
    }
}

/// One I/O to be issued. Two words, so that it travels in registers; its length goes beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Next {
    pub(super) lba: Lba,
    pub(super) direction: Direction,
}
