//! `FakeDevice` under the campaign, and the ways in which it can be made wrong: zones whose pointers,
//! resets or generations a power cut spoils, and moves whose records, old addresses or copies are lost.
//!
//! A damage is a layer over a device that is right: some addresses show other content than the device
//! has, or a reply is another one.

use nandscape_block::zone::{ZoneInfo, ZoneLimits, ZoneState};
use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, FakeDevice, Lba, Op, Payload,
    Region, RegionKind, Reply, SectorData, Submit, Tag, Token,
};
use nandscape_crash::subject::{CommandCounts, DeviceUnderTest, Power, Recovery, TriggerMode};
use nandscape_rt::{Nanos, Stream};
use std::collections::{BTreeMap, BTreeSet};

const LATENCY: Nanos = Nanos(20_000);
const RECOVERY_COMMANDS: u64 = 100;
const ZERO: SectorData = SectorData::Tag(Tag::ZERO);

/// The zones of a zoned device, the first of them, and their number.
const FIRST_ZONE: u64 = 32;
const ZONES: u64 = 12;
/// The append-only region of a device that moves data, and that of the device.
const APPENDABLE: (u64, u64) = (1 << 20, (1 << 20) + 400);
const MOVED: (u64, u64) = (1 << 21, (1 << 21) + 400);
const ZONE: ZoneLimits = ZoneLimits {
    zone_sectors: 32,
    capacity: 24,
    max_open: 3,
    max_active: 5,
    append: true,
    write_sectors: 1,
};

/// What address space a device has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Space {
    /// Sectors written at random, then zones.
    Zoned,
    /// A sparse append-only space, larger than what may hold data.
    Append,
    /// Sectors written at random, an append-only region, and one in which the device moves its data.
    Coupled,
}

impl Space {
    fn caps(self) -> DeviceCaps {
        let region = |range, kind| Region::new(range, kind);
        let (sectors, live_sectors_max, regions) = match self {
            Self::Zoned => {
                let end = FIRST_ZONE + ZONE.zone_sectors * ZONES;
                let zones = region(FIRST_ZONE..end, RegionKind::Zones(ZONE));
                (end, 0, vec![region(0..FIRST_ZONE, RegionKind::Random), zones])
            }
            Self::Append => {
                let logs =
                    [1 << 30, 1 << 34].map(|start| region(start..start + 800, RegionKind::Append));
                ((1 << 34) + 800, 300, logs.to_vec())
            }
            Self::Coupled => {
                let moved = RegionKind::DeviceOwned { of: 1 };
                let regions = [
                    region(0..16, RegionKind::Random),
                    region(APPENDABLE.0..APPENDABLE.1, RegionKind::Append),
                    region(MOVED.0..MOVED.1, moved),
                ];
                (MOVED.1, 0, regions.to_vec())
            }
        };
        DeviceCaps {
            live_sectors_max,
            regions: regions.into(),
            raises_attention: self == Self::Coupled,
            ..DeviceCaps::conventional(sectors)
        }
    }

    fn device(self) -> FakeDevice {
        let device = FakeDevice::new(self.caps()).expect("regions of a device");
        let device = device.with_latency(LATENCY);
        if self == Self::Coupled { device.with_collector(5, 2) } else { device }
    }
}

/// How a device is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Damage {
    /// Not at all.
    None,
    /// A cut leaves a write pointer one sector too high.
    PointerTooHigh,
    /// A cut leaves a write pointer one sector too low, and the sector readable.
    PointerTooLow,
    /// A cut takes the last sector of a zone, covered or not.
    LosesLast,
    /// A cut brings a zone back as it was before its last reset.
    ForgetsReset,
    /// A cut brings back what lay above the write pointer before the last reset.
    MixesGenerations,
    /// The reply to an append names the sector after it.
    MisplacesAppends,
    /// Reports show write pointers that are one sector too low.
    ReportsLess,
    /// Discards are ignored.
    IgnoresDiscards,
    /// The addresses that data was moved from are dropped when the moves are fetched.
    ReclaimsEarly,
    /// A move takes what was at the address before the last write.
    MovesOlder,
    /// A move goes to an address in use.
    MovesOntoData,
    /// A cut loses the records of moves.
    LosesRecords,
    /// A batch may be completed twice.
    CompletesTwice,
    /// A batch that is completed twice is refused, but another one's old addresses are dropped.
    FreesAnother,
}

/// The device, and what survives of it.
pub(crate) struct Damaged {
    device: FakeDevice,
    damage: Damage,
    rng: Stream,
    /// What addresses show in place of what the device has.
    shown: BTreeMap<u64, SectorData>,
    /// Write pointers in reports, by zone's start.
    pointers: BTreeMap<u64, Lba>,
    /// What was at an address before it was discarded.
    before: BTreeMap<u64, SectorData>,
    /// Zones before their last reset, up to the write pointer.
    reset: BTreeMap<u64, Vec<SectorData>>,
    /// Batches that the host has fetched and not completed.
    fetched: BTreeSet<u64>,
    ready_at: Nanos,
    commands_left: Option<u64>,
    off_at: Option<Nanos>,
}

impl Damaged {
    pub(crate) fn new(seed: u64, space: Space, damage: Damage) -> Self {
        Self {
            device: space.device(),
            damage,
            rng: Stream::new(seed, "damaged"),
            shown: BTreeMap::new(),
            pointers: BTreeMap::new(),
            before: BTreeMap::new(),
            reset: BTreeMap::new(),
            fetched: BTreeSet::new(),
            ready_at: Nanos::ZERO,
            commands_left: None,
            off_at: None,
        }
    }

    /// Has the device serve something on the side.
    fn ask(&mut self, bio: Bio) -> Result<Reply, BlockError> {
        match self.device.submit(Nanos::ZERO, bio, Token(0)) {
            Submit::Done(done) => done.result,
            Submit::Pending => unreachable!("the device answers at once"),
        }
    }

    fn complete(&mut self, id: u64) -> bool {
        self.ask(Bio::new(Op::CompleteUpcall(id), Lba(0), 0)).is_ok()
    }

    /// Start of a zone, and its sectors with data.
    fn zone(&self, start: u64) -> u64 {
        let all = start..start + ZONE.capacity;
        all.take_while(|lba| self.device.current(Lba(*lba)) != ZERO).count() as u64
    }

    fn damage_zones(&mut self) {
        for start in (0..ZONES).map(|zone| FIRST_ZONE + ZONE.zone_sectors * zone) {
            let written = self.zone(start);
            let end = start + written;
            let partly = (1..ZONE.capacity).contains(&written);
            match self.damage {
                _ if self.rng.below(4) > 0 => {}
                Damage::PointerTooHigh if partly => {
                    self.pointers.insert(start, Lba(end + 1));
                }
                Damage::PointerTooLow if partly => {
                    self.pointers.insert(start, Lba(end - 1));
                }
                Damage::LosesLast if partly => {
                    self.pointers.insert(start, Lba(end - 1));
                    self.shown.insert(end - 1, ZERO);
                }
                Damage::ForgetsReset => self.revive(start, 0),
                Damage::MixesGenerations if partly => self.revive(start, written),
                _ => {}
            }
        }
    }

    /// Shows what a zone held before its reset, if that was more than this, from there on.
    fn revive(&mut self, start: u64, from: u64) {
        let old = self.reset.remove(&start).unwrap_or_default();
        if old.len() as u64 > from {
            self.pointers.insert(start, Lba(start + old.len() as u64));
            self.shown.extend((start..).zip(old).skip(from as usize));
        }
    }

    /// Looks at a bio that the device is to serve; the reply in place of the device's, if any.
    fn before(&mut self, bio: &Bio) -> Option<Result<Reply, BlockError>> {
        let range = bio.lba.0..bio.lba.0 + u64::from(bio.sectors);
        match bio.op {
            Op::Write => range.for_each(|at| drop(self.shown.remove(&at))),
            Op::Discard if self.damage == Damage::IgnoresDiscards => return Some(Ok(Reply::None)),
            Op::Discard => {
                let held = range.map(|at| (at, self.device.current(Lba(at))));
                let held: Vec<_> = held.filter(|(_, data)| *data != ZERO).collect();
                self.before.extend(held);
            }
            Op::Zone(..) => {
                let start = bio.lba.0;
                let all = start..start + self.zone(start);
                let data = all.map(|at| self.device.current(Lba(at))).collect();
                self.reset.insert(start, data);
                self.shown.retain(|at, _| !(start..start + ZONE.zone_sectors).contains(at));
                self.pointers.remove(&start);
            }
            Op::CompleteUpcall(id) => return self.on_complete(id),
            _ => {}
        }
        None
    }

    fn on_complete(&mut self, id: u64) -> Option<Result<Reply, BlockError>> {
        let first = self.fetched.remove(&id);
        match self.damage {
            Damage::CompletesTwice => Some(Ok(Reply::None)).filter(|_| !first),
            Damage::ReclaimsEarly | Damage::FreesAnother if first => {
                self.complete(id);
                Some(Ok(Reply::None))
            }
            Damage::FreesAnother => {
                let other = self.fetched.first().copied();
                if let Some(other) = other {
                    self.complete(other);
                }
                None
            }
            _ => None,
        }
    }

    /// Changes the device's reply.
    fn reply(&mut self, bio: &Bio, reply: Reply) -> Reply {
        match reply {
            Reply::Data(payload) => {
                let shown = |index: u32| {
                    let shown = self.shown.get(&(bio.lba.0 + u64::from(index))).cloned();
                    shown.unwrap_or_else(|| payload.sector(index))
                };
                Reply::Data(Payload::collect((0..bio.sectors).map(shown).collect()))
            }
            Reply::Appended(went) if self.damage == Damage::MisplacesAppends => {
                Reply::Appended(went.plus(1))
            }
            Reply::Zones(zones) => {
                Reply::Zones(zones.into_iter().map(|info| self.report(info)).collect())
            }
            Reply::Upcall(id, moves) => Reply::Upcall(id, self.on_fetch(id, moves)),
            other => other,
        }
    }

    fn report(&self, info: ZoneInfo) -> ZoneInfo {
        let shown = self.pointers.get(&info.start.0).copied().unwrap_or(info.write_pointer);
        let less = self.damage == Damage::ReportsLess && shown > info.start;
        let write_pointer = Lba(shown.0 - u64::from(less));
        let full = write_pointer.0 == info.start.0 + ZONE.capacity;
        let state = if full { info.state } else { ZoneState::Closed };
        ZoneInfo { write_pointer, state, ..info }
    }

    fn on_fetch(&mut self, id: u64, mut moves: Vec<(Lba, Lba)>) -> Vec<(Lba, Lba)> {
        self.fetched.insert(id);
        match self.damage {
            Damage::ReclaimsEarly => drop(self.complete(id)),
            Damage::MovesOlder => {
                for (old, new) in &moves {
                    let before = self.before.get(&old.0);
                    self.shown.extend(before.map(|data| (new.0, data.clone())));
                }
            }
            Damage::MovesOntoData => {
                let used = (APPENDABLE.0..)
                    .find(|lba| *lba != moves[0].0.0 && self.device.current(Lba(*lba)) != ZERO);
                moves[0].1 = Lba(used.unwrap_or(APPENDABLE.0));
            }
            _ => {}
        }
        moves
    }
}

impl BlockDevice for Damaged {
    fn caps(&self) -> &DeviceCaps {
        self.device.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        match &mut self.commands_left {
            Some(0) => self.off_at = self.off_at.or(Some(now)),
            Some(left) => *left -= 1,
            None => {}
        }
        if self.off_at.is_some() {
            return Submit::Done(Done::new(now, Err(BlockError::PowerLost)));
        }
        if let Some(result) = self.before(&bio) {
            return Submit::Done(Done::new(now + LATENCY, result));
        }
        match self.device.submit(now, bio.clone(), token) {
            Submit::Done(Done { at, result }) => {
                let result = result.map(|reply| self.reply(&bio, reply));
                Submit::Done(Done::new(at, result))
            }
            Submit::Pending => Submit::Pending,
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        self.device.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.device.advance(now, done);
    }
}

impl DeviceUnderTest for Damaged {
    type PoweredOff = Self;

    fn watch(&mut self, mode: TriggerMode) {
        self.commands_left = match mode {
            TriggerMode::OffAfter(n) => Some(n),
            TriggerMode::Nothing | TriggerMode::Notice(..) => None,
        };
    }

    fn power(&self) -> Power {
        self.off_at.map_or(Power::On, Power::Off)
    }

    fn ready_at(&self) -> Nanos {
        self.ready_at
    }

    fn commands(&self) -> CommandCounts {
        CommandCounts::default()
    }

    fn cut(mut self, _at: Nanos) -> Self {
        self.device.cut_power(&mut self.rng);
        self.fetched.clear();
        self.damage_zones();
        let fetch = Bio::new(Op::FetchUpcall, Lba(0), u32::MAX);
        while self.damage == Damage::LosesRecords
            && let Ok(Reply::Upcall(id, _)) = self.ask(fetch.clone())
        {
            self.complete(id);
        }
        Self { commands_left: None, off_at: None, ..self }
    }

    fn cut_remains(_remains: &mut Self, _at: Nanos) {}

    fn recover(remains: Self, now: Nanos, off_after: Option<u64>) -> Recovery<Self> {
        match off_after {
            Some(n) if n < RECOVERY_COMMANDS => Recovery::CutAgain(remains, now + Nanos(n)),
            _ => Recovery::Up(Self { ready_at: now + Nanos(RECOVERY_COMMANDS), ..remains }),
        }
    }

    fn check_invariants(&self) -> Result<(), String> {
        Ok(())
    }
}
