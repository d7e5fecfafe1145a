//! How an index comes to be and grows: a full block of names is split by hash, a full node of the
//! index in the middle, and a full root moves its pairs one level down (Linux's `do_split`,
//! `ext4_dx_add_entry`, `make_indexed_dir`).

use super::super::error::corrupt;
use super::super::format::{
    BlockMut, INDEX_LEVELS_MAX, IndexEntry, IndexNode, IndexRoot, Place, dir_entries, flag,
    index_limit, init_first_dir_block, pack_dir_block, record_bytes,
};
use super::super::inode::Inode;
use super::super::meta::Meta;
use super::super::tx::{BufferRef, Tx};
use super::NewName;
use super::index::{IndexPath, leaf_of};
use crate::contract::{FsError, Result};

/// A name with its hash, inode and type.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Hashed {
    hash: u32,
    name: Vec<u8>,
    inode: u32,
    file_type: u8,
}

/// Where to cut sorted names so that the halves take about the same room; both get some.
fn middle(names: &[Hashed]) -> usize {
    let total: usize = names.iter().map(|name| record_bytes(name.name.len())).sum();
    let mut before = 0;
    let cut = names.iter().position(|name| {
        before += record_bytes(name.name.len());
        before > total / 2
    });
    cut.unwrap_or(0).clamp(1, names.len() - 1)
}

impl Meta {
    /// Adds a name to an indexed directory where its block is full: half of the names move out.
    pub(super) async fn add_by_split(
        &self,
        tx: &Tx,
        dir: &Inode,
        hash: u32,
        path: IndexPath,
        entry: NewName<'_>,
    ) -> Result<()> {
        let buffer = self.names(dir, leaf_of(&path)).await?;
        self.make_index_room(tx, dir, path).await?;
        let path = self.probe(dir, hash).await?;
        let (cut, behind) = self.split_names(tx, dir, &path, &buffer).await?;
        let half = if hash >= cut & !1 { &behind } else { &buffer };
        self.insert_somewhere(tx, dir, half, entry).await
    }

    /// The names of a block with their hashes, in order.
    fn hashed(&self, dir: &Inode, root: &IndexNode, buffer: &BufferRef) -> Result<Vec<Hashed>> {
        let place = Place::InodeBlock { inode: dir.number, block: buffer.block() };
        let has_tail = self.has_checksums();
        let mut names = buffer.with(|bytes| {
            let mut names = Vec::new();
            for entry in dir_entries(bytes, has_tail, place) {
                let entry = entry?;
                if entry.inode != 0 {
                    let hash = self.hash_in(dir, root, entry.name)?.hash;
                    let (inode, file_type) = (entry.inode, entry.file_type);
                    names.push(Hashed { hash, name: entry.name.to_vec(), inode, file_type });
                }
            }
            Ok::<_, FsError>(names)
        })?;
        names.sort_unstable();
        Ok(names)
    }

    async fn pack(&self, tx: &Tx, dir: &Inode, buffer: &BufferRef, names: &[Hashed]) -> Result<()> {
        let names: Vec<_> =
            names.iter().map(|name| (name.inode, name.file_type, &name.name[..])).collect();
        let has_tail = self.has_checksums();
        let pack = |block: &mut BlockMut<'_>| pack_dir_block(block.whole(), &names, has_tail);
        if self.edit_names(tx, dir, buffer, pack).await? {
            return Ok(());
        }
        Err(corrupt("directory: names", Place::Inode(dir.number)))
    }

    /// Moves the upper half of a block's names to a new block. Returns the least hash there, marked
    /// if names of that hash stay behind, and the new block.
    async fn split_names(
        &self,
        tx: &Tx,
        dir: &Inode,
        path: &IndexPath,
        buffer: &BufferRef,
    ) -> Result<(u32, BufferRef)> {
        let names = self.hashed(dir, &path[0].node, buffer)?;
        if names.len() < 2 {
            return Err(corrupt("directory: full block", Place::Inode(dir.number)));
        }
        let (lower, upper) = names.split_at(middle(&names));
        let (logical, behind) = self.append_block(tx, dir).await?;
        self.pack(tx, dir, &behind, upper).await?;
        self.pack(tx, dir, buffer, lower).await?;
        let shared = lower[lower.len() - 1].hash == upper[0].hash;
        let hash = upper[0].hash | u32::from(shared);
        let Some(step) = path.last() else { return Ok((hash, behind)) };
        let mut node = step.node.clone();
        node.entries.insert(step.at + 1, IndexEntry { hash, block: logical as u32 });
        self.store_index(tx, dir, &step.buffer, &node).await?;
        Ok((hash, behind))
    }

    /// Makes sure that the last node of a way has room for another pair.
    async fn make_index_room(&self, tx: &Tx, dir: &Inode, path: IndexPath) -> Result<()> {
        let is_full = |node: &IndexNode| node.entries.len() >= usize::from(node.limit);
        match &path[..] {
            [root] if is_full(&root.node) => self.deepen(tx, dir, &root.buffer, &root.node).await,
            [root, last] if is_full(&last.node) => {
                if is_full(&root.node) {
                    return Err(FsError::NoSpace);
                }
                let mut lower = last.node.clone();
                let upper = lower.entries.split_off(lower.entries.len() / 2);
                let hash = upper[0].hash;
                let block = self.new_index(tx, dir, upper).await?;
                self.store_index(tx, dir, &last.buffer, &lower).await?;
                let mut above = root.node.clone();
                above.entries.insert(root.at + 1, IndexEntry { hash, block });
                self.store_index(tx, dir, &root.buffer, &above).await
            }
            _ => Ok(()),
        }
    }

    /// Moves the pairs of a full root into a node below it.
    async fn deepen(
        &self,
        tx: &Tx,
        dir: &Inode,
        buffer: &BufferRef,
        root: &IndexNode,
    ) -> Result<()> {
        let about = root.root.filter(|about| about.levels < INDEX_LEVELS_MAX);
        let about = about.ok_or(FsError::NoSpace)?;
        let block = self.new_index(tx, dir, root.entries.clone()).await?;
        let above = IndexNode {
            root: Some(IndexRoot { levels: about.levels + 1, ..about }),
            limit: root.limit,
            entries: vec![IndexEntry { hash: 0, block }],
        };
        self.store_index(tx, dir, buffer, &above).await
    }

    /// Puts pairs into a separate node; its block in the directory.
    async fn new_index(&self, tx: &Tx, dir: &Inode, entries: Vec<IndexEntry>) -> Result<u32> {
        let (logical, buffer) = self.append_block(tx, dir).await?;
        let limit = index_limit(false, self.has_checksums());
        let node = IndexNode { root: None, limit, entries };
        self.store_index(tx, dir, &buffer, &node).await?;
        Ok(logical as u32)
    }

    /// Gives an index to a directory of one block: its names move to a second one.
    pub(super) async fn make_index(&self, tx: &Tx, dir: &Inode) -> Result<()> {
        let buffer = self.names(dir, 0).await?;
        let parent = self.parent_of(dir).await?;
        let has_tail = self.has_checksums();
        let version = self.sb.borrow().def_hash_version;
        let root = IndexNode {
            root: Some(IndexRoot { hash_version: version, levels: 0 }),
            limit: index_limit(true, has_tail),
            entries: vec![IndexEntry { hash: 0, block: 1 }],
        };
        let mut names = self.hashed(dir, &root, &buffer)?;
        names.retain(|name| name.name != b"." && name.name != b"..");
        let (_, second) = self.append_block(tx, dir).await?;
        self.pack(tx, dir, &second, &names).await?;
        tx.edit(&buffer, |bytes| init_first_dir_block(bytes, dir.number, parent, false)).await?;
        self.store_index(tx, dir, &buffer, &root).await?;
        dir.raw.borrow_mut().flags |= flag::INDEX;
        self.write_inode(tx, dir, true).await
    }
}
