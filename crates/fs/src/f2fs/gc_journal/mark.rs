//! Marking the copies of the superblock on the device, and taking the mark off
//! ([`format::gc_mark`](crate::f2fs::format)): the second copy is the first to get it and the last to lose it, and
//! blocks of the journal count only if both have it.

use crate::contract::Result;
use crate::f2fs::cleaner::Cleaner;
use crate::f2fs::format::{
    self, BlockAddr, FormatError, SUPERBLOCK_AT, SUPERBLOCK_BYTES, is_marked,
};
use crate::f2fs::moves::GcJournal;
use crate::f2fs::rules::OmittedRule;
use crate::f2fs::segment_manager::SegmentManager;
use crate::f2fs::sending::Writes;
use crate::image::ImageReader;
use nandscape_block::{Flags, SectorData};
use std::sync::Arc;

impl Cleaner {
    /// Marks both copies durably, unless they are.
    pub(super) async fn mark_volume(
        &self,
        journal: &GcJournal,
        device: (&Writes, &SegmentManager),
    ) -> Result<()> {
        if journal.is_marked.get() {
            return Ok(());
        }
        if !self.mount.omits(OmittedRule::GcMark) {
            for copy in [1, 0] {
                let mark = |bytes: &mut [u8]| format::mark(bytes, copy, journal.format);
                self.change_copy(device, copy, mark).await?;
            }
        }
        journal.is_marked.set(true);
        journal.count(|counts| counts.marks += 1);
        Ok(())
    }

    /// Takes the mark off both copies durably: a checkpoint is durable that no move follows.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) async fn unmark_volume(&self, device: (&Writes, &SegmentManager)) -> Result<()> {
        for copy in [0, 1] {
            self.change_copy(device, copy, |bytes| format::unmark(bytes, copy)).await?;
        }
        if let Some(journal) = &self.journal {
            journal.is_marked.set(false);
        }
        Ok(())
    }

    /// Whether the mount has marked the volume.
    pub(crate) fn is_marked(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.is_marked.get())
    }

    /// Changes a copy, and makes it durable. One that is not sound stays as it is: nothing believes it.
    async fn change_copy(
        &self,
        (writes, segments): (&Writes, &SegmentManager),
        copy: u32,
        change: impl FnOnce(&mut [u8]) -> Result<(), FormatError>,
    ) -> Result<()> {
        let mut block = ImageReader::new(&self.mount.env.device).block(copy.into()).await?;
        let bytes = &mut block[SUPERBLOCK_AT..SUPERBLOCK_AT + SUPERBLOCK_BYTES];
        let was_marked = is_marked(bytes);
        if change(bytes).is_err() || was_marked == is_marked(bytes) {
            return Ok(());
        }
        let block = vec![(BlockAddr(copy), SectorData::Bytes(Arc::from(block)))];
        writes
            .write_blocks(segments, block, None, (Flags::META | Flags::SYNC, Flags::NONE))
            .await?;
        self.mount.env.device.flush().await?;
        Ok(())
    }
}
