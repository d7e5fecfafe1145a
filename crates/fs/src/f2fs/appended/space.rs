//! Room in an append-only address space: on the media, in the tables of slots, in the regions. A checkpoint is forced when
//! one of them gets scarce (D2FS: less than 10 % of the sections of a region, less than 5 % of the slots), and writers wait
//! when there is hardly any left.

use super::Appended;
use crate::contract::{FsError, Result};
use crate::f2fs::append::{AppendSpace, Forced};
use crate::f2fs::balance::Balance;
use crate::f2fs::checkpoints::Reason;
use crate::f2fs::counts::SpaceCounts;
use crate::f2fs::segment::{LOGS, RegionFill};
use crate::f2fs::segment_manager::SegmentManager;

/// Share of sections of a region below which a checkpoint is forced.
const SECTIONS_PERCENT: u32 = 10;
/// The same of slots.
const SLOTS_PERCENT: u32 = 5;
/// Share of slots that a forced checkpoint must make free, so that it is not forced for each.
const GAIN_PERCENT: u32 = 1;
/// Blocks beside what is dirty that a writer may take before it is asked again: what operations dirty meanwhile.
const MARGIN: u64 = 256;
/// Tries to make room before a writer hears that there is none.
const TRIES: u32 = 8;

/// What there is too little of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::f2fs) struct Lack {
    what: Forced,
    /// Writers cannot go on.
    hard: bool,
}

impl Balance<'_> {
    /// Blocks that may be written before space is asked for again: a run of file data, those that found space before, and
    /// what is dirty.
    fn blocks_to_write(&self, append: &AppendSpace) -> u64 {
        let nodes = self.nodes.dirty.borrow().len() as u64;
        let inodes = self.inodes.lists.dirty.borrow().len() as u64;
        append.blocks_of_runs() + nodes + inodes + 2 * self.mount.dirty_dir_pages() + MARGIN
    }

    /// Whether there is enough of everything, whatever of what is dirty has to be written: what most writers find.
    fn is_ample(&self, append: &AppendSpace) -> bool {
        let segments = self.segments.borrow();
        let inodes = self.inodes.lists.dirty.borrow().len() as u64;
        // No fewer than [`Balance::blocks_to_write`] counts: all dirty pages are more than those of nodes and directories.
        let blocks = append.blocks_of_runs() + MARGIN + 3 * self.mount.env.cache.dirty() + inodes;
        let sections =
            blocks.div_ceil(self.mount.layout.blocks_per_section().into()) as u32 + LOGS as u32;
        let (valid, void) = segments.live_blocks();
        let (used, slots) = segments.slots_used();
        let has = |free: u32, all: u32, percent: u32| {
            free >= sections && u64::from(free) * 100 >= u64::from(all) * u64::from(percent)
        };
        valid + void + append.discards.borrow().blocks() + blocks <= append.capacity
            && has(slots - used, slots, SLOTS_PERCENT)
            && segments.host_fills().all(|fill| has(fill.free, fill.sections, SECTIONS_PERCENT))
    }

    /// What there is too little of, hard lacks first.
    pub(in crate::f2fs) fn lack(&self, append: &AppendSpace) -> Option<Lack> {
        if self.is_ample(append) {
            return None;
        }
        let segments = self.segments.borrow();
        let blocks = self.blocks_to_write(append);
        let sections =
            blocks.div_ceil(self.mount.layout.blocks_per_section().into()) as u32 + LOGS as u32;
        let (valid, void) = segments.live_blocks();
        let live = valid + void + append.discards.borrow().blocks();
        let (used, slots) = segments.slots_used();
        let hard = |what, is_short: bool| is_short.then_some(Lack { what, hard: true });
        let hard = hard(Forced::Media, live + blocks > append.capacity)
            .or_else(|| hard(Forced::Slots, slots - used < sections))
            .or_else(|| {
                hard(Forced::Sections, segments.host_fills().any(|fill| fill.free < sections))
            });
        if hard.is_some() {
            return hard;
        }
        let gain = (slots * GAIN_PERCENT / 100).max(1);
        let waits = append.upcalls.as_ref().is_some_and(|upcalls| upcalls.applied() > 0);
        let prefree = segments.prefree_segments() / self.mount.layout.segments_per_section();
        if prefree < gain && !(waits && prefree > 0) {
            return None;
        }
        let few_slots = slots - used < slots * SLOTS_PERCENT / 100;
        let few_sections = |fill: RegionFill| {
            u64::from(fill.free) * 100 < u64::from(fill.sections) * u64::from(SECTIONS_PERCENT)
        };
        let soft = |what, is_short: bool| is_short.then_some(Lack { what, hard: false });
        soft(Forced::Slots, few_slots)
            .or_else(|| soft(Forced::Sections, segments.host_fills().any(few_sections)))
    }
}

impl Appended<'_> {
    /// Makes room before an operation that makes pages dirty. The caller has no share of the checkpoint lock.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if there is none, whatever is discarded; those of checkpoints.
    pub(in crate::f2fs) async fn make_room(self) -> Result<()> {
        let Self { volume, append } = &self;
        let _alone = volume.cleaner.lock.lock().await;
        for _ in 0..TRIES {
            let Some(lack) = Balance::of(volume).lack(append) else { return Ok(()) };
            append.note_forced(lack.what);
            self.reclaim_space(lack.hard).await?;
        }
        match Balance::of(volume).lack(append) {
            Some(Lack { hard: true, .. }) => Err(FsError::NoSpace),
            _ => Ok(()),
        }
    }

    /// Writes a checkpoint, which frees what it can; waits for its discards if no write can go on without them.
    async fn reclaim_space(&self, waits: bool) -> Result<()> {
        self.fetch_upcalls().await?;
        self.volume.write_checkpoint(Reason::Space).await?;
        if waits {
            self.append.drain_discards(&self.volume.mount).await?;
            // Sections of which all was discarded are free when the device has no migration left.
            self.fetch_upcalls().await?;
        }
        Ok(())
    }
}

impl AppendSpace {
    /// How much of the address space is in use.
    pub(in crate::f2fs) fn space_counts(&self, segments: &SegmentManager) -> SpaceCounts {
        let segments = segments.borrow();
        let (used, slots) = segments.slots_used();
        let mut counts = SpaceCounts {
            slots: slots.into(),
            slots_used: used.into(),
            void_blocks: segments.live_blocks().1 + self.discards.borrow().blocks(),
            ..SpaceCounts::default()
        };
        for (used, fill) in counts.sections_used.iter_mut().zip(segments.fills()) {
            *used = u64::from(fill.sections - fill.free);
        }
        counts
    }
}
