//! Which I/O comes next: direction, address and size, drawn ahead of submission so that the device
//! can prefetch. The order of draws is the order of submissions, whatever the order of completions.
//!
//! Where rates may decide which direction comes next, nothing is drawn ahead of it ([`Draw::is_late`]).
//!
//! Passes of a job repeat, as in fio, unless `randrepeat=0` or `randseed` says otherwise: each begins with the
//! draws of the first.
//!
//! Directions of equal sizes share a random map, as in fio; sequential directions advance each on
//! its own. Several files take turns, and each has a separate map and separate sequences. With
//! `percentage_random` an I/O follows on the one before of its direction, and leaves the map alone; with
//! `zonemode=strided` all happens in one zone until enough is transferred.

use super::addresses::{Addresses, Order, Places, THROUGH};
use super::error::EngineError;
use super::kind::Next;
use super::mixer::Mixer;
use super::plan::{self, Plan, Range, Strides};
use super::random_map::RandomMap;
use super::turns::FileRotation;
use crate::direction::Direction;
use crate::fio::{JobSpec, Mix, Sequence};
use crate::target::IoTarget;
use nandscape_block::{Lba, SECTOR_BYTES};
use nandscape_rt::Stream;

/// How far ahead of submission addresses are known.
const AHEAD: usize = 16;

/// What makes a job's addresses more than draws: where it is.
#[derive(Clone, Debug)]
struct ModifierSet {
    /// Percent of random I/Os, by direction.
    random: [u64; 3],
    choices: Stream,
    sequence: Sequence,
    /// Units that a sequence skips after each I/O.
    skip: i64,
    /// Units in front of the range, of it, and behind it.
    base: u64,
    size: u64,
    behind: u64,
    /// I/Os up to the next random offset, which the first one has.
    ios_left: u64,
    /// The last I/O of each direction, and what comes after it.
    starts: [u64; 3],
    ends: [u64; 3],
    strides: Option<Strides>,
    units: u64,
    /// Start of the zone.
    zone: u64,
    /// Transferred in it.
    moved: u64,
}

impl ModifierSet {
    fn new(spec: &JobSpec, range: &Range, seed: u64, name: &str) -> Option<Self> {
        let random = if spec.pattern.random { spec.percentage_random } else { [100; 3] };
        let sequence = spec.sequence;
        let sequenced = sequence.skip_bytes != 0 || sequence.ios > 1;
        (range.strides.is_some() || random != [100; 3] || sequenced).then(|| Self {
            random,
            choices: Stream::new(seed, &format!("{name}/follow")),
            sequence,
            skip: sequence.skip_bytes / spec.unit_bytes() as i64,
            base: range.base,
            size: range.size,
            behind: range.behind,
            ios_left: 1,
            starts: [0; 3],
            ends: [0; 3],
            strides: range.strides,
            units: range.units,
            zone: 0,
            moved: 0,
        })
    }

    fn restart(&mut self) {
        (self.ends, self.zone, self.moved) = ([0; 3], 0, 0);
        self.starts = [0; 3];
    }

    /// Goes on to the next zone when enough was transferred in this one; whether it did.
    fn next_zone(&mut self) -> bool {
        let Some(strides) = self.strides.filter(|strides| self.moved >= strides.transfer) else {
            return false;
        };
        let next = self.zone + strides.distance;
        let zone = if next >= self.units { 0 } else { next };
        (self.ends, self.zone, self.moved) = ([0; 3], zone, 0);
        true
    }

    /// Counts an I/O towards the next random offset; whether it has none, as in fio (io_u.c,
    /// get_next_offset).
    fn is_between_offsets(&mut self) -> bool {
        self.ios_left -= 1;
        if self.ios_left == 0 {
            self.ios_left = self.sequence.ios;
        }
        self.ios_left < self.sequence.ios
    }

    /// Whether `percentage_random` lets an I/O follow the one before.
    fn follows(&mut self, direction: usize) -> bool {
        let percent = self.random[direction];
        percent < 100 && self.choices.below(100) >= percent
    }

    /// Where a sequence with holes goes on, as in fio (io_u.c, get_next_seq_offset): the first I/O is that at the device's
    /// start, in both directions, and behind the device's end it begins again.
    fn skipped_to(&self, direction: usize, wraps: bool) -> Option<u64> {
        let end = self.ends[direction];
        // Backwards, fio takes the size of a range that is not at the device's beginning for its end.
        let end = match if wraps && end >= self.size { 0 } else { end } {
            0 if self.skip < 0 && self.base > 0 => self.size.checked_sub(self.base),
            end => Some(end),
        };
        if end == Some(0) {
            return Some(0);
        }
        let device = self.base + self.size + self.behind;
        if end.is_some_and(|end| self.base + end >= device) {
            return None;
        }
        match end.and_then(|end| end.checked_add_signed(self.skip)) {
            Some(next) if next < device => Some(next),
            // fio counts the beginning of the range twice.
            _ if self.skip > 0 => Some(self.base),
            _ => self.size.checked_add_signed(self.skip),
        }
    }

    /// The next I/O of a direction, within the range; none where the pass is through.
    fn draw(
        &mut self,
        direction: Direction,
        addresses: &mut Addresses,
        map: Option<&mut RandomMap>,
        random: &mut Stream,
    ) -> (u64, u32) {
        let (of, room) = (direction as usize, (self.size, self.behind));
        let drawn = if self.skip != 0 {
            let next = self.skipped_to(of, addresses.wraps());
            next.and_then(|next| addresses.at_unit(next, room, random))
        } else if self.is_between_offsets() && self.sequence.identical {
            addresses.at_unit(self.starts[of], room, random)
        } else if self.ios_left < self.sequence.ios || self.follows(of) {
            self.follow(self.ends[of], addresses, random)
        } else {
            let drawn = match map {
                None => addresses.draw(random),
                Some(map) => map.draw(direction, random),
            };
            Some(drawn).filter(|drawn| *drawn != THROUGH)
        };
        let drawn = drawn.filter(|(first, units)| self.is_within(*first, *units, addresses));
        let Some((first, units)) = drawn else { return THROUGH };
        self.starts[of] = first;
        self.ends[of] = first + u64::from(units);
        self.moved += u64::from(units);
        (self.zone + first, units)
    }

    /// The I/O behind `end`. As in fio, it is anywhere behind the end of the device, and the pass is through where the
    /// device goes on, unless time alone ends it. In zones with gaps it begins the zone again.
    fn follow(&self, end: u64, addresses: &Addresses, random: &mut Stream) -> Option<(u64, u32)> {
        if let Some(strides) = &self.strides {
            let room = (strides.zone, 0);
            let next = addresses.at_unit(end, room, random);
            return next.or_else(|| addresses.at_unit(0, room, random));
        }
        let room = (self.size, self.behind);
        let end = if addresses.wraps() && end >= self.size { 0 } else { end };
        if end >= self.size + self.behind {
            return Some(addresses.anywhere(random));
        }
        let next = addresses.at_unit(end, room, random);
        let again = addresses.wraps() && next.is_none();
        if again { addresses.at_unit(0, room, random) } else { next }
    }

    /// Whether an I/O in a zone is one that fio issues: it begins within `size`, and what differs in size ends within it,
    /// although zones go on behind.
    fn is_within(&self, first: u64, units: u32, addresses: &Addresses) -> bool {
        let at = self.zone + first;
        self.strides.is_none()
            || (first < self.size
                && at + u64::from(units) <= self.units
                && addresses.fits(at, self.size))
    }
}

/// Where the draws of a pass begin.
#[derive(Clone, Debug)]
struct Beginning {
    /// None where they are skewed: fio seeds these once.
    offsets: Option<Stream>,
    directions: Stream,
    follows: Vec<Stream>,
    files: Option<Stream>,
}

/// The I/Os of one job, in order.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    mix: Mix,
    mixer: Mixer,
    /// Directions are known only when an I/O is due.
    late: bool,
    /// Of these: the next I/O is drawn.
    ready: bool,
    /// First unit of the file that the last I/O went to.
    base: u64,
    /// First units of all files.
    bases: Vec<u64>,
    /// Those of each file, in the order of the files.
    addresses: Vec<Addresses>,
    /// Which of a file's `addresses` a direction uses.
    of: [usize; 3],
    /// Of each file, if directions share one beside their addresses.
    maps: Vec<RandomMap>,
    offsets: Stream,
    /// That of the first pass, if the others repeat it.
    beginning: Option<Box<Beginning>>,
    /// Of each file, if it has any.
    detours: Vec<ModifierSet>,
    turns: Option<Box<FileRotation>>,
    /// One file without detours or maps.
    plain: bool,
    /// It begins anew where it is through, rather than with another pass.
    wraps: bool,
    /// A ring; `at` is the next to be taken.
    ahead: [Next; AHEAD],
    /// Lengths of these.
    units: [u32; AHEAD],
    at: usize,
}

impl Draw {
    /// Nothing is drawn before [`Draw::restart`]; `paced` where the job has rates.
    pub(super) fn new(
        spec: &JobSpec,
        plan: &Plan,
        seed: u64,
        name: &str,
        paced: bool,
    ) -> Result<Self, EngineError> {
        let (order, ranges) = (plan.order, &plan.ranges);
        let mut offsets = Stream::new(seed, &format!("{name}/offset"));
        let (kinds, of) = kinds(order, &ranges[0].places);
        let places = ranges.iter().flat_map(|range| kinds.iter().map(|kind| &range.places[*kind]));
        let wraps = spec.time_based || spec.zoning.is_strided() || spec.zoning.is_zbd();
        let new = |places| Addresses::new(order, places, &mut offsets, wraps);
        let addresses: Result<_, String> = places.map(new).collect();
        let addresses = addresses.map_err(|problem| EngineError::of_job(spec, problem))?;
        let maps = ranges.iter().filter(|range| needs_map(spec, order, range));
        let maps = maps.map(|range| RandomMap::new(range, wraps)).collect::<Vec<_>>();
        let detours = |range| ModifierSet::new(spec, range, seed, name);
        let detours: Vec<_> = ranges.iter().filter_map(detours).collect();
        let turns = FileRotation::new(spec, plan, seed, name).map(Box::new);
        let directions = Stream::new(seed, &format!("{name}/direction"));
        let nothing = Next { first: 0, direction: Direction::Read };
        let is_mixed = spec.pattern.mix == Mix::ReadWrite && (1..100).contains(&spec.rwmixread);
        let beginning = repeats(spec).then(|| {
            let follows = detours.iter().map(|detours| detours.choices.clone()).collect();
            let files = turns.as_ref().map(|turns| turns.choices().clone());
            Box::new(Beginning {
                offsets: (!order.is_skewed()).then(|| offsets.clone()),
                directions: directions.clone(),
                follows,
                files,
            })
        });
        Ok(Self {
            mix: spec.pattern.mix,
            mixer: Mixer::new(spec.rwmixread, directions),
            late: paced && is_mixed,
            ready: false,
            base: ranges[0].base,
            bases: ranges.iter().map(|range| range.base).collect(),
            addresses,
            of,
            offsets,
            beginning,
            plain: detours.is_empty() && turns.is_none() && maps.is_empty(),
            maps,
            wraps,
            detours,
            turns,
            ahead: [nothing; AHEAD],
            units: [0; AHEAD],
            at: 0,
        })
    }

    /// Begins a pass behind so many I/Os of the job, and draws ahead, in units of so many bytes.
    pub(super) fn restart(&mut self, target: &impl IoTarget, unit_bytes: u64, issued: [u64; 3]) {
        self.begin_pass(issued);
        if self.late {
            return;
        }
        for _ in 0..AHEAD {
            match unit_bytes {
                SECTOR_BYTES => self.take::<true>(target),
                _ => self.take::<false>(target),
            }
        }
    }

    /// Begins a pass behind so many I/Os of the job, without drawing ahead.
    pub(super) fn begin_pass(&mut self, [reads, writes, _]: [u64; 3]) {
        let directions = self.beginning.as_ref().map(|beginning| &beginning.directions);
        self.mixer.restart([reads, writes], directions);
        self.ready = false;
        self.begin_files();
    }

    /// Goes through all files anew.
    fn begin_files(&mut self) {
        if let Some(Beginning { offsets, follows, files, .. }) = self.beginning.as_deref() {
            offsets.iter().for_each(|offsets| self.offsets.clone_from(offsets));
            let detours = self.detours.iter_mut().zip(follows);
            detours.for_each(|(detours, follows)| detours.choices.clone_from(follows));
            let turns = self.turns.iter_mut().zip(files);
            turns.for_each(|(turns, files)| turns.repeat(files));
        }
        self.addresses.iter_mut().for_each(|addresses| addresses.restart(&mut self.offsets));
        self.maps.iter_mut().for_each(RandomMap::restart);
        self.detours.iter_mut().for_each(ModifierSet::restart);
        self.turns.iter_mut().for_each(|turns| turns.restart());
    }

    /// Random draws of a pass: each block once with the random map, else any number.
    pub(super) fn draws(&self) -> u64 {
        let draws = self.addresses.iter().map(|addresses| addresses.draws());
        draws.fold(0, u64::saturating_add)
    }

    /// Whether the next I/O needs a direction first ([`Draw::draw_next`]): rates may overrule the mix.
    #[inline]
    pub(super) const fn is_late(&self) -> bool {
        self.late && !self.ready
    }

    /// The direction that the mix asks for.
    pub(super) fn direction(&mut self) -> Direction {
        self.mixer.draw()
    }

    /// Draws the next I/O, in this direction.
    pub(super) fn draw_next(&mut self, direction: Direction) {
        (self.ahead[self.at], self.units[self.at]) = self.draw_in(direction);
        self.ready = true;
    }

    /// The next I/O, drawn as it is taken.
    pub(super) fn next(&mut self) -> (Next, u32) {
        if self.late {
            self.ready = false;
            return (self.peek(), self.units());
        }
        self.draw()
    }

    /// The next I/O, which stays the next.
    #[inline]
    pub(super) fn peek(&self) -> Next {
        self.ahead[self.at]
    }

    /// Its length in units.
    #[inline]
    pub(super) fn units(&self) -> u32 {
        self.units[self.at]
    }

    /// Takes the next I/O, and draws one more in its place; of I/Os that are whole sectors (`HINTED`), the target
    /// hears ahead.
    #[inline]
    pub(super) fn take<const HINTED: bool>(&mut self, target: &impl IoTarget) {
        if self.late {
            self.ready = false;
            return;
        }
        let (drawn, units) = self.draw();
        if HINTED {
            self.hint(target, drawn);
        }
        self.ahead[self.at] = drawn;
        self.units[self.at] = units;
        self.at = (self.at + 1) % AHEAD;
    }

    /// Informs the target of the I/O that was drawn, and of one that comes sooner.
    #[inline(always)]
    fn hint(&self, target: &impl IoTarget, drawn: Next) {
        target.prefetch_far(Lba(drawn.first));
        let near = self.ahead[(self.at + AHEAD / 2) % AHEAD];
        target.prefetch_near(near.direction.op(), Lba(near.first));
    }

    #[inline(always)]
    fn draw(&mut self) -> (Next, u32) {
        let direction = match self.mix {
            Mix::Only(direction) => direction,
            Mix::TrimWrite => Direction::Trim,
            Mix::ReadWrite => self.mixer.draw(),
        };
        self.draw_in(direction)
    }

    #[inline(always)]
    fn draw_in(&mut self, direction: Direction) -> (Next, u32) {
        if self.mix == Mix::ReadWrite {
            self.mixer.take(direction);
        }
        let (first, units) = if self.plain {
            self.addresses[self.of[direction as usize]].draw(&mut self.offsets)
        } else {
            self.draw_rare(direction)
        };
        (Next { first: self.base + first, direction }, units)
    }

    /// The next I/O of several files, or with detours or maps; within the file at `base`.
    #[cold]
    #[inline(never)]
    fn draw_rare(&mut self, direction: Direction) -> (u64, u32) {
        if self.turns.is_none() {
            return self.draw_in_file(0, direction);
        }
        loop {
            let Some(file) = self.turns.as_mut().and_then(|turns| turns.file()) else {
                if !self.wraps {
                    return THROUGH;
                }
                self.begin_files();
                continue;
            };
            let drawn = self.draw_in_file(file, direction);
            self.turns.iter_mut().for_each(|turns| turns.issued(drawn.1));
            if drawn != THROUGH {
                return drawn;
            }
        }
    }

    fn draw_in_file(&mut self, file: usize, direction: Direction) -> (u64, u32) {
        self.base = self.bases[file];
        let kinds = self.addresses.len() / self.bases.len();
        let of_file = &mut self.addresses[file * kinds..][..kinds];
        let addresses = self.of[direction as usize];
        let map = self.maps.get_mut(file);
        match (self.detours.get_mut(file), map) {
            (None, None) => of_file[addresses].draw(&mut self.offsets),
            (None, Some(map)) => map.draw(direction, &mut self.offsets),
            (Some(detours), mut map) => {
                if detours.next_zone() {
                    of_file.iter_mut().for_each(|addresses| addresses.restart(&mut self.offsets));
                    map.iter_mut().for_each(|map| map.restart());
                }
                detours.draw(direction, &mut of_file[addresses], map, &mut self.offsets)
            }
        }
    }
}

/// Whether the random map of a range is more than an order of blocks of one size.
fn needs_map(spec: &JobSpec, order: Order, range: &Range) -> bool {
    let used = Direction::ALL.into_iter().filter(|direction| spec.pattern.mix.has(*direction));
    let mut places = used.map(|direction| &range.places[direction as usize]);
    let first = places.next();
    let same = places.all(|places| Some(places) == first);
    let own = first.is_some_and(|places| places.count() == range.blocks);
    let differ = !(same && own || spec.zoning.is_zbd());
    order == Order::RandomMap && (differ || first.is_some_and(|places| places.sizes.vary()))
}

/// Whether the passes of a job begin with the same draws, as in fio: its next loop does, and a `time_based` job only
/// where it reads again what it wrote.
fn repeats(spec: &JobSpec) -> bool {
    let repeats = spec.repeats && spec.randseed.is_none();
    repeats && (!spec.time_based || plan::rereads(spec))
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
