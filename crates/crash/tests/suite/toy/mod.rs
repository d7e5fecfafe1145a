//! A block device with a volatile cache and nothing else, small enough to be seen to be right, and
//! the ways in which it can be made wrong. The campaign's checker is checked against it.
//!
//! A cut loses any subset of what was not flushed: every sector keeps one of its cached versions,
//! or the durable one, each by its own throw.

use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Flags, Lba, Op, Payload, Reply,
    SectorData, Submit, Tag, Token,
};
use nandscape_crash::subject::{CommandCounts, DeviceUnderTest, Power, Recovery, TriggerMode};
use nandscape_rt::{Nanos, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

const SECTORS: u64 = 300;
const WRITE_NS: Nanos = Nanos(2_000);
const FLUSH_NS: Nanos = Nanos(300_000);
const RECOVERY_COMMANDS: u64 = 200;

/// How a toy is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Damage {
    /// Not at all.
    None,
    /// One flush in 16 forgets a sector.
    LosesCovered,
    /// FUA is treated as a plain write.
    IgnoresFua,
    /// PREFLUSH is treated as if it were absent.
    IgnoresPreflush,
    /// A read in operation sometimes returns what was there before.
    ReadsOlder,
    /// A sector that a cut catches between two versions keeps half of each.
    MixesSectors,
    /// A cut swaps two neighbours.
    SwapsSectors,
    /// Flushed discards are undone by a cut.
    ResurrectsTrims,
    /// What one cut lost, a later one brings back.
    RevivesVoid,
    /// A recovery that is cut loses sectors.
    FragileRecovery,
    /// A flush is never answered once the cache is large.
    LosesRequests,
    /// Not at all, but its media lose sectors, whose reads fail.
    OnlyLosesSectors,
    /// Sectors that media lost show zeroes.
    ZeroesLostSectors,
    /// Sectors that media lost show what was there before.
    RevertsLostSectors,
    /// Reads of sectors that media did not lose fail, too.
    FailsWithoutLoss,
}

impl Damage {
    /// Whether the toy's media lose sectors.
    pub(crate) fn loses_sectors(self) -> bool {
        matches!(
            self,
            Self::OnlyLosesSectors
                | Self::ZeroesLostSectors
                | Self::RevertsLostSectors
                | Self::FailsWithoutLoss
        )
    }
}

/// Contents of a sector, oldest first; the first is durable.
type Versions = Vec<SectorData>;

/// What survives.
#[derive(Debug)]
pub(crate) struct PoweredOffDevice {
    sectors: Vec<SectorData>,
    before_trim: BTreeMap<u64, SectorData>,
    lost: Vec<(u64, SectorData)>,
    unreadable: BTreeMap<u64, SectorData>,
    rng: Stream,
    damage: Damage,
}

#[derive(Debug)]
struct Waiting {
    token: Token,
    bio: Bio,
    /// Sectors whose contents of the time of submission must become durable first.
    covers: Vec<(u64, usize)>,
}

/// The device.
#[derive(Debug)]
pub(crate) struct Toy {
    caps: DeviceCaps,
    sectors: Vec<Versions>,
    dirty: BTreeSet<u64>,
    before_trim: BTreeMap<u64, SectorData>,
    lost: Vec<(u64, SectorData)>,
    /// What sectors held when media lost them.
    unreadable: BTreeMap<u64, SectorData>,
    waiting: BTreeMap<(Nanos, u64), Waiting>,
    ready_at: Nanos,
    commands: CommandCounts,
    commands_left: Option<u64>,
    off_at: Option<Nanos>,
    rng: Stream,
    damage: Damage,
}

impl Toy {
    pub(crate) fn new(seed: u64, damage: Damage) -> Self {
        let sectors = vec![SectorData::Tag(Tag::ZERO); SECTORS as usize];
        let rng = Stream::new(seed, "toy");
        let (before_trim, lost, unreadable) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let remains = PoweredOffDevice { sectors, before_trim, lost, unreadable, rng, damage };
        Self::boot(remains, Nanos::ZERO)
    }

    fn boot(remains: PoweredOffDevice, now: Nanos) -> Self {
        Self {
            caps: DeviceCaps { max_sectors: 64, ..DeviceCaps::conventional(SECTORS) },
            sectors: remains.sectors.into_iter().map(|s| vec![s]).collect(),
            dirty: BTreeSet::new(),
            before_trim: remains.before_trim,
            lost: remains.lost,
            unreadable: remains.unreadable,
            waiting: BTreeMap::new(),
            ready_at: now,
            commands: CommandCounts::default(),
            commands_left: None,
            off_at: None,
            rng: remains.rng,
            damage: remains.damage,
        }
    }

    fn put(&mut self, lba: Lba, sectors: u32, content: impl Fn(u32) -> SectorData) {
        for i in 0..sectors {
            let at = lba.0 + u64::from(i);
            self.sectors[at as usize].push(content(i));
            self.dirty.insert(at);
        }
    }

    /// What is cached now: each sector's number of versions.
    fn cached(&self) -> Vec<(u64, usize)> {
        self.dirty.iter().map(|at| (*at, self.sectors[*at as usize].len())).collect()
    }

    /// Makes the first `versions` of each sector durable, the last of them visible.
    fn destage(&mut self, cached: &[(u64, usize)]) {
        let forgotten = (self.damage == Damage::LosesCovered && self.rng.chance(1.0 / 16.0))
            .then(|| self.rng.below(cached.len().max(1) as u64) as usize);
        for (i, (at, versions)) in cached.iter().enumerate() {
            if Some(i) == forgotten {
                continue;
            }
            let kept = &mut self.sectors[*at as usize];
            // An earlier flush may have made some of them durable already.
            let overtaken = versions.saturating_sub(1).min(kept.len() - 1);
            self.before_trim.insert(*at, kept[0].clone());
            kept.drain(..overtaken);
            if self.damage.loses_sectors() && self.rng.chance(0.02) {
                self.unreadable.insert(*at, kept[0].clone());
            }
            if kept.len() == 1 {
                self.dirty.remove(at);
            }
        }
    }

    fn apply(&mut self, bio: &Bio) {
        match bio.op {
            Op::Write => self.put(bio.lba, bio.sectors, |i| bio.payload.sector(i)),
            Op::Discard => self.put(bio.lba, bio.sectors, |_| SectorData::Tag(Tag::ZERO)),
            _ => {}
        }
        if bio.flags.has(Flags::FUA) && self.damage != Damage::IgnoresFua {
            let own = bio.lba.0..bio.lba.0 + u64::from(bio.sectors);
            let own: Vec<_> =
                self.cached().into_iter().filter(|(at, _)| own.contains(at)).collect();
            self.destage(&own);
        }
    }

    fn read(&mut self, bio: &Bio) -> Result<Reply, BlockError> {
        let older = self.damage == Damage::ReadsOlder && self.rng.chance(0.02);
        let fails = self.damage == Damage::FailsWithoutLoss && self.rng.chance(0.02);
        let range = bio.lba.0..bio.lba.0 + u64::from(bio.sectors);
        if let Some(at) = range.clone().find(|at| fails || self.fails_at(*at)) {
            return Err(BlockError::Io { lba: Lba(at), what: "lost" });
        }
        let contents = range.map(|at| {
            let versions = &self.sectors[at as usize];
            let back = usize::from(older && versions.len() > 1);
            let content = versions[versions.len() - 1 - back].clone();
            let before = || self.before_trim.get(&at).cloned().unwrap_or(content.clone());
            match self.damage {
                Damage::ZeroesLostSectors if self.is_lost(at) => SectorData::Tag(Tag::ZERO),
                Damage::RevertsLostSectors if self.is_lost(at) => before(),
                _ => content,
            }
        });
        Ok(Reply::Data(Payload::collect(contents.collect())))
    }

    /// Whether media lost what a sector holds.
    fn is_lost(&self, at: u64) -> bool {
        self.unreadable.get(&at) == self.sectors[at as usize].last()
    }

    fn fails_at(&self, at: u64) -> bool {
        let hides = matches!(self.damage, Damage::ZeroesLostSectors | Damage::RevertsLostSectors);
        !hides && self.is_lost(at)
    }

    fn survivor(&mut self, at: usize) -> SectorData {
        let versions = self.sectors[at].clone();
        let kept = self.rng.below(versions.len() as u64) as usize;
        if let Some(newest) = versions.last().filter(|_| kept + 1 < versions.len()) {
            self.lost.push((at as u64, newest.clone()));
        }
        let mixes = self.damage == Damage::MixesSectors && kept > 0 && self.rng.chance(0.2);
        match versions[0].expand().filter(|_| mixes) {
            Some(half) => versions[kept].patched(0, &half[..2048]).expect("content is kept"),
            None => versions[kept].clone(),
        }
    }

    fn damage_remains(&mut self, sectors: &mut [SectorData]) {
        match self.damage {
            Damage::SwapsSectors => {
                let at = self.rng.below(SECTORS - 1) as usize;
                sectors.swap(at, at + 1);
            }
            Damage::ResurrectsTrims => {
                let zero = SectorData::Tag(Tag::ZERO);
                for (at, old) in std::mem::take(&mut self.before_trim) {
                    if sectors[at as usize] == zero && self.rng.chance(0.2) {
                        sectors[at as usize] = old;
                    }
                }
            }
            Damage::RevivesVoid if self.lost.len() > 50 => {
                let pick = self.rng.below(self.lost.len() as u64) as usize;
                let (at, content) = self.lost[pick].clone();
                sectors[at as usize] = content;
            }
            _ => {}
        }
    }

    fn is_off(&mut self, now: Nanos) -> bool {
        self.commands.programs += 1;
        match &mut self.commands_left {
            Some(0) => {
                self.off_at.get_or_insert(now);
            }
            Some(left) => *left -= 1,
            None => {}
        }
        self.off_at.is_some()
    }

    fn needs_time(&self, bio: &Bio) -> bool {
        let preflush = bio.flags.has(Flags::PREFLUSH) && self.damage != Damage::IgnoresPreflush;
        bio.op == Op::Flush || preflush || bio.flags.has(Flags::FUA)
    }
}

impl BlockDevice for Toy {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        if self.is_off(now) {
            return Submit::Done(Done::new(now, Err(BlockError::PowerLost)));
        }
        if bio.op == Op::Read {
            let result = self.read(&bio);
            return Submit::Done(Done::new(now + WRITE_NS, result));
        }
        if !self.needs_time(&bio) {
            self.apply(&bio);
            return Submit::Done(Done::ok(now + WRITE_NS));
        }
        let all = bio.op == Op::Flush || bio.flags.has(Flags::PREFLUSH);
        let all = all && (bio.op == Op::Flush || self.damage != Damage::IgnoresPreflush);
        let covers = if all { self.cached() } else { Vec::new() };
        let at = now + FLUSH_NS + Nanos(self.rng.below(FLUSH_NS.0));
        self.waiting.insert((at, token.0), Waiting { token, bio, covers });
        Submit::Pending
    }

    fn next_event(&self) -> Option<Nanos> {
        self.waiting.keys().next().map(|(at, _)| *at)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.next_event().is_some_and(|at| at <= now) {
            let Some((_, waiting)) = self.waiting.pop_first() else { return };
            let large = waiting.covers.len() > 100;
            // Counted by versions that a flush in between may have taken: it is harmless, as
            // those are durable, but never more than are cached.
            self.destage(&waiting.covers);
            self.apply(&waiting.bio);
            if !(large && self.damage == Damage::LosesRequests) {
                done.push(Completion { token: waiting.token, done: Done::ok(now) });
            }
        }
    }
}

impl DeviceUnderTest for Toy {
    type PoweredOff = PoweredOffDevice;

    fn watch(&mut self, watch: TriggerMode) {
        self.commands_left = match watch {
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
        self.commands
    }

    fn cut(mut self, _at: Nanos) -> PoweredOffDevice {
        let mut sectors: Vec<_> = (0..SECTORS as usize).map(|at| self.survivor(at)).collect();
        self.damage_remains(&mut sectors);
        let Self { before_trim, lost, unreadable, rng, damage, .. } = self;
        PoweredOffDevice { sectors, before_trim, lost, unreadable, rng, damage }
    }

    fn cut_remains(remains: &mut PoweredOffDevice, _at: Nanos) {
        if remains.damage == Damage::FragileRecovery {
            let at = remains.rng.below(SECTORS) as usize;
            remains.sectors[at] = SectorData::Bytes(Arc::new([1; 4096]));
        }
    }

    fn recover(remains: PoweredOffDevice, now: Nanos, off_after: Option<u64>) -> Recovery<Self> {
        match off_after {
            Some(n) if n < RECOVERY_COMMANDS => Recovery::CutAgain(remains, now + Nanos(n)),
            _ => Recovery::Up(Self::boot(remains, now + Nanos(RECOVERY_COMMANDS))),
        }
    }

    fn unreadable(&self, sectors: Range<u64>) -> Vec<(Lba, SectorData)> {
        let lost = self.unreadable.range(sectors);
        lost.map(|(&lba, data)| (Lba(lba), data.clone())).collect()
    }

    fn check_invariants(&self) -> Result<(), String> {
        Ok(())
    }
}
