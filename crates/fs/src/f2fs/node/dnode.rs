//! From a page of a file to the node that holds its address, and the addresses in it (`f2fs_get_dnode_of_data`,
//! `set_data_blkaddr`).

use crate::contract::Result;
use crate::f2fs::cpu::Work;
use crate::f2fs::error::corrupt;
use crate::f2fs::format::{
    self, ADDRS_PER_BLOCK, AddrSlots, BlockAddr, NIDS_PER_BLOCK, Nid, NodePath,
};
use crate::f2fs::inode::Inode;
use crate::f2fs::nat::Nodes;
use crate::f2fs::operations::Op;
use crate::f2fs::segment::Block;
use crate::vfs::Pages;
use nandscape_rt::invariant;

/// Where the address of a page lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Dnode {
    pub(crate) nid: Nid,
    /// The addresses of the node.
    pub(crate) addrs: AddrSlots,
    /// Which of them it is.
    pub(crate) slot: u32,
}

impl Dnode {
    /// The last node of a path.
    fn new(path: &NodePath, nid: Nid, inode: &Inode) -> Self {
        let addrs = if path.depth == 0 { inode.layout.get().addrs() } else { AddrSlots::DIRECT };
        Self { nid, addrs, slot: path.addr_slot() }
    }

    /// Addresses from its own on.
    pub(crate) fn left(&self) -> u32 {
        invariant!(self.slot < self.addrs.count(), "slot {} is one of the node's", self.slot);
        self.addrs.count() - self.slot
    }
}

/// What was found of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The node that holds its address.
    Node(Dnode),
    /// No node, for so many pages.
    Hole(u64),
}

/// The number of a node that hangs below another one, an inode (`level` 0) or an indirect node.
fn child(bytes: &Block, level: usize, slot: u32) -> Nid {
    if level == 0 { format::inode_nid(bytes, slot) } else { format::indirect_nid(bytes, slot) }
}

fn set_child(bytes: &mut Block, level: usize, slot: u32, nid: Nid) {
    if level == 0 {
        format::set_inode_nid(bytes, slot, nid);
    } else {
        format::set_indirect_nid(bytes, slot, nid);
    }
}

/// Pages from the one of a path to the end of what hangs below its node at `level`.
fn pages_left(path: &NodePath, level: usize) -> u64 {
    let below =
        |height: usize| u64::from(ADDRS_PER_BLOCK) * u64::from(NIDS_PER_BLOCK).pow(height as u32);
    let into: u64 = (level..=path.depth)
        .map(|at| match path.depth - at {
            0 => u64::from(path.slots[at]),
            height => u64::from(path.slots[at]) * below(height - 1),
        })
        .sum();
    below(path.depth - level) - into
}

/// Which walks to the addresses of some pages are paid for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Walks {
    /// One, to the first page.
    First,
    /// One to each node that holds addresses of them.
    EachNode,
    /// One to each page.
    EachPage,
}

/// Node pages that were walked through while a file's `extent_lock` was held: how many is known only then, so they are paid
/// for ([`Nodes::pay_walked`]) once it is released.
#[must_use = "to be paid for"]
#[derive(Default, Debug)]
pub(crate) struct Walked(u64);

impl Walked {
    /// They were walked through by a mount, which has no host yet.
    pub(crate) fn by_mount(self) {}

    /// A walk to the node of a page.
    pub(super) fn add(&mut self, inode: &Inode, page: u64) {
        self.0 += path(inode, page).map_or(0, |path| path.depth as u64 + 1);
    }
}

/// The way to a page of a file.
fn path(inode: &Inode, page: u64) -> Result<NodePath> {
    let beyond = || corrupt("page beyond the last of a file", inode.number);
    NodePath::of(page, inode.layout.get().addr_count()).ok_or_else(beyond)
}

impl Nodes {
    /// Pays for walks to the addresses of some pages. The caller does not hold the file's `extent_lock`, and takes it next.
    pub(crate) async fn pay_walks(&self, inode: &Inode, pages: &Pages, walks: Walks) {
        let mut at = pages.start;
        while self.mount.cpu.is_charged()
            && at < pages.end
            && let Ok(path) = path(inode, at)
        {
            let here = Dnode::new(&path, Nid(inode.number), inode).left();
            let here = u64::from(here).clamp(1, pages.end - at);
            let count = if walks == Walks::EachPage { here } else { 1 };
            self.mount.pay(Work::NodePages(count * (path.depth as u64 + 1))).await;
            at = if walks == Walks::First { pages.end } else { at + here };
        }
    }

    /// Pays for what was walked through. The caller does not hold the `extent_lock` any more.
    pub(crate) async fn pay_walked(&self, walked: Walked) {
        self.mount.pay(Work::NodePages(walked.0)).await;
    }

    /// The node that holds the address of a page, if there is one. The caller holds the file's `extent_lock`, and the walk
    /// is paid for.
    ///
    /// # Errors
    /// Those of [`Nodes::read_node`].
    pub(crate) async fn find_dnode(&self, inode: &Inode, page: u64) -> Result<Found> {
        let path = path(inode, page)?;
        let mut nid = Nid(inode.number);
        for level in 0..path.depth {
            let slot = path.slots[level];
            let next = self.read_node(nid, |bytes| child(bytes, level, slot)).await?;
            if next.0 == 0 {
                return Ok(Found::Hole(pages_left(&path, level + 1)));
            }
            nid = next;
        }
        Ok(Found::Node(Dnode::new(&path, nid, inode)))
    }

    /// The same, whose missing nodes are made.
    ///
    /// # Errors
    /// [`FsError::NoSpace`](crate::contract::FsError::NoSpace), and those of [`Nodes::read_node`].
    pub(crate) async fn make_dnode(&self, op: &Op, inode: &Inode, page: u64) -> Result<Dnode> {
        let path = path(inode, page)?;
        let mut nid = Nid(inode.number);
        for level in 0..path.depth {
            let slot = path.slots[level];
            let mut next = self.read_node(nid, |bytes| child(bytes, level, slot)).await?;
            if next.0 == 0 {
                next = self.take_nid().await?;
                self.new_node(op, inode, next, path.offsets[level + 1]).await?;
                self.edit_node(op, nid, |bytes| set_child(bytes, level, slot, next)).await?;
            }
            nid = next;
        }
        Ok(Dnode::new(&path, nid, inode))
    }

    /// The address of a page.
    pub(crate) async fn address(&self, dnode: Dnode) -> Result<BlockAddr> {
        self.read_node(dnode.nid, |bytes| dnode.addrs.get(bytes, dnode.slot)).await
    }

    /// Up to `most` addresses from that of a page on.
    pub(crate) async fn addresses(&self, dnode: Dnode, most: u64) -> Result<Vec<BlockAddr>> {
        let count = u64::from(dnode.left()).min(most) as u32;
        let read = |bytes: &Block| {
            (dnode.slot..dnode.slot + count).map(|slot| dnode.addrs.get(bytes, slot)).collect()
        };
        self.read_node(dnode.nid, read).await
    }

    /// Sets the address of a page.
    pub(crate) async fn set_address(&self, op: &Op, dnode: Dnode, at: BlockAddr) -> Result<()> {
        self.edit_node(op, dnode.nid, |bytes| dnode.addrs.set(bytes, dnode.slot, at)).await
    }
}
