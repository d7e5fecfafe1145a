//! The name of a file that roll-forward brings back (`recover_dentry` in fs/f2fs/recovery.c).

use crate::contract::{FsError, Result};
use crate::f2fs::error::corrupt;
use crate::f2fs::inode::Inode;
use crate::f2fs::operations::Op;
use crate::f2fs::recovery::RollForward;
use std::rc::Rc;

impl RollForward<'_> {
    /// The directory that an inode names leads to it by the name that it keeps. What had that name loses it.
    ///
    /// # Errors
    /// [`FsError::Corrupt`] if there is no such directory; [`FsError::NoSpace`].
    pub(crate) async fn recover_dentry(&self, op: &Op, inode: &Rc<Inode>) -> Result<()> {
        let (parent, name, mode) = {
            let raw = inode.raw.borrow();
            (raw.pino, raw.name().to_vec(), raw.mode)
        };
        let wrong = || corrupt("roll-forward: no place for the name of a file", inode.number);
        if name.is_empty() || !self.volume.nodes.is_ordinary(parent) || parent == inode.number {
            return Err(wrong());
        }
        let dir = match self.volume.inode(parent).await {
            Err(FsError::NoEntry) => return Err(wrong()),
            found => found?,
        };
        if !dir.is_dir() {
            return Err(wrong());
        }
        if let Some(found) = self.volume.nodes.find(&dir, &name).await? {
            if found.ino == inode.number {
                return Ok(());
            }
            let other = self.volume.inode(found.ino).await?;
            self.volume.checkpoints.note_orphan(&other)?;
            self.volume.checkpoints.note_changed_dir(&dir);
            self.volume.nodes.remove_name(op, &self.volume.segments, &dir, found).await?;
            other.lose_link(&dir, &name, self.volume.mount.env.now());
        }
        let vacancy = self.volume.nodes.make_room(op, &self.volume.segments, &dir, &name).await?;
        self.volume.nodes.add_name(op, &dir, vacancy, &name, (inode.number, mode)).await
    }
}
