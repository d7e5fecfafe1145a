//! What an I/O is, and where the next one goes.

use crate::direction::Direction;

/// What an I/O is; an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Read = 0,
    Write = 1,
    Trim = 2,
    Sync = 3,
    /// A read of what the job wrote; counts as a read.
    Reread = 4,
    /// The reset of a zone before a write.
    Reset = 5,
}

impl Kind {
    pub(super) const COUNT: usize = 6;
    pub(super) const ALL: [Self; Self::COUNT] =
        [Self::Read, Self::Write, Self::Trim, Self::Sync, Self::Reread, Self::Reset];

    /// fio's name.
    pub(super) const fn name(self) -> &'static str {
        ["read", "write", "trim", "sync", "read", "reset"][self as usize]
    }

    /// Whether it transfers or trims, and counts as an I/O.
    pub(super) const fn is_io(self) -> bool {
        !matches!(self, Self::Sync | Self::Reset)
    }

    /// The direction that it counts as; flushes and resets belong to the writes.
    pub(super) const fn direction(self) -> Direction {
        match self {
            Self::Read | Self::Reread => Direction::Read,
            Self::Write | Self::Sync | Self::Reset => Direction::Write,
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

/// One I/O to be issued, in units of its job. Two words, so that it travels in registers; its length goes beside
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Next {
    pub(super) first: u64,
    pub(super) direction: Direction,
}
