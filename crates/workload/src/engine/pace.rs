//! When I/Os may start: `rate`, `rate_iops` and `rate_process`.
//!
//! Linear, the nth I/O of a direction starts exactly when the rate allows it, and a job that fell
//! behind catches up, as in fio. As a Poisson process, the time from one I/O to the next is
//! exponential, with the mean that the I/O takes at that rate.

use crate::direction::Direction;
use crate::fio::{JobSpec, Mix};
use nandscape_rt::dist::Exponential;
use nandscape_rt::{Nanos, Stream};

const SECOND_NS: u128 = Nanos::from_secs(1).0 as u128;

/// A direction's rate.
#[derive(Clone, Debug)]
struct Pace {
    units_per_s: u64,
    /// The units are bytes rather than I/Os.
    bytes: bool,
    /// What was issued.
    units: u64,
    /// When the next I/O may start, from the job's start.
    due: Nanos,
}

impl Pace {
    /// What `units` take at this rate.
    fn time(&self, units: u64) -> Nanos {
        let ns = u128::from(units) * SECOND_NS / u128::from(self.units_per_s);
        Nanos(ns.try_into().unwrap_or(u64::MAX))
    }

    fn issued(&mut self, bytes: u64, poisson: Option<&mut Stream>) {
        let units = if self.bytes { bytes } else { 1 };
        self.units = self.units.saturating_add(units);
        self.due = match poisson {
            None => self.time(self.units),
            Some(random) => {
                let gap = units as f64 * SECOND_NS as f64 / self.units_per_s as f64;
                let gap = Exponential::new(gap).map_or(0.0, |gaps| gaps.sample(random));
                self.due.saturating_add(Nanos(gap as u64))
            }
        };
    }
}

/// The rates of a job.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    paces: [Option<Pace>; 3],
    poisson: Option<Stream>,
    /// Pauses that are not caught up with.
    paused: Nanos,
}

impl Pacer {
    /// The rates that `spec` asks for, if any.
    pub(super) fn new(spec: &JobSpec, seed: u64, name: &str) -> Option<Self> {
        let paces = Direction::ALL.map(|direction| {
            // As in fio, the rate of writes is that of the trims in front of them.
            let trims = spec.pattern.mix == Mix::TrimWrite && direction == Direction::Trim;
            let direction = if trims { Direction::Write } else { direction };
            let rates = (spec.rate_iops[direction as usize], spec.rate[direction as usize]);
            let (units_per_s, bytes) = match rates {
                (Some(iops), _) => (iops, false),
                (None, bytes) => (bytes?, true),
            };
            Some(Pace { units_per_s, bytes, units: 0, due: Nanos::ZERO })
        });
        let poisson = spec.poisson.then(|| Stream::new(seed, &format!("{name}/rate")));
        let limited = paces.iter().any(Option::is_some);
        limited.then_some(Self { paces, poisson, paused: Nanos::ZERO })
    }

    /// When the next I/O of a direction may start, from the job's start.
    #[inline(never)]
    pub(super) fn due(&self, direction: Direction) -> Nanos {
        let pace = self.paces[direction as usize].as_ref();
        pace.map_or(Nanos::ZERO, |pace| pace.due.saturating_add(self.paused))
    }

    #[inline(never)]
    pub(super) fn issued(&mut self, direction: Direction, bytes: u64) {
        if let Some(pace) = &mut self.paces[direction as usize] {
            pace.issued(bytes, self.poisson.as_mut());
        }
    }

    /// So much time passed that is not to be made up for.
    pub(super) fn pause(&mut self, length: Nanos) {
        self.paused = self.paused.saturating_add(length);
    }
}
