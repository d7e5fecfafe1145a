//! Blocks of a file: addresses of all nodes of its tree, each claimed, with its summary; the largest extent
//! beside them.

use super::checker::Checker;
use crate::f2fs::format::*;
use crate::f2fs::raw::{RawInode, RawNode};
use nandscape_block::BlockError;

/// What was counted of a file.
pub(super) struct Counted {
    /// Blocks and nodes.
    pub(super) blocks: u64,
    /// Pages of the largest extent that lie where it says.
    in_extent: u64,
    /// A page of it that lies elsewhere.
    astray: bool,
}

impl Counted {
    pub(super) const fn new(nodes: u64) -> Self {
        Self { blocks: nodes, in_extent: 0, astray: false }
    }
}

/// An address and where it stands.
struct Slot {
    nid: Nid,
    version: u8,
    slot: u32,
    page: u64,
    addr: BlockAddr,
}

impl Checker {
    /// Everything that the addresses and node numbers of an inode lead to.
    pub(super) async fn check_content(
        &mut self,
        raw: &RawInode,
        counted: &mut Counted,
    ) -> Result<(), BlockError> {
        let inode = &raw.inode;
        let has_blocks = inode.is_dir() || inode.is_regular() || inode.is_symlink();
        if !has_blocks || inode.has_inline(inline::DATA | inline::DENTRY) {
            return Ok(());
        }
        let (ino, slots) = (raw.node.nid, raw.layout.addrs());
        self.check_addrs(raw, &raw.node, slots, 0, counted).await?;
        let of_inode =
            (0..NIDS_PER_INODE).rev().map(|slot| (slot, inode_nid(&raw.node.bytes, slot)));
        let mut waiting: Vec<(Nid, u32, Place)> = Vec::new();
        wait(&mut waiting, 0, Place::Inode(ino), of_inode);
        while let Some((nid, offset, from)) = waiting.pop() {
            let Some(node) = self.enter(nid, ino, offset, from).await? else { continue };
            counted.blocks += 1;
            match first_page(offset, slots.count()) {
                Some(first) => {
                    self.check_addrs(raw, &node, AddrSlots::DIRECT, first, counted).await?;
                }
                None => {
                    let nids = (0..NIDS_PER_BLOCK).rev();
                    let nids = nids.map(|slot| (slot, indirect_nid(&node.bytes, slot)));
                    wait(&mut waiting, offset, Place::Node(nid), nids);
                }
            }
        }
        let whole = counted.in_extent == u64::from(inode.ext_len);
        if inode.ext_len != 0 && (counted.astray || !whole) {
            let what = format!(
                "says {} blocks at {} from page {} on, where they are not",
                inode.ext_len, inode.ext_blk, inode.ext_fofs
            );
            self.report.find(Place::Inode(ino), what);
        }
        Ok(())
    }

    /// The addresses of one node, whose first is that of page `first`.
    async fn check_addrs(
        &mut self,
        raw: &RawInode,
        node: &RawNode,
        slots: AddrSlots,
        first: u64,
        counted: &mut Counted,
    ) -> Result<(), BlockError> {
        let inode = &raw.inode;
        for (slot, addr) in (0..).zip(slots.iter(&node.bytes)) {
            let page = first + u64::from(slot);
            let in_extent = page.checked_sub(inode.ext_fofs.into());
            if let Some(at) = in_extent.filter(|at| *at < u64::from(inode.ext_len)) {
                let is_there = u64::from(inode.ext_blk) + at == u64::from(addr.0);
                counted.in_extent += u64::from(is_there);
                counted.astray |= !is_there;
            }
            let (nid, version) = (node.nid, node.entry.version);
            self.check_addr(raw, Slot { nid, version, slot, page, addr }, counted).await?;
        }
        Ok(())
    }

    async fn check_addr(
        &mut self,
        raw: &RawInode,
        slot: Slot,
        counted: &mut Counted,
    ) -> Result<(), BlockError> {
        let Slot { nid, version, slot, page, addr } = slot;
        let place = Place::Inode(raw.node.nid);
        match addr {
            BlockAddr::NULL => return Ok(()),
            BlockAddr::NEW => {
                counted.blocks += 1;
                self.blocks += 1;
                return Ok(());
            }
            BlockAddr::COMPRESS => {
                self.report.find(place, format!("page {page} is compressed"));
                return Ok(());
            }
            _ => {}
        }
        if !self.image.layout.is_main(addr) {
            let what = format!("page {page} is in block {}, outside the main area", addr.0);
            self.report.find(place, what);
            return Ok(());
        }
        counted.blocks += 1;
        let entry = SummaryEntry { nid, version, ofs_in_node: slot as u16 };
        self.check_summary(addr, entry, SummaryKind::Data, place).await?;
        self.claim(addr, false, place);
        Ok(())
    }
}

fn wait(
    waiting: &mut Vec<(Nid, u32, Place)>,
    offset: u32,
    from: Place,
    nids: impl Iterator<Item = (u32, Nid)>,
) {
    let below = nids.filter(|(_, nid)| nid.0 != 0);
    waiting.extend(below.filter_map(|(slot, nid)| Some((nid, child_offset(offset, slot)?, from))));
}
