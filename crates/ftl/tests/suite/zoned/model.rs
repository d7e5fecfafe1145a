//! The rules of zones, one by one, and what every sector may hold: a model that shares no code with the device.

use nandscape_block::zone::{ZoneAction, ZoneInfo, ZoneState, ZoneStatus};

/// What was written to a zone between two resets, as tags, and how much of it is durable.
#[derive(Clone, Default, Debug)]
struct Generation {
    tags: Vec<u64>,
    /// Sectors of completed writes.
    acked: u64,
    covered: u64,
    /// It was finished, that is acknowledged, and durable.
    finished: bool,
    finish_acked: bool,
    finish_covered: bool,
}

/// A zone.
#[derive(Clone, Debug)]
struct Zone {
    state: ZoneState,
    /// The last one is current; those before it may come back after a power cut.
    generations: Vec<Generation>,
}

impl Zone {
    fn now(&self) -> &Generation {
        self.generations.last().expect("never empty")
    }

    fn now_mut(&mut self) -> &mut Generation {
        self.generations.last_mut().expect("never empty")
    }
}

/// All zones.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    zones: Vec<Zone>,
    pub(crate) capacity: u64,
    max_open: u32,
    max_active: u32,
    write_sectors: u64,
}

/// What a flush covers: acknowledged sectors of each zone's generation, and whether it was finished.
pub(crate) type Cover = Vec<(usize, u64, bool)>;

impl Model {
    pub(crate) fn new(zones: usize, capacity: u64, limits: (u32, u32), write_sectors: u64) -> Self {
        let zone = Zone { state: ZoneState::Empty, generations: vec![Generation::default()] };
        let (max_open, max_active) = limits;
        Self { zones: vec![zone; zones], capacity, max_open, max_active, write_sectors }
    }

    pub(crate) fn written(&self, zone: usize) -> u64 {
        self.zones[zone].now().tags.len() as u64
    }

    pub(crate) fn state(&self, zone: usize) -> ZoneState {
        self.zones[zone].state
    }

    /// The number of a zone's generation.
    pub(crate) fn generation(&self, zone: usize) -> usize {
        self.zones[zone].generations.len()
    }

    fn count(&self, is: fn(ZoneState) -> bool) -> u32 {
        self.zones.iter().filter(|zone| is(zone.state)).count() as u32
    }

    fn open(&mut self, zone: usize, state: ZoneState) -> Result<(), ZoneStatus> {
        use ZoneState::{Closed, Empty, ExplicitlyOpened, ImplicitlyOpened};
        let open = |state| matches!(state, ImplicitlyOpened | ExplicitlyOpened);
        let active = |state| matches!(state, ImplicitlyOpened | ExplicitlyOpened | Closed);
        let before = self.zones[zone].state;
        if before == Empty && self.max_active > 0 && self.count(active) >= self.max_active {
            return Err(ZoneStatus::TooManyActive);
        }
        let opens = matches!(before, Empty | Closed);
        if opens && self.max_open > 0 && self.count(open) >= self.max_open {
            let implicit = self.zones.iter().position(|zone| zone.state == ImplicitlyOpened);
            self.zones[implicit.ok_or(ZoneStatus::TooManyOpen)?].state = Closed;
        }
        self.zones[zone].state = state;
        Ok(())
    }

    /// A write at a place within a zone, of these tags.
    pub(crate) fn write(&mut self, zone: usize, at: u64, tags: &[u64]) -> Result<(), ZoneStatus> {
        use ZoneState::{ExplicitlyOpened, Full, ImplicitlyOpened, Offline, ReadOnly};
        let sectors = tags.len() as u64;
        match self.zones[zone].state {
            Full => return Err(ZoneStatus::Full),
            ReadOnly => return Err(ZoneStatus::ReadOnly),
            Offline => return Err(ZoneStatus::Offline),
            _ if at + sectors > self.capacity => return Err(ZoneStatus::BoundaryError),
            _ if at != self.written(zone) => return Err(ZoneStatus::NotAtWritePointer),
            _ if !sectors.is_multiple_of(self.write_sectors) => {
                return Err(ZoneStatus::Granularity);
            }
            ExplicitlyOpened | ImplicitlyOpened => {}
            _ => self.open(zone, ImplicitlyOpened)?,
        }
        self.zones[zone].now_mut().tags.extend(tags);
        if self.written(zone) == self.capacity {
            self.zones[zone].state = Full;
        }
        Ok(())
    }

    pub(crate) fn act(&mut self, zone: usize, action: ZoneAction) -> Result<(), ZoneStatus> {
        use ZoneAction::{Close, Finish, Open, Reset};
        use ZoneState::{Closed, Empty, ExplicitlyOpened, Full, Offline, ReadOnly};
        let after = match (self.zones[zone].state, action) {
            (ReadOnly | Offline, _) | (Full, Open) | (Empty | Full, Close) => {
                return Err(ZoneStatus::InvalidTransition);
            }
            (_, Open) => return self.open(zone, ExplicitlyOpened),
            (_, Close) => Closed,
            (Full, Finish) => return Ok(()),
            (_, Finish) => {
                self.zones[zone].now_mut().finished = true;
                Full
            }
            (_, Reset) => {
                self.zones[zone].generations.push(Generation::default());
                Empty
            }
        };
        self.zones[zone].state = after;
        Ok(())
    }

    /// A reset is complete: what it hides is gone for good.
    pub(crate) fn reset_completed(&mut self, zone: usize, generation: usize) {
        for hidden in &mut self.zones[zone].generations[..generation - 1] {
            *hidden = Generation::default();
        }
    }

    /// A finish is complete.
    pub(crate) fn finish_completed(&mut self, zone: usize, generation: usize) {
        if generation == self.generation(zone) {
            let of = self.zones[zone].now_mut();
            of.finish_acked = of.finished;
        }
    }

    /// A write that ends at this sector completed.
    pub(crate) fn acked(&mut self, zone: usize, generation: usize, end: u64) {
        if generation == self.generation(zone) {
            let of = self.zones[zone].now_mut();
            of.acked = of.acked.max(end);
        }
    }

    /// What a flush that is submitted now covers.
    pub(crate) fn cover(&self) -> Cover {
        let of = |zone: &Zone| (zone.generations.len(), zone.now().acked, zone.now().finish_acked);
        self.zones.iter().map(of).collect()
    }

    pub(crate) fn covered(&mut self, cover: &Cover) {
        for (zone, &(generation, end, finished)) in self.zones.iter_mut().zip(cover) {
            if zone.generations.len() == generation {
                let of = zone.now_mut();
                of.covered = of.covered.max(end);
                of.finish_covered |= finished;
            }
        }
    }

    /// Whether a read of this sector may return this tag.
    pub(crate) fn permits(&self, zone: usize, at: u64, tag: u64) -> bool {
        let of = self.zones[zone].now();
        let expected = of.tags.get(at as usize).copied().unwrap_or(0);
        tag == expected || (at >= of.acked && tag == 0)
    }

    pub(crate) fn info_matches(&self, zone: usize, info: &ZoneInfo) -> bool {
        info.written() == self.written(zone) && info.state == self.zones[zone].state
    }

    /// Whether a zone may hold these tags up to its write pointer after a power cut, and be full: whole writes. It is
    /// taken over.
    pub(crate) fn recovered(&mut self, zone: usize, tags: &[u64], state: ZoneState) -> bool {
        let of = &self.zones[zone];
        let last = of.generations.len() - 1;
        let holds = |(number, generation): (usize, &Generation)| {
            let is_prefix = generation.tags.starts_with(tags);
            let keeps = number < last || tags.len() as u64 >= generation.covered;
            let finish = number < last || !generation.finish_covered || state == ZoneState::Full;
            let all = tags.len() as u64 == self.capacity;
            let full = state != ZoneState::Full || all || generation.finished;
            is_prefix && keeps && finish && full
        };
        let must_be_last = of.now().covered > 0 || of.now().finish_covered;
        let found = of.generations.iter().enumerate().rev().find(|g| holds(*g)).map(|(n, _)| n);
        let ok = found.is_some_and(|number| number == last || !must_be_last || tags.is_empty());
        let closed = match tags.len() {
            0 => ZoneState::Empty,
            _ => ZoneState::Closed,
        };
        let expected = if state == ZoneState::Full { ZoneState::Full } else { closed };
        let written = tags.len() as u64;
        let durable = Generation {
            tags: tags.to_vec(),
            acked: written,
            covered: written,
            finished: state == ZoneState::Full && written < self.capacity,
            finish_acked: state == ZoneState::Full && written < self.capacity,
            finish_covered: state == ZoneState::Full && written < self.capacity,
        };
        self.zones[zone] = Zone { state, generations: vec![durable] };
        ok && state == expected && written.is_multiple_of(self.write_sectors)
    }
}
