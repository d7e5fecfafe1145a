//! A host of zones: it writes at write pointers, appends where the device serves that, and resets whole
//! zones. Addresses outside of zones that may be written at random are written so.
//!
//! An object is an address. Beyond what the model knows of each object, a zone that power was cut on
//! - holds data up to its write pointer, and zeroes from there on;
//! - holds data of one generation, that is written between the same two resets, but for resets that a cut lost.
//!
//! A reset is covered like a discard: a cut may lose it, with all that was written after it until the cut. A zone takes neither a write while another is in flight whose
//! place that decides (an append), nor while a reset is. Zones are not finished, and media that refuse
//! writes (read-only zones) are left alone.

use super::{HostView, Phase, Requests, window_of};
use crate::device::model::{Mismatch, Object, tag_of, written_by};
use crate::draw::load::{LoadSource, Next};
use crate::draw::plan::Plan;
use crate::request::{Request, Sender};
use crate::shrink::keep::Keep;
use nandscape_block::zone::{ZoneId, ZoneInfo, ZoneState, ZoneStatus};
use nandscape_block::{DeviceCaps, Flags, Lba, RegionKind, Reply, SectorData, Tag};
use nandscape_rt::Stream;
use std::collections::BTreeMap;
use std::ops::Range;

/// What the host knows of a zone.
#[derive(Debug)]
struct Zone {
    id: ZoneId,
    start: u64,
    capacity: u64,
    /// Whether the device serves appends.
    append: bool,
    /// Sectors before the next write.
    written: u64,
    /// Writes in flight.
    writes: u32,
    /// An append or a reset is in flight.
    exclusive: bool,
    /// A reset is, or was when power was cut and nothing is known of it since.
    resetting: bool,
    /// The media failed: it is written no more.
    failed: bool,
    resets: Vec<Reset>,
}

/// A reset that a zone took.
#[derive(Debug)]
struct Reset {
    /// Its number among the requests.
    number: u64,
    /// The last request before the power cut that may have lost it; none before that cut.
    until: Option<u64>,
}

impl Zone {
    fn range(&self) -> Range<u64> {
        self.start..self.start + self.capacity
    }

    fn is_idle(&self) -> bool {
        self.writes == 0 && !self.exclusive
    }

    /// Whether it may be active. One of which a write was refused need not be where the host has it.
    fn is_active(&self) -> bool {
        self.failed || self.written > 0 && self.written < self.capacity
    }

    /// Whether a zone that shows one content cannot show the other: a reset was between them, and the
    /// newer one would not be there without it.
    fn are_apart(&self, one: Tag, other: Tag) -> bool {
        let [one, other] = [one, other].map(|content| written_by(content).0);
        let (older, newer) = (one.min(other), one.max(other));
        let from = self.resets.partition_point(|reset| reset.number <= older);
        let between = self.resets[from..].iter().take_while(|reset| reset.number < newer);
        between.into_iter().any(|reset| reset.until.is_none_or(|until| newer <= until))
    }

    /// The rules of a zone that was not written since power came back; `before` is the content of the last
    /// sector before this one that was seen.
    fn check(&self, at: u64, data: &SectorData, before: Option<Tag>) -> Result<(), String> {
        let tag = tag_of(data);
        let empty = tag == Some(Tag::ZERO);
        match at < self.written {
            true if empty => Err("zeroes below the write pointer".into()),
            false if !empty => Err("data above the write pointer".into()),
            true if before.zip(tag).is_some_and(|(one, other)| self.are_apart(one, other)) => {
                Err("data of another generation than the sector before it".into())
            }
            _ => Ok(()),
        }
    }
}

/// The host; see the head of this file.
pub(crate) struct Zoned<'a> {
    plan: &'a Plan,
    sectors: u64,
    /// Sectors that may be written at random.
    random: Vec<Range<u64>>,
    zones: Vec<Zone>,
    /// Zones that may be written and not full; 0: any number.
    active_max: usize,
    /// What the length of a write to a zone is a multiple of.
    granule: u64,
    window: u32,
    scan_window: u32,
    /// The number of the last request.
    last_sent: u64,
    phase: Phase,
    requests: Requests<'a>,
    load_rng: Stream,
    scan_rng: Stream,
    rng: Stream,
}

impl<'a> Zoned<'a> {
    pub(crate) fn new(seed: u64, plan: &'a Plan, caps: &DeviceCaps) -> Self {
        let zones = (0..).map_while(|id| Some((ZoneId(id), caps.zone(ZoneId(id))?)));
        let zones = zones.map(|(id, (start, limits))| Zone {
            id,
            start: start.0,
            capacity: limits.capacity,
            append: limits.append,
            written: 0,
            writes: 0,
            exclusive: false,
            resetting: false,
            failed: false,
            resets: Vec::new(),
        });
        let active = caps.zone_limits().map(|limits| limits.max_active as usize);
        let granule = caps.zone_limits().map(|limits| limits.write_sectors).max().unwrap_or(1);
        let random = caps.regions().filter(|region| region.kind == RegionKind::Random);
        let window = window_of(caps).next_multiple_of(granule);
        Self {
            plan,
            sectors: caps.sectors,
            random: random.map(|region| region.range).collect(),
            zones: zones.collect(),
            active_max: active.filter(|most| *most > 0).min().unwrap_or(0),
            granule: granule.into(),
            window,
            scan_window: if plan.unreadable { 1 } else { window },
            last_sent: 0,
            phase: Phase::Fill,
            requests: Requests::listed(Vec::new()),
            load_rng: Stream::new(seed, "load"),
            scan_rng: Stream::new(seed, "scan"),
            rng: Stream::new(seed, "zones"),
        }
    }

    /// Every sector that a request may go to, in order.
    fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.random.iter().cloned().chain(self.zones.iter().map(Zone::range))
    }

    /// Ranges cut into requests of at most `window` sectors.
    fn pieces(ranges: impl Iterator<Item = Range<u64>>, window: u32) -> Vec<(Lba, u32)> {
        let window = u64::from(window);
        let cut = |range: Range<u64>| {
            let end = range.end;
            range
                .step_by(window as usize)
                .map(move |first| (Lba(first), window.min(end - first) as u32))
        };
        ranges.flat_map(cut).collect()
    }

    /// Fills zones in order, as many as may be active and then those that become full.
    fn fill(&self, keep: Keep) -> Requests<'a> {
        let percent = u64::from(self.plan.load.fill_percent.min(100));
        let zones = self.zones.len() as u64 * percent / 100;
        let (mut number, mut writes) = (0, Vec::new());
        for zone in &self.zones[..zones as usize] {
            // What is left goes to the write pointer.
            let mut at = Lba(zone.start);
            for (_, sectors) in Self::pieces([zone.range()].into_iter(), self.window) {
                number += 1;
                if keep.has(number) {
                    writes.push(Request::Write(at, sectors, Flags::NONE, Sender::ANONYMOUS));
                    at = at.plus(sectors.into());
                }
            }
        }
        Requests::filling(writes, keep)
    }

    fn inspect(&mut self) -> Vec<Request> {
        let percent = u64::from(self.plan.scan_percent);
        let ranges: Vec<_> = self.ranges().collect();
        let seen =
            ranges.into_iter().filter(|_| percent >= 100 || self.scan_rng.below(100) < percent);
        let reads = Self::pieces(seen, self.scan_window).into_iter();
        let reads = reads.map(|(lba, sectors)| Request::Read(lba, sectors));
        [self.report()].into_iter().chain(reads).collect()
    }

    fn finish(&self) -> Vec<Request> {
        let reads = Self::pieces(self.ranges(), self.scan_window).into_iter();
        let reads = reads.map(|(lba, sectors)| Request::Read(lba, sectors));
        [Request::Flush(Sender::ANONYMOUS), self.report()].into_iter().chain(reads).collect()
    }

    fn report(&self) -> Request {
        let first = self.zones.first().map_or(0, |zone| zone.start);
        Request::Report(Lba(first), self.zones.len() as u32)
    }

    /// The zone of an address; of one beyond a zone's capacity, that zone.
    fn zone_at(&self, lba: u64) -> Option<usize> {
        self.zones.partition_point(|zone| zone.start <= lba).checked_sub(1)
    }

    fn zone_of(&mut self, lba: Lba) -> Option<&mut Zone> {
        let index = self.zone_at(lba.0)?;
        self.zones.get_mut(index).filter(|zone| zone.range().contains(&lba.0))
    }

    fn random_at(&self, lba: u64) -> Option<&Range<u64>> {
        self.random.iter().find(|range| range.contains(&lba))
    }

    /// What a request of the load is on this address space, if anything.
    fn translate(&mut self, request: Request) -> Option<Request> {
        let clip = |range: &Range<u64>, lba: Lba, sectors: u32| {
            (range.end - lba.0).min(u64::from(sectors)) as u32
        };
        match request {
            Request::Read(lba, sectors) => {
                let range = self.ranges().find(|range| range.contains(&lba.0))?;
                Some(Request::Read(lba, clip(&range, lba, sectors)))
            }
            Request::Write(lba, sectors, flags, sender) => match self.random_at(lba.0) {
                Some(range) => Some(Request::Write(lba, clip(range, lba, sectors), flags, sender)),
                None => self.write(lba, sectors, flags, sender),
            },
            Request::Discard(lba, sectors) => match self.random_at(lba.0) {
                Some(range) => Some(Request::Discard(lba, clip(range, lba, sectors))),
                None => {
                    let zone = self.zone_at(lba.0)?;
                    self.rng.chance(0.3).then(|| self.reset(zone)).flatten()
                }
            },
            other => Some(other),
        }
    }

    /// A write in place of one at any address: of the zone there, or of one that is active already.
    fn write(&mut self, lba: Lba, sectors: u32, flags: Flags, sender: Sender) -> Option<Request> {
        let mut index = self.zone_at(lba.0)?;
        let active = |zone: &&Zone| zone.is_active();
        let at_limit =
            self.active_max > 0 && self.zones.iter().filter(active).count() >= self.active_max;
        if at_limit && self.zones[index].written == 0 {
            index = self.zones.iter().position(|zone| zone.is_active() && !zone.failed)?;
        }
        let zone = &self.zones[index];
        if zone.written == zone.capacity {
            return self.reset(index);
        }
        if zone.exclusive || zone.failed {
            return None;
        }
        let at = Lba(zone.start + zone.written);
        let whole = u64::from(sectors).next_multiple_of(self.granule);
        let sectors = whole.min(zone.capacity - zone.written) as u32;
        let appends = zone.append && zone.is_idle() && self.rng.chance(0.3);
        Some(match appends {
            true => Request::Append(zone.id, at, sectors, flags, sender),
            false => Request::Write(at, sectors, flags, sender),
        })
    }

    fn reset(&self, index: usize) -> Option<Request> {
        let zone = &self.zones[index];
        let due = zone.written > 0 && zone.is_idle() && !zone.failed;
        due.then_some(Request::Reset(zone.id, Lba(zone.start), zone.capacity as u32))
    }

    /// Takes write pointers from a report: after a power cut they are news, later they are not.
    fn learn(&mut self, infos: &[ZoneInfo]) -> Result<(), String> {
        if infos.len() != self.zones.len() {
            return Err(format!("a report of {} zones, not of all", infos.len()));
        }
        for (zone, info) in self.zones.iter_mut().zip(infos) {
            let written = info.write_pointer.0.wrapping_sub(zone.start);
            let written = if info.state == ZoneState::Full { zone.capacity } else { written };
            if info.start.0 != zone.start || written > zone.capacity {
                return Err(format!("zone report: impossible values: {}", described(info)));
            }
            let has_failed = info.state.is_failed();
            let is_known = !zone.failed && !has_failed;
            if self.phase == Phase::Finish && written != zone.written && is_known {
                let host = zone.start + zone.written;
                return Err(format!(
                    "zone report: expected write pointer {host}: {}",
                    described(info)
                ));
            }
            // A reset that power was cut on may be lost: what the zone holds is of the generation before it.
            if self.phase == Phase::Inspect && std::mem::take(&mut zone.resetting) && written > 0 {
                zone.resets.pop();
            }
            zone.failed = has_failed;
            zone.written = written;
        }
        Ok(())
    }
}

/// What a report says of a zone.
fn described(info: &ZoneInfo) -> String {
    let ZoneInfo { start, capacity, write_pointer, state } = info;
    let (start, pointer, state) = (start.0, write_pointer.0, state.name());
    format!("zone at lba {start}, capacity {capacity}, write pointer {pointer}, {state}")
}

impl HostView for Zoned<'_> {
    fn begin(&mut self, phase: Phase, keep: Keep) {
        self.phase = phase;
        self.requests = match phase {
            Phase::Fill => self.fill(keep),
            Phase::Load => Requests::Drawn(LoadSource::new(&self.plan.load, self.sectors, keep)),
            Phase::Inspect => Requests::listed(self.inspect()),
            Phase::Finish => Requests::listed(self.finish()),
        };
    }

    fn requests(&self) -> &Requests<'_> {
        &self.requests
    }

    fn load_rng(&mut self) -> &mut Stream {
        &mut self.load_rng
    }

    fn next(&mut self) -> Next {
        loop {
            match self.requests.next(&mut self.load_rng) {
                Next::Submit(request) if self.phase == Phase::Load => {
                    if let Some(request) = self.translate(request) {
                        return Next::Submit(request);
                    }
                }
                next => return next,
            }
        }
    }

    fn object(&self, lba: Lba) -> Object {
        Object(lba.0)
    }

    fn address(&self, object: Object) -> Lba {
        Lba(object.0)
    }

    fn sent(&mut self, request: &Request, number: u64) {
        self.last_sent = number;
        match *request {
            Request::Write(lba, sectors, ..) => {
                if let Some(zone) = self.zone_of(lba) {
                    zone.writes += 1;
                    zone.written += u64::from(sectors);
                }
            }
            Request::Append(_, lba, sectors, ..) => {
                if let Some(zone) = self.zone_of(lba) {
                    zone.exclusive = true;
                    zone.written += u64::from(sectors);
                }
            }
            Request::Reset(_, lba, _) => {
                if let Some(zone) = self.zone_of(lba) {
                    zone.exclusive = true;
                    zone.resetting = true;
                    zone.written = 0;
                    zone.resets.push(Reset { number, until: None });
                }
            }
            _ => {}
        }
    }

    fn ended(&mut self, request: &Request, reply: Option<&Reply>) -> Result<(), String> {
        match (*request, reply) {
            (Request::Write(lba, ..), reply) => {
                if let Some(zone) = self.zone_of(lba) {
                    zone.writes = zone.writes.saturating_sub(1);
                    zone.failed |= reply.is_none();
                }
                Ok(())
            }
            (Request::Append(_, lba, ..) | Request::Reset(_, lba, _), reply) => {
                if let Some(zone) = self.zone_of(lba) {
                    zone.exclusive = false;
                    zone.resetting = false;
                    zone.failed |= reply.is_none();
                }
                match reply {
                    Some(Reply::Appended(went)) if *went != lba => {
                        Err(format!("an append to {lba} went to {went}"))
                    }
                    _ => Ok(()),
                }
            }
            (Request::Report(..), Some(Reply::Zones(infos))) => self.learn(infos),
            (Request::Report(..), _) => Err("a report without zones".into()),
            _ => Ok(()),
        }
    }

    /// A zone that media failed is read-only: it is not written and not reset. A write that was refused moves the
    /// write pointer back, so that its zone may be active where the host has it full; and the completion of another
    /// write to the zone may come first.
    fn may_refuse(&self, request: &Request, status: ZoneStatus) -> bool {
        let others_fail = |lba: u64| {
            let of = self.zone_at(lba).map(|index| &self.zones[index]);
            of.is_some_and(|zone| zone.failed || zone.writes > 1)
        };
        match (*request, status) {
            (_, ZoneStatus::ReadOnly) => true,
            (Request::Reset(..), ZoneStatus::InvalidTransition) => true,
            (Request::Write(lba, ..), ZoneStatus::NotAtWritePointer) => others_fail(lba.0),
            (_, ZoneStatus::TooManyActive) => self.zones.iter().any(|zone| zone.failed),
            _ => false,
        }
    }

    fn power_cut(&mut self) {
        for zone in &mut self.zones {
            (zone.writes, zone.exclusive) = (0, false);
            let new = zone.resets.iter_mut().rev().take_while(|reset| reset.until.is_none());
            new.for_each(|reset| reset.until = Some(self.last_sent));
        }
    }

    fn check_recovered(&self, seen: &[(Object, SectorData)]) -> Result<(), Mismatch> {
        let seen: BTreeMap<u64, &SectorData> =
            seen.iter().map(|(object, data)| (object.0, data)).collect();
        for zone in &self.zones {
            let mut before = None;
            for (lba, data) in seen.range(zone.range()) {
                zone.check(lba - zone.start, data, before).map_err(|got| Mismatch {
                    object: Object(*lba),
                    got,
                    expected: vec![format!("{} sectors of one generation", zone.written)],
                })?;
                before = tag_of(data).or(before);
            }
        }
        Ok(())
    }
}
