//! What injected faults made unreadable on a zoned SSD. A lost sector stays a part of its zone, with two exceptions:
//! - a write unit with which a chunk ends looks like one that a power cut tore: its zone ends before the page;
//! - a sector of the save log is not copied, and its zone ends there.
//!
//! A lost sector that went to another chunk is marked there (auxiliary value 1).

use crate::draw::zoned;
use crate::loss::device::EraseUnits;
use crate::loss::{Faulty, Loss, held};
use nandscape_block::{Lba, SectorData};
use nandscape_ftl::FtlConfig;
use nandscape_media::{ChunkState, Geometry, KEY_MAX, Kind, OpenChannel, Ppa};
use std::collections::BTreeMap;
use std::ops::Range;

/// The auxiliary value of a sector that was lost before it was copied.
const LOST: u32 = 1;

/// The zones, and the page-mapped region before them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zones {
    geometry: Geometry,
    first: u64,
    distance: u64,
    front: EraseUnits,
}

impl Zones {
    /// Those of a zoned SSD with these choices.
    pub(crate) fn of(config: &FtlConfig, geometry: &Geometry) -> Option<Self> {
        let config = zoned::of(config)?;
        let sizes = config.sizes(geometry).ok()?;
        let front = EraseUnits::with(&config.pages);
        let (first, distance) = (sizes.random_sectors, sizes.zone_sectors);
        Some(Self { geometry: *geometry, first, distance, front })
    }

    /// Every written sector of the zones: of their chunks, and of the save log.
    fn written<'a>(&self, media: &'a Faulty) -> impl Iterator<Item = (u64, Ppa)> + use<'a> {
        let Self { geometry, first, .. } = *self;
        let written = move |chunk| {
            let info = media.chunk(chunk);
            let end = if info.state == ChunkState::Offline { 0 } else { info.wp };
            (0..end).map(move |sector| geometry.ppa(chunk, sector))
        };
        let of_zone = move |at: Ppa| {
            let key = media.oob(at).key;
            (key <= KEY_MAX && u64::from(key) >= first).then_some((u64::from(key), at))
        };
        geometry.all_chunks().flat_map(written).filter_map(of_zone)
    }

    /// Whether a mount takes a lost sector for the end of its zone, and from which address on. One that pads a page has no
    /// address, and the page ends with it.
    fn ends(&self, media: &Faulty, at: Ppa) -> Option<u64> {
        let key = |at: Ppa| Some(media.oob(at).key).filter(|key| *key <= KEY_MAX).map(u64::from);
        if media.oob(at).kind != Kind::Data {
            return key(at);
        }
        let chunk = self.geometry.chunk_of(at);
        let (page, unit) = (self.geometry.ws_opt, self.geometry.ws_min);
        let wp = media.chunk(chunk).wp;
        let lost = |sector: u32| !media.readable(self.geometry.ppa(chunk, sector));
        let looks_torn = wp > 0 && (wp.saturating_sub(unit)..wp).all(lost);
        let last = wp.saturating_sub(1) / page * page;
        let first = self.geometry.ppa(chunk, last);
        if !(looks_torn && at >= first || (0..wp).all(lost)) {
            return None;
        }
        let of_page = (last..wp).map(|sector| self.geometry.ppa(chunk, sector));
        of_page.chain([at]).filter_map(key).min()
    }
}

impl Loss for Zones {
    fn copies(&self, media: &Faulty, sectors: Range<u64>) -> Vec<(Lba, SectorData)> {
        let is_lost = |at: Ppa| {
            media.oob(at).aux == LOST || (!media.readable(at) && media.injected().contains(&at))
        };
        let in_front = sectors.start..sectors.end.min(self.first);
        let mut copies = match in_front.is_empty() {
            true => Vec::new(),
            false => self.front.copies(media, in_front),
        };
        // Where no fault lost a sector no copy of one is marked, and each read would look through all media in vain.
        if sectors.end > self.first && !media.injected().is_empty() {
            let lost =
                self.written(media).filter(|(key, at)| sectors.contains(key) && is_lost(*at));
            copies.extend(lost.map(|(key, at)| (Lba(key), media.data(at))));
        }
        copies
    }

    fn durable_unit(&self) -> Option<u32> {
        None
    }

    fn forgotten(&self, media: &Faulty) -> Vec<(Lba, SectorData)> {
        let front = self.front.forgotten(media).into_iter();
        let front = front.filter(|(lba, _)| lba.0 < self.first);
        let mut ends = BTreeMap::<u64, u64>::new();
        for &at in media.injected().iter().filter(|at| !media.readable(**at)) {
            if let Some(end) = self.ends(media, at).filter(|end| *end >= self.first) {
                let zone = (end - self.first) / self.distance;
                let kept = ends.entry(zone).or_insert(end);
                *kept = end.min(*kept);
            }
        }
        let after_end = |(key, _): &(u64, Ppa)| {
            ends.get(&((key - self.first) / self.distance)).is_some_and(|end| key >= end)
        };
        let zones = self.written(media).filter(after_end).flat_map(|(_, at)| held(media, at));
        front.chain(zones).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_block::Tag;
    use nandscape_ftl::device::Config;
    use nandscape_media::{
        ChunkId, FaultInjector, Faults, KEY_EMPTY, Media, MediaConfig, PayloadMode, UnitId,
        WriteCmd,
    };
    use nandscape_rt::Nanos;

    /// The last page of a zone may be padded. Where media lost its last write unit, a mount takes it for torn, also if
    /// nothing but padding was in that.
    #[test]
    fn a_page_that_ends_with_lost_padding_is_forgotten() {
        let geometry = Geometry {
            groups: 1,
            units: 1,
            chunks: 8,
            sectors: 6,
            ws_min: 1,
            ws_opt: 3,
            mw_cunits: 0,
            maxoc: 0,
            maxocpu: 0,
        };
        let zones =
            Zones { geometry, first: 0, distance: 6, front: EraseUnits::with(&Config::default()) };
        let at = geometry.ppa(ChunkId { unit: UnitId(0), chunk: 0 }, 0);
        let data = [SectorData::Tag(Tag::new(70)), SectorData::Absent, SectorData::Absent];
        let keys = [4, KEY_EMPTY, KEY_EMPTY];
        let mut seen = BTreeMap::new();
        for seed in 0..32 {
            let config = MediaConfig { payload: PayloadMode::Tags, ..MediaConfig::new(geometry) };
            let faults = Faults { unreadable: [0].into(), ..Faults::default() };
            let media = Media::new(config).expect("a device");
            let mut media = FaultInjector::new(media, faults, seed);
            let (kind, data) = (Kind::Data, &data);
            let cmd = WriteCmd { at, kind, seq: 0, seq_deltas: &[], aux: &[], keys: &keys, data };
            media.write(Nanos::ZERO, Nanos::ZERO, cmd).expect("legal");
            let lost = *media.injected().first().expect("a lost sector");
            seen.insert(lost, zones.forgotten(&media));
        }
        let page = vec![(Lba(4), data[0].clone())];
        let expected = [(at, vec![]), (at.plus(1), vec![]), (at.plus(2), page)];
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
    }
}
