//! The flash side of a pblk: media, the tables that say what is where on them, what is in flight there, and
//! the clock. Nothing here knows how data are buffered: durability is the buffers' knowledge and comes in as a
//! sequence.

use super::events::EventKind;
use super::ids::BufferId;
use super::layout::Cursor;
use super::rules::Rules;
use crate::common::dead::DeadCopies;
use crate::common::events::Events;
use crate::common::ids::LineId;
use crate::common::l2p::L2p;
use crate::common::layout::Layout;
use crate::common::lines::{LineState, Lines};
use crate::common::shadow::Ledger;
use crate::common::stripes::Stripes;
use crate::report::{MediaErrors, SectorCounts};
use nandscape_block::SectorData;
use nandscape_media::{ChunkId, ChunkState, Geometry, Linked, OpenChannel, Ppa};
use nandscape_rt::{Nanos, Shadow};

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
    /// Closed lines of mapping blocks, which are collected by themselves.
    pub(super) map_victims: Vec<LineId>,
    /// Parallel units with a write in flight, or with one that is being built.
    pub(super) busy: Box<[bool]>,
    /// Copies that were superseded and hold something that media can drop.
    pub(super) dead: DeadCopies,
    pub(super) events: Events<EventKind>,
    /// What is durable, kept a second time.
    pub(super) shadow: Shadow<Ledger<BufferId>>,
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

impl<M: OpenChannel> Flash<M> {
    pub(super) fn line_sectors(&self, id: LineId) -> impl Iterator<Item = Ppa> {
        (0..self.layout.width).flat_map(move |index| {
            let first = self.layout.format.ppa(self.chunk_at(id, index), 0);
            (0..self.geometry.sectors).map(move |i| first.plus(i))
        })
    }

    pub(super) fn is_written(&self, at: Ppa) -> bool {
        let chunk = self.media.chunk(self.layout.format.chunk_of(at));
        chunk.state != nandscape_media::ChunkState::Offline
            && self.layout.format.sector_of(at) < chunk.wp
    }

    /// Whether the device serves reads of a written sector.
    #[inline]
    pub(super) fn is_served(&self, at: Ppa) -> bool {
        let chunk = self.media.chunk(self.layout.format.chunk_of(at));
        chunk.state != ChunkState::Open
            || self.layout.format.sector_of(at) + self.geometry.mw_cunits < chunk.wp
    }

    /// Counts a line's good chunks and puts it on the free list, or aside when it has too few.
    pub(super) fn adopt_empty(&mut self, rules: &Rules, id: u32) {
        self.count_chunks(rules, id);
        if self.lines.get(id).capacity >= self.geometry.ws_opt {
            self.lines.release(id);
        } else {
            self.lines.get_mut(id).state = LineState::Bad;
        }
    }

    /// Chunks of a line that are not bad.
    pub(super) fn good_chunks(&self, id: LineId) -> u32 {
        let good =
            |index: &u32| self.media.chunk(self.chunk_at(id, *index)).state != ChunkState::Offline;
        (0..self.layout.width).filter(good).count() as u32
    }

    pub(super) fn count_chunks(&mut self, rules: &Rules, id: u32) {
        let chunks = self.good_chunks(id);
        let meta = rules.capacity.smeta_sectors + rules.capacity.emeta_sectors;
        let line = self.lines.get_mut(id);
        line.chunks = chunks;
        line.capacity = (chunks * self.geometry.sectors).saturating_sub(meta);
    }

    /// Time that copying sectors out of a ring takes.
    #[inline]
    pub(super) fn copy_out(&self, sectors: u32) -> Nanos {
        Nanos(self.copy_ns * u64::from(sectors))
    }

    #[inline]
    pub(super) fn chunk_at(&self, line: LineId, index: u32) -> ChunkId {
        self.layout.chunk(line, index)
    }

    pub(super) fn sector(&self, at: Cursor) -> u32 {
        at.row * self.geometry.ws_opt
    }

    /// The first sector of a unit of a line.
    #[inline]
    pub(super) fn ppa_at(&self, line: LineId, at: Cursor) -> Ppa {
        self.layout.format.ppa(self.chunk_at(line, at.chunk), self.sector(at))
    }

    pub(super) fn line_end(&self) -> Cursor {
        Cursor { row: self.geometry.sectors / self.geometry.ws_opt, chunk: 0 }
    }

    /// Whether the unit of a chunk that begins at `sector` can be written now.
    #[inline]
    pub(super) fn is_usable(&self, chunk: ChunkId, sector: u32) -> bool {
        let chunk = self.media.chunk(chunk);
        matches!(chunk.state, ChunkState::Free | ChunkState::Open) && chunk.wp == sector
    }

    /// The same of a unit of a line.
    pub(super) fn is_usable_at(&self, line: LineId, at: Cursor) -> bool {
        self.is_usable(self.chunk_at(line, at.chunk), self.sector(at))
    }

    /// The last usable units of a line, enough for its end metadata, begin here.
    pub(super) fn emeta_start(&self, rules: &Rules, line: LineId) -> Cursor {
        let mut at = self.line_end();
        let mut missing = self.emeta_units(rules);
        while missing > 0 && at > Cursor::START {
            at.step_back(self.layout.width);
            let chunk = self.media.chunk(self.chunk_at(line, at.chunk));
            if matches!(chunk.state, ChunkState::Free | ChunkState::Open) {
                missing -= 1;
            }
        }
        at
    }

    pub(super) fn emeta_units(&self, rules: &Rules) -> u32 {
        rules.capacity.emeta_sectors / self.geometry.ws_opt
    }
}
