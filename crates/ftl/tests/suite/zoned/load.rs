//! Random commands on a zoned SSD beside the model, with many in flight.

use crate::zoned::driver::Driver;
use crate::zoned::model::{Cover, Model};
use nandscape_block::zone::{ZoneAction, ZoneId, ZoneState, ZoneStatus};
use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, Done, Flags, Lba, Op, Payload, Reply, SectorData,
    Submit, Tag, Token,
};
use nandscape_ftl::Ftl;
use nandscape_rt::Stream;
use std::collections::BTreeMap;

/// A command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    /// So far ahead of the write pointer, which is where it must be.
    Write {
        zone: u32,
        ahead: i64,
        sectors: u32,
        flags: Flags,
    },
    Append {
        zone: u32,
        sectors: u32,
    },
    Act {
        zone: u32,
        action: ZoneAction,
    },
    Read {
        zone: u32,
        at: u64,
        sectors: u32,
    },
    Random {
        at: u64,
        sectors: u32,
        flags: Flags,
    },
    Report,
    Flush,
    /// Goes on to the next event, so often.
    Step(u32),
    /// Cuts power, after so much of the time until everything is done.
    Cut {
        percent: u64,
    },
}

/// What was submitted.
#[derive(Clone, Debug)]
enum Sent {
    Write { zone: usize, generation: usize, end: u64, fua: bool, cover: Cover, append: Option<Lba> },
    Reset { zone: usize, generation: usize },
    Finish { zone: usize, generation: usize },
    Flush(Cover),
    Random { at: u64, tags: Vec<u64>, cover: Cover },
    State,
}

/// The device and the model.
pub(crate) struct Load {
    pub(crate) driver: Driver,
    pub(crate) model: Model,
    first: u64,
    distance: u64,
    sent: BTreeMap<u64, Sent>,
    tags: u64,
    tokens: u64,
    /// Media fail: zones may become read-only.
    pub(crate) faults: bool,
}

impl Load {
    pub(crate) fn new(driver: Driver) -> Self {
        let caps = driver.ftl.caps().clone();
        let zones = (0..).map_while(|zone| caps.zone(ZoneId(zone))).collect::<Vec<_>>();
        let (first, limits) = zones[0];
        let model = Model::new(
            zones.len(),
            limits.capacity,
            (limits.max_open, limits.max_active),
            limits.write_sectors.into(),
        );
        Self {
            driver,
            model,
            first: first.0,
            distance: limits.zone_sectors,
            sent: BTreeMap::new(),
            tags: 1,
            tokens: 1,
            faults: false,
        }
    }

    fn start(&self, zone: u32) -> u64 {
        self.first + u64::from(zone) * self.distance
    }

    fn tags(&mut self, sectors: u32) -> Vec<u64> {
        let first = self.tags;
        self.tags += u64::from(sectors);
        (first..self.tags).collect()
    }

    /// Carries out a command on both.
    pub(crate) fn run(mut self, command: Command) -> Result<Self, String> {
        match command {
            Command::Write { zone, ahead, sectors, flags } => {
                let at = self.model.written(zone as usize).saturating_add_signed(ahead);
                self.write(zone, at, sectors, flags, false)?;
            }
            Command::Append { zone, sectors } => {
                let at = self.model.written(zone as usize);
                self.write(zone, at, sectors, Flags::NONE, true)?;
            }
            Command::Act { zone, action } => self.act(zone, action)?,
            Command::Read { zone, at, sectors } => self.read(zone, at, sectors)?,
            Command::Random { at, sectors, flags } => self.write_random(at, sectors, flags)?,
            Command::Report => self.report()?,
            Command::Flush => {
                let cover = self.model.cover();
                self.send(Bio::flush(), Sent::Flush(cover))?;
            }
            Command::Step(count) => {
                for _ in 0..count {
                    self.step()?;
                }
            }
            Command::Cut { percent } => return self.cut(percent),
        }
        self.driver.ftl.check_invariants()?;
        Ok(self)
    }

    fn send(&mut self, bio: Bio, sent: Sent) -> Result<(), String> {
        let token = self.tokens;
        self.tokens += 1;
        match self.driver.ftl.submit(self.driver.now, bio, Token(token)) {
            Submit::Pending => {
                self.sent.insert(token, sent);
                Ok(())
            }
            Submit::Done(done) => self.ended(sent, done),
        }
    }

    /// A command that was not refused ended.
    fn ended(&mut self, sent: Sent, done: Done) -> Result<(), String> {
        let reply = match done.result {
            Ok(reply) => reply,
            Err(_) if self.faults => return Ok(()),
            Err(error) => return Err(format!("{sent:?} failed: {error}")),
        };
        match sent {
            Sent::Write { zone, generation, end, fua, mut cover, append } => {
                let expected = append.map_or(Reply::None, Reply::Appended);
                if reply != expected {
                    return Err(format!("{reply:?} and not {expected:?}"));
                }
                self.model.acked(zone, generation, end);
                if fua {
                    cover[zone] = (generation, end, false);
                }
                self.model.covered(&cover);
            }
            Sent::Reset { zone, generation } => self.model.reset_completed(zone, generation),
            Sent::Finish { zone, generation } => self.model.finish_completed(zone, generation),
            Sent::Flush(cover) => self.model.covered(&cover),
            Sent::Random { at, tags, cover } => {
                self.model.covered(&cover);
                if self.read_tags(Lba(at), tags.len() as u32)? != tags {
                    return Err(format!("{at}: not what was written at random"));
                }
            }
            Sent::State => {}
        }
        Ok(())
    }

    fn write(
        &mut self,
        zone: u32,
        at: u64,
        sectors: u32,
        flags: Flags,
        append: bool,
    ) -> Result<(), String> {
        if at >= self.distance {
            // That is the next zone.
            return Ok(());
        }
        let tags = self.tags(sectors);
        let payload = Payload::Run(Tag::new(tags[0]));
        let lba = Lba(self.start(zone) + at);
        let op = if append { Op::ZoneAppend(ZoneId(zone)) } else { Op::Write };
        let target = if append { Lba(0) } else { lba };
        let bio = Bio { payload, ..Bio::new(op, target, sectors) }.with(flags);
        let (cover, end) = (self.before(flags), at + u64::from(sectors));
        let expected = self.refused(zone, |model| model.write(zone as usize, at, &tags));
        let generation = self.model.generation(zone as usize);
        let fua = flags.has(Flags::FUA);
        let append = append.then_some(lba);
        self.expect(
            bio,
            expected,
            Sent::Write { zone: zone as usize, generation, end, fua, cover, append },
        )
    }

    fn act(&mut self, zone: u32, action: ZoneAction) -> Result<(), String> {
        let bio = Bio::new(Op::Zone(ZoneId(zone), action), Lba(0), 0);
        let expected = self.refused(zone, |model| model.act(zone as usize, action));
        let generation = self.model.generation(zone as usize);
        let sent = match action {
            ZoneAction::Reset => Sent::Reset { zone: zone as usize, generation },
            ZoneAction::Finish => Sent::Finish { zone: zone as usize, generation },
            _ => Sent::State,
        };
        self.expect(bio, expected, sent)
    }

    /// What the rules say of a command; of a zone whose media failed the model knows nothing.
    fn refused(
        &mut self,
        zone: u32,
        serve: impl FnOnce(&mut Model) -> Result<(), ZoneStatus>,
    ) -> Result<(), BlockError> {
        serve(&mut self.model).map_err(|status| BlockError::Zone { zone, status })
    }

    /// A command with this outcome by the rules.
    fn expect(
        &mut self,
        bio: Bio,
        expected: Result<(), BlockError>,
        sent: Sent,
    ) -> Result<(), String> {
        let Err(expected) = expected else { return self.send(bio, sent) };
        match self.driver.ftl.submit(self.driver.now, bio, Token(0)) {
            Submit::Done(Done { result: Err(error), .. }) if error == expected => Ok(()),
            other => Err(format!("{sent:?}: {other:?} and not {expected}")),
        }
    }

    fn write_random(&mut self, at: u64, sectors: u32, flags: Flags) -> Result<(), String> {
        if self.first == 0 {
            return Ok(());
        }
        let at = at % (self.first - u64::from(sectors));
        let end = at + u64::from(sectors);
        let in_flight = self.sent.values().any(|sent| match sent {
            Sent::Random { at: other, tags, .. } => *other < end && at < other + tags.len() as u64,
            _ => false,
        });
        if in_flight {
            return Ok(());
        }
        let tags = self.tags(sectors);
        let bio = Bio::write(Lba(at), sectors, Payload::Run(Tag::new(tags[0]))).with(flags);
        let cover = self.before(flags);
        self.send(bio, Sent::Random { at, tags, cover })
    }

    /// What the completion of a bio with these flags makes durable beside the bio.
    fn before(&self, flags: Flags) -> Cover {
        let cover = self.model.cover();
        if flags.has(Flags::PREFLUSH) { cover } else { vec![(0, 0, false); cover.len()] }
    }

    fn report(&mut self) -> Result<(), String> {
        let bio = Bio::new(Op::ZoneReport, Lba(self.first), u32::MAX);
        let done = self.driver.submit(bio, 0).ok_or("a report waits")?;
        let Ok(Reply::Zones(infos)) = done.result else { return Err("no report".into()) };
        for (zone, info) in infos.iter().enumerate() {
            if !self.model.info_matches(zone, info) {
                return Err(format!(
                    "zone {zone}: {info:?}, by the rules {:?}",
                    self.model.state(zone)
                ));
            }
        }
        Ok(())
    }

    fn read(&mut self, zone: u32, at: u64, sectors: u32) -> Result<(), String> {
        let start = Lba(self.start(zone) + at);
        for (offset, tag) in (at..).zip(self.read_tags(start, sectors)?) {
            let here = (zone as usize + (offset / self.distance) as usize, offset % self.distance);
            if !self.model.permits(here.0, here.1, tag) {
                return Err(format!("zone {} sector {} holds {tag}", here.0, here.1));
            }
        }
        Ok(())
    }

    fn read_tags(&mut self, lba: Lba, sectors: u32) -> Result<Vec<u64>, String> {
        let done = self.driver.submit(Bio::read(lba, sectors), 0).ok_or("a read waits")?;
        let Ok(Reply::Data(payload)) = done.result else { return Err(format!("{done:?}")) };
        (0..sectors)
            .map(|index| match payload.sector(index) {
                SectorData::Tag(tag) => Ok(tag.bits()),
                other => Err(format!("{other:?}")),
            })
            .collect()
    }

    fn step(&mut self) -> Result<(), String> {
        if self.driver.ftl.next_event().is_none() {
            return match self.sent.is_empty() {
                true => Ok(()),
                false => Err(format!("nothing goes on, and these wait: {:?}", self.sent)),
            };
        }
        for Completion { token, done } in self.driver.step() {
            let sent = self.sent.remove(&token.0).ok_or("completed twice")?;
            self.ended(sent, done)?;
        }
        Ok(())
    }

    /// Waits for everything.
    pub(crate) fn drain(&mut self) -> Result<(), String> {
        while !self.sent.is_empty() || self.driver.ftl.next_event().is_some() {
            self.step()?;
        }
        self.driver.ftl.check_invariants()
    }

    fn cut(self, percent: u64) -> Result<Self, String> {
        let Self { driver, .. } = self;
        let next = driver.ftl.next_event().unwrap_or(driver.now).0;
        let at = driver.now.0 + (next - driver.now.0) * percent / 100;
        let driver = driver.cut(nandscape_rt::Nanos(at));
        let mut load = Self { driver, sent: BTreeMap::new(), ..self };
        load.driver.ftl.check_invariants()?;
        load.look_again()?;
        Ok(load)
    }

    /// Compares every zone with what it may hold after a power cut.
    fn look_again(&mut self) -> Result<(), String> {
        let bio = Bio::new(Op::ZoneReport, Lba(self.first), u32::MAX);
        let done = self.driver.submit(bio, 0).ok_or("a report waits")?;
        let Ok(Reply::Zones(infos)) = done.result else { return Err("no report".into()) };
        for (zone, info) in infos.iter().enumerate() {
            let tags = self.read_tags(info.start, self.model.capacity as u32)?;
            let (held, rest) = tags.split_at(info.written() as usize);
            if rest.iter().any(|tag| *tag != 0) {
                return Err(format!("zone {zone}: data above the write pointer"));
            }
            let before = self.model.clone();
            if info.state != ZoneState::ReadOnly && !self.model.recovered(zone, held, info.state) {
                return Err(format!("zone {zone} holds {held:?}, {info:?}; {before:?}"));
            }
        }
        Ok(())
    }
}

/// A command, drawn.
pub(crate) fn drawn(rng: &mut Stream, zones: u32) -> Command {
    let zone = (rng.below(u64::from(zones) * 2) as u32).min(zones - 1) % zones.min(6);
    let flags = match rng.below(8) {
        0 => Flags::FUA,
        1 => Flags::PREFLUSH,
        2 => Flags::PREFLUSH | Flags::FUA,
        _ => Flags::NONE,
    };
    let ahead = if rng.below(8) == 0 { rng.below(5) as i64 - 2 } else { 0 };
    match rng.below(32) {
        0..12 => Command::Write { zone, ahead, sectors: 1 + rng.below(13) as u32, flags },
        12..15 => Command::Append { zone, sectors: 1 + rng.below(9) as u32 },
        15..17 => Command::Act { zone, action: ZoneAction::Reset },
        17 => Command::Act { zone, action: ZoneAction::Finish },
        18 => Command::Act { zone, action: ZoneAction::Open },
        19 => Command::Act { zone, action: ZoneAction::Close },
        20..23 => Command::Read { zone, at: rng.below(40), sectors: 1 + rng.below(20) as u32 },
        23 => Command::Report,
        24..26 => Command::Flush,
        26 => Command::Random { at: rng.below(4096), sectors: 1 + rng.below(9) as u32, flags },
        _ => Command::Step(1 + rng.below(6) as u32),
    }
}
