//! Orphans: inodes that a power cut could leave half freed or half truncated. They stand in a list on
//! disk, headed by the superblock and linked through `dtime`, from the transaction on that takes
//! their last name or begins to cut them, and mount finishes what it finds there.
//!
//! The list is changed inside a transaction, under its own lock, which nobody holds while he waits for
//! a transaction.

use super::inode::Inode;
use super::tx::Tx;
use super::volume::Volume;
use crate::contract::{FsError, Result};
use std::rc::Rc;

impl Volume {
    /// Puts an inode at the head of the list; the caller writes the inode.
    pub(crate) async fn add_orphan(&self, tx: &Tx, inode: &Rc<Inode>) -> Result<()> {
        let mut orphans = self.orphans.lock().await;
        if orphans.iter().any(|other| other.number == inode.number) {
            return Ok(());
        }
        inode.raw.borrow_mut().dtime = orphans.last().map_or(0, |head| head.number);
        self.sb.borrow_mut().last_orphan = inode.number;
        orphans.push(Rc::clone(inode));
        self.write_superblock(tx).await
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
                self.sb.borrow_mut().last_orphan = next;
                self.write_superblock(tx).await
            }
            Some(before) => {
                before.raw.borrow_mut().dtime = next;
                self.write_inode(tx, &before, false).await
            }
        }
    }

    /// Finishes what the list says was begun: frees files without a name, cuts the others to their
    /// length. Returns how many there were.
    pub(crate) async fn finish_orphans(&self) -> Result<u32> {
        let mut found = Vec::new();
        let mut next = self.sb.borrow().last_orphan;
        while next != 0 {
            let endless = found.len() as u32 > self.sb.borrow().inodes_count;
            if endless || !self.is_ordinary(next) {
                return Err(FsError::corrupt("list of orphans", "superblock"));
            }
            let inode = self.orphan(next).await?;
            next = inode.raw.borrow().dtime;
            found.push(inode);
        }
        let count = found.len() as u32;
        self.orphans.lock().await.extend(found.iter().rev().map(Rc::clone));
        for inode in found {
            if inode.links() == 0 {
                self.delete(&inode).await?;
            } else {
                self.cut_blocks(&inode).await?;
            }
        }
        Ok(count)
    }
}
