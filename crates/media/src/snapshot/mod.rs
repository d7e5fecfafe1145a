//! The content of a device as a stream of bytes (docs/formats/state.md): chunk table, sectors that
//! cannot be corrected, and the columns of every written chunk.
//!
//! Of a device at rest: nothing is under way, and no fault is armed. Restoring on a device of the same
//! geometry and payload gives one that answers every command as the saved one does, and counts the
//! same memory. A stream that was damaged is an error, never a panic and never another device.

mod columns;
mod frames;

use crate::command::{ChunkInfo, ChunkState, OpenChannel};
use crate::device::{ChunkRow, Media};
use crate::geometry::{ChunkId, Geometry};
use crate::store::{Block, MemoryStore, StoreError};
use columns::{get_block, put_block};
use frames::{FrameReader, FrameWriter, Part};
use std::io::{self, Read, Write};
use thiserror::Error;

/// Sectors of a block of columns at most; whole smallest writes.
const BLOCK_SECTORS: u32 = 4096;
/// Bytes of a row of the chunk table.
const ROW_BYTES: usize = 12;
/// Flags of a row: out of service; a program failed here; ever written.
const OFFLINE: u32 = 1;
const FAILING: u32 = 2;
const TOUCHED: u32 = 4;

/// Why a device was not saved or restored.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The stream is not what was written.
    #[error("byte {at}: {what}")]
    Damaged {
        /// Where, in bytes from the beginning of the file.
        at: u64,
        /// What is wrong.
        what: String,
    },
    /// It cannot be read or written.
    #[error("{0}")]
    Io(String),
    /// The device may not take so much RAM.
    #[error("the virtual media reached its memory cap")]
    MemoryCap,
}

impl From<std::io::Error> for SnapshotError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

impl From<StoreError> for SnapshotError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Self::MemoryCap,
            StoreError::Io(kind) => Self::Io(kind.to_string()),
        }
    }
}

impl ChunkRow {
    fn encode(self) -> [u8; ROW_BYTES] {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags =
            flag(self.offline, OFFLINE) | flag(self.failing, FAILING) | flag(self.touched, TOUCHED);
        let mut row = [0; ROW_BYTES];
        for (place, word) in row.chunks_exact_mut(4).zip([self.wp, self.erases, flags]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        row
    }

    /// A row that a device of this geometry can have.
    fn decode(row: [u8; ROW_BYTES], geometry: &Geometry) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| row[at + i]));
        let (wp, erases, flags) = (word(0), word(4), word(8));
        let touched = flags & TOUCHED != 0;
        let sound = wp <= geometry.sectors
            && wp.is_multiple_of(geometry.ws_min)
            && (wp == 0 || touched)
            && flags & !(OFFLINE | FAILING | TOUCHED) == 0;
        let (offline, failing) = (flags & OFFLINE != 0, flags & FAILING != 0);
        sound.then_some(Self { wp, erases, offline, failing, touched })
    }
}

impl ChunkRow {
    /// As the chunk report has it.
    const fn info(self, geometry: &Geometry) -> ChunkInfo {
        let state = match self.wp {
            _ if self.offline => ChunkState::Offline,
            _ if self.failing => ChunkState::Closed,
            0 => ChunkState::Free,
            wp if wp == geometry.sectors => ChunkState::Closed,
            _ => ChunkState::Open,
        };
        ChunkInfo { state, wp: self.wp, erases: self.erases }
    }
}

/// First sectors and lengths of the blocks below a write pointer.
fn blocks(geometry: &Geometry, wp: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
    let step = BLOCK_SECTORS / geometry.ws_min * geometry.ws_min;
    (0..wp).step_by(step as usize).map(move |first| (first, step.min(wp - first)))
}

impl Media<MemoryStore> {
    /// Writes what the device holds.
    ///
    /// # Errors
    /// What the output answered.
    pub fn save(&self, out: impl Write) -> Result<(), SnapshotError> {
        let mut out = FrameWriter::new(out);
        self.write_content(&mut out)?;
        Ok(out.finish()?)
    }

    /// Writes what the device holds, without frames: the same bytes for the same device.
    ///
    /// # Errors
    /// What the output answered.
    pub fn write_content(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&u64::from(self.store().keeps_seqs()).to_le_bytes())?;
        for id in self.geometry().all_chunks() {
            out.write_all(&self.chunk_row(id).encode())?;
        }
        out.write_all(&(self.unreadable().len() as u64).to_le_bytes())?;
        for at in self.unreadable() {
            out.write_all(&at.to_le_bytes())?;
        }
        out.write_all(&self.store().places().to_le_bytes())?;
        let mut block = Block::default();
        for (id, wp) in self.written_chunks() {
            for (first, sectors) in blocks(self.geometry(), wp) {
                self.store().export(self.geometry().ppa(id, first), sectors, &mut block);
                put_block(out, &block)?;
            }
        }
        Ok(())
    }

    /// Chunks in service, with their write pointers.
    fn written_chunks(&self) -> impl Iterator<Item = (ChunkId, u32)> {
        let chunks = self.geometry().all_chunks().map(|id| (id, self.chunk(id)));
        let in_service = chunks.filter(|(_, info)| info.state != ChunkState::Offline);
        in_service.map(|(id, info)| (id, info.wp))
    }

    /// Takes on what a device of the same geometry and payload held. `input` has been read up to byte
    /// `at`. What this device held before must have been nothing.
    ///
    /// # Errors
    /// A stream that is not what [`Media::save`] wrote, or a memory cap that is too low; what the
    /// device then holds is not to be used.
    pub fn restore(&mut self, input: impl Read, at: u64) -> Result<(), SnapshotError> {
        let mut input = FrameReader::new(input, at);
        if next_flag(&mut input)? {
            self.store_mut().enable_seq_column()?;
        }
        input.enter(Part::Chunks);
        for id in self.geometry().all_chunks() {
            let row = next_row(&mut input, self.geometry())?;
            self.set_chunk_row(id, row)?;
        }
        self.restore_unreadable(&mut input)?;
        let places = next_u64(&mut input)?;
        if places > self.geometry().total_sectors() {
            return Err(input.damaged("more places than sectors"));
        }
        self.restore_columns(&mut input)?;
        self.store_mut().reserve_places(places)?;
        input.end()
    }

    fn restore_unreadable<R: Read>(
        &mut self,
        input: &mut FrameReader<R>,
    ) -> Result<(), SnapshotError> {
        let end = self.geometry().ppa_end();
        let mut least = 0;
        input.enter(Part::Unreadable);
        for _ in 0..next_u64(input)? {
            let at = next_u64(input)?;
            if at < least || at >= end {
                return Err(input.damaged("an unreadable sector out of order"));
            }
            least = at + 1;
            self.mark_unreadable(crate::geometry::Ppa(at));
        }
        Ok(())
    }

    fn restore_columns<R: Read>(
        &mut self,
        input: &mut FrameReader<R>,
    ) -> Result<(), SnapshotError> {
        let geometry = *self.geometry();
        let written: Vec<(ChunkId, u32)> = self.written_chunks().collect();
        for (id, wp) in written {
            input.enter(Part::Columns(id));
            for (first, sectors) in blocks(&geometry, wp) {
                let block = get_block(input, self.store(), sectors)?;
                self.store_mut().import(geometry.ppa(id, first), block)?;
            }
        }
        Ok(())
    }
}

fn next_row<R: Read>(
    input: &mut FrameReader<R>,
    geometry: &Geometry,
) -> Result<ChunkRow, SnapshotError> {
    let mut row = [0; ROW_BYTES];
    input.fill(&mut row)?;
    ChunkRow::decode(row, geometry).ok_or_else(|| input.damaged("a chunk that cannot be"))
}

/// Whether sectors have sequences of their own.
fn next_flag<R: Read>(input: &mut FrameReader<R>) -> Result<bool, SnapshotError> {
    match next_u64(input)? {
        flag @ 0..=1 => Ok(flag == 1),
        _ => Err(input.damaged("sequences of a kind that cannot be")),
    }
}

fn next_u64<R: Read>(input: &mut FrameReader<R>) -> Result<u64, SnapshotError> {
    let mut bytes = [0; 8];
    input.fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Tells `each` chunk of a stream that [`Media::save`] wrote, without a device to restore it on. All
/// of the stream is read and its checksums are compared.
///
/// # Errors
/// A stream that is damaged.
pub fn inspect(
    geometry: &Geometry,
    input: impl Read,
    at: u64,
    mut each: impl FnMut(ChunkId, ChunkInfo),
) -> Result<(), SnapshotError> {
    let mut input = FrameReader::new(input, at);
    next_flag(&mut input)?;
    input.enter(Part::Chunks);
    for id in geometry.all_chunks() {
        each(id, next_row(&mut input, geometry)?.info(geometry));
    }
    input.skip_all()?;
    input.end()
}
