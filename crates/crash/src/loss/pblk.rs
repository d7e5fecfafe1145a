//! What injected faults made unreadable on a pblk, from media alone by what is documented of lines
//! (docs/formats/line.md): whose copies they are, and which of them a power cut leaves without an address.

use crate::draw::pblk::config::of;
use crate::loss::{Faulty, Loss, held, lost_data};
use nandscape_block::{Lba, SectorData};
use nandscape_ftl::FtlConfig;
use nandscape_ftl::pblk::Capacity;
use nandscape_ftl::pblk::config::LineSet;
use nandscape_media::{ChunkId, ChunkState, Geometry, KEY_TRIM, Kind, OpenChannel, Ppa, UnitId};

/// How lines lie on a device, as far as their end metadata go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    line_set: LineSet,
    emeta_sectors: u32,
}

impl Lines {
    /// Of a pblk with these choices, if they are one's.
    pub(crate) fn of(config: &FtlConfig, geometry: &Geometry) -> Option<Self> {
        let config = of(config)?;
        let chunks = u64::from(geometry.total_units()) * u64::from(geometry.chunks);
        let Capacity { emeta_sectors, .. } = Capacity::of(geometry, config, chunks).ok()?;
        Some(Self { line_set: config.line_set, emeta_sectors })
    }
}

impl Loss for Lines {
    /// End metadata name the addresses of data, and no discards.
    fn forgotten(&self, media: &Faulty) -> Vec<(Lba, SectorData)> {
        let unnamed = |&at: &Ppa| media.oob(at).key == KEY_TRIM || !is_listed(media, *self, at);
        lost_data(media).filter(unnamed).flat_map(|at| held(media, at)).collect()
    }
}

/// Whether all end metadata of a sector's line can be read.
fn is_listed(media: &Faulty, shape: Lines, at: Ppa) -> bool {
    let geometry = media.geometry();
    let ChunkId { unit, chunk } = geometry.chunk_of(at);
    let own = stripe(geometry, shape.line_set, unit);
    let units = (0..geometry.total_units()).map(UnitId);
    let readable: u32 = units
        .filter(|&unit| stripe(geometry, shape.line_set, unit) == own)
        .map(|unit| emeta_sectors(media, ChunkId { unit, chunk }))
        .sum();
    readable >= shape.emeta_sectors
}

/// Which of the lines with the same chunk index a unit belongs to.
fn stripe(geometry: &Geometry, set: LineSet, unit: UnitId) -> u32 {
    match set {
        LineSet::Device => 0,
        LineSet::Channel => geometry.group_of(unit),
        LineSet::Units(width) => unit.0 / width,
    }
}

/// Readable sectors of end metadata in a chunk.
fn emeta_sectors(media: &Faulty, chunk: ChunkId) -> u32 {
    let info = media.chunk(chunk);
    let end = if info.state == ChunkState::Offline { 0 } else { info.wp };
    let sectors = (0..end).map(|sector| media.geometry().ppa(chunk, sector));
    let is_emeta = |at: &Ppa| media.oob(*at).kind == Kind::Emeta && media.readable(*at);
    sectors.filter(is_emeta).count() as u32
}
