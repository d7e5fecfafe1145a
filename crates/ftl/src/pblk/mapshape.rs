//! How mapping blocks lie in write units, and how many lines are kept for them.

use crate::pblk::config::MapConfig;
use nandscape_block::SECTOR_BYTES;
use nandscape_media::Geometry;

/// Lines beside those that hold blocks: one being written, one to collect into, one in change.
const SPARE_LINES: u64 = 3;

/// How blocks are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Sectors of a block.
    block: u32,
    /// Sectors of a piece, but for a shorter last one.
    pub(super) piece: u32,
    /// Pieces of a block.
    pub(super) pieces: u32,
    /// Sectors of a write unit.
    pub(super) unit: u32,
}

impl Shape {
    pub(super) fn new(config: &MapConfig, geometry: &Geometry) -> Self {
        let block = (u64::from(config.block_bytes) / SECTOR_BYTES).max(1) as u32;
        let unit = geometry.ws_opt;
        Self { block, piece: block.min(unit), pieces: block.div_ceil(unit), unit }
    }

    /// Sectors of this piece.
    pub(super) fn piece_len(&self, piece: u32) -> u32 {
        self.piece.min(self.block - piece * self.piece)
    }

    /// The key of a piece's first sector.
    pub(super) fn key(&self, block: u32, piece: u32) -> u32 {
        block * self.block + piece * self.piece
    }

    /// The block and piece that this is the first key of, if it is one.
    pub(super) fn of_key(&self, key: u32) -> Option<(u32, u32)> {
        let rest = key % self.block;
        rest.is_multiple_of(self.piece).then_some((key / self.block, rest / self.piece))
    }

    /// Sectors that a block takes when written by itself.
    pub(super) fn cost(&self) -> u64 {
        u64::from(self.pieces * self.unit)
    }

    /// Lines that `blocks` blocks need.
    fn lines(&self, blocks: u64, line_sectors: u32) -> u64 {
        let together = u64::from((self.unit / self.block).max(1));
        let sectors = blocks.div_ceil(together) * self.cost();
        (sectors + sectors / 4).div_ceil(u64::from(line_sectors)) + SPARE_LINES
    }
}

/// Lines kept back for a table of so many sectors.
pub(super) fn quota(
    config: &MapConfig,
    geometry: &Geometry,
    logical_sectors: u64,
    entry_bytes: u32,
    line_sectors: u32,
) -> u32 {
    let blocks =
        (logical_sectors * u64::from(entry_bytes)).div_ceil(config.block_bytes.max(1).into());
    let lines = Shape::new(config, geometry).lines(blocks, line_sectors);
    u32::try_from(lines).unwrap_or(u32::MAX)
}
