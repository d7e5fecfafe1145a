//! `rate_min`, `rate_iops_min` and `rate_cycle`: a job that falls below these rates fails.
//!
//! The rule is fio's (backend.c, `__check_min_rate`): looked at as I/Os complete, from two seconds after the
//! start on, over at least a cycle. Of both rates of a direction, `rate_min` counts.

use super::rates::Totals;
use crate::direction::Direction;
use crate::fio::JobSpec;
use nandscape_rt::Nanos;

/// What fio leaves a job to get going.
const SETTLED: Nanos = Nanos::from_secs(2);

/// A direction's rate over a cycle, beside what was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shortfall {
    pub(super) direction: Direction,
    /// The key that asks for it.
    pub(super) key: &'static str,
    pub(super) min: u64,
    pub(super) got: u64,
}

/// The last look at a direction: when, and I/Os and bytes up to then.
type Look = Option<(Nanos, (u64, u64))>;

/// The rates that a job must keep.
#[derive(Clone, Debug)]
pub(super) struct MinRates {
    bytes: [Option<u64>; 3],
    ios: [Option<u64>; 3],
    cycle: Nanos,
    looks: [Look; 3],
}

impl MinRates {
    /// Those that `spec` asks for, if any.
    pub(super) fn new(spec: &JobSpec) -> Option<Self> {
        let rates = [spec.rate_min, spec.rate_iops_min];
        let any = rates.iter().flatten().any(Option::is_some);
        any.then_some(Self {
            bytes: spec.rate_min,
            ios: spec.rate_iops_min,
            cycle: spec.rate_cycle.max(Nanos(1)),
            looks: [None; 3],
        })
    }

    /// Looks at what was transferred until `now`, so long after the start; the first rate that is missed.
    pub(super) fn check(
        &mut self,
        totals: Totals,
        since_began: Nanos,
        now: Nanos,
    ) -> Option<Shortfall> {
        if since_began < SETTLED {
            return None;
        }
        Direction::ALL.into_iter().find_map(|d| self.check_direction(d, totals[d as usize], now))
    }

    fn check_direction(
        &mut self,
        direction: Direction,
        (ios, bytes): (u64, u64),
        now: Nanos,
    ) -> Option<Shortfall> {
        let index = direction as usize;
        let (min, is_bytes) = match (self.bytes[index], self.ios[index]) {
            (Some(min), _) => (min, true),
            (None, min) => (min?, false),
        };
        if ios == 0 {
            return None;
        }
        let Some((at, before)) = self.looks[index] else {
            self.looks[index] = Some((now, (ios, bytes)));
            return None;
        };
        let spent = now.saturating_sub(at);
        if spent < self.cycle {
            return None;
        }
        self.looks[index] = Some((now, (ios, bytes)));
        let moved = if is_bytes { bytes - before.1 } else { ios - before.0 };
        let got = u128::from(moved) * 1_000_000_000 / u128::from(spent.0);
        let got = got.try_into().unwrap_or(u64::MAX);
        let key = if is_bytes { "rate_min" } else { "rate_iops_min" };
        (got < min).then_some(Shortfall { direction, key, min, got })
    }
}
