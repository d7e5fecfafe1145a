//! The segments of a mounted volume, with the summaries that lie on the device and what is counted of both
//! (`struct f2fs_sm_info`).

use super::append::{AppendSpace, Upcalls};
use super::counts::InUseSums;
use super::error::corrupt;
use super::format::{
    BLOCKS_PER_SEGMENT, BlockAddr, Layout, Place, SegNo, SegmentType, SpaceSection, SummaryBlock,
    SummaryEntry, SummaryKind,
};
use super::meta_pages::MetaPages;
use super::mount_info::MountInfo;
use super::options::{AllocMode, MountOptions};
use super::rules::OmittedRule;
use super::segment::{Block, Capacity, Discards, Segments, SegmentsAtMount};
use super::zones::Zones;
use crate::contract::Result;
use crate::vfs::writeback::Room;
use nandscape_block::Placement;
use nandscape_rt::defect;
use nandscape_rt::sync::Mutex;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::rc::Rc;

/// The placement of blocks of a log: that of data by their life, none of nodes (`whint_mode=fs-based`).
const fn placement_of(log: SegmentType) -> u16 {
    match log {
        SegmentType::HotData => 1,
        SegmentType::WarmData => 3,
        SegmentType::ColdData => 4,
        SegmentType::HotNode | SegmentType::WarmNode | SegmentType::ColdNode => 0,
    }
}

/// The placement of blocks of the metadata areas: medium life, as `whint_mode=fs-based` has it.
const META_PLACEMENT: u16 = 2;

/// Segments as the checkpoint has them, with the rules of this mount.
pub(super) fn segments_of(
    layout: Layout,
    capacity: Option<Capacity>,
    options: &MountOptions,
    at_mount: SegmentsAtMount,
) -> Segments {
    let whole = Capacity::whole(layout.segments_per_section());
    let capacity = capacity.unwrap_or(whole);
    let mut segments = Segments::new(layout, capacity, at_mount);
    segments.reuses_early =
        options.alloc_mode == AllocMode::Reuse || options.has_small_rules(&layout);
    segments.ignores_kept = options.omit == Some(OmittedRule::KeptBlocks);
    segments.reuses_prefree = options.omit == Some(OmittedRule::PrefreeReuse);
    segments.frees_pinned = options.omit == Some(OmittedRule::GcPinned);
    segments.reuses_retired = options.omit == Some(OmittedRule::SectionReuse);
    segments.keeps_rules = options.omit.is_none() && !options.gc_without.checkpoint();
    segments.forgets_slots = options.omit == Some(OmittedRule::SlotMap);
    segments
}

/// Segments of a mounted volume.
pub(crate) struct SegmentManager {
    pub(crate) mount: Rc<MountInfo>,
    /// SSA blocks.
    pub(crate) meta: MetaPages,
    /// How much of each section can be written.
    pub(crate) capacity: Capacity,
    /// SIT, free segments, logs.
    table: RefCell<Segments>,
    /// The zones, if sections are zones.
    pub(crate) zones: Option<Zones>,
    /// The append-only address space, in place of a main area.
    pub(crate) append: Option<AppendSpace>,
    /// One segment is prepared for a log at a time.
    pub(crate) ssr_lock: Mutex<()>,
    pub(crate) discards: Discards,
    pub(crate) in_use_sums: Cell<InUseSums>,
}

impl SegmentManager {
    pub(crate) fn new(
        mount: Rc<MountInfo>,
        meta: MetaPages,
        table: Segments,
        (zones, append): (Option<Zones>, Option<AppendSpace>),
    ) -> Self {
        let ssr_lock = Mutex::new(&mount.env.rt, "a dirty segment for a log", ());
        Self {
            mount,
            meta,
            capacity: *table.capacity(),
            table: RefCell::new(table),
            zones,
            append,
            ssr_lock,
            discards: Discards::default(),
            in_use_sums: Cell::default(),
        }
    }

    #[inline]
    pub(crate) fn borrow(&self) -> Ref<'_, Segments> {
        self.table.borrow()
    }

    #[inline]
    pub(crate) fn borrow_mut(&self) -> RefMut<'_, Segments> {
        self.table.borrow_mut()
    }

    /// Valid blocks of a segment, with what its summaries say of them.
    pub(crate) async fn summaries_of(
        &self,
        segment: SegNo,
    ) -> Result<Vec<(BlockAddr, SummaryEntry)>> {
        let summaries = self.summaries(segment).await?;
        let segments = self.table.borrow();
        let first = segments.block(segment, 0);
        let first = first.ok_or_else(|| defect!("{segment:?} that is cleaned has blocks"))?;
        let blocks = (first.0..).map(BlockAddr).zip(*summaries.entries);
        Ok(blocks.filter(|(at, _)| segments.is_valid(*at)).collect())
    }

    /// The summaries of a segment, from its log or from SSA.
    pub(crate) async fn summaries(&self, segment: SegNo) -> Result<SummaryBlock> {
        if let Some(log) = self.table.borrow().logs().iter().find(|log| log.segment == segment) {
            return Ok(log.summary.clone());
        }
        let at = self.mount.summary_block(segment)?;
        let read = |bytes: &Block| SummaryBlock::parse(bytes, Place::Summary(segment));
        Ok(self.meta.read(at, read).await??)
    }

    /// What the summaries say of a block.
    pub(crate) async fn summary_of(&self, at: BlockAddr) -> Result<SummaryEntry> {
        let outside = || corrupt("block outside of the main area", at.0);
        let found = self.table.borrow().segment_of(at);
        let (segment, offset) = found.ok_or_else(outside)?;
        Ok(self.summaries(segment).await?.entries[offset as usize])
    }

    /// A block of a log of this kind is valid, and its summary names its node (`f2fs_replace_block`).
    pub(crate) async fn adopt_block(
        &self,
        (at, log): (BlockAddr, SegmentType),
        summary: SummaryEntry,
        now: u64,
    ) -> Result<()> {
        self.table.borrow_mut().admit(at)?;
        let found = self.table.borrow().segment_of(at);
        let Some((segment, offset)) = found else {
            return Err(defect!("a block that was admitted lies in a segment: {at:?}").into());
        };
        let in_log = self.table.borrow_mut().adopt((at, log), summary, now)?;
        if !in_log {
            // What SSA has of a segment that the checkpoint does not know may be of another kind.
            let kind = if log.is_node() { SummaryKind::Node } else { SummaryKind::Data };
            let mut summaries =
                self.summaries(segment).await.unwrap_or_else(|_| SummaryBlock::new(kind));
            summaries.kind = kind;
            summaries.entries[offset as usize] = summary;
            self.meta.keep_summaries(segment, &summaries)?;
        }
        Ok(())
    }

    /// Logs go on in fresh segments (`f2fs_allocate_new_segments`) where the chain lies, or what it brought back: others
    /// have the segments that they had, since hardly any may be free after a cut in the midst of cleaning.
    pub(crate) fn renew_logs(&self, has_chain: bool) -> Result<()> {
        for log in SegmentType::ALL {
            let holds_chain = has_chain && log == SegmentType::WarmNode;
            if !holds_chain && !self.table.borrow().is_overlapped(log) {
                self.table.borrow_mut().skip_found(log);
                continue;
            }
            let (segment, summaries) = self.table.borrow_mut().renew(log)?;
            self.meta.keep_summaries(segment, &summaries)?;
        }
        Ok(())
    }

    /// Has all logs go on in fresh sections.
    pub(crate) fn renew_all(&self) -> Result<()> {
        for log in SegmentType::ALL {
            let (segment, summaries) = self.table.borrow_mut().renew_section(log)?;
            self.meta.keep_summaries(segment, &summaries)?;
        }
        Ok(())
    }

    /// Sections may be written again.
    pub(crate) fn give_back(&self, sections: Vec<SpaceSection>) {
        let mut segments = self.table.borrow_mut();
        sections.into_iter().for_each(|section| segments.give_back(section));
    }

    /// Counts what is in use while so many blocks are written that users gave.
    pub(crate) fn note_in_use(&self, blocks: u64) {
        let mut sums = self.in_use_sums.get();
        sums.note(blocks, self.table.borrow().in_use());
        self.in_use_sums.set(sums);
    }

    /// The placement hint of a block: that of its log (`whint_mode=fs-based`).
    pub(crate) fn placement_at(&self, at: BlockAddr) -> Placement {
        let segments = self.table.borrow();
        let segment = segments.segment_of(at).map(|(segment, _)| segment);
        let hint = match segment.and_then(|segment| segments.segment(segment)) {
            Some(segment) => placement_of(segment.kind),
            None => META_PLACEMENT,
        };
        Placement(hint.min(self.mount.env.device.caps().placement_handles))
    }

    /// Room for a run of a segment's blocks. Nothing waits since it was found: who asks next finds these blocks taken.
    pub(super) fn room_for_run(&self) -> Room {
        match &self.append {
            Some(append) => Room::set_aside(BLOCKS_PER_SEGMENT.into(), &append.aside),
            None => Room::new(BLOCKS_PER_SEGMENT.into()),
        }
    }

    /// The upcalls, if the device moves blocks.
    pub(crate) fn upcalls(&self) -> Option<&Upcalls> {
        self.append.as_ref()?.upcalls.as_ref()
    }
}
