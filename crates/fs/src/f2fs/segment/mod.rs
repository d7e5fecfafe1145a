//! Segments of the main area: which blocks are valid (SIT), which segments are free, and the six logs. After
//! fs/f2fs/segment.c and segment.h.
//!
//! A segment is free, open as a log, full, dirty (some of its blocks are invalid), or *prefree*: none of its blocks is
//! valid, but the last checkpoint may still refer to them, so it becomes free with the next checkpoint only.
//!
//! Invariants:
//! - A segment's valid count is that of its bitmap.
//! - The block that a log writes next is free: it is not valid, and neither the last checkpoint nor an fsync since leads to
//!   it.
//! - A segment of a log is neither free nor prefree.
//! - No segment is free before the checkpoint is durable that no longer refers to it, or the GC journal that says where
//!   its blocks are: nothing in it is valid or kept.
//! - Each changed entry is in the next checkpoint's journal or in its SIT block, as it is then.
//!
//! Nothing here reads or writes the device: what is to be written is handed out as blocks.

mod capacity;
mod curseg;
mod discards;
mod free;
mod in_use;
mod sit;
mod slots;
mod ssr;
#[cfg(test)]
pub(super) mod tests;
mod turns;

pub(crate) use capacity::Capacity;
pub(crate) use curseg::CurSeg;
pub(crate) use discards::Discards;
pub(crate) use in_use::Blocks;
pub(crate) use slots::{MovedTo, RegionFill, Slots};

use super::format::{
    BlockAddr, Layout, SegNo, SegmentType, SitEntry, SitJournal, ValidMap, VersionBitmap,
};
use crate::contract::Result;
use crate::f2fs::error::corrupt;
use free::FreeSegments;
use in_use::Use;
use nandscape_rt::invariant;
use std::collections::BTreeSet;
use turns::Turns;

/// Logs of a volume.
pub(crate) const LOGS: usize = 6;

/// The bytes of a block.
pub(crate) type Block = [u8; super::format::BLOCK_BYTES];

/// A segment in memory (`struct seg_entry`).
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) valid: u16,
    pub(crate) kind: SegmentType,
    pub(crate) map: ValidMap,
    /// Blocks that were valid at the last checkpoint or have been written since: that checkpoint and the fsyncs after it
    /// lead to them, so they are not written over before the next one (`ckpt_valid_map`). Of those that cleaning moved, the
    /// GC journal says where they are now: they are kept no longer once it is durable.
    pub(crate) kept: ValidMap,
    /// Mean time of its writes, in seconds of mounted time.
    pub(crate) mtime: u64,
}

impl Segment {
    fn new(entry: &SitEntry) -> Self {
        let SitEntry { valid_blocks: valid, segment_type: kind, map, mtime } = *entry;
        Self { valid, kind, map, kept: map, mtime }
    }

    /// Whether the valid count is that of the bitmap.
    fn is_counted(&self) -> bool {
        u32::from(self.valid) == self.map.count()
    }

    /// Whether nothing leads to a block of it: memory, the last checkpoint, or an fsync since.
    fn is_unneeded(&self) -> bool {
        self.map.count() == 0 && self.kept.count() == 0
    }

    fn entry(&self) -> SitEntry {
        let Self { valid, kind, map, mtime, .. } = *self;
        SitEntry { valid_blocks: valid, segment_type: kind, map, mtime }
    }
}

/// All segments of a volume (`struct f2fs_sm_info`).
pub(crate) struct Segments {
    layout: Layout,
    capacity: Capacity,
    segments: Vec<Segment>,
    /// Valid blocks of each section.
    section_valid: Vec<u32>,
    /// Blocks of each section that are kept and not valid.
    section_pinned: Vec<u32>,
    /// All of these.
    pinned: u64,
    /// Which section of the address space each section here stands for, where that is append-only.
    slots: Option<Slots>,
    free: FreeSegments,
    /// Segments without valid blocks, until the next checkpoint.
    prefree: BTreeSet<u32>,
    /// Segments whose entry differs from the last checkpoint's.
    dirty_entries: BTreeSet<u32>,
    logs: [CurSeg; LOGS],
    /// SIT entries that the checkpoint pack holds instead of the SIT.
    journal: SitJournal,
    /// Which copy of each SIT block is current.
    version_bitmap: VersionBitmap,
    /// Blocks written to each log since mount.
    written: [u64; LOGS],
    /// The order in which blocks are sent, where sections are zones.
    turns: Option<Turns>,
    usage: Use,
    /// Free segments that are kept from use.
    held: BTreeSet<u32>,
    /// Dirty segments that logs are to go on with.
    prepared: [Option<ssr::Prepared>; LOGS],
    /// Where the search for a dirty segment goes on.
    last_ssr: u32,
    /// Blocks written in holes of segments since mount.
    threaded: u64,
    /// Free segments are looked for from the start of the volume (`alloc_mode=reuse`).
    pub(crate) reuses_early: bool,
    /// Holes are blocks that are not valid now, which breaks a rule.
    pub(crate) ignores_kept: bool,
    /// Segments are free as soon as nothing in them is valid, which breaks a rule.
    pub(crate) reuses_prefree: bool,
    /// Checkpoints do not have the addresses of slots, which breaks a rule.
    pub(crate) forgets_slots: bool,
    /// Sections are written again, and before others, once they lost their slots, which breaks a rule.
    pub(crate) reuses_retired: bool,
    /// Those that are kept do not keep cleaned segments from being free, which breaks a rule.
    pub(crate) frees_pinned: bool,
    /// The mount leaves out no rule: what rules keep holds.
    pub(crate) keeps_rules: bool,
}

/// What a checkpoint says of segments.
pub(crate) struct SegmentsAtMount {
    pub(crate) entries: Vec<SitEntry>,
    pub(crate) logs: [CurSeg; LOGS],
    pub(crate) journal: SitJournal,
    pub(crate) version_bitmap: VersionBitmap,
    /// In an append-only address space.
    pub(crate) slots: Option<Slots>,
}

impl Segments {
    /// The segments of a volume that is being mounted.
    pub(crate) fn new(layout: Layout, capacity: Capacity, found: SegmentsAtMount) -> Self {
        let SegmentsAtMount { entries, logs, journal, version_bitmap, slots } = found;
        let segments: Vec<_> = entries.iter().map(Segment::new).collect();
        let per_section = layout.segments_per_section() as usize;
        let valid = |section: &[Segment]| section.iter().map(|one| u32::from(one.valid)).sum();
        let section_valid: Vec<_> = segments.chunks(per_section).map(valid).collect();
        let section_pinned = vec![0; section_valid.len()];
        let is_open = |segment: u32| logs.iter().any(|log| log.segment.0 == segment);
        let in_use = (0..).zip(&segments).filter(|(number, one)| one.valid > 0 || is_open(*number));
        let mut free = FreeSegments::new(segments.len() as u32, per_section as u32);
        let mut usage = Use::default();
        in_use.for_each(|(number, one)| {
            free.take(number);
            usage.take(one.kind, capacity.of_segment(number));
            usage.add_valid(one.kind, one.valid);
        });
        (0..segments.len() as u32)
            .filter(|number| capacity.of_segment(*number) == 0)
            .for_each(|number| free.exclude(number));
        Self {
            layout,
            capacity,
            segments,
            section_valid,
            section_pinned,
            pinned: 0,
            slots,
            free,
            prefree: BTreeSet::new(),
            dirty_entries: BTreeSet::new(),
            logs,
            journal,
            version_bitmap,
            written: [0; LOGS],
            turns: None,
            usage,
            held: BTreeSet::new(),
            prepared: [const { None }; LOGS],
            last_ssr: 0,
            threaded: 0,
            reuses_early: false,
            ignores_kept: false,
            reuses_prefree: false,
            frees_pinned: false,
            forgets_slots: false,
            reuses_retired: false,
            keeps_rules: true,
        }
    }

    pub(crate) fn segment(&self, number: SegNo) -> Option<&Segment> {
        self.segments.get(number.0 as usize)
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let sections = self.section_valid.len() * 2 * size_of::<u32>();
        let slots = self.slots.as_ref().map_or(0, Slots::memory_bytes);
        (self.segments.len() * size_of::<Segment>() + sections) as u64 + slots
    }

    /// How much of each section can be written.
    pub(crate) const fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Segments of the main area.
    pub(crate) fn count(&self) -> u32 {
        self.segments.len() as u32
    }

    pub(crate) const fn free_segments(&self) -> u32 {
        self.free.free_segments()
    }

    pub(crate) const fn free_sections(&self) -> u32 {
        self.free.free_sections()
    }

    pub(crate) fn prefree_segments(&self) -> u32 {
        self.prefree.len() as u32
    }

    /// Prefree segments, in order.
    pub(crate) fn prefree(&self) -> Vec<SegNo> {
        self.prefree.iter().copied().map(SegNo).collect()
    }

    /// Valid blocks of a section.
    pub(crate) fn section_valid(&self, section: u32) -> u32 {
        self.section_valid.get(section as usize).copied().unwrap_or(0)
    }

    pub(crate) const fn log(&self, log: SegmentType) -> &CurSeg {
        &self.logs[log.number()]
    }

    pub(crate) const fn logs(&self) -> &[CurSeg; LOGS] {
        &self.logs
    }

    /// Blocks written to each log since mount.
    pub(crate) const fn written(&self) -> &[u64; LOGS] {
        &self.written
    }

    /// Blocks written in holes of segments since mount.
    pub(crate) const fn threaded(&self) -> u64 {
        self.threaded
    }

    /// Whether a segment is one of the logs'.
    pub(crate) fn is_open(&self, segment: SegNo) -> bool {
        self.logs.iter().any(|log| log.segment == segment)
    }

    /// Whether a section holds a segment of a log.
    pub(crate) fn is_open_section(&self, section: u32) -> bool {
        self.logs.iter().any(|log| self.layout.section_of(log.segment) == section)
    }

    /// Whether a block is valid.
    pub(crate) fn is_valid(&self, at: BlockAddr) -> bool {
        let Some((segment, offset)) = self.segment_of(at) else { return false };
        self.segment(segment).is_some_and(|found| found.map.get(offset))
    }

    /// Notes that a block holds nothing any more (`f2fs_invalidate_blocks`).
    ///
    /// # Errors
    /// [`FsError::Corrupt`](crate::contract::FsError::Corrupt) if it held nothing.
    pub(crate) fn invalidate(&mut self, at: BlockAddr) -> Result<()> {
        self.mark(at, false, 0)?;
        self.note_emptied(at);
        Ok(())
    }

    /// Sets or clears the valid bit of a block (`update_sit_entry`).
    fn mark(&mut self, at: BlockAddr, valid: bool, now_s: u64) -> Result<()> {
        let outside = || corrupt("block outside of the main area", at.0);
        let (number, offset) = self.segment_of(at).ok_or_else(outside)?;
        let segment = self.segments.get_mut(number.0 as usize).ok_or_else(outside)?;
        if segment.map.get(offset) == valid {
            let what = if valid { "valid block written again" } else { "invalid block freed" };
            return Err(corrupt(what, format_args!("block {}", at.0)));
        }
        let section = self.layout.section_of(number) as usize;
        let (count, pinned) = (&mut self.section_valid[section], &mut self.section_pinned[section]);
        if valid {
            segment.mtime = mean(segment.mtime, segment.valid, now_s);
            segment.map.set(offset);
            let was_pinned = u32::from(segment.kept.set(offset));
            *pinned -= was_pinned;
            self.pinned -= u64::from(was_pinned);
            segment.valid += 1;
            *count += 1;
            self.usage.add_valid(segment.kind, 1);
        } else {
            segment.map.clear(offset);
            let is_pinned = u32::from(segment.kept.get(offset));
            *pinned += is_pinned;
            self.pinned += u64::from(is_pinned);
            segment.valid -= 1;
            *count -= 1;
            self.usage.drop_valid(segment.kind);
        }
        self.dirty_entries.insert(number.0);
        Ok(())
    }

    /// A block became invalid: its segment may be prefree now (`locate_dirty_segment`).
    fn note_emptied(&mut self, at: BlockAddr) {
        let found = self.segment_of(at);
        invariant!(found.is_some(), "a block that is invalid now lies in a segment: {at:?}");
        let Some((number, _)) = found else { return };
        let empty = self.segment(number).is_some_and(|segment| segment.valid == 0);
        invariant!(
            self.segment(number).is_none_or(Segment::is_counted),
            "{number:?}: the valid count is that of the bitmap"
        );
        if !empty || self.is_open(number) {
            return;
        }
        self.forget_prepared(number.0);
        if self.reuses_prefree {
            self.release(number.0);
        } else {
            invariant!(!self.is_open(number), "{number:?} of a log is not prefree");
            self.prefree.insert(number.0);
        }
    }

    /// Keeps a free segment from being used; whether it is free.
    pub(crate) fn hold(&mut self, segment: SegNo) -> bool {
        let is_free = self.free.is_free(segment.0);
        if is_free {
            self.free.take(segment.0);
            self.held.insert(segment.0);
        }
        is_free
    }

    /// A segment that was held may be used, unless it has been meanwhile.
    pub(crate) fn unhold(&mut self, segment: SegNo) {
        if self.held.remove(&segment.0) {
            self.free.release(segment.0);
            self.release_slot(self.layout.section_of(segment));
        }
    }

    /// Segments that a checkpoint calls free: those that are kept from use hold nothing.
    pub(crate) fn segments_without_blocks(&self) -> u32 {
        // Where nothing is cleaned, an unmount may find some that only its own checkpoint frees.
        let prefree = if self.slots.is_some() { self.prefree.len() } else { 0 };
        self.free.free_segments() + (self.held.len() + prefree) as u32
    }

    /// Whether an entry differs from the last checkpoint's.
    pub(crate) fn has_dirty_entries(&self) -> bool {
        !self.dirty_entries.is_empty()
    }

    /// A checkpoint is durable: prefree segments are free. Returns them, in order
    /// (`set_prefree_as_free_segments`, `clear_prefree_segments`).
    pub(crate) fn release_prefree(&mut self) -> Vec<SegNo> {
        let released: Vec<_> = std::mem::take(&mut self.prefree).into_iter().map(SegNo).collect();
        released.iter().for_each(|segment| self.release(segment.0));
        released
    }

    /// The GC journal is durable that says where these blocks are now: they are not kept any more.
    pub(crate) fn unkeep(&mut self, moved: impl Iterator<Item = BlockAddr>) {
        for at in moved {
            let Some((number, offset)) = self.segment_of(at) else { continue };
            let Some(segment) = self.segments.get_mut(number.0 as usize) else { continue };
            if segment.kept.clear(offset) && !segment.map.get(offset) {
                self.section_pinned[self.layout.section_of(number) as usize] -= 1;
                self.pinned -= 1;
            }
        }
    }

    /// Prefree segments of which no block is kept are free. Returns them, in order.
    pub(crate) fn release_unkept(&mut self) -> Vec<SegNo> {
        let is_kept = |number: &u32| {
            let segment = self.segments.get(*number as usize);
            segment.is_none_or(|segment| segment.kept.count() > 0) && !self.frees_pinned
        };
        let (kept, released) = std::mem::take(&mut self.prefree).into_iter().partition(is_kept);
        self.prefree = kept;
        let released: BTreeSet<u32> = released;
        released.iter().for_each(|number| self.release(*number));
        released.into_iter().map(SegNo).collect()
    }

    /// Whether a section holds blocks that are kept and not valid, so that it is not free before a checkpoint.
    pub(crate) fn is_pinned_section(&self, section: u32) -> bool {
        self.section_pinned.get(section as usize).is_some_and(|pinned| *pinned > 0)
    }

    /// Whether all segments of a section are free.
    pub(crate) fn is_free_section(&self, section: u32) -> bool {
        self.free.is_free_section(section)
    }

    /// Keeps a free section from being used; whether it is free.
    pub(crate) fn hold_section(&mut self, section: u32) -> bool {
        let is_free = self.is_free_section(section);
        for number in self.layout.section_segments(section).filter(|_| is_free) {
            self.hold(SegNo(number));
        }
        is_free
    }

    /// A section that was held may be used.
    pub(crate) fn unhold_section(&mut self, section: u32) {
        self.layout.section_segments(section).for_each(|number| self.unhold(SegNo(number)));
    }

    /// Whether a segment of a section is kept from use.
    pub(crate) fn is_held_section(&self, section: u32) -> bool {
        self.held.range(self.layout.section_segments(section)).next().is_some()
    }

    /// Whether anything in a section is valid, or kept for the last checkpoint.
    pub(crate) fn is_needed_section(&self, section: u32) -> bool {
        let mut segments = self.layout.section_segments(section);
        segments.any(|number| {
            self.segment(SegNo(number)).is_some_and(|one| one.valid > 0 || one.kept.count() > 0)
        })
    }

    /// A segment has a valid block: it is in use.
    fn check_in_use(&self, segment: SegNo) {
        invariant!(
            !self.free.is_free(segment.0) && !self.prefree.contains(&segment.0),
            "{segment:?} with a valid block is neither free nor prefree"
        );
    }

    /// A segment that was in use is free.
    fn release(&mut self, number: u32) {
        invariant!(!self.is_open(SegNo(number)), "segment {number} of a log is not free");
        invariant!(
            !self.keeps_rules
                || self.segments.get(number as usize).is_some_and(Segment::is_unneeded),
            "segment {number} is free only when nothing durable leads to it"
        );
        if let Some(segment) = self.segments.get(number as usize) {
            self.usage.release(segment.kind, self.capacity.of_segment(number));
        }
        self.free.release(number);
        self.release_slot(self.layout.section_of(SegNo(number)));
    }
}

/// The mean time of a segment with so many valid blocks after a write now (`update_segment_mtime`).
fn mean(before: u64, valid: u16, now_s: u64) -> u64 {
    if before == 0 {
        return now_s;
    }
    let sum = u128::from(before) * u128::from(valid) + u128::from(now_s);
    (sum / (u128::from(valid) + 1)) as u64
}
