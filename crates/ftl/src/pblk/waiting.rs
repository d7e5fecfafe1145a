//! Bios on their way in: how each came, and what waits at a buffer, for room or for durability.

use super::ids::{BufferId, FileKey, file_of};
use super::units::Submitted;
use nandscape_block::{Bio, Flags, Lba, Op, Payload, Token};
use nandscape_rt::Nanos;

/// How a bio came to the FTL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// When the host submitted it.
    pub(super) since: Nanos,
    /// How long it took on the host from then on; at most 4.2 s.
    pub(super) cpu_ns: u32,
    /// The buffer whose lock it took.
    pub(super) buffer: Option<BufferId>,
}

impl Arrival {
    /// At once.
    #[inline]
    pub(super) const fn at(now: Nanos) -> Self {
        Self { since: now, cpu_ns: 0, buffer: None }
    }
}

/// A bio that waits for admission; `inserted` of its sectors are in the buffer.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) lba: Lba,
    pub(super) sectors: u32,
    pub(super) inserted: u32,
    /// Sectors whose mapping was looked up.
    pub(super) looked: u32,
    pub(super) flags: Flags,
    pub(super) discard: bool,
    pub(super) buffer: BufferId,
    pub(super) file: Option<FileKey>,
    pub(super) payload: Payload,
    pub(super) token: Token,
    pub(super) since: Nanos,
}

impl Queued {
    /// Keeps of a write or discard what admission needs.
    #[inline]
    pub(super) fn new(bio: Bio, buffer: BufferId, token: Token, entered: Arrival) -> Self {
        Self {
            lba: bio.lba,
            sectors: bio.sectors,
            inserted: 0,
            looked: 0,
            flags: bio.flags,
            discard: bio.op == Op::Discard,
            buffer,
            file: file_of(bio.owner),
            payload: bio.payload,
            token,
            since: entered.since,
        }
    }

    /// The sector that is inserted next.
    pub(super) fn next(&self) -> Lba {
        self.lba.plus(u64::from(self.inserted))
    }
}

/// A bio's wait for one buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    /// Everything before this position must be durable.
    pub(super) target: u64,
    pub(super) flush: u32,
    pub(super) before: Submitted,
}
