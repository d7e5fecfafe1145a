//! Where the I/Os of a direction go.
//!
//! Random addresses follow fio's rules. With the random map (the default) a pass touches every block
//! once, in an order given by a fresh [`Permutation`]; where sizes differ, a `RandomMap` (random_map.rs) says which are left. With `norandommap` draws are independent. Zipf, pareto and normal
//! draw a rank independently, and one permutation for the whole run scatters the ranks over the
//! range, where fio hashes them. Zones draw a zone by its share, and evenly within it.

use super::sizes::Sizes;
use crate::fio::{AccessZone, Amount, Distribution};
use crate::permutation::Permutation;
use nandscape_rt::Stream;
use nandscape_rt::dist::{BadParameter, Normal, Pareto, Zipf};

/// Order of addresses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Order {
    Sequential,
    /// Every block once a pass.
    RandomMap,
    /// Every block once a pass, in the same order each time, whatever is accessed with it.
    ShiftRegister,
    /// Independent draws.
    Independent(Distribution),
}

impl Order {
    /// Whether some offsets are drawn more often than others, from a distribution.
    pub(super) const fn is_skewed(self) -> bool {
        use Distribution::{Normal, Pareto, Zipf};
        matches!(self, Self::Independent(Zipf(_) | Pareto(_) | Normal(_)))
    }
}

/// What is drawn where a pass is through: nothing.
pub(super) const THROUGH: (u64, u32) = (0, 0);

/// What the addresses of a direction depend on.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Places {
    /// Bytes of a unit, in which everything else counts.
    pub(super) unit_bytes: u64,
    /// Units that they come from.
    pub(super) units: u64,
    pub(super) sizes: Sizes,
    /// What random addresses are multiples of.
    pub(super) align: u64,
    /// A block of the random map.
    pub(super) block: u64,
    /// What a skewed distribution ranks: blocks of the least size of reads and writes.
    pub(super) ranked: u64,
    /// Units behind, to the end of the device or file.
    pub(super) behind: u64,
    pub(super) zones: Vec<AccessZone>,
}

impl Places {
    /// Places for a block, as fio counts them (io_u.c, last_block). Directions
    /// that a job does not use may have none that fits.
    pub(super) fn count(&self) -> u64 {
        let beyond = self.block.saturating_sub(self.align);
        (self.units.saturating_sub(beyond) / self.align).max(1)
    }
}

/// One source of places.
#[derive(Clone, Debug)]
enum Source {
    /// From this unit on.
    Sequential {
        next: u64,
    },
    Permuted {
        next: u64,
        order: Permutation,
        /// Passes have this order.
        keeps: bool,
    },
    Uniform,
    Skewed(Ranks, Permutation),
    Zoned(Vec<Zone>),
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

/// A part of the places.
#[derive(Clone, Copy, Debug)]
struct Zone {
    /// Sum of the shares up to its own, percent.
    below: u64,
    first: u64,
    places: u64,
}

/// The zones of `places` places, so many bytes apart.
fn zones(asked: &[AccessZone], block_bytes: u64, places: u64) -> Result<Vec<Zone>, String> {
    let (mut below, mut begin, mut zones) = (0, Amount::Percent(0), Vec::new());
    for zone in asked {
        below += zone.accesses;
        let end = match (begin, zone.size) {
            (Amount::Percent(begin), Amount::Percent(size)) => Amount::Percent(begin + size),
            (Amount::Bytes(begin), Amount::Bytes(size)) => Amount::Bytes(begin + size),
            (_, size) => size,
        };
        let place = |amount: Amount| match amount {
            Amount::Percent(_) => amount.of(places),
            Amount::Bytes(bytes) => bytes / block_bytes,
        };
        if place(end) > places {
            return Err("the zones of random_distribution are larger than its range".into());
        }
        let first = place(begin).min(places - 1);
        zones.push(Zone { below, first, places: place(end).saturating_sub(first).max(1) });
        begin = end;
    }
    Ok(zones)
}

/// The places and sizes of I/Os that share a random map, or a sequence.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    source: Source,
    /// Places for the least I/O.
    places: u64,
    align: u64,
    units: u64,
    least: u64,
    sizes: Sizes,
    /// Units behind the range.
    behind: u64,
    /// It begins anew where it is through, rather than with another pass.
    wraps: bool,
}

impl Addresses {
    pub(super) fn new(
        order: Order,
        at: &Places,
        random: &mut Stream,
        wraps: bool,
    ) -> Result<Self, String> {
        let places = at.count();
        // As in fio, a part of a block at the end has a rank, too.
        let ordered = if order.is_skewed() { at.units.div_ceil(at.ranked) } else { places };
        let permutation = Permutation::new(ordered, random);
        Ok(Self {
            wraps,
            source: source(order, at, (places, ordered), permutation)?,
            places,
            align: at.align,
            units: at.units,
            least: at.sizes.least().into(),
            behind: at.behind,
            sizes: at.sizes.clone(),
        })
    }

    /// I/Os of a pass, where each place comes once.
    pub(super) const fn draws(&self) -> u64 {
        match self.source {
            Source::Permuted { .. } => self.places,
            _ => u64::MAX,
        }
    }

    /// The next I/O: first unit, from the range's start, and units; none where the pass is through.
    #[inline(always)]
    pub(super) fn draw(&mut self, random: &mut Stream) -> (u64, u32) {
        let place = match &mut self.source {
            Source::Sequential { next } => {
                if *next + self.least > self.units {
                    if !self.wraps {
                        return THROUGH;
                    }
                    *next = 0;
                }
                let first = *next;
                let units = self.sizes.draw(self.units - first, random);
                *next = first + u64::from(units);
                return (first, units);
            }
            Source::Permuted { next, order, keeps } => {
                if *next == self.places {
                    if !self.wraps {
                        return THROUGH;
                    }
                    *next = 0;
                    if !*keeps {
                        *order = Permutation::new(self.places, random);
                    }
                }
                *next += 1;
                order.at(*next - 1)
            }
            Source::Uniform => random.below(self.places),
            _ => return self.draw_rare(random),
        };
        self.at(place, random)
    }

    /// An I/O at this place.
    #[inline(always)]
    fn at(&self, place: u64, random: &mut Stream) -> (u64, u32) {
        let first = place * self.align;
        (first, self.sizes.draw(self.units - first, random))
    }

    /// The next I/O, where that takes more than an index.
    #[inline(never)]
    fn draw_rare(&mut self, random: &mut Stream) -> (u64, u32) {
        match &self.source {
            Source::Skewed(ranks, scatter) => {
                let first = scatter.at(ranks.draw(random)) * self.align;
                self.at_unit(first, (self.units, self.behind), random).unwrap_or(THROUGH)
            }
            Source::Zoned(zones) => self.at(in_zone(zones, random), random),
            _ => THROUGH,
        }
    }

    /// An I/O at this unit, if one fits there: I/Os of one size need only begin within the `size` of the range, where
    /// there is as much `behind` it.
    pub(super) fn at_unit(
        &self,
        first: u64,
        (size, behind): (u64, u64),
        random: &mut Stream,
    ) -> Option<(u64, u32)> {
        let fits = match self.sizes {
            Sizes::Fixed(units) => first < size && first + u64::from(units) <= size + behind,
            _ => first + self.least <= size,
        };
        fits.then(|| (first, self.sizes.draw(size.saturating_sub(first), random)))
    }

    /// Whether an I/O at this unit may begin: those that differ in size must fit into so many units.
    pub(super) const fn fits(&self, first: u64, size: u64) -> bool {
        matches!(self.sizes, Sizes::Fixed(_)) || first + self.least <= size
    }

    /// An I/O at a random unit, on which no map says anything.
    pub(super) fn anywhere(&self, random: &mut Stream) -> (u64, u32) {
        self.at(random.below(self.places), random)
    }

    /// Whether it begins anew where it is through.
    pub(super) const fn wraps(&self) -> bool {
        self.wraps
    }

    /// Begins a new pass.
    pub(super) fn restart(&mut self, random: &mut Stream) {
        match &mut self.source {
            Source::Sequential { next } => *next = 0,
            Source::Permuted { next, order, keeps } => {
                *next = 0;
                if !*keeps {
                    *order = Permutation::new(self.places, random);
                }
            }
            Source::Uniform | Source::Skewed(..) | Source::Zoned(_) => {}
        }
    }
}

fn source(
    order: Order,
    at: &Places,
    (places, ranked): (u64, u64),
    permutation: Permutation,
) -> Result<Source, String> {
    let distribution = match order {
        Order::Sequential => return Ok(Source::Sequential { next: 0 }),
        Order::RandomMap | Order::ShiftRegister => {
            let keeps = order == Order::ShiftRegister;
            return Ok(Source::Permuted { next: 0, order: permutation, keeps });
        }
        Order::Independent(distribution) => distribution,
    };
    let bad = |error: BadParameter| error.to_string();
    let ranks = match distribution {
        Distribution::Uniform => return Ok(Source::Uniform),
        Distribution::Zoned if at.zones.is_empty() => return Ok(Source::Uniform),
        Distribution::Zoned => {
            return Ok(Source::Zoned(zones(&at.zones, at.align * at.unit_bytes, places)?));
        }
        Distribution::Zipf(theta) => Ranks::Zipf(Zipf::new(ranked, theta).map_err(bad)?),
        Distribution::Pareto(h) => Ranks::Pareto(Pareto::new(ranked, h).map_err(bad)?),
        Distribution::Normal(percent) => Ranks::Normal(Normal::new(ranked, percent).map_err(bad)?),
    };
    Ok(Source::Skewed(ranks, permutation))
}

fn in_zone(zones: &[Zone], random: &mut Stream) -> u64 {
    let percent = random.below(100);
    let zone = zones.iter().find(|zone| percent < zone.below);
    zone.map_or(0, |zone| zone.first + random.below(zone.places))
}
