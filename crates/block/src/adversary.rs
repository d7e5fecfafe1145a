//! A hostile device: sectors in memory behind a volatile cache that does whatever the crash model
//! (docs/semantics/device.md) permits, and nothing else. What a host may not rely on, it breaks.
//!
//! - A bio completes after a drawn latency (`pace.rs`), so completions come out of order. A write *lands*
//!   in one to a few pieces, each at a drawn instant between submission and completion: reads see what
//!   has landed, and overlapping writes in flight land in either order, sector by sector. A read takes
//!   its sectors the same way.
//! - A flush covers what had completed when it was submitted, within its scope, and nothing in flight; it
//!   takes effect at its completion. The flush of a write with PREFLUSH takes effect at a drawn instant
//!   before its payload lands.
//! - FUA covers its own write, at its completion, and nothing else. A discard is a write of zeroes.
//! - A power cut keeps a subset of what no flush covered, also of what was in flight, whole sectors
//!   (`cut.rs`). What it does not keep never comes back.
//! - Zones (`zones.rs`) take commands in the order of their submission. What is written to a zone lands in
//!   any order, a power cut keeps a prefix of it, and may lose resets and finishes that no flush covered.
//!
//! All choices come from one stream: the same seed and the same bios at the same instants do the same.

mod cache;
mod cut;
mod pace;
#[cfg(test)]
mod tests;
mod version;
mod zones;

use crate::address::Lba;
use crate::bio::{Bio, Flags, FlushScope, Op};
use crate::caps::DeviceCaps;
use crate::device::{BlockDevice, Completion, Done, Reply, Submit, Token};
use crate::error::BlockError;
use crate::payload::{Payload, SectorData};
use crate::region::{RegionError, RegionKind};
use crate::tag::Tag;
use crate::zone::ZoneInfo;
use cache::{Cache, Place, Write, file};
use nandscape_rt::{Nanos, Stream};
use pace::{Pace, Timing};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
pub use version::CutStyle;
use version::Version;
use zones::{Spot, Zones};

/// What the device did since it was made, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Steps {
    /// Pieces of writes and discards that landed, and resets and finishes that took effect.
    pub landings: u64,
    /// Pieces of reads that took their data.
    pub takings: u64,
    /// Flushes that took effect, those of writes with PREFLUSH included.
    pub flushes: u64,
}

impl Steps {
    /// All of them.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.landings + self.takings + self.flushes
    }
}

/// What happens to a bio at an instant. Sectors count from the bio's first.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    /// Its flush takes effect.
    Flush,
    /// Sectors of it land, or are read.
    Piece(Range<u32>),
    /// It completes.
    Complete,
}

/// A step that is to come; in the order of their instants, then of their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Event {
    at: Nanos,
    number: u64,
    bio: u64,
    step: Step,
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A bio that has not completed.
#[derive(Clone)]
struct InFlight {
    token: Token,
    bio: Bio,
    /// Completions of writes before it was submitted.
    completed_before: u64,
    /// Whether its payload may land: it has no flush part, or that has taken effect.
    is_flushed: bool,
    /// What a read has taken.
    taken: Vec<SectorData>,
    /// Its place in the history of a zone.
    spot: Option<Spot>,
}

/// The device; see the head of this file.
#[derive(Clone)]
pub struct AdversaryDevice {
    caps: DeviceCaps,
    rng: Stream,
    pace: Pace,
    cache: Cache,
    in_flight: BTreeMap<u64, InFlight>,
    events: BinaryHeap<Reverse<Event>>,
    bios: u64,
    event_count: u64,
    steps: Steps,
    /// The number of steps at which power is off.
    off_at_step: Option<u64>,
    off_at: Option<Nanos>,
}

impl AdversaryDevice {
    /// A device of this many sectors that honours FUA, discards and scopes of flushes, and reads as zeroes.
    #[must_use]
    pub fn new(sectors: u64, rng: Stream) -> Self {
        let conventional = DeviceCaps::conventional(sectors);
        Self::with_caps(DeviceCaps { scoped_flush: true, max_sectors: 256, ..conventional }, rng)
    }

    /// What another power cut at this instant leaves, one with this randomness.
    #[must_use]
    pub fn after_another_cut(&self, rng: Stream) -> Self {
        let mut other = Self { rng, ..self.clone() };
        other.cut_power();
        other
    }

    /// A device with these capabilities, but all of it writable at random: regions are left out, and
    /// zones and upcalls are refused.
    #[must_use]
    pub fn with_caps(caps: DeviceCaps, rng: Stream) -> Self {
        let regions = Box::default();
        Self::build(DeviceCaps { regions, raises_attention: false, ..caps }, rng)
    }

    /// A device with these capabilities and their regions, all of which are zones or writable at random.
    ///
    /// # Errors
    /// Regions that cannot be those of a device, or are of another kind.
    pub fn with_zones(caps: DeviceCaps, rng: Stream) -> Result<Self, RegionError> {
        caps.check_regions()?;
        let is_served = |kind| matches!(kind, RegionKind::Random | RegionKind::Zones(_));
        match caps.regions.iter().position(|region| !is_served(region.kind)) {
            Some(index) => Err(RegionError::Kind { index }),
            None => Ok(Self::build(DeviceCaps { raises_attention: false, ..caps }, rng)),
        }
    }

    fn build(caps: DeviceCaps, mut rng: Stream) -> Self {
        Self {
            cache: Cache::new(Zones::new(&caps)),
            caps,
            pace: Pace::draw(&mut rng),
            rng,
            in_flight: BTreeMap::new(),
            events: BinaryHeap::new(),
            bios: 0,
            event_count: 0,
            steps: Steps::default(),
            off_at_step: None,
            off_at: None,
        }
    }

    /// What the sector reads as now.
    #[must_use]
    pub fn current(&self, lba: Lba) -> SectorData {
        read(&self.cache, &self.caps, lba.0)
    }

    /// All zones, in order of their numbers.
    pub fn zones(&self) -> impl Iterator<Item = &ZoneInfo> + '_ {
        self.cache.zones.table().infos()
    }

    /// What it did so far.
    #[must_use]
    pub const fn steps(&self) -> Steps {
        self.steps
    }

    /// From here on lets so many steps happen; the next one finds that power is off.
    pub fn switch_off_after(&mut self, steps: Option<u64>) {
        self.off_at_step = steps.map(|steps| self.steps.all().saturating_add(steps));
    }

    /// When power was found off; whatever the device answered since is void.
    #[must_use]
    pub const fn off_at(&self) -> Option<Nanos> {
        self.off_at
    }

    /// Power goes and comes back, in the style that is returned. Bios in flight are gone, unanswered; the
    /// device comes back with another pace.
    pub fn cut_power(&mut self) -> CutStyle {
        self.land_rest();
        let waits = |(number, bio): (&u64, &InFlight)| (!bio.is_flushed).then_some(*number);
        let waiting = self.in_flight.iter().filter_map(waits).collect();
        let style = self.cache.cut(&waiting, &mut self.rng);
        self.in_flight.clear();
        self.pace = Pace::draw(&mut self.rng);
        (self.off_at_step, self.off_at) = (None, None);
        style
    }

    /// What writes in flight have not landed yet joins what the cut may keep, in any order; without
    /// payloads whose flush has not taken effect.
    fn land_rest(&mut self) {
        let mut events = std::mem::take(&mut self.events).into_sorted_vec();
        self.rng.shuffle(&mut events);
        for Reverse(Event { bio, step, .. }) in events {
            let Some(in_flight) = self.in_flight.get(&bio) else { continue };
            let (Step::Piece(piece), true) = (step, in_flight.is_flushed) else { continue };
            if in_flight.bio.op != Op::Read {
                land(&mut self.cache, &self.caps, bio, in_flight, piece);
            }
        }
    }

    /// The steps of a bio, in order.
    fn plan(&mut self, now: Nanos, number: u64, bio: &Bio) -> Vec<Event> {
        let Timing { flush, pieces, complete } = self.pace.time(bio, &mut self.rng);
        let flush = flush.map(|after| (after, Step::Flush)).into_iter();
        let pieces = pieces.into_iter().map(|(after, piece)| (after, Step::Piece(piece)));
        let steps = flush.chain(pieces).chain([(complete, Step::Complete)]);
        let first = self.event_count;
        let events = (first..).zip(steps).map(|(count, (after, step))| {
            let at = now.saturating_add(after);
            Event { at, number: count, bio: number, step }
        });
        let events: Vec<_> = events.collect();
        self.event_count += events.len() as u64;
        events
    }

    /// Does a step, unless power is off; the completion that it brings.
    fn step(&mut self, now: Nanos, number: u64, step: Step) -> Option<Completion> {
        if step == Step::Complete {
            return self.complete(now, number);
        }
        if self.off_at_step.is_some_and(|at| self.steps.all() >= at) {
            self.off_at.get_or_insert(now);
            return None;
        }
        if step == Step::Flush {
            self.flush(number);
            return None;
        }
        let in_flight = self.in_flight.get_mut(&number)?;
        match step {
            Step::Piece(piece) if in_flight.bio.op == Op::Read => {
                self.steps.takings += 1;
                if !in_flight.taken.is_empty() {
                    let lbas = sectors(&in_flight.bio, piece.clone());
                    let places = &mut in_flight.taken[piece.start as usize..piece.end as usize];
                    for (lba, place) in lbas.zip(places) {
                        *place = read(&self.cache, &self.caps, lba);
                    }
                }
            }
            Step::Piece(piece) => {
                self.steps.landings += 1;
                land(&mut self.cache, &self.caps, number, in_flight, piece);
            }
            Step::Flush | Step::Complete => {}
        }
        None
    }

    /// A flush, or the flush of a write with PREFLUSH, takes effect, unless it has.
    fn flush(&mut self, number: u64) {
        let Some(in_flight) = self.in_flight.get_mut(&number) else { return };
        let bio = &in_flight.bio;
        if std::mem::replace(&mut in_flight.is_flushed, true) && bio.flags.has(Flags::PREFLUSH) {
            return;
        }
        self.steps.flushes += 1;
        let scope = match bio.scope {
            FlushScope::Owner if self.caps.scoped_flush => bio.owner.map(file),
            _ => None,
        };
        self.cache.flush(in_flight.completed_before, scope);
        self.flush_early();
    }

    /// What a zone keeps for sure may include writes in flight with PREFLUSH, which come before what was
    /// covered: their flushes take effect first.
    fn flush_early(&mut self) {
        let is_due = |bio: &InFlight| {
            !bio.is_flushed && bio.spot.as_ref().is_some_and(|spot| self.cache.zones.keeps(spot))
        };
        let due = self.in_flight.iter().find(|(_, bio)| is_due(bio)).map(|(number, _)| *number);
        if let Some(number) = due {
            self.flush(number);
            self.flush_early();
        }
    }

    fn complete(&mut self, now: Nanos, number: u64) -> Option<Completion> {
        let is_in_zone = self.in_flight.get(&number)?.spot.is_some();
        if is_in_zone && self.off_at.is_some() {
            // Power went off before it did all that it was to do: it is in flight when power is cut.
            return None;
        }
        let InFlight { token, bio, taken, spot, .. } = self.in_flight.remove(&number)?;
        let place = match (bio.op, spot) {
            (Op::Write | Op::Discard, None) => Some(Place::Sectors(sectors(&bio, 0..bio.sectors))),
            (_, spot) => spot.map(Place::Zone),
        };
        if let Some(place) = place {
            let lasting = bio.flags.has(Flags::FUA) || !self.caps.volatile_cache;
            self.cache.complete(Write { number, place, file: bio.owner.map(file) }, lasting);
            self.flush_early();
        }
        let reply = match bio.op {
            Op::Read if !bio.flags.has(Flags::NO_DATA) => Reply::Data(Payload::collect(taken)),
            Op::ZoneReport => Reply::Zones(self.cache.zones.table().report(bio.lba, bio.sectors)),
            Op::ZoneAppend(_) => Reply::Appended(bio.lba),
            _ => Reply::None,
        };
        Some(Completion { token, done: Done::new(now, Ok(reply)) })
    }

    /// Takes a bio, which will have this number; its place in the history of a zone.
    fn accept(&mut self, number: u64, bio: &mut Bio) -> Result<Option<Spot>, BlockError> {
        bio.check(&self.caps)?;
        let zones = &mut self.cache.zones;
        match bio.op {
            Op::Read | Op::Flush | Op::ZoneReport => Ok(None),
            Op::Write => match zones.table().at(bio.lba) {
                Some(zone) => zones.write(zone, Some(bio.lba), number, bio).map(Some),
                None => Ok(None),
            },
            Op::ZoneAppend(zone) => zones.write(zone, None, number, bio).map(Some),
            Op::Zone(..) if bio.flags.has(Flags::FUA) || bio.flags.has(Flags::PREFLUSH) => {
                Err(BlockError::Unsupported("FUA and PREFLUSH on zone commands"))
            }
            Op::Zone(zone, action) => zones.act(zone, action, number, bio.flags),
            Op::Discard if zones.meets(sectors(bio, 0..bio.sectors)) => {
                Err(BlockError::Unsupported("discards in zones"))
            }
            Op::Discard => Ok(None),
            Op::FetchUpcall | Op::AwaitUpcall | Op::CompleteUpcall(_) => {
                Err(BlockError::Unsupported("upcalls"))
            }
        }
    }
}

/// The addresses of some of a bio's sectors.
fn sectors(bio: &Bio, piece: Range<u32>) -> Range<u64> {
    bio.lba.0 + u64::from(piece.start)..bio.lba.0 + u64::from(piece.end)
}

/// What a sector reads as now.
fn read(cache: &Cache, caps: &DeviceCaps, lba: u64) -> SectorData {
    match cache.current(lba) {
        Some(data) => data.clone(),
        None if caps.keeps_content => SectorData::Tag(Tag::ZERO),
        None => SectorData::Absent,
    }
}

/// Sectors of a write or discard land, or a zone command takes effect.
fn land(
    cache: &mut Cache,
    caps: &DeviceCaps,
    number: u64,
    in_flight: &InFlight,
    piece: Range<u32>,
) {
    let InFlight { bio, spot, .. } = in_flight;
    if let Some(spot) = spot {
        return cache.land_in_zone(spot, piece);
    }
    for (lba, index) in sectors(bio, piece.clone()).zip(piece) {
        let data = match bio.op {
            _ if !caps.keeps_content => SectorData::Absent,
            Op::Discard => SectorData::Tag(Tag::ZERO),
            _ => bio.payload.sector(index),
        };
        cache.land(lba, Version { write: number, landed: 0, flags: bio.flags, data });
    }
}

impl BlockDevice for AdversaryDevice {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, mut bio: Bio, token: Token) -> Submit {
        if self.off_at.is_some() {
            return Submit::Done(Done::new(now, Err(BlockError::PowerLost)));
        }
        let number = self.bios;
        let spot = match self.accept(number, &mut bio) {
            Ok(spot) => spot,
            Err(refused) => return Submit::Done(Done::new(now, Err(refused))),
        };
        self.bios += 1;
        let mut events = self.plan(now, number, &bio);
        let reads = bio.op == Op::Read && !bio.flags.has(Flags::NO_DATA);
        let taken = if reads { vec![SectorData::Absent; bio.sectors as usize] } else { Vec::new() };
        let (completed_before, is_flushed) =
            (self.cache.completions(), !bio.flags.has(Flags::PREFLUSH));
        let in_flight = InFlight { token, bio, completed_before, is_flushed, taken, spot };
        self.in_flight.insert(number, in_flight);
        self.flush_early();
        if events.iter().any(|event| event.at > now) {
            self.events.extend(events.into_iter().map(Reverse));
            return Submit::Pending;
        }
        // At once: the host has the answer when the call returns.
        let done = events.drain(..).find_map(|event| self.step(now, number, event.step));
        match done {
            Some(completion) if self.off_at.is_none() => Submit::Done(completion.done),
            _ => Submit::Done(Done::new(now, Err(BlockError::PowerLost))),
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.off_at.is_some() {
            return None;
        }
        self.events.peek().map(|Reverse(event)| event.at)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.next_event().is_some_and(|at| at <= now)
            && let Some(Reverse(Event { bio, step, .. })) = self.events.pop()
        {
            done.extend(self.step(now, bio, step));
        }
    }
}
