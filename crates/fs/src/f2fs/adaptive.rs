//! Adaptive logging (`mode=adaptive`): logs append as long as there are free sections, and fill holes of dirty segments when
//! few are left; data that an fsync is to make durable quickly is written over where it lies. After `f2fs_need_SSR` and
//! `get_ssr_segment` in fs/f2fs/segment.c, `f2fs_should_update_inplace` and `f2fs_should_update_outplace` in data.c.
//!
//! With normal logging (`mode=lfs`) none of it happens.

use super::balance::Balance;
use super::format::{CP_CRC_RECOVERY, SegNo, SegmentType};
use super::inode::Inode;
use super::mount_info::MountInfo;
use super::options::Allocation;
use super::volume::Volume;
use crate::contract::{Kind, Result};

/// Dirty pages of a file up to which an fsync writes them in place (`DEF_MIN_FSYNC_BLOCKS`).
const FSYNC_PAGES: u64 = 8;

impl Volume {
    /// Makes sure that a log which is about to write so many blocks finds the segment that follows its own, where that
    /// is a dirty one: its summaries are read here, since nothing waits while blocks are given.
    ///
    /// # Errors
    /// Those of reading summaries.
    pub(crate) async fn prepare_log(&self, log: SegmentType, blocks: u64) -> Result<()> {
        if !self.mount.is_adaptive() || !self.segments.borrow().is_filled_by(log, blocks) {
            return Ok(());
        }
        let _one = self.segments.ssr_lock.lock().await;
        let Some(segment) = self.choose_ssr_segment(log) else { return Ok(()) };
        let summary = self.segments.summaries(segment).await;
        let (summary, result) = match summary {
            Ok(summary) => (Some(summary), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.segments.borrow_mut().note_prepared(log, summary);
        result
    }

    /// The dirty segment that a log is to go on with, if it is to be one and none is known yet.
    fn choose_ssr_segment(&self, log: SegmentType) -> Option<SegNo> {
        let mut segments = self.segments.borrow_mut();
        // A chain of nodes that runs through holes differs from what lay there by the checksum of its checkpoint alone.
        let has_crc = self.checkpoints.last.borrow().has(CP_CRC_RECOVERY);
        let may_thread = log != SegmentType::WarmNode || has_crc;
        let is_needed = may_thread
            && !segments.is_prepared(log)
            && !segments.follows_in_section(log)
            && Balance::of(self).needs_ssr(&segments);
        if !is_needed {
            return None;
        }
        let marked = self.cleaner.background_victims.borrow();
        let cleaned = self.cleaner.cleaning.get();
        segments.choose_dirty(log, |section| marked.contains(&section) || cleaned == Some(section))
    }
}

impl Inode {
    /// An fsync begins to write a file's pages: in place, if they are few or nothing else is to be written
    /// (`FI_NEED_IPU`).
    pub(crate) fn begin_fsync(&self, data_only: bool) {
        self.syncs_in_place.set(data_only || self.pages.dirty() <= FSYNC_PAGES);
    }
}

impl MountInfo {
    pub(super) fn is_adaptive(&self) -> bool {
        self.options.allocation == Allocation::Adaptive
    }

    /// Whether data of a file is written over where it lies.
    pub(crate) fn updates_in_place(&self, inode: &Inode) -> bool {
        self.is_adaptive()
            && inode.kind() == Kind::File
            && (inode.syncs_in_place.get()
                || inode.is_cold()
                || self.options.has_small_rules(&self.layout))
    }
}
