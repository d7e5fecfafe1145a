//! The six logs (`struct curseg_info`) and what is allocated at their ends (`f2fs_allocate_data_block`).

use super::turns::Turns;
use super::{Segment, Segments};
use crate::contract::{FsError, Result};
use crate::f2fs::format::{
    BLOCKS_PER_SEGMENT, BlockAddr, SegNo, SegmentType, SummaryBlock, SummaryEntry, SummaryKind,
};
use nandscape_rt::{defect, invariant};

/// An open segment.
#[derive(Clone, Debug)]
pub(crate) struct CurSeg {
    pub(crate) segment: SegNo,
    /// The block that is written next; that of the segment's end if none is left.
    pub(crate) next: u32,
    /// Whether it is written in the holes of a segment that was dirty (`SSR`), and not appended to (`LFS`).
    pub(crate) ssr: bool,
    /// Whether its next block cannot be written, since the write pointer of its zone is elsewhere: the log leaves the
    /// segment for a fresh one before it takes another block.
    pub(crate) stale: bool,
    /// Summaries of its blocks, as SSA will hold them.
    pub(crate) summary: SummaryBlock,
}

impl CurSeg {
    /// A segment that is opened as a log.
    fn open(segment: SegNo, log: SegmentType) -> Self {
        let kind = if log.is_node() { SummaryKind::Node } else { SummaryKind::Data };
        let summary = SummaryBlock::new(kind);
        Self { segment, next: 0, ssr: false, stale: false, summary }
    }

    /// Blocks of the segment, from its first on, whose summaries mean something.
    pub(crate) const fn written(&self) -> u32 {
        if self.ssr { BLOCKS_PER_SEGMENT } else { self.next }
    }
}

/// The segment that a log goes on with.
pub(super) enum Following {
    /// A free one.
    Free(u32),
    /// A dirty one, with its summaries.
    Dirty(u32, Box<SummaryBlock>),
}

/// A block that was allocated.
pub(crate) struct Allocated {
    pub(crate) at: BlockAddr,
    /// Where the log goes on after it (`NEXT_FREE_BLKADDR`).
    pub(crate) next: BlockAddr,
    /// The segment that the log left before, since it could not go on there, with its summaries, which belong into SSA.
    left: Option<(SegNo, SummaryBlock)>,
    /// The same of the segment that it filled.
    filled: Option<(SegNo, SummaryBlock)>,
}

impl Allocated {
    /// Segments that the log is through with, in order, with the summaries that belong into SSA.
    pub(crate) fn into_full(self) -> impl Iterator<Item = (SegNo, SummaryBlock)> {
        self.left.into_iter().chain(self.filled)
    }
}

impl Segments {
    /// Allocates the next block of a log in place of `old`, which becomes invalid if it is a block.
    ///
    /// # Errors
    /// [`FsError::NoSpace`], before anything changes, if the log needs a new segment and none is free;
    /// [`FsError::Corrupt`] if valid bits contradict this.
    pub(crate) fn allocate(
        &mut self,
        log: SegmentType,
        old: BlockAddr,
        summary: SummaryEntry,
        now_s: u64,
    ) -> Result<Allocated> {
        let left = if self.log(log).stale { Some(self.renew(log)?) } else { None };
        let offset = self.log(log).next;
        let following = self.offset_after(log, offset);
        let fills = following == self.end_of(self.log(log));
        let segment = if fills { Some(self.following_segment(log)?) } else { None };
        let at = self.next_block(log);
        self.check_next(log, at);
        self.mark(at, true, now_s)?;
        if old.is_block() {
            self.mark(old, false, now_s)?;
        }
        let curseg = &mut self.logs[log.number()];
        curseg.summary.entries[offset as usize] = summary;
        curseg.next = following;
        self.written[log.number()] += 1;
        self.threaded += u64::from(curseg.ssr);
        let filled = segment.map(|segment| self.open(log, segment));
        let next = self.next_block(log);
        if let Some(turns) = self.turns.as_mut().filter(|_| filled.is_some()) {
            turns.jump(at, next);
        }
        if old.is_block() {
            self.note_emptied(old);
        }
        if filled.is_some() {
            self.note_emptied(at);
        }
        Ok(Allocated { at, next, left, filled })
    }

    /// A log is about to write a block.
    fn check_next(&self, log: SegmentType, at: BlockAddr) {
        let CurSeg { segment, next, .. } = *self.log(log);
        let Some(found) = self.segment(segment) else { return };
        invariant!(
            next < self.capacity.of_segment(segment.0),
            "{log:?}: block {next} of {segment:?} is within its capacity"
        );
        invariant!(
            found.map.get(next) || !found.kept.get(next) || !self.keeps_rules,
            "{log:?}: nothing durable leads to {at:?}, which is written next"
        );
        invariant!(
            !self.free.is_free(segment.0) && !self.prefree.contains(&segment.0),
            "{log:?}: {segment:?} of a log is in use"
        );
    }

    /// The block that a log writes next.
    pub(crate) fn next_block(&self, log: SegmentType) -> BlockAddr {
        let curseg = self.log(log);
        let at = self.block(curseg.segment, curseg.next);
        invariant!(at.is_some(), "{log:?}: its segment has a place in the volume");
        at.unwrap_or_default()
    }

    /// Blocks that a log can take after each other without a new segment.
    pub(crate) fn run_of(&self, log: SegmentType) -> u32 {
        let CurSeg { next, ssr, stale, .. } = *self.log(log);
        if stale {
            return 1;
        }
        if !ssr {
            return self.left_in(self.log(log));
        }
        let mut end = next;
        while end < BLOCKS_PER_SEGMENT && self.offset_after(log, end) == end + 1 {
            end += 1;
        }
        (end + 1).min(BLOCKS_PER_SEGMENT) - next
    }

    /// The end of what can be written in the segment of a log.
    fn end_of(&self, log: &CurSeg) -> u32 {
        self.capacity.of_segment(log.segment.0)
    }

    /// Blocks that a log can append to its segment.
    pub(super) fn left_in(&self, log: &CurSeg) -> u32 {
        self.end_of(log).saturating_sub(log.next)
    }

    /// The block that a log goes on with after one of its segment; the segment's end if there is none.
    fn offset_after(&self, log: SegmentType, offset: u32) -> u32 {
        let CurSeg { segment, ssr, .. } = *self.log(log);
        if ssr { self.next_hole(segment, offset + 1) } else { offset + 1 }
    }

    /// What a log goes on with when its segment is full.
    fn following_segment(&mut self, log: SegmentType) -> Result<Following> {
        match self.take_prepared(log) {
            Some(found) => Ok(found),
            None => self.next_segment(log).map(Following::Free),
        }
    }

    /// Whether the next `blocks` blocks of a log leave none in its segment.
    pub(crate) fn is_filled_by(&self, log: SegmentType, blocks: u64) -> bool {
        let CurSeg { segment, next, ssr, .. } = *self.log(log);
        let left = match ssr {
            true => self.holes_from(segment, next),
            false => self.left_in(self.log(log)),
        };
        u64::from(left) <= blocks
    }

    /// Which segment follows the one of a log: the next free one of its section, or the first of a free section
    /// (`get_new_segment`, with the kernel's default `noheap`).
    fn next_segment(&self, log: SegmentType) -> Result<u32> {
        let now = self.log(log).segment;
        let is_zone = self.slots.is_some() || self.capacity.is_zone(self.layout.section_of(now));
        // A log leaves a zone in which it cannot go on at the write pointer.
        let next = self.free.next_in_section(now.0);
        let next = next.filter(|next| !is_zone || *next == now.0 + 1 && !self.log(log).stale);
        if let Some(next) = next {
            return Ok(next);
        }
        if let Some(slots) = &self.slots {
            let free = self.free.next_section(slots.cursor()).filter(|_| slots.has_section(log));
            return free.ok_or(FsError::NoSpace);
        }
        // Hot data and nodes begin at the start of the volume, so that freed segments are reused early.
        let from_start = log == SegmentType::HotData || log.is_node();
        let large = self.layout.segments_per_section() > 1;
        let reuse = self.reuses_early || from_start && !large;
        let hint = if reuse { 0 } else { self.layout.section_of(now) };
        self.free.next_section(hint).ok_or(FsError::NoSpace)
    }

    /// Opens a segment for a log. Returns the one before, with its summaries.
    fn open(&mut self, log: SegmentType, following: Following) -> (SegNo, SummaryBlock) {
        match following {
            Following::Free(segment) => self.open_free(log, segment),
            Following::Dirty(segment, summary) => self.open_dirty(log, segment, *summary),
        }
    }

    /// Opens a free segment (`new_curseg`).
    fn open_free(&mut self, log: SegmentType, segment: u32) -> (SegNo, SummaryBlock) {
        invariant!(
            self.free.is_free(segment) && self.holds_nothing(segment),
            "{log:?}: segment {segment} that is opened is free, and nothing durable leads to it"
        );
        self.open_slot(log, segment);
        self.free.take(segment);
        if let Some(opened) = self.segments.get_mut(segment as usize) {
            opened.kind = log;
            self.usage.take(log, self.capacity.of_segment(segment));
        }
        self.dirty_entries.insert(segment);
        let before = &mut self.logs[log.number()];
        let before = std::mem::replace(before, CurSeg::open(SegNo(segment), log));
        (before.segment, before.summary)
    }

    /// Whether nothing durable leads to a segment, as far as rules are kept.
    fn holds_nothing(&self, segment: u32) -> bool {
        let found = self.segment(SegNo(segment));
        !self.keeps_rules || found.is_some_and(Segment::is_unneeded)
    }

    /// Gives a section of the address space to the slot of a segment, unless it has one.
    fn open_slot(&mut self, log: SegmentType, segment: u32) {
        let slot = self.layout.section_of(SegNo(segment));
        if let Some(slots) = self.slots.as_mut().filter(|slots| !slots.is_placed(slot)) {
            slots.open(slot, log);
        }
    }

    /// A block is valid that was written after the last checkpoint, to a log of this kind (`f2fs_do_replace_block`).
    /// Whether it lies in a log of the checkpoint, which keeps its summary; otherwise that belongs into SSA.
    ///
    /// # Errors
    /// [`FsError::Corrupt`] if it is valid already.
    pub(crate) fn adopt(
        &mut self,
        (at, kind): (BlockAddr, SegmentType),
        summary: SummaryEntry,
        now_s: u64,
    ) -> Result<bool> {
        self.admit(at)?;
        self.mark(at, true, now_s)?;
        let Some((segment, offset)) = self.segment_of(at) else {
            return Err(defect!("a block that is valid now lies in a segment: {at:?}").into());
        };
        let was_used = !self.free.is_free(segment.0) && !self.held.remove(&segment.0);
        self.free.take(segment.0);
        self.prefree.remove(&segment.0);
        self.check_in_use(segment);
        let is_first = self.segment(segment).is_some_and(|found| found.valid == 1);
        if is_first {
            self.reopen_found(segment, was_used, kind);
        }
        let Some(log) = self.logs.iter_mut().find(|log| log.segment == segment) else {
            return Ok(false);
        };
        log.summary.entries[offset as usize] = summary;
        if is_first {
            log.summary.kind = CurSeg::open(segment, kind).summary.kind;
        }
        Ok(true)
    }

    /// A segment whose only valid block was found was opened for it after the last checkpoint.
    fn reopen_found(&mut self, segment: SegNo, was_used: bool, kind: SegmentType) {
        let found = self.segments.get_mut(segment.0 as usize);
        invariant!(found.is_some(), "{segment:?} of a block that was found is there");
        let Some(found) = found else { return };
        self.usage.drop_valid(found.kind);
        let blocks = self.capacity.of_segment(segment.0);
        if was_used {
            self.usage.release(found.kind, blocks);
        }
        found.kind = kind;
        self.usage.take(kind, blocks);
        self.usage.add_valid(kind, 1);
    }

    /// Whether a log cannot go on in its segment, because of what was found there that the checkpoint does not have:
    /// blocks where it would write next, or those of another log.
    pub(crate) fn is_overlapped(&self, log: SegmentType) -> bool {
        let CurSeg { segment, next, ssr, .. } = *self.log(log);
        if ssr {
            return self.next_hole(segment, next) == BLOCKS_PER_SEGMENT;
        }
        let Some(found) = self.segment(segment) else { return false };
        let taken = found.map.union(&found.kept);
        found.kind != log || taken.count_from(next) > 0
    }

    /// Leaves the segment of a log for a fresh one, whatever is left in it. Returns what belongs into SSA.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if no segment is free.
    pub(crate) fn renew(&mut self, log: SegmentType) -> Result<(SegNo, SummaryBlock)> {
        let following = self.next_segment(log)?;
        let left = self.open_free(log, following);
        let next = self.next_block(log);
        if let Some(turns) = &mut self.turns {
            turns.begin(log, next);
        }
        self.note_emptied(self.block(left.0, 0).unwrap_or_default());
        Ok(left)
    }

    /// From now on blocks of logs are sent in their order: sections are zones.
    pub(crate) fn begin_turns(&mut self) {
        let mut turns = Turns::default();
        // A stale log has its first turn in the segment that it goes to.
        let logs = SegmentType::ALL.into_iter().filter(|log| !self.log(*log).stale);
        logs.for_each(|log| turns.begin(log, self.next_block(log)));
        self.turns = Some(turns);
    }

    /// Whether it is the turn of so many blocks from one on to be sent; those after them come next then.
    pub(crate) fn take_turn(&mut self, at: BlockAddr, blocks: u32) -> bool {
        self.turns.as_mut().is_none_or(|turns| turns.take(at, blocks))
    }

    /// The blocks whose turn it is.
    pub(crate) fn turns(&self) -> impl Iterator<Item = BlockAddr> + use<> {
        self.turns.as_ref().map(Turns::now).into_iter().flatten()
    }

    /// A log cannot go on where it is.
    pub(crate) const fn make_stale(&mut self, log: SegmentType) {
        self.logs[log.number()].stale = true;
    }
}
