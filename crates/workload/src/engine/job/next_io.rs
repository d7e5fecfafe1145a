//! What a job wants to do next: the I/O that was drawn, a step of its log, a flush, or nothing yet.

use super::{Job, State};
use crate::direction::Direction;
use crate::engine::flow::Flows;
use crate::engine::governor::Pause;
use crate::engine::iolog::{Playback, Step};
use crate::engine::kind::Next;
use crate::engine::shadow::Shadow;
use crate::engine::shared::Shared;
use crate::fio::{Counted, UNIT_BYTES};
use crate::target::IoTarget;
use nandscape_block::{Lba, SECTOR_BYTES};
use nandscape_rt::Nanos;
use std::ops::Range;

/// What a job wants to do now; [`Job::units`] says how long an I/O is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine) enum NextIo {
    Io(Next),
    /// Read again what it wrote here.
    Reread(Lba),
    Flush,
    /// Reset the zone that begins here.
    Reset(Lba),
    /// Nothing before this instant.
    Wake(Nanos),
    /// Nothing before an I/O of the job completes.
    Nothing,
}

impl Job {
    /// What to do with a free slot now. An I/O that is returned has been taken.
    #[inline(always)]
    pub(in crate::engine) fn next_io(
        &mut self,
        target: &impl IoTarget,
        shadow: Option<&Shadow>,
        shared: &mut Shared,
        now: Nanos,
    ) -> NextIo {
        if !self.open {
            return self.next_io_closed(target, shadow, shared, now);
        }
        if !self.has_more(target, now) {
            return NextIo::Nothing;
        }
        if self.flush_due {
            return self.next_io_flush();
        }
        self.next_io_drawn::<true>(target, now)
    }

    /// Whether this loop or the next has more to issue.
    #[inline(always)]
    pub(super) fn has_more(&mut self, target: &impl IoTarget, now: Nanos) -> bool {
        if now >= self.deadline {
            self.stop();
            return false;
        }
        (self.bytes_left > 0 && self.ios_left > 0) || self.next_loop(target)
    }

    /// The next I/O that was drawn, unless the rate delays it; `WHOLE` where the job's units are sectors.
    #[inline(always)]
    fn next_io_drawn<const WHOLE: bool>(&mut self, target: &impl IoTarget, now: Nanos) -> NextIo {
        if self.pacer.is_some()
            && let Some(due) = self.next_due(now)
        {
            return NextIo::Wake(due.min(self.deadline));
        }
        let (next, units) = (self.draw.peek(), self.draw.units());
        if units == 0 {
            return self.next_io_behind_range::<WHOLE>(target, now);
        }
        let bytes = u64::from(units) * if WHOLE { SECTOR_BYTES } else { UNIT_BYTES };
        if let Some(pacer) = &mut self.pacer {
            pacer.issued(next.direction, bytes);
        }
        self.draw.take::<WHOLE>(target);
        self.take(next, units, bytes)
    }

    /// The next I/O, where this loop is through with its range.
    #[cold]
    #[inline(never)]
    fn next_io_behind_range<const WHOLE: bool>(
        &mut self,
        target: &impl IoTarget,
        now: Nanos,
    ) -> NextIo {
        self.end_loop_early();
        match self.has_more(target, now) {
            true if self.flush_due => self.next_io_flush(),
            true => self.next_io_drawn::<WHOLE>(target, now),
            false => NextIo::Nothing,
        }
    }

    /// When the rate lets the next I/O start, if that is later than now.
    #[inline(never)]
    fn next_due(&mut self, now: Nanos) -> Option<Nanos> {
        self.draw_by_rate(now).or_else(|| {
            let due = self.due(self.draw.peek().direction);
            (due > now).then_some(due)
        })
    }

    /// When the rate lets an I/O of this direction start.
    fn due(&self, direction: Direction) -> Nanos {
        let due = self.pacer.as_ref().map_or(Nanos::ZERO, |pacer| pacer.due(direction));
        self.began.saturating_add(due)
    }

    /// Draws the next I/O of a mix with rates, or says when it can be drawn. As in fio (io_u.c, `rate_ddir`): the other
    /// direction is taken while the one that the mix asks for is ahead of its rate.
    pub(super) fn draw_by_rate(&mut self, now: Nanos) -> Option<Nanos> {
        if !self.draw.is_late() {
            return None;
        }
        let asked = *self.asked.get_or_insert_with(|| self.draw.direction());
        let other = if asked == Direction::Read { Direction::Write } else { Direction::Read };
        let (due, other_due) = (self.due(asked), self.due(other));
        if due.min(other_due) > now {
            return Some(due.min(other_due));
        }
        self.asked = None;
        self.draw.draw_next(if due <= now { asked } else { other });
        None
    }

    /// Counts an I/O as issued.
    #[inline(always)]
    pub(super) fn take(&mut self, next: Next, units: u32, bytes: u64) -> NextIo {
        let direction = next.direction as usize;
        self.units = units;
        self.bytes_left -= bytes as i64;
        self.ios_left -= 1;
        self.issued[direction] += 1;
        if next.direction == self.writing && self.issued[direction] == self.flush_at {
            self.flush_due = true;
            self.flushes_again = self.flushes_behind_reads();
            self.schedule_flush();
            self.update();
        } else if self.flushes_again {
            self.flush_again(next.direction);
        }
        NextIo::Io(next)
    }

    /// As in fio (io_u.c, `get_rw_ddir`), reads behind the write that a flush follows are each followed by another one, as
    /// long as no write comes.
    #[cold]
    fn flush_again(&mut self, issued: Direction) {
        self.flushes_again = issued == Direction::Read;
        self.flush_due = self.flushes_again;
        self.update();
    }

    #[cold]
    fn next_io_closed(
        &mut self,
        target: &impl IoTarget,
        shadow: Option<&Shadow>,
        shared: &mut Shared,
        now: Nanos,
    ) -> NextIo {
        if self.zoned.is_some() {
            return self.next_io_around_zones(target, shadow, shared, now);
        }
        self.next_io_open_or_not(target, shadow, shared, now)
    }

    /// What it issues next where not only its draws decide.
    pub(super) fn next_io_open_or_not(
        &mut self,
        target: &impl IoTarget,
        shadow: Option<&Shadow>,
        shared: &mut Shared,
        now: Nanos,
    ) -> NextIo {
        if self.pause.is_some() || self.flushing {
            return NextIo::Nothing;
        }
        if self.flush_due && self.is_through() {
            // As in fio: behind the last write it is `end_fsync` that asks for one, or the next loop.
            self.flush_due = false;
            self.update();
        }
        if self.flush_due {
            return self.next_io_flush();
        }
        match (self.state, shadow) {
            (State::Issuing, _) => self.next_io_governed(target, shared, now),
            (State::Rereading(file, from), Some(shadow)) => self.next_io_reread(shadow, file, from),
            _ => NextIo::Nothing,
        }
    }

    /// Whether it has issued all that it ever will, other than to end or to verify.
    fn is_through(&self) -> bool {
        let ends = self.state == State::Issuing && !self.spec.time_based && !self.spec.replays();
        ends && (self.bytes_left <= 0 || self.ios_left == 0)
    }

    fn next_io_flush(&mut self) -> NextIo {
        self.issued_at_flush = self.issued_in_all();
        self.flush_due = false;
        self.flushing = true;
        self.units = 0;
        NextIo::Flush
    }

    /// The next I/O, unless something holds it back.
    fn next_io_governed(
        &mut self,
        target: &impl IoTarget,
        shared: &mut Shared,
        now: Nanos,
    ) -> NextIo {
        let in_flight = self.in_flight;
        if self.governor.as_ref().is_some_and(|governor| governor.holds(in_flight)) {
            return NextIo::Nothing;
        }
        if self.spec.replays() {
            return self.next_io_logged(now);
        }
        if !self.has_more(target, now) {
            return NextIo::Nothing;
        }
        if self.flush_due {
            return self.next_io_flush();
        }
        if let Some(next_io) = self.wait_for_flow(&mut shared.flows) {
            return next_io;
        }
        if let Some(due) = self.draw_by_rate(now) {
            return NextIo::Wake(due.min(self.deadline));
        }
        if self.is_overlapping() {
            return NextIo::Nothing;
        }
        let next_io = match self.zoned.is_some() {
            true => self.next_io_in_zones(target, &mut shared.zones, now),
            false if self.has_whole_sectors() => self.next_io_drawn::<true>(target, now),
            false => self.next_io_drawn::<false>(target, now),
        };
        if let (NextIo::Io(next), Some(governor)) = (next_io, &mut self.governor) {
            let bytes = bytes_of(next, self.units, self.plan.unit_bytes);
            governor.overlaps.iter_mut().for_each(|overlaps| overlaps.issued(bytes.clone()));
            governor.member.iter_mut().for_each(|member| shared.flows.issued(member));
            self.think(Counted::Issued, now);
        }
        next_io
    }

    /// Whether the next I/O waits for one in flight whose bytes it shares.
    fn is_overlapping(&self) -> bool {
        let governor = self.governor.as_ref();
        let Some(overlaps) = governor.and_then(|governor| governor.overlaps.as_ref()) else {
            return false;
        };
        overlaps.has(&bytes_of(self.draw.peek(), self.draw.units(), self.plan.unit_bytes))
    }

    /// What to do instead of an I/O when the job is ahead of its flow.
    fn wait_for_flow(&mut self, flows: &mut Flows) -> Option<NextIo> {
        let member = self.governor.as_ref()?.member.as_ref()?;
        if !flows.is_ahead(member) {
            return None;
        }
        if member.sleep > Nanos::ZERO {
            self.pause = Some(Pause::new(member.sleep));
            return Some(NextIo::Nothing);
        }
        flows.hold(member);
        Some(NextIo::Wake(self.deadline))
    }

    /// The next step of the log, when it is due.
    fn next_io_logged(&mut self, now: Nanos) -> NextIo {
        let next = self.playback().and_then(|playback| playback.peek());
        let Some((at, step)) = next.filter(|_| now < self.deadline && self.ios_left > 0) else {
            self.stop();
            return NextIo::Nothing;
        };
        let due = self.began.saturating_add(at);
        if due > now {
            return NextIo::Wake(due.min(self.deadline));
        }
        self.playback().into_iter().for_each(Playback::take);
        match step {
            Step::Flush => self.next_io_flush(),
            Step::Io(next, sectors) => self.take(next, sectors, u64::from(sectors) * SECTOR_BYTES),
        }
    }

    /// Counts towards the next pause.
    pub(super) fn think(&mut self, what: Counted, now: Nanos) {
        let pause = self.thinker.as_mut().and_then(|thinker| thinker.counts(what, now));
        if self.pause.is_none() && self.state == State::Issuing {
            self.pause = pause;
        }
    }

    /// What the job wrote is read again as it was written, as fio does (iolog.c, `log_io_piece`).
    fn next_io_reread(&mut self, shadow: &Shadow, file: usize, mut from: u64) -> NextIo {
        let mut ranges = self.plan.ranges.iter().enumerate().skip(file);
        let found = ranges.find_map(|(file, range)| {
            let most = range.places[Direction::Write as usize].sizes.largest();
            let (first, end) = (range.base + std::mem::take(&mut from), range.base + range.units);
            let (lba, sectors) = shadow.next_written(first..end, most)?;
            Some((file, lba.0 + u64::from(sectors) - range.base, lba, sectors))
        });
        let Some((file, behind, lba, sectors)) = found else {
            self.enter(State::Draining);
            return NextIo::Nothing;
        };
        self.enter(State::Rereading(file, behind));
        self.units = sectors;
        NextIo::Reread(lba)
    }
}

/// The bytes of an I/O.
fn bytes_of(next: Next, units: u32, unit_bytes: u64) -> Range<u64> {
    next.first * unit_bytes..(next.first + u64::from(units)) * unit_bytes
}
