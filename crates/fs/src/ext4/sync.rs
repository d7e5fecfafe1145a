//! Making things durable: `fsync`, `fdatasync`, `sync`, and what a commit asks of file data.

use super::extents::Logical;
use super::file_commit::Recorded;
use super::inode::Inode;
use super::journal::{CommitHook, JournalError, Tid};
use super::volume::Volume;
use crate::cache::Mapping;
use crate::contract::Result;
use nandscape_block::{Bio, BlockError, FlushScope};
use std::rc::{Rc, Weak};

impl Volume {
    /// Writes all dirty pages of a file and waits for them.
    pub(crate) async fn write_out(self: &Rc<Self>, inode: &Rc<Inode>) -> Result<()> {
        let sent = self.write_out_range(inode, &(0..u64::MAX)).await;
        inode.pages.take_error().and(sent)
    }

    /// Writes the dirty pages of a range and waits for them, whatever becomes of some.
    pub(crate) async fn write_out_range(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        pages: &Logical,
    ) -> Result<()> {
        // Pages that were under way at first and had been written to again have the second turn.
        let mut result = Ok(());
        for _ in 0..2 {
            result = result.and(self.send_dirty(inode, pages.clone(), u64::MAX, true).await);
            inode.pages.written(pages.clone()).await;
        }
        result
    }

    /// Makes a file durable; `data_only` leaves out attributes that reading does not need.
    pub(crate) async fn sync_file(
        self: &Rc<Self>,
        inode: &Rc<Inode>,
        data_only: bool,
    ) -> Result<()> {
        let began = self.rt.now();
        self.write_out(inode).await?;
        let written = self.rt.now();
        let flushed = self.commit_changes(inode, data_only).await?;
        let committed = self.rt.now();
        if !flushed {
            self.flush_file(inode).await?;
        }
        let mut times = self.fsync_times.get();
        times.data_ns += (written - began).0;
        times.commit_ns += (committed - written).0;
        times.flush_ns += (self.rt.now() - committed).0;
        self.fsync_times.set(times);
        Ok(())
    }

    /// Commits what a file's metadata needs, if anything. Whether the device was flushed with it.
    async fn commit_changes(self: &Rc<Self>, inode: &Rc<Inode>, data_only: bool) -> Result<bool> {
        let tid = if data_only { inode.datasync_tid.get() } else { inode.sync_tid.get() };
        let Some(tid) = tid.filter(|tid| !self.is_committed(*tid)) else { return Ok(false) };
        match self.commit_file(inode).await? {
            Recorded::Now => return Ok(true),
            Recorded::Before => return Ok(false),
            Recorded::Not => {}
        }
        let barrier = self.journal.will_send_barrier(tid);
        self.journal.commit(tid).await?;
        Ok(barrier)
    }

    /// Makes the data of one file durable. What leads to it is already.
    async fn flush_file(&self, inode: &Inode) -> Result<()> {
        let owner = Some(inode.pages.owner());
        self.device.submit(Bio { owner, scope: FlushScope::Owner, ..Bio::flush() }).await?;
        Ok(())
    }

    /// Makes everything durable, what others have sent already included.
    ///
    /// # Errors
    /// The first; of all else, what can be made durable is.
    pub(crate) async fn sync_all(self: &Rc<Self>) -> Result<()> {
        let known =
            |pages: &Mapping| self.inodes.borrow().get(&(pages.owner().file as u32)).map(Rc::clone);
        let dirty: Vec<_> = self.cache.dirty_files().iter().filter_map(known).collect();
        let mut result = Ok(());
        for inode in dirty {
            result = result.and(self.write_out(&inode).await);
        }
        let busy = |inode: &&Rc<Inode>| inode.pages.is_busy();
        let busy: Vec<_> = self.inodes.borrow().values().filter(busy).map(Rc::clone).collect();
        for inode in busy {
            result = result.and(self.write_out(&inode).await);
        }
        self.journal.commit_all().await?;
        self.device.flush().await?;
        result
    }
}

/// What the journal asks of a volume. It does not keep it alive.
pub(crate) struct VolumeHook(pub(crate) Weak<Volume>);

impl CommitHook for VolumeHook {
    fn complete(&self) -> std::result::Result<(), JournalError> {
        let gone = || JournalError::Aborted("the file system is gone".to_owned());
        self.0.upgrade().ok_or_else(gone)?.write_late();
        Ok(())
    }

    fn committed(&self, tid: Tid) {
        if let Some(volume) = self.0.upgrade() {
            volume.forget_changes(tid);
        }
    }

    async fn write_out(&self, tid: Tid) -> Result<(), BlockError> {
        let Some(volume) = self.0.upgrade() else { return Ok(()) };
        let files = volume.ordered.borrow_mut().remove(&tid.0).unwrap_or_default();
        for inode in files.into_values() {
            inode.in_flight.settle().await;
        }
        Ok(())
    }
}
