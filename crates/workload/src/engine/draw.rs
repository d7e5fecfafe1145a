//! Which I/O comes next: direction, address and size, drawn ahead of submission so that the device
//! can prefetch. The order of draws is the order of submissions, whatever the order of completions.
//!
//! Directions of equal sizes share a random map, as in fio; sequential directions advance each on
//! its own. Several files take turns, and each has a separate map and separate sequences. With
//! `percentage_random` an I/O follows on the one before of its direction, and leaves the map alone; with
//! `zonemode=strided` all happens in one zone until enough is transferred.

use super::addresses::{Addresses, Order, Places};
use super::error::EngineError;
use super::kind::Next;
use super::plan::{self, Plan, Range, Strides};
use super::turns::FileRotation;
use crate::fio::{Direction, JobSpec, Mix};
use crate::target::IoTarget;
use nandscape_block::Lba;
use nandscape_rt::Stream;

/// How far ahead of submission addresses are known.
const AHEAD: usize = 16;

/// What makes a job's addresses more than draws: where it is.
#[derive(Clone, Debug)]
struct ModifierSet {
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

impl ModifierSet {
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
    /// First sector of the file that the last I/O went to.
    base: u64,
    /// First sectors of all files.
    bases: Vec<u64>,
    /// Those of each file, in the order of the files.
    addresses: Vec<Addresses>,
    /// Which of a file's `addresses` a direction uses.
    of: [usize; 3],
    offsets: Stream,
    directions: Stream,
    /// Of each file, if it has any.
    detours: Vec<ModifierSet>,
    turns: Option<Box<FileRotation>>,
    /// One file without detours.
    plain: bool,
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
        let (order, ranges) = (plan.order, &plan.ranges);
        let mut offsets = Stream::new(seed, &format!("{name}/offset"));
        let (kinds, of) = kinds(order, &ranges[0].places);
        let places = ranges.iter().flat_map(|range| kinds.iter().map(|kind| &range.places[*kind]));
        let addresses: Result<_, String> =
            places.map(|places| Addresses::new(order, places, &mut offsets)).collect();
        let addresses = addresses.map_err(|problem| plan::refuse(spec, problem))?;
        let detours = |range| ModifierSet::new(spec, range, seed, name);
        let detours: Vec<_> = ranges.iter().filter_map(detours).collect();
        let turns = FileRotation::new(spec, plan, seed, name).map(Box::new);
        let directions = Stream::new(seed, &format!("{name}/direction"));
        let nothing = Next { lba: Lba(0), direction: Direction::Read };
        Ok(Self {
            mix: spec.pattern.mix,
            rwmixread: spec.rwmixread,
            base: ranges[0].base,
            bases: ranges.iter().map(|range| range.base).collect(),
            addresses,
            of,
            offsets,
            directions,
            plain: detours.is_empty() && turns.is_none(),
            detours,
            turns,
            ahead: [nothing; AHEAD],
            sectors: [0; AHEAD],
            at: 0,
        })
    }

    /// Restarts a pass and draws ahead.
    pub(super) fn restart(&mut self, target: &impl IoTarget) {
        self.begin_pass();
        for _ in 0..AHEAD {
            self.take(target);
        }
    }

    /// Restarts a pass, without drawing ahead.
    pub(super) fn begin_pass(&mut self) {
        self.addresses.iter_mut().for_each(|addresses| addresses.restart(&mut self.offsets));
        self.detours.iter_mut().for_each(ModifierSet::restart);
        self.turns.iter_mut().for_each(|turns| turns.restart());
    }

    /// Random draws of a pass: each block once with the random map, else any number.
    pub(super) fn draws(&self) -> u64 {
        let draws = self.addresses.iter().map(|addresses| addresses.draws());
        draws.fold(0, u64::saturating_add)
    }

    /// The next I/O, drawn as it is taken.
    pub(super) fn next(&mut self) -> (Next, u32) {
        self.draw()
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
    pub(super) fn take(&mut self, target: &impl IoTarget) {
        let (drawn, sectors) = self.draw();
        target.prefetch_far(drawn.lba);
        let near = self.ahead[(self.at + AHEAD / 2) % AHEAD];
        target.prefetch_near(near.direction.op(), near.lba);
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
        let (first, sectors) = if self.plain {
            self.addresses[self.of[direction as usize]].draw(&mut self.offsets)
        } else {
            self.draw_rare(direction)
        };
        (Next { lba: Lba(self.base + first), direction }, sectors)
    }

    /// The next I/O of several files, or with detours; within the file at `base`.
    #[cold]
    #[inline(never)]
    fn draw_rare(&mut self, direction: Direction) -> (u64, u32) {
        let file = self.turns.as_mut().map_or(0, |turns| turns.file());
        self.base = self.bases[file];
        let kinds = self.addresses.len() / self.bases.len();
        let of_file = &mut self.addresses[file * kinds..][..kinds];
        let direction = direction as usize;
        let drawn = match self.detours.get_mut(file) {
            None => of_file[self.of[direction]].draw(&mut self.offsets),
            Some(detours) => {
                if detours.next_zone() {
                    of_file.iter_mut().for_each(|addresses| addresses.restart(&mut self.offsets));
                }
                detours.draw(direction, &mut of_file[self.of[direction]], &mut self.offsets)
            }
        };
        if self.turns.as_mut().is_some_and(|turns| turns.issued(drawn.1)) {
            self.begin_pass();
        }
        drawn
    }
}

/// The directions that have addresses of their own, and which of these each direction uses. Those of
/// equal places share them, unless they are sequences.
fn kinds(order: Order, places: &[Places; 3]) -> (Vec<usize>, [usize; 3]) {
    let mut kinds: Vec<usize> = Vec::new();
    let of = Direction::ALL.map(|direction| {
        let own = direction as usize;
        let same = |kind: &usize| places[*kind] == places[own] && order != Order::Sequential;
        kinds.iter().position(same).unwrap_or_else(|| {
            kinds.push(own);
            kinds.len() - 1
        })
    });
    (kinds, of)
}
