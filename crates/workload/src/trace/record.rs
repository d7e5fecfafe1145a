//! One request of a trace, whatever format it came in.

use crate::direction::Direction;
use nandscape_block::{Flags, SECTOR_BYTES};
use nandscape_rt::Nanos;

/// Longest read or write; Linux itself moves no more in one call.
const TRANSFER_BYTES_MAX: u64 = 1 << 31;

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A transfer or a trim.
    Io(Direction),
    /// A flush of the device's cache.
    Flush,
}

impl Action {
    /// In a word, as fio says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Io(direction) => direction.name(),
            Self::Flush => "sync",
        }
    }
}

/// One request, in the bytes that the trace names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// When. Formats count from where they like; a [`super::TraceReader`] from its first request.
    pub at: Nanos,
    /// What.
    pub action: Action,
    /// FUA, PREFLUSH, SYNC and META, where the format tells them.
    pub flags: Flags,
    /// First byte; 0 for a flush.
    pub offset_bytes: u64,
    /// Bytes; 0 for a flush.
    pub length_bytes: u64,
    /// Line that it stands in; of blktrace's binary form, the number of the event.
    pub line: u32,
    /// Number of the file that it stands in, from 0.
    pub file: u32,
    /// Number of the device that it is for; [`super::TraceReader::device`] has its name.
    pub device: u32,
}

impl Record {
    /// A flush.
    pub(super) const fn flush(at: Nanos) -> Self {
        Self::new(at, Action::Flush, 0, 0)
    }

    /// A transfer or trim; refuses what no device could be asked for.
    pub(super) fn io(
        at: Nanos,
        direction: Direction,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<Self, String> {
        if length_bytes == 0 {
            return Err(format!("a {} of 0 bytes", direction.name()));
        }
        if direction != Direction::Trim && length_bytes > TRANSFER_BYTES_MAX {
            let name = direction.name();
            return Err(format!("a {name} of {length_bytes} bytes; at most 2 GiB are possible"));
        }
        if offset_bytes.checked_add(length_bytes).is_none() {
            return Err(format!("offset {offset_bytes} and size {length_bytes} overflow 64 bits"));
        }
        Ok(Self::new(at, Action::Io(direction), offset_bytes, length_bytes))
    }

    const fn new(at: Nanos, action: Action, offset_bytes: u64, length_bytes: u64) -> Self {
        let flags = Flags::NONE;
        Self { at, action, flags, offset_bytes, length_bytes, line: 0, file: 0, device: 0 }
    }

    /// The first sector of 4 KiB that it touches, and the one behind the last.
    pub(super) const fn sectors(&self) -> (u64, u64) {
        let end_bytes = self.offset_bytes + self.length_bytes;
        (self.offset_bytes / SECTOR_BYTES, end_bytes.div_ceil(SECTOR_BYTES))
    }
}
