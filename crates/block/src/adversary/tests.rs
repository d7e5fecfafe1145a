//! The adversary against a small model that knows only what a host sees: when each bio was submitted and
//! when it completed. And the freedoms that it is to take: each is seen. What concerns zones is in
//! `tests/zones.rs`.

mod zones;

use super::{AdversaryDevice, CutStyle};
use crate::address::Lba;
use crate::bio::{Bio, Flags, FlushScope, Op, Owner};
use crate::caps::DeviceCaps;
use crate::device::{BlockDevice, Completion, Reply, Submit, Token};
use crate::payload::{Payload, SectorData};
use crate::tag::Tag;
use nandscape_rt::{Nanos, Stream};
use std::collections::BTreeSet;
use std::ops::Range;
use zones::{History, Zone};

/// Sectors that are written at random.
const SECTORS: u64 = 6;
/// Tags of a write: the number of the bio, and the sector within it.
const STRIDE: u64 = 16;

/// A bio as the host sees it. Instants are numbers of events, so that no two are the same.
#[derive(Clone, Debug)]
struct Seen {
    bio: Bio,
    submitted: u64,
    completed: Option<u64>,
    /// Its place in the history of a zone.
    history: Option<History>,
}

impl Seen {
    fn range(&self) -> Range<u64> {
        self.bio.lba.0..self.bio.lba.0 + u64::from(self.bio.sectors)
    }

    fn writes(&self, lba: u64) -> bool {
        let writes = matches!(self.bio.op, Op::Write | Op::Discard | Op::ZoneAppend(_));
        writes && self.range().contains(&lba)
    }

    /// Whether it had ended before the other one began.
    fn is_before(&self, other: &Self) -> bool {
        self.completed.is_some_and(|at| at < other.submitted)
    }

    fn flushes(&self) -> bool {
        self.bio.op == Op::Flush || self.bio.flags.has(Flags::PREFLUSH)
    }
}

/// How the device is made wrong: between it and the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Damage {
    None,
    IgnoresFua,
    IgnoresPreflush,
    IgnoresFlushes,
    LosesDiscards,
    AnswersBeforeLanding,
    RevivesLost,
    /// Power cuts leave a zone without a sector below the write pointer.
    LeavesGaps,
    /// Power cuts leave a zone without its last sector.
    LosesLast,
    /// Power cuts bring back what a zone showed after the last one.
    ForgetsResets,
    /// Power cuts bring back the rest of what a zone showed after the last one.
    MixesGenerations,
    /// Finished zones are found closed after power cuts.
    ForgetsFinishes,
}

impl Damage {
    fn spoil(self, bio: Bio) -> Bio {
        match self {
            Self::IgnoresFua => without(bio, Flags::FUA),
            Self::IgnoresPreflush => without(bio, Flags::PREFLUSH),
            Self::IgnoresFlushes if bio.op == Op::Flush => Bio::read(Lba(0), 1),
            Self::LosesDiscards if bio.op == Op::Discard => Bio::read(bio.lba, bio.sectors),
            _ => bio,
        }
    }
}

fn without(bio: Bio, flag: Flags) -> Bio {
    let flags = [Flags::FUA, Flags::PREFLUSH, Flags::JOURNAL];
    let kept = flags.into_iter().filter(|other| *other != flag && bio.flags.has(*other));
    let flags = kept.fold(Flags::NONE, |all, flag| all | flag);
    Bio { flags, ..bio }
}

/// A host that drives the device and remembers what it saw.
struct Host {
    device: AdversaryDevice,
    damage: Damage,
    now: Nanos,
    events: u64,
    bios: Vec<Seen>,
    /// Bios before the last power cut, and what each sector showed after it.
    shown: (usize, Vec<Option<usize>>),
    cuts: Vec<CutStyle>,
    zones: Vec<Zone>,
}

impl Host {
    fn new(seed: u64, damage: Damage) -> Self {
        let caps = DeviceCaps { scoped_flush: true, ..DeviceCaps::conventional(SECTORS) };
        Self::of(AdversaryDevice::with_caps(caps, Stream::new(seed, "adversary")), damage)
    }

    fn of(device: AdversaryDevice, damage: Damage) -> Self {
        Self {
            zones: device.zones().map(Zone::new).collect(),
            device,
            damage,
            now: Nanos::ZERO,
            events: 0,
            bios: Vec::new(),
            shown: (0, vec![None; SECTORS as usize]),
            cuts: Vec::new(),
        }
    }

    fn submit(&mut self, bio: Bio) -> Result<usize, String> {
        let number = self.bios.len();
        let payload = match bio.op {
            Op::Write | Op::ZoneAppend(_) => Payload::Run(Tag::new((number as u64 + 1) * STRIDE)),
            _ => Payload::None,
        };
        let bio = Bio { payload, ..bio };
        self.events += 1;
        let history = self.follow(&bio);
        let seen = Seen { bio: bio.clone(), submitted: self.events, completed: None, history };
        self.bios.push(seen);
        let early = self.damage == Damage::AnswersBeforeLanding && bio.op == Op::Write;
        let submitted = self.device.submit(self.now, self.damage.spoil(bio), Token(number as u64));
        if early {
            self.complete(number, Ok(Reply::None))?;
        } else if let Submit::Done(done) = submitted {
            self.complete(number, done.result)?;
        }
        Ok(number)
    }

    /// Lets time pass up to an instant.
    fn pass(&mut self, until: Nanos) -> Result<(), String> {
        while let Some(at) = self.device.next_event().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            let mut done = Vec::new();
            self.device.advance(self.now, &mut done);
            for Completion { token, done } in done {
                self.complete(token.0 as usize, done.result)?;
            }
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn complete(
        &mut self,
        number: usize,
        result: Result<Reply, crate::error::BlockError>,
    ) -> Result<(), String> {
        let reply = result.map_err(|error| error.to_string())?;
        if self.bios[number].completed.is_some() {
            return Ok(());
        }
        self.events += 1;
        self.bios[number].completed = Some(self.events);
        let data = match reply {
            Reply::Appended(went) if went != self.bios[number].bio.lba => {
                return Err(format!("append {number} went to {went}"));
            }
            Reply::Zones(infos) => return self.check_report(number, &infos),
            Reply::Data(data) => data,
            _ => return Ok(()),
        };
        if self.bios[number].bio.op != Op::Read {
            return Ok(());
        }
        for (lba, index) in self.bios[number].range().zip(0..) {
            match self.zone_at(lba) {
                Some(zone) => self.check_zone_read(number, zone, lba, &data.sector(index))?,
                None => self.check_read(number, lba, &data.sector(index))?,
            }
        }
        Ok(())
    }

    /// The bio whose content a sector shows; none of zeroes that no discard made.
    fn writer(&self, lba: u64, content: &SectorData) -> Option<usize> {
        let SectorData::Tag(tag) = content else { return None };
        let number = (tag.bits() / STRIDE).checked_sub(1)? as usize;
        assert!(self.bios[number].writes(lba), "lba {lba} shows data of another: {tag:?}");
        assert_eq!(tag.bits() % STRIDE, lba - self.bios[number].bio.lba.0);
        Some(number)
    }

    /// The bios that a sector may show for this content; `None`: as after the last cut.
    fn candidates(&self, lba: u64, content: &SectorData) -> Vec<Option<usize>> {
        let (first, shown) = &self.shown;
        match self.writer(lba, content) {
            Some(number) if number >= *first => vec![Some(number)],
            before if before == shown[lba as usize] => {
                let discards = |number: &usize| {
                    let bio = &self.bios[*number];
                    before.is_none() && bio.bio.op == Op::Discard && bio.writes(lba)
                };
                let discards = (*first..self.bios.len()).filter(discards);
                discards.map(Some).chain([None]).collect()
            }
            None => {
                let discards = |number: &usize| {
                    self.bios[*number].bio.op == Op::Discard && self.bios[*number].writes(lba)
                };
                (*first..self.bios.len()).filter(discards).map(Some).collect()
            }
            Some(_) => Vec::new(),
        }
    }

    /// Whether `older` (none: what the last cut left) had ended before this one began.
    fn supersedes(&self, newer: usize, older: Option<usize>) -> bool {
        older.is_none_or(|older| self.bios[older].is_before(&self.bios[newer]))
    }

    fn later_writes(&self, lba: u64) -> impl Iterator<Item = usize> + '_ {
        (self.shown.0..self.bios.len()).filter(move |number| self.bios[*number].writes(lba))
    }

    fn check_read(&self, read: usize, lba: u64, content: &SectorData) -> Result<(), String> {
        let fits = |shown: &Option<usize>| {
            self.later_writes(lba).all(|newer| {
                !self.bios[newer].is_before(&self.bios[read]) || !self.supersedes(newer, *shown)
            })
        };
        match self.candidates(lba, content).iter().any(fits) {
            true => Ok(()),
            false => Err(format!("bio {read} reads {content:?} at {lba}")),
        }
    }

    /// The first event at which a write was covered, by what had completed by then.
    fn is_covered(&self, write: usize, surviving: &BTreeSet<usize>) -> bool {
        let this = &self.bios[write];
        if this.completed.is_none() {
            return false;
        }
        let fua = this.bio.flags.has(Flags::FUA);
        fua || (self.shown.0..self.bios.len()).any(|number| {
            let other = &self.bios[number];
            let took_effect = other.completed.is_some() || surviving.contains(&number);
            let all = other.bio.scope == FlushScope::All || other.bio.owner.is_none();
            let in_scope = all || other.bio.owner == this.bio.owner;
            other.flushes() && took_effect && in_scope && this.is_before(other)
        })
    }

    /// Power fails; what is left must be permitted.
    fn cut(&mut self, rng: &mut Stream) -> Result<(), String> {
        self.cuts.push(self.device.cut_power());
        let mut contents: Vec<_> = (0..SECTORS).map(|lba| self.device.current(Lba(lba))).collect();
        if self.damage == Damage::RevivesLost && self.cuts.len() > 1 {
            let lost = self.later_writes(0).find(|number| self.bios[*number].bio.op == Op::Write);
            let old = lost.map(|number| (number as u64 + 1) * STRIDE - self.bios[number].bio.lba.0);
            if let Some(tag) = old.filter(|_| rng.chance(0.5)) {
                contents[0] = SectorData::Tag(Tag::new(tag));
            }
        }
        let shown: Vec<_> =
            (0..SECTORS).map(|lba| self.writer(lba, &contents[lba as usize])).collect();
        let zones = self.zones_after_cut(rng);
        let in_zones = zones.iter().flat_map(|(_, shown)| shown);
        let surviving: BTreeSet<usize> = shown.iter().chain(in_zones).flatten().copied().collect();
        for (lba, content) in (0..SECTORS).zip(&contents) {
            let fits = |shown: &Option<usize>| {
                self.later_writes(lba).all(|newer| {
                    !self.is_covered(newer, &surviving) || !self.supersedes(newer, *shown)
                })
            };
            if !self.candidates(lba, content).iter().any(fits) {
                return Err(format!("after a cut {:?}: {content:?} at {lba}", self.cuts.last()));
            }
        }
        self.check_zones(&zones, &surviving)?;
        self.shown = (self.bios.len(), shown);
        Ok(())
    }
}

fn draw_bio(rng: &mut Stream) -> Bio {
    let sectors = 1 + rng.below(4);
    let (lba, sectors) = (Lba(rng.below(SECTORS - sectors + 1)), sectors as u32);
    let flag = |rng: &mut Stream, flag| if rng.chance(0.2) { flag } else { Flags::NONE };
    let file = rng.below(2);
    let owner = Owner { file, generation: 0, thread: 0, core: 0 };
    let owner = rng.chance(0.5).then_some(owner);
    let scope = if rng.chance(0.3) { FlushScope::Owner } else { FlushScope::All };
    let bio = match rng.below(10) {
        0..=5 => {
            let flags = flag(rng, Flags::FUA) | flag(rng, Flags::PREFLUSH);
            Bio::write(lba, sectors, Payload::None).with(flags | flag(rng, Flags::JOURNAL))
        }
        6 => Bio::discard(lba, sectors),
        7 => Bio::flush(),
        _ => Bio::read(lba, sectors),
    };
    Bio { owner, scope, ..bio }
}

/// A load with some power cuts.
fn run(seed: u64, damage: Damage) -> Result<Host, String> {
    drive(Host::new(seed, damage), seed, |_, rng| Some(draw_bio(rng)))
}

/// The same, of bios that are drawn like this.
fn drive(
    mut host: Host,
    seed: u64,
    draw: impl Fn(&Host, &mut Stream) -> Option<Bio>,
) -> Result<Host, String> {
    let rng = &mut Stream::new(seed, "host");
    let gap = [1, 20_000, 200_000, 10_000_000][rng.below(4) as usize];
    for _ in 0..4 {
        for _ in 0..10 + rng.below(60) {
            if let Some(bio) = draw(&host, rng) {
                host.submit(bio)?;
            }
            let pause = if rng.chance(0.3) { 0 } else { rng.below(gap) };
            host.pass(host.now + Nanos(pause))?;
        }
        if rng.chance(0.3) {
            host.pass(Nanos(host.now.0 + 1_000_000_000))?;
        }
        host.cut(rng)?;
    }
    Ok(host)
}

/// Whatever it does, reads and power cuts show what the model permits; and over the seeds every style of
/// cut is seen.
#[test]
fn it_keeps_every_promise() {
    let mut styles = Vec::new();
    for seed in 0..4_000 {
        match run(seed, Damage::None) {
            Ok(host) => styles.extend(host.cuts),
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    assert!(CutStyle::ALL.iter().all(|style| styles.contains(style)), "a style is never drawn");
}

/// The model notices a device that breaks a promise, so the test above is not blind.
#[test]
fn broken_promises_are_noticed() {
    let damages = [
        Damage::IgnoresFua,
        Damage::IgnoresPreflush,
        Damage::IgnoresFlushes,
        Damage::LosesDiscards,
        Damage::AnswersBeforeLanding,
        Damage::RevivesLost,
    ];
    for damage in damages {
        let caught = (0..400).filter(|seed| run(*seed, damage).is_err()).count();
        assert!(caught > 4, "{damage:?} was noticed in {caught} of 400 seeds");
    }
}

/// Two seeds of the same number do the same.
#[test]
fn a_seed_decides_all() {
    for seed in 0..20 {
        let [first, again] = [0, 1].map(|_| run(seed, Damage::None).unwrap());
        let history = |host: &Host| format!("{:?}{:?}{:?}", host.bios, host.cuts, host.shown);
        assert_eq!(history(&first), history(&again));
    }
}

fn write(lba: u64, sectors: u32) -> Bio {
    Bio::write(Lba(lba), sectors, Payload::None)
}

/// How many of some seeds end in what `look` says, after bios submitted at one instant, a while, and a cut.
fn count(scene: impl Fn(&mut Host) -> bool) -> usize {
    (0..1_000).filter(|seed| scene(&mut Host::new(*seed, Damage::None))).count()
}

const LONG: Nanos = Nanos(10_000_000_000);

/// What a sector is after a cut: the number of its bio.
fn left(host: &mut Host, lba: u64) -> Option<usize> {
    host.device.cut_power();
    host.writer(lba, &host.device.current(Lba(lba)))
}

/// A flush says nothing of a write that was in flight when it was submitted, though both complete.
#[test]
fn a_flush_covers_nothing_in_flight() {
    let lost = count(|host| {
        host.submit(write(0, 1)).unwrap();
        let in_flight = host.bios[0].completed.is_none();
        host.submit(Bio::flush()).unwrap();
        host.pass(LONG).unwrap();
        assert!(host.bios.iter().all(|bio| bio.completed.is_some()));
        in_flight && left(host, 0).is_none()
    });
    assert!(lost > 100, "{lost}");
}

/// Completions come in another order than submissions; overlapping writes end in either order, and their
/// sectors each in its own.
#[test]
fn nothing_in_flight_is_ordered() {
    let [swapped, first_wins, mixed] = [0, 1, 2].map(|which| {
        count(|host| {
            host.submit(write(0, 2)).unwrap();
            host.submit(write(0, 2)).unwrap();
            host.pass(LONG).unwrap();
            let now = |lba| host.writer(lba, &host.device.current(Lba(lba)));
            let winners = [now(0), now(1)];
            match which {
                0 => host.bios[1].completed < host.bios[0].completed,
                1 => winners == [Some(0); 2],
                _ => winners[0] != winners[1],
            }
        })
    });
    assert!(swapped > 100 && first_wins > 100 && mixed > 20, "{swapped} {first_wins} {mixed}");
}

/// What was in flight, or completed without a flush, may survive in part, and FUA saves nothing but itself.
#[test]
fn cuts_keep_parts() {
    let in_part = count(|host| {
        host.submit(write(0, 4)).unwrap();
        let in_flight = host.bios[0].completed.is_none();
        host.device.cut_power();
        let kept =
            (0..4).filter(|lba| host.writer(*lba, &host.device.current(Lba(*lba))).is_some());
        in_flight && (1..4).contains(&kept.count())
    });
    let alone = count(|host| {
        host.submit(write(0, 1)).unwrap();
        host.pass(LONG).unwrap();
        host.submit(write(1, 1).with(Flags::FUA)).unwrap();
        host.pass(LONG + LONG).unwrap();
        let second = left(host, 1);
        assert_eq!(second, Some(1));
        host.writer(0, &host.device.current(Lba(0))).is_none()
    });
    let payload_lost = count(|host| {
        host.submit(write(0, 1)).unwrap();
        host.pass(LONG).unwrap();
        host.submit(write(1, 1).with(Flags::PREFLUSH)).unwrap();
        host.pass(LONG + LONG).unwrap();
        let second = left(host, 1);
        assert_eq!(host.writer(0, &host.device.current(Lba(0))), Some(0));
        second.is_none()
    });
    let parts = [in_part, alone, payload_lost];
    assert!(parts.iter().all(|count| *count > 50), "{parts:?}");
}

/// Power goes off behind so many steps, and everything answered from then on is void.
#[test]
fn power_goes_off_behind_a_step() {
    for seed in 0..50 {
        let mut host = Host::new(seed, Damage::None);
        host.device.switch_off_after(Some(2));
        for lba in 0..4 {
            let _ = host.submit(write(lba, 1));
        }
        let _ = host.pass(LONG);
        assert!(host.device.off_at().is_some());
        assert_eq!((host.device.steps().landings, host.device.next_event()), (2, None));
        let refused = host.device.submit(host.now, Bio::flush(), Token(9));
        assert!(matches!(refused, Submit::Done(done) if done.result.is_err()));
        host.device.cut_power();
        assert!(host.device.off_at().is_none());
        host.device.submit(host.now, write(0, 1).with(Flags::NONE), Token(10));
    }
}
