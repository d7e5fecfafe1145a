//! What a job with `zonemode=zbd` issues next, and how its passes end.

use super::{Job, NextIo, State};
use crate::direction::Direction;
use crate::engine::kind::Kind;
use crate::engine::shadow::Shadow;
use crate::engine::shared::Shared;
use crate::engine::zbd::{Choice, Zones};
use crate::target::IoTarget;
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;

impl Job {
    /// What it issues next; a zone for which it waited, and which it does not take, goes back.
    pub(super) fn next_io_around_zones(
        &mut self,
        target: &impl IoTarget,
        shadow: Option<&Shadow>,
        shared: &mut Shared,
        now: Nanos,
    ) -> NextIo {
        let Some(job) = self.zoned.as_ref().map(|zoned| zoned.index()) else {
            return NextIo::Nothing;
        };
        let given = shared.zones.recall(job);
        let next_io = self.next_io_open_or_not(target, shadow, shared, now);
        if self.state != State::Issuing {
            self.zoned.iter_mut().for_each(|zoned| zoned.drop_hand(&mut shared.zones));
        }
        given.into_iter().for_each(|zone| shared.zones.give_back(zone));
        next_io
    }

    /// The next I/O where zones allow it, or what must come before it.
    pub(super) fn next_io_in_zones(
        &mut self,
        target: &impl IoTarget,
        zones: &mut Zones,
        now: Nanos,
    ) -> NextIo {
        loop {
            match self.choose(zones, now) {
                Choice::Issue(next, sectors) => {
                    let bytes = u64::from(sectors) * SECTOR_BYTES;
                    let pacer = self.pacer.as_mut();
                    pacer.into_iter().for_each(|pacer| pacer.issued(next.direction, bytes));
                    return self.take(next, sectors, bytes);
                }
                Choice::Reset(zone) => {
                    self.units = 0;
                    return NextIo::Reset(zones.start(zone));
                }
                Choice::Late(due) => return NextIo::Wake(due.min(self.deadline)),
                Choice::Wait => return NextIo::Nothing,
                Choice::Blocked => return NextIo::Wake(self.deadline),
                Choice::Through if self.goes_on_behind_pass(target, zones, now) => {}
                Choice::Through => return NextIo::Nothing,
            }
        }
    }

    fn choose(&mut self, zones: &mut Zones, now: Nanos) -> Choice {
        let has_hand = self.zoned.as_ref().is_some_and(|zoned| zoned.has_hand());
        if !has_hand && let Some(due) = self.draw_by_rate(now) {
            return Choice::Late(due);
        }
        let Some(zoned) = &mut self.zoned else { return Choice::Wait };
        zoned.begin_pass(zones);
        if let Some(choice) = zones.reset_first(zoned, self.in_flight) {
            return choice;
        }
        if !zoned.has_hand() {
            let (drawn, sectors) = self.draw.next();
            if !zoned.take(zones, drawn, sectors) {
                return Choice::Through;
            }
        }
        if let (Some(pacer), Some(direction)) = (&self.pacer, zoned.drawn()) {
            let due = self.began.saturating_add(pacer.due(direction));
            if due > now {
                return Choice::Late(due);
            }
        }
        zones.choose(zoned, self.in_flight)
    }

    /// The range is through, or nothing in it can be read or written: whether it begins again.
    /// As fio (backend.c, `keep_running`): a pass without I/O is the last one.
    fn goes_on_behind_pass(
        &mut self,
        target: &impl IoTarget,
        zones: &mut Zones,
        now: Nanos,
    ) -> bool {
        let Some(zoned) = &mut self.zoned else { return false };
        zoned.drop_hand(zones);
        if !zoned.has_issued() {
            self.stop();
            return false;
        }
        let largest = Direction::ALL.map(|direction| self.spec.sizes(direction).max());
        let again = self.spec.io_size.is_some() && !self.spec.time_based;
        if again && largest.into_iter().all(|block| (block as i64) <= self.bytes_left) {
            self.draw.begin_pass(self.issued);
            zoned.restart();
            return true;
        }
        self.end_loop_early();
        self.has_more(target, now)
    }

    /// A reset is back, whether it worked; without it the job cannot go on.
    pub(in crate::engine) fn reset_back(
        &mut self,
        zones: &mut Zones,
        worked: bool,
        latency: Nanos,
    ) {
        self.zoned.iter_mut().for_each(|zoned| zoned.reset_done(zones, worked));
        if worked {
            self.tallies[Kind::Reset as usize].latencies.record(latency);
        } else if !self.has_failed() {
            self.stop();
        }
    }
}
