//! Trees of extents: sound nodes, in order, inside the volume, and nobody else's.

use super::volume::Volume;
use crate::ext4::format::*;
use nandscape_block::BlockError;

impl Volume {
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
        let seed = inode.seed(number, &self.sb);
        // Nodes still to be entered, the next one last.
        let mut waiting: Vec<(u64, u16)> = Vec::new();
        let mut node = root;
        loop {
            match node.entries {
                ExtentEntries::Leaf(leaf) => extents.extend(leaf),
                ExtentEntries::Index { depth, entries } => {
                    waiting.extend(entries.iter().rev().map(|entry| (entry.node, depth - 1)));
                }
            }
            let Some((block, depth)) = waiting.pop() else { break };
            let place = Place::InodeBlock { inode: number, block };
            node = ExtentNode::empty_root();
            if !self.claim(block, 1, place) {
                continue;
            }
            blocks += 1;
            let bytes = self.read(block).await?;
            let parsed = ExtentNode::parse(&bytes[..], place);
            let Some(parsed) = self.report.sound(place, parsed) else { continue };
            let sealed = check_extent_block(&bytes[..], seed, place);
            self.report.sound(place, sealed);
            if parsed.depth() != depth {
                self.report.find(place, "is at another depth than the node above says");
                continue;
            }
            node = parsed;
        }
        self.claim_extents(number, &extents);
        blocks += extents.iter().map(|extent| u64::from(extent.blocks)).sum::<u64>();
        Ok((extents, blocks))
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
