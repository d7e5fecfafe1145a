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

use super::Pblk;
use super::cpu::MapTask;
use super::frontiers::WritePosition;
use super::layout::Cursor;
use super::mapping::Mapping;
use super::mapstore::{Cause, Job, MapVictim, Piece, Unit};
use super::units::MAX_UNIT;
use crate::common::ids::LineId;
use crate::common::lines::LineState;
use crate::error::FtlError;
use crate::pblk::events::EventKind;
use nandscape_block::{SectorData, Tag};
use nandscape_media::{Internal, KEY_EMPTY, Kind, OpenChannel, Ppa, Status, WriteCmd};
use nandscape_rt::Nanos;
use smallvec::{SmallVec, smallvec};

/// Write units of a victim that are read at once.
const COPY_UNITS: u32 = 8;
/// How far among the blocks used least recently one is sought to fill a write unit.
const FILL_WINDOW: u32 = 64;

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
}

impl<M: OpenChannel> Pblk<M> {
    /// Sectors that mapping blocks may still take.
    fn map_room(&self) -> u64 {
        let Some(mapping) = &self.mapping else { return 0 };
        let frontier = &self.frontiers.all[usize::from(mapping.store.frontier)];
        self.flash.left_of(frontier)
            + u64::from(self.flash.lines.kept) * u64::from(self.rules.capacity.line_data_sectors)
    }

    /// Begins write-backs and writes what waits, as far as there are room and idle units. Whether
    /// anything moved.
    pub(super) fn write_blocks(&mut self) -> Result<bool, FtlError> {
        let mut moved = false;
        while self.begin_write_back()? {
            moved = true;
        }
        while self.write_pieces()? {
            moved = true;
        }
        Ok(moved)
    }

    /// Takes one more block to be written back, if the collection of lines keeps its own.
    pub(super) fn begin_write_back(&mut self) -> Result<bool, FtlError> {
        let Some(block) = self.mapping.as_ref().and_then(|mapping| mapping.next_block()) else {
            return Ok(false);
        };
        if !self.has_map_room() {
            return Ok(false);
        }
        let Some(mapping) = &mut self.mapping else { return Ok(false) };
        let Some(begun) = mapping.cache.write_back_begin(block) else {
            mapping.owed = mapping.owed.saturating_sub(1);
            return Ok(true);
        };
        let number = self.add_job(block, begun.version, true);
        if begun.read.is_some() {
            self.order_map(MapTask::Merge(number, block))?;
        } else {
            self.send_job(number);
        }
        Ok(true)
    }

    pub(super) fn has_map_room(&self) -> bool {
        let Some(mapping) = &self.mapping else { return false };
        let store = &mapping.store;
        let reserve = u64::from(self.rules.capacity.line_data_sectors + self.flash.geometry.ws_opt);
        let wanted = store.jobs.len() as u64 * store.shape.cost();
        self.map_room() >= wanted + store.committed() + store.shape.cost() + reserve
    }

    pub(super) fn add_job(&mut self, block: u32, version: u32, cached: bool) -> u32 {
        let Some(mapping) = &mut self.mapping else { return 0 };
        let pieces = mapping.store.shape.pieces;
        let to = smallvec![Ppa(0); pieces as usize];
        mapping.store.jobs.add(Job { block, version, to, missing: pieces, cached })
    }

    /// A job's block can be written: what it holds now is what media will hold.
    pub(super) fn send_job(&mut self, number: u32) {
        let Some(mapping) = &mut self.mapping else { return };
        let Some(job) = mapping.store.jobs.get_mut(number) else { return };
        let block = job.block;
        let tag = self.digest(block);
        if let Some(mapping) = &mut self.mapping {
            mapping.write_out(number, block, tag);
        }
    }

    /// Fills the next unit of the mapping line with pieces. Whether there was one. What does not fill a
    /// unit waits for more while a unit is in flight, so that few are padded.
    fn write_pieces(&mut self) -> Result<bool, FtlError> {
        let Some(mapping) = self.mapping.as_ref().filter(|m| !m.store.out.is_empty()) else {
            return Ok(false);
        };
        if mapping.store.units.len() > 0 && !mapping.store.fills_unit() {
            return Ok(false);
        }
        let frontier = mapping.store.frontier;
        let Some(spot) = self.next_write_position(frontier)? else { return Ok(false) };
        let number = self.fill_unit(spot);
        self.order_map(MapTask::Unit(number))?;
        self.line_chores(frontier)?;
        Ok(true)
    }

    /// Takes what waits into a unit at this place; its number. There is a cached map.
    fn fill_unit(&mut self, spot: WritePosition) -> u32 {
        let ws_opt = self.flash.geometry.ws_opt;
        let Some(mapping) = &mut self.mapping else { return 0 };
        let mut pieces = SmallVec::new();
        let mut used = 0;
        while let Some(piece) = mapping.store.out.front().filter(|p| used + p.sectors <= ws_opt) {
            used += piece.sectors;
            pieces.extend(mapping.store.out.pop_front());
        }
        mapping.counts.pad_sectors += u64::from(ws_opt - used);
        let unit = Unit { line: spot.line, pu: spot.pu, at: spot.at, pieces };
        let number = mapping.store.units.add(unit);
        self.flash.counts.sectors.map += u64::from(ws_opt);
        self.flash.busy[spot.pu as usize] = true;
        self.flash.lines.use_up(spot.line, ws_opt);
        let line = self.flash.lines.get_mut(spot.line);
        line.pending += used;
        line.in_flight += 1;
        number
    }

    /// Issues the write command of a unit.
    fn program_unit(&mut self, number: u32) -> Result<(), FtlError> {
        let ws_opt = self.flash.geometry.ws_opt;
        let Some(mapping) = &mut self.mapping else { return Ok(()) };
        let seq = mapping.store.next_seq;
        mapping.store.next_seq += u64::from(ws_opt);
        let Some(unit) = mapping.store.units.get_mut(number) else { return Ok(()) };
        let mut keys = [KEY_EMPTY; MAX_UNIT];
        let mut used = 0;
        self.flash.scratch.clear();
        for piece in &unit.pieces {
            for index in 0..piece.sectors {
                keys[(used + index) as usize] = piece.key + index;
                self.flash.scratch.push(SectorData::Tag(piece.tag));
            }
            used += piece.sectors;
        }
        self.flash.scratch.resize(
            if self.rules.run.keep_content { ws_opt as usize } else { 0 },
            SectorData::Absent,
        );
        let keys = &keys[..ws_opt as usize];
        let data = &self.flash.scratch;
        let cmd =
            WriteCmd { at: unit.at, kind: Kind::Map, seq, seq_deltas: &[], aux: &[], keys, data };
        let outcome = self.flash.media.write(self.flash.now, self.flash.now, cmd)?;
        self.flash.events.push(outcome.at, EventKind::MapUnit(number, outcome.status));
        Ok(())
    }

    /// Commands for mapping blocks, and their sectors.
    pub(super) fn map_demand(&self, what: MapTask) -> (u32, u32) {
        let Some(mapping) = &self.mapping else { return (0, 0) };
        match what {
            MapTask::Load(block) | MapTask::Merge(_, block) => mapping
                .pieces_of(block)
                .fold((0, 0), |(count, sum), (_, _, sectors)| (count + 1, sum + sectors)),
            MapTask::Copies => {
                let copies = &mapping.store.copies;
                (copies.len() as u32, copies.iter().map(|copy| copy.sectors).sum())
            }
            MapTask::Unit(_) => (1, self.flash.geometry.ws_opt),
        }
    }

    /// Issues commands for mapping blocks.
    pub(super) fn issue_map(&mut self, what: MapTask) -> Result<(), FtlError> {
        match what {
            MapTask::Load(block) => self.read_block(block),
            MapTask::Merge(number, block) => {
                let end = self.read_pieces(block)?;
                self.flash.events.push(end, EventKind::MapMerge(number));
                Ok(())
            }
            MapTask::Copies => self.read_copies(),
            MapTask::Unit(number) => self.program_unit(number),
        }
    }

    /// A unit of mapping blocks is written, or has to go elsewhere.
    pub(super) fn map_unit_done(&mut self, number: u32, status: Status) {
        let Some(mapping) = &mut self.mapping else { return };
        let Some(unit) = mapping.store.units.take(number) else { return };
        self.flash.lines.get_mut(unit.line).in_flight -= 1;
        self.flash.busy[unit.pu as usize] = false;
        if status != Status::Ok {
            return self.map_unit_failed(unit);
        }
        let mut at = unit.at;
        for piece in unit.pieces {
            self.piece_written(piece, at);
            at = at.plus(piece.sectors);
        }
    }

    fn map_unit_failed(&mut self, unit: Unit) {
        self.flash.counts.media_errors.program_failures += 1;
        let used: u32 = unit.pieces.iter().map(|piece| piece.sectors).sum();
        if let Some(mapping) = &mut self.mapping {
            for piece in unit.pieces.into_iter().rev() {
                mapping.store.out.push_front(piece);
            }
        }
        let line = self.flash.lines.get_mut(unit.line);
        line.pending -= used;
        line.werr = true;
        self.frontiers.write_off_rest(&mut self.flash, unit.line, unit.at);
        if let Some(id) = self.flash.lowered(unit.line) {
            self.supply().line_emptied(id);
        }
    }

    fn piece_written(&mut self, piece: Piece, at: Ppa) {
        let Some(mapping) = &mut self.mapping else { return };
        match piece.cause {
            Cause::Copy(from) => {
                mapping.store.copying -= 1;
                let newest = mapping.moved(piece.key, from, at);
                self.settle_piece(at, piece.sectors, newest);
                if newest {
                    self.drop_piece(from, piece.sectors);
                }
            }
            Cause::WriteBack(number) => {
                let (_, index) = mapping.store.shape.of_key(piece.key).unwrap_or_default();
                let Some(job) = mapping.store.jobs.get_mut(number) else { return };
                job.to[index as usize] = at;
                job.missing -= 1;
                if job.missing == 0 {
                    self.job_done(number);
                }
            }
        }
    }

    /// All pieces of a block are on media: they are its newest version.
    fn job_done(&mut self, number: u32) {
        let Some(mapping) = &mut self.mapping else { return };
        let Some(job) = mapping.store.jobs.take(number) else { return };
        let shape = mapping.store.shape;
        for piece in (0..shape.pieces).rev() {
            let Some(mapping) = &mut self.mapping else { return };
            let (to, sectors) = (job.to[piece as usize], shape.piece_len(piece));
            let old = mapping.location(job.block, piece);
            if piece > 0 {
                mapping.place(job.block, piece, to);
            } else if job.cached {
                mapping.cache.written(job.block, to, job.version);
                mapping.owed = mapping.owed.saturating_sub(1);
            } else {
                mapping.cache.adopt(job.block, to, job.version);
            }
            self.settle_piece(to, sectors, true);
            if let Some(old) = old {
                self.drop_piece(old, sectors);
            }
        }
    }

    /// A piece is no longer under way; it is valid, or was superseded meanwhile.
    fn settle_piece(&mut self, at: Ppa, sectors: u32, valid: bool) {
        let id = self.flash.lines.of(at);
        self.flash.lines.get_mut(id).pending -= sectors;
        if valid {
            self.flash.lines.set_valid(id, at, u64::MAX >> (64 - sectors));
        }
        if let Some(id) = self.flash.lowered(id) {
            self.supply().line_emptied(id);
        }
    }

    /// A piece's old place is garbage; the line may be erased at once.
    fn drop_piece(&mut self, at: Ppa, sectors: u32) {
        for index in 0..sectors {
            self.flash.lines.clear_valid(at.plus(index), 0);
        }
        if let Some(id) = self.flash.lowered(self.flash.lines.of(at)) {
            self.supply().line_emptied(id);
        }
    }

    /// Reads pieces, given where they are and how many sectors each has. When the last arrives.
    pub(super) fn read_all(
        &mut self,
        pieces: impl IntoIterator<Item = (Ppa, u32)>,
    ) -> Result<Nanos, FtlError> {
        let mut end = self.flash.now;
        for (at, sectors) in pieces {
            end = end.max(self.read_piece(at, sectors)?);
        }
        Ok(end)
    }

    /// Reads sectors of a piece: from media, or from RAM while media do not serve them.
    fn read_piece(&mut self, at: Ppa, sectors: u32) -> Result<Nanos, FtlError> {
        if let Some(mapping) = &mut self.mapping {
            mapping.counts.read_sectors += u64::from(sectors);
        }
        if self.flash.is_served(at.plus(sectors - 1)) {
            Ok(self
                .flash
                .media
                .read(self.flash.now, self.flash.now, at, sectors, &mut Internal)?
                .at)
        } else {
            Ok(self.flash.now + self.flash.copy_out(sectors))
        }
    }

    /// Collects mapping lines when few sectors are left. Whether anything moved.
    pub(super) fn collect_map(&mut self) -> Result<bool, FtlError> {
        let Some(mapping) = &self.mapping else { return Ok(false) };
        if mapping.store.copying > 0 {
            return Ok(false);
        }
        let Some(victim) = mapping.store.victim else { return Ok(self.start_map_victim()) };
        self.copy_some(victim)?;
        Ok(true)
    }

    fn start_map_victim(&mut self) -> bool {
        let line = u64::from(self.rules.capacity.line_data_sectors);
        let room = self.map_room();
        let Some(mapping) = &mut self.mapping else { return false };
        if room >= 2 * line + mapping.store.committed() + mapping.store.shape.cost() {
            return false;
        }
        let settled =
            self.flash.map_victims.iter().filter(|&&id| self.flash.lines.get(id).pending == 0);
        let Some(&id) = settled.min_by_key(|&&id| (self.flash.lines.get(id).valid, id)) else {
            return false;
        };
        let victim = *self.flash.lines.get(id);
        if u64::from(victim.valid) + u64::from(self.flash.geometry.ws_opt)
            > room.min(victim.data.into())
        {
            return false;
        }
        self.flash.map_victims.retain(|&other| other != id);
        mapping.store.victim = Some(MapVictim { id, at: Cursor::START });
        mapping.counts.victims += 1;
        mapping.counts.victim_valid += u64::from(victim.valid);
        self.flash.lines.get_mut(id).state = LineState::Gc;
        true
    }

    /// Has the next valid pieces of the victim read, or lets it go when there are none.
    fn copy_some(&mut self, mut victim: MapVictim) -> Result<(), FtlError> {
        let (width, ws_opt) = (self.flash.layout.width, self.flash.geometry.ws_opt);
        let mut units = 0;
        while victim.at < self.flash.line_end() && units < COPY_UNITS {
            let at = self.flash.ppa_at(victim.id, victim.at);
            let mask = self.flash.lines.valid_mask(at, ws_opt);
            if mask != 0 {
                self.list_copies(at, mask);
                units += 1;
            }
            victim.at.step(width);
        }
        let Some(mapping) = &mut self.mapping else { return Ok(()) };
        if units > 0 {
            mapping.store.victim = Some(victim);
            self.order_map(MapTask::Copies)
        } else {
            mapping.store.victim = None;
            self.end_map_victim(victim.id);
            Ok(())
        }
    }

    /// Notes the valid pieces of a unit as copies to be read.
    fn list_copies(&mut self, first: Ppa, mut mask: u64) {
        while mask != 0 {
            let from = first.plus(mask.trailing_zeros());
            let key = self.flash.media.oob(from).key;
            let Some(mapping) = &self.mapping else { break };
            let Some((block, piece)) = mapping.store.shape.of_key(key) else { break };
            let sectors = mapping.store.shape.piece_len(piece);
            mask &= !((u64::MAX >> (64 - sectors)) << mask.trailing_zeros());
            let tag = match self.flash.media.data(from) {
                SectorData::Tag(tag) if self.flash.media.readable(from) => tag,
                _ => self.digest(block),
            };
            let copy = Piece { key, sectors, tag, cause: Cause::Copy(from) };
            if let Some(mapping) = &mut self.mapping {
                mapping.store.copies.push(copy);
                mapping.store.copying += 1;
                mapping.counts.copied_sectors += u64::from(sectors);
            }
        }
    }

    /// Reads the pieces that were listed.
    fn read_copies(&mut self) -> Result<(), FtlError> {
        let Some(mapping) = &mut self.mapping else { return Ok(()) };
        let copies = std::mem::take(&mut mapping.store.copies);
        let arrived = self.read_all(copies.iter().filter_map(|copy| match copy.cause {
            Cause::Copy(from) => Some((from, copy.sectors)),
            Cause::WriteBack(_) => None,
        }))?;
        if let Some(mapping) = &mut self.mapping {
            mapping.store.copies = copies;
        }
        self.flash.events.push(arrived, EventKind::MapCopies);
        Ok(())
    }

    /// Copies have been read.
    pub(super) fn map_copies_arrived(&mut self) {
        if let Some(mapping) = &mut self.mapping {
            let copies = std::mem::take(&mut mapping.store.copies);
            mapping.store.out.extend(copies);
        }
    }

    fn end_map_victim(&mut self, id: LineId) {
        if self.flash.lines.get(id).valid == 0 {
            self.supply().quarantine_line(id);
        } else {
            self.flash.lines.get_mut(id).state = LineState::Closed;
            self.flash.map_victims.push(id);
        }
        self.supply().limiter_update();
    }
}
