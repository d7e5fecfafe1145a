//! What injected faults made unreadable on a pblk, from media alone by what is documented of lines
//! (docs/formats/line.md): whose copies they are, and which of them a power cut leaves without an address.

use crate::draw::pblk::config::of;
use crate::loss::{Faulty, Loss};
use nandscape_block::{Lba, SECTOR_BYTES, SectorData, Tag};
use nandscape_ftl::FtlConfig;
use nandscape_ftl::pblk::Capacity;
use nandscape_ftl::pblk::config::LineSet;
use nandscape_media::{
    ChunkId, ChunkState, Geometry, KEY_MAX, KEY_TRIM, Kind, OpenChannel, Ppa, UnitId,
};

/// Bytes of a record in a sector of trim records, and of what comes before the first.
const TRIM_BYTES: usize = 16;

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
    fn copies(&self, media: &Faulty, lba: Lba) -> Vec<SectorData> {
        let of_sector = |&at: &Ppa| u64::from(media.oob(at).key) == lba.0;
        data(media).filter(of_sector).map(|at| media.data(at)).collect()
    }

    fn forgotten(&self, media: &Faulty) -> Vec<(Lba, SectorData)> {
        let mut forgotten = Vec::new();
        for at in data(media) {
            match media.oob(at).key {
                KEY_TRIM => {
                    let zeroes = |lba| (lba, SectorData::Tag(Tag::ZERO));
                    forgotten.extend(discarded(&media.data(at)).map(zeroes));
                }
                key if key <= KEY_MAX && !is_listed(media, *self, at) => {
                    forgotten.push((Lba(key.into()), media.data(at)));
                }
                _ => {}
            }
        }
        forgotten
    }
}

/// Sectors of data that media lost.
fn data(media: &Faulty) -> impl Iterator<Item = Ppa> + '_ {
    let lost = |at: &Ppa| !media.readable(*at) && media.oob(*at).kind == Kind::Data;
    media.injected().iter().copied().filter(lost)
}

/// Whether all end metadata of a sector's line can be read.
fn is_listed(media: &Faulty, shape: Lines, at: Ppa) -> bool {
    let geometry = media.geometry();
    let ChunkId { unit, chunk } = geometry.chunk_of(at);
    let own = stripe(geometry, shape.line_set, unit);
    let units = (0..geometry.total_units()).map(UnitId);
    let told: u32 = units
        .filter(|&unit| stripe(geometry, shape.line_set, unit) == own)
        .map(|unit| emeta_sectors(media, ChunkId { unit, chunk }))
        .sum();
    told >= shape.emeta_sectors
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
    let told = |at: &Ppa| media.oob(*at).kind == Kind::Emeta && media.readable(*at);
    sectors.filter(told).count() as u32
}

/// Every sector that records of this content discard.
fn discarded(records: &SectorData) -> impl Iterator<Item = Lba> + use<> {
    let bytes = records.expand();
    let word = |bytes: &[u8], at: usize| {
        u64::from(u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i])))
    };
    let count = bytes.as_ref().map_or(0, |bytes| word(&bytes[..], 8) as usize);
    let places = (1..=count).map(|record| record * TRIM_BYTES);
    let places = places.take_while(|place| place + TRIM_BYTES <= SECTOR_BYTES as usize);
    places.flat_map(move |place| {
        let range =
            bytes.as_ref().map(|bytes| (word(&bytes[..], place), word(&bytes[..], place + 4)));
        let (first, sectors) = range.unwrap_or_default();
        (first..first + sectors).map(Lba)
    })
}
