//! Orphans: inodes that a power cut could leave half freed or half truncated. They stand in a list on
//! disk, headed by the superblock and linked through `dtime`, from the transaction on that takes
//! their last name or begins to cut them, and mount finishes what it finds there (`recovery.rs`).
//!
//! The list is changed inside a transaction, under its own lock, which no task holds while it waits for
//! a transaction.
//!
//! Invariant: the list in memory is the one that the transaction has: each orphan leads to the one below it, and the
//! superblock to the last.

use super::inode::Inode;
use super::meta::Meta;
use super::tx::Tx;
use crate::contract::Result;
use nandscape_rt::sync::Mutex;
use nandscape_rt::{Handle, invariant};
use std::rc::Rc;

/// The list of orphans in memory.
pub(crate) struct Orphans {
    /// As the list on disk has them, its head last.
    pub(super) list: Mutex<Vec<Rc<Inode>>>,
}

impl Orphans {
    pub(crate) fn new(rt: &Handle) -> Self {
        Self { list: Mutex::new(rt, "orphans", Vec::new()) }
    }

    /// Puts an inode at the head of the list; the caller writes the inode.
    pub(crate) async fn add(&self, meta: &Meta, tx: &Tx, inode: &Rc<Inode>) -> Result<()> {
        let mut orphans = self.list.lock().await;
        if orphans.iter().any(|other| other.number == inode.number) {
            return Ok(());
        }
        inode.raw.borrow_mut().dtime = orphans.last().map_or(0, |head| head.number);
        meta.sb.borrow_mut().last_orphan = inode.number;
        orphans.push(Rc::clone(inode));
        check_links(meta, &orphans, orphans.len() - 1);
        meta.write_superblock(tx).await
    }

    /// Takes an inode out of the list, unless it has lost its last name and is not freed yet; the caller
    /// writes the inode.
    pub(crate) async fn remove(&self, meta: &Meta, tx: &Tx, inode: &Inode) -> Result<()> {
        let mut orphans = self.list.lock().await;
        if inode.links() == 0 && !inode.deleted.get() {
            return Ok(());
        }
        let at = orphans.iter().position(|other| other.number == inode.number);
        let Some(at) = at else { return Ok(()) };
        orphans.remove(at);
        let next = std::mem::take(&mut inode.raw.borrow_mut().dtime);
        match orphans.get(at).map(Rc::clone) {
            None => {
                meta.sb.borrow_mut().last_orphan = next;
                check_links(meta, &orphans, at);
                meta.write_superblock(tx).await
            }
            Some(before) => {
                before.raw.borrow_mut().dtime = next;
                check_links(meta, &orphans, at);
                meta.write_inode(tx, &before, false).await
            }
        }
    }

    /// Whether an inode is in the list; nothing if the list is being changed.
    pub(crate) fn holds(&self, number: u32) -> Option<bool> {
        let orphans = self.list.try_lock()?;
        Some(orphans.iter().any(|other| other.number == number))
    }

    /// The next inode in the list after one, if that is in it; 0 is the end.
    pub(crate) async fn after(&self, number: u32) -> Option<u32> {
        let orphans = self.list.lock().await;
        let inode = orphans.iter().find(|inode| inode.number == number)?;
        Some(inode.raw.borrow().dtime)
    }
}

/// The orphan at a place of the list, or the superblock behind its end, leads to the one below it.
fn check_links(meta: &Meta, orphans: &[Rc<Inode>], at: usize) {
    let below = at.checked_sub(1).map_or(0, |below| orphans[below].number);
    let leads_to = orphans.get(at).map(|orphan| orphan.raw.borrow().dtime);
    invariant!(
        leads_to.unwrap_or_else(|| meta.sb.borrow().last_orphan) == below,
        "an orphan leads to the one below it, {below}"
    );
    invariant!(
        at + 1 != orphans.len() || meta.sb.borrow().last_orphan == orphans[at].number,
        "the superblock leads to the last orphan"
    );
}
