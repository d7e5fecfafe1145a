//! Which I/O comes next: direction and address, drawn ahead of submission so that the device can
//! prefetch. The order of draws is the order of submissions, whatever the order of completions.
//!
//! Random addresses follow fio's rules. With the random map (the default) a pass touches every block
//! once, in an order given by a fresh [`Permutation`]; with `norandommap` draws are independent.
//! Zipf, pareto and normal draw a rank independently, and one permutation for the whole run scatters
//! the ranks over the range, where fio hashes them. Directions of equal block size share a random
//! map, as in fio; sequential directions advance each on its own.

use super::error::EngineError;
use super::permutation::Permutation;
use super::plan::{self, Plan};
use crate::fio::{Direction, Distribution, JobSpec, Mix};
use nandscape_block::{BlockDevice, Lba};
use nandscape_rt::Stream;
use nandscape_rt::dist::{BadParameter, Normal, Pareto, Zipf};

/// How far ahead of submission addresses are known.
const AHEAD: usize = 16;

/// One I/O to be issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Next {
    pub(super) lba: Lba,
    pub(super) direction: Direction,
}

/// Order of addresses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Order {
    Sequential,
    /// Every block once a pass.
    RandomMap,
    /// Independent draws.
    Independent(Distribution),
}

/// What a job draws from.
#[derive(Clone, Debug)]
pub(super) struct Range {
    /// First sector.
    pub(super) base: u64,
    /// Sectors.
    pub(super) sectors: u64,
    /// Sectors of a block, by direction.
    pub(super) block_sectors: [u32; 3],
}

/// One source of block numbers.
#[derive(Clone, Debug)]
enum Source {
    Sequential { next: u64 },
    Permuted { next: u64, order: Permutation },
    Uniform,
    Skewed(Ranks, Permutation),
}

/// How popular the ranks are.
#[derive(Clone, Debug)]
enum Ranks {
    Zipf(Zipf),
    Pareto(Pareto),
    Normal(Normal),
}

impl Ranks {
    fn draw(&self, random: &mut Stream) -> u64 {
        match self {
            Self::Zipf(zipf) => zipf.sample(random),
            Self::Pareto(pareto) => pareto.sample(random),
            Self::Normal(normal) => normal.sample(random),
        }
    }
}

#[derive(Clone, Debug)]
struct Addresses {
    source: Source,
    blocks: u64,
    block_sectors: u64,
}

impl Addresses {
    fn new(
        order: Order,
        range: &Range,
        block_sectors: u32,
        random: &mut Stream,
    ) -> Result<Self, BadParameter> {
        let block_sectors = u64::from(block_sectors);
        // Directions that the job does not use may have blocks that do not fit.
        let blocks = (range.sectors / block_sectors).max(1);
        let permutation = Permutation::new(blocks, random);
        let skewed = |ranks| Source::Skewed(ranks, permutation.clone());
        let source = match order {
            Order::Sequential => Source::Sequential { next: 0 },
            Order::RandomMap => Source::Permuted { next: 0, order: permutation },
            Order::Independent(Distribution::Uniform) => Source::Uniform,
            Order::Independent(Distribution::Zipf(theta)) => {
                skewed(Ranks::Zipf(Zipf::new(blocks, theta)?))
            }
            Order::Independent(Distribution::Pareto(h)) => {
                skewed(Ranks::Pareto(Pareto::new(blocks, h)?))
            }
            Order::Independent(Distribution::Normal(percent)) => {
                skewed(Ranks::Normal(Normal::new(blocks, percent)?))
            }
        };
        Ok(Self { source, blocks, block_sectors })
    }

    /// The next block's first sector, from the range's start.
    #[inline]
    fn draw(&mut self, random: &mut Stream) -> u64 {
        let block = match &mut self.source {
            Source::Sequential { next } => {
                let block = *next;
                *next = if block + 1 == self.blocks { 0 } else { block + 1 };
                block
            }
            Source::Permuted { next, order } => {
                if *next == self.blocks {
                    *next = 0;
                    *order = Permutation::new(self.blocks, random);
                }
                *next += 1;
                order.at(*next - 1)
            }
            Source::Uniform => random.below(self.blocks),
            Source::Skewed(ranks, scatter) => scatter.at(ranks.draw(random)),
        };
        block * self.block_sectors
    }

    /// Begins a new pass.
    fn restart(&mut self, random: &mut Stream) {
        match &mut self.source {
            Source::Sequential { next } => *next = 0,
            Source::Permuted { next, order } => {
                *next = 0;
                *order = Permutation::new(self.blocks, random);
            }
            Source::Uniform | Source::Skewed(..) => {}
        }
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
    /// A ring; `at` is the next to be taken.
    ahead: [Next; AHEAD],
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
        let mut sizes: Vec<u32> = Vec::new();
        let of = Direction::ALL.map(|direction| {
            let size = range.block_sectors[direction as usize];
            let shared = sizes.iter().position(|s| *s == size && order != Order::Sequential);
            shared.unwrap_or_else(|| {
                sizes.push(size);
                sizes.len() - 1
            })
        });
        let addresses: Result<_, BadParameter> =
            sizes.iter().map(|size| Addresses::new(order, range, *size, &mut offsets)).collect();
        let addresses = addresses.map_err(|error| plan::refuse(spec, error.to_string()))?;
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
            ahead: [nothing; AHEAD],
            at: 0,
        })
    }

    /// Begins a pass anew and draws ahead.
    pub(super) fn restart(&mut self, device: &impl BlockDevice) {
        for addresses in &mut self.addresses {
            addresses.restart(&mut self.offsets);
        }
        for _ in 0..AHEAD {
            self.take(device);
        }
    }

    /// The next I/O, which stays the next.
    #[inline]
    pub(super) fn peek(&self) -> Next {
        self.ahead[self.at]
    }

    /// Takes the next I/O, and draws one more in its place.
    #[inline]
    pub(super) fn take(&mut self, device: &impl BlockDevice) -> Next {
        let drawn = self.draw();
        device.prefetch_far(drawn.lba);
        let near = self.ahead[(self.at + AHEAD / 2) % AHEAD];
        device.prefetch_near(near.direction.op(), near.lba);
        let next = std::mem::replace(&mut self.ahead[self.at], drawn);
        self.at = (self.at + 1) % AHEAD;
        next
    }

    #[inline]
    fn draw(&mut self) -> Next {
        let direction = match self.mix {
            Mix::Only(direction) => direction,
            Mix::TrimWrite => Direction::Trim,
            Mix::ReadWrite if self.directions.below(100) < self.rwmixread => Direction::Read,
            Mix::ReadWrite => Direction::Write,
        };
        let addresses = &mut self.addresses[self.of[direction as usize]];
        Next { lba: Lba(self.base + addresses.draw(&mut self.offsets)), direction }
    }
}
