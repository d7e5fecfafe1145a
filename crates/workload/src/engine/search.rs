//! `latency_target`: searches the greatest queue depth at which enough I/Os stay below a latency.
//!
//! The search is fio's (io_u.c, lat_target_*): from depth 1 the depth doubles with every window that
//! keeps the target; the first that misses it bounds the search, which then halves. With a
//! percentile of 100 the first slow I/O is a miss; one at depth 1 ends the job. When the depth moves
//! no more, one last window is measured at it, unless `latency_run` goes on.

use crate::fio::LatencyGoal;
use nandscape_rt::Nanos;

/// Windows in a row at the depth below a bad one, behind which the bad one is tried again.
const STABLE_WINDOWS: u32 = 3;

/// What a completed I/O means for the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Nothing, or another depth from now on.
    GoOn,
    /// The depth falls: all that is in flight comes back first.
    Drain,
    /// The depth is found: one last window, which alone counts.
    MeasureAlone,
    /// The last window is over.
    Found,
    /// Too slow even one at a time.
    Hopeless,
}

/// The search of one job.
#[derive(Clone, Debug)]
pub(super) struct Search {
    goal: LatencyGoal,
    depth_max: u32,
    depth: u32,
    low: u32,
    high: u32,
    stable_windows: u32,
    last_window: bool,
    /// Beginning of the window.
    began: Nanos,
    /// I/Os in it.
    ios: u64,
    /// Those beyond the target.
    slow_ios: u64,
}

impl Search {
    /// The search that `goal` asks for, if any.
    pub(super) fn new(goal: LatencyGoal, depth_max: u32) -> Option<Self> {
        (goal.target > Nanos::ZERO).then_some(Self {
            goal,
            depth_max,
            depth: 1,
            low: 1,
            high: depth_max,
            stable_windows: 0,
            last_window: false,
            began: Nanos::ZERO,
            ios: 0,
            slow_ios: 0,
        })
    }

    /// The depth that it stands at.
    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    /// A new window begins.
    pub(super) const fn begin_window(&mut self, now: Nanos) {
        (self.began, self.ios, self.slow_ios) = (now, 0, 0);
    }

    /// An I/O completed.
    pub(super) fn completed(&mut self, latency: Nanos, now: Nanos) -> Verdict {
        self.ios += 1;
        if latency > self.goal.target {
            self.slow_ios += 1;
            if self.goal.percentile >= 100.0 {
                return self.lower().map_or(Verdict::Hopeless, |()| Verdict::Drain);
            }
        }
        if now.saturating_sub(self.began) < self.goal.window {
            return Verdict::GoOn;
        }
        let kept = (self.ios - self.slow_ios) as f64 / self.ios as f64 * 100.0;
        if kept >= self.goal.percentile {
            return self.raise(now);
        }
        self.lower().map_or(Verdict::GoOn, |()| Verdict::Drain)
    }

    /// A smaller depth, unless it is 1.
    fn lower(&mut self) -> Option<()> {
        if self.depth == 1 {
            return None;
        }
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = u32::midpoint(self.depth, self.low);
        self.stable_windows = 0;
        Some(())
    }

    /// The window kept the target: a greater depth, or the end of the search.
    fn raise(&mut self, now: Nanos) -> Verdict {
        let depth = self.depth;
        self.low = depth;
        if depth + 1 == self.high {
            self.stable_windows += 1;
            if self.stable_windows >= STABLE_WINDOWS {
                (self.high, self.stable_windows) = (self.high + 1, 0);
            }
        }
        let next = if self.high == self.depth_max {
            depth.saturating_mul(2)
        } else {
            u32::midpoint(depth, self.high)
        };
        self.depth = next.min(self.depth_max);
        self.begin_window(now);
        if self.goal.goes_on || self.depth != depth {
            return Verdict::GoOn;
        }
        if std::mem::replace(&mut self.last_window, true) {
            Verdict::Found
        } else {
            Verdict::MeasureAlone
        }
    }
}
