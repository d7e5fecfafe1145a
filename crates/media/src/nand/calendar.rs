//! Read priority and suspension: a unit's calendar of programs and erases that reads may go ahead of.
//!
//! A read begins at once on an idle unit. Otherwise it waits for the operation in progress, or
//! suspends it, and everything behind it moves back by as much as the read takes. The calendar is
//! exact: at any instant a unit does one thing, no work is lost, and whatever is submitted later
//! begins behind all of it. Only what was said cannot be unsaid: the completion of an operation is
//! reported when it is submitted, so one that reads overtake later is reported early by the time that they took.
//! That is bounded: behind an operation that is late by [`NandTiming::max_read_preemption_ns`] reads wait their turn,
//! so that no completion is reported earlier than that, one read and one suspension.
//!
//! An operation is suspended only if what is left of it takes longer than suspending it. Reads that
//! come while it is suspended go ahead too, without another suspension. Channel transfers of what
//! moves back keep their places. After: Wu and He, Reducing SSD read latency via NAND flash program
//! and erase suspension (FAST '12); MQSim's `Suspend_Program_Time` and `Suspend_Erase_Time`.

use super::NandTiming;
use super::log::{Log, Resource};
use std::collections::VecDeque;

/// A program or an erase, or what is left of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// Its command's number in the log, if it has one.
    pub(super) command: Option<u64>,
    pub(super) start: u64,
    pub(super) end: u64,
    /// When it ends by what was reported at its submission.
    pub(super) reported: u64,
    /// How often it may still be suspended, and the time that takes.
    pub(super) suspensions: u64,
    pub(super) suspend_ns: u64,
}

impl Operation {
    const fn late_ns(&self) -> u64 {
        self.end.saturating_sub(self.reported)
    }
}

/// What a unit does after its last read, in order.
#[derive(Clone, Default, Debug)]
pub(super) struct Calendar {
    unit: u32,
    read_end: u64,
    operations: VecDeque<Operation>,
    /// Time that suspensions took since it was last asked for.
    suspended_ns: u64,
}

impl Calendar {
    pub(super) fn new(unit: u32) -> Self {
        Self { unit, ..Self::default() }
    }

    /// Forgets everything.
    pub(super) fn reset_reservations(&mut self) {
        *self = Self::new(self.unit);
    }

    /// Takes in an operation that begins behind everything else.
    pub(super) fn push(&mut self, now: u64, operation: Operation, log: &mut Option<Box<Log>>) {
        self.retire(now, log);
        self.operations.push_back(operation);
    }

    /// When a read that is ready at `ready` begins.
    pub(super) fn begin_read(
        &mut self,
        ready: u64,
        timing: &NandTiming,
        log: &mut Option<Box<Log>>,
    ) -> u64 {
        let mut at = ready.max(self.read_end);
        self.retire(at, log);
        if self.operations.iter().any(|behind| behind.late_ns() >= timing.max_read_preemption_ns) {
            at = self.end().max(at);
        } else if let Some(first) = self.operations.front_mut().filter(|first| first.start < at) {
            let left = first.end - at;
            if first.suspensions == 0 || left <= first.suspend_ns {
                at = first.end;
            } else {
                let suspended = at + first.suspend_ns;
                Log::note(log, first.command, Resource::Unit(self.unit), (first.start, suspended));
                self.suspended_ns += first.suspend_ns + timing.resume_ns;
                first.suspensions -= 1;
                (first.start, first.end) = (suspended, suspended + left + timing.resume_ns);
                at = suspended;
            }
        }
        self.retire(at, log);
        at
    }

    /// The read ends: what is behind it moves back. When the unit is free of everything.
    pub(super) fn end_read(&mut self, end: u64) -> u64 {
        self.read_end = end;
        let mut free = end;
        for operation in &mut self.operations {
            let back = free.saturating_sub(operation.start);
            operation.start += back;
            operation.end += back;
            free = operation.end;
        }
        free
    }

    /// Time that suspensions took since it was last asked for.
    pub(super) fn take_suspended_ns(&mut self) -> u64 {
        std::mem::take(&mut self.suspended_ns)
    }

    /// What is under way is not for the log.
    pub(super) fn unlog(&mut self) {
        self.operations.iter_mut().for_each(|operation| operation.command = None);
    }

    /// Notes what is still to come.
    pub(super) fn note_rest(&self, log: &mut Option<Box<Log>>) {
        for left in &self.operations {
            Log::note(log, left.command, Resource::Unit(self.unit), (left.start, left.end));
        }
    }

    fn end(&self) -> u64 {
        self.operations.back().map_or(self.read_end, |last| last.end)
    }

    /// Drops what ended by `at`.
    fn retire(&mut self, at: u64, log: &mut Option<Box<Log>>) {
        while let Some(first) = self.operations.front().filter(|first| first.end <= at) {
            Log::note(log, first.command, Resource::Unit(self.unit), (first.start, first.end));
            self.operations.pop_front();
        }
    }
}
