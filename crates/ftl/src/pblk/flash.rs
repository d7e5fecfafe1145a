//! The flash side of a pblk: media, the tables that say what is where on them, what is in flight there, and
//! the clock. Nothing here knows how data are buffered: durability is the buffers' knowledge and comes in as a
//! sequence.

use super::events::EventKind;
use crate::common::dead::DeadCopies;
use crate::common::events::Events;
use crate::common::l2p::L2p;
use crate::common::layout::Layout;
use crate::common::lines::Lines;
use crate::common::stripes::Stripes;
use crate::report::{MediaErrors, SectorCounts};
use nandscape_block::SectorData;
use nandscape_media::{Geometry, Linked};
use nandscape_rt::Nanos;

/// Media, tables and what is in flight.
#[derive(Debug)]
pub(super) struct Flash<M> {
    pub(super) media: Linked<M>,
    /// What copying a sector in the host's memory takes.
    pub(super) copy_ns: u64,
    pub(super) geometry: Geometry,
    pub(super) now: Nanos,
    /// Global write sequence of the next entry of any buffer.
    pub(super) next_seq: u64,
    pub(super) l2p: L2p,
    pub(super) layout: Layout,
    pub(super) lines: Lines,
    pub(super) victims: Stripes,
    /// Parallel units with a write in flight, or with one that is being built.
    pub(super) busy: Box<[bool]>,
    /// Copies that were superseded and hold something that media can drop.
    pub(super) dead: DeadCopies,
    pub(super) events: Events<EventKind>,
    /// Contents and sequence deltas of the write command that is made now.
    pub(super) scratch: Vec<SectorData>,
    pub(super) seq_scratch: Vec<u32>,
    pub(super) counts: FlashCounts,
}

/// What was written to media, and what went wrong there, since the last reset.
#[derive(Default, Debug)]
pub(super) struct FlashCounts {
    pub(super) sectors: SectorCounts,
    /// Chunk resets issued.
    pub(super) erases: u64,
    pub(super) media_errors: MediaErrors,
    /// Sectors whose content media dropped.
    pub(super) dropped_sectors: u64,
}
