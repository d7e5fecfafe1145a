//! The life of a line around its data: erased and given start metadata while the line before is
//! still open, filled unit by unit, closed with end metadata (pblk-core.c `pblk_line_replace_data`,
//! `pblk_line_close`, pblk-write.c `pblk_submit_meta_io`).
//!
//! Units of a line are taken in the order of rows (one write unit on each parallel unit), and a unit
//! is usable when its chunk's write pointer stands exactly there. That one rule skips bad chunks,
//! chunks closed by a failed program, start metadata, and what recovery padded.

use super::Pblk;
use super::capacity::CLOSING_LINES;
use super::frontiers::{NextLine, OpenLine, SmetaState, WritePosition};
use super::ids::FrontierId;
use super::layout::Cursor;
use crate::common::ids::{LineId, MAP_ORIGIN};
use crate::common::lines::LineState;
use crate::error::FtlError;
use nandscape_media::OpenChannel;

impl<M: OpenChannel> Pblk<M> {
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
                if let Some(id) = self.frontiers.close_open(&mut self.flash, &self.rules, f) {
                    self.line_closed(id);
                }
                continue;
            }
            let (chunk, sector) =
                (self.flash.chunk_at(open.id, open.at.chunk), self.flash.sector(open.at));
            if self.flash.busy[chunk.unit.0 as usize] {
                return Ok(None);
            }
            self.frontiers.step_open(self.flash.layout.width, f);
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

    /// Keeps the next line coming: takes one, erases a chunk, writes start or end metadata, each
    /// step at most once (the kernel interleaves one with each data write).
    #[inline]
    pub(super) fn line_chores(&mut self, f: FrontierId) -> Result<(), FtlError> {
        if self.frontiers.has_chores(&self.flash, &self.rules, f) {
            self.do_chores(f)
        } else {
            Ok(())
        }
    }

    fn do_chores(&mut self, f: FrontierId) -> Result<(), FtlError> {
        // A single frontier closes a full line when it wants the next unit, as the kernel; one of several may never
        // want another.
        if self.frontiers.is_full(&self.flash, f)
            && let Some(id) = self.frontiers.close_open(&mut self.flash, &self.rules, f)
        {
            self.line_closed(id);
        }
        if self.frontiers.wants_next(&self.flash, &self.rules, f) {
            self.take_next(f);
        }
        self.frontiers.erase_one(&mut self.flash, f)?;
        if self.frontiers.write_smeta(&mut self.flash, &self.rules, f)? {
            self.limiter_update();
        }
        if let Some(id) = self.frontiers.write_emeta(&mut self.flash, f)? {
            self.line_closed(id);
        }
        Ok(())
    }

    pub(super) fn take_next(&mut self, f: FrontierId) {
        let frontier = &self.frontiers.all[usize::from(f)];
        if frontier.next.is_some() || !self.space().may_take_line(frontier.buffer) {
            return;
        }
        let buffer = frontier.buffer;
        let taken = self.flash.lines.take_free(frontier.stripes, buffer == MAP_ORIGIN);
        let Some(id) = taken else { return };
        self.flash.lines.get_mut(id).origin = buffer;
        let next = NextLine { id, erased_to: 0, erasing: 0, smeta: SmetaState::Missing };
        self.frontiers.get_mut(f).next = Some(next);
        self.limiter_update();
    }

    /// Opens the prepared line, or hurries its preparation. Whether it opened.
    fn open_next(&mut self, f: FrontierId) -> Result<bool, FtlError> {
        if self.frontiers.get_mut(f).closing.len() >= CLOSING_LINES {
            return Ok(false);
        }
        self.take_next(f);
        while self.frontiers.erase_one(&mut self.flash, f)? {}
        if self.frontiers.write_smeta(&mut self.flash, &self.rules, f)? {
            self.limiter_update();
        }
        let next = self.frontiers.get_mut(f).next.filter(|next| next.smeta == SmetaState::Written);
        let Some(next) = next else { return Ok(false) };
        self.flash.lines.get_mut(next.id).state = LineState::Open;
        let end = self.flash.emeta_start(&self.rules, next.id);
        let frontier = self.frontiers.get_mut(f);
        frontier.open = Some(OpenLine { id: next.id, at: Cursor::START, end });
        frontier.next = None;
        self.limiter_update();
        Ok(true)
    }

    /// A line may be a victim from now on, or is empty already.
    pub(super) fn line_closed(&mut self, id: LineId) {
        let weight = self.flash.lines.weight(id);
        let line = self.flash.lines.get_mut(id);
        line.state = LineState::Closed;
        let (empty, werr) = (line.valid == 0 && line.pending == 0, line.werr);
        if line.is_map() {
            self.flash.map_victims.push(id);
        } else {
            self.flash.victims.insert(id, weight, werr);
        }
        if empty {
            self.line_emptied(id);
        }
        self.limiter_update();
    }
}
