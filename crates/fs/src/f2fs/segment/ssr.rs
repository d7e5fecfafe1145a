//! Threaded logging (`SSR`): when few sections are free, a log goes on in the holes of a dirty segment. After
//! `get_ssr_segment`, `change_curseg` and `__next_free_blkoff` in fs/f2fs/segment.c, and `get_victim_by_default` in gc.c.
//!
//! A hole is a block that is not valid, was not valid at the last checkpoint, and has not been written since: the last
//! checkpoint and the chains of fsyncs after it still lead to others. The kernel takes blocks of data that were written
//! and freed since the checkpoint, so that a file can lose what an fsync made durable.
//!
//! Summaries of a dirty segment come from the device, and nothing may wait while blocks are allocated: so the segment that
//! follows is prepared before its log needs it.

use super::curseg::Following;
use super::{CurSeg, Segments};
use crate::f2fs::format::{
    BLOCKS_PER_SEGMENT, BlockAddr, SegNo, SegmentType, SummaryBlock, ValidMap,
};
use nandscape_rt::invariant;

/// Dirty segments that a search looks at (`DEF_MAX_VICTIM_SEARCH`).
const SEARCH: usize = 4096;

/// A dirty segment that a log is to go on with.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    segment: u32,
    /// Not there until it has been read.
    summary: Option<Box<SummaryBlock>>,
}

impl Segments {
    /// Bits of blocks that a log must not write in a segment.
    fn taken(&self, segment: SegNo) -> ValidMap {
        match self.segment(segment) {
            Some(found) if self.ignores_kept => found.map,
            Some(found) => found.map.union(&found.kept),
            None => ValidMap::full(),
        }
    }

    /// The first hole of a segment from an offset on; the segment's end if there is none.
    pub(super) fn next_hole(&self, segment: SegNo, from: u32) -> u32 {
        self.taken(segment).next_clear(from).unwrap_or(BLOCKS_PER_SEGMENT)
    }

    /// Holes of a segment from an offset on.
    pub(super) fn holes_from(&self, segment: SegNo, from: u32) -> u32 {
        BLOCKS_PER_SEGMENT - from - self.taken(segment).count_from(from)
    }

    /// Whether the segment that follows that of a log is known.
    pub(crate) fn is_prepared(&self, log: SegmentType) -> bool {
        self.prepared[log.number()].is_some()
    }

    /// Whether a log goes on in its section when its segment is full.
    pub(crate) fn follows_in_section(&self, log: SegmentType) -> bool {
        let CurSeg { segment, ssr, .. } = *self.log(log);
        !ssr && self.free.next_in_section(segment.0).is_some()
    }

    /// Chooses a dirty segment for a log to go on with, of the same kind if there is one, and keeps it from cleaning and
    /// other logs. `is_kept` are sections that it must not be of.
    pub(crate) fn choose_dirty(
        &mut self,
        log: SegmentType,
        is_kept: impl Fn(u32) -> bool,
    ) -> Option<SegNo> {
        let segment =
            kinds_for(log).into_iter().find_map(|kind| self.find_dirty(kind, &is_kept))?;
        self.prepared[log.number()] = Some(Prepared { segment, summary: None });
        Some(SegNo(segment))
    }

    /// The dirty segment of a kind with the most holes, among the next ones.
    fn find_dirty(&mut self, kind: SegmentType, is_kept: &impl Fn(u32) -> bool) -> Option<u32> {
        let count = self.count();
        let from = self.last_ssr.min(count);
        let all = (from..count).chain(0..from);
        let is_candidate = |number: &u32| {
            let segment = &self.segments[*number as usize];
            let section = self.layout.section_of(SegNo(*number));
            segment.kind == kind
                && segment.valid > 0
                && u32::from(segment.valid) < BLOCKS_PER_SEGMENT
                && !self.is_open_section(section)
                && !self.is_prepared_segment(*number)
                && !is_kept(section)
        };
        let cost = |number: &u32| self.taken(SegNo(*number)).count();
        let best = all.filter(is_candidate).take(SEARCH).min_by_key(cost);
        let best = best.filter(|best| cost(best) < BLOCKS_PER_SEGMENT)?;
        self.last_ssr = best + 1;
        Some(best)
    }

    /// Whether a log is to go on with a segment.
    fn is_prepared_segment(&self, number: u32) -> bool {
        self.prepared.iter().flatten().any(|prepared| prepared.segment == number)
    }

    /// Whether a log is to go on in a section.
    pub(crate) fn is_prepared_section(&self, section: u32) -> bool {
        let mut prepared = self.prepared.iter().flatten();
        prepared.any(|prepared| self.layout.section_of(SegNo(prepared.segment)) == section)
    }

    /// The summaries of the segment that was chosen for a log; nothing if it could not be read.
    pub(crate) fn note_prepared(&mut self, log: SegmentType, summary: Option<SummaryBlock>) {
        let prepared = &mut self.prepared[log.number()];
        match (summary, prepared.as_mut()) {
            (Some(summary), Some(prepared)) => prepared.summary = Some(Box::new(summary)),
            _ => *prepared = None,
        }
    }

    /// A segment holds nothing valid any more: it is no log's next one.
    pub(super) fn forget_prepared(&mut self, number: u32) {
        for prepared in &mut self.prepared {
            if prepared.as_ref().is_some_and(|prepared| prepared.segment == number) {
                *prepared = None;
            }
        }
    }

    /// The segment that was prepared for a log, if it is one to go on with still.
    pub(super) fn take_prepared(&mut self, log: SegmentType) -> Option<Following> {
        let Prepared { segment, summary } = self.prepared[log.number()].take()?;
        let has_hole = self.next_hole(SegNo(segment), 0) < BLOCKS_PER_SEGMENT;
        summary.filter(|_| has_hole).map(|summary| Following::Dirty(segment, summary))
    }

    /// Opens a dirty segment for a log (`change_curseg`). Returns the one before, with its summaries.
    pub(super) fn open_dirty(
        &mut self,
        log: SegmentType,
        segment: u32,
        summary: SummaryBlock,
    ) -> (SegNo, SummaryBlock) {
        if let Some(opened) = self.segments.get_mut(segment as usize) {
            opened.kind = log;
        }
        self.dirty_entries.insert(segment);
        let next = self.next_hole(SegNo(segment), 0);
        invariant!(
            next < BLOCKS_PER_SEGMENT
                && !self.free.is_free(segment)
                && !self.is_open(SegNo(segment)),
            "{log:?}: segment {segment} that is opened has a hole, and is neither free nor a log's"
        );
        let opened = CurSeg { segment: SegNo(segment), next, ssr: true, stale: false, summary };
        let before = std::mem::replace(&mut self.logs[log.number()], opened);
        (before.segment, before.summary)
    }

    /// A block that a chain of fsyncs leads through is kept until the next checkpoint.
    pub(crate) fn keep(&mut self, at: BlockAddr) {
        let found = self.segment_of(at);
        invariant!(found.is_some(), "a block that is kept lies in a segment: {at:?}");
        let Some((segment, offset)) = found else { return };
        if let Some(found) = self.segments.get_mut(segment.0 as usize) {
            let is_new = !found.kept.set(offset);
            self.section_pinned[self.layout.section_of(segment) as usize] += u32::from(is_new);
            self.pinned += u64::from(is_new);
            self.dirty_entries.insert(segment.0);
        }
    }

    /// A log that fills holes goes on after those that roll-forward found to be none.
    pub(crate) fn skip_found(&mut self, log: SegmentType) {
        let CurSeg { segment, next, ssr, .. } = *self.log(log);
        if ssr {
            self.logs[log.number()].next = self.next_hole(segment, next);
        }
    }
}

/// Kinds of segments in whose holes a log goes on, in the order in which they are looked for.
fn kinds_for(log: SegmentType) -> [SegmentType; 3] {
    use SegmentType::{ColdData, ColdNode, HotData, HotNode, WarmData, WarmNode};
    match log {
        HotData => [HotData, WarmData, ColdData],
        WarmData => [WarmData, ColdData, HotData],
        ColdData => [ColdData, WarmData, HotData],
        HotNode => [HotNode, WarmNode, ColdNode],
        WarmNode => [WarmNode, ColdNode, HotNode],
        ColdNode => [ColdNode, WarmNode, HotNode],
    }
}
