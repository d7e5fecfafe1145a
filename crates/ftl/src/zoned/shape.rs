//! Where the sectors of a zone lie.
//!
//! - Zone *z* lies on `dies` parallel units that follow each other, from unit `z * dies` on, round the device
//!   (NVMeVirt, `zns_ftl.c`: zone number times `DIES_PER_ZONE`); neighbouring units are on different channels.
//! - Its sectors go to one-shot pages round these dies: page *p* to die `p % dies`, row `p / dies` of its chunk.
//! - Interleaved zones lie on the units of one FTL instance each, in turn: on neighbouring channels, all of their units.
//! - With several streams, sector *s* goes to stream `s % streams`, and within it to dies of that stream alone, which
//!   have neighbouring channels (the conventional emulator of the D2FS artifact: 4 KiB to each of its instances).

use super::config::{Sizes, ZoneConfig};
use nandscape_block::Lba;
use nandscape_media::{AddressFormat, ChunkId, Geometry, KEY_EMPTY, Ppa, UnitId};

/// The arithmetic of places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) streams: u32,
    /// Dies of a zone.
    pub(super) dies: u32,
    /// Sectors of a one-shot page.
    pub(super) page: u32,
    /// Pages of a chunk.
    pub(super) rows: u32,
    /// What can be written of a zone.
    pub(super) capacity: u64,
    /// Sectors before the first zone.
    first: u64,
    /// From the beginning of a zone to that of the next.
    zone_sectors: u64,
    stream_dies: u32,
    stream_groups: u32,
    groups: u32,
    stream_units: u32,
    /// Zones that follow each other and have channels of their own.
    interleave: u32,
    format: AddressFormat,
}

impl Shape {
    pub(super) const fn new(geometry: &Geometry, sizes: &Sizes, zone: &ZoneConfig) -> Self {
        let (dies, streams) = (zone.dies, zone.instances);
        Self {
            streams,
            dies,
            page: geometry.ws_opt,
            rows: geometry.sectors / geometry.ws_opt,
            capacity: sizes.capacity,
            first: sizes.random_sectors,
            zone_sectors: sizes.zone_sectors,
            stream_dies: dies / streams,
            stream_groups: geometry.groups / streams,
            groups: geometry.groups,
            stream_units: geometry.total_units() / streams,
            interleave: zone.interleave,
            format: geometry.format(),
        }
    }

    /// The zone that an address lies in, and its place within it.
    #[inline]
    pub(super) const fn zone_of(&self, lba: Lba) -> (u32, u64) {
        let place = lba.0 - self.first;
        ((place / self.zone_sectors) as u32, place % self.zone_sectors)
    }

    /// The first sector of a zone.
    #[inline]
    pub(super) const fn start_of(&self, zone: u32) -> Lba {
        Lba(self.first + zone as u64 * self.zone_sectors)
    }

    /// Key of a sector of a stream; none of one beyond the zone's capacity.
    #[inline]
    pub(super) const fn key(&self, zone: u32, stream: u32, local: u32) -> u32 {
        let offset = self.offset(stream, local);
        if offset < self.capacity { self.start_of(zone).plus(offset).0 as u32 } else { KEY_EMPTY }
    }

    /// The stream of a sector of a zone, and its number within it.
    #[inline]
    pub(super) const fn split(&self, offset: u64) -> (u32, u32) {
        if self.streams == 1 {
            return (0, offset as u32);
        }
        ((offset % self.streams as u64) as u32, (offset / self.streams as u64) as u32)
    }

    /// The sector of a zone with this number in a stream.
    #[inline]
    pub(super) const fn offset(&self, stream: u32, local: u32) -> u64 {
        local as u64 * self.streams as u64 + stream as u64
    }

    /// Sectors of a stream that lie before this sector of the zone.
    #[inline]
    pub(super) const fn locals_before(&self, stream: u32, offset: u64) -> u32 {
        offset.saturating_sub(stream as u64).div_ceil(self.streams as u64) as u32
    }

    /// Sectors of a page that the zone's capacity holds.
    #[inline]
    pub(super) fn page_sectors(&self, stream: u32, page: u32) -> u32 {
        let held = self.locals_before(stream, self.capacity);
        held.saturating_sub(page * self.page).min(self.page)
    }

    /// The die of a page among those of its zone, and its row.
    #[inline]
    pub(super) const fn die_of(&self, stream: u32, page: u32) -> (u32, u32) {
        (stream * self.stream_dies + page % self.stream_dies, page / self.stream_dies)
    }

    /// The stream that a die serves.
    pub(super) const fn stream_of(&self, die: u32) -> u32 {
        die / self.stream_dies
    }

    /// The page of a stream that lies in this row of a die.
    pub(super) const fn page_at(&self, die: u32, row: u32) -> u32 {
        row * self.stream_dies + die % self.stream_dies
    }

    /// Of the first pages of a stream, those that lie on a die.
    pub(super) const fn rows_of(&self, die: u32, pages: u32) -> u32 {
        (pages + self.stream_dies - 1 - die % self.stream_dies) / self.stream_dies
    }

    /// The parallel unit of a die of a zone.
    #[inline]
    pub(super) const fn unit(&self, zone: u32, die: u32) -> u32 {
        if self.interleave > 1 {
            let groups = self.groups / self.interleave;
            let group = zone % self.interleave * groups + die % groups;
            return die / groups * self.groups + group;
        }
        let (stream, die) = (die / self.stream_dies, die % self.stream_dies);
        let place = zone as u64 * self.stream_dies as u64 + die as u64;
        let index = (place % self.stream_units as u64) as u32;
        let group = stream * self.stream_groups + index % self.stream_groups;
        index / self.stream_groups * self.groups + group
    }

    /// The unit of a zone's first sector.
    pub(super) const fn first_unit(&self, zone: u32) -> u32 {
        self.unit(zone, 0)
    }

    /// The address of a row of a chunk.
    #[inline]
    pub(super) const fn at(&self, unit: u32, chunk: u32, row: u32) -> Ppa {
        self.format.ppa(ChunkId { unit: UnitId(unit), chunk }, row * self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;
    use std::collections::BTreeSet;

    const GEOMETRY: Geometry = Geometry {
        groups: 4,
        units: 2,
        chunks: 6,
        sectors: 12,
        ws_min: 4,
        ws_opt: 4,
        mw_cunits: 0,
        maxoc: 0,
        maxocpu: 0,
    };

    fn shape(dies: u32, streams: u32, capacity: u64) -> Shape {
        let sizes = Sizes {
            physical_sectors: GEOMETRY.total_sectors(),
            random_sectors: 0,
            random_chunks: 0,
            random_lines: 0,
            zones: 4,
            zone_sectors: capacity,
            capacity,
            buffer: 16,
            zone_chunk_sectors: u64::from(dies) * 12,
        };
        let zone = ZoneConfig { dies, instances: streams, ..Config::default().zone };
        Shape::new(&GEOMETRY, &sizes, &zone)
    }

    /// Every sector of a zone has another place on the dies of its stream, and pages fill rows in order.
    #[test]
    fn sectors_have_places() {
        for (dies, streams) in [(1, 1), (4, 1), (8, 1), (4, 2), (8, 4), (3, 1)] {
            let shape = shape(dies, streams, u64::from(dies) * 12);
            let mut seen = BTreeSet::new();
            for offset in 0..shape.capacity {
                let (stream, local) = shape.split(offset);
                assert_eq!(shape.offset(stream, local), offset);
                let (die, row) = shape.die_of(stream, local / shape.page);
                assert_eq!((shape.stream_of(die), shape.page_at(die, row)), (stream, local / 4));
                assert!(row < shape.rows && die < dies);
                assert!(seen.insert((die, row, local % 4)));
                assert_eq!(shape.page_sectors(stream, local / 4), 4);
            }
            for pages in 0..dies / streams * 3 {
                let rows = (0..dies / streams).map(|die| shape.rows_of(die, pages));
                assert_eq!(rows.sum::<u32>(), pages);
            }
        }
    }

    /// Zones go round the device; streams keep to their channels.
    #[test]
    fn zones_go_round_the_units() {
        let shape = shape(4, 1, 48);
        let units = |zone| (0..4).map(|die| shape.unit(zone, die)).collect::<Vec<_>>();
        assert_eq!([units(0), units(1), units(2)], [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]]);
        let striped = self::shape(8, 4, 96);
        for die in 0..8 {
            assert_eq!(striped.unit(3, die) % 4, die / 2, "each stream has one channel");
        }
        let all: BTreeSet<_> = (0..8).map(|die| striped.unit(1, die)).collect();
        assert_eq!(all.len(), 8);
    }

    /// Interleaved zones divide the units between them.
    #[test]
    fn interleaved_zones_have_channels_of_their_own() {
        let zone = ZoneConfig { dies: 4, interleave: 2, ..Config::default().zone };
        let shape = Shape { interleave: zone.interleave, ..shape(4, 1, 48) };
        let units = |zone| (0..4).map(|die| shape.unit(zone, die)).collect::<Vec<_>>();
        assert_eq!([units(0), units(1), units(2)], [[0, 1, 4, 5], [2, 3, 6, 7], [0, 1, 4, 5]]);
    }

    /// A page that the capacity cuts holds less.
    #[test]
    fn the_last_page_may_be_short() {
        let shape = shape(4, 2, 21);
        let sectors = |stream| (0..4).map(|page| shape.page_sectors(stream, page)).collect();
        let (even, odd): (Vec<_>, Vec<_>) = (sectors(0), sectors(1));
        assert_eq!((even, odd), (vec![4, 4, 3, 0], vec![4, 4, 2, 0]));
        assert_eq!((shape.locals_before(0, 5), shape.locals_before(1, 5)), (3, 2));
    }
}
