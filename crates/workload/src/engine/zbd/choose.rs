//! What zones make of a drawn I/O (fio 3.33, zbd.c, `zbd_adjust_block` and what it calls).

use super::job::{Hand, Stage, ZonedJob};
use super::table::{Command, Zone, Zones};
use crate::direction::Direction;
use crate::engine::kind::Next;
use nandscape_rt::Nanos;

/// What a job does with the I/O that it has in hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine) enum Choice {
    /// Issue this, of so many sectors.
    Issue(Next, u32),
    /// Reset this zone first.
    Reset(u32),
    /// Its rate does not allow it before this instant.
    Late(Nanos),
    /// Wait until one of the job's I/Os is back.
    Wait,
    /// Wait for other jobs.
    Blocked,
    /// No zone can take it: the pass is over.
    Through,
}

impl Zones {
    /// What the job does first, if zones are to be reset before its I/O; it has so many requests in flight.
    pub(in crate::engine) fn reset_first(
        &mut self,
        job: &mut ZonedJob,
        in_flight: u32,
    ) -> Option<Choice> {
        if let Stage::Resetting(_) = job.stage {
            return Some(Choice::Wait);
        }
        while let Some(&index) = job.to_reset.front() {
            if !self.zone(index).sequential || self.zone(index).written() == 0 {
                job.to_reset.pop_front();
                continue;
            }
            if in_flight > 0 {
                return Some(Choice::Wait);
            }
            if !self.hold(job.index, index) {
                return Some(Choice::Blocked);
            }
            job.to_reset.pop_front();
            if let Some(choice) = self.begin_reset(job, index) {
                return Some(choice);
            }
            self.give_back(index);
        }
        None
    }

    /// What becomes of the I/O in hand, with so many requests of the job in flight.
    pub(in crate::engine) fn choose(&mut self, job: &mut ZonedJob, in_flight: u32) -> Choice {
        let Some(hand) = job.hand else { return Choice::Wait };
        match job.stage {
            Stage::Resetting(_) => Choice::Wait,
            Stage::Chosen(zone) => self.write_in(job, hand, zone, in_flight),
            Stage::Seeking(from) => self.seek(job, hand, from, in_flight),
            Stage::Drawn => match hand.direction {
                Direction::Read => self.read(job, hand),
                Direction::Write => self.write(job, hand, in_flight),
                Direction::Trim => self.trim(job, hand),
            },
        }
    }

    /// Issues what is in hand at these sectors, of a zone that the job holds if `held`.
    fn issue(&mut self, job: &mut ZonedJob, lba: u64, sectors: u32, held: bool) -> Choice {
        let direction = job.issue(lba, sectors);
        if held {
            self.issued();
        }
        Choice::Issue(Next { first: lba, direction }, sectors)
    }

    fn read(&mut self, job: &mut ZonedJob, hand: Hand) -> Choice {
        let drawn = self.index(hand.lba);
        let zone = *self.zone(drawn);
        if !job.holds_to_read(&zone) {
            return self.issue(job, hand.lba, hand.sectors, false);
        }
        let least = job.least[Direction::Read as usize];
        let ends = !job.random && hand.lba + least > zone.pointer;
        let index = if ends || !self.has_data(drawn, least) {
            let Some(found) = self.find(job, drawn, least) else { return Choice::Through };
            found
        } else {
            drawn
        };
        let zone = *self.zone(index);
        let held = job.holds_to_read(&zone);
        if held && !self.hold(job.index, index) {
            return Choice::Blocked;
        }
        let start = if !job.random && index != drawn { zone.start } else { hand.lba };
        let (lba, sectors) = within(&zone, hand, start, job, self.zone(drawn).start, least);
        self.issue(job, lba, sectors, held)
    }

    fn has_data(&self, index: u32, least: u64) -> bool {
        let zone = self.zone(index);
        zone.readable && zone.written() >= least
    }

    /// A zone with data: of a sequence the next one, of random I/O the nearest.
    fn find(&self, job: &ZonedJob, from: u32, least: u64) -> Option<u32> {
        let zones = &job.span.zones;
        if !job.random {
            let readable = |index: &u32| self.zone(*index).readable;
            let mut behind = (from + 1..zones.end).take_while(readable);
            return behind.find(|index| self.has_data(*index, least));
        }
        let distances = 1..=(zones.end - zones.start);
        let around = distances.flat_map(|d| [from.checked_add(d), from.checked_sub(d)]).flatten();
        let mut within = around.filter(|index| zones.contains(index));
        within.find(|index| self.has_data(*index, least))
    }

    fn trim(&mut self, job: &mut ZonedJob, hand: Hand) -> Choice {
        let drawn = self.index(hand.lba);
        let zone = self.zone(drawn);
        if !zone.sequential {
            return self.issue(job, hand.lba, hand.sectors, false);
        }
        let index = if job.random && zone.written() == 0 {
            let zones = &job.span.zones;
            let sequential = |index: &u32| self.zone(*index).sequential && self.has_data(*index, 1);
            let distances = 1..=(zones.end - zones.start);
            let around =
                distances.flat_map(|d| [drawn.checked_add(d), drawn.checked_sub(d)]).flatten();
            let Some(found) = around.filter(|index| zones.contains(index)).find(sequential) else {
                return Choice::Through;
            };
            found
        } else {
            drawn
        };
        if !self.hold(job.index, index) {
            return Choice::Blocked;
        }
        self.issue(job, self.zone(index).start, hand.sectors, true)
    }

    fn write(&mut self, job: &mut ZonedJob, hand: Hand, in_flight: u32) -> Choice {
        let drawn = self.index(hand.lba);
        if !self.zone(drawn).sequential {
            return self.write_anywhere(job, hand, drawn);
        }
        if !self.can_open(job, drawn) {
            return self.write_elsewhere(job, hand, drawn, in_flight);
        }
        if !self.hold(job.index, drawn) {
            return Choice::Blocked;
        }
        self.open(job.index, drawn);
        self.write_in(job, hand, drawn, in_flight)
    }

    /// A write to a zone without a pointer, which does not reach into one that has one.
    fn write_anywhere(&mut self, job: &mut ZonedJob, hand: Hand, index: u32) -> Choice {
        let (lba, sectors) = (hand.lba, u64::from(hand.sectors));
        let (start, next) = (self.zone(index).start, self.next_start(index));
        let reaches = index + 1 < job.span.zones.end && self.zone(index + 1).sequential;
        if !reaches || lba + sectors <= next {
            return self.issue(job, lba, hand.sectors, false);
        }
        let least = job.least_write();
        let lba = if lba + least > next { start + next - lba } else { lba };
        let sectors = sectors.min(next - lba);
        self.issue(job, lba, (sectors - sectors % least) as u32, false)
    }

    /// A write whose zone cannot be opened goes to an open one, or has another one opened.
    fn write_elsewhere(
        &mut self,
        job: &mut ZonedJob,
        hand: Hand,
        drawn: u32,
        in_flight: u32,
    ) -> Choice {
        if !self.limits_open() || self.open_zones().is_empty() {
            return self.seek(job, hand, drawn, in_flight);
        }
        let Some(candidate) = self.candidate(job, hand) else { return Choice::Through };
        if !self.zone(candidate).is_full(job.least_write()) {
            if !self.hold(job.index, candidate) {
                return Choice::Blocked;
            }
            return self.write_in(job, hand, candidate, in_flight);
        }
        // A zone that is full closes when its last write is back.
        job.stage = Stage::Seeking(candidate);
        let closes = !self.has_room(job) || self.open_zones().len() == job.span.zones.len();
        if closes && in_flight > 0 {
            return Choice::Wait;
        }
        self.seek(job, hand, candidate, in_flight)
    }

    /// The open zone that a write goes to: the one at its place among all open ones, or the next in the range.
    fn candidate(&self, job: &ZonedJob, hand: Hand) -> Option<u32> {
        let open = self.open_zones();
        let place = u128::from(hand.lba - job.span.base) * open.len() as u128;
        let place = (place / u128::from(job.span.sectors)) as usize;
        let from_there = open.iter().cycle().skip(place).take(open.len());
        from_there.copied().find(|index| job.span.zones.contains(index))
    }

    /// Opens the next zone behind `from` that is not open; else the write goes to one that is.
    fn seek(&mut self, job: &mut ZonedJob, hand: Hand, from: u32, in_flight: u32) -> Choice {
        job.stage = Stage::Seeking(from);
        let zones = job.span.zones.clone();
        let behind = (from + 1..zones.end).chain(zones.start..=from.min(zones.end - 1));
        let opens = |index: &u32| {
            let zone = self.zone(*index);
            zone.sequential && !zone.is_open() && self.can_open(job, *index)
        };
        let mut closed = behind.filter(|index| zones.contains(index));
        let found = closed.find(opens).or_else(|| {
            let mut open = self.open_zones().iter().copied().filter(|index| zones.contains(index));
            open.find(|index| !self.zone(*index).is_full(job.least_write()))
        });
        match found {
            Some(index) => {
                if !self.hold(job.index, index) {
                    return Choice::Blocked;
                }
                self.open(job.index, index);
                self.write_in(job, hand, index, in_flight)
            }
            None if in_flight > 0 => Choice::Wait,
            None if self.is_busy() => {
                self.wait_for_any(job.index);
                Choice::Blocked
            }
            None => Choice::Through,
        }
    }

    /// A write in a zone that the job holds: resets it, if that is due, and then goes to its pointer.
    fn write_in(
        &mut self,
        job: &mut ZonedJob,
        mut hand: Hand,
        index: u32,
        in_flight: u32,
    ) -> Choice {
        let least = job.least_write();
        job.stage = Stage::Chosen(index);
        if !std::mem::replace(&mut hand.counted, true) {
            job.hand = Some(hand);
            let above = job.writes_per_reset > 0 && self.data_at_pointers as f64 >= job.threshold;
            self.zone_mut(index).reset_due |= above && self.counts_to_reset(job.writes_per_reset);
        }
        if self.zone(index).reset_due || self.zone(index).is_full(least) {
            if in_flight > 0 {
                return Choice::Wait;
            }
            if let Some(choice) = self.begin_reset(job, index) {
                return choice;
            }
        }
        let zone = self.zone_mut(index);
        let (start, lba) = (zone.start, zone.pointer);
        let sectors = u64::from(hand.sectors).min(zone.end - lba);
        let sectors = sectors - sectors % least;
        zone.pointer += sectors;
        job.counts.begun += u64::from(lba == start);
        job.counts.filled += u64::from(zone.is_full(least));
        self.add_data(sectors);
        self.issue(job, lba, sectors as u32, true)
    }

    /// Counts a write above the threshold; whether it is the one that resets its zone.
    const fn counts_to_reset(&mut self, every: u32) -> bool {
        self.writes_to_reset = self.writes_to_reset.saturating_sub(1);
        let resets = self.writes_to_reset == 0;
        if resets {
            self.writes_to_reset = every;
        }
        resets
    }

    /// Begins the reset of a zone that the job holds; none if that takes no command, and is done.
    fn begin_reset(&mut self, job: &mut ZonedJob, index: u32) -> Option<Choice> {
        if let Command::Reset(_) = self.command(index) {
            job.stage = Stage::Resetting(index);
            return Some(Choice::Reset(index));
        }
        job.counts.resets += u64::from(self.reset(index));
        None
    }
}

/// What of a read lies below the write pointer, as large and as random as possible.
fn within(
    zone: &Zone,
    hand: Hand,
    start: u64,
    job: &ZonedJob,
    drawn_start: u64,
    least: u64,
) -> (u64, u32) {
    let (written, sectors) = (zone.written(), u64::from(hand.sectors));
    let lba = if written <= sectors {
        zone.start
    } else if job.random {
        let place = (hand.lba - drawn_start) % (written - sectors);
        zone.start + place - place % least
    } else {
        start
    };
    if !zone.sequential {
        return (lba, hand.sectors);
    }
    let sectors = sectors.min(zone.pointer - lba);
    (lba, (sectors - sectors % least) as u32)
}
