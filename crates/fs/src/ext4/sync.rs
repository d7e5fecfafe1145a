//! What an fsync commits, and what a commit asks of file data.

use super::file_commit::Recorded;
use super::inode::Inode;
use super::journal::{CommitHook, JournalError, Tid};
use super::rules::OmittedRule;
use super::volume::Volume;
use crate::contract::Result;
use nandscape_block::BlockError;
use nandscape_rt::invariant;
use std::rc::{Rc, Weak};

impl Volume {
    /// Commits what a file's metadata needs, if anything. Whether the device was flushed with it.
    pub(super) async fn commit_changes(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        data_only: bool,
    ) -> Result<bool> {
        let tid = if data_only { inode.datasync_tid.get() } else { inode.sync_tid.get() };
        let Some(tid) = tid.filter(|tid| !self.meta.is_committed(*tid)) else {
            return Ok(self.omits(OmittedRule::FsyncFlush));
        };
        match self.file_commit.commit_file(&self.meta, &self.orphans, inode).await? {
            Recorded::Now => return Ok(true),
            Recorded::Before => return Ok(false),
            Recorded::Not => {}
        }
        let barrier = self.meta.journal.will_send_barrier(tid);
        self.meta.journal.commit(tid).await?;
        Ok(barrier || self.omits(OmittedRule::BarrierSent))
    }
}

/// What the journal asks of a volume. It does not keep it alive.
pub(crate) struct VolumeHook(pub(crate) Weak<Volume>);

impl CommitHook for VolumeHook {
    fn complete(&self) -> std::result::Result<(), JournalError> {
        let gone = || JournalError::Aborted("the file system is gone".to_owned());
        let volume = self.0.upgrade().ok_or_else(gone)?;
        volume.meta.deferred.encode(&volume.meta, &volume.inodes, volume.options.inodes);
        Ok(())
    }

    fn committed(&self, tid: Tid) {
        if let Some(volume) = self.0.upgrade() {
            volume.file_commit.forget(tid);
        }
    }

    async fn write_out(&self, tid: Tid) -> Result<(), BlockError> {
        let gone = || BlockError::ReadOnly("the file system is gone".into());
        let volume = self.0.upgrade().ok_or_else(gone)?;
        // A transaction need not have any.
        let files = volume.ordered.borrow_mut().remove(&tid.0).unwrap_or_default();
        for inode in files.into_values().filter(|_| !volume.omits(OmittedRule::OrderedWait)) {
            inode.in_flight.settle().await;
        }
        invariant!(
            !volume.ordered.borrow().contains_key(&tid.0),
            "no file is attached to {tid} any more when its data is waited for"
        );
        Ok(())
    }
}
