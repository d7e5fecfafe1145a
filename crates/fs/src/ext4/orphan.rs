//! Orphans: inodes that a power cut could leave half freed or half truncated. They stand in a list on
//! disk, headed by the superblock and linked through `dtime`, from the transaction on that takes
//! their last name or begins to cut them, and mount finishes what it finds there.
//!
//! The list is changed inside a transaction, under its own lock, which nobody holds while he waits for
//! a transaction.

use super::format::STATE_ERRORS;
use super::inode::Inode;
use super::rules::OmittedRule;
use super::tx::Tx;
use super::volume::Volume;
use crate::contract::{FsError, Kind, Result};
use crate::vfs::content;
use std::rc::Rc;

impl Volume {
    /// Puts an inode at the head of the list; the caller writes the inode.
    pub(crate) async fn add_orphan(&self, tx: &Tx, inode: &Rc<Inode>) -> Result<()> {
        let mut orphans = self.orphans.lock().await;
        if orphans.iter().any(|other| other.number == inode.number) {
            return Ok(());
        }
        inode.raw.borrow_mut().dtime = orphans.last().map_or(0, |head| head.number);
        self.meta.sb.borrow_mut().last_orphan = inode.number;
        orphans.push(Rc::clone(inode));
        self.meta.write_superblock(tx).await
    }

    /// Takes an inode out of the list, unless it has lost its last name and is not freed yet; the caller
    /// writes the inode.
    pub(crate) async fn remove_orphan(&self, tx: &Tx, inode: &Inode) -> Result<()> {
        let mut orphans = self.orphans.lock().await;
        if inode.links() == 0 && !inode.deleted.get() {
            return Ok(());
        }
        let at = orphans.iter().position(|other| other.number == inode.number);
        let Some(at) = at else { return Ok(()) };
        orphans.remove(at);
        let next = std::mem::take(&mut inode.raw.borrow_mut().dtime);
        match orphans.get(at).map(Rc::clone) {
            None => {
                self.meta.sb.borrow_mut().last_orphan = next;
                self.meta.write_superblock(tx).await
            }
            Some(before) => {
                before.raw.borrow_mut().dtime = next;
                self.meta.write_inode(tx, &before, false).await
            }
        }
    }

    /// Reads the list at mount.
    ///
    /// On a volume with errors it may say anything: as in Linux it is dropped, and its inodes are e2fsck's to
    /// find.
    pub(crate) async fn load_orphans(&self) -> Result<()> {
        if self.meta.sb.borrow().state & STATE_ERRORS != 0 {
            return self.drop_orphans().await;
        }
        let mut found = Vec::new();
        let mut next = self.meta.sb.borrow().last_orphan;
        while next != 0 {
            let endless = found.len() as u32 > self.meta.sb.borrow().inodes_count;
            if endless || !self.meta.is_ordinary(next) {
                return Err(FsError::corrupt("list of orphans", "superblock"));
            }
            let inode = self.orphan(next).await.map_err(|error| match error {
                FsError::NoEntry => FsError::corrupt("list of orphans", format!("inode {next}")),
                other => other,
            })?;
            next = inode.raw.borrow().dtime;
            found.push(inode);
        }
        self.orphans.lock().await.extend(found.into_iter().rev());
        Ok(())
    }

    async fn drop_orphans(&self) -> Result<()> {
        if self.meta.sb.borrow().last_orphan == 0 {
            return Ok(());
        }
        let tx = self.meta.begin(1, 0).await?;
        self.meta.sb.borrow_mut().last_orphan = 0;
        self.meta.write_superblock(&tx).await?;
        tx.stop();
        Ok(())
    }

    /// Finishes what the list says was begun: frees files without a name, cuts the others to their
    /// length. Returns how many there were. Those that are not `wanted` wait.
    pub(crate) async fn finish_orphans(
        self: &Rc<Self>,
        wanted: impl Fn(&Inode) -> bool,
    ) -> Result<u32> {
        let mut found: Vec<_> = self.orphans.lock().await.iter().rev().map(Rc::clone).collect();
        found.retain(|inode| wanted(inode));
        let count = found.len() as u32;
        for inode in found {
            let unlinked = inode.links() == 0;
            let rule =
                if unlinked { OmittedRule::OrphanUnlink } else { OmittedRule::OrphanTruncate };
            if self.omits(rule) {
                self.leave_orphan(&inode).await?;
            } else if unlinked {
                self.delete(&inode).await?;
            } else {
                self.zero_orphan_tail(&inode).await?;
                self.cut_blocks(&inode).await?;
            }
        }
        Ok(count)
    }

    /// Reads the inodes of the list again, after file-level records were applied to some.
    pub(crate) async fn reload_orphans(&self) -> Result<()> {
        let mut orphans = self.orphans.lock().await;
        for inode in &mut *orphans {
            *inode = self.orphan(inode.number).await?;
        }
        Ok(())
    }

    /// The next inode in the list after one, if that is in it; 0 is the end.
    pub(crate) async fn orphan_after(&self, number: u32) -> Option<u32> {
        let orphans = self.orphans.lock().await;
        let inode = orphans.iter().find(|inode| inode.number == number)?;
        Some(inode.raw.borrow().dtime)
    }

    /// Without [`OmittedRule::OrphanUnlink`] or [`OmittedRule::OrphanTruncate`]: an orphan stays as it is, and leaves
    /// the list.
    async fn leave_orphan(&self, inode: &Inode) -> Result<()> {
        let tx = self.meta.begin(8, 0).await?;
        inode.deleted.set(inode.links() == 0);
        self.remove_orphan(&tx, inode).await?;
        self.meta.write_inode(&tx, inode, false).await?;
        tx.stop();
        Ok(())
    }

    /// Linux makes zeroes of what lies behind the new end in a transaction that may have come too late. What
    /// cannot be read shows nothing to anybody.
    async fn zero_orphan_tail(self: &Rc<Self>, inode: &Rc<Inode>) -> Result<()> {
        if inode.kind() != Kind::File {
            return Ok(());
        }
        match content::zero_tail(self, inode, inode.size.get()).await {
            Err(FsError::Io(_)) => Ok(()),
            done => done,
        }
    }
}
