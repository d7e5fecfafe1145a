//! Inodes between their node pages and memory (fs/f2fs/inode.c).

use super::cpu::Work;
use super::error::corrupt;
use super::format::{
    self, AddrSlots, BlockAddr, NatEntry, Nid, NodeFooter, SummaryEntry, first_page, inline, mode,
};
use super::inode::{self, Dirty, Inode, META_INO};
use super::nat::Nodes;
use super::node::Walked;
use super::operations::Op;
use super::segment::Block;
use super::volume::Volume;
use crate::contract::{Attr, Caller, FsError, Ino, Result, SetAttr};
use crate::vfs::DataPath;
use std::rc::Rc;

impl Volume {
    /// An inode that a caller names.
    ///
    /// # Errors
    /// [`FsError::NoEntry`] if there is none.
    pub(crate) async fn inode_of(&self, ino: Ino) -> Result<Rc<Inode>> {
        self.mount.env.calls.check_open()?;
        let number = u32::try_from(ino.0).map_err(|_| FsError::NoEntry)?;
        if !self.nodes.is_ordinary(number) {
            return Err(FsError::NoEntry);
        }
        let inode = self.inode(number).await?;
        let gone = inode.links() == 0 && inode.opens.get() == 0;
        if gone || inode.deleted.get() { Err(FsError::NoEntry) } else { Ok(inode) }
    }

    /// A directory that a caller names.
    pub(crate) async fn dir_of(&self, ino: Ino) -> Result<Rc<Inode>> {
        let inode = self.inode_of(ino).await?;
        if inode.is_dir() { Ok(inode) } else { Err(FsError::NotDirectory) }
    }

    /// An inode, from memory or from its node page, whether it has a name or not (`f2fs_iget`).
    ///
    /// # Errors
    /// [`FsError::NoEntry`] if the NAT knows no such node, [`FsError::Corrupt`] if its bytes contradict themselves.
    pub(crate) async fn inode(&self, number: u32) -> Result<Rc<Inode>> {
        if let Some(known) = self.inodes.cache.get(number) {
            return Ok(known);
        }
        let nid = Nid(number);
        self.mount.pay(Work::NodePages(1)).await;
        if self.nodes.node_entry(nid).await?.block_addr == format::BlockAddr::NULL {
            return Err(FsError::NoEntry);
        }
        let features = self.mount.inode_features();
        let is_data = |at| self.mount.layout.is_main(at);
        let read = |bytes: &Block| {
            format::check_inode(bytes, features, is_data).map(|()| inode::parse(bytes, features))
        };
        let parts = self.nodes.read_node(nid, read).await?;
        let parts =
            parts.map_err(|unsound| corrupt(unsound.what, format_args!("inode {number}")))?;
        // The first to have read it is right.
        if let Some(known) = self.inodes.cache.get(number) {
            return Ok(known);
        }
        let inode = self.inodes.build(number, parts);
        Ok(self.inodes.keep_inode(inode))
    }

    /// Brings the attributes of all dirty inodes to their node pages (`f2fs_sync_inode_meta`), also of one that waits for
    /// the checkpoint to be deleted: a mount that finishes its removal finds all nodes from there.
    pub(crate) async fn update_dirty_inodes(&self, op: &Op) -> Result<()> {
        let numbers: Vec<u32> = self.inodes.lists.dirty.borrow().iter().copied().collect();
        for number in numbers {
            match self.inodes.cache.get(number) {
                Some(inode) => {
                    self.nodes.pay_for_inode(&inode).await;
                    self.nodes.write_inode(op, &inode).await?;
                }
                None => {
                    self.inodes.lists.dirty.borrow_mut().remove(&number);
                }
            }
        }
        Ok(())
    }

    /// A new inode with its node page: one link (a directory: two), no content, no name yet (`f2fs_new_inode`).
    ///
    /// # Errors
    /// [`FsError::NoSpace`].
    pub(crate) async fn new_inode(
        &self,
        op: &Op,
        caller: Caller,
        parent: &Inode,
        file_mode: u16,
    ) -> Result<Rc<Inode>> {
        let nid = self.nodes.take_nid().await?;
        let parts = self.inodes.new_parts(caller, parent, file_mode);
        let inode = self.inodes.build(nid.0, parts);
        inode.may_have_tail.set(false);
        self.nodes.new_node(op, &inode, nid, 0).await?;
        inode.mark(Dirty::Content);
        self.nodes.pay_for_inode(&inode).await;
        self.nodes.update_inode(op, &inode).await?;
        Ok(self.inodes.keep_inode(inode))
    }

    /// Changes attributes, and the length with its content.
    pub(crate) async fn set_attributes(self: &Rc<Self>, ino: Ino, change: SetAttr) -> Result<Attr> {
        let inode = self.inode_of(ino).await?;
        self.balance_fs().await?;
        let _alone = inode.lock_exclusive().await?;
        inode.check_changeable()?;
        if let Some(size) = change.size {
            self.check_range(&inode, size, 0)?;
            self.set_length(&inode, size).await?;
        }
        inode.touch(self.mount.env.now(), false);
        inode.set(&change);
        Ok(inode.attr())
    }

    /// Frees an inode if its last name is gone and it is not open.
    pub(crate) async fn delete_if_unused(&self, inode: &Rc<Inode>) -> Result<()> {
        if inode.links() == 0 && inode.opens.get() == 0 { self.delete(inode).await } else { Ok(()) }
    }

    /// Frees an inode that has no name and is not open (`f2fs_evict_inode`).
    async fn delete(&self, inode: &Rc<Inode>) -> Result<()> {
        let _alone = inode.i_rwsem.write().await;
        let _cut = inode.invalidate_lock.write().await;
        if inode.deleted.get() || inode.links() > 0 || inode.opens.get() > 0 {
            return Ok(());
        }
        inode.deleted.set(true);
        inode.pages.written(0..u64::MAX).await;
        inode.pages.discard(0..u64::MAX);
        inode.moving.borrow_mut().clear();
        let op = self.operations.begin().await?;
        self.free_inode(&op, inode).await
    }

    /// Frees an inode that nothing uses: its blocks, its nodes, its number.
    ///
    /// # Errors
    /// Those of reading nodes.
    pub(super) async fn free_inode(&self, op: &Op, inode: &Inode) -> Result<()> {
        let extents = inode.extent_lock.write().await;
        let mut walked = Walked::default();
        if !inode.raw.borrow().has_inline(inline::DATA | inline::DENTRY) && has_blocks(inode) {
            walked = self.nodes.cut_from(op, &self.segments, inode, 0).await?;
        }
        let xattr = Nid(inode.raw.borrow().xattr_nid);
        if xattr.0 != 0 {
            self.nodes.remove_node(op, &self.segments, inode, xattr).await?;
        }
        self.nodes.remove_node(op, &self.segments, inode, Nid(inode.number)).await?;
        inode.mark_clean();
        self.checkpoints.orphans.remove(inode.number);
        self.inodes.cache.remove(inode.number);
        drop(extents);
        self.nodes.pay_walked(walked).await;
        Ok(())
    }

    /// The file and page that a data block belongs to, if it still does (`is_alive`).
    pub(super) async fn owner_of(
        &self,
        at: BlockAddr,
        summary: &SummaryEntry,
    ) -> Result<Option<(u32, u64)>> {
        let NatEntry { version, block_addr, .. } = self.nodes.node_entry(summary.nid).await?;
        if version != summary.version || block_addr == BlockAddr::NULL {
            return Ok(None);
        }
        let slot = u32::from(summary.ofs_in_node);
        let footer = self.nodes.read_node(summary.nid, NodeFooter::parse).await?;
        let inode = self.inode(footer.ino).await?;
        let layout = inode.layout.get();
        let addrs = if footer.is_inode() { layout.addrs() } else { AddrSlots::DIRECT };
        let address = self.nodes.read_node(summary.nid, |bytes| addrs.get(bytes, slot)).await?;
        let first = first_page(footer.offset(), layout.addr_count());
        Ok(first.filter(|_| address == at).map(|first| (footer.ino, first + u64::from(slot))))
    }
}

/// Whether an inode's addresses lead to blocks: those of devices and pipes are something else.
fn has_blocks(inode: &Inode) -> bool {
    matches!(inode.raw.borrow().file_type(), mode::REGULAR | mode::DIR | mode::SYMLINK)
}

/// Writes the fields of an inode over its node page.
fn encode(inode: &Inode, bytes: &mut Block) {
    let mut raw = inode.raw.borrow_mut();
    if raw.ext_len == 0
        && let Some((page, at, pages)) = inode.extents.largest()
        && pages >= MIN_EXTENT
    {
        (raw.ext_fofs, raw.ext_blk, raw.ext_len) = (page as u32, at.0, pages as u32);
    }
    raw.size = inode.size.get();
    raw.encode(bytes);
    if raw.has_inline(inline::EXTRA_ATTR) {
        inode.extra.borrow().encode(bytes, inode.layout.get());
    }
}

/// Pages of the shortest extent that an inode names (`F2FS_MIN_EXTENT_LEN`).
const MIN_EXTENT: u64 = 64;

impl Nodes {
    /// Whether a number may be an inode's that has a name.
    pub(crate) fn is_ordinary(&self, number: u32) -> bool {
        number > META_INO && number < self.space.max_nid()
    }

    /// Pays for what [`Nodes::write_inode`] is about to do.
    async fn pay_for_inode(&self, inode: &Inode) {
        if inode.dirty.get() > Dirty::No {
            self.mount.pay(Work::NodePages(1)).await;
        }
    }

    /// Brings the attributes of an inode to its node page (`f2fs_update_inode`), which is paid for.
    pub(crate) async fn update_inode(&self, op: &Op, inode: &Inode) -> Result<()> {
        if inode.deleted.get() { Ok(()) } else { self.write_inode(op, inode).await }
    }

    pub(super) async fn write_inode(&self, op: &Op, inode: &Inode) -> Result<()> {
        if inode.dirty.get() == Dirty::No {
            return Ok(());
        }
        self.edit_node(op, Nid(inode.number), |bytes| encode(inode, bytes)).await?;
        inode.mark_clean();
        Ok(())
    }
}
