//! Zones of the adversary against the model of a host that keeps to their rules: it writes at write pointers,
//! in order, and knows what each zone took between two resets, a *generation*.

use super::{Damage, Host, LONG, SECTORS, Seen, draw_bio, drive, write};
use crate::address::Lba;
use crate::adversary::{AdversaryDevice, CutStyle};
use crate::bio::{Bio, Flags, Op};
use crate::caps::DeviceCaps;
use crate::device::BlockDevice;
use crate::payload::SectorData;
use crate::region::{Region, RegionError, RegionKind};
use crate::zone::{ZoneAction, ZoneId, ZoneInfo, ZoneLimits, ZoneState};
use nandscape_rt::Stream;
use std::collections::BTreeSet;
use std::ops::Range;

const ZONES: u64 = 4;
const LIMITS: ZoneLimits = ZoneLimits {
    zone_sectors: 8,
    capacity: 6,
    max_open: 2,
    max_active: 2,
    append: true,
    write_sectors: 1,
};
const CAPACITY: u64 = LIMITS.capacity;

/// The place of a bio in the history of a zone.
#[derive(Clone, Debug)]
pub(super) struct History {
    zone: usize,
    /// The generation that it belongs to, or that it begins.
    generation: usize,
    /// What it writes, in sectors of the zone.
    sectors: Range<u64>,
    finishes: bool,
}

/// What the host knows of a zone.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    start: u64,
    /// Generations since the last power cut. The first is what that left: sectors with the data of these
    /// bios, and whether it was finished.
    first: usize,
    kept: Vec<usize>,
    kept_finish: bool,
    last: usize,
    written: u64,
    is_finished: bool,
}

impl Zone {
    pub(super) fn new(info: &ZoneInfo) -> Self {
        let start = info.start.0;
        let (kept, kept_finish, is_finished) = (Vec::new(), false, false);
        Self { start, first: 0, kept, kept_finish, last: 0, written: 0, is_finished }
    }

    fn is_active(&self) -> bool {
        !self.is_finished && (1..CAPACITY).contains(&self.written)
    }

    fn is_full(&self) -> bool {
        self.is_finished || self.written == CAPACITY
    }
}

/// What a zone is after a power cut, and the bios whose data it shows.
type Left = (ZoneInfo, Vec<Option<usize>>);

impl Host {
    fn zoned(seed: u64, damage: Damage) -> Self {
        Self::limited(seed, damage, LIMITS)
    }

    fn limited(seed: u64, damage: Damage, limits: ZoneLimits) -> Self {
        let caps = caps(RegionKind::Random, RegionKind::Zones(limits));
        let device = AdversaryDevice::with_zones(caps, Stream::new(seed, "adversary")).unwrap();
        Self::of(device, damage)
    }

    pub(super) fn zone_at(&self, lba: u64) -> Option<usize> {
        let inside = |zone: &Zone| (zone.start..zone.start + LIMITS.zone_sectors).contains(&lba);
        self.zones.iter().position(inside)
    }

    /// Does to the host's zones what a bio does, and says where in their history it is.
    pub(super) fn follow(&mut self, bio: &Bio) -> Option<History> {
        let (index, action) = match bio.op {
            Op::Zone(zone, action) => (zone.0 as usize, Some(action)),
            Op::ZoneAppend(zone) => (zone.0 as usize, None),
            Op::Write => (self.zone_at(bio.lba.0)?, None),
            _ => return None,
        };
        let zone = &mut self.zones[index];
        let from = zone.written;
        match action {
            Some(ZoneAction::Open | ZoneAction::Close) => return None,
            Some(ZoneAction::Finish) => zone.is_finished = true,
            Some(ZoneAction::Reset) => {
                (zone.last, zone.written, zone.is_finished) = (zone.last + 1, 0, false);
            }
            None => zone.written += u64::from(bio.sectors),
        }
        let sectors = if action.is_some() { 0..0 } else { from..zone.written };
        let finishes = action == Some(ZoneAction::Finish);
        Some(History { zone: index, generation: zone.last, sectors, finishes })
    }

    /// What a zone took since the last power cut, in order.
    fn history(&self, zone: usize) -> impl Iterator<Item = (usize, &Seen, &History)> {
        let bios = self.bios.iter().enumerate().skip(self.shown.0);
        let bios = bios.filter_map(|(number, seen)| Some((number, seen, seen.history.as_ref()?)));
        bios.filter(move |(_, _, history)| history.zone == zone)
    }

    /// The generation that a zone's sector is of, if it shows what a bio wrote.
    fn generation(&self, zone: &Zone, at: u64, writer: usize) -> Option<usize> {
        if writer < self.shown.0 {
            return (zone.kept.get(at as usize) == Some(&writer)).then_some(zone.first);
        }
        self.bios[writer].history.as_ref().map(|history| history.generation)
    }

    /// A sector shows what was written in some generation that may be the one that a read sees.
    pub(super) fn check_zone_read(
        &self,
        read: usize,
        index: usize,
        lba: u64,
        content: &SectorData,
    ) -> Result<(), String> {
        let (zone, read) = (&self.zones[index], &self.bios[read]);
        let at = lba - zone.start;
        let ended = || self.history(index).filter(|(_, seen, _)| seen.is_before(read));
        let newest = ended().map(|(.., history)| history.generation).max().unwrap_or(zone.first);
        let writer = self.writer(lba, content);
        let fits = (newest..=zone.last).any(|generation| match writer {
            Some(writer) => self.generation(zone, at, writer) == Some(generation),
            None => {
                let is_kept = generation == zone.first && at < zone.kept.len() as u64;
                !is_kept
                    && ended().all(|(.., history)| {
                        history.generation != generation || !history.sectors.contains(&at)
                    })
            }
        });
        if fits { Ok(()) } else { Err(format!("a read shows {content:?} at {lba} of {zone:?}")) }
    }

    /// A report shows what the host knows of each zone that took nothing meanwhile.
    pub(super) fn check_report(&self, report: usize, infos: &[ZoneInfo]) -> Result<(), String> {
        for (index, (zone, info)) in self.zones.iter().zip(infos).enumerate() {
            let meanwhile = self.history(index).any(|(number, ..)| number > report);
            let is_full = info.state == ZoneState::Full;
            if !meanwhile && (info.written(), is_full) != (zone.written, zone.is_full()) {
                return Err(format!("a report shows {info:?}, not {zone:?}"));
            }
        }
        if infos.len() as u64 == ZONES { Ok(()) } else { Err("zones are missing".to_owned()) }
    }

    /// What a power cut left of the zones.
    pub(super) fn zones_after_cut(&self, rng: &mut Stream) -> Vec<Left> {
        let infos = self.device.zones().copied().enumerate();
        let left = infos.map(|(index, info)| {
            let sectors = (0..CAPACITY).map(|at| {
                let lba = info.start.plus(at);
                self.writer(lba.0, &self.device.current(lba))
            });
            let left = (info, sectors.collect());
            if rng.chance(0.7) { left } else { self.spoil_zone(index, left) }
        });
        if self.zones.is_empty() { Vec::new() } else { left.collect() }
    }

    /// A power cut that is wrong.
    fn spoil_zone(&self, index: usize, (mut info, mut shown): Left) -> Left {
        let written = info.written() as usize;
        let zone = &self.zones[index];
        let kept = zone.kept.len();
        let refill = |info: &mut ZoneInfo, sectors: usize| {
            info.write_pointer = info.start.plus(sectors as u64);
            let is_full = info.write_pointer == info.end();
            info.state = if is_full { ZoneState::Full } else { ZoneState::Closed };
        };
        match self.damage {
            Damage::LeavesGaps if written > 1 => shown[0] = None,
            Damage::LosesLast if written > 1 => {
                shown[written - 1] = None;
                refill(&mut info, written - 1);
            }
            Damage::ForgetsResets if kept > 0 => {
                shown.fill(None);
                shown.iter_mut().zip(&zone.kept).for_each(|(shown, old)| *shown = Some(*old));
                refill(&mut info, kept);
            }
            Damage::MixesGenerations if kept > written => {
                let rest = shown.iter_mut().zip(&zone.kept).skip(written);
                rest.for_each(|(shown, old)| *shown = Some(*old));
                refill(&mut info, kept);
            }
            Damage::ForgetsFinishes if info.state == ZoneState::Full => {
                info.state = ZoneState::Closed;
            }
            _ => {}
        }
        (info, shown)
    }

    /// What is left of the zones must be permitted; from here on it is what the host knows.
    pub(super) fn check_zones(
        &mut self,
        zones: &[Left],
        surviving: &BTreeSet<usize>,
    ) -> Result<(), String> {
        let active = zones.iter().filter(|(info, _)| info.state.is_active()).count();
        if !zones.is_empty() && active > LIMITS.max_active as usize {
            return Err(format!("{active} zones are active"));
        }
        for (index, (info, shown)) in zones.iter().enumerate() {
            let zone = &self.zones[index];
            let written = info.written() as usize;
            let generations: BTreeSet<_> = (0..)
                .zip(&shown[..written])
                .map(|(at, writer)| self.generation(zone, at, (*writer)?))
                .collect();
            let is_prefix = shown[written..].iter().all(Option::is_none);
            let fits = match generations.first() {
                None => (zone.first..=zone.last)
                    .any(|generation| self.may_be_left(index, info, generation, surviving)),
                Some(Some(generation)) if generations.len() == 1 => {
                    self.may_be_left(index, info, *generation, surviving)
                }
                Some(_) => false,
            };
            if !fits || !is_prefix {
                let style = self.cuts.last();
                return Err(format!("after a cut {style:?}: {info:?} with {shown:?} of {zone:?}"));
            }
        }
        for (zone, (info, shown)) in self.zones.iter_mut().zip(zones) {
            let is_finished = info.state == ZoneState::Full && info.written() < CAPACITY;
            zone.last += 1;
            (zone.first, zone.kept_finish) = (zone.last, is_finished);
            zone.kept = shown.iter().flatten().copied().collect();
            (zone.written, zone.is_finished) = (info.written(), is_finished);
        }
        Ok(())
    }

    /// Whether a cut may leave a zone like this in a generation.
    fn may_be_left(
        &self,
        index: usize,
        info: &ZoneInfo,
        generation: usize,
        surviving: &BTreeSet<usize>,
    ) -> bool {
        let (zone, written) = (&self.zones[index], info.written());
        let is_full = info.state == ZoneState::Full;
        let is_first = generation == zone.first;
        let same = || self.history(index).filter(move |(.., bio)| bio.generation == generation);
        let is_finished = same().any(|(.., bio)| bio.finishes) || is_first && zone.kept_finish;
        let covered =
            self.history(index).filter(|(number, ..)| self.is_covered(*number, surviving));
        let is_kept = covered.into_iter().all(|(.., bio)| {
            let before = bio.generation < generation;
            let within = bio.generation == generation && bio.sectors.end <= written;
            before || within && (is_full || !bio.finishes)
        });
        let state = match (written, is_full) {
            (CAPACITY, full) => full,
            (_, true) => is_finished,
            (0, false) => info.state == ZoneState::Empty,
            (_, false) => info.state == ZoneState::Closed,
        };
        let is_base_kept =
            !is_first || written >= zone.kept.len() as u64 && (is_full || !zone.kept_finish);
        is_kept && is_base_kept && state && (is_first || generation > zone.first)
    }
}

fn caps(first: RegionKind, second: RegionKind) -> DeviceCaps {
    let end = SECTORS + ZONES * LIMITS.zone_sectors;
    let regions = [Region::new(0..SECTORS, first), Region::new(SECTORS..end, second)];
    DeviceCaps { scoped_flush: true, regions: regions.into(), ..DeviceCaps::conventional(end) }
}

const fn start(zone: u32) -> Lba {
    Lba(SECTORS + zone as u64 * LIMITS.zone_sectors)
}

fn command(zone: u32, action: ZoneAction) -> Bio {
    Bio::new(Op::Zone(ZoneId(zone), action), start(zone), 0)
}

/// A bio that keeps to the rules of the zones, if the one that was drawn can be turned into one.
fn draw_zoned(host: &Host, rng: &mut Stream) -> Option<Bio> {
    let bio = draw_bio(rng);
    let id = rng.below(ZONES) as u32;
    let zone = &host.zones[id as usize];
    let active = host.zones.iter().filter(|zone| zone.is_active()).count();
    match bio.op {
        Op::Write if rng.chance(0.8) => {
            let left = CAPACITY - zone.written;
            let at_limit = active >= LIMITS.max_active as usize;
            if zone.is_full() || !zone.is_active() && at_limit {
                return rng.chance(0.3).then(|| command(id, ZoneAction::Reset));
            }
            let op = if rng.chance(0.3) { Op::ZoneAppend(ZoneId(id)) } else { Op::Write };
            let (lba, sectors) = (Lba(zone.start + zone.written), bio.sectors.min(left as u32));
            Some(Bio { op, lba, sectors, ..bio })
        }
        Op::Discard if rng.chance(0.8) => Some(match rng.below(6) {
            0 => Bio::new(Op::ZoneReport, Lba(0), ZONES as u32),
            1 if zone.is_active() => command(id, ZoneAction::Open),
            2 if zone.is_active() => command(id, ZoneAction::Close),
            3 => command(id, ZoneAction::Finish),
            _ => command(id, ZoneAction::Reset),
        }),
        Op::Read => Some(Bio { lba: Lba(rng.below(host.device.caps.sectors - 4)), ..bio }),
        _ => Some(bio),
    }
}

fn run_zoned(seed: u64, damage: Damage) -> Result<Host, String> {
    drive(Host::zoned(seed, damage), seed, draw_zoned)
}

/// Whatever zones do, reads, reports and power cuts show what the model permits, in every style of cut.
#[test]
fn zones_keep_every_promise() {
    let mut styles = Vec::new();
    for seed in 0..6_000 {
        match run_zoned(seed, Damage::None) {
            Ok(host) => styles.extend(host.cuts),
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    assert!(CutStyle::ALL.iter().all(|style| styles.contains(style)), "a style is never drawn");
}

/// The model notices a device that breaks a promise, also one about zones.
#[test]
fn broken_promises_of_zones_are_noticed() {
    let damages = [
        Damage::IgnoresFua,
        Damage::IgnoresPreflush,
        Damage::IgnoresFlushes,
        Damage::AnswersBeforeLanding,
        Damage::LeavesGaps,
        Damage::LosesLast,
        Damage::ForgetsResets,
        Damage::MixesGenerations,
        Damage::ForgetsFinishes,
    ];
    for damage in damages {
        let caught = (0..400).filter(|seed| run_zoned(*seed, damage).is_err()).count();
        assert!(caught > 4, "{damage:?} was noticed in {caught} of 400 seeds");
    }
}

/// Two seeds of the same number do the same.
#[test]
fn a_seed_decides_all_of_zones() {
    for seed in 0..20 {
        let [first, again] = [0, 1].map(|_| run_zoned(seed, Damage::None).unwrap());
        let history = |host: &Host| format!("{:?}{:?}{:?}", host.bios, host.cuts, host.zones);
        assert_eq!(history(&first), history(&again));
    }
}

/// How many of some seeds end in what `look` says.
fn count(scene: impl Fn(&mut Host) -> bool) -> usize {
    (0..1_000).filter(|seed| scene(&mut Host::zoned(*seed, Damage::None))).count()
}

/// Submits bios that each wait for the one before.
fn in_turn(host: &mut Host, bios: impl IntoIterator<Item = Bio>) {
    for bio in bios {
        host.submit(bio).unwrap();
        host.pass(host.now + LONG).unwrap();
    }
}

fn write_at(zone: u32, from: u64, sectors: u32) -> Bio {
    write(start(zone).plus(from).0, sectors)
}

/// The bios whose data a zone shows.
fn shown(host: &Host, zone: u32) -> Vec<Option<usize>> {
    let lbas = (0..CAPACITY).map(|at| start(zone).plus(at));
    lbas.map(|lba| host.writer(lba.0, &host.device.current(lba))).collect()
}

fn zone(host: &Host, zone: usize) -> ZoneInfo {
    *host.device.zones().nth(zone).unwrap()
}

/// A reset that completed may be lost without a flush, and the zone is then as it was; with a flush, or with a
/// later write that survives, it has happened.
#[test]
fn cuts_lose_resets() {
    let reset = || command(0, ZoneAction::Reset);
    let old = [Some(0), Some(0), Some(0), None, None, None];
    let lost = count(|host| {
        in_turn(host, [write_at(0, 0, 3), Bio::flush(), reset()]);
        host.device.cut_power();
        let is_old = shown(host, 0) == old;
        assert_eq!(is_old, zone(host, 0).state == ZoneState::Closed);
        is_old
    });
    let rewritten = [None, Some(3)].map(|first| {
        count(|host| {
            in_turn(host, [write_at(0, 0, 3), Bio::flush(), reset(), write_at(0, 0, 1)]);
            host.device.cut_power();
            let now = shown(host, 0);
            now[0] == first && now[1..].iter().all(Option::is_none) || first.is_none() && now == old
        })
    });
    let covered = count(|host| {
        in_turn(host, [write_at(0, 0, 3), Bio::flush(), reset(), Bio::flush()]);
        host.device.cut_power();
        zone(host, 0).state == ZoneState::Empty
    });
    assert!(lost > 300 && rewritten.iter().all(|count| *count > 300), "{lost} {rewritten:?}");
    assert_eq!((rewritten.iter().sum::<usize>(), covered), (1_000, 1_000));
}

/// A finish may be lost as well, and may survive although data before it do not.
#[test]
fn cuts_lose_finishes() {
    let finish = || command(0, ZoneAction::Finish);
    let [lost, alone, covered] = [0, 1, 2].map(|which| {
        count(|host| {
            in_turn(host, [write_at(0, 0, 3), finish()]);
            if which == 2 {
                in_turn(host, [Bio::flush()]);
            }
            host.device.cut_power();
            let ZoneInfo { state, .. } = zone(host, 0);
            match which {
                0 => state != ZoneState::Full,
                1 => state == ZoneState::Full && shown(host, 0)[0].is_none(),
                _ => state == ZoneState::Full && shown(host, 0)[2].is_some(),
            }
        })
    });
    assert!(lost > 300 && alone > 20, "{lost} {alone}");
    assert_eq!(covered, 1_000);
}

/// Writes that are in flight land in any order, and a read sees zeroes where one has not landed.
#[test]
fn writes_to_a_zone_land_in_any_order() {
    let seen = count(|host| {
        (0..6).for_each(|at| drop(host.submit(write_at(0, at, 1))));
        let mut holes = false;
        while let Some(at) = host.device.next_event() {
            host.pass(at).unwrap();
            holes |= shown(host, 0).windows(2).any(|pair| pair[0].is_none() && pair[1].is_some());
        }
        holes
    });
    assert!(seen > 300, "{seen}");
}

/// A zone takes writes while its reset is in flight: reads see the old data until one of both takes
/// effect, and never a mixture.
#[test]
fn zones_are_written_while_their_reset_is_in_flight() {
    let [old_first, together] = [0, 1].map(|which| {
        count(|host| {
            in_turn(host, [write_at(0, 0, 6)]);
            host.submit(command(0, ZoneAction::Reset)).unwrap();
            host.submit(write_at(0, 0, 1)).unwrap();
            let before = shown(host, 0) == [Some(0); 6];
            let mut emptied = false;
            while let Some(at) = host.device.next_event() {
                host.pass(at).unwrap();
                let now = shown(host, 0);
                emptied |= now == [None; 6];
                assert!(now == [Some(0); 6] || now[1..] == [None; 5], "{now:?}");
            }
            assert_eq!(shown(host, 0)[0], Some(2));
            before && (which == 0 || !emptied)
        })
    });
    assert!(old_first > 300 && together > 100, "{old_first} {together}");
}

/// FUA makes durable what the zone took before, also what is in flight and waits for its flush: that takes
/// effect first, so what it covers is durable as well.
#[test]
fn fua_covers_what_a_zone_took_before() {
    let in_flight = count(|host| {
        in_turn(host, [write_at(1, 0, 2)]);
        host.submit(write_at(0, 0, 2).with(Flags::PREFLUSH)).unwrap();
        let fua = host.submit(write_at(0, 2, 1).with(Flags::FUA)).unwrap();
        while let Some(at) = host.device.next_event().filter(|_| host.bios[fua].completed.is_none())
        {
            host.pass(at).unwrap();
        }
        let in_flight = host.bios[1].completed.is_none();
        host.device.cut_power();
        assert_eq!(shown(host, 0)[..3], [Some(1), Some(1), Some(2)]);
        assert_eq!(shown(host, 1)[..2], [Some(0), Some(0)]);
        in_flight
    });
    assert!(in_flight > 100, "{in_flight}");
}

/// A cut ends a zone at any sector from the covered one on, within a write as well; and one zone alone
/// may keep what all were written.
#[test]
fn cuts_keep_any_prefix() {
    let mut ends = BTreeSet::new();
    let alone = count(|host| {
        let first = [write_at(0, 0, 1), write_at(1, 0, 1), Bio::flush()];
        in_turn(host, first.into_iter().chain([write_at(0, 1, 4), write_at(1, 1, 4)]));
        host.device.cut_power();
        let written = [0, 1].map(|index| zone(host, index).written());
        written.contains(&1) && written.contains(&5)
    });
    for seed in 0..1_000 {
        let host = &mut Host::zoned(seed, Damage::None);
        in_turn(host, [write_at(0, 0, 1), Bio::flush(), write_at(0, 1, 4)]);
        host.device.cut_power();
        ends.insert(zone(host, 0).written());
    }
    assert!(alone > 200, "{alone}");
    assert_eq!(ends, (1..6).collect());
}

/// A device that writes pairs of sectors is left at one.
#[test]
fn cuts_keep_whole_units() {
    for seed in 0..400 {
        let limits = ZoneLimits { write_sectors: 2, ..LIMITS };
        let host = &mut Host::limited(seed, Damage::None, limits);
        in_turn(host, [write_at(0, 0, 4)]);
        host.device.cut_power();
        assert_eq!(zone(host, 0).written() % 2, 0);
    }
}

/// A lost finish or reset leaves no more zones active than may be.
#[test]
fn cuts_keep_the_limit_of_active_zones() {
    let lost = count(|host| {
        in_turn(host, [write_at(0, 0, 1), write_at(1, 0, 1), Bio::flush()]);
        in_turn(host, [command(0, ZoneAction::Finish), command(1, ZoneAction::Reset)]);
        in_turn(host, [write_at(2, 0, 1), write_at(3, 0, 1).with(Flags::FUA)]);
        host.device.cut_power();
        let states: Vec<_> = host.device.zones().map(|zone| zone.state).collect();
        assert!(states.iter().filter(|state| state.is_active()).count() <= 2, "{states:?}");
        assert_eq!(states[3], ZoneState::Closed);
        states[1] == ZoneState::Closed
    });
    assert!(lost > 100, "{lost}");
}

/// What zones do not take is refused with the reason, and so are regions that the device does not have.
#[test]
fn broken_rules_are_refused() {
    let host = &mut Host::zoned(0, Damage::None);
    let refused = |host: &mut Host, bio| host.submit(bio).unwrap_err();
    assert!(refused(host, write_at(0, 1, 1)).contains("Zone Invalid Write"));
    assert!(refused(host, Bio::discard(start(0), 1)).contains("discards in zones"));
    let flushing = command(0, ZoneAction::Reset).with(Flags::PREFLUSH);
    assert!(refused(host, flushing).contains("FUA and PREFLUSH on zone commands"));
    let append = RegionKind::Append;
    let device =
        |first| AdversaryDevice::with_zones(caps(first, append), Stream::new(0, "adversary"));
    assert_eq!(device(RegionKind::Random).err(), Some(RegionError::Kind { index: 1 }));
}
