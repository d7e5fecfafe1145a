//! Mapping blocks on media: written around the rings to lines of their own, collected by themselves
//! (selective mapping-table loading, section 3; what the paper leaves open is decided here).
//!
//! - A block is cut into *pieces* of at most a write unit; small blocks share a unit. Every sector's
//!   key is its place in the table (`block * sectors + index`), its content a digest of the block.
//! - A block's new pieces become valid together, when all are on media; the old ones are garbage then.
//!   Nothing waits for that: the table can always be rebuilt from the data's out-of-band data, so a
//!   mapping line is erased without regard to what else is durable.
//! - The lines are a quota kept back from data: what all blocks need, a quarter more, and lines for
//!   writing and collecting. Write-backs leave one line of it, so that collection always finishes.
//! - Sectors that an open chunk does not serve yet are read from RAM (`staging_bytes`).

use super::cpu::MapTask;
use super::flash::Flash;
use super::frontiers::WritePosition;
use super::intake::Buffers;
use super::layout::Cursor;
use super::mapio::MapIo;
use super::mapping::Mapping;
use super::mapstore::{Cause, Job, MapStore, MapVictim, Piece, Unit};
use super::supply::Supply;
use super::units::MAX_UNIT;
use crate::common::ids::LineId;
use crate::common::lines::LineState;
use crate::error::FtlError;
use crate::pblk::events::EventKind;
use nandscape_block::{SectorData, Tag};
use nandscape_media::{KEY_EMPTY, Kind, OpenChannel, Ppa, Status, WriteCmd};
use nandscape_rt::{defect, invariant};
use smallvec::{SmallVec, smallvec};

/// Write units of a victim that are read at once.
const COPY_UNITS: u32 = 8;
/// How far among the blocks used least recently one is sought to fill a write unit.
const FILL_WINDOW: u32 = 64;

impl MapStore {
    /// Sectors that mapping blocks may still take.
    fn room<M: OpenChannel>(&self, supply: &Supply<'_, M>) -> u64 {
        let frontier = &supply.frontiers.all[usize::from(self.frontier)];
        supply.flash.left_of(frontier)
            + u64::from(supply.flash.lines.kept)
                * u64::from(supply.rules.capacity.line_data_sectors)
    }

    /// Whether one more block can be written, beside what waits, and with a line left for collection.
    pub(super) fn has_room<M: OpenChannel>(&self, supply: &Supply<'_, M>) -> bool {
        let line = supply.rules.capacity.line_data_sectors;
        let reserve = u64::from(line + supply.flash.geometry.ws_opt);
        let wanted = self.jobs.len() as u64 * self.shape.cost();
        self.room(supply) >= wanted + self.committed() + self.shape.cost() + reserve
    }

    /// A block is to be written. The number of the job.
    pub(super) fn add_job(&mut self, block: u32, version: u32, cached: bool) -> u32 {
        let pieces = self.shape.pieces;
        let to = smallvec![Ppa(0); pieces as usize];
        self.jobs.add(Job { block, version, to, missing: pieces, cached })
    }

    /// Copies have been read.
    pub(super) fn copies_arrived(&mut self) {
        self.out.extend(self.copies.drain(..));
    }
}

impl Mapping {
    /// Where a piece of a block's newest version is.
    pub(super) fn location(&self, block: u32, piece: u32) -> Option<Ppa> {
        if piece == 0 {
            return self.cache.location(block);
        }
        self.store.rest[self.store.rest_index(block, piece)].checked_sub(1).map(Ppa)
    }

    /// The pieces of a block that media hold: which, where, and how many sectors.
    pub(super) fn pieces_of(&self, block: u32) -> impl Iterator<Item = (u32, Ppa, u32)> {
        let shape = &self.store.shape;
        (0..shape.pieces).filter_map(move |piece| {
            Some((piece, self.location(block, piece)?, shape.piece_len(piece)))
        })
    }

    /// Notes where a piece after the first is.
    pub(super) fn place(&mut self, block: u32, piece: u32, at: Ppa) {
        if piece > 0 {
            let index = self.store.rest_index(block, piece);
            self.store.rest[index] = at.0 + 1;
        }
    }

    /// A piece has been copied; whether it is still the newest version.
    fn moved(&mut self, key: u32, from: Ppa, to: Ppa) -> bool {
        let Some((block, piece)) = self.store.shape.of_key(key) else { return false };
        if piece == 0 {
            return self.cache.moved(block, from, to);
        }
        let newest = self.location(block, piece) == Some(from);
        if newest {
            self.place(block, piece, to);
        }
        newest
    }

    /// Queues a block's pieces.
    fn write_out(&mut self, number: u32, block: u32, tag: Tag) {
        let shape = self.store.shape;
        for piece in 0..shape.pieces {
            let (key, sectors) = (shape.key(block, piece), shape.piece_len(piece));
            self.store.out.push_back(Piece { key, sectors, tag, cause: Cause::WriteBack(number) });
        }
    }

    /// The block to write back next: a victim, or a cold one that fills a unit with others.
    fn next_block(&self) -> Option<u32> {
        let shape = &self.store.shape;
        self.cache.next_write_back().or_else(|| {
            let waiting = self.store.out.len() as u32;
            let fits = waiting > 0 && (waiting + 1) * shape.piece <= shape.unit;
            if fits && self.cache.is_whole() { self.cache.pick_dirty(FILL_WINDOW) } else { None }
        })
    }

    /// Begins write-backs and writes what waits, as far as there are room and idle units. Whether
    /// anything moved.
    pub(super) fn write_blocks<M: OpenChannel>(
        &mut self,
        io: &mut MapIo<'_, M>,
    ) -> Result<bool, FtlError> {
        let mut moved = false;
        while self.begin_write_back(io)? {
            moved = true;
        }
        while self.write_pieces(io)? {
            moved = true;
        }
        Ok(moved)
    }

    /// Takes one more block to be written back, if the collection of lines keeps its own.
    pub(super) fn begin_write_back<M: OpenChannel>(
        &mut self,
        io: &mut MapIo<'_, M>,
    ) -> Result<bool, FtlError> {
        let Some(block) = self.next_block().filter(|_| self.store.has_room(&io.supply)) else {
            return Ok(false);
        };
        let Some(begun) = self.cache.write_back_begin(block) else {
            self.owed = self.owed.saturating_sub(1);
            return Ok(true);
        };
        let number = self.store.add_job(block, begun.version, true);
        if begun.read.is_some() {
            self.order(io, MapTask::Merge(number, block))?;
        } else {
            self.send_job(io.supply.flash, io.supply.buffers, number);
        }
        Ok(true)
    }

    /// A job's block can be written: what it holds now is what media will hold.
    pub(super) fn send_job<M>(&mut self, flash: &Flash<M>, buffers: &Buffers, number: u32) {
        invariant!(self.store.jobs.get_mut(number).is_some(), "job {number} is on its way");
        let Some(job) = self.store.jobs.get_mut(number) else { return };
        let block = job.block;
        let tag = self.digest(flash, buffers, block);
        self.write_out(number, block, tag);
    }

    /// Fills the next unit of the mapping line with pieces. Whether there was one. What does not fill a
    /// unit waits for more while a unit is in flight, so that few are padded.
    fn write_pieces<M: OpenChannel>(&mut self, io: &mut MapIo<'_, M>) -> Result<bool, FtlError> {
        let store = &self.store;
        if store.out.is_empty() || (store.units.len() > 0 && !store.fills_unit()) {
            return Ok(false);
        }
        let frontier = store.frontier;
        let Some(spot) = io.supply.next_write_position(frontier)? else { return Ok(false) };
        let number = self.fill_unit(io.supply.flash, spot);
        self.order(io, MapTask::Unit(number))?;
        io.supply.line_chores(frontier)?;
        Ok(true)
    }

    /// Takes what waits into a unit at this place; its number.
    fn fill_unit<M>(&mut self, flash: &mut Flash<M>, spot: WritePosition) -> u32 {
        let ws_opt = flash.geometry.ws_opt;
        let mut pieces = SmallVec::new();
        let mut used = 0;
        while let Some(piece) = self.store.out.front().filter(|p| used + p.sectors <= ws_opt) {
            used += piece.sectors;
            pieces.extend(self.store.out.pop_front());
        }
        self.counts.pad_sectors += u64::from(ws_opt - used);
        let unit = Unit { line: spot.line, pu: spot.pu, at: spot.at, pieces };
        let number = self.store.units.add(unit);
        flash.counts.sectors.map += u64::from(ws_opt);
        flash.busy[spot.pu as usize] = true;
        flash.lines.use_up(spot.line, ws_opt);
        let line = flash.lines.get_mut(spot.line);
        line.pending += used;
        line.in_flight += 1;
        number
    }

    /// Issues the write command of a unit.
    pub(super) fn program_unit<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        number: u32,
    ) -> Result<(), FtlError> {
        let ws_opt = flash.geometry.ws_opt;
        let seq = self.store.next_seq;
        self.store.next_seq += u64::from(ws_opt);
        let Some(unit) = self.store.units.get_mut(number) else {
            return Err(defect!("unit {number} of mapping blocks was filled").into());
        };
        let mut keys = [KEY_EMPTY; MAX_UNIT];
        let mut used = 0;
        flash.scratch.clear();
        for piece in &unit.pieces {
            for index in 0..piece.sectors {
                keys[(used + index) as usize] = piece.key + index;
                flash.scratch.push(SectorData::Tag(piece.tag));
            }
            used += piece.sectors;
        }
        flash
            .scratch
            .resize(if self.keeps_content { ws_opt as usize } else { 0 }, SectorData::Absent);
        let keys = &keys[..ws_opt as usize];
        let data = &flash.scratch;
        let cmd =
            WriteCmd { at: unit.at, kind: Kind::Map, seq, seq_deltas: &[], aux: &[], keys, data };
        let outcome = flash.media.write(flash.now, flash.now, cmd)?;
        flash.events.push(outcome.at, EventKind::MapUnit(number, outcome.status));
        Ok(())
    }

    /// A unit of mapping blocks is written, or has to go elsewhere.
    pub(super) fn unit_done<M: OpenChannel>(
        &mut self,
        supply: &mut Supply<'_, M>,
        number: u32,
        status: Status,
    ) {
        let unit = self.store.units.take(number);
        invariant!(unit.is_some(), "unit {number} of mapping blocks is written once");
        let Some(unit) = unit else { return };
        supply.flash.lines.get_mut(unit.line).in_flight -= 1;
        supply.flash.busy[unit.pu as usize] = false;
        if status != Status::Ok {
            return self.unit_failed(supply, unit);
        }
        let mut at = unit.at;
        for piece in unit.pieces {
            self.piece_written(supply, piece, at);
            at = at.plus(piece.sectors);
        }
    }

    fn unit_failed<M: OpenChannel>(&mut self, supply: &mut Supply<'_, M>, unit: Unit) {
        supply.flash.counts.media_errors.program_failures += 1;
        let used: u32 = unit.pieces.iter().map(|piece| piece.sectors).sum();
        for piece in unit.pieces.into_iter().rev() {
            self.store.out.push_front(piece);
        }
        let line = supply.flash.lines.get_mut(unit.line);
        line.pending -= used;
        line.werr = true;
        supply.frontiers.write_off_rest(supply.flash, unit.line, unit.at);
        if let Some(id) = supply.flash.lowered(unit.line) {
            supply.line_emptied(id);
        }
    }

    fn piece_written<M: OpenChannel>(&mut self, supply: &mut Supply<'_, M>, piece: Piece, at: Ppa) {
        match piece.cause {
            Cause::Copy(from) => {
                self.store.copying -= 1;
                let newest = self.moved(piece.key, from, at);
                supply.settle_piece(at, piece.sectors, newest);
                if newest {
                    supply.drop_piece(from, piece.sectors);
                }
            }
            Cause::WriteBack(number) => {
                let (index, job) =
                    (self.store.shape.of_key(piece.key), self.store.jobs.get_mut(number));
                invariant!(
                    index.is_some() && job.is_some(),
                    "a piece that is written back is one of a block, whose job is on its way"
                );
                let (Some((_, index)), Some(job)) = (index, job) else { return };
                job.to[index as usize] = at;
                job.missing -= 1;
                if job.missing == 0 {
                    self.job_done(supply, number);
                }
            }
        }
    }

    /// All pieces of a block are on media: they are its newest version.
    fn job_done<M: OpenChannel>(&mut self, supply: &mut Supply<'_, M>, number: u32) {
        let job = self.store.jobs.take(number);
        invariant!(job.is_some(), "job {number} is done once");
        let Some(job) = job else { return };
        let shape = self.store.shape;
        for piece in (0..shape.pieces).rev() {
            let (to, sectors) = (job.to[piece as usize], shape.piece_len(piece));
            let old = self.location(job.block, piece);
            if piece > 0 {
                self.place(job.block, piece, to);
            } else if job.cached {
                self.cache.written(job.block, to, job.version);
                self.owed = self.owed.saturating_sub(1);
            } else {
                self.cache.adopt(job.block, to, job.version);
            }
            supply.settle_piece(to, sectors, true);
            if let Some(old) = old {
                supply.drop_piece(old, sectors);
            }
        }
    }

    /// Collects mapping lines when few sectors are left. Whether anything moved.
    pub(super) fn collect<M: OpenChannel>(
        &mut self,
        io: &mut MapIo<'_, M>,
    ) -> Result<bool, FtlError> {
        if self.store.copying > 0 {
            return Ok(false);
        }
        let Some(victim) = self.store.victim else { return Ok(self.start_victim(&mut io.supply)) };
        self.copy_some(io, victim)?;
        Ok(true)
    }

    fn start_victim<M: OpenChannel>(&mut self, supply: &mut Supply<'_, M>) -> bool {
        let line = u64::from(supply.rules.capacity.line_data_sectors);
        let room = self.store.room(supply);
        if room >= 2 * line + self.store.committed() + self.store.shape.cost() {
            return false;
        }
        let settled =
            supply.flash.map_victims.iter().filter(|&&id| supply.flash.lines.get(id).pending == 0);
        let Some(&id) = settled.min_by_key(|&&id| (supply.flash.lines.get(id).valid, id)) else {
            return false;
        };
        let victim = *supply.flash.lines.get(id);
        if u64::from(victim.valid) + u64::from(supply.flash.geometry.ws_opt)
            > room.min(victim.data.into())
        {
            return false;
        }
        supply.flash.map_victims.retain(|&other| other != id);
        self.store.victim = Some(MapVictim { id, at: Cursor::START });
        self.counts.victims += 1;
        self.counts.victim_valid += u64::from(victim.valid);
        supply.flash.lines.get_mut(id).state = LineState::Gc;
        true
    }

    /// Has the next valid pieces of the victim read, or releases it when there are none.
    fn copy_some<M: OpenChannel>(
        &mut self,
        io: &mut MapIo<'_, M>,
        mut victim: MapVictim,
    ) -> Result<(), FtlError> {
        let Supply { flash, buffers, .. } = &io.supply;
        let (width, ws_opt) = (flash.layout.width, flash.geometry.ws_opt);
        let mut units = 0;
        while victim.at < flash.line_end() && units < COPY_UNITS {
            let at = flash.ppa_at(victim.id, victim.at);
            let mask = flash.lines.valid_mask(at, ws_opt);
            if mask != 0 {
                self.list_copies(flash, buffers, at, mask);
                units += 1;
            }
            victim.at.step(width);
        }
        if units > 0 {
            self.store.victim = Some(victim);
            self.order(io, MapTask::Copies)
        } else {
            self.store.victim = None;
            io.supply.end_map_victim(victim.id);
            Ok(())
        }
    }

    /// Notes the valid pieces of a unit as copies to be read.
    fn list_copies<M: OpenChannel>(
        &mut self,
        flash: &Flash<M>,
        buffers: &Buffers,
        first: Ppa,
        mut mask: u64,
    ) {
        while mask != 0 {
            let from = first.plus(mask.trailing_zeros());
            let key = flash.media.oob(from).key;
            let Some((block, piece)) = self.store.shape.of_key(key) else { break };
            let sectors = self.store.shape.piece_len(piece);
            mask &= !((u64::MAX >> (64 - sectors)) << mask.trailing_zeros());
            let tag = match flash.media.data(from) {
                SectorData::Tag(tag) if flash.media.readable(from) => tag,
                _ => self.digest(flash, buffers, block),
            };
            self.store.copies.push(Piece { key, sectors, tag, cause: Cause::Copy(from) });
            self.store.copying += 1;
            self.counts.copied_sectors += u64::from(sectors);
        }
    }
}

impl<M: OpenChannel> Supply<'_, M> {
    /// A piece is no longer in flight; it is valid, or was superseded meanwhile.
    fn settle_piece(&mut self, at: Ppa, sectors: u32, valid: bool) {
        let id = self.flash.lines.of(at);
        self.flash.lines.get_mut(id).pending -= sectors;
        if valid {
            self.flash.lines.set_valid(id, at, u64::MAX >> (64 - sectors));
        }
        if let Some(id) = self.flash.lowered(id) {
            self.line_emptied(id);
        }
    }

    /// A piece's old place is garbage; the line may be erased at once.
    fn drop_piece(&mut self, at: Ppa, sectors: u32) {
        for index in 0..sectors {
            self.flash.lines.clear_valid(at.plus(index), 0);
        }
        if let Some(id) = self.flash.lowered(self.flash.lines.of(at)) {
            self.line_emptied(id);
        }
    }

    /// A mapping line was read to its end: it is empty, or is closed again.
    fn end_map_victim(&mut self, id: LineId) {
        if self.flash.lines.get(id).valid == 0 {
            self.quarantine_line(id);
        } else {
            self.flash.lines.get_mut(id).state = LineState::Closed;
            self.flash.map_victims.push(id);
        }
        self.limiter_update();
    }
}
