//! The life of a line around its data: erased and given start metadata while the line before is
//! still open, filled unit by unit, closed with end metadata (pblk-core.c `pblk_line_replace_data`,
//! `pblk_line_close`, pblk-write.c `pblk_submit_meta_io`).
//!
//! Units of a line are taken in the order of rows (one write unit on each parallel unit), and a unit
//! is usable when its chunk's write pointer stands exactly there. That one rule skips bad chunks,
//! chunks closed by a failed program, start metadata, and what recovery padded.

use super::Pblk;
use super::capacity::CLOSING_LINES;
use super::format::Smeta;
use super::line::{LineId, LineState};
use super::write::{MAX_UNIT, Spot};
use crate::error::FtlError;
use crate::pblk::events::What;
use nandscape_media::{
    ChunkId, ChunkState, KEY_EMPTY, Kind, OpenChannel, Ppa, Status, UnitId, WriteCmd,
};

/// A place in a line: one write unit of one parallel unit. Ordered as units are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Cursor {
    pub(super) row: u32,
    pub(super) pu: u32,
}

impl Cursor {
    pub(super) const START: Self = Self { row: 0, pu: 0 };

    pub(super) fn step(&mut self, units: u32) {
        self.pu += 1;
        if self.pu == units {
            *self = Self { row: self.row + 1, pu: 0 };
        }
    }

    pub(super) fn step_back(&mut self, units: u32) {
        if self.pu == 0 {
            *self = Self { row: self.row - 1, pu: units };
        }
        self.pu -= 1;
    }
}

/// The line that takes data.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenLine {
    pub(super) id: LineId,
    pub(super) at: Cursor,
    /// Where end metadata begins.
    pub(super) end: Cursor,
}

/// The line that will take data next.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextLine {
    id: LineId,
    /// Units below this one are erased or being erased.
    erased_to: u32,
    /// Erases under way.
    erasing: u32,
    smeta: SmetaState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SmetaState {
    Missing,
    InFlight,
    Written,
}

/// A line whose end metadata is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClosingLine {
    id: LineId,
    at: Cursor,
    in_flight: u32,
    /// Units of end metadata still missing.
    missing: u32,
}

impl<M: OpenChannel> Pblk<M> {
    /// The next usable unit, unless its parallel unit is busy or no line is ready.
    pub(super) fn seek(&mut self) -> Result<Option<Spot>, FtlError> {
        loop {
            let Some(open) = self.open else {
                if self.open_next()? {
                    continue;
                }
                return Ok(None);
            };
            if open.at >= open.end {
                self.close_open();
                continue;
            }
            if self.busy[open.at.pu as usize] {
                return Ok(None);
            }
            let usable = self.is_usable(open.id, open.at);
            self.step_open();
            if usable {
                let at = self.ppa_at(open.id, open.at);
                return Ok(Some(Spot { line: open.id, pu: open.at.pu, at }));
            }
        }
    }

    fn step_open(&mut self) {
        let units = self.geometry.total_units();
        if let Some(open) = &mut self.open {
            open.at.step(units);
        }
    }

    pub(super) fn chunk_at(&self, line: LineId, pu: u32) -> ChunkId {
        ChunkId { unit: UnitId(pu), chunk: line }
    }

    fn sector(&self, at: Cursor) -> u32 {
        at.row * self.geometry.ws_opt
    }

    /// The first sector of a unit of a line.
    #[inline]
    pub(super) fn ppa_at(&self, line: LineId, at: Cursor) -> Ppa {
        self.geometry.ppa(self.chunk_at(line, at.pu), self.sector(at))
    }

    pub(super) fn line_end(&self) -> Cursor {
        Cursor { row: self.geometry.sectors / self.geometry.ws_opt, pu: 0 }
    }

    /// Whether a unit of a line can be written now.
    #[inline]
    fn is_usable(&self, line: LineId, at: Cursor) -> bool {
        let chunk = self.media.chunk(self.chunk_at(line, at.pu));
        matches!(chunk.state, ChunkState::Free | ChunkState::Open) && chunk.wp == self.sector(at)
    }

    /// Keeps the next line coming: takes one, erases a chunk, writes start or end metadata, each
    /// step at most once (the kernel interleaves one with each data write).
    pub(super) fn line_chores(&mut self) -> Result<(), FtlError> {
        self.take_next();
        self.erase_one()?;
        self.write_smeta()?;
        self.write_emeta()
    }

    fn take_next(&mut self) {
        if self.next.is_some() {
            return;
        }
        if let Some(id) = self.lines.take_free() {
            self.next = Some(NextLine { id, erased_to: 0, erasing: 0, smeta: SmetaState::Missing });
            self.limiter_update();
        }
    }

    /// Starts the erase of the next line's next chunk that needs one.
    fn erase_one(&mut self) -> Result<bool, FtlError> {
        let Some(mut next) = self.next else { return Ok(false) };
        while next.erased_to < self.geometry.total_units() {
            let pu = next.erased_to;
            let chunk = self.chunk_at(next.id, pu);
            next.erased_to += 1;
            if matches!(self.media.chunk(chunk).state, ChunkState::Open | ChunkState::Closed) {
                let outcome = self.media.reset(self.now, chunk)?;
                self.stats.erases += 1;
                self.events.push(outcome.at, What::Erase(outcome.status));
                next.erasing += 1;
                self.next = Some(next);
                return Ok(true);
            }
        }
        self.next = Some(next);
        Ok(false)
    }

    /// A chunk of the next line is erased, or bad.
    pub(super) fn erase_done(&mut self, status: Status) {
        let Some(next) = &mut self.next else { return };
        next.erasing -= 1;
        if status != Status::Ok {
            self.stats.erase_failures += 1;
            let id = next.id;
            self.lines.lose_chunk(id, self.geometry.sectors);
        }
    }

    /// Writes start metadata once all chunks are erased, to the first good chunk; a line without
    /// room for data is given up.
    fn write_smeta(&mut self) -> Result<(), FtlError> {
        let Some(next) = self.next else { return Ok(()) };
        let erased = next.erased_to == self.geometry.total_units() && next.erasing == 0;
        if !erased || next.smeta != SmetaState::Missing {
            return Ok(());
        }
        let good = |pu: &u32| self.is_usable(next.id, Cursor { row: 0, pu: *pu });
        let first = (0..self.geometry.total_units()).find(good);
        let Some(pu) = first.filter(|_| self.lines.get(next.id).left >= self.geometry.ws_opt)
        else {
            self.give_up_next(next.id);
            return Ok(());
        };
        if self.busy[pu as usize] {
            return Ok(());
        }
        self.program_smeta(next, pu)
    }

    fn program_smeta(&mut self, next: NextLine, pu: u32) -> Result<(), FtlError> {
        let ws_opt = self.geometry.ws_opt;
        let smeta = Smeta {
            instance: self.instance,
            line_seq: self.line_seq,
            logical_sectors: self.capacity.logical_sectors,
            line: next.id,
        };
        self.lines.get_mut(next.id).seq = self.line_seq;
        self.line_seq += 1;
        self.scratch.clear();
        self.scratch.resize(ws_opt as usize, smeta.encode());
        let at = self.geometry.ppa(self.chunk_at(next.id, pu), 0);
        let keys = &[KEY_EMPTY; MAX_UNIT][..ws_opt as usize];
        let cmd = WriteCmd { at, kind: Kind::Smeta, seq: 0, keys, data: &self.scratch };
        let outcome = self.media.write(self.now, cmd)?;
        self.stats.sectors.line_meta += u64::from(ws_opt);
        self.busy[pu as usize] = true;
        self.events.push(outcome.at, What::Smeta(pu, outcome.status));
        self.next = Some(NextLine { smeta: SmetaState::InFlight, ..next });
        Ok(())
    }

    /// Start metadata is written, or goes to the next good chunk.
    pub(super) fn smeta_done(&mut self, pu: u32, status: Status) {
        self.busy[pu as usize] = false;
        let Some(next) = &mut self.next else { return };
        if status == Status::Ok {
            next.smeta = SmetaState::Written;
        } else {
            next.smeta = SmetaState::Missing;
            let id = next.id;
            self.stats.program_failures += 1;
            self.lines.get_mut(id).werr = true;
            self.lines.forgo(id, self.geometry.sectors);
        }
    }

    fn give_up_next(&mut self, id: LineId) {
        self.lines.forgo(id, u32::MAX);
        self.lines.get_mut(id).state = LineState::Bad;
        self.next = None;
    }

    /// Opens the prepared line, or hurries its preparation. Whether it opened.
    fn open_next(&mut self) -> Result<bool, FtlError> {
        if self.closing.len() >= CLOSING_LINES {
            return Ok(false);
        }
        self.take_next();
        while self.erase_one()? {}
        self.write_smeta()?;
        let Some(next) = self.next.filter(|next| next.smeta == SmetaState::Written) else {
            return Ok(false);
        };
        self.lines.get_mut(next.id).state = LineState::Open;
        let end = self.emeta_start(next.id);
        self.open = Some(OpenLine { id: next.id, at: Cursor::START, end });
        self.next = None;
        Ok(true)
    }

    /// The last usable units of a line, enough for its end metadata, begin here.
    fn emeta_start(&self, line: LineId) -> Cursor {
        let mut at = self.line_end();
        let mut missing = self.emeta_units();
        while missing > 0 && at > Cursor::START {
            at.step_back(self.geometry.total_units());
            let chunk = self.media.chunk(self.chunk_at(line, at.pu));
            if matches!(chunk.state, ChunkState::Free | ChunkState::Open) {
                missing -= 1;
            }
        }
        at
    }

    pub(super) fn emeta_units(&self) -> u32 {
        self.capacity.emeta_sectors / self.geometry.ws_opt
    }

    /// The open line is full of data: end metadata follows, if room was kept for it.
    fn close_open(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.lines.forgo(open.id, u32::MAX);
        if open.end >= self.line_end() {
            self.line_closed(open.id);
            return;
        }
        self.lines.get_mut(open.id).state = LineState::Closing;
        let missing = self.emeta_units();
        self.closing.push_back(ClosingLine { id: open.id, at: open.end, in_flight: 0, missing });
    }

    /// Writes one unit of the oldest closing line's end metadata, if its parallel unit is idle. End
    /// metadata vouches for the line's data, so it waits until all of that is on media.
    fn write_emeta(&mut self) -> Result<(), FtlError> {
        let (units, end) = (self.geometry.total_units(), self.line_end());
        let Some(mut closing) = self.closing.front().copied() else { return Ok(()) };
        if self.lines.get(closing.id).in_flight > 0 {
            return Ok(());
        }
        while closing.at < end && !self.is_usable(closing.id, closing.at) {
            closing.at.step(units);
        }
        if closing.at < end && !self.busy[closing.at.pu as usize] {
            self.program_emeta(closing.id, closing.at)?;
            closing.at.step(units);
            closing.in_flight += 1;
        }
        self.closing[0] = closing;
        self.finish_closing(end);
        Ok(())
    }

    fn program_emeta(&mut self, line: LineId, at: Cursor) -> Result<(), FtlError> {
        let ws_opt = self.geometry.ws_opt;
        let ppa = self.ppa_at(line, at);
        let keys = &[KEY_EMPTY; MAX_UNIT][..ws_opt as usize];
        let cmd = WriteCmd { at: ppa, kind: Kind::Emeta, seq: 0, keys, data: &[] };
        let outcome = self.media.write(self.now, cmd)?;
        self.stats.sectors.line_meta += u64::from(ws_opt);
        self.busy[at.pu as usize] = true;
        self.events.push(outcome.at, What::Emeta(at.pu, outcome.status));
        Ok(())
    }

    /// A unit of the oldest closing line's end metadata is written, or missing for good.
    pub(super) fn emeta_done(&mut self, pu: u32, status: Status) {
        self.busy[pu as usize] = false;
        let end = self.line_end();
        let Some(closing) = self.closing.front_mut() else { return };
        closing.in_flight -= 1;
        if status == Status::Ok {
            closing.missing -= 1;
        } else {
            self.stats.program_failures += 1;
            self.lines.get_mut(closing.id).werr = true;
        }
        self.finish_closing(end);
    }

    /// Closes the oldest closing line if no more of its end metadata is to come.
    fn finish_closing(&mut self, end: Cursor) {
        let done = |closing: &&ClosingLine| closing.at >= end && closing.in_flight == 0;
        if let Some(closing) = self.closing.front().filter(done).copied() {
            self.closing.pop_front();
            self.lines.get_mut(closing.id).emeta = closing.missing == 0;
            self.line_closed(closing.id);
        }
    }

    /// A line may be a victim from now on, or is empty already.
    pub(super) fn line_closed(&mut self, id: LineId) {
        let weight = self.lines.weight(id);
        let line = self.lines.get_mut(id);
        line.state = LineState::Closed;
        let (empty, werr) = (line.valid == 0 && line.pending == 0, line.werr);
        self.victims.insert(id, weight, werr);
        if empty {
            self.line_emptied(id);
        }
        self.limiter_update();
    }
}
