//! The life of a line around its data: erased and given start metadata while the line before is
//! still open, filled unit by unit, closed with end metadata (pblk-core.c `pblk_line_replace_data`,
//! `pblk_line_close`, pblk-write.c `pblk_submit_meta_io`).
//!
//! Units of a line are taken in the order of rows (one write unit on each parallel unit), and a unit
//! is usable when its chunk's write pointer stands exactly there. That one rule skips bad chunks,
//! chunks closed by a failed program, start metadata, and what recovery padded.

use super::Pblk;
use super::capacity::CLOSING_LINES;
use super::format::{MAP_FRONTIER, Smeta};
use super::ids::{BufferId, FrontierId};
use super::layout::Cursor;
use super::write::{MAX_UNIT, WritePosition};
use crate::common::ids::{LineId, MAP_ORIGIN};
use crate::common::layout::StripeSet;
use crate::common::lines::LineState;
use crate::error::FtlError;
use crate::pblk::events::EventKind;
use nandscape_media::{ChunkState, KEY_EMPTY, Kind, OpenChannel, Ppa, Status, WriteCmd};
use std::collections::VecDeque;

/// Where data goes: a line that takes it, the line prepared to be next, and those before it whose end
/// metadata is under way.
#[derive(Debug)]
pub(super) struct Frontier {
    /// The stripes that its lines come from, each from that of them where most are free.
    pub(super) stripes: StripeSet,
    /// The buffer, or the first of the buffers, that it belongs to.
    pub(super) buffer: BufferId,
    pub(super) open: Option<OpenLine>,
    next: Option<NextLine>,
    closing: VecDeque<ClosingLine>,
}

impl Frontier {
    /// Without a line.
    pub(super) const fn new(buffer: BufferId, stripes: StripeSet) -> Self {
        Self { stripes, buffer, open: None, next: None, closing: VecDeque::new() }
    }

    /// The lines that have room for its data.
    pub(super) fn lines(&self) -> impl Iterator<Item = LineId> {
        self.open.map(|open| open.id).into_iter().chain(self.next.map(|next| next.id))
    }
}

/// All frontiers: those of buffers, then that of mapping blocks.
#[derive(Debug)]
pub(super) struct Frontiers {
    pub(super) all: Vec<Frontier>,
    /// Which formatting of the device this is.
    pub(super) instance: u64,
    /// Order number of the next line to be opened.
    pub(super) line_seq: u64,
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
struct NextLine {
    id: LineId,
    /// Chunks below this one are erased or being erased.
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
struct ClosingLine {
    id: LineId,
    at: Cursor,
    in_flight: u32,
    /// Units of end metadata still missing.
    missing: u32,
}

impl<M: OpenChannel> Pblk<M> {
    #[inline]
    fn frontier(&mut self, f: FrontierId) -> &mut Frontier {
        &mut self.frontiers.all[usize::from(f)]
    }

    /// The next usable unit of a frontier, unless its parallel unit is busy or no line is ready.
    #[inline]
    pub(super) fn next_write_position(
        &mut self,
        f: FrontierId,
    ) -> Result<Option<WritePosition>, FtlError> {
        loop {
            let Some(open) = self.frontiers.all[usize::from(f)].open else {
                if self.open_next(f)? {
                    continue;
                }
                return Ok(None);
            };
            if open.at >= open.end {
                self.close_open(f);
                continue;
            }
            let (chunk, sector) =
                (self.flash.chunk_at(open.id, open.at.chunk), self.flash.sector(open.at));
            if self.flash.busy[chunk.unit.0 as usize] {
                return Ok(None);
            }
            self.step_open(f);
            if self.flash.is_usable(chunk, sector) {
                let at = self.flash.layout.format.ppa(chunk, sector);
                return Ok(Some(WritePosition {
                    frontier: f,
                    line: open.id,
                    pu: chunk.unit.0,
                    at,
                }));
            }
        }
    }

    #[inline]
    fn step_open(&mut self, f: FrontierId) {
        let width = self.flash.layout.width;
        if let Some(open) = &mut self.frontier(f).open {
            open.at.step(width);
        }
    }

    /// Keeps the next line coming: takes one, erases a chunk, writes start or end metadata, each
    /// step at most once (the kernel interleaves one with each data write).
    #[inline]
    pub(super) fn line_chores(&mut self, f: FrontierId) -> Result<(), FtlError> {
        if self.has_chores(f) { self.do_chores(f) } else { Ok(()) }
    }

    /// Whether a chore could have something to do.
    #[inline]
    fn has_chores(&self, f: FrontierId) -> bool {
        let frontier = &self.frontiers.all[usize::from(f)];
        let prepares = match &frontier.next {
            Some(next) => next.smeta == SmetaState::Missing,
            None => self.wants_next(f),
        };
        prepares || !frontier.closing.is_empty() || self.is_full(f)
    }

    fn do_chores(&mut self, f: FrontierId) -> Result<(), FtlError> {
        self.close_full(f);
        if self.wants_next(f) {
            self.take_next(f);
        }
        self.erase_one(f)?;
        self.write_smeta(f)?;
        self.write_emeta(f)
    }

    /// Closes an open line that is full. A single frontier does so when it wants the next unit, as the
    /// kernel; one of several may never want another.
    fn close_full(&mut self, f: FrontierId) {
        if self.is_full(f) {
            self.close_open(f);
        }
    }

    #[inline]
    fn is_full(&self, f: FrontierId) -> bool {
        let full = |open: OpenLine| self.flash.lines.get(open.id).left == 0;
        self.data_frontiers() > 1 && self.frontiers.all[usize::from(f)].open.is_some_and(full)
    }

    /// A single frontier always has the next line in preparation, as in the kernel. Several would
    /// hold back as many lines from each other, so they prepare one when they come near needing it.
    fn wants_next(&self, f: FrontierId) -> bool {
        if f == 0 && self.data_frontiers() == 1 {
            return true;
        }
        let open = self.frontiers.all[usize::from(f)].open;
        open.is_some_and(|open| self.flash.lines.get(open.id).left <= self.rules.next_below)
    }

    pub(super) fn take_next(&mut self, f: FrontierId) {
        let frontier = &self.frontiers.all[usize::from(f)];
        if frontier.next.is_some() || !self.may_take_line(frontier.buffer) {
            return;
        }
        let buffer = frontier.buffer;
        let taken = self.flash.lines.take_free(frontier.stripes, buffer == MAP_ORIGIN);
        let Some(id) = taken else { return };
        self.flash.lines.get_mut(id).origin = buffer;
        let next = NextLine { id, erased_to: 0, erasing: 0, smeta: SmetaState::Missing };
        self.frontier(f).next = Some(next);
        self.limiter_update();
    }

    /// The lines that frontiers of buffers prepared and did not open yet.
    pub(super) fn prepared_lines(&self) -> impl Iterator<Item = LineId> {
        let data = self.frontiers.all[..self.data_frontiers()].iter();
        data.filter_map(|frontier| frontier.next.map(|next| next.id))
    }

    /// Whether a frontier's next line has its start metadata.
    pub(super) fn is_prepared(&self, f: FrontierId) -> bool {
        let next = &self.frontiers.all[usize::from(f)].next;
        next.is_some_and(|next| next.smeta == SmetaState::Written)
    }

    /// Hands the prepared line back if the frontier's group has that much to `spare`, and nothing is
    /// under way in the line. How many sectors it would have held. Start metadata keep a chunk open: where
    /// open chunks are limited such a line stays, since free lines have no share in the limit.
    pub(super) fn return_line(&mut self, f: FrontierId, spare: i64) -> Option<u32> {
        let next = self.frontier(f).next?;
        let left = self.flash.lines.get(next.id).left;
        let idle = match next.smeta {
            SmetaState::Missing => next.erasing == 0,
            SmetaState::InFlight => false,
            SmetaState::Written => !self.flash.geometry.limits_open_chunks(),
        };
        if !idle || spare < i64::from(left) {
            return None;
        }
        self.frontier(f).next = None;
        self.flash.lines.write_off(next.id, u32::MAX);
        self.flash.lines.release(next.id);
        self.limiter_update();
        Some(left)
    }

    /// Starts the erase of the next line's next chunk that needs one.
    fn erase_one(&mut self, f: FrontierId) -> Result<bool, FtlError> {
        let Some(mut next) = self.frontier(f).next else { return Ok(false) };
        let mut erased = false;
        while next.erased_to < self.flash.layout.width && !erased {
            let chunk = self.flash.chunk_at(next.id, next.erased_to);
            next.erased_to += 1;
            if matches!(self.flash.media.chunk(chunk).state, ChunkState::Open | ChunkState::Closed)
            {
                let outcome = self.flash.media.reset(self.flash.now, self.flash.now, chunk)?;
                self.flash.counts.erases += 1;
                self.flash.events.push(outcome.at, EventKind::Erase(f, outcome.status));
                next.erasing += 1;
                erased = true;
            }
        }
        self.frontier(f).next = Some(next);
        Ok(erased)
    }

    /// A chunk of the next line is erased, or bad.
    pub(super) fn erase_done(&mut self, f: FrontierId, status: Status) {
        let Some(next) = &mut self.frontier(f).next else { return };
        next.erasing -= 1;
        if status != Status::Ok {
            let id = next.id;
            self.flash.counts.media_errors.erase_failures += 1;
            self.flash.lines.remove_chunk(id, self.flash.geometry.sectors);
        }
    }

    /// Writes start metadata once all chunks are erased, to the first good chunk; a line without
    /// room for data is given up.
    fn write_smeta(&mut self, f: FrontierId) -> Result<(), FtlError> {
        let Some(next) = self.frontier(f).next else { return Ok(()) };
        let erased = next.erased_to == self.flash.layout.width && next.erasing == 0;
        if !erased || next.smeta != SmetaState::Missing {
            return Ok(());
        }
        let good = |index: &u32| self.flash.is_usable(self.flash.chunk_at(next.id, *index), 0);
        let first = (0..self.flash.layout.width).find(good);
        let Some(chunk) =
            first.filter(|_| self.flash.lines.get(next.id).left >= self.flash.geometry.ws_opt)
        else {
            self.give_up_next(f, next.id);
            return Ok(());
        };
        if self.flash.busy[self.flash.layout.unit(next.id, chunk) as usize] {
            return Ok(());
        }
        self.program_smeta(f, next, chunk)
    }

    fn program_smeta(&mut self, f: FrontierId, next: NextLine, chunk: u32) -> Result<(), FtlError> {
        let ws_opt = self.flash.geometry.ws_opt;
        let smeta = Smeta {
            instance: self.frontiers.instance,
            line_seq: self.frontiers.line_seq,
            logical_sectors: self.rules.capacity.logical_sectors,
            line: next.id,
            width: self.flash.layout.width,
            frontier: if self.flash.lines.get(next.id).is_map() {
                MAP_FRONTIER
            } else {
                u32::from(f)
            },
        };
        self.flash.lines.get_mut(next.id).seq = self.frontiers.line_seq;
        self.frontiers.line_seq += 1;
        self.flash.scratch.clear();
        self.flash.scratch.resize(ws_opt as usize, smeta.encode());
        let chunk = self.flash.chunk_at(next.id, chunk);
        let keys = &[KEY_EMPTY; MAX_UNIT][..ws_opt as usize];
        let cmd = WriteCmd {
            at: self.flash.layout.format.ppa(chunk, 0),
            kind: Kind::Smeta,
            seq: 0,
            seq_deltas: &[],
            aux: &[],
            keys,
            data: &self.flash.scratch,
        };
        let outcome = self.flash.media.write(self.flash.now, self.flash.now, cmd)?;
        self.flash.counts.sectors.line_meta += u64::from(ws_opt);
        self.flash.busy[chunk.unit.0 as usize] = true;
        self.flash.events.push(outcome.at, EventKind::Smeta(f, chunk.unit.0, outcome.status));
        self.frontier(f).next = Some(NextLine { smeta: SmetaState::InFlight, ..next });
        Ok(())
    }

    /// Start metadata is written, or goes to the next good chunk.
    pub(super) fn smeta_done(&mut self, f: FrontierId, pu: u32, status: Status) {
        self.flash.busy[pu as usize] = false;
        let Some(next) = &mut self.frontier(f).next else { return };
        if status == Status::Ok {
            next.smeta = SmetaState::Written;
        } else {
            next.smeta = SmetaState::Missing;
            let id = next.id;
            self.flash.counts.media_errors.program_failures += 1;
            self.flash.lines.get_mut(id).werr = true;
            self.flash.lines.write_off(id, self.flash.geometry.sectors);
        }
    }

    fn give_up_next(&mut self, f: FrontierId, id: LineId) {
        self.flash.lines.write_off(id, u32::MAX);
        self.flash.lines.kept += u32::from(self.flash.lines.get(id).is_map());
        self.flash.lines.get_mut(id).state = LineState::Bad;
        self.frontier(f).next = None;
        self.limiter_update();
    }

    /// Opens the prepared line, or hurries its preparation. Whether it opened.
    fn open_next(&mut self, f: FrontierId) -> Result<bool, FtlError> {
        if self.frontier(f).closing.len() >= CLOSING_LINES {
            return Ok(false);
        }
        self.take_next(f);
        while self.erase_one(f)? {}
        self.write_smeta(f)?;
        let next = self.frontier(f).next.filter(|next| next.smeta == SmetaState::Written);
        let Some(next) = next else { return Ok(false) };
        self.flash.lines.get_mut(next.id).state = LineState::Open;
        let end = self.flash.emeta_start(&self.rules, next.id);
        let frontier = self.frontier(f);
        frontier.open = Some(OpenLine { id: next.id, at: Cursor::START, end });
        frontier.next = None;
        self.limiter_update();
        Ok(true)
    }

    /// The row in which a chunk's data end in an open line.
    pub(super) fn data_end(&self, open: &OpenLine, index: u32) -> u32 {
        open.end.row + u32::from(index < open.end.chunk)
    }

    /// A program failed there: what data could still have taken of its chunk is lost to the line. A line
    /// that is full takes none.
    pub(super) fn write_off_rest(&mut self, line: LineId, at: Ppa) {
        let mut lines = self.frontiers.all.iter().filter_map(|frontier| frontier.open);
        let Some(open) = lines.find(|open| open.id == line) else { return };
        let failed = self.flash.layout.format.chunk_of(at);
        let index =
            (0..self.flash.layout.width).find(|&index| self.flash.chunk_at(line, index) == failed);
        let end = index.map_or(0, |index| self.data_end(&open, index) * self.flash.geometry.ws_opt);
        let next = self.flash.layout.format.sector_of(at) + self.flash.geometry.ws_opt;
        self.flash.lines.write_off(line, end.saturating_sub(next));
    }

    /// The open line is full of data: end metadata follows, if room was kept for it.
    fn close_open(&mut self, f: FrontierId) {
        let Some(open) = self.frontier(f).open.take() else { return };
        self.flash.lines.write_off(open.id, u32::MAX);
        if open.end >= self.flash.line_end() {
            self.line_closed(open.id);
            return;
        }
        self.flash.lines.get_mut(open.id).state = LineState::Closing;
        let missing = self.flash.emeta_units(&self.rules);
        let closing = ClosingLine { id: open.id, at: open.end, in_flight: 0, missing };
        self.frontier(f).closing.push_back(closing);
    }

    /// Writes one unit of the oldest closing line's end metadata, if its parallel unit is idle. End
    /// metadata vouches for the line's data, so it waits until all of that is on media.
    fn write_emeta(&mut self, f: FrontierId) -> Result<(), FtlError> {
        let (width, end) = (self.flash.layout.width, self.flash.line_end());
        let Some(mut closing) = self.frontier(f).closing.front().copied() else { return Ok(()) };
        if self.flash.lines.get(closing.id).in_flight > 0 {
            return Ok(());
        }
        while closing.at < end && !self.flash.is_usable_at(closing.id, closing.at) {
            closing.at.step(width);
        }
        let pu = self.flash.layout.unit(closing.id, closing.at.chunk);
        if closing.at < end && !self.flash.busy[pu as usize] {
            self.program_emeta(f, closing.id, closing.at)?;
            closing.at.step(width);
            closing.in_flight += 1;
        }
        self.frontier(f).closing[0] = closing;
        self.finish_closing(f, end);
        Ok(())
    }

    fn program_emeta(&mut self, f: FrontierId, line: LineId, at: Cursor) -> Result<(), FtlError> {
        let ws_opt = self.flash.geometry.ws_opt;
        let ppa = self.flash.ppa_at(line, at);
        let keys = &[KEY_EMPTY; MAX_UNIT][..ws_opt as usize];
        let cmd = WriteCmd {
            at: ppa,
            kind: Kind::Emeta,
            seq: 0,
            seq_deltas: &[],
            aux: &[],
            keys,
            data: &[],
        };
        let outcome = self.flash.media.write(self.flash.now, self.flash.now, cmd)?;
        self.flash.counts.sectors.line_meta += u64::from(ws_opt);
        let pu = self.flash.layout.unit(line, at.chunk);
        self.flash.busy[pu as usize] = true;
        self.flash.events.push(outcome.at, EventKind::Emeta(f, pu, outcome.status));
        Ok(())
    }

    /// A unit of the oldest closing line's end metadata is written, or missing for good.
    pub(super) fn emeta_done(&mut self, f: FrontierId, pu: u32, status: Status) {
        self.flash.busy[pu as usize] = false;
        let end = self.flash.line_end();
        let Some(closing) = self.frontier(f).closing.front_mut() else { return };
        closing.in_flight -= 1;
        if status == Status::Ok {
            closing.missing -= 1;
        } else {
            let id = closing.id;
            self.flash.counts.media_errors.program_failures += 1;
            self.flash.lines.get_mut(id).werr = true;
        }
        self.finish_closing(f, end);
    }

    /// Closes the oldest closing line if no more of its end metadata is to come.
    fn finish_closing(&mut self, f: FrontierId, end: Cursor) {
        let done = |closing: &&ClosingLine| closing.at >= end && closing.in_flight == 0;
        if let Some(closing) = self.frontier(f).closing.front().filter(done).copied() {
            self.frontier(f).closing.pop_front();
            self.flash.lines.get_mut(closing.id).emeta = closing.missing == 0;
            self.line_closed(closing.id);
        }
    }

    /// A line may be a victim from now on, or is empty already.
    pub(super) fn line_closed(&mut self, id: LineId) {
        let weight = self.flash.lines.weight(id);
        let line = self.flash.lines.get_mut(id);
        line.state = LineState::Closed;
        let (empty, werr) = (line.valid == 0 && line.pending == 0, line.werr);
        match &mut self.mapping {
            Some(mapping) if line.is_map() => mapping.store.close(id),
            _ => self.flash.victims.insert(id, weight, werr),
        }
        if empty {
            self.line_emptied(id);
        }
        self.limiter_update();
    }
}
