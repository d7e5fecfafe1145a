//! The chunk table and the rules of the Open-Channel SSD specification 2.0: which write, read and
//! reset a chunk takes, and how its state follows.
//!
//! - A write starts at the write pointer of a free or open chunk, is a multiple of `ws_min`, and
//!   stays inside the chunk. It opens a free chunk, within `maxoc` and `maxocpu`; the chunk closes
//!   when its write pointer reaches its end.
//! - A read takes sectors below the write pointer; in an open chunk, below it by `mw_cunits`.
//! - A reset takes an open or closed chunk.
//!
//! Rows are indexed by packed address without the sector, so finding one takes a shift; rows that
//! belong to no unit are offline and answer to nothing.

use crate::command::{ChunkInfo, ChunkState, WriteCmd};
use crate::geometry::{ChunkId, Geometry, Ppa, UnitId};

/// Sequences have this many bits.
const SEQ_END: u64 = 1 << 56;

pub(crate) const NO_CHUNK: &str = "there is no such chunk";
pub(crate) const OFFLINE: &str = "the chunk is offline";
pub(crate) const CLOSED: &str = "the chunk is closed";
pub(crate) const NOT_AT_WP: &str = "a write must start at the write pointer";
pub(crate) const NOT_WS_MIN: &str = "a write must be a multiple of ws_min";
pub(crate) const BEYOND_CHUNK: &str = "a write must stay inside its chunk";
pub(crate) const DATA_LENGTH: &str = "keys and data must be equally many";
pub(crate) const SEQS_LENGTH: &str = "keys and sequences must be equally many";
pub(crate) const AUX_LENGTH: &str = "keys and auxiliary values must be equally many";
pub(crate) const SEQ_TOO_LARGE: &str = "a sequence must fit in 56 bits";
pub(crate) const MAXOC: &str = "too many open chunks on the device (maxoc)";
pub(crate) const MAXOCPU: &str = "too many open chunks on the unit (maxocpu)";
pub(crate) const EMPTY_READ: &str = "a read must have sectors";
pub(crate) const NOT_WRITTEN: &str = "a read must stay below the write pointer";
pub(crate) const NOT_READABLE_YET: &str =
    "a read of an open chunk must stay mw_cunits below the write pointer";
pub(crate) const INVALID_RESET: &str = "a free chunk cannot be reset";

/// An address taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// Row of the chunk table.
    pub(crate) row: usize,
    pub(crate) unit: u32,
    pub(crate) sector: u32,
}

/// One chunk.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Row {
    pub(crate) wp: u32,
    pub(crate) erases: u32,
    pub(crate) state: ChunkState,
    /// A program failed here: the next reset fails.
    pub(crate) failing: bool,
    /// Erased, but the store still has the old content.
    pub(crate) stale: bool,
}

/// All chunks, and how many are open.
#[derive(Clone, Debug)]
pub(crate) struct ChunkTable {
    geometry: Geometry,
    sector_bits: u32,
    unit_mask: usize,
    rows: Vec<Row>,
    open: u32,
    open_on_unit: Vec<u32>,
}

impl ChunkTable {
    pub(crate) fn new(geometry: Geometry) -> Self {
        let units = 1usize << (geometry.line_bits() - geometry.sector_bits());
        let mut rows = vec![Row::default(); geometry.chunks as usize * units];
        for line in rows.chunks_exact_mut(units) {
            for hole in &mut line[geometry.total_units() as usize..] {
                hole.state = ChunkState::Offline;
            }
        }
        Self {
            geometry,
            sector_bits: geometry.sector_bits(),
            unit_mask: units - 1,
            rows,
            open: 0,
            open_on_unit: vec![0; geometry.total_units() as usize],
        }
    }

    pub(crate) const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    pub(crate) fn place(&self, at: Ppa) -> Place {
        let row = usize::try_from(at.0 >> self.sector_bits).unwrap_or(usize::MAX);
        let sector = (at.0 & ((1 << self.sector_bits) - 1)) as u32;
        Place { row, unit: (row & self.unit_mask) as u32, sector }
    }

    /// The place of a chunk; a row out of the table when there is no such chunk.
    #[inline]
    pub(crate) fn chunk_place(&self, chunk: ChunkId) -> Place {
        let ChunkId { unit: UnitId(unit), chunk } = chunk;
        let exists = unit < self.geometry.total_units() && chunk < self.geometry.chunks;
        let row = chunk as usize * (self.unit_mask + 1) + unit as usize;
        Place { row: if exists { row } else { usize::MAX }, unit, sector: 0 }
    }

    /// The address of a row's first sector.
    #[inline]
    pub(crate) const fn first(&self, row: usize) -> Ppa {
        Ppa((row as u64) << self.sector_bits)
    }

    /// The chunk of a row.
    pub(crate) const fn chunk_of(&self, row: usize) -> ChunkId {
        self.geometry.chunk_of(self.first(row))
    }

    pub(crate) fn row(&self, row: usize) -> &Row {
        &self.rows[row]
    }

    pub(crate) fn row_mut(&mut self, row: usize) -> &mut Row {
        &mut self.rows[row]
    }

    /// A row of the chunk report; a chunk that does not exist is offline.
    #[inline]
    pub(crate) fn info(&self, chunk: ChunkId) -> ChunkInfo {
        match self.rows.get(self.chunk_place(chunk).row) {
            Some(&Row { state, wp, erases, .. }) => ChunkInfo { state, wp, erases },
            None => ChunkInfo { state: ChunkState::Offline, ..ChunkInfo::default() },
        }
    }

    /// Whether a write is legal; else the rule that it breaks.
    #[inline]
    pub(crate) fn check_write(&self, place: Place, cmd: &WriteCmd<'_>) -> Result<(), &'static str> {
        let row = self.rows.get(place.row).ok_or(NO_CHUNK)?;
        let sectors = cmd.keys.len();
        match row.state {
            ChunkState::Open => {}
            ChunkState::Free => self.check_open(place.unit)?,
            ChunkState::Closed => return Err(CLOSED),
            ChunkState::Offline => return Err(self.offline(place)),
        }
        if place.sector != row.wp {
            return Err(NOT_AT_WP);
        }
        if sectors != self.geometry.ws_opt as usize
            && (sectors == 0 || !sectors.is_multiple_of(self.geometry.ws_min as usize))
        {
            return Err(NOT_WS_MIN);
        }
        if sectors > (self.geometry.sectors - row.wp) as usize {
            return Err(BEYOND_CHUNK);
        }
        if !cmd.data.is_empty() && cmd.data.len() != sectors {
            return Err(DATA_LENGTH);
        }
        if !cmd.seq_deltas.is_empty() && cmd.seq_deltas.len() != sectors {
            return Err(SEQS_LENGTH);
        }
        if !cmd.aux.is_empty() && cmd.aux.len() != sectors {
            return Err(AUX_LENGTH);
        }
        if cmd.seq > SEQ_END - sectors as u64 {
            return Err(SEQ_TOO_LARGE);
        }
        Ok(())
    }

    /// Whether one more chunk may be open.
    #[inline]
    fn check_open(&self, unit: u32) -> Result<(), &'static str> {
        let Geometry { maxoc, maxocpu, .. } = self.geometry;
        if maxoc != 0 && self.open >= maxoc {
            return Err(MAXOC);
        }
        if maxocpu != 0 && self.open_on_unit[unit as usize] >= maxocpu {
            return Err(MAXOCPU);
        }
        Ok(())
    }

    /// Whether a read is legal; else the rule that it breaks.
    #[inline]
    pub(crate) fn check_read(&self, place: Place, sectors: u32) -> Result<(), &'static str> {
        let row = self.rows.get(place.row).ok_or(NO_CHUNK)?;
        let end = match row.state {
            ChunkState::Open => row.wp.saturating_sub(self.geometry.mw_cunits),
            ChunkState::Free | ChunkState::Closed => row.wp,
            ChunkState::Offline => return Err(self.offline(place)),
        };
        if sectors == 0 {
            return Err(EMPTY_READ);
        }
        let below = |end: u32| sectors <= end && place.sector <= end - sectors;
        match below(end) {
            true => Ok(()),
            false if below(row.wp) => Err(NOT_READABLE_YET),
            false => Err(NOT_WRITTEN),
        }
    }

    /// Whether a reset is legal; else the rule that it breaks.
    pub(crate) fn check_reset(&self, place: Place) -> Result<(), &'static str> {
        match self.rows.get(place.row).ok_or(NO_CHUNK)?.state {
            ChunkState::Open | ChunkState::Closed => Ok(()),
            ChunkState::Free => Err(INVALID_RESET),
            ChunkState::Offline => Err(self.offline(place)),
        }
    }

    fn offline(&self, place: Place) -> &'static str {
        if place.unit < self.geometry.total_units() { OFFLINE } else { NO_CHUNK }
    }

    /// Moves a write pointer, and the state with it.
    #[inline]
    pub(crate) fn set_wp(&mut self, place: Place, wp: u32) {
        self.rows[place.row].wp = wp;
        let state = match wp {
            _ if self.rows[place.row].failing => ChunkState::Closed,
            0 => ChunkState::Free,
            _ if wp == self.geometry.sectors => ChunkState::Closed,
            _ => ChunkState::Open,
        };
        self.set_state(place, state);
    }

    /// Changes a state, and the number of open chunks with it.
    #[inline]
    pub(crate) fn set_state(&mut self, place: Place, state: ChunkState) {
        let before = std::mem::replace(&mut self.rows[place.row].state, state);
        let change = i32::from(state == ChunkState::Open) - i32::from(before == ChunkState::Open);
        if change != 0 {
            self.open = self.open.wrapping_add_signed(change);
            let on_unit = &mut self.open_on_unit[place.unit as usize];
            *on_unit = on_unit.wrapping_add_signed(change);
        }
    }
}
