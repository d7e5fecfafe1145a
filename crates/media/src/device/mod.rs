//! The device: rules, timing, storage, wear, armed faults, and what is under way, put together.
//!
//! A command is checked against the rules, then fails if a fault was armed for it, then its content
//! is stored, and its time reserved. State and content change at submission; the queue of commands
//! under way lets a power cut undo what had not completed.
//!
//! An erase keeps the old content until it completes or the chunk is written again, because an
//! interrupted one may leave it intact.

mod config;
mod cut;
mod report;
mod transfer;

pub use config::{MediaConfig, MediaError};
pub use report::{Utilisation, Wear};
pub(crate) use transfer::ChunkRow;

use crate::command::{
    Cause, ChunkInfo, ChunkState, Crossing, DataOut, Fault, KEY_EMPTY, Kind, Oob, OpenChannel,
    Outcome, RuleError, Status, WriteCmd,
};
use crate::geometry::{ChunkId, Geometry, Ppa, UnitId};
use crate::inflight::{Change, InFlight, Queue};
use crate::nand::{Action, Command, Log, NandTiming, Schedule};
use crate::rules::{ChunkTable, Place};
use crate::store::{MemoryStore, Store, StoreError};
use nandscape_block::SectorData;
use nandscape_rt::Nanos;
use std::collections::BTreeSet;
use std::mem::take;
use std::ops::Range;

/// A virtual open-channel SSD.
#[derive(Clone, Debug)]
pub struct Media<S: Store = MemoryStore> {
    chunks: ChunkTable,
    schedule: Schedule,
    store: S,
    /// One a unit.
    queues: Vec<Queue>,
    /// Packed addresses of sectors that cannot be corrected.
    unreadable: BTreeSet<u64>,
    program_fault: bool,
    erase_fault: bool,
    endurance_erases: u32,
    /// What the next command is for.
    cause: Cause,
}

impl Media<MemoryStore> {
    /// An erased device that keeps its sectors in memory. Takes no resident memory to speak of
    /// until it is written, whatever its size.
    ///
    /// # Errors
    /// A geometry that makes no sense or is too large, a bad chunk or slow unit outside of it, or a
    /// memory cap below what the empty device needs.
    pub fn new(config: MediaConfig) -> Result<Self, MediaError> {
        let geometry = config.geometry;
        let store = MemoryStore::new(&geometry, config.payload, sector_memory(&config)?)
            .ok_or(MediaError::AddressSpace { sectors: geometry.total_sectors() })?
            .dropping_tags(config.drops_tags);
        Self::with_store(config, store)
    }
}

impl<S: Store> Media<S> {
    /// An erased device over a store that was made for its geometry.
    ///
    /// # Errors
    /// As [`Media::new`], memory left out.
    pub fn with_store(config: MediaConfig, store: S) -> Result<Self, MediaError> {
        let geometry = config.geometry;
        geometry.check()?;
        let units = geometry.total_units();
        let mut media = Self {
            chunks: ChunkTable::new(geometry),
            schedule: Schedule::new(config.timing, units, geometry.groups),
            store,
            queues: vec![Queue::default(); units as usize],
            unreadable: BTreeSet::new(),
            program_fault: false,
            erase_fault: false,
            endurance_erases: config.endurance_erases.unwrap_or(u32::MAX),
            cause: Cause::default(),
        };
        for chunk in config.bad_chunks {
            let place = media.existing("bad_chunks", chunk)?;
            media.chunks.set_state(place, ChunkState::Offline);
        }
        for (unit, percent) in config.slow_units {
            media.existing("slow_units", ChunkId { unit, chunk: 0 })?;
            media.schedule.slow_down(unit.0, percent);
        }
        Ok(media)
    }

    fn existing(&self, key: &'static str, id: ChunkId) -> Result<Place, MediaError> {
        let geometry = self.chunks.geometry();
        if id.unit.0 >= geometry.total_units() || id.chunk >= geometry.chunks {
            return Err(MediaError::NoSuchChunk { key, unit: id.unit.0, chunk: id.chunk });
        }
        Ok(self.chunks.chunk_place(id))
    }

    /// Other timing from now on, on a device at rest: everything under way completes at once.
    pub fn set_timing(&mut self, timing: NandTiming) {
        for unit in 0..self.queues.len() {
            self.retire_completed(unit as u32, Nanos::MAX);
        }
        self.schedule.set_timing(timing);
    }

    /// Keeps a log from now on, with room for so many commands and spans.
    pub fn start_log(&mut self, room: usize) {
        self.cause = Cause::default();
        self.schedule.start_log(room);
    }

    /// What was logged since it was last taken; the log goes on, with this room. `None`: none is kept.
    pub fn take_log(&mut self, room: usize) -> Option<Log> {
        self.schedule.log_mut().map(|log| log.take(room))
    }

    /// What was logged since it was last taken, and what units have yet to do for that; the log ends.
    pub fn end_log(&mut self) -> Option<Log> {
        self.schedule.end_log()
    }

    /// Logs the command whose time was reserved last. The cause that was set was that of this command alone.
    #[inline]
    fn log(&mut self, action: Action, place: Place, sectors: u32, submitted: Nanos, end: Outcome) {
        let cause = take(&mut self.cause);
        if self.schedule.log_mut().is_some() {
            self.log_command(cause, action, place, sectors, submitted, end);
        }
    }

    #[cold]
    fn log_command(
        &mut self,
        cause: Cause,
        action: Action,
        place: Place,
        sectors: u32,
        submitted: Nanos,
        Outcome { at: done, status }: Outcome,
    ) {
        let (chunk, sector) = (self.chunks.chunk_of(place.row), place.sector);
        if let Some(log) = self.schedule.log_mut() {
            let command =
                Command { action, chunk, sector, sectors, cause, submitted, done, status };
            log.command(command);
        }
    }

    /// The store below.
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Makes everything that was written durable in the store.
    ///
    /// # Errors
    /// What the store's backend reports.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.store.sync()
    }

    /// Drops what completed on a unit, and with completed erases the content that they erased.
    #[inline]
    fn retire_completed(&mut self, unit: u32, now: Nanos) {
        while let Some(command) = self.queues[unit as usize].pop_completed(now) {
            let row = self.chunks.row(command.row);
            if let Change::Erase { erases, .. } = command.change
                && row.stale
                && row.erases == erases
            {
                self.forget(command.row);
            }
        }
    }

    /// Forgets everything that a chunk held.
    fn forget(&mut self, row: usize) {
        self.chunks.row_mut(row).stale = false;
        self.forget_sectors(row, 0, self.chunks.geometry().sectors);
    }

    fn forget_sectors(&mut self, row: usize, sector: u32, sectors: u32) {
        let from = self.chunks.first(row).plus(sector);
        self.store.erase(from, sectors);
        while let Some(&at) = self.unreadable.range(from.0..from.plus(sectors).0).next() {
            self.unreadable.remove(&at);
        }
    }

    /// Whether all of these sectors can be corrected.
    #[inline]
    fn all_readable(&self, at: Ppa, sectors: u32) -> bool {
        self.unreadable.is_empty()
            || self.unreadable.range(at.0..at.plus(sectors).0).next().is_none()
    }

    /// The program fails: the chunk closes early, and its next reset will fail.
    #[cold]
    fn fail_program(&mut self, now: Nanos, ready: Nanos, place: Place, sectors: u32) -> Outcome {
        self.chunks.row_mut(place.row).failing = true;
        self.chunks.set_wp(place, place.sector);
        let at = self.schedule.program(now, ready, place.unit, sectors).done;
        Outcome { at, status: Status::ProgramFailed }
    }

    /// The erase fails, after its time: the chunk is offline.
    #[cold]
    fn fail_erase(&mut self, now: Nanos, ready: Nanos, place: Place) -> Outcome {
        self.chunks.set_state(place, ChunkState::Offline);
        self.forget(place.row);
        let at = self.schedule.erase(now, ready, place.unit).done;
        Outcome { at, status: Status::EraseFailed }
    }

    /// Whether a chunk's erase fails: armed, after a failed program, or worn out.
    fn erase_fails(&mut self, place: Place) -> bool {
        let armed = take(&mut self.erase_fault);
        let row = self.chunks.row(place.row);
        armed || row.failing || row.erases >= self.endurance_erases
    }

    #[cold]
    fn refuse(
        &self,
        op: &'static str,
        place: Place,
        sectors: usize,
        rule: &'static str,
    ) -> RuleError {
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
        let ChunkId { unit, chunk } = self.chunks.chunk_of(place.row);
        RuleError { op, unit: unit.0, chunk, sector: place.sector, sectors, rule }
    }
}

/// The rule that a write breaks which the store cannot keep.
#[cold]
const fn broken_rule(error: StoreError) -> &'static str {
    match error {
        StoreError::Full => RuleError::MEMORY_CAP,
        StoreError::Io(_) => RuleError::STORE_FAILED,
    }
}

/// Bytes that sectors may take: the memory cap less the tables.
///
/// # Errors
/// A geometry that makes no sense or is too large, or tables that exceed the cap.
pub fn sector_memory(config: &MediaConfig) -> Result<u64, MediaError> {
    config.geometry.check()?;
    let needed_bytes = table_bytes(&config.geometry);
    let cap_bytes = config.memory_cap_bytes.unwrap_or(u64::MAX);
    cap_bytes.checked_sub(needed_bytes).ok_or(MediaError::Memory { needed_bytes, cap_bytes })
}

/// Bytes of the chunk table and the per-unit tables of a device of this shape.
fn table_bytes(geometry: &Geometry) -> u64 {
    let chunks = geometry.ppa_end() >> geometry.sector_bits();
    let units = u64::from(geometry.total_units());
    chunks * size_of::<crate::rules::Row>() as u64 + units * size_of::<Queue>() as u64
}

impl<S: Store> OpenChannel for Media<S> {
    #[inline]
    fn geometry(&self) -> &Geometry {
        self.chunks.geometry()
    }

    #[inline]
    fn chunk(&self, chunk: ChunkId) -> ChunkInfo {
        self.chunks.info(chunk)
    }

    #[inline]
    fn write(&mut self, now: Nanos, ready: Nanos, cmd: WriteCmd<'_>) -> Result<Outcome, RuleError> {
        let place = self.chunks.place(cmd.at);
        let sectors = cmd.keys.len();
        if let Err(rule) = self.chunks.check_write(place, &cmd) {
            return Err(self.refuse("write", place, sectors, rule));
        }
        let Place { row, unit, sector } = place;
        let sectors = sectors as u32;
        self.retire_completed(unit, now);
        if self.chunks.row(row).stale {
            self.forget(row);
        }
        let action = Action::Program(cmd.kind);
        if take(&mut self.program_fault) {
            let outcome = self.fail_program(now, ready, place, sectors);
            self.log(action, place, sectors, now, outcome);
            return Ok(outcome);
        }
        if let Err(error) = self.store.write(&cmd) {
            return Err(self.refuse("write", place, cmd.keys.len(), broken_rule(error)));
        }
        self.chunks.set_wp(place, sector + sectors);
        let reserved = self.schedule.program(now, ready, unit, sectors);
        if reserved.done > now {
            let change = Change::Write { sector, sectors };
            let (start, done) = (reserved.start, reserved.done);
            self.queues[unit as usize].push(InFlight { start, done, row, change });
        }
        if self.cause.is_collection() {
            self.schedule.note_collection(unit);
        }
        let outcome = Outcome { at: reserved.done, status: Status::Ok };
        self.log(action, place, sectors, now, outcome);
        Ok(outcome)
    }

    fn write_residual(&mut self, cmd: WriteCmd<'_>) -> Result<(), RuleError> {
        let place = self.chunks.place(cmd.at);
        let sectors = cmd.keys.len();
        if let Err(rule) = self.chunks.check_write(place, &cmd) {
            return Err(self.refuse("write", place, sectors, rule));
        }
        if self.chunks.row(place.row).stale {
            self.forget(place.row);
        }
        if let Err(error) = self.store.write(&cmd) {
            return Err(self.refuse("write", place, sectors, broken_rule(error)));
        }
        self.chunks.set_wp(place, place.sector + sectors as u32);
        Ok(())
    }

    #[inline]
    fn read(
        &mut self,
        now: Nanos,
        ready: Nanos,
        at: Ppa,
        sectors: u32,
        out: &mut impl DataOut,
    ) -> Result<Outcome, RuleError> {
        let place = self.chunks.place(at);
        if let Err(rule) = self.chunks.check_read(place, sectors) {
            return Err(self.refuse("read", place, sectors as usize, rule));
        }
        let readable = self.all_readable(at, sectors) && self.store.check(at, sectors).is_ok();
        let range = place.sector..place.sector + sectors;
        let at = self.schedule.read(now, ready, place.unit, range, out);
        if self.cause.is_collection() {
            self.schedule.note_collection(place.unit);
        }
        let status = if readable { Status::Ok } else { Status::Uncorrectable };
        let outcome = Outcome { at, status };
        self.log(Action::Read, place, sectors, now, outcome);
        Ok(outcome)
    }

    fn reset(&mut self, now: Nanos, ready: Nanos, chunk: ChunkId) -> Result<Outcome, RuleError> {
        let place = self.chunks.chunk_place(chunk);
        if let Err(rule) = self.chunks.check_reset(place) {
            let ChunkId { unit, chunk } = chunk;
            return Err(RuleError {
                op: "reset",
                unit: unit.0,
                chunk,
                sector: 0,
                sectors: 0,
                rule,
            });
        }
        self.retire_completed(place.unit, now);
        let written = self.chunks.row(place.row).wp;
        if self.erase_fails(place) {
            let outcome = self.fail_erase(now, ready, place);
            self.log(Action::Erase, place, written, now, outcome);
            return Ok(outcome);
        }
        let row = self.chunks.row_mut(place.row);
        row.erases += 1;
        row.stale = true;
        let change = Change::Erase { wp: row.wp, state: row.state, erases: row.erases };
        self.chunks.set_wp(place, 0);
        let reserved = self.schedule.erase(now, ready, place.unit);
        let (start, done, row) = (reserved.start, reserved.done, place.row);
        if done > now {
            self.queues[place.unit as usize].push(InFlight { start, done, row, change });
        } else {
            self.forget(row);
        }
        let outcome = Outcome { at: done, status: Status::Ok };
        self.log(Action::Erase, place, written, now, outcome);
        Ok(outcome)
    }

    #[inline]
    fn oob(&self, at: Ppa) -> Oob {
        let lost = Oob { key: KEY_EMPTY, seq: 0, kind: Kind::None, aux: 0 };
        self.store.oob(at).unwrap_or(lost)
    }

    #[inline]
    fn data(&self, at: Ppa) -> SectorData {
        self.store.data(at).unwrap_or(SectorData::Absent)
    }

    #[inline]
    fn readable(&self, at: Ppa) -> bool {
        (self.unreadable.is_empty() || !self.unreadable.contains(&at.0))
            && self.store.check(at, 1).is_ok()
    }

    #[inline]
    fn may_drop(&self) -> bool {
        self.store.may_drop()
    }

    #[inline]
    fn is_droppable(&self, at: Ppa) -> bool {
        self.store.is_droppable(at)
    }

    fn drop_content(&mut self, at: Ppa) -> bool {
        self.store.drop_content(at)
    }

    #[inline]
    fn is_dropped(&self, at: Ppa) -> bool {
        self.store.is_dropped(at)
    }

    fn arm(&mut self, fault: Fault) {
        match fault {
            Fault::Program => self.program_fault = true,
            Fault::Erase => self.erase_fault = true,
            Fault::Delay(by) => self.schedule.delay_next(by),
        }
    }

    fn mark_unreadable(&mut self, at: Ppa) {
        self.unreadable.insert(at.0);
    }

    #[inline]
    fn set_cause(&mut self, cause: Cause) {
        self.cause = cause;
    }

    #[inline]
    fn begins(&self) -> Nanos {
        self.schedule.begins()
    }

    fn idle_from(&self) -> (Nanos, UnitId) {
        self.schedule.idle_from()
    }

    fn collection_time(&self, unit: UnitId, time: Range<Nanos>) -> Nanos {
        self.schedule.collection_time(unit.0, time)
    }

    #[inline]
    fn note_transfer(&mut self, crossing: Crossing) {
        self.schedule.note_transfer(crossing);
    }

    #[inline]
    fn prefetch(&self, at: Ppa) {
        self.store.prefetch(at);
    }
}
