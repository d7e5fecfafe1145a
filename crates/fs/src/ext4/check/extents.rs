//! Trees of extents: sound nodes, in order, inside the volume, and no other file's.

use super::checker::Checker;
use crate::ext4::format::*;
use nandscape_block::BlockError;

/// Entries that a node may have room for and not say so.
const ROOM_LEFT_MAX: u16 = 2;

impl Checker {
    /// Follows a file's tree. Gives its extents in order, and how many blocks they and the tree take.
    pub(super) async fn check_extents(
        &mut self,
        number: u32,
        inode: &Inode,
    ) -> Result<(Vec<Extent>, u64), BlockError> {
        let place = Place::Inode(number);
        let (mut extents, mut blocks) = (Vec::new(), 0);
        let root = ExtentNode::parse(&inode.map, place);
        let Some(root) = self.report.sound(place, root) else { return Ok((extents, blocks)) };
        self.check_room(place, &root, ROOT_ENTRIES);
        // Nodes still to be entered, the next one last.
        let mut waiting = below(&root);
        extents.extend(extents_of(root));
        while let Some(next) = waiting.pop() {
            let place = Place::InodeBlock { inode: number, block: next.entry.node };
            if !self.claim(next.entry.node, 1, place) {
                continue;
            }
            blocks += 1;
            if let Some(node) = self.read_node(number, inode, &next).await? {
                waiting.extend(below(&node));
                extents.extend(extents_of(node));
            }
        }
        self.claim_extents(number, &extents);
        blocks += extent_blocks(&extents);
        Ok((extents, blocks))
    }

    /// A node below the root, if it can be followed.
    async fn read_node(
        &mut self,
        number: u32,
        inode: &Inode,
        next: &ChildNode,
    ) -> Result<Option<ExtentNode>, BlockError> {
        let block = next.entry.node;
        let place = Place::InodeBlock { inode: number, block };
        let bytes = self.read(block).await?;
        let parsed = ExtentNode::parse(&bytes[..], place);
        let Some(node) = self.report.sound(place, parsed) else { return Ok(None) };
        let sealed = check_extent_block(&bytes[..], inode.seed(number, &self.sb), place);
        self.report.sound(place, sealed);
        if node.depth() != next.depth {
            self.report.find(place, "is at another depth than the node above says");
            return Ok(None);
        }
        if first_of(&node).is_some_and(|first| first != next.entry.logical) {
            self.report.find(place, "begins at another block of the file than the node above says");
        }
        self.check_room(place, &node, NODE_ENTRIES);
        Ok(Some(node))
    }

    /// Linux's nodes have room for as many entries as fit, or a few less.
    fn check_room(&mut self, place: Place, node: &ExtentNode, fit: u16) {
        if node.max + ROOM_LEFT_MAX < fit {
            self.report.find(place, format!("has room for {} entries, not {fit}", node.max));
        }
    }

    fn claim_extents(&mut self, number: u32, extents: &[Extent]) {
        let place = Place::Inode(number);
        let mut free_from = 0;
        for extent in extents {
            if u64::from(extent.logical) < free_from {
                let what = format!("block {} of the file is mapped twice", extent.logical);
                self.report.find(place, what);
            }
            free_from = extent.logical_end();
            self.claim(extent.start, extent.blocks.into(), place);
        }
    }
}

/// A node to be entered: the entry that leads to it, and its depth.
struct ChildNode {
    entry: ExtentIndex,
    depth: u16,
}

/// The nodes below one, the first one last.
fn below(node: &ExtentNode) -> Vec<ChildNode> {
    match &node.entries {
        ExtentEntries::Leaf(_) => Vec::new(),
        ExtentEntries::Index { depth, entries } => {
            entries.iter().rev().map(|&entry| ChildNode { entry, depth: depth - 1 }).collect()
        }
    }
}

fn extents_of(node: ExtentNode) -> Vec<Extent> {
    match node.entries {
        ExtentEntries::Leaf(extents) => extents,
        ExtentEntries::Index { .. } => Vec::new(),
    }
}

/// The first block of the file that a node speaks of.
fn first_of(node: &ExtentNode) -> Option<u32> {
    match &node.entries {
        ExtentEntries::Leaf(extents) => extents.first().map(|extent| extent.logical),
        ExtentEntries::Index { entries, .. } => entries.first().map(|entry| entry.logical),
    }
}
