//! When victims are started: the collector's thread as Linux wakes it (pblk-gc.c `pblk_gc_run`,
//! `pblk_gc_kick`), or at once.
//!
//! The kernel's thread runs when it is kicked, and only then: when collection becomes active, for each
//! victim that was just started, and by a timer of [`Pacing::Kernel`]'s period (`GC_TIME_MSECS`) that
//! each kick arms again. A run frees the lines without valid sectors and starts victims until four are
//! in flight (`PBLK_GC_L_QD`). A victim that was read lowers the count without a kick, so a device that
//! is short of lines starts about four victims per period, and a line that lost its last valid sector
//! waits for the next run.
//!
//! Before a host is attached there is no thread: a device is preconditioned in no time, and its victims
//! are started at once.
//!
//! The timer is armed only while a run may have something to do, on the grid that the last kick began:
//! the runs are those of a timer that always fires, and a device at rest has no event.

use super::events::EventKind;
use super::flash::Flash;
use crate::common::ids::LineId;
use crate::pblk::config::Pacing;
use nandscape_media::OpenChannel;
use nandscape_rt::Nanos;

/// The thread's state. With [`Pacing::Immediate`], and before a host is attached, it stays as it was made.
#[derive(Default, Debug)]
pub(super) struct Thread {
    /// Time between two runs without another kick; `None` starts victims whenever one is wanted.
    period: Option<Nanos>,
    /// Free lines are short, or a line has write errors (`gc_active`).
    active: bool,
    /// A run is due.
    kicked: bool,
    /// The timer is among the events.
    armed: bool,
    /// The last run did nothing, and nothing has moved since: another one would do nothing.
    in_vain: bool,
    last_kick: Nanos,
    /// Closed lines without valid sectors (`PBLK_LINEGC_FULL`).
    pub(super) garbage: Vec<LineId>,
}

impl Thread {
    /// Keeps this pace from now on.
    pub(super) fn pace(&mut self, pacing: Pacing) {
        self.period = match pacing {
            Pacing::Kernel(period) => Some(period),
            Pacing::Immediate => None,
        };
    }

    /// Whether victims are started at kicks only.
    #[inline]
    pub(super) const fn is_paced(&self) -> bool {
        self.period.is_some()
    }

    /// Whether the timer is among the events.
    #[inline]
    pub(super) const fn is_armed(&self) -> bool {
        self.armed
    }

    /// Collection is active from now on, or no longer (`pblk_gc_should_start`, `pblk_gc_should_stop`).
    pub(super) fn set_active(&mut self, active: bool) {
        self.kicked |= active && !self.active;
        self.active = active;
    }

    /// Has a run follow at once.
    pub(super) fn kick(&mut self) {
        self.kicked = true;
    }

    /// Something moved, so that the next run may find work.
    #[inline]
    pub(super) fn moved(&mut self) {
        self.in_vain = false;
    }

    /// The timer's next tick, if it is to be armed.
    fn due(&self, now: Nanos) -> Option<Nanos> {
        let period = self.period.filter(|_| !self.armed && self.may_run())?;
        let ticks = (now - self.last_kick).0 / period.0 + 1;
        Some(self.last_kick + Nanos(period.0 * ticks))
    }

    /// The timer fires.
    pub(super) fn timer(&mut self) {
        self.armed = false;
        self.kick();
    }

    /// Arms the timer, if a run may have something to do then.
    pub(super) fn arm<M: OpenChannel>(&mut self, flash: &mut Flash<M>) {
        if let Some(at) = self.due(flash.now) {
            self.armed = true;
            flash.events.push(at, EventKind::GcTimer);
        }
    }

    /// A run that was kicked begins. Whether there is one.
    pub(super) fn begin_run(&mut self, now: Nanos) -> bool {
        let kicked = std::mem::take(&mut self.kicked);
        if kicked {
            self.last_kick = now;
        }
        kicked
    }

    /// A run has ended; whether it started or freed anything.
    pub(super) fn end_run(&mut self, moved: bool) {
        self.in_vain = !moved;
    }

    /// Whether the thread runs again, and may find something to do.
    #[inline]
    pub(super) fn may_run(&self) -> bool {
        let wanted = self.active || !self.garbage.is_empty();
        self.is_paced() && wanted && !self.in_vain
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        (self.garbage.capacity() * size_of::<LineId>()) as u64
    }
}

#[cfg(test)]
mod tests;
