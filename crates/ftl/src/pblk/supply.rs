//! The life of a line around its data: erased and given start metadata while the line before is
//! still open, filled unit by unit, closed with end metadata (pblk-core.c `pblk_line_replace_data`,
//! `pblk_line_close`, pblk-write.c `pblk_submit_meta_io`).
//!
//! Units of a line are taken in the order of rows (one write unit on each parallel unit), and a unit
//! is usable when its chunk's write pointer stands exactly there. That one rule skips bad chunks,
//! chunks closed by a failed program, start metadata, and what recovery padded.
//!
//! A closed line that is empty is quarantined, and free when everything that superseded its content is durable.
//! Where the collector's thread is paced it is garbage until the thread's next run.

use super::capacity::CLOSING_LINES;
use super::collector::Collector;
use super::counts::PblkCounts;
use super::flash::Flash;
use super::frontiers::{Frontiers, NextLine, NextUnit, OpenLine, SmetaState, WritePosition};
use super::ids::FrontierId;
use super::intake::Buffers;
use super::layout::Cursor;
use super::rules::Rules;
use super::space::Space;
use crate::common::ids::{LineId, MAP_ORIGIN};
use crate::common::lines::LineState;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_media::OpenChannel;
use nandscape_rt::invariant;

/// What takes part in the life of a line.
pub(super) struct Supply<'a, M> {
    pub(super) flash: &'a mut Flash<M>,
    pub(super) buffers: &'a mut Buffers,
    pub(super) frontiers: &'a mut Frontiers,
    pub(super) collector: &'a mut Collector,
    pub(super) rules: &'a Rules,
    pub(super) stats: &'a mut PblkCounts,
}

impl<M: OpenChannel> Supply<'_, M> {
    /// What decides who may write how much.
    #[inline]
    pub(super) fn space(&self) -> Space<'_, M> {
        let Self { flash, buffers, frontiers, collector, rules, .. } = self;
        Space { flash, buffers, frontiers, collector, rules }
    }

    /// The next usable unit of a frontier, unless its parallel unit is busy or no line is ready.
    pub(super) fn next_write_position(
        &mut self,
        f: FrontierId,
    ) -> Result<Option<WritePosition>, FtlError> {
        loop {
            match self.frontiers.next_unit(self.flash, f) {
                NextUnit::At(position) => return Ok(Some(position)),
                NextUnit::Busy => return Ok(None),
                NextUnit::NoLine => {
                    if !self.open_next(f)? {
                        return Ok(None);
                    }
                }
                NextUnit::Full => {
                    if let Some(id) = self.frontiers.close_open(self.flash, self.rules, f) {
                        self.line_closed(id);
                    }
                }
            }
        }
    }

    /// Does what a frontier's lines need, if there is anything.
    pub(super) fn line_chores(&mut self, f: FrontierId) -> Result<(), FtlError> {
        let has_chores = self.frontiers.has_chores(self.flash, self.rules, f);
        if has_chores { self.do_chores(f) } else { Ok(()) }
    }

    /// Keeps the next line coming: takes one, erases a chunk, writes start or end metadata, each
    /// step at most once (the kernel interleaves one with each data write).
    pub(super) fn do_chores(&mut self, f: FrontierId) -> Result<(), FtlError> {
        // A single frontier closes a full line when it wants the next unit, as the kernel; one of several may never
        // want another.
        if self.frontiers.is_full(self.flash, f)
            && let Some(id) = self.frontiers.close_open(self.flash, self.rules, f)
        {
            self.line_closed(id);
        }
        if self.frontiers.wants_next(self.flash, self.rules, f) {
            self.take_next(f);
        }
        self.frontiers.erase_one(self.flash, f)?;
        if self.frontiers.write_smeta(self.flash, self.rules, f)? {
            self.limiter_update();
        }
        if let Some(id) = self.frontiers.write_emeta(self.flash, f)? {
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
        while self.frontiers.erase_one(self.flash, f)? {}
        if self.frontiers.write_smeta(self.flash, self.rules, f)? {
            self.limiter_update();
        }
        let next = self.frontiers.get_mut(f).next.filter(|next| next.smeta == SmetaState::Written);
        let Some(next) = next else { return Ok(false) };
        self.flash.lines.get_mut(next.id).state = LineState::Open;
        let end = self.flash.emeta_start(self.rules, next.id);
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

    /// A line without valid or pending sectors is on its way to the free list, if it is closed. A
    /// victim gets there when its last copy is handled.
    #[cold]
    pub(super) fn line_emptied(&mut self, id: LineId) {
        match self.flash.lines.get(id).state {
            LineState::Closed if self.flash.lines.get(id).is_map() => {
                self.flash.map_victims.retain(|&other| other != id);
                self.quarantine_line(id);
            }
            LineState::Closed => {
                self.flash.victims.remove(id);
                self.stats.gc.empty_victims += 1;
                let origin = self.flash.lines.get(id).origin;
                self.stats.buffers[usize::from(origin)].empty_victims += 1;
                self.line_is_garbage(id);
            }
            LineState::Corrupt => self.quarantine_line(id),
            _ => {}
        }
    }

    /// An empty line is quarantined; forgets the erase rule when that is asked for.
    pub(super) fn quarantine_line(&mut self, id: LineId) {
        if self.rules.run.omits(OmittedRule::EraseRule) {
            self.flash.lines.get_mut(id).gate = 0;
        }
        self.flash.lines.quarantine_line(id);
        self.release_durable_lines();
    }

    /// Frees the lines whose gate has been passed, and drops what is dead.
    pub(super) fn release_durable_lines(&mut self) {
        if !self.flash.dead.is_empty() {
            let durable = self.buffers.durable(self.flash.next_seq);
            self.flash.drop_dead(durable);
        }
        if self.flash.lines.quarantined() > 0 {
            let durable = self.buffers.durable(self.flash.next_seq)
                + u64::from(self.rules.run.omits(OmittedRule::EraseGate));
            invariant!(
                self.rules.run.omits_any() || self.flash.may_release(durable),
                "a line is erased only when everything that superseded its content is durable"
            );
            if self.flash.lines.release_durable_lines(durable) {
                self.limiter_update();
            }
        }
    }

    /// Gives the limiter the free space. Garbage collection is active while it is short.
    pub(super) fn limiter_update(&mut self) {
        let (chunks, lines) = self.frontiers.limiter_free(self.flash, self.rules, None);
        let werr = self.collector.has_werr(self.flash);
        for buffer in &mut self.buffers.all {
            buffer.rl.update(chunks, lines, werr);
        }
        if self.collector.thread.is_paced() {
            let short = self.space().wants_lines();
            self.collector.thread.set_active(werr || short);
        }
    }

    /// Where users have to stop for want of free lines, those that several frontiers prepared ahead
    /// are handed back.
    pub(super) fn return_constrained(&mut self) {
        if self.frontiers.data_frontiers() > 1
            && self.buffers.all[0].rl.stops_users(self.flash.lines.free())
        {
            self.return_lines();
        }
    }

    /// Hands back the prepared lines that their groups can do without. Whether there were any.
    pub(super) fn return_lines(&mut self) -> bool {
        let mut groups = self.space().balance().groups;
        let mut any = false;
        for f in 0..self.frontiers.data_frontiers() {
            let group =
                &mut groups[self.buffers.router.plan().group_of(self.frontiers.all[f].buffer)];
            let spare = if group.busy { group.rest } else { i64::MAX };
            if let Some(left) = self.frontiers.return_line(self.flash, f as FrontierId, spare) {
                self.limiter_update();
                group.rest -= i64::from(left);
                any = true;
            }
        }
        any
    }

    /// A closed line that is no victim any more has no valid sector.
    fn line_is_garbage(&mut self, id: LineId) {
        if self.collector.thread.is_paced() {
            self.flash.lines.get_mut(id).state = LineState::Garbage;
            self.collector.thread.garbage.push(id);
        } else {
            self.quarantine_line(id);
        }
    }

    /// Frees the lines without valid sectors (`pblk_gc_free_full_lines`). Whether there were any.
    pub(super) fn free_garbage(&mut self) -> bool {
        let mut garbage = std::mem::take(&mut self.collector.thread.garbage);
        let any = !garbage.is_empty();
        for id in garbage.drain(..) {
            self.quarantine_line(id);
        }
        self.collector.thread.garbage = garbage;
        any
    }
}
