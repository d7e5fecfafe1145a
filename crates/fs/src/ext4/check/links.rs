//! Connections: every file has the names that it says, every directory leads up to the root, orphans
//! are in their list, and the orphan file is one of whole blocks without holes that names no orphan.

use super::checker::{Checker, InodeFacts};
use crate::ext4::format::*;
use nandscape_block::BlockError;
use std::collections::{BTreeMap, BTreeSet};

/// More links than a directory can count; it says 1 then.
const DIR_LINKS_MAX: u32 = 65_000;

impl Checker {
    /// The orphan file.
    pub(super) async fn check_orphan_file(
        &mut self,
        number: u32,
        inode: &Inode,
        extents: &[Extent],
    ) -> Result<(), BlockError> {
        let place = Place::Inode(number);
        let mapped = extent_blocks(extents);
        if inode.file_type() != mode::REGULAR || inode.size != mapped * BLOCK_BYTES as u64 {
            let what = format!("the orphan file has {} bytes and {mapped} blocks", inode.size);
            self.report.find(place, what);
        }
        let seed = inode.seed(number, &self.sb);
        let blocks = extents.iter().flat_map(|run| run.start..run.end());
        for block in blocks.filter(|block| *block < self.sb.blocks_count).collect::<Vec<_>>() {
            let bytes = self.read(block).await?;
            let place = Place::InodeBlock { inode: number, block };
            let sound = check_orphan_block(&bytes, block, seed, place);
            self.report.sound(place, sound);
        }
        Ok(())
    }

    /// Follows the list of inodes that wait to be deleted or truncated.
    pub(super) async fn check_orphans(&mut self) -> Result<(), BlockError> {
        let (mut next, mut listed) = (self.sb.last_orphan, BTreeSet::new());
        while next != 0 {
            let at = self.sb.inode_place(next).filter(|_| next >= self.sb.first_ino);
            let Some(at) = at.filter(|at| self.has_table(at.group) && listed.insert(next)) else {
                let what = format!("the orphan list refers to inode {next}");
                self.report.find(Place::Superblock(0), what);
                break;
            };
            let block = at.block(&self.sb);
            let bytes = self.read_table(at.group, block, block + 1).await?;
            let bytes = &bytes[at.offset(&self.sb)..][..self.sb.inode_bytes()];
            let parsed = Inode::parse(bytes, next, &self.sb);
            let Some(inode) = self.report.sound(Place::Inode(next), parsed) else { break };
            if inode.links_count == 0 {
                self.check_in_use(next, &inode, bytes, true).await?;
            }
            self.report.orphans += 1;
            next = inode.dtime;
        }
        // What orphaned directories hold is not looked into.
        self.directories.clear();
        for (number, what) in std::mem::take(&mut self.unexplained) {
            if !listed.contains(&number) {
                self.report.find(Place::Inode(number), format!("{what}, and is no orphan"));
            }
        }
        Ok(())
    }

    /// Counts names, and walks up from every directory.
    pub(super) fn check_links(&mut self) {
        let mut connected = BTreeSet::from([ROOT_INODE]);
        let inodes = std::mem::take(&mut self.inodes);
        let ordinary = |number: &u32| *number >= self.sb.first_ino || *number == ROOT_INODE;
        for (&number, seen) in
            inodes.iter().filter(|(number, seen)| ordinary(number) && !seen.orphan)
        {
            let place = Place::Inode(number);
            let many = seen.is_dir() && seen.links == 1 && seen.names > DIR_LINKS_MAX;
            if self.sb.is_orphan_file(number) {
                if seen.names > 0 || seen.is_dir() {
                    self.report.find(place, "is the orphan file, and has a name or is a directory");
                }
                continue;
            }
            if seen.names == 0 {
                self.report.find(place, "is in use, but has no name");
            } else if u32::from(seen.links) != seen.names && !many {
                let what = format!("link count is {}, counted {}", seen.links, seen.names);
                self.report.find(place, what);
            }
            if !seen.is_dir() {
                continue;
            }
            if !leads_up(number, &inodes, &mut connected) {
                self.report.find(place, "is a directory that is not reachable from the root");
            }
            let above = if number == ROOT_INODE { Some(ROOT_INODE) } else { seen.parent };
            if seen.above != above {
                let what = format!(".. refers to {:?}, but the name is in {above:?}", seen.above);
                self.report.find(place, what);
            }
        }
        self.inodes = inodes;
        for (block, (said, counted)) in std::mem::take(&mut self.shared) {
            if said != counted {
                let what = format!("reference count is {said}, counted {counted}");
                self.report.find(Place::Block(block), what);
            }
        }
    }
}

/// Whether the directories above one lead to one that is known to be connected; they are then.
fn leads_up(
    number: u32,
    inodes: &BTreeMap<u32, InodeFacts>,
    connected: &mut BTreeSet<u32>,
) -> bool {
    let (mut at, mut path) = (number, BTreeSet::new());
    while !connected.contains(&at) {
        let parent = inodes.get(&at).and_then(|seen| seen.parent);
        let Some(parent) = parent.filter(|_| path.insert(at)) else { return false };
        at = parent;
    }
    connected.append(&mut path);
    true
}
