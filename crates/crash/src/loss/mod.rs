//! What media lost, and whether a mount can know of it: read from media alone, by what is documented of a
//! kind's format. A new kind has a file here and an arm in [`of`].

mod coupled;
mod device;
mod pblk;
mod zoned;

use nandscape_block::{Lba, SECTOR_BYTES, SectorData, Tag};
use nandscape_ftl::FtlConfig;
use nandscape_media::{
    FaultInjector, Geometry, KEY_MAX, KEY_TRIM, Kind, Media, MemoryStore, OpenChannel, Ppa,
};
use std::fmt;
use std::ops::Range;

/// The media of a campaign's device, which fail as the scenario has it.
pub(crate) type Faulty = FaultInjector<Media<MemoryStore>>;

/// What media lost under a kind of FTL.
pub(crate) trait Loss: fmt::Debug {
    /// What the copies of these sectors held that media lost.
    fn copies(&self, media: &Faulty, sectors: Range<u64>) -> Vec<(Lba, SectorData)> {
        let of = |at: Ppa| {
            let lba = u64::from(media.oob(at).key);
            sectors.contains(&lba).then(|| (Lba(lba), media.data(at)))
        };
        lost_data(media).filter_map(of).collect()
    }

    /// Sectors of a mapping unit, of which a mount takes whole ones, where what media hold is all that survives.
    fn durable_unit(&self) -> Option<u32> {
        Some(1)
    }

    /// Contents of lost copies whose addresses a mount cannot know, and what lost records discarded.
    fn forgotten(&self, media: &Faulty) -> Vec<(Lba, SectorData)>;
}

/// Bytes of a record in a sector of trim records, and of what comes before the first.
const TRIM_BYTES: usize = 16;

/// That of a kind; none for choices that fit no device of this shape.
pub(crate) fn of(config: &FtlConfig, geometry: &Geometry) -> Option<Box<dyn Loss>> {
    use crate::draw::interval::{self, KIND as INTERVAL};
    use crate::draw::{coupled::KIND as COUPLED, device::KIND as PAGE_MAP};
    use crate::draw::{pblk::config::KIND as PBLK, zoned::KIND as ZONED};
    match config.kind() {
        PBLK => Some(Box::new(pblk::Lines::of(config, geometry)?)),
        PAGE_MAP => Some(Box::new(device::EraseUnits::of(config)?)),
        INTERVAL => Some(Box::new(device::EraseUnits::with(&interval::of(config)?.pages))),
        ZONED => Some(Box::new(zoned::Zones::of(config, geometry)?)),
        COUPLED => Some(Box::new(coupled::Nothing)),
    }
}

/// What a sector of data held: its content, or the zeroes of what its trim records discarded.
fn held(media: &Faulty, at: Ppa) -> Vec<(Lba, SectorData)> {
    match media.oob(at).key {
        KEY_TRIM => {
            let zeroes = |lba| (lba, SectorData::Tag(Tag::ZERO));
            discarded(&media.data(at)).map(zeroes).collect()
        }
        key if key <= KEY_MAX => vec![(Lba(key.into()), media.data(at))],
        _ => Vec::new(),
    }
}

/// Sectors of data that media lost.
fn lost_data(media: &Faulty) -> impl Iterator<Item = Ppa> + '_ {
    let lost = |at: &Ppa| !media.readable(*at) && media.oob(*at).kind == Kind::Data;
    media.injected().iter().copied().filter(lost)
}

/// The largest key that is a logical sector's.
pub(crate) const KEYS_OF_DATA: u32 = KEY_MAX;

/// Every sector that records of this content discard.
fn discarded(records: &SectorData) -> impl Iterator<Item = Lba> + use<> {
    trim_records(records).into_iter().flat_map(|(sectors, _)| sectors).map(Lba)
}

/// The sectors of each record of this content, and the sequence before which it hides their copies.
pub(crate) fn trim_records(records: &SectorData) -> Vec<(Range<u64>, u64)> {
    let Some(bytes) = records.expand() else { return Vec::new() };
    let word = |at: usize| u64::from(u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i])));
    let places = (1..=word(8) as usize).map(|record| record * TRIM_BYTES);
    let places = places.take_while(|place| place + TRIM_BYTES <= SECTOR_BYTES as usize);
    let record = |at: usize| {
        let (first, sectors) = (word(at), word(at + 4));
        (first..first + sectors, word(at + 8) | word(at + 12) << 32)
    };
    places.map(record).collect()
}
