//! What pblk waits for: completions of media commands, and of its own work where the host's CPU costs
//! something.

use super::ids::{BufferId, FrontierId};
use nandscape_media::Status;
use nandscape_rt::host::CoreId;

/// What completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EventKind {
    /// The write unit of a buffer with this number.
    Unit(BufferId, u64, Status),
    /// A chunk erase of the line that a frontier prepares.
    Erase(FrontierId, Status),
    /// Start metadata of the line that a frontier prepares, on this parallel unit.
    Smeta(FrontierId, u32, Status),
    /// A unit of end metadata of a frontier's oldest closing line, on this parallel unit.
    Emeta(FrontierId, u32, Status),
    /// The garbage-collection read with this number.
    GcRead(usize),
    /// The timer of the collector's thread.
    GcTimer,
    /// All of this mapping block has been read.
    MapLoad(u32),
    /// What the write-back with this number merges its entries into has been read.
    MapMerge(u32),
    /// The write unit of mapping blocks with this number.
    MapUnit(u32, Status),
    /// The pieces of mapping blocks that collection reads.
    MapCopies,
    /// What this core of the host did.
    Core(CoreId),
}
