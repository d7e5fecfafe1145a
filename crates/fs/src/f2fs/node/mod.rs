//! Nodes: inodes, and the direct and indirect nodes that lead to a file's blocks. After fs/f2fs/node.c.
//!
//! A node is known by its number (nid); the NAT says where it is ([`Nat`](super::nat::Nat)). Node pages are the pages of one inode, page
//! n being node n, so they share the memory of the page cache. A node page that changed is written to a fresh place,
//! which only the NAT learns of.
//!
//! What changes a node page takes an [`Op`]; reading and changing go by closures between waiting points, since a clean
//! page may leave memory at each of these.

mod dnode;
mod reserve;
mod truncate;
mod write;

pub(crate) use dnode::{Dnode, Found, Walked, Walks};
pub(crate) use write::{FsyncMarks, NodeSet, NodeWrite};

use super::error::corrupt;
use super::format::{
    BLOCK_BYTES, BlockAddr, NAT_ENTRIES_PER_BLOCK, NODE_FOOTER_AT, NatEntry, Nid, NodeFooter,
    SegmentType, node_flag,
};
use super::inode::{Dirty, Inode, ROOT_INO};
use super::nat::{BlockFill, Nodes, SEARCH_BLOCKS};
use super::operations::Op;
use super::segment::Block;
use super::segment_manager::SegmentManager;
use crate::contract::{FsError, Result};
use nandscape_block::SectorData;
use nandscape_rt::combine::join_all;
use nandscape_rt::invariant;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Nodes {
    /// What the NAT says of a node (`f2fs_get_node_info`).
    ///
    /// # Errors
    /// [`FsError::Corrupt`] for a number beyond the NAT; errors of the device.
    pub(crate) async fn node_entry(&self, nid: Nid) -> Result<NatEntry> {
        if nid.0 >= self.space.max_nid() {
            return Err(corrupt("node number beyond the NAT", nid.0));
        }
        let (_, index) = self.mount.layout.nat_place(nid);
        loop {
            if let Some(known) = self.nat.borrow().known(nid) {
                return Ok(known);
            }
            let at = self.nat.borrow().block_of(nid);
            let entry = self.meta.read(at, |block| NatEntry::read_at(block, index)).await?;
            // Readers and cleaning run beside checkpoints: another copy may be current by now.
            if self.nat.borrow().block_of(nid) == at {
                self.nat.borrow_mut().note_read(nid, entry);
            }
        }
    }

    /// Looks at a node.
    ///
    /// # Errors
    /// [`FsError::Corrupt`] if there is no such node, or another one lies in its place; errors of the device.
    pub(crate) async fn read_node<R>(&self, nid: Nid, look: impl FnOnce(&Block) -> R) -> Result<R> {
        let mut look = Some(look);
        let pages = &self.file.pages;
        let mut seen =
            pages.with_bytes(nid.0.into(), |bytes| look.take().map(|look| look(bytes))).flatten();
        if seen.is_none() {
            self.load_node(nid).await?;
            seen = pages
                .with_bytes(nid.0.into(), |bytes| look.take().map(|look| look(bytes)))
                .flatten();
        }
        seen.ok_or_else(|| corrupt("node", nid.0))
    }

    /// Brings nodes into memory that are not there, together; how many these were. A node that is gone or cannot be read is
    /// seen when it is looked at.
    pub(crate) async fn read_nodes(&self, nids: BTreeSet<Nid>) -> u64 {
        let absent = |nid: &Nid| self.file.pages.peek(nid.0.into()).is_none();
        let absent: Vec<_> = nids.into_iter().filter(absent).collect();
        let reads = absent.iter().map(|nid| async {
            let _ = self.read_node(*nid, |_| ()).await;
        });
        join_all(reads.collect::<Vec<_>>()).await;
        absent.len() as u64
    }

    /// Changes a node, which is written to a fresh place later.
    ///
    /// # Errors
    /// As [`Nodes::read_node`].
    pub(crate) async fn edit_node<R>(
        &self,
        _op: &Op,
        nid: Nid,
        edit: impl FnOnce(&mut Block) -> R,
    ) -> Result<R> {
        self.read_node(nid, |_| ()).await?;
        self.edit_loaded(nid, edit).ok_or_else(|| corrupt("node", nid.0))
    }

    /// Changes a node that is in memory.
    pub(super) fn edit_loaded<R>(&self, nid: Nid, edit: impl FnOnce(&mut Block) -> R) -> Option<R> {
        let ino_and = |bytes: &mut Block| {
            let result = edit(bytes);
            (result, ino_of(bytes))
        };
        let ((result, ino), fresh) = self.file.pages.edit_bytes(nid.0.into(), ino_and)?;
        if fresh {
            self.dirty.borrow_mut().insert((ino, nid.0));
        }
        Some(result)
    }

    /// Brings a node page into memory and checks that it is the node of this number.
    async fn load_node(&self, nid: Nid) -> Result<()> {
        let page = u64::from(nid.0);
        self.read_pages(&self.file.pages, page..page + 1).await?;
        let found = self.file.pages.with_bytes(page, NodeFooter::parse);
        match found {
            Some(footer) if footer.nid == nid.0 => Ok(()),
            _ => {
                self.file.pages.invalidate(page..page + 1);
                if self.node_entry(nid).await?.block_addr == BlockAddr::NULL {
                    // It was removed while it was read.
                    return Err(FsError::NoEntry);
                }
                Err(corrupt("node: another one lies in its place", nid.0))
            }
        }
    }

    /// Reserves a free number (`f2fs_alloc_nid`).
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if all are in use; errors of the device.
    pub(crate) async fn take_nid(&self) -> Result<Nid> {
        loop {
            let taken = self.free.borrow_mut().take();
            if let Some(nid) = taken {
                invariant!(
                    !self.nat.borrow().is_changed(nid) || !self.mount.keeps_rules(),
                    "number {nid} is free only when the last checkpoint has no node of it"
                );
                return Ok(Nid(nid));
            }
            if self.space.valid_nodes() >= self.space.max_nid() {
                return Err(FsError::NoSpace);
            }
            let _alone = self.search.lock().await;
            if self.free.borrow().peek().is_none() {
                self.find_free_nids().await?;
            }
        }
    }

    /// A number that was reserved and not used.
    pub(crate) fn return_nid(&self, nid: Nid) {
        self.free.borrow_mut().put(nid.0);
    }

    /// Looks through blocks of the NAT until it finds free numbers, or has seen them all.
    async fn find_free_nids(&self) -> Result<()> {
        let rounds = self.free.borrow().blocks().div_ceil(SEARCH_BLOCKS);
        for _ in 0..rounds {
            let blocks = self.free.borrow_mut().next_search();
            for block in blocks {
                self.find_free_nids_of(block).await?;
            }
            if self.free.borrow().peek().is_some() {
                return Ok(());
            }
        }
        Err(FsError::NoSpace)
    }

    async fn find_free_nids_of(&self, block: u32) -> Result<()> {
        let (at, fill) = {
            let nat = self.nat.borrow();
            (nat.current_block(block), nat.fill_of(block))
        };
        let entries: Vec<NatEntry> = match fill {
            BlockFill::Full => return Ok(()),
            BlockFill::Empty => vec![NatEntry::default(); NAT_ENTRIES_PER_BLOCK],
            BlockFill::Unknown => {
                let all = 0..NAT_ENTRIES_PER_BLOCK;
                let read = |bytes: &Block| all.map(|at| NatEntry::read_at(bytes, at)).collect();
                self.meta.read(at, read).await?
            }
        };
        let nat = self.nat.borrow();
        let mut free = self.free.borrow_mut();
        for (nid, entry) in (block * NAT_ENTRIES_PER_BLOCK as u32..).zip(entries) {
            let entry = nat.known(Nid(nid)).unwrap_or(entry);
            let is_usable =
                nid > ROOT_INO && nid < self.space.max_nid() && nat.is_checkpointed(Nid(nid));
            if is_usable && entry.block_addr == BlockAddr::NULL {
                free.put(nid);
            }
        }
        Ok(())
    }

    /// Makes an empty node page for a number that was reserved (`f2fs_new_node_page`). It counts as a block of the
    /// file, unless it is the inode itself.
    ///
    /// # Errors
    /// [`FsError::NoSpace`]; the number is free again then.
    pub(crate) async fn new_node(
        &self,
        _op: &Op,
        inode: &Inode,
        nid: Nid,
        node_offset: u32,
    ) -> Result<()> {
        let known = self.node_entry(nid).await?;
        let is_inode = nid.0 == inode.number;
        if let Err(error) = self.space.take_node(is_inode) {
            self.return_nid(nid);
            return Err(error);
        }
        let mut bytes = [0; BLOCK_BYTES];
        let mut footer = NodeFooter { nid: nid.0, ino: inode.number, ..NodeFooter::default() };
        footer.set_offset(node_offset);
        footer.set(node_flag::COLD, !inode.is_dir());
        footer.encode(&mut bytes);
        self.file.pages.write(nid.0.into(), SectorData::Bytes(Arc::new(bytes)), false);
        self.dirty.borrow_mut().insert((inode.number, nid.0));
        self.nat.borrow_mut().set(nid, known, BlockAddr::NEW, Nid(inode.number), false);
        if !is_inode {
            inode.add_blocks(1);
            inode.mark(Dirty::Content);
        }
        Ok(())
    }

    /// Removes a node: its page, its block, its number (`truncate_node`). Its number is free after the next checkpoint
    /// has it, as far as other nodes are concerned at once.
    ///
    /// # Errors
    /// [`FsError::Corrupt`] if the NAT knows no such node.
    pub(crate) async fn remove_node(
        &self,
        _op: &Op,
        segments: &SegmentManager,
        inode: &Inode,
        nid: Nid,
    ) -> Result<()> {
        let known = self.node_entry(nid).await?;
        if known.block_addr == BlockAddr::NULL {
            return Err(corrupt("node that the NAT does not know", nid.0));
        }
        let page = u64::from(nid.0);
        self.file.pages.written(page..page + 1).await;
        let known = self.node_entry(nid).await?;
        if known.block_addr.is_block() {
            segments.borrow_mut().invalidate(known.block_addr)?;
        }
        let is_inode = nid.0 == inode.number;
        self.space.release_node(is_inode);
        self.nat.borrow_mut().set(nid, known, BlockAddr::NULL, Nid(inode.number), false);
        self.file.pages.discard(page..page + 1);
        self.dirty.borrow_mut().remove(&(inode.number, nid.0));
        self.removed.borrow_mut().push(nid.0);
        self.copies.borrow_mut().remove(nid.0);
        if !is_inode {
            inode.add_blocks(-1);
            inode.mark(Dirty::Content);
        }
        Ok(())
    }

    /// The log that a node page in memory belongs to.
    fn log_of_node(&self, nid: u32) -> SegmentType {
        let log = self.file.pages.with_bytes(nid.into(), |bytes| self.mount.node_log(bytes));
        log.unwrap_or(SegmentType::ColdNode)
    }

    /// Waits until node pages are on the device.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`] if the device refused one.
    pub(crate) async fn nodes_written(&self, nodes: &[u32]) -> Result<()> {
        for &nid in nodes {
            self.file.pages.written(nid.into()..u64::from(nid) + 1).await;
        }
        self.mount.check_running()
    }
}

/// The inode that a node belongs to.
fn ino_of(bytes: &Block) -> u32 {
    const AT: usize = NODE_FOOTER_AT + 4;
    u32::from_le_bytes([bytes[AT], bytes[AT + 1], bytes[AT + 2], bytes[AT + 3]])
}
