//! Frontiers: where data go. Each takes data in an open line, has the next line erased and given start metadata,
//! and closes the lines before with end metadata (pblk-core.c, pblk-write.c `pblk_submit_meta_io`). When lines are
//! taken, opened and closed is coordinated in `supply`.

/// Where the next unit goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct WritePosition {
    pub(super) frontier: FrontierId,
    pub(super) line: u32,
    pub(super) pu: u32,
    pub(super) at: Ppa,
}

/// Where data goes: a line that takes it, the line prepared to be next, and those before it whose end
/// metadata is in flight.
#[derive(Debug)]
pub(super) struct Frontier {
    /// The stripes that its lines come from, each from that of them where most are free.
    pub(super) stripes: StripeSet,
    /// The buffer, or the first of the buffers, that it belongs to.
    pub(super) buffer: BufferId,
    pub(super) open: Option<OpenLine>,
    pub(super) next: Option<NextLine>,
    pub(super) closing: VecDeque<ClosingLine>,
}

use super::events::EventKind;
use super::flash::Flash;
use super::format::{MAP_FRONTIER, Smeta};
use super::ids::{BufferId, FrontierId};
use super::layout::Cursor;
use super::rules::Rules;
use super::units::MAX_UNIT;
use crate::common::ids::{LineId, MAP_ORIGIN};
use crate::common::layout::StripeSet;
use crate::common::lines::LineState;
use crate::error::FtlError;
use crate::pblk::config::CapacityRules;
use nandscape_media::{ChunkState, KEY_EMPTY, Kind, OpenChannel, Ppa, Status, WriteCmd};
use nandscape_rt::invariant;
use std::collections::VecDeque;
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
    /// Frontiers of buffers, which come before that of mapping blocks.
    pub(super) data: usize,
}

/// The line that takes data.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenLine {
    pub(super) id: LineId,
    pub(super) at: Cursor,
    /// Where end metadata begins.
    pub(super) end: Cursor,
}

impl OpenLine {
    /// The row in which a chunk's data end of the line.
    pub(super) fn data_end(&self, index: u32) -> u32 {
        self.end.row + u32::from(index < self.end.chunk)
    }
}

/// The line that will take data next.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextLine {
    pub(super) id: LineId,
    /// Chunks below this one are erased or being erased.
    pub(super) erased_to: u32,
    /// Erases in flight.
    pub(super) erasing: u32,
    pub(super) smeta: SmetaState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SmetaState {
    Missing,
    InFlight,
    Written,
}

/// A line whose end metadata is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClosingLine {
    pub(super) id: LineId,
    pub(super) at: Cursor,
    pub(super) in_flight: u32,
    /// Units of end metadata still missing.
    pub(super) missing: u32,
}

/// Where a frontier's next unit goes.
pub(super) enum NextUnit {
    At(WritePosition),
    /// Not now: its parallel unit is busy.
    Busy,
    /// To a line that is to be opened.
    NoLine,
    /// To a line behind the open one, which is to be closed.
    Full,
}

impl Frontiers {
    /// The next usable unit of a frontier's open line. Inlined where the answer is taken apart: one per write unit.
    #[inline(always)]
    pub(super) fn next_unit<M: OpenChannel>(
        &mut self,
        flash: &Flash<M>,
        f: FrontierId,
    ) -> NextUnit {
        let Some(open) = &mut self.get_mut(f).open else { return NextUnit::NoLine };
        while open.at < open.end {
            let (chunk, sector) = (flash.chunk_at(open.id, open.at.chunk), flash.sector(open.at));
            if flash.busy[chunk.unit.0 as usize] {
                return NextUnit::Busy;
            }
            open.at.step(flash.layout.width);
            if flash.is_usable(chunk, sector) {
                let at = flash.layout.format.ppa(chunk, sector);
                let (line, pu) = (open.id, chunk.unit.0);
                return NextUnit::At(WritePosition { frontier: f, line, pu, at });
            }
        }
        NextUnit::Full
    }

    /// Units of padding after which the device serves whatever was written before.
    pub(super) fn pads_enough<M: OpenChannel>(&self, flash: &Flash<M>) -> u32 {
        let row = flash.geometry.total_units() * self.all.len() as u32;
        (flash.geometry.mw_cunits / flash.geometry.ws_opt + 2) * row
    }

    /// Free chunks and lines as the limiter counts them, of a stripe or of the device: from Linux 4.16
    /// on a line counts as free until it is opened (`pblk_line_replace_data`), in 4.13 until it is
    /// taken to be the next one.
    pub(super) fn limiter_free<M: OpenChannel>(
        &self,
        flash: &Flash<M>,
        rules: &Rules,
        stripe: Option<u32>,
    ) -> (u32, u32) {
        let stripe = stripe.filter(|_| flash.layout.stripes() > 1);
        let (chunks, lines) =
            stripe.map_or_else(|| flash.lines.free(), |it| flash.lines.free_of(it));
        if rules.config.capacity_rules == CapacityRules::V4_13 {
            return (chunks, lines);
        }
        let counts = |&id: &LineId| stripe.is_none_or(|it| flash.layout.stripe_of(id) == it);
        let prepared = self.prepared_lines().filter(counts);
        let prepared: u32 = prepared.map(|id| flash.lines.get(id).chunks).sum();
        (chunks + prepared * stripe.map_or(1, |_| flash.layout.stripes()), lines)
    }

    /// The buffer that a line's frontier belongs to, as start metadata say.
    pub(super) fn origin_of(&self, frontier: u32) -> Option<(u8, u8)> {
        if frontier == MAP_FRONTIER {
            let with_map = self.data < self.all.len();
            return with_map.then_some((self.data as FrontierId, MAP_ORIGIN));
        }
        let f = u8::try_from(frontier).ok()?;
        let found = self.all.get(usize::from(f))?;
        (found.buffer != MAP_ORIGIN).then_some((f, found.buffer))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, f: FrontierId) -> &mut Frontier {
        &mut self.all[usize::from(f)]
    }

    /// Whether a chore could have something to do.
    #[inline]
    pub(super) fn has_chores<M: OpenChannel>(
        &self,
        flash: &Flash<M>,
        rules: &Rules,
        f: FrontierId,
    ) -> bool {
        let frontier = &self.all[usize::from(f)];
        let prepares = match &frontier.next {
            Some(next) => next.smeta == SmetaState::Missing,
            None => self.wants_next(flash, rules, f),
        };
        prepares || !frontier.closing.is_empty() || self.is_full(flash, f)
    }

    #[inline]
    pub(super) fn is_full<M: OpenChannel>(&self, flash: &Flash<M>, f: FrontierId) -> bool {
        let full = |open: OpenLine| flash.lines.get(open.id).left == 0;
        self.data_frontiers() > 1 && self.all[usize::from(f)].open.is_some_and(full)
    }

    /// A single frontier always has the next line in preparation, as in the kernel. Several would
    /// hold back as many lines from each other, so they prepare one when they come near needing it.
    pub(super) fn wants_next<M: OpenChannel>(
        &self,
        flash: &Flash<M>,
        rules: &Rules,
        f: FrontierId,
    ) -> bool {
        if f == 0 && self.data_frontiers() == 1 {
            return true;
        }
        let open = self.all[usize::from(f)].open;
        open.is_some_and(|open| flash.lines.get(open.id).left <= rules.next_below)
    }

    /// The lines that frontiers of buffers prepared and did not open yet.
    pub(super) fn prepared_lines(&self) -> impl Iterator<Item = LineId> {
        let data = self.all[..self.data_frontiers()].iter();
        data.filter_map(|frontier| frontier.next.map(|next| next.id))
    }

    /// Whether a frontier's next line has its start metadata.
    pub(super) fn is_prepared(&self, f: FrontierId) -> bool {
        let next = &self.all[usize::from(f)].next;
        next.is_some_and(|next| next.smeta == SmetaState::Written)
    }

    /// Hands the prepared line back if the frontier's group has that much to `spare`, and nothing is
    /// in flight in the line. How many sectors it would have held. Start metadata keep a chunk open: where
    /// open chunks are limited such a line stays, since free lines have no share in the limit.
    pub(super) fn return_line<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        f: FrontierId,
        spare: i64,
    ) -> Option<u32> {
        let next = self.get_mut(f).next?;
        let left = flash.lines.get(next.id).left;
        let idle = match next.smeta {
            SmetaState::Missing => next.erasing == 0,
            SmetaState::InFlight => false,
            SmetaState::Written => !flash.geometry.limits_open_chunks(),
        };
        if !idle || spare < i64::from(left) {
            return None;
        }
        self.get_mut(f).next = None;
        flash.lines.write_off(next.id, u32::MAX);
        flash.lines.release(next.id);
        Some(left)
    }

    /// Starts the erase of the next line's next chunk that needs one.
    pub(super) fn erase_one<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        f: FrontierId,
    ) -> Result<bool, FtlError> {
        let Some(mut next) = self.get_mut(f).next else { return Ok(false) };
        let mut erased = false;
        while next.erased_to < flash.layout.width && !erased {
            let chunk = flash.chunk_at(next.id, next.erased_to);
            next.erased_to += 1;
            if matches!(flash.media.chunk(chunk).state, ChunkState::Open | ChunkState::Closed) {
                let outcome = flash.media.reset(flash.now, flash.now, chunk)?;
                flash.counts.erases += 1;
                flash.events.push(outcome.at, EventKind::Erase(f, outcome.status));
                next.erasing += 1;
                erased = true;
            }
        }
        self.get_mut(f).next = Some(next);
        Ok(erased)
    }

    /// A chunk of the next line is erased, or bad.
    pub(super) fn erase_done<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        f: FrontierId,
        status: Status,
    ) {
        invariant!(self.get_mut(f).next.is_some(), "a line of which chunks are erased is prepared");
        let Some(next) = &mut self.get_mut(f).next else { return };
        next.erasing -= 1;
        if status != Status::Ok {
            let id = next.id;
            flash.counts.media_errors.erase_failures += 1;
            flash.lines.remove_chunk(id, flash.geometry.sectors);
        }
    }

    /// Writes start metadata once all chunks are erased, to the first good chunk. Whether the line was given up for
    /// want of space for data.
    pub(super) fn write_smeta<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        rules: &Rules,
        f: FrontierId,
    ) -> Result<bool, FtlError> {
        let Some(next) = self.get_mut(f).next else { return Ok(false) };
        let erased = next.erased_to == flash.layout.width && next.erasing == 0;
        if !erased || next.smeta != SmetaState::Missing {
            return Ok(false);
        }
        invariant!(
            flash.lines.get(next.id).chunks == flash.good_chunks(next.id),
            "line {} counts the chunks that can be written",
            next.id
        );
        let good = |index: &u32| flash.is_usable(flash.chunk_at(next.id, *index), 0);
        let first = (0..flash.layout.width).find(good);
        let Some(chunk) = first.filter(|_| flash.lines.get(next.id).left >= flash.geometry.ws_opt)
        else {
            self.write_off_next(flash, f, next.id);
            return Ok(true);
        };
        if flash.busy[flash.layout.unit(next.id, chunk) as usize] {
            return Ok(false);
        }
        self.program_smeta(flash, rules, f, next, chunk)?;
        Ok(false)
    }

    fn program_smeta<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        rules: &Rules,
        f: FrontierId,
        next: NextLine,
        chunk: u32,
    ) -> Result<(), FtlError> {
        let ws_opt = flash.geometry.ws_opt;
        let smeta = Smeta {
            instance: self.instance,
            line_seq: self.line_seq,
            logical_sectors: rules.capacity.logical_sectors,
            line: next.id,
            width: flash.layout.width,
            frontier: if flash.lines.get(next.id).is_map() { MAP_FRONTIER } else { u32::from(f) },
        };
        flash.lines.get_mut(next.id).seq = self.line_seq;
        self.line_seq += 1;
        flash.scratch.clear();
        flash.scratch.resize(ws_opt as usize, smeta.encode());
        let chunk = flash.chunk_at(next.id, chunk);
        let keys = &[KEY_EMPTY; MAX_UNIT][..ws_opt as usize];
        let cmd = WriteCmd {
            at: flash.layout.format.ppa(chunk, 0),
            kind: Kind::Smeta,
            seq: 0,
            seq_deltas: &[],
            aux: &[],
            keys,
            data: &flash.scratch,
        };
        let outcome = flash.media.write(flash.now, flash.now, cmd)?;
        flash.counts.sectors.line_meta += u64::from(ws_opt);
        flash.busy[chunk.unit.0 as usize] = true;
        flash.events.push(outcome.at, EventKind::Smeta(f, chunk.unit.0, outcome.status));
        self.get_mut(f).next = Some(NextLine { smeta: SmetaState::InFlight, ..next });
        Ok(())
    }

    /// Start metadata is written, or goes to the next good chunk.
    pub(super) fn smeta_done<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        f: FrontierId,
        pu: u32,
        status: Status,
    ) {
        flash.busy[pu as usize] = false;
        invariant!(self.get_mut(f).next.is_some(), "a line with start metadata is prepared");
        let Some(next) = &mut self.get_mut(f).next else { return };
        if status == Status::Ok {
            next.smeta = SmetaState::Written;
        } else {
            next.smeta = SmetaState::Missing;
            let id = next.id;
            flash.counts.media_errors.program_failures += 1;
            flash.lines.get_mut(id).werr = true;
            flash.lines.write_off(id, flash.geometry.sectors);
        }
    }

    fn write_off_next<M: OpenChannel>(&mut self, flash: &mut Flash<M>, f: FrontierId, id: LineId) {
        flash.lines.write_off(id, u32::MAX);
        flash.lines.kept += u32::from(flash.lines.get(id).is_map());
        flash.lines.get_mut(id).state = LineState::Bad;
        self.get_mut(f).next = None;
    }

    /// A program failed there: what data could still have taken of its chunk is lost to the line. A line
    /// that is full takes none.
    pub(super) fn write_off_rest<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        line: LineId,
        at: Ppa,
    ) {
        let mut lines = self.all.iter().filter_map(|frontier| frontier.open);
        let Some(open) = lines.find(|open| open.id == line) else { return };
        let failed = flash.layout.format.chunk_of(at);
        let index = (0..flash.layout.width).find(|&index| flash.chunk_at(line, index) == failed);
        let end = index.map_or(0, |index| open.data_end(index) * flash.geometry.ws_opt);
        let next = flash.layout.format.sector_of(at) + flash.geometry.ws_opt;
        flash.lines.write_off(line, end.saturating_sub(next));
    }

    /// The open line is full of data: end metadata follows, if room was kept for it. The line, if
    /// it is closed without.
    pub(super) fn close_open<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        rules: &Rules,
        f: FrontierId,
    ) -> Option<LineId> {
        let open = self.get_mut(f).open.take()?;
        flash.lines.write_off(open.id, u32::MAX);
        if open.end >= flash.line_end() {
            return Some(open.id);
        }
        flash.lines.get_mut(open.id).state = LineState::Closing;
        let missing = flash.emeta_units(rules);
        let closing = ClosingLine { id: open.id, at: open.end, in_flight: 0, missing };
        self.get_mut(f).closing.push_back(closing);
        None
    }

    /// Writes one unit of the oldest closing line's end metadata, if its parallel unit is idle. End
    /// metadata vouches for the line's data, so it waits until all of that is on media. The line, if that closed it.
    pub(super) fn write_emeta<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        f: FrontierId,
    ) -> Result<Option<LineId>, FtlError> {
        let (width, end) = (flash.layout.width, flash.line_end());
        let Some(mut closing) = self.get_mut(f).closing.front().copied() else { return Ok(None) };
        if flash.lines.get(closing.id).in_flight > 0 {
            return Ok(None);
        }
        while closing.at < end && !flash.is_usable_at(closing.id, closing.at) {
            closing.at.step(width);
        }
        let pu = flash.layout.unit(closing.id, closing.at.chunk);
        if closing.at < end && !flash.busy[pu as usize] {
            flash.program_emeta(f, closing.id, closing.at)?;
            closing.at.step(width);
            closing.in_flight += 1;
        }
        self.get_mut(f).closing[0] = closing;
        Ok(self.finish_closing(flash, f, end))
    }

    /// A unit of the oldest closing line's end metadata is written, or missing for good. The line, if that closed it.
    pub(super) fn emeta_done<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        f: FrontierId,
        pu: u32,
        status: Status,
    ) -> Option<LineId> {
        flash.busy[pu as usize] = false;
        let end = flash.line_end();
        let closing = self.get_mut(f).closing.front_mut()?;
        closing.in_flight -= 1;
        if status == Status::Ok {
            closing.missing -= 1;
        } else {
            let id = closing.id;
            flash.counts.media_errors.program_failures += 1;
            flash.lines.get_mut(id).werr = true;
        }
        self.finish_closing(flash, f, end)
    }

    /// Closes the oldest closing line if no more of its end metadata is to come.
    fn finish_closing<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        f: FrontierId,
        end: Cursor,
    ) -> Option<LineId> {
        let done = |closing: &&ClosingLine| closing.at >= end && closing.in_flight == 0;
        let closing = self.get_mut(f).closing.front().filter(done).copied()?;
        self.get_mut(f).closing.pop_front();
        flash.lines.get_mut(closing.id).emeta = closing.missing == 0;
        Some(closing.id)
    }

    /// Frontiers of buffers, which come before that of mapping blocks.
    #[inline]
    pub(super) fn data_frontiers(&self) -> usize {
        self.data
    }

    /// A program failed (pblk-write.c `pblk_map_remaining`): the rest of the chunk is lost to its line,
    /// which is to be collected first, unless it held nothing but padding and is free again.
    pub(super) fn chunk_failed<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        line: LineId,
        at: Ppa,
    ) {
        flash.counts.media_errors.program_failures += 1;
        let failed = flash.lines.get_mut(line);
        match failed.state {
            LineState::Free | LineState::AwaitingDurability | LineState::Next => return,
            LineState::Closed => flash.victims.mark_werr(line),
            _ => {}
        }
        failed.werr = true;
        self.write_off_rest(flash, line, at);
    }
}

impl<M: OpenChannel> Flash<M> {
    fn program_emeta(&mut self, f: FrontierId, line: LineId, at: Cursor) -> Result<(), FtlError> {
        invariant!(
            self.lines.get(line).in_flight == 0,
            "end metadata vouch for data: all of line {line} is on media"
        );
        let ws_opt = self.geometry.ws_opt;
        let ppa = self.ppa_at(line, at);
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
        let outcome = self.media.write(self.now, self.now, cmd)?;
        self.counts.sectors.line_meta += u64::from(ws_opt);
        let pu = self.layout.unit(line, at.chunk);
        self.busy[pu as usize] = true;
        self.events.push(outcome.at, EventKind::Emeta(f, pu, outcome.status));
        Ok(())
    }

    /// Data sectors that a frontier's lines can still take.
    #[inline]
    pub(super) fn left_of(&self, frontier: &Frontier) -> u64 {
        frontier.lines().map(|id| u64::from(self.lines.get(id).left)).sum()
    }
}
