//! The writer: takes entries from the ring in units of `ws_opt`, pads only what a flush waits for,
//! and keeps at most one write in flight on a parallel unit (pblk-write.c).

use super::Pblk;
use super::line::LineState;
use super::rb::Origin;
use super::units::{UnitState, WriteUnit};
use crate::error::FtlError;
use crate::pblk::events::What;
use nandscape_block::SectorData;
use nandscape_media::{Cause, KEY_EMPTY, Kind, OpenChannel, Ppa, Status, WriteCmd};
use nandscape_rt::Nanos;

/// Most sectors of a write unit (`NVM_MAX_VLBA`).
pub(super) const MAX_UNIT: usize = 64;

/// Where the next unit goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) line: u32,
    pub(super) pu: u32,
    pub(super) at: Ppa,
}

/// Entries of a unit, by origin.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    user: u32,
    gc: u32,
    stale: u32,
    trim: u32,
}

impl Tally {
    /// What a program of so many sectors is for.
    #[inline]
    const fn cause(&self, sectors: u32) -> Cause {
        let user = self.user + self.trim;
        Cause { user: user as u8, gc: self.gc as u8, pad: (sectors - user - self.gc) as u8 }
    }
}

impl<M: OpenChannel> Pblk<M> {
    /// Submits what can be submitted. Whether anything was.
    pub(super) fn write_out(&mut self) -> Result<bool, FtlError> {
        let mut moved = false;
        loop {
            if let Some(number) = self.units.next_failed() {
                let Some(spot) = self.seek()? else { break };
                self.units.retried();
                self.resubmit(number, spot)?;
            } else {
                let entries = self.entries_to_write();
                if entries == 0 {
                    break;
                }
                let Some(spot) = self.seek()? else { break };
                self.write_unit(entries, spot)?;
            }
            self.line_chores()?;
            moved = true;
        }
        Ok(moved)
    }

    /// Entries for the next unit: a full one, or what a flush waits for.
    #[inline]
    fn entries_to_write(&self) -> u32 {
        let backlog = self.rb.backlog();
        if backlog >= self.geometry.ws_opt {
            self.geometry.ws_opt
        } else if self.rb.flush_point > self.rb.subm {
            backlog
        } else {
            0
        }
    }

    /// Maps the next `entries` entries of the ring to `spot` and writes them, padded.
    pub(super) fn write_unit(&mut self, entries: u32, spot: Spot) -> Result<(), FtlError> {
        let first = self.rb.subm;
        let tally = self.tally(first, entries);
        let unit = WriteUnit {
            first,
            entries,
            user: tally.user + tally.trim,
            gc: tally.gc + tally.stale,
            line: spot.line,
            pu: spot.pu,
            at: spot.at,
            state: UnitState::InFlight,
            submitted: self.now,
            before: self.units.submitted,
        };
        self.rb.subm += u64::from(entries);
        let number = self.units.push(unit);
        self.program(number, &unit, tally)
    }

    /// Counts entries by origin.
    #[inline]
    fn tally(&self, first: u64, entries: u32) -> Tally {
        let mut tally = Tally::default();
        for position in first..first + u64::from(entries) {
            match self.rb.origin(position) {
                Origin::User => tally.user += 1,
                Origin::Gc => tally.gc += 1,
                Origin::Stale => tally.stale += 1,
                Origin::Trim => tally.trim += 1,
            }
        }
        tally
    }

    /// Writes the entries of a failed unit elsewhere.
    fn resubmit(&mut self, number: u64, spot: Spot) -> Result<(), FtlError> {
        let now = self.now;
        let unit = self.units.get_mut(number);
        unit.state = UnitState::InFlight;
        (unit.line, unit.pu, unit.at, unit.submitted) = (spot.line, spot.pu, spot.at, now);
        let unit = *unit;
        let tally = self.tally(unit.first, unit.entries);
        self.program(number, &unit, tally)
    }

    /// Issues a unit's write command.
    fn program(&mut self, number: u64, unit: &WriteUnit, tally: Tally) -> Result<(), FtlError> {
        let ws_opt = self.geometry.ws_opt;
        let mut keys = [KEY_EMPTY; MAX_UNIT];
        for i in 0..unit.entries {
            keys[i as usize] = self.rb.key(unit.first + u64::from(i));
        }
        self.gather(unit, tally);
        let kind = if unit.entries == 0 { Kind::Pad } else { Kind::Data };
        let keys = &keys[..ws_opt as usize];
        let cmd = WriteCmd { at: unit.at, kind, seq: unit.first, keys, data: &self.scratch };
        self.media.because(tally.cause(ws_opt));
        let outcome = self.media.write(self.now, cmd)?;
        self.busy[unit.pu as usize] = true;
        self.events.push(outcome.at, What::Unit(number, outcome.status));
        self.lines.use_up(unit.line, ws_opt);
        let line = self.lines.get_mut(unit.line);
        line.pending += unit.entries;
        line.in_flight += 1;
        self.count_unit(unit, tally);
        Ok(())
    }

    /// Collects the unit's contents; none at all when none is kept.
    fn gather(&mut self, unit: &WriteUnit, tally: Tally) {
        self.scratch.clear();
        if self.config.keep_content || tally.trim > 0 {
            let positions = unit.first..unit.first + u64::from(unit.entries);
            self.scratch.extend(positions.map(|at| self.rb.data(at).clone()));
            self.scratch.resize(self.geometry.ws_opt as usize, SectorData::Absent);
        }
    }

    fn count_unit(&mut self, unit: &WriteUnit, tally: Tally) {
        let padding = self.geometry.ws_opt - unit.entries;
        if padding > 0 {
            self.stats.pad_dist[padding as usize - 1] += 1;
        }
        let sectors = &mut self.stats.sectors;
        sectors.user += u64::from(tally.user);
        sectors.gc += u64::from(tally.gc);
        sectors.trim += u64::from(tally.trim);
        sectors.pad += u64::from(tally.stale + padding);
    }

    /// A unit's program has ended.
    pub(super) fn unit_done(&mut self, at: Nanos, number: u64, status: Status) {
        let unit = self.units.get_mut(number);
        let pu = unit.pu;
        self.lines.get_mut(unit.line).in_flight -= 1;
        if status == Status::Ok || unit.entries == 0 {
            unit.state = UnitState::Done;
            self.advance_sync(at);
        } else {
            self.unit_failed(number);
        }
        self.busy[pu as usize] = false;
    }

    /// `sync` passes every completed unit in ring order; whoever waited for that is served.
    fn advance_sync(&mut self, at: Nanos) {
        while let Some(unit) = self.units.pass() {
            self.rb.sync += u64::from(unit.entries);
            self.rl.out(unit.user, unit.gc);
            self.serve_waiters(at, &unit);
        }
        self.thaw();
    }

    /// A program failed (pblk-write.c `pblk_map_remaining`): the rest of the chunk is lost to its
    /// line, the entries go elsewhere, and the line is to be collected first.
    fn unit_failed(&mut self, number: u64) {
        self.stats.program_failures += 1;
        let unit = *self.units.get_mut(number);
        self.discount_unit(&unit);
        let line = self.lines.get_mut(unit.line);
        line.pending -= unit.entries;
        line.werr = true;
        if line.state == LineState::Closed {
            self.victims.mark_werr(unit.line);
        }
        let rest = self.geometry.sectors - self.geometry.sector_of(unit.at) - self.geometry.ws_opt;
        self.lines.forgo(unit.line, rest);
        self.units.fail(number);
        self.line_lowered(unit.line);
    }

    /// What a failed program wrote counts as padding. The counters may have been reset since.
    fn discount_unit(&mut self, unit: &WriteUnit) {
        let tally = self.tally(unit.first, unit.entries);
        let sectors = &mut self.stats.sectors;
        sectors.user = sectors.user.saturating_sub(u64::from(tally.user));
        sectors.gc = sectors.gc.saturating_sub(u64::from(tally.gc));
        sectors.trim = sectors.trim.saturating_sub(u64::from(tally.trim));
        sectors.pad += u64::from(unit.entries - tally.stale);
    }
}
