//! What a job measures, and its reports.

use super::{Job, State};
use crate::direction::Direction;
use crate::engine::iolog::WrittenLog;
use crate::engine::kind::Kind;
use crate::engine::results::JobResult;
use crate::engine::zbd::ZoneCounts;
use crate::latency::{Latencies, LatencyTotals};
use nandscape_rt::Nanos;

/// I/Os of one kind.
#[derive(Clone, Default, Debug)]
pub(super) struct Tally {
    /// Behind the ramp.
    pub(super) latencies: Latencies,
    pub(super) units: u64,
    /// I/Os and units under the ramp.
    ramp_ios: u64,
    ramp_units: u64,
    /// Latencies under the ramp.
    ramp: LatencyTotals,
}

impl Tally {
    /// What was measured so far does not count.
    pub(super) fn forget(&mut self) {
        let latencies = std::mem::take(&mut self.latencies);
        self.ramp_ios += latencies.count();
        self.ramp.add(&latencies);
        self.ramp_units += std::mem::take(&mut self.units);
    }
}

impl Job {
    /// I/Os and bytes of a direction, the ramp included.
    pub(in crate::engine) fn totals(&self, direction: Direction) -> (u64, u64) {
        let mut totals = (0, 0);
        for kind in Kind::ALL.into_iter().filter(|k| k.is_io() && k.direction() == direction) {
            let tally = &self.tallies[kind as usize];
            let ios = tally.ramp_ios + tally.latencies.count();
            totals.0 += ios;
            totals.1 += (tally.ramp_units + tally.units) * self.plan.unit_bytes;
        }
        totals
    }

    /// Adds its latencies by direction, then those of its flushes, the ramp included.
    pub(in crate::engine) fn add_latencies(&self, totals: &mut [LatencyTotals; 4]) {
        let [directions @ .., sync] = totals;
        for (kind, tally) in Kind::ALL.into_iter().zip(&self.tallies) {
            let of_kind = match kind {
                Kind::Reset => continue,
                Kind::Sync => &mut *sync,
                _ => &mut directions[kind.direction() as usize],
            };
            of_kind.merge(&tally.ramp);
            of_kind.add(&tally.latencies);
        }
    }

    /// What it measured since the last cut, or since it began, failures left out: they stay for the
    /// end. A ramp is over.
    pub(in crate::engine) fn cut(&mut self, now: Nanos) -> JobResult {
        let since = self.counted.max(std::mem::replace(&mut self.cut_at, now));
        let mut result = JobResult {
            name: self.result.name.clone(),
            group: self.result.group,
            jobs: 1,
            ..JobResult::default()
        };
        result.set_time(since, now);
        self.report(&mut result);
        self.ramp_end = Nanos::MAX;
        self.forget(now);
        result
    }

    /// What it measured; a job that has not ended is counted up to `now`.
    pub(in crate::engine) fn into_result(mut self, now: Nanos) -> (JobResult, Option<WrittenLog>) {
        if !matches!(self.state, State::Ended | State::Waiting) {
            self.end(now);
        }
        let mut result = std::mem::take(&mut self.result);
        self.report(&mut result);
        (result, self.log)
    }

    /// Adds up what was measured and not forgotten.
    fn report(&self, result: &mut JobResult) {
        result.depths = self.depths;
        result.set_rates(self.rates.clone(), self.all_totals());
        if let Some(zoned) = &self.zoned {
            let latency = &self.tallies[Kind::Reset as usize].latencies;
            let counts = ZoneCounts { reset_latency: latency.clone(), ..zoned.counts.clone() };
            result.zones = Some(counts);
        }
        result.unaligned = self.unaligned;
        for (kind, tally) in Kind::ALL.into_iter().zip(&self.tallies) {
            match kind {
                Kind::Sync => result.sync.merge(&tally.latencies),
                Kind::Reset => {}
                _ => {
                    let direction = &mut result.directions[kind.direction() as usize];
                    direction.ios += tally.latencies.count();
                    direction.bytes += tally.units * self.plan.unit_bytes;
                    direction.latency.merge(&tally.latencies);
                }
            }
        }
    }
}
