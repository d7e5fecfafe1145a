//! The name of a file that roll-forward brings back (`recover_dentry` in fs/f2fs/recovery.c).

use super::RollForward;
use crate::contract::{FsError, Result};
use crate::f2fs::error::corrupt;
use crate::f2fs::inode::Inode;
use crate::f2fs::operations::Op;

/// A name that roll-forward is to bring back.
pub(super) struct LostName {
    ino: u32,
    mode: u16,
    /// The directory that it stood in.
    parent: u32,
    name: Vec<u8>,
}

impl LostName {
    /// The name that an inode of the chain keeps.
    pub(super) fn of(inode: &Inode) -> Self {
        let raw = inode.raw.borrow();
        let name = raw.name().to_vec();
        Self { ino: inode.number, mode: raw.mode, parent: raw.pino, name }
    }
}

impl RollForward<'_> {
    /// A directory leads to an inode by its name again. What had that name loses it.
    ///
    /// # Errors
    /// [`FsError::Corrupt`] if there is no such directory; [`FsError::NoSpace`].
    pub(super) async fn recover_dentry(&self, op: &Op, lost: &LostName) -> Result<()> {
        let LostName { ino, mode, parent, ref name } = *lost;
        let wrong = || corrupt("roll-forward: no place for the name of a file", ino);
        if name.is_empty() || !self.volume.nodes.is_ordinary(parent) || parent == ino {
            return Err(wrong());
        }
        let dir = match self.volume.inode(parent).await {
            Err(FsError::NoEntry) => return Err(wrong()),
            found => found?,
        };
        if !dir.is_dir() {
            return Err(wrong());
        }
        if let Some(found) = self.volume.nodes.find(&dir, name).await? {
            if found.ino == ino {
                return Ok(());
            }
            let other = self.volume.inode(found.ino).await?;
            self.volume.checkpoints.note_orphan(&other)?;
            self.volume.checkpoints.note_changed_dir(&dir);
            self.volume.nodes.remove_name(op, &self.volume.segments, &dir, found).await?;
            other.lose_link(&dir, name, self.volume.mount.env.now());
        }
        let vacancy = self.volume.nodes.make_room(op, &self.volume.segments, &dir, name).await?;
        self.volume.nodes.add_name(op, &dir, vacancy, name, (ino, mode)).await
    }
}
