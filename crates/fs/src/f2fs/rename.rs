//! Renames: one operation, so that a checkpoint has the old name or the new one (`f2fs_rename2`).

use super::error::corrupt;
use super::inode::{Dirty, Inode, ROOT_INO};
use super::namei::check_name;
use super::operations::Op;
use super::volume::Volume;
use crate::contract::{FsError, Ino, NAME_MAX, RenameMode, Result};
use nandscape_rt::sync::WriteGuard;
use std::collections::BTreeSet;
use std::rc::Rc;

/// One end of a rename: a name in a directory.
struct End<'a> {
    dir: Rc<Inode>,
    name: &'a [u8],
}

impl Volume {
    /// Moves a name.
    pub(crate) async fn move_name(
        &self,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<()> {
        self.balance_fs().await?;
        let namespace = self.inodes.namespace.write().await;
        let from = End { dir: self.dir_of(from.0).await?, name: from.1 };
        let to = End { dir: self.dir_of(to.0).await?, name: to.1 };
        for name in [from.name, to.name] {
            if name.len() > NAME_MAX {
                return Err(FsError::NameTooLong);
            }
            check_name(name)?;
        }
        let dirs = self.lock_both(&from.dir, &to.dir).await;
        to.dir.check_alive()?;
        let (_, moved) = self.named(&from.dir, from.name).await?.ok_or(FsError::NoEntry)?;
        self.nodes.check_back(&from.dir, &moved).await?;
        let victim = self.named(&to.dir, to.name).await?.map(|(_, inode)| inode);
        if let Some(victim) = &victim {
            self.nodes.check_back(&to.dir, victim).await?;
        }
        if mode == RenameMode::NoReplace && victim.is_some() {
            return Err(FsError::Exists);
        }
        self.check_loop(&moved, &to.dir).await?;
        if victim.as_ref().is_some_and(|victim| victim.number == moved.number) {
            return Ok(());
        }
        moved.check_removable(&from.dir)?;
        match &victim {
            Some(victim) => victim.check_removable(&to.dir)?,
            None => to.dir.check_addable()?,
        }
        if mode == RenameMode::Exchange {
            let other = victim.ok_or(FsError::NoEntry)?;
            self.check_loop(&other, &from.dir).await?;
            return self.exchange(&from, &to, &moved, &other).await;
        }
        self.check_victim(&from.dir, &moved, victim.as_deref()).await?;
        if moved.is_dir() && victim.is_none() && from.dir.number != to.dir.number {
            to.dir.may_add_subdir()?;
        }
        self.replace(&from, &to, &moved, victim.as_ref()).await?;
        drop((dirs, namespace));
        match victim {
            Some(victim) => self.delete_if_unused(&victim).await,
            None => Ok(()),
        }
    }

    async fn lock_both(&self, a: &Inode, b: &Inode) -> (WriteGuard<()>, Option<WriteGuard<()>>) {
        let first = a.i_rwsem.write().await;
        let second = if a.number == b.number { None } else { Some(b.i_rwsem.write().await) };
        (first, second)
    }

    /// A directory cannot move into itself or below.
    async fn check_loop(&self, moved: &Inode, to: &Inode) -> Result<()> {
        if self.is_above(moved, to).await? {
            return Err(FsError::Invalid("a directory cannot move below itself"));
        }
        Ok(())
    }

    /// Whether something is this directory or above it.
    async fn is_above(&self, inode: &Inode, dir: &Inode) -> Result<bool> {
        let mut above = dir.number;
        let mut seen = BTreeSet::new();
        while inode.is_dir() && above != ROOT_INO {
            if above == inode.number {
                return Ok(true);
            }
            if !seen.insert(above) {
                return Err(corrupt("directory: .. never reaches the root", above));
            }
            above = self.nodes.parent_of(&*self.inode(above).await?).await?;
        }
        Ok(false)
    }

    /// Locks what a name leads to; the caller holds the lock of the name's directory.
    ///
    /// # Errors
    /// [`FsError::Corrupt`] where directories name each other, so that the holder of the lock may wait for the caller's.
    pub(super) async fn lock_below(&self, dir: &Inode, inode: &Inode) -> Result<WriteGuard<()>> {
        if let Some(free) = inode.i_rwsem.try_write() {
            return Ok(free);
        }
        if self.is_above(inode, dir).await? {
            return Err(corrupt("directory: .. never reaches the root", dir.number));
        }
        Ok(inode.i_rwsem.write().await)
    }

    /// Whether what has the new name may lose it.
    async fn check_victim(
        &self,
        from: &Inode,
        moved: &Inode,
        victim: Option<&Inode>,
    ) -> Result<()> {
        let Some(victim) = victim else { return Ok(()) };
        match (moved.is_dir(), victim.is_dir()) {
            (true, false) => Err(FsError::NotDirectory),
            (false, true) if self.is_above(victim, from).await? => Err(FsError::NotEmpty),
            (false, true) => Err(FsError::IsDirectory),
            (true, true) if !self.nodes.is_empty_dir(victim).await? => Err(FsError::NotEmpty),
            _ => Ok(()),
        }
    }

    async fn replace(
        &self,
        from: &End<'_>,
        to: &End<'_>,
        moved: &Rc<Inode>,
        victim: Option<&Rc<Inode>>,
    ) -> Result<()> {
        let _cut = from.dir.invalidate_lock.write().await;
        let op = self.operations.begin().await?;
        let target = (moved.number, moved.raw.borrow().mode);
        match victim {
            Some(victim) => {
                self.checkpoints.note_orphan(victim)?;
                let named = self.link_to(&op, to, target).await;
                named.map_err(|error| self.writes.stop(error))?;
                victim.lose_link(&to.dir, to.name, self.mount.env.now());
            }
            None => {
                let vacancy = self.nodes.make_room(&op, &self.segments, &to.dir, to.name).await?;
                let named = self.nodes.add_name(&op, &to.dir, vacancy, to.name, target).await;
                named.map_err(|error| self.writes.stop(error))?;
            }
        }
        self.finish_rename(&op, from, to, moved).await.map_err(|error| self.writes.stop(error))
    }

    /// A name that there is leads to another inode.
    async fn link_to(&self, op: &Op, end: &End<'_>, target: (u32, u16)) -> Result<()> {
        let gone = || corrupt("directory: a name is gone", end.dir.number);
        let found = self.nodes.find(&end.dir, end.name).await?.ok_or_else(gone)?;
        self.nodes.set_link(op, &end.dir, found, target).await
    }

    /// What has its new name loses the old one.
    async fn finish_rename(
        &self,
        op: &Op,
        from: &End<'_>,
        to: &End<'_>,
        moved: &Rc<Inode>,
    ) -> Result<()> {
        let gone = || corrupt("directory: a name is gone", from.dir.number);
        let old = self.nodes.find(&from.dir, from.name).await?.ok_or_else(gone)?;
        self.checkpoints.note_changed_dir(&from.dir);
        self.nodes.remove_name(op, &self.segments, &from.dir, old).await?;
        self.change_parent(op, moved, from, to).await?;
        self.checkpoints.note_changed_dir(&to.dir);
        if moved.is_dir() {
            self.checkpoints.note_changed_dir(moved);
        }
        Ok(())
    }

    /// Two names change places (`f2fs_cross_rename`): like the kernel, it notes the directories of the names, and not
    /// directories that it moves.
    async fn exchange(
        &self,
        from: &End<'_>,
        to: &End<'_>,
        moved: &Rc<Inode>,
        other: &Rc<Inode>,
    ) -> Result<()> {
        let op = self.operations.begin().await?;
        let exchange = async || {
            let target = |inode: &Inode| (inode.number, inode.raw.borrow().mode);
            self.link_to(&op, to, target(moved)).await?;
            self.link_to(&op, from, target(other)).await?;
            self.change_parent(&op, moved, from, to).await?;
            self.change_parent(&op, other, to, from).await
        };
        exchange().await.map_err(|error| self.writes.stop(error))?;
        self.checkpoints.note_changed_dir(&from.dir);
        self.checkpoints.note_changed_dir(&to.dir);
        Ok(())
    }

    /// What moved knows its new name; a directory that has another parent leads back to it.
    async fn change_parent(
        &self,
        op: &Op,
        moved: &Inode,
        from: &End<'_>,
        to: &End<'_>,
    ) -> Result<()> {
        moved.set_name(to.dir.number, to.name);
        moved.lose_pino();
        moved.touch(self.mount.env.now(), false);
        moved.mark(Dirty::Content);
        if moved.is_dir() && from.dir.number != to.dir.number {
            self.nodes.set_parent(op, moved, &to.dir).await?;
            from.dir.count_subdir(-1);
            to.dir.count_subdir(1);
        }
        Ok(())
    }
}
