//! What recovery does with file-level records: each file becomes what its record says.
//!
//! All blocks and inode numbers that the records name are taken first, so that nothing that recovery
//! allocates (a block of a directory) can be one of them. Every step may be done twice, as happens
//! when power goes before the records are given up.
//!
//! Invariant: what a file had is its own after the record was applied, or free.

use crate::contract::{FsError, Result};
use crate::ext4::dir::Search;
use crate::ext4::error::corrupt;
use crate::ext4::file_commit::Nodes;
use crate::ext4::format::{self, ExtentEntries, ExtentNode, Place};
use crate::ext4::journal::{FileRecord, NewName};
use crate::ext4::meta::Meta;
use crate::ext4::namei::NAME_CREDITS;
use crate::ext4::volume::Volume;
use nandscape_rt::invariant;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

/// Credits of a change of one group's bits: its bitmap and its descriptor.
const GROUP_CREDITS: u32 = 2;

/// The blocks of a file: runs of data, and the blocks of its tree.
#[derive(Default)]
struct Blocks {
    data: Vec<Range<u64>>,
    nodes: Vec<u64>,
}

impl Blocks {
    fn all(&self) -> impl Iterator<Item = Range<u64>> {
        self.data.iter().cloned().chain(self.nodes.iter().map(|&node| node..node + 1))
    }
}

/// A record, and what it says.
struct File {
    record: FileRecord,
    raw: format::Inode,
    blocks: Blocks,
}

impl Volume {
    /// Makes each file what its record says, and gives up the records.
    pub(in crate::ext4) async fn apply_files(&self, records: Vec<FileRecord>) -> Result<()> {
        let mut files = Vec::new();
        for record in records {
            files.push(self.meta.read_record(record).await?);
        }
        for file in &files {
            self.meta.take_named(file).await?;
        }
        for file in &files {
            self.apply(file).await?;
        }
        Ok(self.meta.journal.files_applied().await?)
    }

    /// Writes a file as its record has it, with its names, and frees blocks that it no longer has: one
    /// transaction, so that nothing is freed twice.
    async fn apply(&self, file: &File) -> Result<()> {
        let record = &file.record;
        let old = self.meta.blocks_before(file).await?;
        let lost = lost_runs(&old, &file.blocks);
        invariant!(
            is_covered(&old, &file.blocks, &lost),
            "inode {}: what it had is its own, or freed",
            record.inode
        );
        // Runs of one group change the same two blocks, however many there are.
        let groups: BTreeSet<u32> = lost.iter().flat_map(|run| self.meta.groups_in(run)).collect();
        let names = NAME_CREDITS * record.names.len() as u32;
        let credits = 4 + names + record.nodes.len() as u32 + GROUP_CREDITS * groups.len() as u32;
        let tx = self.meta.begin(credits, old.nodes.len() as u32).await?;
        for (block, content) in &record.nodes {
            let buffer = tx.fresh(*block)?;
            tx.change(&buffer, |bytes| bytes.copy_from_slice(&content[..]))?;
        }
        let image = self.image(file).await;
        let (block, slot) = self.meta.inode_slot(record.inode)?;
        let buffer = self.meta.read_block(block).await?;
        tx.edit(&buffer, |bytes| bytes[slot].copy_from_slice(&image)).await?;
        for name in &record.names {
            self.apply_name(&tx, file, name).await?;
        }
        for run in lost {
            if old.nodes.contains(&run.start) {
                tx.forget(run.start)?;
            }
            self.meta.alloc.free_blocks(&self.meta, &tx, run).await?;
        }
        tx.stop();
        self.inodes.remove(record.inode);
        Ok(())
    }

    /// The inode as its record has it, but in the list of orphans exactly if it is there now.
    async fn image(&self, File { record, raw, .. }: &File) -> Vec<u8> {
        let dtime = self.orphans.after(record.inode).await.unwrap_or(0);
        let raw = format::Inode { dtime, ..raw.clone() };
        let seed = raw.seed(record.inode, &self.meta.sb.borrow());
        let mut image = record.image.clone();
        raw.encode(&mut image, seed);
        image
    }

    async fn apply_name(
        &self,
        tx: &crate::ext4::tx::Tx,
        file: &File,
        NewName { parent, name, .. }: &NewName,
    ) -> Result<()> {
        let no_directory = || corrupt("record of a file: its directory", Place::Inode(*parent));
        let dir = self.inode(*parent).await.map_err(|error| match error {
            FsError::NoEntry => no_directory(),
            other => other,
        })?;
        if !dir.is_dir() {
            return Err(no_directory());
        }
        match self.meta.search(&dir, name).await? {
            Search::Found(found) if found.inode() == file.record.inode => Ok(()),
            Search::Found(_) => {
                Err(corrupt("record of a file: its name is taken", Place::Inode(*parent)))
            }
            Search::Vacant(free_slot) => {
                self.meta
                    .add_name(tx, &dir, free_slot, name, file.record.inode, file.raw.mode)
                    .await?;
                dir.touch(self.env.now(), true);
                self.meta.write_inode(tx, &dir, true).await
            }
        }
    }
}

impl Meta {
    async fn read_record(&self, record: FileRecord) -> Result<File> {
        let place = Place::Inode(record.inode);
        let raw = format::Inode::parse(&record.image, record.inode, &self.sb.borrow())?;
        if raw.generation != record.generation
            || record.image.len() != self.sb.borrow().inode_bytes()
            || !self.is_ordinary(record.inode)
        {
            return Err(corrupt("record of a file: inode", place));
        }
        for (block, _) in &record.nodes {
            self.alloc.system_zone.check(*block..block + 1, place)?;
        }
        let blocks = self.blocks_of_tree(&raw, place, &record.nodes).await?;
        Ok(File { record, raw, blocks })
    }

    /// The blocks of a file whose tree is partly in `nodes`, and else on the volume.
    async fn blocks_of_tree(
        &self,
        raw: &format::Inode,
        place: Place,
        nodes: &Nodes,
    ) -> Result<Blocks> {
        let known: BTreeMap<u64, _> = nodes.iter().map(|(block, bytes)| (*block, bytes)).collect();
        let mut blocks = Blocks::default();
        let mut left = vec![ExtentNode::parse(&raw.map, place)?];
        while let Some(node) = left.pop() {
            self.alloc.system_zone.check_node(&node, place)?;
            match node.entries {
                ExtentEntries::Leaf(extents) => {
                    blocks.data.extend(extents.iter().map(|extent| extent.start..extent.end()));
                }
                ExtentEntries::Index { depth, entries } => {
                    for entry in entries {
                        blocks.nodes.push(entry.node);
                        let below = match known.get(&entry.node) {
                            Some(bytes) => ExtentNode::parse(&bytes[..], place)?,
                            None => {
                                let buffer = self.read_block(entry.node).await?;
                                buffer.with(|bytes| ExtentNode::parse(bytes, place))?
                            }
                        };
                        if below.depth() + 1 != depth {
                            return Err(corrupt("record of a file: depth of its tree", place));
                        }
                        left.push(below);
                    }
                }
            }
        }
        Ok(blocks)
    }

    /// Takes what a record names: the inode number, and its blocks.
    async fn take_named(&self, file: &File) -> Result<()> {
        let tx = self.begin(GROUP_CREDITS * 2, 0).await?;
        self.alloc.claim_inode(self, &tx, file.record.inode).await?;
        tx.stop();
        for run in file.blocks.all() {
            let groups = self.groups_in(&run).count() as u32;
            let tx = self.begin(GROUP_CREDITS * 2 * groups, 0).await?;
            self.alloc.claim_blocks(self, &tx, run).await?;
            tx.stop();
        }
        Ok(())
    }

    fn groups_in(&self, run: &Range<u64>) -> RangeInclusive<u32> {
        let sb = self.sb.borrow();
        sb.group_of(run.start)..=sb.group_of(run.end.max(1) - 1)
    }

    /// The blocks that the file has on the volume now; none if it is new there.
    async fn blocks_before(&self, file: &File) -> Result<Blocks> {
        let number = file.record.inode;
        let (block, slot) = self.inode_slot(number)?;
        let buffer = self.read_block(block).await?;
        let bytes = buffer.with(|bytes| bytes[slot].to_vec());
        let Ok(old) = format::Inode::parse(&bytes, number, &self.sb.borrow()) else {
            return Ok(Blocks::default());
        };
        if old.generation != file.record.generation || old.links_count == 0 {
            return Ok(Blocks::default());
        }
        self.blocks_of_tree(&old, Place::Inode(number), &Nodes::new()).await
    }
}

/// What a file had and has no more; blocks of its tree one by one.
fn lost_runs(old: &Blocks, new: &Blocks) -> Vec<Range<u64>> {
    let mut kept: Vec<Range<u64>> = new.all().collect();
    kept.sort_unstable_by_key(|run| run.start);
    old.all().flat_map(|run| without(run, &kept)).collect()
}

/// Whether all that a file had is what it has, or lost.
fn is_covered(old: &Blocks, new: &Blocks, lost: &[Range<u64>]) -> bool {
    let mut known: Vec<Range<u64>> = new.all().chain(lost.iter().cloned()).collect();
    known.sort_unstable_by_key(|run| run.start);
    old.all().all(|run| without(run, &known).is_empty())
}

/// The parts of a run that lie in none of the others, which are in order.
fn without(run: Range<u64>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    let mut at = run.start;
    for other in others.iter().filter(|other| other.end > run.start && other.start < run.end) {
        if other.start > at {
            parts.push(at..other.start);
        }
        at = at.max(other.end);
    }
    if at < run.end {
        parts.push(at..run.end);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of a run is what no other covers.
    #[test]
    fn runs_lose_what_others_cover() {
        let all = Vec::from_iter(std::iter::once(5..10));
        assert_eq!(without(5..10, &[]), all);
        assert_eq!(without(5..10, &[0..5, 10..20]), all);
        assert_eq!(without(5..10, &[0..6, 7..8, 9..20]), [6..7, 8..9]);
        assert!(without(5..10, &[5..7, 7..10]).is_empty());
    }
}
