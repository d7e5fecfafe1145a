//! Which I/O comes next: direction, address and size, drawn ahead of submission so that the device
//! can prefetch. The order of draws is the order of submissions, whatever the order of completions.
//!
//! Directions of equal sizes share a random map, as in fio; sequential directions advance each on
//! its own. With `percentage_random` an I/O follows on the one before of its direction, and leaves
//! the map alone; with `zonemode=strided` all happens in one zone until enough is transferred.

use super::addresses::{Addresses, Order, Places};
use super::error::EngineError;
use super::plan::{self, Plan};
use crate::fio::{Direction, JobSpec, Mix};
use nandscape_block::{BlockDevice, Lba};
use nandscape_rt::Stream;

/// How far ahead of submission addresses are known.
const AHEAD: usize = 16;

/// One I/O to be issued. Two words, so that it travels in registers; its length goes beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Next {
    pub(super) lba: Lba,
    pub(super) direction: Direction,
}

/// What a job draws from.
#[derive(Clone, Debug)]
pub(super) struct Range {
    /// First sector.
    pub(super) base: u64,
    /// Sectors.
    pub(super) sectors: u64,
    /// Places and sizes, by direction.
    pub(super) places: [Places; 3],
    pub(super) strides: Option<Strides>,
}

/// Zones with gaps between them, in sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strides {
    /// A zone and the gap behind it.
    pub(super) distance: u64,
    pub(super) zone: u64,
    /// What is transferred before the next zone begins.
    pub(super) transfer: u64,
}

/// What makes a job's addresses more than draws: where it is.
#[derive(Clone, Debug)]
struct Detours {
    /// Percent of random I/Os, by direction.
    random: [u64; 3],
    choices: Stream,
    /// Behind the last I/O of each direction.
    ends: [u64; 3],
    strides: Option<Strides>,
    sectors: u64,
    /// Start of the zone.
    zone: u64,
    /// Transferred in it.
    moved: u64,
}

impl Detours {
    fn new(spec: &JobSpec, range: &Range, seed: u64, name: &str) -> Option<Self> {
        let random = if spec.pattern.random { spec.percentage_random } else { [100; 3] };
        (range.strides.is_some() || random != [100; 3]).then(|| Self {
            random,
            choices: Stream::new(seed, &format!("{name}/follow")),
            ends: [0; 3],
            strides: range.strides,
            sectors: range.sectors,
            zone: 0,
            moved: 0,
        })
    }

    fn restart(&mut self) {
        (self.ends, self.zone, self.moved) = ([0; 3], 0, 0);
    }

    /// Goes on to the next zone when enough was transferred in this one; whether it did.
    fn next_zone(&mut self) -> bool {
        let Some(strides) = self.strides.filter(|strides| self.moved >= strides.transfer) else {
            return false;
        };
        let next = self.zone + strides.distance;
        let zone = if next + strides.zone > self.sectors { 0 } else { next };
        (self.ends, self.zone, self.moved) = ([0; 3], zone, 0);
        true
    }

    /// The next I/O of a direction, within the range.
    fn draw(
        &mut self,
        direction: usize,
        addresses: &mut Addresses,
        random: &mut Stream,
    ) -> (u64, u32) {
        let percent = self.random[direction];
        let (first, sectors) = if percent < 100 && self.choices.below(100) >= percent {
            addresses.follow(self.ends[direction], random)
        } else {
            addresses.draw(random)
        };
        self.ends[direction] = first + u64::from(sectors);
        self.moved += u64::from(sectors);
        (self.zone + first, sectors)
    }
}

/// The I/Os of one job, in order.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    mix: Mix,
    rwmixread: u64,
    base: u64,
    addresses: Vec<Addresses>,
    /// Which of `addresses` a direction uses.
    of: [usize; 3],
    offsets: Stream,
    directions: Stream,
    detours: Option<Box<Detours>>,
    /// A ring; `at` is the next to be taken.
    ahead: [Next; AHEAD],
    /// Lengths of these.
    sectors: [u32; AHEAD],
    at: usize,
}

impl Draw {
    /// Nothing is drawn before [`Draw::restart`].
    pub(super) fn new(
        spec: &JobSpec,
        plan: &Plan,
        seed: u64,
        name: &str,
    ) -> Result<Self, EngineError> {
        let (order, range) = (plan.order, &plan.range);
        let mut offsets = Stream::new(seed, &format!("{name}/offset"));
        let mut kinds: Vec<&Places> = Vec::new();
        let of = Direction::ALL.map(|direction| {
            let places = &range.places[direction as usize];
            let shared = kinds.iter().position(|p| *p == places && order != Order::Sequential);
            shared.unwrap_or_else(|| {
                kinds.push(places);
                kinds.len() - 1
            })
        });
        let addresses: Result<_, String> =
            kinds.iter().map(|places| Addresses::new(order, places, &mut offsets)).collect();
        let addresses = addresses.map_err(|problem| plan::refuse(spec, problem))?;
        let directions = Stream::new(seed, &format!("{name}/direction"));
        let nothing = Next { lba: Lba(0), direction: Direction::Read };
        Ok(Self {
            mix: spec.pattern.mix,
            rwmixread: spec.rwmixread,
            base: range.base,
            addresses,
            of,
            offsets,
            directions,
            detours: Detours::new(spec, range, seed, name).map(Box::new),
            ahead: [nothing; AHEAD],
            sectors: [0; AHEAD],
            at: 0,
        })
    }

    /// Begins a pass anew and draws ahead.
    pub(super) fn restart(&mut self, device: &impl BlockDevice) {
        for addresses in &mut self.addresses {
            addresses.restart(&mut self.offsets);
        }
        self.detours.iter_mut().for_each(|detours| detours.restart());
        for _ in 0..AHEAD {
            self.take(device);
        }
    }

    /// The next I/O, which stays the next.
    #[inline]
    pub(super) fn peek(&self) -> Next {
        self.ahead[self.at]
    }

    /// Its length in sectors.
    #[inline]
    pub(super) fn sectors(&self) -> u32 {
        self.sectors[self.at]
    }

    /// Takes the next I/O, and draws one more in its place.
    #[inline]
    pub(super) fn take(&mut self, device: &impl BlockDevice) {
        let (drawn, sectors) = self.draw();
        device.prefetch_far(drawn.lba);
        let near = self.ahead[(self.at + AHEAD / 2) % AHEAD];
        device.prefetch_near(near.direction.op(), near.lba);
        self.ahead[self.at] = drawn;
        self.sectors[self.at] = sectors;
        self.at = (self.at + 1) % AHEAD;
    }

    #[inline(always)]
    fn draw(&mut self) -> (Next, u32) {
        let direction = match self.mix {
            Mix::Only(direction) => direction,
            Mix::TrimWrite => Direction::Trim,
            Mix::ReadWrite if self.directions.below(100) < self.rwmixread => Direction::Read,
            Mix::ReadWrite => Direction::Write,
        };
        let (first, sectors) = if self.detours.is_some() {
            self.draw_detour(direction)
        } else {
            self.addresses[self.of[direction as usize]].draw(&mut self.offsets)
        };
        (Next { lba: Lba(self.base + first), direction }, sectors)
    }

    #[cold]
    #[inline(never)]
    fn draw_detour(&mut self, direction: Direction) -> (u64, u32) {
        let Some(detours) = &mut self.detours else { return (0, 0) };
        if detours.next_zone() {
            self.addresses.iter_mut().for_each(|addresses| addresses.restart(&mut self.offsets));
        }
        let addresses = &mut self.addresses[self.of[direction as usize]];
        detours.draw(direction as usize, addresses, &mut self.offsets)
    }
}
