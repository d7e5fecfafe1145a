//! A block I/O request, carrying what the papers' kernels carry and nothing else: operation, sector
//! range, payload, flags, owner, placement hint and flush scope.

use crate::address::Lba;
use crate::payload::Payload;
use crate::zone::{ZoneAction, ZoneId};
use std::ops::{BitOr, BitOrAssign};

/// What is asked of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Read `sectors` from `lba`.
    Read,
    /// Write the payload to `lba`.
    Write,
    /// Make durable what was acknowledged before this bio was submitted, within its scope.
    Flush,
    /// Forget `sectors` from `lba`. A write like any other: durable after a covering flush. At the old address of a move
    /// that the device made it always reaches the data; at the new address it reaches them once the host has fetched the
    /// move ([`Op::FetchUpcall`]), not before: what the host does not know of it cannot mean. A power cut ends that
    /// protection for the moves that there are, so a host fetches all of them before it discards anything.
    Discard,
    /// Append the payload to a zone; the reply tells where it went.
    ZoneAppend(ZoneId),
    /// Change the state of a zone.
    Zone(ZoneId, ZoneAction),
    /// Report up to `sectors` zones, from the zone that holds `lba` on, or the next after `lba`.
    ZoneReport,
    /// Fetch a batch of address migrations that the device made, `sectors` records at most. Without
    /// any the reply is [`crate::Reply::None`], or a batch without records, by which a device that is short of addresses
    /// asks the host to complete what it has fetched.
    FetchUpcall,
    /// Completes when migrations wait for [`Op::FetchUpcall`], at once if some do. Only of a device with
    /// [`crate::caps::UpcallSignal::Interrupt`].
    AwaitUpcall,
    /// Complete the fetched batch with this id: the device forgets the old addresses. The host
    /// promises that a flush which it submitted after the fetch has completed, that its metadata with the new addresses are
    /// durable, and that it has submitted every discard of an old address that it queued before. The barrier is the host's
    /// alone: the device orders nothing. A batch that a power cut finds uncompleted is offered again with another id.
    CompleteUpcall(u64),
}

/// Properties of a bio, a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(u16);

impl Flags {
    /// Nothing special.
    pub const NONE: Self = Self(0);
    /// Part of a file-system journal.
    pub const JOURNAL: Self = Self(1);
    /// File-system metadata at its home location.
    pub const META: Self = Self(1 << 1);
    /// A caller waits for this bio.
    pub const SYNC: Self = Self(1 << 2);
    /// The payload is durable when the bio completes.
    pub const FUA: Self = Self(1 << 3);
    /// Everything acknowledged before, within the scope, is durable before the payload is submitted.
    pub const PREFLUSH: Self = Self(1 << 4);
    /// The reader does not look at the content: the device checks it but replies without a payload.
    pub const NO_DATA: Self = Self(1 << 5);

    /// Whether every bit of `other` is set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Who the data belongs to. Write-back sets the file's owner, not the flusher's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Owner {
    /// File identity (inode number).
    pub file: u64,
    /// Generation of that identity, so that a reused inode inherits nothing.
    pub generation: u32,
    /// Submitting thread.
    pub thread: u16,
    /// Core that the thread runs on.
    pub core: u16,
}

/// Placement hint: write stream, FDP placement handle, or F2FS temperature. 0 is "none".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Placement(pub u16);

/// What a flush, or a bio with [`Flags::PREFLUSH`], covers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FlushScope {
    /// Every buffer of the device.
    #[default]
    All,
    /// What belongs to the bio's owner; without an owner, everything.
    Owner,
}

/// One request.
#[derive(Clone, PartialEq, Debug)]
pub struct Bio {
    /// What is asked.
    pub op: Op,
    /// First sector.
    pub lba: Lba,
    /// Number of sectors; 0 for an empty flush.
    pub sectors: u32,
    /// Flag bits.
    pub flags: Flags,
    /// Placement hint.
    pub placement: Placement,
    /// What a flush covers.
    pub scope: FlushScope,
    /// Whose data it is, when known.
    pub owner: Option<Owner>,
    /// The data of a write; [`Payload::None`] otherwise, or where content is not kept.
    pub payload: Payload,
}

impl Bio {
    /// A bio without flags, owner or hints.
    #[inline]
    #[must_use]
    pub const fn new(op: Op, lba: Lba, sectors: u32) -> Self {
        Self {
            op,
            lba,
            sectors,
            flags: Flags::NONE,
            placement: Placement(0),
            scope: FlushScope::All,
            owner: None,
            payload: Payload::None,
        }
    }

    /// A read.
    #[inline]
    #[must_use]
    pub const fn read(lba: Lba, sectors: u32) -> Self {
        Self::new(Op::Read, lba, sectors)
    }

    /// A write of `payload`, which must describe `sectors` sectors.
    #[inline]
    #[must_use]
    pub fn write(lba: Lba, sectors: u32, payload: Payload) -> Self {
        Self { payload, ..Self::new(Op::Write, lba, sectors) }
    }

    /// A flush of everything.
    #[inline]
    #[must_use]
    pub const fn flush() -> Self {
        Self::new(Op::Flush, Lba(0), 0)
    }

    /// A discard.
    #[inline]
    #[must_use]
    pub const fn discard(lba: Lba, sectors: u32) -> Self {
        Self::new(Op::Discard, lba, sectors)
    }

    /// The same bio with these flags added.
    #[inline]
    #[must_use]
    pub fn with(mut self, flags: Flags) -> Self {
        self.flags |= flags;
        self
    }
}
