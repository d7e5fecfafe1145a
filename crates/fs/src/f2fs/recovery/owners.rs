//! Owners of blocks that the GC journal names by their addresses alone, as the paper prints its entries: a mount looks for
//! them in all nodes of the last checkpoint.

use super::RollForward;
use crate::contract::Result;
use crate::f2fs::format::{
    AddrSlots, BlockAddr, InodeLayout, MovedBlock, Nid, NodeFooter, NodeRole, PaperEntry,
    SafeEntry, first_page, inline,
};
use crate::f2fs::inode;
use crate::f2fs::segment::Block;
use std::collections::{BTreeMap, BTreeSet};

/// What lies where.
type Places = BTreeMap<BlockAddr, MovedBlock>;

impl RollForward<'_> {
    /// The entries whose blocks the last checkpoint has, with their owners; nodes are read from their last copies from now on.
    /// An entry holds for the block that lies at its
    /// old place when its turn comes.
    pub(super) async fn find_owners(&self, entries: &[PaperEntry]) -> Result<Vec<SafeEntry>> {
        let old: BTreeSet<BlockAddr> = entries.iter().map(|entry| entry.old).collect();
        let nodes = self.nodes_in_use().await?;
        let moved = |(nid, at): &(Nid, BlockAddr)| (*at, MovedBlock::Node(*nid));
        let mut places: Places =
            nodes.iter().filter(|(_, at)| old.contains(at)).map(moved).collect();
        // Where nodes lie decides where pages are found.
        self.read_last_copies(follow(entries, places.clone()).iter()).await?;
        for (nid, _) in nodes {
            self.add_pages(nid, &old, &mut places).await?;
        }
        Ok(follow(entries, places))
    }

    /// Nodes of the last checkpoint, and where it has them.
    async fn nodes_in_use(&self) -> Result<Vec<(Nid, BlockAddr)>> {
        let mut nodes = Vec::new();
        for nid in (0..self.volume.nodes.space.max_nid()).map(Nid) {
            let at = self.volume.nodes.node_entry(nid).await?.block_addr;
            // Numbers of the node and the metadata inode name no block.
            if at.is_block() && self.volume.mount.layout.is_main(at) {
                nodes.push((nid, at));
            }
        }
        Ok(nodes)
    }

    /// Adds the pages that a node leads to, as far as they lie at places that are looked for.
    async fn add_pages(
        &self,
        nid: Nid,
        old: &BTreeSet<BlockAddr>,
        places: &mut Places,
    ) -> Result<()> {
        let footer = self.volume.nodes.read_node(nid, NodeFooter::parse).await?;
        if !footer.role().is_some_and(NodeRole::has_addrs) {
            return Ok(());
        }
        let features = self.volume.mount.inode_features();
        let of_inode = |bytes: &Block| {
            let (raw, _, layout) = inode::parse(bytes, features);
            (!raw.has_inline(inline::DATA | inline::DENTRY), layout)
        };
        let parts: (bool, InodeLayout) = match footer.is_inode() {
            true => self.volume.nodes.read_node(nid, of_inode).await?,
            false => (true, self.volume.nodes.read_node(Nid(footer.ino), of_inode).await?.1),
        };
        let (true, layout) = parts else { return Ok(()) };
        let addrs = if footer.is_inode() { layout.addrs() } else { AddrSlots::DIRECT };
        let Some(first) = first_page(footer.offset(), layout.addr_count()) else { return Ok(()) };
        let found = |bytes: &Block| -> Vec<(BlockAddr, u64)> {
            let pages = addrs.iter(bytes).zip(first..);
            pages.filter(|(at, _)| old.contains(at)).collect()
        };
        for (at, page) in self.volume.nodes.read_node(nid, found).await? {
            places.insert(at, MovedBlock::Data { ino: Nid(footer.ino), page: page as u32 });
        }
        Ok(())
    }
}

/// The entries that move what lies at these places, in order.
fn follow(entries: &[PaperEntry], mut places: Places) -> Vec<SafeEntry> {
    let mut moves = Vec::new();
    for PaperEntry { old, new } in entries.iter().copied() {
        if let Some(moved) = places.remove(&old) {
            places.insert(new, moved);
            moves.push(SafeEntry { old, new, moved });
        }
    }
    moves
}
