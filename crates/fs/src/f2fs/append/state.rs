//! The state of a mounted volume in an append-only address space.

use super::discards::PendingDiscards;
use super::upcalls::{Fetched, Upcalls};
use crate::f2fs::format::{AppendMode, BLOCKS_PER_SEGMENT, DiscardRecords};
use nandscape_block::UpcallSignal;
use nandscape_rt::Handle;
use nandscape_rt::sync::Notify;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Why a checkpoint was forced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Forced {
    /// The media are nearly full of what waits for its discard.
    Media,
    /// Few slots are free.
    Slots,
    /// Few sections of a region are free.
    Sections,
    /// Many upcalls wait for a checkpoint.
    Upcalls,
}

/// What was done in an append-only address space since mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AppendCounts {
    /// Blocks that were discarded.
    pub discarded_blocks: u64,
    /// Blocks of the discard journal written.
    pub journal_blocks: u64,
    /// Blocks that mounts discarded: those of discard journals, and what nothing leads to after a power cut.
    pub mount_discarded_blocks: u64,
    /// Checkpoints that were forced: by full media, few slots, few sections, many upcalls.
    pub forced: [u64; 4],
    /// Batches of migrations fetched.
    pub upcalls_fetched: u64,
    /// Batches completed.
    pub upcalls_completed: u64,
    /// Moved blocks of data.
    pub moved_data: u64,
    /// Moved nodes.
    pub moved_nodes: u64,
    /// Records of blocks that are not what was moved any more.
    pub stale: u64,
    /// Records that a mount found in effect already.
    pub known: u64,
    /// Nodes that were read for the records.
    pub nodes_read: u64,
}

impl AppendCounts {
    /// Applies `merge` to each count and its counterpart in `other`.
    pub(crate) fn zip(&mut self, other: &Self, merge: impl Fn(&mut u64, u64)) {
        merge(&mut self.discarded_blocks, other.discarded_blocks);
        merge(&mut self.journal_blocks, other.journal_blocks);
        merge(&mut self.mount_discarded_blocks, other.mount_discarded_blocks);
        for (ours, theirs) in self.forced.iter_mut().zip(other.forced) {
            merge(ours, theirs);
        }
        merge(&mut self.upcalls_fetched, other.upcalls_fetched);
        merge(&mut self.upcalls_completed, other.upcalls_completed);
        merge(&mut self.moved_data, other.moved_data);
        merge(&mut self.moved_nodes, other.moved_nodes);
        merge(&mut self.stale, other.stale);
        merge(&mut self.known, other.known);
        merge(&mut self.nodes_read, other.nodes_read);
    }

    /// The counts by name.
    pub(crate) fn named(&self) -> Vec<(&'static str, u64)> {
        let [media, slots, sections, upcalls] = self.forced;
        vec![
            ("discarded_blocks", self.discarded_blocks),
            ("discard_journal_blocks", self.journal_blocks),
            ("mount_discarded_blocks", self.mount_discarded_blocks),
            ("forced_by_media", media),
            ("forced_by_slots", slots),
            ("forced_by_sections", sections),
            ("forced_by_upcalls", upcalls),
            ("upcalls_fetched", self.upcalls_fetched),
            ("upcalls_completed", self.upcalls_completed),
            ("moved_data_blocks", self.moved_data),
            ("moved_node_blocks", self.moved_nodes),
            ("stale_records", self.stale),
            ("known_records", self.known),
            ("nodes_read_ahead", self.nodes_read),
        ]
    }
}

/// An append-only address space of a mounted volume.
pub(crate) struct AppendSpace {
    pub(crate) mode: AppendMode,
    /// Blocks that the media hold beside the metadata.
    pub(crate) capacity: u64,
    /// Blocks that runs which found space may still take.
    pub(crate) aside: Rc<Cell<u64>>,
    /// Blocks that may have been written since the checkpoint that the mount found.
    pub(crate) unknown: u64,
    pub(crate) discards: RefCell<PendingDiscards>,
    /// Whether a task sends them.
    pub(crate) is_sending: Cell<bool>,
    /// Wakes the task that sends discards before its round.
    pub(crate) hurry: Notify,
    /// Something waits until all are sent: rounds follow each other at once.
    pub(crate) is_hurried: Cell<bool>,
    /// None waits, and none is on its way.
    pub(crate) drained: Notify,
    /// Of a device that moves blocks.
    pub(crate) upcalls: Option<Upcalls>,
    /// The mount has not brought device and volume together yet: what is void is found by it.
    pub(crate) is_mounting: Cell<bool>,
    /// What it has fetched until then.
    pub(crate) fetched: RefCell<Fetched>,
    counts: Cell<AppendCounts>,
}

impl AppendSpace {
    /// Blocks of a run of file data, and of those that found space before it.
    pub(crate) fn blocks_of_runs(&self) -> u64 {
        u64::from(BLOCKS_PER_SEGMENT) + self.aside.get()
    }

    /// With what the discard journal of the last checkpoint has. Of the media `valid` blocks are in use.
    pub(crate) fn new(
        rt: &Handle,
        (mode, capacity): (AppendMode, u32),
        signal: Option<UpcallSignal>,
        valid: u64,
        journal: DiscardRecords,
    ) -> Self {
        let capacity = u64::from(capacity);
        let mut discards = PendingDiscards::default();
        for (at, map) in &journal.bitmaps {
            super::discards::runs_of(at.0, map).into_iter().for_each(|run| discards.add(run));
        }
        journal.ranges.into_iter().for_each(|range| discards.add(range));
        Self {
            mode,
            capacity,
            aside: Rc::default(),
            unknown: capacity.saturating_sub(valid),
            discards: RefCell::new(discards),
            is_sending: Cell::new(false),
            hurry: Notify::new(rt, "discards in a hurry"),
            is_hurried: Cell::new(false),
            drained: Notify::new(rt, "discards"),
            upcalls: signal.map(|signal| Upcalls::new(rt, signal)),
            is_mounting: Cell::new(mode == AppendMode::Coupled),
            fetched: RefCell::default(),
            counts: Cell::default(),
        }
    }

    /// Whether the device moves blocks, and sections are superblocks.
    pub(crate) fn is_coupled(&self) -> bool {
        self.mode == AppendMode::Coupled
    }

    pub(crate) const fn counts(&self) -> AppendCounts {
        self.counts.get()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut AppendCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// A checkpoint was forced.
    pub(crate) fn note_forced(&self, why: Forced) {
        self.count(|counts| counts.forced[why as usize] += 1);
    }
}
