//! The NAT in memory: where nodes are (`struct f2fs_nm_info`, `nat_entry`). After fs/f2fs/node.c.
//!
//! An entry that changed since the last checkpoint stays in memory until the next one; others are dropped when there
//! are too many. Entries that the checkpoint pack holds instead of the NAT are the journal.
//!
//! NAT bits say which NAT blocks have no free number and which have no other, so that a mount need not read these. The
//! checkpoint of an unmount writes them, if the volume was mounted with valid ones; it empties the journal, so that the
//! NAT blocks are the whole truth. They are kept as NAT blocks are written meanwhile. A volume that was not unmounted
//! has none, since bits hold for one checkpoint alone; f2fs-tools make them again.
//!
//! Invariants:
//! - An entry that changed since the last checkpoint is in memory until a checkpoint takes it.
//! - A checkpoint gets the newest entry of each node.
//! - The NAT leads to the newest block of a node: who gives it another one knew the one before.
//! - A number is free only when the last checkpoint has no node of it.

mod copies;
mod ids;
mod nodes;

pub(crate) use ids::{FreeNids, SEARCH_BLOCKS};
pub(crate) use nodes::{NodeParts, Nodes};

use crate::f2fs::format::{
    BlockAddr, Layout, NAT_ENTRIES_PER_BLOCK, NAT_JOURNAL_ENTRIES, NatBits, NatEntry, NatJournal,
    Nid, VersionBitmap,
};
use nandscape_rt::invariant;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a node (`struct nat_entry`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeInfo {
    pub(crate) entry: NatEntry,
    /// It changed since the last checkpoint (`IS_DIRTY`).
    dirty: bool,
    /// The last checkpoint has the node (`IS_CHECKPOINTED`).
    checkpointed: bool,
    /// Of an inode: a node block of it with an fsync mark was written (`HAS_FSYNCED_INODE`).
    fsynced_inode: bool,
    /// Of an inode: the last node block of the file that was written had an fsync mark (`HAS_LAST_FSYNC`).
    last_fsync: bool,
}

impl NodeInfo {
    /// As the last checkpoint has it.
    const fn clean(entry: NatEntry) -> Self {
        Self { entry, dirty: false, checkpointed: true, fsynced_inode: false, last_fsync: true }
    }
}

/// What is known of the numbers of a NAT block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockFill {
    /// All are free.
    Empty,
    /// None is free.
    Full,
    /// The block says.
    Unknown,
}

/// The NAT in memory.
pub(crate) struct Nat {
    layout: Layout,
    entries: BTreeMap<u32, NodeInfo>,
    dirty: BTreeSet<u32>,
    journal: NatJournal,
    /// Entries on their way to NAT blocks: a checkpoint has taken them, and their blocks are not changed yet. Clean
    /// ones may leave memory meanwhile.
    flushing: BTreeMap<u32, NatEntry>,
    /// Which copy of each NAT block is current.
    version_bitmap: VersionBitmap,
    /// Which blocks of the NAT are full and which empty, if a checkpoint said so for all of them.
    bits: Option<NatBits>,
    limit: usize,
}

impl Nat {
    /// The NAT of a volume that is being mounted, which keeps about `limit` clean entries.
    pub(crate) fn new(
        layout: Layout,
        journal: NatJournal,
        version_bitmap: VersionBitmap,
        bits: Option<NatBits>,
        limit: usize,
    ) -> Self {
        let (entries, dirty, flushing) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { layout, entries, dirty, journal, flushing, version_bitmap, bits, limit }
    }

    /// What is known of a block of the NAT, as the last checkpoint has it, without reading.
    pub(crate) fn fill_of(&self, block: u32) -> BlockFill {
        match &self.bits {
            Some(bits) if bits.is_empty(block) => BlockFill::Empty,
            Some(bits) if bits.is_full(block) => BlockFill::Full,
            _ => BlockFill::Unknown,
        }
    }

    /// A block of the NAT is written with so many numbers in use (`__update_nat_bits`).
    pub(crate) fn note_fill(&mut self, block: u32, taken: usize) {
        if let Some(bits) = &mut self.bits {
            bits.set(block, taken);
        }
    }

    /// Whether the bits, if there are any, say that a block has so many numbers in use.
    pub(crate) fn is_fill(&self, block: u32, taken: usize) -> bool {
        self.bits.as_ref().is_none_or(|bits| {
            bits.is_empty(block) == (taken == 0)
                && bits.is_full(block) == (taken == NAT_ENTRIES_PER_BLOCK)
        })
    }

    /// Whether it is known which blocks of the NAT are full and which empty, so that a checkpoint can say so.
    pub(crate) const fn has_bits(&self) -> bool {
        self.bits.is_some()
    }

    /// What NAT bits say for a checkpoint of this version.
    pub(crate) fn bits_for(&self, version: u64) -> Option<NatBits> {
        let mut bits = self.bits.clone()?;
        bits.version = version;
        Some(bits)
    }

    /// Bytes of memory that it takes, at two thirds of a B-tree's nodes in use.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let entries = self.entries.len() * size_of::<(u32, NodeInfo)>();
        ((entries + self.dirty.len() * size_of::<u32>()) * 3 / 2) as u64
    }

    /// What is known of a node without reading.
    pub(crate) fn known(&self, nid: Nid) -> Option<NatEntry> {
        let cached = self.entries.get(&nid.0).map(|info| info.entry);
        cached.or_else(|| self.journalled(nid)).or_else(|| self.flushing.get(&nid.0).copied())
    }

    fn journalled(&self, nid: Nid) -> Option<NatEntry> {
        self.journal.entries.iter().find(|(known, _)| *known == nid).map(|(_, entry)| *entry)
    }

    /// The block of the NAT that holds the entry of a node, as the last checkpoint has it.
    pub(crate) fn block_of(&self, nid: Nid) -> BlockAddr {
        self.current_block(self.layout.nat_place(nid).0)
    }

    /// The current copy of a block of the NAT.
    pub(crate) fn current_block(&self, block: u32) -> BlockAddr {
        let at = self.layout.current_nat_addr(block, &self.version_bitmap);
        invariant!(at.is_some(), "block {block} of the NAT is one of the volume");
        at.unwrap_or_default()
    }

    /// Keeps what was read of a node, unless more is known already: a checkpoint may have put a newer entry into the
    /// journal while the block was read.
    pub(crate) fn note_read(&mut self, nid: Nid, entry: NatEntry) {
        self.evict();
        if self.known(nid).is_none() {
            self.entries.insert(nid.0, NodeInfo::clean(entry));
        }
    }

    /// Drops clean entries when there are too many.
    fn evict(&mut self) {
        if self.entries.len() >= self.limit.saturating_add(self.dirty.len()) {
            self.entries.retain(|_, info| info.dirty);
            invariant!(
                self.entries.len() == self.dirty.len(),
                "changed entries stay in memory until a checkpoint has them"
            );
        }
    }

    /// A node moves, begins or ends (`set_node_addr`). The entry that was known until now is that of
    /// [`Nat::known`]. `fsync`: the block that is written has an fsync mark.
    pub(crate) fn set(&mut self, nid: Nid, known: NatEntry, at: BlockAddr, ino: Nid, fsync: bool) {
        let info = self.entries.entry(nid.0).or_insert(NodeInfo::clean(known));
        invariant!(
            info.entry.block_addr == known.block_addr,
            "node {}: who moves it from {:?} knows where it is: {:?}",
            nid.0,
            known.block_addr,
            info.entry.block_addr
        );
        let is_removed = at == BlockAddr::NULL && info.entry.block_addr != BlockAddr::NEW;
        if at == BlockAddr::NEW {
            info.entry.version = 0;
            info.entry.ino = ino;
        } else if is_removed {
            info.entry.version = info.entry.version.wrapping_add(1);
        }
        info.entry.block_addr = at;
        info.dirty = true;
        info.checkpointed &= at.is_block();
        if fsync && nid == ino {
            info.fsynced_inode = true;
        }
        self.dirty.insert(nid.0);
        if let Some(of_inode) = self.entries.get_mut(&ino.0) {
            of_inode.last_fsync = fsync;
        }
    }

    /// The block of a node lies elsewhere, and the node is the same. The entry that was known until now is that of
    /// [`Nat::known`].
    pub(crate) fn relocate(&mut self, nid: Nid, known: NatEntry, at: BlockAddr) {
        let info = self.entries.entry(nid.0).or_insert(NodeInfo::clean(known));
        invariant!(
            info.entry.block_addr == known.block_addr,
            "node {}: who relocates it knows where it is",
            nid.0
        );
        info.entry.block_addr = at;
        info.dirty = true;
        self.dirty.insert(nid.0);
    }

    /// Whether the last checkpoint has a node as it is (`f2fs_is_checkpointed_node`).
    pub(crate) fn is_checkpointed(&self, nid: Nid) -> bool {
        self.entries.get(&nid.0).is_none_or(|info| info.checkpointed)
    }

    /// Whether roll-forward must make the name of an inode again (`f2fs_need_dentry_mark`).
    pub(crate) fn needs_dentry_mark(&self, ino: Nid) -> bool {
        self.entries.get(&ino.0).is_some_and(|info| !info.checkpointed && !info.fsynced_inode)
    }

    /// Whether an fsync must write the inode itself as well (`f2fs_need_inode_block_update`).
    pub(crate) fn needs_inode_update(&self, ino: Nid) -> bool {
        self.entries
            .get(&ino.0)
            .is_none_or(|info| !(info.last_fsync && (info.checkpointed || info.fsynced_inode)))
    }

    /// Entries that changed since the last checkpoint.
    pub(crate) fn dirty_entries(&self) -> usize {
        self.dirty.len()
    }

    /// Entries that the next checkpoint pack holds.
    pub(crate) const fn journal(&self) -> &NatJournal {
        &self.journal
    }

    pub(crate) const fn version_bitmap(&self) -> &VersionBitmap {
        &self.version_bitmap
    }

    /// Puts changed entries into the journal; those that find no room there are returned by NAT block, with what else
    /// the journal had of these blocks. All are clean then: the checkpoint that asked has them
    /// (`f2fs_flush_nat_entries`). With `all` the journal is left empty, as NAT bits need it. The caller says when the
    /// blocks have them ([`Nat::end_flush`]).
    pub(crate) fn flush_entries(&mut self, all: bool) -> BTreeMap<u32, Vec<(Nid, NatEntry)>> {
        let mut changed: BTreeMap<u32, NatEntry> = BTreeMap::new();
        for nid in std::mem::take(&mut self.dirty) {
            let info = self.entries.get_mut(&nid);
            invariant!(info.is_some(), "node {nid}: a changed entry is in memory");
            let Some(info) = info else { continue };
            *info = NodeInfo::clean(info.entry);
            changed.insert(nid, info.entry);
        }
        let fresh = changed.keys().filter(|nid| self.journalled(Nid(**nid)).is_none()).count();
        if all || self.journal.entries.len() + fresh > NAT_JOURNAL_ENTRIES {
            for (nid, entry) in self.journal.entries.drain(..) {
                changed.entry(nid.0).or_insert(entry);
            }
        }
        invariant!(
            changed.iter().all(|(nid, entry)| self.is_newest(*nid, entry)),
            "a checkpoint gets the newest entry of each node"
        );
        let mut sets: BTreeMap<u32, Vec<(Nid, NatEntry)>> = BTreeMap::new();
        for (nid, entry) in changed {
            sets.entry(self.layout.nat_place(Nid(nid)).0).or_default().push((Nid(nid), entry));
        }
        if !all {
            self.fill_journal(&mut sets);
        }
        let left = sets.values().flatten();
        self.flushing = left.map(|(nid, entry)| (nid.0, *entry)).collect();
        sets
    }

    /// Whether memory has no other entry of a node.
    fn is_newest(&self, nid: u32, entry: &NatEntry) -> bool {
        self.entries.get(&nid).is_none_or(|info| info.entry == *entry)
    }

    /// Whether a node's entry has changed since the last checkpoint.
    pub(crate) fn is_changed(&self, nid: u32) -> bool {
        self.dirty.contains(&nid)
    }

    /// What [`Nat::flush_entries`] returned is in NAT blocks.
    pub(crate) fn end_flush(&mut self) {
        self.flushing.clear();
    }

    /// Moves sets into the journal, small ones first, as far as there is room.
    fn fill_journal(&mut self, sets: &mut BTreeMap<u32, Vec<(Nid, NatEntry)>>) {
        let mut order: Vec<u32> = sets.keys().copied().collect();
        order.sort_by_key(|block| sets[block].len());
        for block in order {
            let set = &sets[&block];
            let fresh = set.iter().filter(|(nid, _)| self.journalled(*nid).is_none()).count();
            if self.journal.entries.len() + fresh <= NAT_JOURNAL_ENTRIES {
                for (nid, entry) in sets.remove(&block).unwrap_or_default() {
                    self.journal.entries.retain(|(known, _)| *known != nid);
                    self.journal.entries.push((nid, entry));
                }
            }
        }
    }

    /// The other copy of a block of the NAT is current from the next checkpoint on; where it lies. `in_place` keeps
    /// the same copy, which breaks a rule.
    pub(crate) fn flip_block(&mut self, block: u32, in_place: bool) -> BlockAddr {
        if !in_place {
            self.version_bitmap.flip(block);
        }
        self.current_block(block)
    }
}

#[cfg(test)]
mod tests;
