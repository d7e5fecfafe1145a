//! Mapping blocks on media and on their way there, and what of them is in RAM meanwhile.

use super::ids::FrontierId;
use super::layout::Cursor;
use super::mapshape::Shape;
use crate::common::ids::LineId;
use crate::pblk::config::MapConfig;
use nandscape_block::{SECTOR_BYTES, Tag};
use nandscape_media::{Geometry, Ppa};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Why a piece is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    /// The write-back with this number.
    WriteBack(u32),
    /// Copied from there.
    Copy(Ppa),
}

/// A piece to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) key: u32,
    pub(super) sectors: u32,
    pub(super) tag: Tag,
    pub(super) cause: Cause,
}

/// A block on its way to media.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) block: u32,
    pub(super) version: u32,
    /// Where the pieces are.
    pub(super) to: SmallVec<[Ppa; 2]>,
    pub(super) missing: u32,
    /// The cache waits for it.
    pub(super) cached: bool,
}

/// A write unit in flight.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) line: LineId,
    pub(super) pu: u32,
    pub(super) at: Ppa,
    pub(super) pieces: SmallVec<[Piece; 8]>,
}

/// Things in flight, by number.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn add(&mut self, thing: T) -> u32 {
        let Some(number) = self.free.pop() else {
            self.slots.push(Some(thing));
            return self.slots.len() as u32 - 1;
        };
        self.slots[number as usize] = Some(thing);
        number
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slots[number as usize].as_mut()
    }

    pub(super) fn take(&mut self, number: u32) -> Option<T> {
        self.free.push(number);
        self.slots[number as usize].take()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// A mapping line being collected.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapVictim {
    pub(super) id: LineId,
    pub(super) at: Cursor,
}

/// Blocks on media and on their way there.
#[derive(Debug)]
pub(super) struct MapStore {
    pub(super) frontier: FrontierId,
    pub(super) shape: Shape,
    /// Where the pieces after the first are, packed address + 1.
    pub(super) rest: Box<[u64]>,
    /// Sequence of the next sector.
    pub(super) next_seq: u64,
    pub(super) jobs: Slab<Job>,
    pub(super) units: Slab<Unit>,
    /// Pieces that wait for a write unit.
    pub(super) out: VecDeque<Piece>,
    /// Pieces read from the victim, on their way to `out`.
    pub(super) copies: Vec<Piece>,
    /// Copies that are not on media yet.
    pub(super) copying: u32,
    pub(super) victim: Option<MapVictim>,
    staging_sectors: u64,
}

impl MapStore {
    pub(super) fn new(
        config: &MapConfig,
        geometry: &Geometry,
        blocks: u32,
        frontier: FrontierId,
    ) -> Self {
        let shape = Shape::new(config, geometry);
        let tail = geometry.mw_cunits.next_multiple_of(geometry.ws_opt) + geometry.ws_opt;
        Self {
            frontier,
            shape,
            rest: vec![0; blocks as usize * (shape.pieces as usize - 1)].into_boxed_slice(),
            next_seq: 1,
            jobs: Slab::new(),
            units: Slab::new(),
            out: VecDeque::new(),
            copies: Vec::new(),
            copying: 0,
            victim: None,
            staging_sectors: u64::from(tail) * u64::from(geometry.total_units()),
        }
    }

    pub(super) fn rest_index(&self, block: u32, piece: u32) -> usize {
        block as usize * (self.shape.pieces as usize - 1) + piece as usize - 1
    }

    /// Whether no block is on its way to media.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.len() == 0
    }

    /// Sectors that what waits will take.
    pub(super) fn committed(&self) -> u64 {
        let together = (self.shape.unit / self.shape.piece).max(1) as usize;
        let waiting = (self.out.len() + self.copies.len()).div_ceil(together);
        waiting as u64 * u64::from(self.shape.unit)
    }

    /// Whether what waits fills a write unit.
    pub(super) fn fills_unit(&self) -> bool {
        let mut sectors = 0;
        self.out.iter().any(|piece| {
            sectors += piece.sectors;
            sectors >= self.shape.unit
        })
    }

    /// Bytes of directory beyond the first pieces'.
    pub(super) fn directory_bytes(&self) -> u64 {
        size_of_val(&*self.rest) as u64
    }

    /// Bytes of RAM for sectors that media do not serve yet.
    pub(super) const fn staging_bytes(&self) -> u64 {
        self.staging_sectors * SECTOR_BYTES
    }
}
