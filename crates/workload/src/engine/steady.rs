//! `steadystate`: jobs end when their rate is steady.
//!
//! The criterion is fio's (steadystate.c): over a window of intervals, the largest deviation from the mean, or
//! the slope of the least-squares line through the samples, is below a limit. Jobs of a group with
//! `group_reporting` are judged together. In virtual time an interval ends exactly when it should, with what
//! completed before.

use super::Engine;
use super::job::Job;
use super::results::{SteadyResult, SteadySample};
use crate::direction::Direction;
use crate::fio::{SteadyCriterion, SteadyRule};
use nandscape_rt::Nanos;
use std::collections::VecDeque;

/// Jobs that are judged together.
#[derive(Clone, Debug)]
pub(super) struct SteadyGroup {
    jobs: Vec<usize>,
    interval: Nanos,
    ramp: Nanos,
    intervals: usize,
    /// When the current interval ends; before the first one of them begins, never.
    due: Nanos,
    /// I/Os and bytes at the end of the last interval, once one has ended.
    last: Option<(u64, u64)>,
    samples: VecDeque<SteadySample>,
    result: SteadyResult,
}

impl SteadyGroup {
    fn new(rule: &SteadyRule) -> Option<Self> {
        let (criterion, intervals) = (rule.criterion?, rule.window()?);
        Some(Self {
            jobs: Vec::new(),
            interval: rule.interval.max(Nanos(1)),
            ramp: rule.ramp,
            intervals: intervals as usize,
            due: Nanos::MAX,
            last: None,
            samples: VecDeque::new(),
            result: SteadyResult {
                criterion,
                duration: rule.duration,
                attained: false,
                deviation: 0.0,
                slope: 0.0,
                value: 0.0,
                window: Vec::new(),
            },
        })
    }

    /// The groups of these jobs, each of which learns its own.
    pub(super) fn of(jobs: &mut [Job]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        let mut last = None;
        for (index, job) in jobs.iter_mut().enumerate() {
            let merges = job.spec.group_reporting.then_some(job.result.group);
            let same = merges.is_some() && last == Some((merges, job.spec.steady));
            if !same {
                let Some(group) = Self::new(&job.spec.steady) else { continue };
                groups.push(group);
                last = Some((merges, job.spec.steady));
            }
            job.steady = Some(groups.len() - 1);
            groups.iter_mut().next_back().into_iter().for_each(|group| group.jobs.push(index));
        }
        groups
    }

    /// Jobs have reached these totals where an interval ends; whether they are steady.
    fn close(&mut self, (ios, bytes): (u64, u64)) -> bool {
        self.due = self.due.saturating_add(self.interval);
        let Some(before) = self.last.replace((ios, bytes)) else { return false };
        let per_second = |count: u64| count as f64 / self.interval.as_secs_f64();
        let iops = per_second(ios - before.0);
        let bandwidth = per_second(bytes - before.1);
        if self.samples.len() == self.intervals {
            self.samples.pop_front();
        }
        self.samples.push_back(SteadySample { iops, bandwidth });
        self.samples.len() == self.intervals && self.judge()
    }

    /// Compares a full window with the limit.
    fn judge(&mut self) -> bool {
        let SteadyCriterion { bandwidth, slope, percent, limit } = self.result.criterion;
        let value = |sample: &SteadySample| if bandwidth { sample.bandwidth } else { sample.iops };
        let values: Vec<f64> = self.samples.iter().map(value).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let middle = (count - 1.0) / 2.0;
        let rise = |(x, y): (usize, &f64)| (x as f64 - middle) * (y - mean);
        let squares = (0..values.len()).map(|x| (x as f64 - middle) * (x as f64 - middle));
        let steepness = values.iter().enumerate().map(rise).sum::<f64>() / squares.sum::<f64>();
        let deviation = values.iter().map(|y| (y - mean).abs()).fold(0.0, f64::max);
        let measure = if slope { steepness.abs() } else { deviation };
        let measure = if percent { 100.0 * measure / mean } else { measure };
        let result = &mut self.result;
        (result.deviation, result.slope, result.value) = (deviation, steepness, measure);
        result.attained = measure < limit;
        result.attained
    }

    /// What was found.
    pub(super) fn result(&self) -> SteadyResult {
        SteadyResult { window: self.samples.iter().copied().collect(), ..self.result.clone() }
    }
}

impl<S> Engine<S> {
    /// A job begins: intervals do with the first of its group.
    pub(super) fn begin_steady(&mut self, index: usize) {
        let Some(at) = self.jobs[index].steady else { return };
        let group = &mut self.steady[at];
        group.due = group.due.min(self.now.saturating_add(group.ramp));
    }

    /// Closes the intervals that ended before this completion; a group that is steady ends.
    #[cold]
    pub(super) fn check_steady(&mut self, at: usize) {
        if self.now < self.steady[at].due || self.steady[at].result.attained {
            return;
        }
        let totals = self.steady[at]
            .jobs
            .iter()
            .flat_map(|index| Direction::ALL.map(|direction| self.jobs[*index].totals(direction)));
        let totals = totals.fold((0, 0), |sum, job| (sum.0 + job.0, sum.1 + job.1));
        let group = &mut self.steady[at];
        let passed = self.now.saturating_sub(group.due).0 / group.interval.0;
        // Of a long time without completions, the window is enough.
        let skipped = passed.saturating_sub(group.intervals as u64 + 1);
        group.due = group.due.saturating_add(Nanos(group.interval.0.saturating_mul(skipped)));
        while self.now >= self.steady[at].due {
            if self.steady[at].close(totals) {
                let jobs = self.steady[at].jobs.clone();
                return jobs.into_iter().for_each(|index| self.terminate(index));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(criterion: SteadyCriterion) -> SteadyGroup {
        let second = Nanos::from_secs(1);
        let duration = Nanos::from_secs(4);
        let rule = SteadyRule {
            criterion: Some(criterion),
            duration,
            ramp: Nanos::ZERO,
            interval: second,
        };
        SteadyGroup { due: Nanos::ZERO, ..SteadyGroup::new(&rule).unwrap() }
    }

    /// Intervals up to the one that is steady.
    fn steady_after(criterion: SteadyCriterion, ios: &[u64]) -> Option<usize> {
        let (mut group, mut all) = (group(criterion), 0);
        assert!(!group.close((0, 0)), "the first only begins");
        ios.iter().position(|more| {
            all += more;
            group.close((all, all * 4096))
        })
    }

    /// The window must be full, and the largest deviation or the slope below the limit.
    #[test]
    fn a_full_window_is_judged() {
        let iops = SteadyCriterion { bandwidth: false, slope: false, percent: true, limit: 10.0 };
        let falling = [200, 150, 120, 110, 105, 100, 100, 100];
        assert_eq!(steady_after(iops, &falling), Some(6), "110 is 6 % above 103.75");
        let exact = SteadyCriterion { percent: false, limit: 5.0, ..iops };
        assert_eq!(steady_after(exact, &falling), Some(7));
        let slope = SteadyCriterion { slope: true, limit: 1.0, ..iops };
        assert_eq!(steady_after(slope, &[100, 200, 200, 100]), Some(3), "a slope of zero");
        assert_eq!(steady_after(slope, &[100, 200, 300, 400, 500]), None);
        let bytes = SteadyCriterion { bandwidth: true, percent: false, limit: 4097.0, ..iops };
        assert_eq!(steady_after(bytes, &[100, 100, 100, 101]), Some(3));
        assert_eq!(steady_after(iops, &[0; 8]), None, "no I/O is not steady");
    }
}
