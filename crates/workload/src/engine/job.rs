//! One job (one clone of a section) while it runs: what it may issue next, and what it has measured.
//!
//! A job begins, issues until its loop, its time or a failure ends that, drains, perhaps flushes and
//! reads again what it wrote, and then loops or ends. `open` sums up whether I/O may be issued
//! without a second look.

use super::draw::{Draw, Next};
use super::latency::Latencies;
use super::latency_totals::LatencyTotals;
use super::plan::{self, Plan};
use super::results::{FAILURES_MAX, Failure, FailureKind, JobResult};
use super::shadow::Shadow;
use super::shape::{Kind, Shape};
use crate::fio::{Direction, JobSpec, Mix};
use nandscape_block::{BlockDevice, Lba};
use nandscape_rt::Nanos;

/// Where a job stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// For its stage, or for `startdelay` to pass.
    Waiting,
    Issuing,
    /// Nothing more of this loop; requests may still be in flight.
    Draining,
    /// Reading again what it wrote, from this block on.
    Rereading(u64),
    Ended,
}

/// What a job wants to do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    Io(Next),
    /// Read again this block of what it wrote.
    Reread(Lba),
    Flush,
    /// Nothing before this instant.
    Wake(Nanos),
    /// Nothing before something of its own completes.
    Nothing,
}

/// What a job does when nothing of it is in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Idle {
    Issue,
    Wake(Nanos),
    /// It waits for a timer that is already set.
    Wait,
    Ended,
}

/// I/Os of one kind.
#[derive(Clone, Default, Debug)]
struct Tally {
    /// Behind the ramp.
    latencies: Latencies,
    /// I/Os under the ramp.
    ramp_ios: u64,
    /// Their latencies.
    ramp: LatencyTotals,
}

/// A running job.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) spec: JobSpec,
    pub(super) plan: Plan,
    pub(super) result: JobResult,
    /// By [`Kind`].
    pub(super) shapes: [Shape; 5],
    /// Its unused slots.
    pub(super) free: Vec<u32>,
    pub(super) in_flight: u32,
    draw: Draw,
    state: State,
    open: bool,
    bytes_left: u64,
    ios_left: u64,
    loops_left: u64,
    began: Nanos,
    ramp_end: Nanos,
    deadline: Nanos,
    issued: [u64; 3],
    /// The direction that counts as writing: trims, where a write follows each.
    writing: Direction,
    /// Number of the write behind which a flush is due.
    flush_at: u64,
    flush_due: bool,
    flushing: bool,
    thinking: bool,
    end_flushed: bool,
    reread: bool,
    tallies: [Tally; 5],
}

impl Job {
    /// A job that has not begun, with these shapes of I/O.
    pub(super) fn new(spec: &JobSpec, plan: Plan, shapes: [Shape; 5], draw: Draw) -> Self {
        let trims = spec.pattern.mix == Mix::TrimWrite;
        let mut job = Self {
            result: JobResult {
                name: spec.name.clone(),
                description: spec.description.clone(),
                jobs: 1,
                ..JobResult::default()
            },
            shapes,
            free: Vec::new(),
            in_flight: 0,
            draw,
            state: State::Waiting,
            open: false,
            bytes_left: 0,
            ios_left: 0,
            loops_left: spec.loops,
            began: Nanos::ZERO,
            ramp_end: Nanos::MAX,
            deadline: Nanos::MAX,
            issued: [0; 3],
            writing: if trims { Direction::Trim } else { Direction::Write },
            flush_at: u64::MAX,
            flush_due: false,
            flushing: false,
            thinking: false,
            end_flushed: false,
            reread: false,
            tallies: Default::default(),
            spec: spec.clone(),
            plan,
        };
        job.schedule_flush();
        job
    }

    /// Starts the clock of the job.
    pub(super) fn begin(&mut self, device: &impl BlockDevice, now: Nanos) {
        self.began = now;
        self.ramp_end = if self.spec.ramp_time.0 > 0 {
            now.saturating_add(self.spec.ramp_time)
        } else {
            Nanos::MAX
        };
        if let Some(runtime) = self.spec.runtime {
            self.deadline = now.saturating_add(self.spec.ramp_time).saturating_add(runtime);
        }
        self.begin_loop(device);
    }

    fn begin_loop(&mut self, device: &impl BlockDevice) {
        self.bytes_left = self.plan.loop_bytes;
        self.ios_left = self.plan.loop_ios;
        self.end_flushed = false;
        self.reread = false;
        self.draw.restart(device);
        self.enter(State::Issuing);
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.update();
    }

    fn update(&mut self) {
        let issuing = self.state == State::Issuing;
        self.open = issuing && !self.thinking && !self.flush_due && !self.flushing;
    }

    pub(super) fn has_begun(&self) -> bool {
        self.state != State::Waiting
    }

    /// Whether a failure ended it.
    pub(super) const fn has_failed(&self) -> bool {
        self.result.ended_by_failure
    }

    /// Whether nothing but the passing of time can end it.
    pub(super) fn ends_by_time_only(&self) -> bool {
        self.state == State::Ended || self.spec.time_based
    }

    /// What to do with a free slot now. An I/O that is returned has been taken.
    #[inline(always)]
    pub(super) fn wish(
        &mut self,
        device: &impl BlockDevice,
        shadow: Option<&Shadow>,
        now: Nanos,
    ) -> Wish {
        if !self.open {
            return self.wish_closed(shadow);
        }
        if now >= self.deadline {
            self.stop();
            return Wish::Nothing;
        }
        if (self.bytes_left == 0 || self.ios_left == 0) && !self.next_loop(device) {
            return Wish::Nothing;
        }
        let next = self.draw.peek();
        let direction = next.direction as usize;
        if let Some(pace) = &self.plan.pace {
            let due = self.began.saturating_add(pace[direction].due(self.issued[direction]));
            if due > now {
                return Wish::Wake(due.min(self.deadline));
            }
        }
        self.draw.take(device);
        self.bytes_left = self.bytes_left.saturating_sub(self.spec.block_bytes[direction]);
        self.ios_left -= 1;
        self.issued[direction] += 1;
        if next.direction == self.writing && self.issued[direction] == self.flush_at {
            self.flush_due = true;
            self.schedule_flush();
            self.update();
        }
        Wish::Io(next)
    }

    #[cold]
    fn wish_closed(&mut self, shadow: Option<&Shadow>) -> Wish {
        if self.thinking || self.flushing {
            return Wish::Nothing;
        }
        if self.flush_due {
            self.flush_due = false;
            self.flushing = true;
            return Wish::Flush;
        }
        match (self.state, shadow) {
            (State::Rereading(block), Some(shadow)) => self.wish_reread(shadow, block),
            _ => Wish::Nothing,
        }
    }

    fn wish_reread(&mut self, shadow: &Shadow, block: u64) -> Wish {
        let range = &self.plan.range;
        let sectors = u64::from(range.block_sectors[Direction::Write as usize]);
        let blocks = range.sectors / sectors;
        let block = shadow.next_written(range.base, sectors, block, blocks);
        if block == blocks {
            self.enter(State::Draining);
            return Wish::Nothing;
        }
        let lba = Lba(range.base + block * sectors);
        self.enter(State::Rereading(block + 1));
        Wish::Reread(lba)
    }

    /// The next flush comes behind a write whose number is a multiple of `fsync` or `fdatasync`.
    fn schedule_flush(&mut self) {
        let writes = self.issued[self.writing as usize];
        let every = [self.spec.fsync, self.spec.fdatasync].into_iter().filter(|n| *n > 0);
        let multiples = every.map(|n| (writes / n + 1).saturating_mul(n));
        self.flush_at = multiples.min().unwrap_or(u64::MAX);
    }

    /// The loop is over: whether another one follows at once.
    #[cold]
    fn next_loop(&mut self, device: &impl BlockDevice) -> bool {
        let pauses = plan::rereads(&self.spec) || self.spec.end_fsync;
        if self.spec.time_based {
            self.begin_loop(device);
        } else if self.loops_left > 1 && !pauses {
            self.loops_left -= 1;
            self.begin_loop(device);
        } else {
            self.enter(State::Draining);
        }
        self.open
    }

    /// No more I/O but what `end_fsync` and `verify` ask for.
    fn stop(&mut self) {
        self.loops_left = 1;
        self.enter(State::Draining);
    }

    /// An I/O completed.
    #[inline]
    pub(super) fn completed(&mut self, kind: Kind, latency: Nanos, now: Nanos) {
        if now >= self.ramp_end {
            self.end_ramp();
        }
        self.tallies[kind as usize].latencies.record(latency);
    }

    /// An I/O that is not plain left its slot, completed or failed: `fsync` returns, or the job
    /// thinks before it goes on.
    pub(super) fn returned(&mut self, kind: Kind) {
        if kind == Kind::Sync {
            self.flushing = false;
        } else if self.state == State::Issuing {
            self.thinking = self.spec.thinktime.0 > 0;
        }
        self.update();
    }

    /// What was measured so far does not count.
    #[cold]
    fn end_ramp(&mut self) {
        self.ramp_end = Nanos::MAX;
        for tally in &mut self.tallies {
            let ramp = std::mem::take(&mut tally.latencies);
            tally.ramp_ios = ramp.count();
            tally.ramp.add(&ramp);
        }
    }

    /// A failure: noted, and unless it is tolerated the end of the job.
    #[cold]
    pub(super) fn fail(&mut self, at: Nanos, lba: Lba, kind: Kind, what: FailureKind) {
        let tolerated = match (&what, kind) {
            (FailureKind::Mismatch { .. }, _) => self.spec.tolerated.verify,
            (FailureKind::Io(..), kind) => self.spec.tolerated.io[kind.direction() as usize],
        };
        self.result.errors += 1;
        if self.result.failures.len() < FAILURES_MAX {
            let job = self.spec.name.clone();
            self.result.failures.push(Failure { job, at, lba, what });
        }
        if !tolerated {
            self.result.ended_by_failure = true;
            self.flush_due = false;
            self.thinking = false;
            self.enter(State::Draining);
        }
    }

    /// Nothing is in flight: what now?
    #[cold]
    pub(super) fn idle(&mut self, device: &impl BlockDevice, now: Nanos) -> Idle {
        match self.state {
            State::Issuing if self.thinking => {
                Idle::Wake(now.saturating_add(self.spec.thinktime).min(self.deadline))
            }
            State::Issuing | State::Waiting | State::Rereading(_) => Idle::Wait,
            State::Draining => self.drained(device, now),
            State::Ended => Idle::Ended,
        }
    }

    fn drained(&mut self, device: &impl BlockDevice, now: Nanos) -> Idle {
        if !self.has_failed() {
            if self.spec.end_fsync && !std::mem::replace(&mut self.end_flushed, true) {
                self.flush_due = true;
            }
            if self.flush_due {
                return Idle::Issue;
            }
            if plan::rereads(&self.spec) && !std::mem::replace(&mut self.reread, true) {
                self.enter(State::Rereading(0));
                return Idle::Issue;
            }
            self.loops_left -= 1;
            if self.loops_left > 0 {
                self.begin_loop(device);
                return Idle::Issue;
            }
        }
        self.end(now);
        Idle::Ended
    }

    /// Its timer went off. While something is in flight that is not the timer of `thinktime`.
    pub(super) fn woken(&mut self) {
        if self.in_flight == 0 {
            self.thinking = false;
            self.update();
        }
    }

    fn end(&mut self, now: Nanos) {
        self.enter(State::Ended);
        if self.ramp_end != Nanos::MAX {
            self.end_ramp();
        }
        let counted = self.began.saturating_add(self.spec.ramp_time);
        self.result.runtime = now.saturating_sub(counted);
    }

    /// I/Os and bytes of a direction, the ramp included.
    pub(super) fn totals(&self, direction: Direction) -> (u64, u64) {
        let mut totals = (0, 0);
        for kind in Kind::ALL.into_iter().filter(|k| *k != Kind::Sync && k.direction() == direction)
        {
            let tally = &self.tallies[kind as usize];
            let ios = tally.ramp_ios + tally.latencies.count();
            totals.0 += ios;
            totals.1 += ios * self.shapes[kind as usize].bytes();
        }
        totals
    }

    /// Adds its latencies by direction, then those of its flushes, the ramp included.
    pub(super) fn add_latencies(&self, totals: &mut [LatencyTotals; 4]) {
        let [directions @ .., sync] = totals;
        for (kind, tally) in Kind::ALL.into_iter().zip(&self.tallies) {
            let of_kind = match kind {
                Kind::Sync => &mut *sync,
                _ => &mut directions[kind.direction() as usize],
            };
            of_kind.merge(&tally.ramp);
            of_kind.add(&tally.latencies);
        }
    }

    /// What it measured; a job that has not ended is counted up to `now`.
    pub(super) fn into_result(mut self, now: Nanos) -> JobResult {
        if !matches!(self.state, State::Ended | State::Waiting) {
            self.end(now);
        }
        for (kind, tally) in Kind::ALL.into_iter().zip(self.tallies) {
            if kind == Kind::Sync {
                self.result.sync = tally.latencies;
                continue;
            }
            let direction = &mut self.result.directions[kind.direction() as usize];
            direction.ios += tally.latencies.count();
            direction.bytes += tally.latencies.count() * self.shapes[kind as usize].bytes();
            direction.latency.merge(&tally.latencies);
        }
        self.result
    }
}
