//! Replay of the GC journal: a mount brings what cleaning moved after the last checkpoint to where it is now, in the order in which it was
//! moved, and between the nodes that roll-forward finds.
//!
//! - An entry holds for what it names, and only if that lies at its old place now: a block that was written since, or
//!   whose place was given to another one meanwhile, is left alone.
//! - Nodes are copied as the last checkpoint has them. While the replay goes on, each is read from its last copy, since
//!   the places before it may be written over.

use super::RollForward;
use crate::contract::Result;
use crate::f2fs::format::{
    BlockAddr, MovedBlock, Nid, NodeFooter, SafeEntry, SegmentType, SummaryEntry,
};
use crate::f2fs::gc_journal::read::GcJournalBlock;
use crate::f2fs::node::Found;
use crate::f2fs::operations::Op;
use crate::f2fs::rules::OmittedRule;
use std::collections::BTreeMap;

/// Moves of a block of the journal.
pub(super) struct Noted {
    /// The node of the chain that they precede.
    pub(super) chain: BlockAddr,
    moves: Vec<SafeEntry>,
}

impl RollForward<'_> {
    /// What blocks of the journal say, with owners, in order. Nodes are read from their last copies from now on.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) async fn begin_replay(&self, blocks: Vec<GcJournalBlock>) -> Result<Vec<Noted>> {
        let start = self.volume.segments.borrow().next_block(SegmentType::WarmNode);
        let (mut noted, mut bare) = (Vec::new(), Vec::new());
        for block in blocks {
            match block {
                GcJournalBlock::Safe(block) => {
                    noted.push(Noted { chain: block.chain, moves: block.entries });
                }
                GcJournalBlock::Paper(block) => bare.extend(block.entries),
            }
        }
        // A journal has one format.
        if bare.is_empty() {
            self.read_last_copies(noted.iter().flat_map(|noted| &noted.moves)).await?;
        } else {
            noted.push(Noted { chain: start, moves: self.find_owners(&bare).await? });
        }
        if self.volume.mount.omits(OmittedRule::GcChain) {
            noted.iter_mut().for_each(|noted| noted.chain = start);
        }
        Ok(noted)
    }

    /// Nodes that were moved are read from their last copies from now on.
    pub(super) async fn read_last_copies(
        &self,
        moves: impl Iterator<Item = &SafeEntry>,
    ) -> Result<()> {
        let mut places: BTreeMap<u32, BlockAddr> = BTreeMap::new();
        for SafeEntry { old, new, moved } in moves {
            let MovedBlock::Node(nid) = moved else { continue };
            let now = match places.get(&nid.0) {
                Some(now) => *now,
                None => self.volume.nodes.node_entry(*nid).await?.block_addr,
            };
            if now == *old {
                places.insert(nid.0, *new);
            }
        }
        if !self.volume.mount.omits(OmittedRule::GcLastCopies) {
            *self.volume.nodes.last_copies.borrow_mut() = places;
        }
        Ok(())
    }

    /// Every node that was moved is where the NAT says, and segments that nothing needs are free, as they were before the
    /// cut.
    pub(super) fn end_replay(&self) {
        self.volume.nodes.last_copies.borrow_mut().clear();
        drop(self.volume.segments.borrow_mut().release_unkept());
    }

    /// Applies a block of the journal. Returns how many of its moves held.
    ///
    /// # Errors
    /// [`FsError::Corrupt`](crate::contract::FsError::Corrupt) if they contradict the checkpoint; those of the device.
    pub(super) async fn replay(&self, op: &Op, noted: &Noted) -> Result<u64> {
        let mut held = 0;
        for entry in &noted.moves {
            held += u64::from(match entry.moved {
                MovedBlock::Node(nid) => self.replay_node(nid, entry).await?,
                MovedBlock::Data { ino, page } => self.replay_page(op, ino, page, entry).await?,
            });
            self.volume.segments.borrow_mut().unkeep(std::iter::once(entry.old));
        }
        Ok(held)
    }

    async fn replay_node(&self, nid: Nid, entry: &SafeEntry) -> Result<bool> {
        let known = self.volume.nodes.node_entry(nid).await?;
        if known.block_addr != entry.old {
            return Ok(false);
        }
        self.volume.segments.borrow_mut().invalidate(entry.old)?;
        self.volume.nodes.nat.borrow_mut().relocate(nid, known, entry.new);
        let summary = SummaryEntry { nid, version: 0, ofs_in_node: 0 };
        self.volume
            .segments
            .adopt_block(
                (entry.new, SegmentType::ColdNode),
                summary,
                self.volume.checkpoints.mounted_time(),
            )
            .await?;
        Ok(true)
    }

    async fn replay_page(&self, op: &Op, ino: Nid, page: u32, entry: &SafeEntry) -> Result<bool> {
        if self.volume.nodes.node_entry(ino).await?.block_addr == BlockAddr::NULL
            || !self
                .volume
                .nodes
                .read_node(ino, |bytes| NodeFooter::parse(bytes).is_inode())
                .await?
        {
            // A file that no fsync made durable; roll-forward may have given its number to a node.
            return Ok(false);
        }
        let inode = self.volume.inode(ino.0).await?;
        let _extents = inode.extent_lock.write().await;
        if inode.is_inline() || inode.has_inline_names() {
            return Ok(false);
        }
        let page = u64::from(page);
        let Found::Node(dnode) = self.volume.nodes.find_dnode(&inode, page).await? else {
            return Ok(false);
        };
        let now = self.volume.nodes.address(dnode).await?;
        let follows = self.volume.mount.omits(OmittedRule::GcLocation) && now.is_block();
        if now != entry.old && !follows {
            return Ok(false);
        }
        self.volume.segments.borrow_mut().invalidate(now)?;
        inode.forget_extent(&(page..page + 1));
        let summary = self.volume.nodes.summary_at(dnode).await?;
        self.volume
            .segments
            .adopt_block(
                (entry.new, SegmentType::ColdData),
                summary,
                self.volume.checkpoints.mounted_time(),
            )
            .await?;
        self.volume.nodes.set_address(op, dnode, entry.new).await?;
        Ok(true)
    }
}
