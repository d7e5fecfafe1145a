//! How a job goes from one loop to the next, what it has left to transfer, and which of its writes a flush follows.

use super::{Job, State};
use crate::direction::Direction;
use crate::engine::plan::{self, Budget};
use crate::fio::Mix;
use crate::target::IoTarget;

impl Job {
    /// Begins a loop. As in fio, a flush that its writes so far ask for comes first, even if it was the last that the loop
    /// before did.
    pub(super) fn begin_loop(&mut self, target: &impl IoTarget) {
        self.all_bytes = self.bytes_to_come();
        self.loop_bytes = signed(self.plan.budget.loop_bytes).min(self.all_bytes);
        self.bytes_left = self.loop_bytes;
        self.issued_before = self.issued_in_all();
        if !self.spec.time_based && self.is_at_multiple() {
            self.flush_due = true;
        }
        self.end_flushed = false;
        self.reread = false;
        match &mut self.zoned {
            Some(zoned) => {
                self.draw.begin_pass(self.issued);
                zoned.restart();
            }
            None => self.draw.restart(target, self.plan.unit_bytes, self.issued),
        }
        self.enter(State::Issuing);
    }

    /// Whether a flush comes behind as many writes as there were, if any.
    fn is_at_multiple(&self) -> bool {
        let writes = self.issued[self.writing as usize];
        let every = [self.spec.fsync, self.spec.fdatasync].into_iter().filter(|n| *n > 0);
        writes > 0 && every.into_iter().any(|n| writes.is_multiple_of(n))
    }

    /// Whether reads may come between a flush and the next write.
    pub(super) fn flushes_behind_reads(&self) -> bool {
        self.spec.pattern.mix == Mix::ReadWrite
    }

    /// The next flush comes behind a write whose number is a multiple of `fsync` or `fdatasync`.
    pub(super) fn schedule_flush(&mut self) {
        let writes = self.issued[self.writing as usize];
        let every = [self.spec.fsync, self.spec.fdatasync].into_iter().filter(|n| *n > 0);
        let multiples = every.map(|n| (writes / n + 1).saturating_mul(n));
        self.flush_at = multiples.min().unwrap_or(u64::MAX);
    }

    /// The loop is over: whether another one follows at once.
    #[cold]
    pub(super) fn next_loop(&mut self, target: &impl IoTarget) -> bool {
        let pauses = plan::rereads(&self.spec) || self.flushes_at_the_end();
        if self.spec.time_based && self.has_issued() {
            self.begin_loop(target);
        } else if self.has_another_loop() && !pauses {
            self.loops_left = self.loops_left.saturating_sub(1).max(1);
            self.begin_loop(target);
        } else {
            self.enter(State::Draining);
        }
        self.state == State::Issuing
    }

    /// What is left for the loops behind this one.
    const fn bytes_to_come(&self) -> i64 {
        self.all_bytes - (self.loop_bytes - self.bytes_left)
    }

    pub(super) fn issued_in_all(&self) -> u64 {
        self.issued.iter().sum()
    }

    /// Whether this loop has issued anything: as in fio, one without is the last.
    fn has_issued(&self) -> bool {
        self.issued_in_all() > self.issued_before
    }

    /// Whether another loop follows this one, once it is over: one that `loops` asks for, or as much of `io_size` is left
    /// as the largest block has, as in fio (backend.c, `keep_running`).
    pub(super) fn has_another_loop(&self) -> bool {
        let Budget { bytes, goal_bytes, .. } = self.plan.budget;
        let to_come = self.bytes_to_come();
        // Of trimwrite, fio counts trims and writes here.
        let pairs = if self.spec.pattern.mix == Mix::TrimWrite { 2 } else { 1 };
        let transferred = (signed(bytes) - to_come).saturating_mul(pairs);
        let falls_short = transferred + signed(self.spec.largest_of_all()) <= signed(goal_bytes);
        let more = self.loops_left > 1 || (self.loops_left > 0 && falls_short);
        more && to_come > 0 && self.ios_left > 0 && self.has_issued()
    }

    /// The range is through, before this loop has transferred all that it might.
    pub(super) fn end_loop_early(&mut self) {
        self.loop_bytes -= self.bytes_left;
        self.bytes_left = 0;
    }

    /// `end_fsync` is for jobs that write, as in fio.
    pub(super) fn flushes_at_the_end(&self) -> bool {
        self.spec.end_fsync && self.spec.pattern.mix.has(Direction::Write)
    }
}

/// Bytes that may be counted below zero; more than any job transfers where there is no limit.
pub(super) const fn signed(bytes: u64) -> i64 {
    if bytes > i64::MAX as u64 { i64::MAX } else { bytes as i64 }
}
