//! Renames: one transaction, so that after a power cut a file has its old name or its new one.

use super::error::corrupt;
use super::format::{Place, ROOT_INODE};
use super::inode::Inode;
use super::namei::{NAME_BLOCKS, NAME_CREDITS, check_name};
use super::rules::OmittedRule;
use super::tx::Tx;
use super::volume::Volume;
use crate::contract::{Caller, FsError, Ino, NAME_MAX, RenameMode, Result};
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
        caller: Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<()> {
        let namespace = self.namespace.write().await;
        let from = End { dir: self.dir_of(from.0).await?, name: from.1 };
        let to = End { dir: self.dir_of(to.0).await?, name: to.1 };
        for name in [from.name, to.name] {
            if name.len() > NAME_MAX {
                return Err(FsError::NameTooLong);
            }
            check_name(name)?;
        }
        let _dirs = self.lock_both(&from.dir, &to.dir).await;
        Self::check_alive(&to.dir)?;
        let (_, moved) = self.named(&from.dir, from.name).await?.ok_or(FsError::NoEntry)?;
        self.check_back(&from.dir, &moved).await?;
        let victim = self.named(&to.dir, to.name).await?.map(|(_, inode)| inode);
        if let Some(victim) = &victim {
            self.check_back(&to.dir, victim).await?;
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
            self.meta.may_add_subdir(&to.dir)?;
        }
        let _reservation = self.reserve(caller, NAME_BLOCKS)?;
        self.replace(&from, &to, &moved, victim.as_ref()).await?;
        drop((_dirs, namespace));
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
        while inode.is_dir() && above != ROOT_INODE {
            if above == inode.number {
                return Ok(true);
            }
            if !seen.insert(above) {
                return Err(corrupt("directory: .. never reaches the root", Place::Inode(above)));
            }
            above = self.meta.parent_of(&*self.inode(above).await?).await?;
        }
        Ok(false)
    }

    /// Locks what a name leads to; the caller holds the lock of the name's directory.
    ///
    /// # Errors
    /// [`FsError::Corrupt`] where directories name each other, so that the holder of the lock may wait for the
    /// caller's.
    pub(super) async fn lock_below(&self, dir: &Inode, inode: &Inode) -> Result<WriteGuard<()>> {
        if let Some(free) = inode.i_rwsem.try_write() {
            return Ok(free);
        }
        if self.is_above(inode, dir).await? {
            return Err(corrupt("directory: .. never reaches the root", Place::Inode(dir.number)));
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
            (true, true) if !self.meta.is_empty_dir(victim).await? => Err(FsError::NotEmpty),
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
        let tx = self.meta.begin(2 * NAME_CREDITS, 0).await?;
        let file_mode = moved.raw.borrow().mode;
        match victim {
            Some(victim) => {
                self.meta.retarget(&tx, &to.dir, to.name, moved.number, file_mode).await?;
                let orphan = !self.omits(OmittedRule::RenameOrphan);
                self.lose_link(&tx, &to.dir, victim, orphan).await?;
            }
            None => {
                let free_slot = self.meta.free_slot(&to.dir, to.name).await?;
                self.meta
                    .add_name(&tx, &to.dir, free_slot, to.name, moved.number, file_mode)
                    .await?;
            }
        }
        self.meta.remove_name(&tx, &from.dir, from.name).await?;
        self.change_parent(&tx, moved, &from.dir, &to.dir).await?;
        self.finish_rename(&tx, [moved, &from.dir, &to.dir]).await?;
        tx.stop();
        Ok(())
    }

    async fn exchange(
        &self,
        from: &End<'_>,
        to: &End<'_>,
        moved: &Rc<Inode>,
        other: &Rc<Inode>,
    ) -> Result<()> {
        let tx = self.meta.begin(NAME_CREDITS, 0).await?;
        let (moved_mode, other_mode) = (moved.raw.borrow().mode, other.raw.borrow().mode);
        self.meta.retarget(&tx, &to.dir, to.name, moved.number, moved_mode).await?;
        self.meta.retarget(&tx, &from.dir, from.name, other.number, other_mode).await?;
        self.change_parent(&tx, moved, &from.dir, &to.dir).await?;
        self.change_parent(&tx, other, &to.dir, &from.dir).await?;
        self.file_commit.exclude(&tx, other.number);
        other.touch(self.env.now(), false);
        self.meta.write_inode(&tx, other, true).await?;
        self.finish_rename(&tx, [moved, &from.dir, &to.dir]).await?;
        tx.stop();
        Ok(())
    }

    /// A directory that moved has another parent.
    async fn change_parent(&self, tx: &Tx, moved: &Inode, from: &Inode, to: &Inode) -> Result<()> {
        if !moved.is_dir() || from.number == to.number {
            return Ok(());
        }
        self.meta.set_parent(tx, moved, to.number).await?;
        from.remove_subdir();
        to.add_subdir();
        Ok(())
    }

    async fn finish_rename(&self, tx: &Tx, [moved, from, to]: [&Rc<Inode>; 3]) -> Result<()> {
        moved.touch(self.env.now(), false);
        from.touch(self.env.now(), true);
        to.touch(self.env.now(), true);
        if !self.omits(OmittedRule::RecordRename) {
            self.file_commit.exclude(tx, moved.number);
        }
        self.meta.write_synced(tx, moved, OmittedRule::RenameSync).await?;
        for dir in [from, to] {
            self.file_commit.exclude(tx, dir.number);
            self.meta.write_inode(tx, dir, true).await?;
        }
        Ok(())
    }
}
