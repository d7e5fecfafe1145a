//! The zones of the adversary. A zone takes commands in the order of their submission, and so has a
//! history: what was written between two resets is a *generation*, a sequence of sectors.
//!
//! - Sectors land in any order; one that has not landed reads as zeroes. A reset takes effect at an instant
//!   of its own, but before anything that was written later lands.
//! - Covered is a point of the history, and with it everything before that point: a flush or FUA that covers a
//!   write covers what the zone took before it.
//! - A power cut leaves the zone at some point of its history that is not before the covered one: a prefix of
//!   a generation, in whole units of the write granularity. A finish survives or not by its own throw.
//! - After a cut no more zones are active than the limit allows: where a lost reset, finish or write would
//!   exceed it, zones keep everything.

use super::version::{CutStyle, Version};
use crate::address::Lba;
use crate::bio::{Bio, Flags};
use crate::caps::DeviceCaps;
use crate::error::BlockError;
use crate::payload::{Payload, SectorData};
use crate::region::RegionKind;
use crate::zone::{ZoneAction, ZoneId, ZoneLimits};
use crate::zone_table::ZoneTable;
use nandscape_rt::{Stream, invariant};
use std::collections::BTreeSet;
use std::ops::Range;

/// The place of a command in the history of its zone.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    zone: ZoneId,
    /// The generation that it belongs to, or that it begins.
    generation: u64,
    /// What it writes, in sectors from the zone's first; nothing for a zone command.
    sectors: Range<usize>,
    /// Whether it finishes the zone.
    finishes: bool,
}

/// What a zone takes between two resets. The landing of a version is 0 until it lands.
#[derive(Clone, Default)]
struct Generation {
    /// The reset that begins it; none for the first that is known.
    reset: Option<Version>,
    sectors: Vec<Version>,
    finish: Option<Version>,
}

/// A point of a zone's history.
#[derive(Clone, Copy)]
struct Point {
    /// Index among the generations that are known.
    generation: usize,
    sectors: usize,
    is_finished: bool,
}

impl Point {
    /// Whether a zone of this capacity is active there, when power comes back.
    fn is_active(self, capacity: u64) -> bool {
        !self.is_finished && (1..capacity).contains(&(self.sectors as u64))
    }
}

/// A zone.
#[derive(Clone)]
struct Zone {
    /// From the covered one on; at least one.
    generations: Vec<Generation>,
    /// The number of the first of them.
    first: u64,
    /// The one that reads see.
    visible: u64,
    /// Covered sectors of the first one.
    covered: usize,
    /// Whether the finish of the first one is covered.
    finish_covered: bool,
}

impl Zone {
    fn new() -> Self {
        let generations = vec![Generation::default()];
        Self { generations, first: 0, visible: 0, covered: 0, finish_covered: false }
    }

    /// The number of the last generation, and what it has.
    fn last(&mut self) -> (u64, &mut Generation) {
        let last = self.generations.len() - 1;
        (self.first + last as u64, &mut self.generations[last])
    }

    /// The generation of a number, if it is known.
    fn generation(&self, number: u64) -> Option<&Generation> {
        self.generations.get(number.checked_sub(self.first)? as usize)
    }

    /// What was not covered, in order, each with the point that it leads to. In each generation it ends
    /// before the first of these writes.
    fn uncovered<'a>(
        &'a self,
        waiting: &'a BTreeSet<u64>,
    ) -> impl Iterator<Item = (Point, &'a Version)> + use<'a> {
        self.generations.iter().enumerate().flat_map(move |(generation, content)| {
            let point = move |sectors| Point { generation, sectors, is_finished: false };
            let reset = content.reset.iter().map(move |version| (point(0), version));
            let from = if generation == 0 { self.covered } else { 0 };
            let sectors = (from + 1..).zip(&content.sectors[from..]);
            let sectors = sectors.map(move |(count, version)| (point(count), version));
            reset.chain(sectors.take_while(|(_, version)| !waiting.contains(&version.write)))
        })
    }

    /// Where it is if all that may survive does.
    fn latest(&self, waiting: &BTreeSet<u64>) -> Point {
        let covered = Point { generation: 0, sectors: self.covered, is_finished: false };
        let point = self.uncovered(waiting).last().map_or(covered, |(point, _)| point);
        Point { is_finished: self.generations[point.generation].finish.is_some(), ..point }
    }

    /// A point at which a cut may leave it, in a style.
    fn draw(
        &self,
        style: CutStyle,
        keep: &impl Fn(&Version) -> bool,
        waiting: &BTreeSet<u64>,
        rng: &mut Stream,
    ) -> Point {
        let covered = Point { generation: 0, sectors: self.covered, is_finished: false };
        let history: Vec<_> = self.uncovered(waiting).collect();
        let keeps = |(_, version): &(Point, &Version)| keep(version);
        let kept = match style {
            _ if history.is_empty() => 0,
            CutStyle::EachSector => rng.below(history.len() as u64 + 1) as usize,
            // What is kept takes along all before it, or what is lost all that follows.
            style if style == CutStyle::OnlyOne || rng.chance(0.5) => {
                history.iter().rposition(keeps).map_or(0, |last| last + 1)
            }
            _ => history.iter().take_while(|entry| keeps(entry)).count(),
        };
        let point = kept.checked_sub(1).map_or(covered, |last| history[last].0);
        let is_covered = point.generation == 0 && self.finish_covered;
        let finish = self.generations[point.generation].finish.as_ref();
        let is_finished = finish.is_some_and(|version| match style {
            _ if is_covered => true,
            CutStyle::EachSector => rng.chance(0.5),
            _ => keep(version),
        });
        Point { is_finished, ..point }
    }

    /// Power was cut, and left it at a point: that is all of its history from here on.
    fn settle(&mut self, point: Point) {
        let mut kept = self.generations.swap_remove(point.generation);
        kept.sectors.truncate(point.sectors);
        kept.sectors.iter_mut().for_each(|version| version.landed = version.landed.max(1));
        kept.reset = None;
        kept.finish = kept.finish.filter(|_| point.is_finished);
        *self = Self {
            covered: kept.sectors.len(),
            finish_covered: point.is_finished,
            generations: vec![kept],
            ..Self::new()
        };
    }
}

/// All zones of the device.
#[derive(Clone)]
pub(super) struct Zones {
    table: ZoneTable,
    zones: Vec<Zone>,
    /// Numbers of the zones of each zoned region, and their limits.
    regions: Vec<(Range<usize>, ZoneLimits)>,
    keeps_content: bool,
}

impl Zones {
    /// The zones of these capabilities, empty.
    pub(super) fn new(caps: &DeviceCaps) -> Self {
        let table = ZoneTable::of(caps);
        let zones = vec![Zone::new(); table.infos().count()];
        let mut regions: Vec<(Range<usize>, _)> = Vec::new();
        for region in &caps.regions {
            if let RegionKind::Zones(limits) = region.kind {
                let first = regions.last().map_or(0, |(zones, _)| zones.end);
                regions.push((first..first + region.zones() as usize, limits));
            }
        }
        Self { table, zones, regions, keeps_content: caps.keeps_content }
    }

    pub(super) const fn table(&self) -> &ZoneTable {
        &self.table
    }

    /// Whether any of these sectors lies in a zone.
    pub(super) fn meets(&self, sectors: Range<u64>) -> bool {
        let next = self.table.report(Lba(sectors.start), 1);
        next.first().is_some_and(|zone| zone.start.0 < sectors.end)
    }

    /// What a sector of a zone holds now; none of one that is all zeroes.
    pub(super) fn current(&self, zone: ZoneId, lba: u64) -> Option<&SectorData> {
        let start = self.table.info(zone).ok()?.start.0;
        let zone = &self.zones[zone.0 as usize];
        let version = zone.generation(zone.visible)?.sectors.get((lba - start) as usize)?;
        (version.landed > 0).then_some(&version.data)
    }

    /// Takes a write at the write pointer, which `lba`, if given, must be; the bio reports where it goes.
    pub(super) fn write(
        &mut self,
        zone: ZoneId,
        lba: Option<Lba>,
        number: u64,
        bio: &mut Bio,
    ) -> Result<Spot, BlockError> {
        bio.lba = self.table.write(zone, lba, bio.sectors)?;
        let payload = std::mem::replace(&mut bio.payload, Payload::None);
        let version = |index| Version {
            write: number,
            landed: 0,
            flags: bio.flags,
            data: if self.keeps_content { payload.sector(index) } else { SectorData::Absent },
        };
        let (generation, last) = self.zones[zone.0 as usize].last();
        let from = last.sectors.len();
        last.sectors.extend((0..bio.sectors).map(version));
        Ok(Spot { zone, generation, sectors: from..last.sectors.len(), finishes: false })
    }

    /// Takes a zone management command; its place in the history, if it has one.
    pub(super) fn act(
        &mut self,
        zone: ZoneId,
        action: ZoneAction,
        number: u64,
        flags: Flags,
    ) -> Result<Option<Spot>, BlockError> {
        self.table.act(zone, action)?;
        let history = &mut self.zones[zone.0 as usize];
        let version = Version { write: number, landed: 0, flags, data: SectorData::Absent };
        match action {
            ZoneAction::Reset => {
                let next = Generation { reset: Some(version), ..Generation::default() };
                history.generations.push(next);
            }
            ZoneAction::Finish => {
                history.last().1.finish.get_or_insert(version);
            }
            ZoneAction::Open | ZoneAction::Close => return Ok(None),
        }
        let (generation, _) = history.last();
        let finishes = action == ZoneAction::Finish;
        Ok(Some(Spot { zone, generation, sectors: 0..0, finishes }))
    }

    /// A piece of a write lands, or a zone command takes effect.
    pub(super) fn land(&mut self, spot: &Spot, piece: Range<u32>, landing: u64) {
        let zone = &mut self.zones[spot.zone.0 as usize];
        zone.visible = zone.visible.max(spot.generation);
        let index = spot.generation.checked_sub(zone.first);
        let generation = index.and_then(|index| zone.generations.get_mut(index as usize));
        let Some(generation) = generation else { return };
        let landed = match (spot.sectors.is_empty(), spot.finishes) {
            (false, _) => {
                let [from, end] =
                    [piece.start, piece.end].map(|at| spot.sectors.start + at as usize);
                &mut generation.sectors[from..end]
            }
            (true, true) => generation.finish.as_mut_slice(),
            (true, false) => generation.reset.as_mut_slice(),
        };
        landed.iter_mut().for_each(|version| version.landed = landing);
    }

    /// The zone cannot go back before this point.
    pub(super) fn cover(&mut self, spot: &Spot) {
        let zone = &mut self.zones[spot.zone.0 as usize];
        let Some(over) = spot.generation.checked_sub(zone.first) else { return };
        if over > 0 {
            zone.generations.drain(..over as usize);
            (zone.first, zone.covered, zone.finish_covered) = (spot.generation, 0, false);
            zone.generations[0].reset = None;
        }
        zone.covered = zone.covered.max(spot.sectors.end);
        zone.finish_covered |= spot.finishes;
    }

    /// Whether any power cut from now on may have to keep this: it comes before what is covered, or
    /// makes its zone full, so that another one could become active.
    pub(super) fn keeps(&self, spot: &Spot) -> bool {
        let zone = &self.zones[spot.zone.0 as usize];
        let capacity = self.table.info(spot.zone).map_or(0, |info| info.capacity);
        let is_full = zone
            .generation(spot.generation)
            .is_some_and(|generation| generation.sectors.len() as u64 == capacity);
        is_full || spot.generation == zone.first && spot.sectors.start < zone.covered
    }

    /// Everything that no flush covered, also what has not landed.
    pub(super) fn uncovered(&self) -> impl Iterator<Item = &Version> {
        const NONE: &BTreeSet<u64> = &BTreeSet::new();
        self.zones.iter().flat_map(|zone| zone.uncovered(NONE)).map(|(_, version)| version)
    }

    /// Power fails: each zone keeps what the style has it keep, but nothing of the bios in `waiting`.
    pub(super) fn cut(
        &mut self,
        style: CutStyle,
        keep: &impl Fn(&Version) -> bool,
        waiting: &BTreeSet<u64>,
        rng: &mut Stream,
    ) {
        for (numbers, limits) in self.regions.clone() {
            let granule = limits.write_sectors.max(1) as usize;
            let draw = |zone: &Zone| {
                let point = zone.draw(style, keep, waiting, rng);
                Point { sectors: point.sectors - point.sectors % granule, ..point }
            };
            let mut points: Vec<_> = self.zones[numbers.clone()].iter().map(draw).collect();
            if limits.max_active > 0 {
                self.keep_limit(&numbers, limits, &mut points, waiting);
            }
            for (number, point) in numbers.zip(points) {
                self.zones[number].settle(point);
                let set = self.tell(ZoneId(number as u32), point);
                invariant!(set.is_ok(), "zone {number} is one of the device");
            }
        }
    }

    /// Has zones keep everything, as long as more of a region are active than may be.
    fn keep_limit(
        &self,
        numbers: &Range<usize>,
        limits: ZoneLimits,
        points: &mut [Point],
        waiting: &BTreeSet<u64>,
    ) {
        let capacity = limits.capacity;
        let active = points.iter().filter(|point| point.is_active(capacity)).count();
        let excess = active.saturating_sub(limits.max_active as usize);
        let zones = self.zones[numbers.clone()].iter().zip(points);
        let yielding = zones.filter_map(|(zone, point)| {
            let latest = zone.latest(waiting);
            let yields = point.is_active(capacity) && !latest.is_active(capacity);
            yields.then_some((point, latest))
        });
        yielding.take(excess).for_each(|(point, latest)| *point = latest);
    }

    /// Tells the table where a cut left a zone.
    fn tell(&mut self, zone: ZoneId, point: Point) -> Result<(), BlockError> {
        let start = self.table.info(zone)?.start;
        self.table.act(zone, ZoneAction::Reset)?;
        self.table.power_cut(zone, start.plus(point.sectors as u64))?;
        match point.is_finished {
            true => self.table.act(zone, ZoneAction::Finish),
            false => Ok(()),
        }
    }
}
