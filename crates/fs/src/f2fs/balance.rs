//! What is free against what is dirty: whether cleaning, a checkpoint or logs that fill holes are needed.

use super::checkpoints::Checkpoints;
use super::format::SegmentType;
use super::inode_table::InodeTable;
use super::mount_info::MountInfo;
use super::nat::Nodes;
use super::segment::{LOGS, Segments};
use super::segment_manager::SegmentManager;
use super::volume::Volume;

/// Sections beyond what is dirty with which cleaning goes on before a checkpoint: one each for data, nodes and
/// directories (`NR_GC_CHECKPOINT_SECS`).
const CHECKPOINT_SECTIONS: u32 = 3;

/// What is free, and what is dirty and has to be written there.
#[derive(Clone, Copy)]
pub(super) struct Balance<'a> {
    pub(super) mount: &'a MountInfo,
    pub(super) segments: &'a SegmentManager,
    pub(super) nodes: &'a Nodes,
    pub(super) inodes: &'a InodeTable,
    checkpoints: &'a Checkpoints,
}

impl<'a> Balance<'a> {
    #[inline]
    pub(super) fn of(volume: &'a Volume) -> Self {
        let Volume { mount, segments, nodes, inodes, checkpoints, .. } = volume;
        Self { mount, segments, nodes, inodes, checkpoints }
    }

    /// Sections that so many dirty pages take (`get_blocktype_secs`).
    fn sections_for(&self, pages: u64) -> u32 {
        pages.div_ceil(self.segments.capacity.of_section().into()) as u32
    }

    /// Sections that are kept for cleaning (`reserved_sections`).
    pub(super) fn reserved_sections(&self) -> u32 {
        let reserved = self.checkpoints.last.borrow().rsvd_segment_count;
        reserved / self.segments.capacity.segments()
    }

    /// Whether free sections are too few for what is dirty, if `freed` more become free
    /// (`has_not_enough_free_secs`).
    pub(super) fn lacks_free_sections(&self, freed: u32) -> bool {
        let reserved = self.reserved_sections();
        let free = self.segments.borrow().free_sections() + freed;
        let inodes = self.inodes.lists.dirty.borrow().len() as u64;
        // All dirty pages are more than those of nodes and directories; they are counted already.
        if free > 4 * self.sections_for(self.mount.env.cache.dirty() + inodes) + reserved {
            return false;
        }
        free <= self.sections_to_write() + reserved
    }

    /// Sections that dirty nodes, directories and inodes may take.
    pub(super) fn sections_to_write(&self) -> u32 {
        let nodes = self.sections_for(self.nodes.dirty.borrow().len() as u64);
        let dents = self.sections_for(self.mount.dirty_dir_pages());
        let inodes = self.inodes.lists.dirty.borrow().len() as u64;
        nodes + 2 * dents + self.sections_for(inodes)
    }

    /// Sections that the checkpoint after a roll-forward would take for nodes that fsyncs have written since the last
    /// checkpoint: all of them are dirty again then, and the chain keeps its places. No part of a section counts, so that
    /// a checkpoint on its account covers many of them.
    fn sections_to_recover(&self) -> u32 {
        let written = self.segments.borrow().written()[SegmentType::WarmNode.number()];
        let chain = written - self.checkpoints.chain_from.get();
        let nodes = chain.min(self.nodes.nat.borrow().dirty_entries() as u64);
        (nodes / u64::from(self.segments.capacity.of_section())) as u32
    }

    /// Whether a mount after a power cut would have too few free sections to roll forward what fsyncs have written: for
    /// their nodes, and for logs that go on in fresh ones.
    pub(super) fn lacks_sections_to_recover(&self) -> bool {
        let again = self.sections_to_recover();
        again > 0
            && self.segments.append.is_none()
            && self.segments.borrow().free_sections()
                < again + self.sections_to_write() + LOGS as u32
    }

    /// Whether cleaning has to make its prefree segments free before it goes on: what it moves takes free sections, and
    /// so does the checkpoint.
    pub(super) fn must_reclaim(&self) -> bool {
        // A mount after a power cut needs as many, so that all logs can leave their zones.
        let for_recovery = self.segments.zones.as_ref().map_or(0, |_| LOGS as u32);
        let kept = CHECKPOINT_SECTIONS + for_recovery + self.sections_to_recover();
        let segments = self.segments.borrow();
        segments.prefree_segments() > 0
            && segments.free_sections() <= self.sections_to_write() + kept
    }

    /// What a checkpoint would cost now, in blocks that are written: dirty nodes, directories and inodes, and the rest.
    pub(super) fn checkpoint_blocks(&self) -> u64 {
        let nodes = self.nodes.dirty.borrow().len() as u64;
        let inodes = self.inodes.lists.dirty.borrow().len() as u64;
        nodes
            + inodes
            + self.mount.dirty_dir_pages()
            + u64::from(self.mount.options.checkpoint_cost)
    }

    /// Whether so few sections are free that logs fill holes (`f2fs_need_SSR`).
    pub(super) fn needs_ssr(&self, segments: &Segments) -> bool {
        segments.free_sections() <= self.sections_to_write() + 2 * self.reserved_sections()
    }
}
