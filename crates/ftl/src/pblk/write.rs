//! The writer: takes entries from the ring in units of `ws_opt`, pads only what a flush waits for,
//! and keeps at most one write in flight on a parallel unit (pblk-write.c).

use super::Pblk;
use super::counts::PblkCounts;
use super::cpu::Task;
use super::frontiers::{NextUnit, WritePosition};
use super::ids::{BufferId, FrontierId};
use super::rb::Ring;
use super::units::{MAX_UNIT, UnitState, WriteUnit};
use crate::error::FtlError;
use crate::kind::OmittedRule;
use crate::pblk::events::EventKind;
use crate::report::SectorCounts;
use nandscape_block::SectorData;
use nandscape_media::{Cause, KEY_EMPTY, Kind, OpenChannel, Status, WriteCmd};
use nandscape_rt::{Nanos, invariant};

/// Entries of a unit, by origin.
#[derive(Clone, Copy, Debug)]
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

impl PblkCounts {
    fn count_unit(
        &mut self,
        sectors: &mut SectorCounts,
        ws_opt: u32,
        id: BufferId,
        unit: &WriteUnit,
        tally: Tally,
    ) {
        let padding = ws_opt - unit.entries;
        if padding > 0 {
            self.pad_units[padding as usize - 1] += 1;
        }
        sectors.user += u64::from(tally.user);
        sectors.gc += u64::from(tally.gc);
        sectors.trim += u64::from(tally.trim);
        sectors.pad += u64::from(tally.stale + padding);
        sectors.stale += u64::from(tally.stale);
        let buffer = &mut self.buffers[usize::from(id)];
        buffer.user += u64::from(tally.user + tally.trim);
        buffer.gc += u64::from(tally.gc);
        buffer.pad += u64::from(tally.stale + padding);
    }

    /// What a failed program wrote counts as padding. The counters may have been reset since.
    fn discount_unit(
        &mut self,
        sectors: &mut SectorCounts,
        id: BufferId,
        unit: &WriteUnit,
        tally: Tally,
    ) {
        let less = |count: &mut u64, sectors: u32| *count = count.saturating_sub(sectors.into());
        let lost = u64::from(unit.entries - tally.stale);
        less(&mut sectors.user, tally.user);
        less(&mut sectors.gc, tally.gc);
        less(&mut sectors.trim, tally.trim);
        sectors.pad += lost;
        let buffer = &mut self.buffers[usize::from(id)];
        less(&mut buffer.user, tally.user + tally.trim);
        less(&mut buffer.gc, tally.gc);
        buffer.pad += lost;
    }
}

impl<M: OpenChannel> Pblk<M> {
    /// Submits what can be submitted, each buffer in its turn. Whether anything was.
    pub(super) fn write_out(&mut self) -> Result<bool, FtlError> {
        let count = self.buffers.all.len();
        let after = |id: usize| if id + 1 == count { 0 } else { id + 1 };
        let (mut moved, mut id) = (false, self.buffers.writer);
        for _ in 0..count {
            moved |= self.write_out_of(id as BufferId)?;
            id = after(id);
        }
        self.buffers.writer = after(id);
        Ok(moved)
    }

    fn write_out_of(&mut self, id: BufferId) -> Result<bool, FtlError> {
        let mut moved = false;
        let is_building = |pblk: &Self| pblk.cpu.as_ref().is_some_and(|cpu| cpu.is_writing(id));
        while !is_building(self) && self.write_next(id, |pblk| pblk.write_position_for(id))? {
            moved = true;
        }
        Ok(moved)
    }

    /// Writes a buffer's next unit, one that failed before others, to the place that `position` finds. Whether there
    /// was one.
    #[inline]
    fn write_next(
        &mut self,
        id: BufferId,
        position: impl FnOnce(&mut Self) -> Result<Option<WritePosition>, FtlError>,
    ) -> Result<bool, FtlError> {
        let buffer = &self.buffers.all[usize::from(id)];
        let failed = buffer.units.next_failed();
        let entries = if failed.is_some() {
            0
        } else {
            buffer.rb.entries_to_write(self.flash.geometry.ws_opt)
        };
        if failed.is_none() && entries == 0 {
            return Ok(false);
        }
        let Some(spot) = position(self)? else { return Ok(false) };
        if let Some(number) = failed {
            self.buffers.all[usize::from(id)].units.retried();
            self.resubmit(id, number, spot)?;
        } else {
            self.write_unit(id, entries, spot)?;
        }
        self.line_chores(spot.frontier)?;
        Ok(true)
    }

    /// A buffer without a line has what it must write written to another's, if that can spare a unit: collection
    /// logs trim records again in buffer 0, whether or not a line is left for it. Whether anything was.
    pub(super) fn lend_line(&mut self) -> Result<bool, FtlError> {
        for id in 0..self.buffers.all.len() as BufferId {
            if self.write_next(id, Self::spare_write_position)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next unit of a frontier of buffers whose group has more room than it needs.
    fn spare_write_position(&mut self) -> Result<Option<WritePosition>, FtlError> {
        for f in 0..self.frontiers.data_frontiers() as FrontierId {
            let spot =
                if self.space().spares_unit(f) { self.next_write_position(f)? } else { None };
            if spot.is_some() {
                return Ok(spot);
            }
        }
        Ok(None)
    }

    /// Where a buffer's next unit goes.
    #[inline]
    pub(super) fn write_position_for(
        &mut self,
        id: BufferId,
    ) -> Result<Option<WritePosition>, FtlError> {
        let frontiers = &self.buffers.all[usize::from(id)].frontiers;
        match frontiers.len() {
            1 => self.next_write_position(frontiers.start),
            count => self.write_position_of_several(id, count as u32),
        }
    }

    /// The same of several frontiers: the one whose turn it is, or the next that is ready.
    #[inline(never)]
    fn write_position_of_several(
        &mut self,
        id: BufferId,
        frontiers: u32,
    ) -> Result<Option<WritePosition>, FtlError> {
        for skipped in 0..frontiers {
            let frontier = self.buffers.all[usize::from(id)].frontier(skipped);
            if let Some(spot) = self.next_write_position(frontier)? {
                let buffer = &mut self.buffers.all[usize::from(id)];
                buffer.turn = buffer.turn.wrapping_add(skipped + 1);
                return Ok(Some(spot));
            }
        }
        Ok(None)
    }

    /// The next usable unit of a frontier, unless its parallel unit is busy or no line is ready. Inlined, because a
    /// position that is returned in memory costs more than to find it.
    #[inline(always)]
    fn next_write_position(&mut self, f: FrontierId) -> Result<Option<WritePosition>, FtlError> {
        match self.frontiers.next_unit(&self.flash, f) {
            NextUnit::At(position) => Ok(Some(position)),
            NextUnit::Busy => Ok(None),
            NextUnit::NoLine | NextUnit::Full => self.supply().next_write_position(f),
        }
    }

    /// Does what a frontier's lines need, if there is anything.
    #[inline]
    pub(super) fn line_chores(&mut self, f: FrontierId) -> Result<(), FtlError> {
        if self.frontiers.has_chores(&self.flash, &self.rules, f) {
            self.supply().do_chores(f)
        } else {
            Ok(())
        }
    }

    /// Maps the next `entries` entries of a ring to `spot` and writes them, padded.
    pub(super) fn write_unit(
        &mut self,
        id: BufferId,
        entries: u32,
        spot: WritePosition,
    ) -> Result<(), FtlError> {
        let buffer = &mut self.buffers.all[usize::from(id)];
        let first = buffer.rb.subm;
        let entries = close_enough(&buffer.rb, first, entries);
        let tally = tally(&buffer.rb, first, entries);
        let unit = WriteUnit {
            first,
            entries,
            user: (tally.user + tally.trim) as u16,
            gc: (tally.gc + tally.stale) as u16,
            line: spot.line,
            pu: spot.pu,
            at: spot.at,
            state: UnitState::InFlight,
            submitted: self.flash.now,
            building_ns: 0,
            before: buffer.units.submitted,
        };
        buffer.rb.take(entries);
        let number = buffer.units.push(unit);
        self.program(id, number, &unit, tally)
    }

    /// Writes the entries of a failed unit elsewhere.
    fn resubmit(&mut self, id: BufferId, number: u64, spot: WritePosition) -> Result<(), FtlError> {
        let now = self.flash.now;
        let buffer = &mut self.buffers.all[usize::from(id)];
        let unit = buffer.units.get_mut(number);
        unit.state = UnitState::InFlight;
        (unit.line, unit.pu, unit.at, unit.submitted) = (spot.line, spot.pu, spot.at, now);
        let unit = *unit;
        let tally = tally(&buffer.rb, unit.first, unit.entries);
        self.program(id, number, &unit, tally)
    }

    /// Takes a unit of media, and has the write command issued as soon as it is built.
    fn program(
        &mut self,
        id: BufferId,
        number: u64,
        unit: &WriteUnit,
        tally: Tally,
    ) -> Result<(), FtlError> {
        self.flash.busy[unit.pu as usize] = true;
        self.flash.lines.use_up(unit.line, self.flash.geometry.ws_opt);
        let line = self.flash.lines.get_mut(unit.line);
        line.pending += unit.entries;
        line.in_flight += 1;
        self.stats.count_unit(
            &mut self.flash.counts.sectors,
            self.flash.geometry.ws_opt,
            id,
            unit,
            tally,
        );
        if let Some(cpu) = &mut self.cpu {
            let task = Task::Build(id, number, self.flash.geometry.ws_opt);
            cpu.run_task(&mut self.flash, &mut self.buffers, &self.rules, task);
            return Ok(());
        }
        self.issue(id, number, unit, tally)
    }

    /// Issues the write command of a unit that the writer thread has built.
    pub(super) fn issue_built(&mut self, id: BufferId, number: u64) -> Result<(), FtlError> {
        let now = self.flash.now;
        let buffer = &mut self.buffers.all[usize::from(id)];
        let unit = buffer.units.get_mut(number);
        unit.building_ns = u32::try_from((now - unit.submitted).0).unwrap_or(u32::MAX);
        unit.submitted = now;
        let unit = *unit;
        let tally = tally(&buffer.rb, unit.first, unit.entries);
        self.issue(id, number, &unit, tally)
    }

    /// Issues a unit's write command.
    fn issue(
        &mut self,
        id: BufferId,
        number: u64,
        unit: &WriteUnit,
        tally: Tally,
    ) -> Result<(), FtlError> {
        let ws_opt = self.flash.geometry.ws_opt;
        self.flash.media.set_cause(tally.cause(ws_opt));
        let rb = &self.buffers.all[usize::from(id)].rb;
        let mut keys = [KEY_EMPTY; MAX_UNIT];
        rb.copy_keys(unit.first, &mut keys[..unit.entries as usize]);
        gather_seqs(&mut self.flash.seq_scratch, rb, unit, ws_opt);
        gather(
            &mut self.flash.scratch,
            rb,
            unit,
            self.rules.run.keep_content || tally.trim > 0,
            ws_opt,
        );
        let cmd = WriteCmd {
            at: unit.at,
            kind: if unit.entries == 0 { Kind::Pad } else { Kind::Data },
            seq: if unit.entries == 0 { 0 } else { rb.seq(unit.first) },
            seq_deltas: &self.flash.seq_scratch,
            aux: &[],
            keys: &keys[..ws_opt as usize],
            data: &self.flash.scratch,
        };
        let outcome = self.flash.media.write(self.flash.now, self.flash.now, cmd)?;
        self.flash.note_sent(&self.buffers.all[usize::from(id)].rb, id, number, unit);
        self.flash.events.push(outcome.at, EventKind::Unit(id, number, outcome.status));
        if self.rules.run.omits(OmittedRule::FlushCompletion) {
            self.serve_waiters(self.flash.now, id, unit, unit.first + u64::from(unit.entries));
        }
        Ok(())
    }

    /// A unit's program has ended.
    pub(super) fn unit_done(&mut self, at: Nanos, id: BufferId, number: u64, status: Status) {
        let unit = self.buffers.all[usize::from(id)].units.get_mut(number);
        let pu = unit.pu;
        self.flash.lines.get_mut(unit.line).in_flight -= 1;
        let (line, failed_at) = (unit.line, unit.at);
        let done = status == Status::Ok || unit.entries == 0;
        if status == Status::Ok {
            self.flash.shadow.note(|ledger| ledger.ended(id, number));
        }
        if done {
            unit.state = UnitState::Done;
        }
        let unit = *unit;
        if done {
            self.flash.keep_superseded(&unit);
        }
        if done && self.rules.run.omits(OmittedRule::ProgramOrder) {
            self.serve_waiters(at, id, &unit, unit.first + u64::from(unit.entries));
        }
        if status != Status::Ok {
            self.frontiers.chunk_failed(&mut self.flash, line, failed_at);
        }
        if done {
            self.advance_sync(at, id);
        } else {
            self.unit_failed(id, number);
        }
        self.flash.busy[pu as usize] = false;
    }

    /// `sync` passes every completed unit in ring order; bios that waited for that are served.
    fn advance_sync(&mut self, at: Nanos, id: BufferId) {
        let buffer = usize::from(id);
        while let Some(unit) = self.buffers.all[buffer].units.pass() {
            let rb = &mut self.buffers.all[buffer].rb;
            invariant!(
                rb.sync == unit.first || unit.entries == 0,
                "`sync` passes units in the order of the ring"
            );
            invariant!(
                self.flash.is_known_durable(rb, id, &unit),
                "everything before `sync` is durable"
            );
            rb.sync += u64::from(unit.entries);
            invariant!(rb.sync <= rb.subm, "the ring's pointers keep their order");
            if let Some(mapping) = &mut self.mapping {
                mapping.unpin_durable(&self.flash.l2p, &self.buffers.all[buffer].rb, &unit);
            }
            self.buffers.all[buffer].rl.out(u32::from(unit.user), u32::from(unit.gc));
            self.serve_waiters(at, id, &unit, self.buffers.all[buffer].rb.sync);
        }
        if self.flash.awaits_durability() {
            self.supply().release_durable_lines();
        }
    }

    /// The entries of a unit whose program failed go elsewhere.
    fn unit_failed(&mut self, id: BufferId, number: u64) {
        let buffer = &mut self.buffers.all[usize::from(id)];
        let unit = *buffer.units.get_mut(number);
        let tally = tally(&buffer.rb, unit.first, unit.entries);
        buffer.units.fail(number);
        self.stats.discount_unit(&mut self.flash.counts.sectors, id, &unit, tally);
        self.flash.lines.get_mut(unit.line).pending -= unit.entries;
        if let Some(id) = self.flash.lowered(unit.line) {
            self.supply().line_emptied(id);
        }
    }
}

/// Counts entries by origin.
#[inline]
fn tally(rb: &Ring, first: u64, entries: u32) -> Tally {
    let [user, gc, stale, trim] = rb.count(first, entries);
    Tally { user, gc, stale, trim }
}

/// How many of these entries have sequences that ascend and are near enough to the first's for one
/// unit. Others are there only where a file's entries were brought forward, or where a ring stood
/// still while others wrote terabytes.
#[inline]
fn close_enough(rb: &Ring, first: u64, entries: u32) -> u32 {
    if !rb.has_gaps() {
        return entries;
    }
    let base = rb.seq(first);
    let fits = |index: &u32| {
        let seq = rb.seq(first + u64::from(*index));
        seq > rb.seq(first + u64::from(index - 1)) && seq - base <= u64::from(u32::MAX)
    };
    entries.min(1) + (1..entries).take_while(fits).count() as u32
}

/// Collects the sequences of a unit's entries less the first's; none where they are consecutive.
#[inline]
fn gather_seqs(scratch: &mut Vec<u32>, rb: &Ring, unit: &WriteUnit, ws_opt: u32) {
    scratch.clear();
    if rb.has_gaps() && unit.entries > 0 {
        let first = rb.seq(unit.first);
        let positions = unit.first..unit.first + u64::from(unit.entries);
        scratch.extend(positions.map(|at| (rb.seq(at) - first) as u32));
        scratch.resize(ws_opt as usize, 0);
    }
}

/// Collects a unit's contents; none at all when none is kept.
fn gather(scratch: &mut Vec<SectorData>, rb: &Ring, unit: &WriteUnit, keep: bool, ws_opt: u32) {
    scratch.clear();
    if keep {
        let positions = unit.first..unit.first + u64::from(unit.entries);
        scratch.extend(positions.map(|at| rb.data(at).clone()));
        scratch.resize(ws_opt as usize, SectorData::Absent);
    }
}
