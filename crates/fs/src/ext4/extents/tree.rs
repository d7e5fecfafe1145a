//! The way down an extent tree, and changes on the way back up.

use super::leaf;
use crate::contract::{FsError, Result};
use crate::ext4::error::corrupt;
use crate::ext4::format::{
    BLOCK_BYTES, DEPTH_MAX, Extent, ExtentEntries, ExtentIndex, ExtentNode, NODE_ENTRIES, Place,
    ROOT_ENTRIES, check_extent_block, flag, seal_extent_block,
};
use crate::ext4::inode::Inode;
use crate::ext4::meta::Meta;
use crate::ext4::tx::{BufferRef, Holds, Tx, verify};
use nandscape_rt::{defect, invariant};
use smallvec::SmallVec;

/// A node on the way down.
struct Step {
    /// Where the node is; the root is in the inode.
    buffer: Option<BufferRef>,
    node: ExtentNode,
    /// The entry by which the way goes on.
    child: usize,
}

/// The nodes from the root to a leaf.
pub(super) struct Path(SmallVec<[Step; 1]>);

impl Path {
    /// The last node.
    pub(super) fn leaf(&self) -> &ExtentNode {
        &self.0[self.0.len() - 1].node
    }

    /// The first block that the leaf does not speak of.
    pub(super) fn next_key(&self) -> u64 {
        let next = self.0.iter().rev().find_map(|step| match &step.node.entries {
            ExtentEntries::Leaf(_) => None,
            ExtentEntries::Index { entries, .. } => entries.get(step.child + 1),
        });
        next.map_or(1 << 32, |entry| u64::from(entry.logical))
    }
}

/// How many entries, whichever kind.
fn count(entries: &ExtentEntries) -> usize {
    match entries {
        ExtentEntries::Leaf(extents) => extents.len(),
        ExtentEntries::Index { entries, .. } => entries.len(),
    }
}

/// The first block that the entries speak of.
fn first_key(entries: &ExtentEntries) -> Option<u32> {
    match entries {
        ExtentEntries::Leaf(extents) => extents.first().map(|extent| extent.logical),
        ExtentEntries::Index { entries, .. } => entries.first().map(|entry| entry.logical),
    }
}

/// Takes the entries from `at` on.
fn split_off(entries: &mut ExtentEntries, at: usize) -> ExtentEntries {
    match entries {
        ExtentEntries::Leaf(extents) => ExtentEntries::Leaf(extents.split_off(at)),
        ExtentEntries::Index { depth, entries } => {
            ExtentEntries::Index { depth: *depth, entries: entries.split_off(at) }
        }
    }
}

/// What a change of a node means for the node above.
enum ParentUpdate {
    Nothing,
    /// The node begins elsewhere now.
    Key(u32),
    /// The node is gone.
    Gone,
    /// The node begins here, and has a new neighbour behind it.
    Also {
        key: u32,
        entry: ExtentIndex,
    },
}

impl ParentUpdate {
    /// Where the node begins, if that may have changed.
    const fn first_key(&self) -> Option<u32> {
        match self {
            Self::Nothing | Self::Gone => None,
            Self::Key(key) | Self::Also { key, .. } => Some(*key),
        }
    }
}

impl Meta {
    fn root_of(inode: &Inode) -> Result<ExtentNode> {
        let raw = inode.raw.borrow();
        if !raw.has(flag::EXTENTS) {
            return Err(FsError::Unsupported("a file without extents"));
        }
        Ok(ExtentNode::parse(&raw.map, Place::Inode(inode.number))?)
    }

    /// Whether the root has this extent, or leads to what has.
    pub(super) fn is_of_root(inode: &Inode, extent: &Extent) -> bool {
        let range = extent.logical.into()..extent.logical_end();
        match Self::root_of(inode).map(|root| root.entries) {
            Ok(ExtentEntries::Leaf(extents)) => {
                extents.iter().any(|known| leaf::part(known, &range) == Some(*extent))
            }
            _ => true,
        }
    }

    /// The way to the leaf that speaks of a block.
    pub(super) async fn path(&self, inode: &Inode, logical: u64) -> Result<Path> {
        let mut node = Self::root_of(inode)?;
        let mut buffer = None;
        let mut steps = SmallVec::new();
        loop {
            let ExtentEntries::Index { depth, entries } = &node.entries else {
                steps.push(Step { buffer, node, child: 0 });
                return Ok(Path(steps));
            };
            let behind = entries.partition_point(|entry| u64::from(entry.logical) <= logical);
            // What comes before the first entry belongs to it, too.
            let child = behind.saturating_sub(1);
            let (depth, block) = (*depth, entries[child].node);
            steps.push(Step { buffer, node, child });
            let below = self.read_block(block).await?;
            node = self.parse_node(inode, &below, block)?;
            if node.depth() + 1 != depth {
                return Err(corrupt("extent tree: depth", Place::Block(block)));
            }
            buffer = Some(below);
        }
    }

    fn parse_node(&self, inode: &Inode, buffer: &BufferRef, block: u64) -> Result<ExtentNode> {
        let place = Place::InodeBlock { inode: inode.number, block };
        let seed = inode.seed;
        let node = buffer.with(|bytes| ExtentNode::parse(bytes, place))?;
        verify(buffer, Holds::Extents, seed, |bytes| {
            check_extent_block(bytes, seed, place)?;
            self.alloc.system_zone.check_node(&node, place)
        })?;
        Ok(node)
    }

    /// Changes the list of extents of the leaf that speaks of a block.
    pub(super) async fn edit_leaf(
        &self,
        tx: &Tx,
        inode: &Inode,
        logical: u64,
        edit: impl FnOnce(&mut Vec<Extent>),
    ) -> Result<()> {
        inode.found.forget();
        let mut root = Self::root_of(inode)?;
        let ExtentEntries::Leaf(extents) = &mut root.entries else {
            return Box::pin(self.edit_leaf_below(tx, inode, logical, edit)).await;
        };
        edit(extents);
        if extents.len() > usize::from(root.max) {
            return Box::pin(self.deepen_root(tx, inode, root)).await;
        }
        root.encode(&mut inode.raw.borrow_mut().map);
        Ok(())
    }

    /// The same where the leaf has a separate block.
    async fn edit_leaf_below(
        &self,
        tx: &Tx,
        inode: &Inode,
        logical: u64,
        edit: impl FnOnce(&mut Vec<Extent>),
    ) -> Result<()> {
        let Path(mut steps) = self.path(inode, logical).await?;
        match steps.last_mut().map(|step| &mut step.node.entries) {
            Some(ExtentEntries::Leaf(extents)) => edit(extents),
            _ => return Err(defect!("a path ends at a leaf").into()),
        }
        while let Some(step) = steps.pop() {
            let above = match &step.buffer {
                Some(buffer) => {
                    let buffer = buffer.clone();
                    self.store_block(tx, inode, &buffer, step.node).await?
                }
                None => {
                    self.store_root(tx, inode, step.node).await?;
                    ParentUpdate::Nothing
                }
            };
            let Some(parent) = steps.last_mut() else { break };
            let ExtentEntries::Index { entries, .. } = &mut parent.node.entries else {
                return Err(defect!("what is above a node is an index").into());
            };
            let first = above.first_key();
            let is_done = match above {
                ParentUpdate::Nothing => true,
                ParentUpdate::Key(key) if entries[parent.child].logical == key => true,
                ParentUpdate::Key(key) => {
                    entries[parent.child].logical = key;
                    false
                }
                ParentUpdate::Gone => {
                    entries.remove(parent.child);
                    false
                }
                ParentUpdate::Also { key, entry } => {
                    entries[parent.child].logical = key;
                    entries.insert(parent.child + 1, entry);
                    false
                }
            };
            invariant!(
                first.is_none_or(|key| key == entries[parent.child].logical),
                "inode {}: an index names the first block below it",
                inode.number
            );
            if is_done {
                break;
            }
        }
        self.shrink_root(tx, inode).await
    }

    async fn store_block(
        &self,
        tx: &Tx,
        inode: &Inode,
        buffer: &BufferRef,
        mut node: ExtentNode,
    ) -> Result<ParentUpdate> {
        if count(&node.entries) == 0 {
            self.free_metadata(tx, inode, buffer.block()).await?;
            return Ok(ParentUpdate::Gone);
        }
        let Some(key) = first_key(&node.entries) else {
            return Err(defect!("a node that has entries begins somewhere").into());
        };
        let mut above = ParentUpdate::Key(key);
        if count(&node.entries) > usize::from(node.max) {
            let behind = split_off(&mut node.entries, usize::from(node.max) / 2 + 1);
            let entry = self.new_node(tx, inode, behind, buffer.block()).await?;
            above = ParentUpdate::Also { key, entry };
        }
        tx.access(buffer).await?;
        let seed = inode.seed;
        tx.change(buffer, |bytes| {
            node.encode(bytes);
            seal_extent_block(bytes, seed);
        })?;
        Ok(above)
    }

    /// Puts entries into a separate block.
    async fn new_node(
        &self,
        tx: &Tx,
        inode: &Inode,
        entries: ExtentEntries,
        goal: u64,
    ) -> Result<ExtentIndex> {
        let Some(logical) = first_key(&entries) else {
            return Err(defect!("a new node has entries").into());
        };
        let block = self.take_metadata(tx, inode, goal).await?;
        let buffer = tx.fresh(block)?;
        let node = ExtentNode::block_of(entries);
        let seed = inode.seed;
        tx.change(&buffer, |bytes| {
            node.encode(bytes);
            seal_extent_block(bytes, seed);
        })?;
        Ok(ExtentIndex { logical, node: block })
    }

    async fn store_root(&self, tx: &Tx, inode: &Inode, mut root: ExtentNode) -> Result<()> {
        if count(&root.entries) == 0 {
            root = ExtentNode::empty_root();
        }
        if count(&root.entries) > usize::from(root.max) {
            return self.deepen_root(tx, inode, root).await;
        }
        root.encode(&mut inode.raw.borrow_mut().map);
        Ok(())
    }

    /// Moves what no longer fits the root into a separate block.
    async fn deepen_root(&self, tx: &Tx, inode: &Inode, mut root: ExtentNode) -> Result<()> {
        let depth = root.depth() + 1;
        if depth > DEPTH_MAX {
            return Err(corrupt("extent tree: depth", Place::Inode(inode.number)));
        }
        let goal = self.home_of(inode);
        let below = self.new_node(tx, inode, root.entries, goal).await?;
        root.entries = ExtentEntries::Index { depth, entries: vec![below] };
        root.encode(&mut inode.raw.borrow_mut().map);
        Ok(())
    }

    /// Takes a single leaf below the root into it, if it fits.
    async fn shrink_root(&self, tx: &Tx, inode: &Inode) -> Result<()> {
        let root = ExtentNode::parse(&inode.raw.borrow().map, Place::Inode(inode.number))?;
        let ExtentEntries::Index { depth: 1, entries } = &root.entries else { return Ok(()) };
        let &[only] = &entries[..] else { return Ok(()) };
        let buffer = self.read_block(only.node).await?;
        let below = self.parse_node(inode, &buffer, only.node)?;
        if count(&below.entries) > usize::from(ROOT_ENTRIES) {
            return Ok(());
        }
        let root = ExtentNode { entries: below.entries, ..ExtentNode::empty_root() };
        root.encode(&mut inode.raw.borrow_mut().map);
        self.free_metadata(tx, inode, only.node).await
    }

    /// Takes a block for a node, a directory or attributes, and charges the inode with it.
    pub(crate) async fn take_metadata(&self, tx: &Tx, inode: &Inode, goal: u64) -> Result<u64> {
        let taken = self.alloc.take_blocks(self, tx, goal, 1).await?;
        inode.add_blocks(1);
        Ok(taken.start)
    }

    /// Frees such a block.
    pub(crate) async fn free_metadata(&self, tx: &Tx, inode: &Inode, block: u64) -> Result<()> {
        tx.forget(block)?;
        self.alloc.free_blocks(self, tx, block..block + 1).await?;
        inode.add_blocks(-1);
        Ok(())
    }
}

const _: () = assert!(NODE_ENTRIES as usize * 12 + 16 <= BLOCK_BYTES);
