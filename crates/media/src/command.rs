//! The command interface of an open-channel SSD: vector write, read and reset on chunks, out-of-band
//! data, and the chunk report (Open-Channel SSD specification 2.0, sections 2 and 3).
//!
//! Completion times are computed at submission, so a command answers at once with an [`Outcome`];
//! the caller acts on it when that time has come. Content is visible from submission on; what a
//! power cut at an instant before completion would leave is the device's business.

use crate::geometry::{ChunkId, Geometry, Ppa, UnitId};
use nandscape_block::SectorData;
use nandscape_rt::Nanos;
use std::ops::Range;
use thiserror::Error;

/// Out-of-band key of a sector that holds no logical sector (padding, dropped copies, metadata).
pub const KEY_EMPTY: u32 = u32::MAX;
/// Out-of-band key of a sector that holds trim records.
pub const KEY_TRIM: u32 = u32::MAX - 1;
/// The largest key that is a logical address.
pub const KEY_MAX: u32 = u32::MAX - 2;

/// What a write unit holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Never written.
    #[default]
    None = 0,
    /// Logical sectors, each with its key.
    Data = 1,
    /// Start metadata of a line.
    Smeta = 2,
    /// End metadata of a line.
    Emeta = 3,
    /// Padding only.
    Pad = 4,
    /// Mapping blocks.
    Map = 5,
}

/// Out-of-band data of one sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Oob {
    /// Logical address, [`KEY_EMPTY`] or [`KEY_TRIM`].
    pub key: u32,
    /// Global write sequence of the sector (56 bits).
    pub seq: u64,
    /// What its write unit holds.
    pub kind: Kind,
    /// What the FTL noted of the sector besides; 0 of one that was written without.
    pub aux: u32,
}

/// Chunk states of the chunk report.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ChunkState {
    /// Erased, write pointer 0.
    #[default]
    Free,
    /// Partly written.
    Open,
    /// Fully written, or closed early by a failed program.
    Closed,
    /// Bad.
    Offline,
}

/// One row of the chunk report.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ChunkInfo {
    /// State.
    pub state: ChunkState,
    /// Next sector to write; sectors from here on hold nothing.
    pub wp: u32,
    /// Completed resets.
    pub erases: u32,
}

/// A vector write of consecutive sectors of one chunk.
#[derive(Clone, Copy, Debug)]
pub struct WriteCmd<'a> {
    /// First sector; must be the chunk's write pointer.
    pub at: Ppa,
    /// What the unit holds.
    pub kind: Kind,
    /// Sequence of the first sector.
    pub seq: u64,
    /// Sequence of each sector less `seq`, in ascending order (padding at the end may have any);
    /// empty when sector `i` has `seq + i`.
    pub seq_deltas: &'a [u32],
    /// What the FTL notes of each sector besides, such as the address that a copy came from; empty when
    /// it notes nothing.
    pub aux: &'a [u32],
    /// One key a sector; its length is the command's length, a multiple of `ws_min`.
    pub keys: &'a [u32],
    /// One content a sector, or empty when no content is kept. Metadata bytes are kept always.
    pub data: &'a [SectorData],
}

/// How a command ended on the media.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Well.
    Ok,
    /// The program failed: the chunk is closed early, nothing of this command can be read, what was
    /// written before can. The chunk's next reset takes it offline.
    ProgramFailed,
    /// The erase failed: the chunk is offline.
    EraseFailed,
    /// A read met sectors that cannot be corrected (ask [`OpenChannel::readable`] which).
    Uncorrectable,
}

/// End of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// When it completes.
    pub at: Nanos,
    /// How.
    pub status: Status,
}

/// A command that breaks the device's rules; nothing of it was done.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error("{op} at unit {unit} chunk {chunk} sector {sector}, {sectors} sectors: {rule}")]
pub struct RuleError {
    /// `write`, `read` or `reset`.
    pub op: &'static str,
    /// Unit of the command.
    pub unit: u32,
    /// Chunk of the command.
    pub chunk: u32,
    /// First sector.
    pub sector: u32,
    /// Sectors of the command.
    pub sectors: u32,
    /// The rule that it breaks.
    pub rule: &'static str,
}

impl RuleError {
    /// The rule of every command that comes while power is off.
    pub const POWER_OFF: &'static str = "power is off";
    /// The rule of a write that would take more RAM than the run allows.
    pub const MEMORY_CAP: &'static str = "memory cap reached";
    /// The rule of a write whose sectors the store could not keep.
    pub const STORE_FAILED: &'static str = "the store of the device failed";

    /// Whether the command was refused only because power is off.
    #[must_use]
    pub fn is_power_off(&self) -> bool {
        self.rule == Self::POWER_OFF
    }
}

/// What a command is for, in sectors: a program may write user data and copies together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cause {
    /// For the host: its data and its trims.
    pub user: u8,
    /// For garbage collection.
    pub gc: u8,
    /// For nothing but to fill a unit, stale copies included.
    pub pad: u8,
}

impl Cause {
    /// Whether it is for garbage collection alone.
    #[inline]
    pub(crate) const fn is_collection(self) -> bool {
        self.gc > 0 && self.user == 0
    }
}

/// A fault to happen to the next command of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The next write's program fails.
    Program,
    /// The next reset fails.
    Erase,
    /// The next write, read or reset keeps its unit busy for so much longer.
    Delay(Nanos),
}

/// When a piece of a read is on its way from the channel to its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    /// From when.
    pub start: Nanos,
    /// When it has arrived.
    pub end: Nanos,
}

/// Where the data of a read go once they left the channel.
pub trait DataOut {
    /// Whether data are there as soon as they left the channel, whatever their size.
    fn is_instant(&self) -> bool {
        false
    }

    /// Moves a piece of `sectors` sectors that left the channel at `left_channel`; the read was
    /// submitted at `now`.
    fn piece(&mut self, now: Nanos, left_channel: Nanos, sectors: u32) -> Crossing;
}

/// The data stay in the memory of the command's issuer: nothing lies beyond the channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Internal;

impl DataOut for Internal {
    #[inline]
    fn is_instant(&self) -> bool {
        true
    }

    #[inline]
    fn piece(&mut self, _now: Nanos, left_channel: Nanos, _sectors: u32) -> Crossing {
        Crossing { start: left_channel, end: left_channel }
    }
}

/// An open-channel SSD, or middleware around one.
///
/// Commands are submitted at `now`, which never goes back by much, and begin at `ready` or later:
/// what lies between the two is the issuer's concern.
pub trait OpenChannel {
    /// Shape and write rules.
    fn geometry(&self) -> &Geometry;

    /// One row of the chunk report.
    fn chunk(&self, chunk: ChunkId) -> ChunkInfo;

    /// Writes at the write pointer.
    ///
    /// # Errors
    /// The rule that the command breaks, or that power is off.
    fn write(&mut self, now: Nanos, ready: Nanos, cmd: WriteCmd<'_>) -> Result<Outcome, RuleError>;

    /// Writes at the write pointer with the energy that capacitors hold after power failed: takes no time, and is
    /// complete before the cut undoes what was in flight. For firmware that saves its buffer.
    ///
    /// # Errors
    /// The rule that the command breaks.
    fn write_residual(&mut self, cmd: WriteCmd<'_>) -> Result<(), RuleError>;

    /// Reads `sectors` consecutive sectors of one chunk: checks the rules and reserves the time.
    /// Each piece goes to `out` when it has left the channel; the command completes when all have
    /// arrived. The content is taken by [`OpenChannel::oob`] and [`OpenChannel::data`].
    ///
    /// # Errors
    /// The rule that the command breaks, or that power is off.
    fn read(
        &mut self,
        now: Nanos,
        ready: Nanos,
        at: Ppa,
        sectors: u32,
        out: &mut impl DataOut,
    ) -> Result<Outcome, RuleError>;

    /// Erases a chunk.
    ///
    /// # Errors
    /// The rule that the command breaks, or that power is off.
    fn reset(&mut self, now: Nanos, ready: Nanos, chunk: ChunkId) -> Result<Outcome, RuleError>;

    /// Out-of-band data of a written sector. Only meaningful where [`OpenChannel::readable`].
    fn oob(&self, at: Ppa) -> Oob;

    /// Content of a written sector. Only meaningful where [`OpenChannel::readable`].
    fn data(&self, at: Ppa) -> SectorData;

    /// Whether a sector below its write pointer can be corrected.
    fn readable(&self, at: Ppa) -> bool;

    /// Whether there may be a sector of data for which [`OpenChannel::is_droppable`] holds.
    #[inline]
    fn may_drop(&self) -> bool {
        false
    }

    /// Whether dropping the content of a sector would free memory of the host. Never changes any result.
    #[inline]
    fn is_droppable(&self, _at: Ppa) -> bool {
        false
    }

    /// Drops the content of a written sector, which still counts as written and keeps its out-of-band data.
    /// Whether there was any. For a sector that is superseded by something durable, so that neither a read nor a
    /// mount after any power cut would return it, and that no read in flight will ask for: not a command, it
    /// takes no time.
    fn drop_content(&mut self, _at: Ppa) -> bool {
        false
    }

    /// Whether the content of a written sector was dropped. A mount does not take such a copy, which would be the
    /// newest one only where media lost what had superseded it; a read that meets one is an error of the FTL.
    #[inline]
    fn is_dropped(&self, _at: Ppa) -> bool {
        false
    }

    /// Arms a fault for the next command of its kind.
    fn arm(&mut self, fault: Fault);

    /// Makes a written sector uncorrectable until its chunk is erased.
    fn mark_unreadable(&mut self, at: Ppa);

    /// Specifies what the next command is for, for a log and for [`OpenChannel::collection_time`]. Never changes when
    /// anything completes.
    #[inline]
    fn set_cause(&mut self, _cause: Cause) {}

    /// When the unit of the command that was accepted last begins it.
    fn begins(&self) -> Nanos {
        Nanos::ZERO
    }

    /// From when on every unit is idle if no other command comes, and the unit that is so last, the first of several.
    fn idle_from(&self) -> (Nanos, UnitId);

    /// How long of a time a unit erased, or read and programmed for garbage collection alone. What it did before the
    /// last commands of this kind that it remembers counts as if it had gone on like that.
    fn collection_time(&self, _unit: UnitId, _time: Range<Nanos>) -> Nanos {
        Nanos::ZERO
    }

    /// Notes, for a log, that the data of the next command are on their way over a link. Never changes
    /// any result.
    #[inline]
    fn note_transfer(&mut self, _crossing: Crossing) {}

    /// A hint that the sector's out-of-band data will be looked at soon. Never changes any result.
    #[inline]
    fn prefetch(&self, _at: Ppa) {}
}
