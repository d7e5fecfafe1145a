//! Roll-forward: what fsyncs made durable after the last checkpoint (fs/f2fs/recovery.c).
//!
//! From where the last checkpoint ends the warm node log, each node block names the next one. The chain is followed as
//! long as footers carry the version of that checkpoint, twice: to see which inodes have a node with the fsync mark,
//! and up to which block, and to bring these inodes' nodes back, in the order of the chain. Other nodes of the chain
//! do not count.
//!
//! What the GC journal ([`gc_journal`](super::gc_journal)) has is replayed between the nodes of the chain, where it was
//! written (`replay.rs`, `owners.rs`). Names are brought back after all of that, in the order of the chain (`names.rs`).
//!
//! Nothing of what is found is written over before the checkpoint that ends the recovery is durable: segments of the
//! chain are kept from use, and logs go on in fresh segments where anything was found. A volume that was not unmounted gets that checkpoint
//! even if nothing was found, so that the nodes of an earlier life never continue the chain of the next one; for the
//! same reason the first fsync after a mount of an unmounted volume writes a checkpoint.

mod names;
mod owners;
mod replay;

use super::appended::Appended;
use super::checkpoints::Reason;
use super::counts::Rolled;
use super::error::corrupt;
use super::format::{
    AddrSlots, BlockAddr, Nid, NodeFooter, NodeRole, SegNo, SegmentType, first_page, inline,
    node_flag,
};
use super::gc_journal::read::GcJournalBlock;
use super::inode::{self, Dirty, Inode};
use super::node::{Found, Walked};
use super::operations::Op;
use super::rules::OmittedRule;
use super::segment::Block;
use super::volume::Volume;
use crate::contract::{FsError, Result};
use crate::image::ImageReader;
use crate::vfs::PAGE;
use names::LostName;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A node block of the chain.
struct ChainNode {
    at: BlockAddr,
    footer: NodeFooter,
    bytes: Box<Block>,
}

/// An inode that was fsynced.
struct Fsynced {
    /// Its last block with the fsync mark, as an index into the chain.
    last: usize,
    /// Its last inode block with the dentry mark.
    last_dentry: Option<usize>,
}

/// Roll-forward of a mount.
pub(super) struct RollForward<'a> {
    pub(super) volume: &'a Rc<Volume>,
}

impl RollForward<'_> {
    /// Rolls forward, through what the GC journal has, and writes a checkpoint, unless the volume was unmounted (`clean`)
    /// and nothing was written since.
    ///
    /// # Errors
    /// [`FsError::Corrupt`] if what the chain says contradicts the checkpoint; errors of the device.
    pub(crate) async fn run(&self, clean: bool, journal: Vec<GcJournalBlock>) -> Result<Rolled> {
        let chain = self.read_chain().await?;
        if clean && chain.is_empty() && journal.is_empty() {
            match (&self.volume.segments.zones, &self.volume.segments.append) {
                (Some(zones), _) => zones.align_zones(&self.volume.segments).await?,
                (None, Some(append)) => {
                    Appended { volume: self.volume, append }.align_space(true).await?
                }
                (None, None) => {}
            }
            if let Some(append) = &self.volume.segments.append {
                Appended { volume: self.volume, append }.finish_space(true).await?;
            }
            return Ok(Rolled::default());
        }
        let held = self.hold_chain(&chain)?;
        let rolled = self.follow_chain(&chain, journal).await?;
        self.end_replay();
        match (&self.volume.segments.zones, &self.volume.segments.append) {
            (Some(zones), _) => zones.align_zones(&self.volume.segments).await?,
            (None, Some(append)) => {
                Appended { volume: self.volume, append }.align_space(false).await?
            }
            (None, None) => self.volume.segments.renew_logs(!chain.is_empty())?,
        }
        if !self.volume.mount.omits(OmittedRule::RollCheckpoint) {
            self.volume.write_checkpoint(Reason::Recovery).await?;
        }
        self.release_held(held).await;
        if let Some(append) = &self.volume.segments.append {
            Appended { volume: self.volume, append }.finish_space(false).await?;
        }
        Ok(rolled)
    }

    /// Brings back what nodes of the chain and blocks of the GC journal say, in their order.
    async fn follow_chain(
        &self,
        chain: &[ChainNode],
        journal: Vec<GcJournalBlock>,
    ) -> Result<Rolled> {
        let fsynced = find_fsynced(chain);
        let mut rolled = Rolled { files: fsynced.len() as u64, ..Rolled::default() };
        let mut journal = self.begin_replay(journal).await?.into_iter().peekable();
        let op = self.volume.operations.begin().await?;
        self.recover_inode_pages(&op, chain).await?;
        let mut names = Vec::new();
        for (index, node) in chain.iter().enumerate() {
            while let Some(noted) = journal.next_if(|noted| noted.chain == node.at) {
                rolled.moves += self.replay(&op, &noted).await?;
            }
            if let Some(found) = fsynced.get(&node.footer.ino).filter(|found| index <= found.last) {
                let inode = self.recover_node(&op, node, &mut rolled).await?;
                let inode = inode.filter(|_| found.last_dentry == Some(index));
                names.extend(inode.as_deref().map(LostName::of));
            }
        }
        for noted in journal {
            rolled.moves += self.replay(&op, &noted).await?;
        }
        // Not before: something else may lie by now where the checkpoint has blocks of directories that were moved.
        for name in &names {
            self.recover_dentry(&op, name).await?;
        }
        Ok(rolled)
    }

    /// Brings a node of the chain back. Returns its inode, if there is one.
    async fn recover_node(
        &self,
        op: &Op,
        node: &ChainNode,
        rolled: &mut Rolled,
    ) -> Result<Option<Rc<Inode>>> {
        let ino = node.footer.ino;
        let inode = match self.volume.inode(ino).await {
            Err(FsError::NoEntry) => return Ok(None),
            inode => inode?,
        };
        if node.footer.nid == ino {
            self.recover_inode(op, &inode, &node.bytes).await?;
        }
        rolled.blocks += self.recover_data(op, &inode, node).await?;
        rolled.nodes += 1;
        Ok(Some(inode))
    }

    /// The node blocks that follow the last checkpoint in the warm node log.
    async fn read_chain(&self) -> Result<Vec<ChainNode>> {
        let reader = ImageReader::new(&self.volume.mount.env.device);
        let most = self.volume.nodes.space.user_blocks();
        let mut chain: Vec<ChainNode> = Vec::new();
        let mut at = self.volume.segments.borrow().next_block(SegmentType::WarmNode);
        while self.volume.segments.borrow().is_log_address(at) && (chain.len() as u64) < most {
            let bytes = reader.block(at.0.into()).await?;
            let footer = NodeFooter::parse(&bytes);
            let follows = self.volume.checkpoints.is_recoverable(footer.cp_ver)
                || self.volume.mount.omits(OmittedRule::RollVersion);
            let is_node = footer.nid != 0 && footer.nid < self.volume.nodes.space.max_nid();
            if !follows || !is_node {
                break;
            }
            let next = BlockAddr(footer.next_blkaddr);
            chain.push(ChainNode { at, footer, bytes });
            if next == at {
                break;
            }
            at = next;
        }
        Ok(chain)
    }

    /// Keeps segments of the chain, as far as they are free, from being used.
    fn hold_chain(&self, chain: &[ChainNode]) -> Result<Vec<SegNo>> {
        let mut segments = self.volume.segments.borrow_mut();
        let mut held = Vec::new();
        for node in chain {
            segments.admit(node.at)?;
            segments.keep(node.at);
            let segment = segments.segment_of(node.at).map(|(segment, _)| segment);
            held.extend(segment.filter(|segment| segments.hold(*segment)));
        }
        Ok(held)
    }

    /// Makes all inodes that the checkpoint does not know: before any node of a file is made, which must not get the
    /// number of one of them, and before nodes of theirs that precede them in the chain.
    async fn recover_inode_pages(&self, op: &Op, chain: &[ChainNode]) -> Result<()> {
        for node in chain {
            let ino = Nid(node.footer.ino);
            let is_new = node.footer.nid == ino.0
                && node.footer.has(node_flag::FSYNC)
                && node.footer.has(node_flag::DENTRY);
            if is_new && self.volume.nodes.node_entry(ino).await?.block_addr == BlockAddr::NULL {
                self.recover_inode_page(op, ino, &node.bytes).await?;
            }
        }
        Ok(())
    }

    /// Makes the node page of an inode that the checkpoint does not have (`f2fs_recover_inode_page`): empty, with one
    /// link and without content, which the chain brings.
    async fn recover_inode_page(&self, op: &Op, ino: Nid, found: &Block) -> Result<()> {
        self.volume.nodes.free.borrow_mut().remove(ino.0);
        let (mut raw, extra, layout) = inode::parse(found, self.volume.mount.inode_features());
        raw.inline &= inline::XATTR | inline::EXTRA_ATTR;
        (raw.size, raw.blocks, raw.links, raw.xattr_nid, raw.ext_len) = (0, 1, 1, 0, 0);
        let parts = (raw, extra, layout);
        let made = self.volume.inodes.build(ino.0, parts);
        self.volume.nodes.new_node(op, &made, ino, 0).await?;
        made.mark(Dirty::Content);
        self.volume.nodes.update_inode(op, &made).await
    }

    /// Attributes, inline extended attributes and inline content of an inode (`recover_inode`,
    /// `f2fs_recover_inline_xattr`, `f2fs_recover_inline_data`).
    async fn recover_inode(&self, op: &Op, inode: &Rc<Inode>, found: &Block) -> Result<()> {
        let _extents = inode.extent_lock.write().await;
        let (mut raw, extra, layout) = inode::parse(found, self.volume.mount.inode_features());
        let was_inline = inode.is_inline();
        let is_inline = raw.has_inline(inline::DATA);
        if is_inline && !was_inline {
            self.volume.nodes.cut_from(op, &self.volume.segments, inode, 0).await?.by_mount();
        }
        let (data, xattr) = (layout.inline_data(), layout.inline_xattr());
        self.volume
            .nodes
            .edit_node(op, Nid(inode.number), |bytes| {
                if is_inline {
                    bytes[data.clone()].copy_from_slice(&found[data]);
                } else if was_inline {
                    bytes[data].fill(0);
                }
                bytes[xattr.clone()].copy_from_slice(&found[xattr]);
            })
            .await?;
        {
            // Names that went since the checkpoint are there again.
            let kept = inode.raw.borrow();
            (raw.links, raw.blocks, raw.xattr_nid, raw.ext_len) =
                (kept.links, kept.blocks, kept.xattr_nid, 0);
        }
        inode.set_size(raw.size);
        inode.layout.set(layout);
        *inode.raw.borrow_mut() = raw;
        *inode.extra.borrow_mut() = extra;
        inode.mark(Dirty::Content);
        Ok(())
    }

    /// Addresses of a node of the chain go to the file, and what they name is valid (`do_recover_data`). Returns how
    /// many blocks that are.
    async fn recover_data(&self, op: &Op, inode: &Rc<Inode>, node: &ChainNode) -> Result<u64> {
        let role = node.footer.role();
        if role == Some(NodeRole::Xattr) {
            self.volume
                .nodes
                .recover_xattr_node(op, &self.volume.segments, inode, &node.bytes)
                .await?;
            return Ok(0);
        }
        let layout = inode.layout.get();
        let Some(first) = first_page(node.footer.offset(), layout.addr_count()) else {
            return Ok(0);
        };
        if inode.is_inline() {
            if node.footer.is_inode() {
                return Ok(0);
            }
            // The inode that says so follows in the chain.
            self.volume.nodes.drop_inline(op, inode).await?;
        }
        let addrs = if node.footer.is_inode() { layout.addrs() } else { AddrSlots::DIRECT };
        let mut recovered = 0;
        for (page, found) in (first..).zip(addrs.iter(&node.bytes)) {
            recovered += u64::from(self.recover_page(op, inode, page, found).await?);
        }
        Ok(recovered)
    }

    /// One page lies where the chain says. Whether that is a block which was not the page's.
    async fn recover_page(
        &self,
        op: &Op,
        inode: &Rc<Inode>,
        page: u64,
        found: BlockAddr,
    ) -> Result<bool> {
        let _extents = inode.extent_lock.write().await;
        let now = match self.volume.nodes.find_dnode(inode, page).await? {
            Found::Hole(_) => BlockAddr::NULL,
            Found::Node(dnode) => self.volume.nodes.address(dnode).await?,
        };
        if now == found {
            return Ok(false);
        }
        if now != BlockAddr::NULL {
            self.volume
                .nodes
                .free_pages(op, &self.volume.segments, inode, &(page..page + 1))
                .await?
                .by_mount();
        }
        if found == BlockAddr::NULL {
            return Ok(false);
        }
        // What a cut left after the end, and cleaning has moved since, makes no file longer; the kernel's it does.
        let is_new = now == BlockAddr::NULL;
        if is_new && inode.size.get() <= page * PAGE && !inode.keeps_size() {
            inode.set_size((page + 1) * PAGE);
            inode.raw.borrow_mut().size = (page + 1) * PAGE;
        }
        let dnode = self.volume.nodes.make_dnode(op, inode, page).await?;
        self.volume.nodes.space.take_some(1)?;
        inode.add_blocks(1);
        inode.mark(Dirty::Content);
        if found == BlockAddr::NEW || !self.volume.segments.borrow().is_log_address(found) {
            self.volume.nodes.set_address(op, dnode, BlockAddr::NEW).await?;
            return Ok(false);
        }
        self.take_from_other(op, found).await?;
        let summary = self.volume.nodes.summary_at(dnode).await?;
        self.volume
            .segments
            .adopt_block(
                (found, SegmentType::WarmData),
                summary,
                self.volume.checkpoints.mounted_time(),
            )
            .await?;
        self.volume.nodes.set_address(op, dnode, found).await?;
        Ok(true)
    }

    /// A block that is valid as another page's is taken from there: the chain knows better
    /// (`check_index_in_prev_nodes`).
    async fn take_from_other(&self, op: &Op, at: BlockAddr) -> Result<()> {
        if !self.volume.segments.borrow().is_valid(at) {
            return Ok(());
        }
        let summary = self.volume.segments.summary_of(at).await?;
        let Some((ino, page)) = self.volume.owner_of(at, &summary).await? else {
            return Err(corrupt("valid block without an owner", at.0));
        };
        let other = self.volume.inode(ino).await?;
        let pages = page..page + 1;
        let freed = self.volume.nodes.free_pages(op, &self.volume.segments, &other, &pages).await;
        freed.map(Walked::by_mount)
    }

    /// The checkpoint of a recovery is durable: what was held for it is free, and its zones are reset.
    async fn release_held(&self, held: Vec<SegNo>) {
        for segment in &held {
            self.volume.segments.borrow_mut().unhold(*segment);
        }
        if let Some(zones) = &self.volume.segments.zones {
            let sections = held.iter().map(|segment| self.volume.mount.layout.section_of(*segment));
            zones.hold_freed(&self.volume.segments, sections);
            zones.reset_freed(&self.volume.segments).await;
        }
    }
}

/// Which inodes were fsynced, and up to where (`find_fsync_dnodes`).
fn find_fsynced(chain: &[ChainNode]) -> BTreeMap<u32, Fsynced> {
    let mut fsynced: BTreeMap<u32, Fsynced> = BTreeMap::new();
    for (index, node) in
        chain.iter().enumerate().filter(|(_, node)| node.footer.has(node_flag::FSYNC))
    {
        let found =
            fsynced.entry(node.footer.ino).or_insert(Fsynced { last: index, last_dentry: None });
        found.last = index;
        if node.footer.nid == node.footer.ino && node.footer.has(node_flag::DENTRY) {
            found.last_dentry = Some(index);
        }
    }
    fsynced
}
