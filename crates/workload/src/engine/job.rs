//! One job (one clone of a section) while it runs: what it may issue next, and what it has measured.
//!
//! A job begins, issues until its loop, its time or a failure ends that, drains, perhaps flushes and
//! reads again what it wrote, and then loops or ends. `open` sums up whether I/O may be issued
//! without a second look.

mod loops;
mod next_io;
mod report;
mod zoned;

pub(super) use next_io::NextIo;

use super::draw::Draw;
use super::governor::{Governor, Pause, ThinkTimeState};
use super::iolog::{Playback, WrittenLog};
use super::kind::Kind;
use super::min_rate::{MinRates, Shortfall};
use super::pace::Pacer;
use super::plan::{self, Plan};
use super::rates::{DEPTH_CLASSES, Rates, Totals, depth_class};
use super::reaper::Reaper;
use super::results::{FAILURES_MAX, Failure, FailureKind, JobResult};
use super::search::{Search, Verdict};
use super::shape::Shape;
use super::shared::Shared;
use super::zbd::{ZoneCounts, ZonedJob};
use crate::direction::Direction;
use crate::fio::{Counted, JobSpec, Mix};
use crate::target::IoTarget;
use loops::signed;
use nandscape_block::{Lba, SECTOR_BYTES};
use nandscape_rt::Nanos;
use report::Tally;
use std::ops::Range;

/// Where a job stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// For its stage, or for `startdelay` to pass.
    Waiting,
    Issuing,
    /// Nothing more of this loop; requests may still be in flight.
    Draining,
    /// Reading again what it wrote, from this sector of this file on.
    Rereading(usize, u64),
    Ended,
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

/// A running job.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) spec: JobSpec,
    pub(super) plan: Plan,
    pub(super) result: JobResult,
    /// From the beginning of its stage until it begins.
    pub(super) start_delay: Nanos,
    /// By [`Kind`].
    pub(super) shapes: [Shape; Kind::COUNT],
    /// Its unused slots.
    pub(super) free: Vec<u32>,
    pub(super) in_flight: u32,
    /// Length of the I/O that was taken last, in units.
    pub(super) units: u32,
    /// What `write_iolog` asks for.
    pub(super) log: Option<WrittenLog>,
    /// Where it follows write pointers.
    pub(super) zoned: Option<Box<ZonedJob>>,
    /// Its group among those that end when they are steady.
    pub(super) steady: Option<usize>,
    draw: Draw,
    pacer: Option<Pacer>,
    /// The direction that the mix asks for, while no direction is due.
    asked: Option<Direction>,
    governor: Option<Box<Governor>>,
    min_rates: Option<Box<MinRates>>,
    thinker: Option<ThinkTimeState>,
    state: State,
    open: bool,
    /// Of this loop, below zero by what its last I/O transfers beyond.
    bytes_left: i64,
    /// What this loop had at its beginning, and all loops from this one on.
    loop_bytes: i64,
    all_bytes: i64,
    /// I/Os before this loop.
    issued_before: u64,
    /// Of all loops.
    ios_left: u64,
    loops_left: u64,
    began: Nanos,
    /// From when on it is measured.
    counted: Nanos,
    ramp_end: Nanos,
    deadline: Nanos,
    issued: [u64; 3],
    /// The direction that counts as writing: trims, where a write follows each.
    writing: Direction,
    /// Number of the write behind which a flush is due.
    flush_at: u64,
    flush_due: bool,
    /// Each I/O is followed by one, until the next write is.
    flushes_again: bool,
    flushing: bool,
    /// I/Os in front of the last flush.
    issued_at_flush: u64,
    pause: Option<Pause>,
    end_flushed: bool,
    reread: bool,
    /// What is measured from here on is not in a report yet.
    cut_at: Nanos,
    tallies: [Tally; Kind::COUNT],
    rates: Rates,
    /// I/Os by the depth at which they were in flight.
    depths: [u64; DEPTH_CLASSES],
    /// I/Os that covered sectors in part, by direction.
    pub(super) unaligned: [u64; 3],
}

impl Job {
    /// The job of this index, which has not begun, with these shapes of I/O.
    pub(super) fn new(
        index: u32,
        spec: &JobSpec,
        mut plan: Plan,
        shapes: [Shape; Kind::COUNT],
        draw: Draw,
        pacer: Option<Pacer>,
    ) -> Self {
        let trims = spec.pattern.mix == Mix::TrimWrite;
        let governor = Governor::new(spec, index, plan.playback.take()).map(Box::new);
        let mut job = Self {
            result: JobResult {
                name: spec.name.clone(),
                description: spec.description.clone(),
                jobs: 1,
                direct_jobs: u32::from(spec.files.direct || spec.replays()),
                depth: spec.depth(),
                options: spec.options.clone(),
                ..JobResult::default()
            },
            start_delay: spec.start_delay.0,
            shapes,
            free: Vec::new(),
            in_flight: 0,
            units: 0,
            log: spec.write_iolog.clone().map(WrittenLog::new),
            zoned: plan
                .span
                .take()
                .map(|span| Box::new(ZonedJob::new(index, spec, span, draw.draws()))),
            steady: None,
            draw,
            pacer,
            asked: None,
            governor,
            min_rates: MinRates::new(spec).map(Box::new),
            thinker: ThinkTimeState::new(spec.thinking),
            state: State::Waiting,
            open: false,
            bytes_left: 0,
            loop_bytes: 0,
            all_bytes: signed(plan.budget.bytes),
            issued_before: 0,
            ios_left: plan.budget.ios,
            loops_left: plan.budget.loops,
            began: Nanos::ZERO,
            counted: Nanos::ZERO,
            ramp_end: Nanos::MAX,
            deadline: Nanos::MAX,
            issued: [0; 3],
            writing: if trims { Direction::Trim } else { Direction::Write },
            flush_at: u64::MAX,
            flush_due: false,
            flushes_again: false,
            flushing: false,
            issued_at_flush: 0,
            pause: None,
            end_flushed: false,
            reread: false,
            cut_at: Nanos::ZERO,
            tallies: Default::default(),
            rates: Rates::default(),
            depths: [0; DEPTH_CLASSES],
            unaligned: [0; 3],
            spec: spec.clone(),
            plan,
        };
        job.schedule_flush();
        job
    }

    /// Starts the clock of the job.
    pub(super) fn begin(&mut self, target: &impl IoTarget, shared: &mut Shared, now: Nanos) {
        self.began = now;
        self.counted = now;
        self.thinker.iter_mut().for_each(|thinker| thinker.restart(now));
        if let Some(governor) = &mut self.governor {
            governor.search.iter_mut().for_each(|search| search.begin_window(now));
            governor.member.iter().for_each(|member| shared.flows.join(member));
        }
        self.ramp_end = if self.spec.ramp_time.0 > 0 {
            now.saturating_add(self.spec.ramp_time)
        } else {
            self.rates = Rates::begin(now, Totals::default());
            Nanos::MAX
        };
        if let Some(runtime) = self.spec.runtime {
            self.deadline = now.saturating_add(self.spec.ramp_time).saturating_add(runtime);
        }
        self.begin_loop(target);
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.update();
    }

    fn update(&mut self) {
        let issuing = self.state == State::Issuing;
        let held = self.pause.is_some() || self.flush_due || self.flushing;
        self.open = issuing && !held && self.governor.is_none() && self.has_whole_sectors();
    }

    /// Whether its units are sectors of the device.
    pub(super) const fn has_whole_sectors(&self) -> bool {
        self.plan.unit_bytes == SECTOR_BYTES
    }

    pub(super) const fn is_governed(&self) -> bool {
        self.governor.is_some()
    }

    fn playback(&mut self) -> Option<&mut Playback> {
        self.governor.as_mut()?.playback.as_mut()
    }

    fn search(&mut self) -> Option<&mut Search> {
        self.governor.as_mut()?.search.as_mut()
    }

    pub(super) fn has_begun(&self) -> bool {
        self.state != State::Waiting
    }

    /// Time since it began.
    pub(super) const fn since_began(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.began)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Whether a failure ended it.
    pub(super) const fn has_failed(&self) -> bool {
        self.result.ended_by_failure
    }

    /// Whether nothing but the passing of time can end it.
    pub(super) fn ends_by_time_only(&self) -> bool {
        self.state == State::Ended || (self.spec.time_based && !self.spec.replays())
    }

    /// No more I/O but what `end_fsync` and `verify` ask for.
    fn stop(&mut self) {
        self.loops_left = 0;
        self.enter(State::Draining);
    }

    /// Others end it: what is in flight comes back, and nothing more is issued but what `end_fsync` asks for.
    pub(super) fn terminate(&mut self) {
        (self.flush_due, self.pause, self.reread) = (false, None, true);
        self.stop();
    }

    /// Others end it before it has begun.
    pub(super) fn skip(&mut self, now: Nanos) {
        (self.began, self.counted) = (now, now);
        self.end(now);
    }

    /// An I/O completed.
    #[inline]
    pub(super) fn completed(&mut self, kind: Kind, units: u32, latency: Nanos, now: Nanos) {
        if now >= self.ramp_end {
            self.end_ramp(now);
        }
        if now >= self.rates.due() {
            self.close_window(now);
        }
        self.depths[depth_class(self.in_flight)] += 1;
        let tally = &mut self.tallies[kind as usize];
        tally.units += u64::from(units);
        tally.latencies.record(latency);
    }

    /// Judges how long a completed I/O took, where the job has limits.
    pub(super) fn judge(&mut self, kind: Kind, lba: Lba, latency: Nanos, now: Nanos) {
        if !kind.is_io() {
            return;
        }
        let allowed = self.spec.max_latency[kind.direction() as usize];
        if let Some(max) = allowed.filter(|max| latency > *max) {
            let what = FailureKind::TooSlow { op: kind.name(), latency, max };
            self.fail(now, lba, kind, what);
        }
        self.check_min_rates(kind, lba, now);
        let judged = self.ramp_end == Nanos::MAX || now >= self.ramp_end;
        if self.state == State::Issuing && self.pause.is_none() && judged {
            let verdict = self.search().map(|search| search.completed(latency, now));
            self.heed(verdict.unwrap_or(Verdict::GoOn), kind, lba, latency, now);
        }
    }

    /// Fails where it is below a rate that it must keep.
    fn check_min_rates(&mut self, kind: Kind, lba: Lba, now: Nanos) {
        let (totals, since_began) = (self.all_totals(), self.since_began(now));
        let missed = self.min_rates.as_mut().and_then(|min| min.check(totals, since_began, now));
        if let Some(Shortfall { direction, key, min, got }) = missed {
            let what = FailureKind::TooSlowRate { key, op: direction.name(), min, got };
            self.fail(now, lba, kind, what);
        }
    }

    /// Does what the search for a depth asks for.
    fn heed(&mut self, verdict: Verdict, kind: Kind, lba: Lba, latency: Nanos, now: Nanos) {
        match verdict {
            Verdict::GoOn => {}
            Verdict::Drain => self.pause = Some(Pause::new(Nanos::ZERO)),
            Verdict::MeasureAlone => {
                self.pause = Some(Pause { forgets: true, ..Pause::new(Nanos::ZERO) });
            }
            Verdict::Found => self.stop(),
            Verdict::Hopeless => {
                let max = self.spec.goal.target;
                self.fail(now, lba, kind, FailureKind::TooSlow { op: kind.name(), latency, max });
            }
        }
    }

    #[cold]
    fn close_window(&mut self, now: Nanos) {
        let totals = self.all_totals();
        self.rates.close(now, totals);
    }

    fn all_totals(&self) -> Totals {
        Direction::ALL.map(|direction| self.totals(direction))
    }

    /// When it began to count.
    pub(super) fn counted_from(&self) -> Nanos {
        self.counted
    }

    /// Whether what completes does not count yet.
    pub(super) fn is_ramping(&self) -> bool {
        self.ramp_end != Nanos::MAX
    }

    /// An I/O that is not plain left its slot, completed or failed: `fsync` returns, or the job
    /// thinks before it goes on.
    pub(super) fn returned(&mut self, kind: Kind, bytes: &Range<u64>, now: Nanos) {
        let overlaps = self.governor.as_mut().and_then(|governor| governor.overlaps.as_mut());
        overlaps.into_iter().for_each(|overlaps| overlaps.completed(bytes));
        match kind {
            Kind::Sync => self.flushing = false,
            Kind::Reset => {}
            _ => self.think(Counted::Completed, now),
        }
        self.update();
    }

    /// A slot is back: whether it stays where it is, because the job takes it back later, together
    /// with others.
    pub(super) fn leaves(&mut self, slot: u32, kind: Kind) -> bool {
        let flushes = kind == Kind::Sync || self.flush_due || self.flushing;
        let idle = flushes || self.pause.is_some() || self.state != State::Issuing;
        let in_flight = self.in_flight;
        let Some(governor) = &mut self.governor else { return false };
        let full = governor.is_full(in_flight);
        let due = governor.reaper.as_mut().map(|reaper| reaper.is_due(slot, in_flight, full));
        due == Some(false) && !idle
    }

    fn reaper(&mut self) -> Option<&mut Reaper> {
        self.governor.as_mut()?.reaper.as_mut()
    }

    /// The slots that are taken back together, if the job does so; [`Job::taken`] must follow.
    pub(super) fn take_back(&mut self) -> Option<Vec<u32>> {
        self.reaper().map(Reaper::take)
    }

    /// They have been taken back.
    pub(super) fn taken(&mut self, slots: Vec<u32>) {
        let in_flight = self.in_flight;
        if let Some(reaper) = self.reaper() {
            reaper.taken(slots, in_flight);
        }
    }

    /// The ramp is over.
    #[cold]
    fn end_ramp(&mut self, now: Nanos) {
        self.ramp_end = Nanos::MAX;
        self.count_from(self.began.saturating_add(self.spec.ramp_time));
        self.search().into_iter().for_each(|search| search.begin_window(now));
    }

    /// What was measured before `now` does not count.
    fn count_from(&mut self, now: Nanos) {
        self.counted = now;
        self.forget(now);
    }

    /// What was measured so far is in a report, or in none.
    fn forget(&mut self, now: Nanos) {
        self.zoned.iter_mut().for_each(|zoned| zoned.counts = ZoneCounts::default());
        self.tallies.iter_mut().for_each(Tally::forget);
        self.depths = [0; DEPTH_CLASSES];
        self.unaligned = [0; 3];
        self.rates = Rates::begin(now, self.all_totals());
    }

    /// A failure: noted, and unless it is tolerated the end of the job.
    #[cold]
    pub(super) fn fail(&mut self, at: Nanos, lba: Lba, kind: Kind, what: FailureKind) {
        let tolerated = match (&what, kind) {
            (FailureKind::Mismatch { .. }, _) => self.spec.tolerated.verify,
            (FailureKind::TooSlow { .. } | FailureKind::TooSlowRate { .. }, _) => false,
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
            self.pause = None;
            self.enter(State::Draining);
        }
    }

    /// Nothing is in flight: what now?
    #[cold]
    pub(super) fn idle(&mut self, target: &impl IoTarget, now: Nanos) -> Idle {
        match self.state {
            State::Issuing if self.pause.is_some() => self.rest(now),
            // One that has ended may still be woken, by a flow or a zone that it waited for.
            State::Issuing | State::Waiting | State::Rereading(..) | State::Ended => Idle::Wait,
            State::Draining => self.drained(target, now),
        }
    }

    /// Begins the pause that is due, or waits for its end.
    fn rest(&mut self, now: Nanos) -> Idle {
        let Some(pause) = &mut self.pause else { return Idle::Issue };
        let until = *pause.until.get_or_insert(now.saturating_add(pause.length).min(self.deadline));
        if until > now {
            return Idle::Wake(until);
        }
        self.end_pause(now);
        Idle::Issue
    }

    fn end_pause(&mut self, now: Nanos) {
        let Some(pause) = self.pause.take() else { return };
        if pause.forgets {
            self.count_from(now);
        }
        if let Some(pacer) = self.pacer.as_mut().filter(|_| self.spec.rate_ignores_thinking) {
            pacer.pause(pause.length);
        }
        self.thinker.iter_mut().for_each(|thinker| thinker.restart(now));
        self.search().into_iter().for_each(|search| search.begin_window(now));
        self.update();
    }

    fn drained(&mut self, target: &impl IoTarget, now: Nanos) -> Idle {
        if !self.has_failed() {
            if self.flushes_at_the_end() && !std::mem::replace(&mut self.end_flushed, true) {
                // As in fio, not behind another one.
                self.flush_due = self.issued_at_flush < self.issued_in_all();
            }
            if self.flush_due {
                return Idle::Issue;
            }
            if plan::rereads(&self.spec) && !std::mem::replace(&mut self.reread, true) {
                self.enter(State::Rereading(0, 0));
                return Idle::Issue;
            }
            if self.has_another_loop() {
                self.loops_left = self.loops_left.saturating_sub(1).max(1);
                self.begin_loop(target);
                return Idle::Issue;
            }
        }
        self.end(now);
        Idle::Ended
    }

    /// A timer went off, or others of its flow went on.
    pub(super) fn woken(&mut self, now: Nanos) {
        let until = self.pause.and_then(|pause| pause.until);
        if until.is_some_and(|until| until <= now) {
            self.end_pause(now);
        }
    }

    /// It has ended: others of its flow need not wait for it.
    pub(super) fn leave(&self, shared: &mut Shared) {
        let member = self.governor.as_ref().and_then(|governor| governor.member.as_ref());
        member.into_iter().for_each(|member| shared.flows.leave(member));
    }

    fn end(&mut self, now: Nanos) {
        self.enter(State::Ended);
        if self.ramp_end != Nanos::MAX {
            self.end_ramp(now);
        }
        self.result.set_time(self.counted, now);
        self.result.latency_depth = self.search().map(|search| search.depth());
        let since_began = self.since_began(now);
        self.log.iter_mut().for_each(|log| log.end(since_began));
    }
}
