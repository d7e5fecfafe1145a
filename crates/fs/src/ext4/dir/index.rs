//! The hash index of a directory: finding the block of a name, and going through blocks in the order
//! of hashes (Linux's `dx_probe` and `ext4_htree_next_block`).

use super::super::error::corrupt;
use super::super::format::{IndexNode, NameHash, Place};
use super::super::inode::Inode;
use super::super::meta::Meta;
use super::super::tx::{BufferRef, Holds, Tx, verify};
use super::{Found, FreeSlot, Search};
use crate::contract::Result;
use smallvec::{SmallVec, smallvec};

/// A node of the index on the way down, and the pair taken there.
pub(super) struct IndexStep {
    pub(super) buffer: BufferRef,
    pub(super) node: IndexNode,
    pub(super) at: usize,
}

/// The way from the root to a block of names.
pub(super) type IndexPath = SmallVec<[IndexStep; 1]>;

/// The level from which a way can go on to a next block of names.
fn level_to_go_on(path: &IndexPath) -> Option<usize> {
    path.iter().rposition(|step| step.at + 1 < step.node.entries.len())
}

/// The least hash of the next block of names, if there is one.
fn hash_behind(path: &IndexPath) -> Option<u32> {
    level_to_go_on(path).map(|level| path[level].node.entries[path[level].at + 1].hash)
}

/// The block of names at the end of the way.
pub(super) fn leaf_of(path: &IndexPath) -> u64 {
    path.last().map_or(0, |step| step.node.entries[step.at].block.into())
}

impl Meta {
    /// The root of a directory's index.
    pub(super) async fn index_root(&self, dir: &Inode) -> Result<(BufferRef, IndexNode)> {
        let buffer = self.dir_block(dir, 0).await?;
        let place = Place::InodeBlock { inode: dir.number, block: buffer.block() };
        let (has_tail, seed) = (self.has_checksums(), dir.seed);
        let root = buffer.with(|bytes| IndexNode::parse_root(bytes, has_tail, place))?;
        verify(&buffer, Holds::Index, seed, |bytes| root.check(bytes, seed, place))?;
        Ok((buffer, root))
    }

    async fn index_node(&self, dir: &Inode, logical: u64) -> Result<(BufferRef, IndexNode)> {
        let buffer = self.dir_block(dir, logical).await?;
        let place = Place::InodeBlock { inode: dir.number, block: buffer.block() };
        let (has_tail, seed) = (self.has_checksums(), dir.seed);
        let node = buffer.with(|bytes| IndexNode::parse_node(bytes, has_tail, place))?;
        verify(&buffer, Holds::Index, seed, |bytes| node.check(bytes, seed, place))?;
        Ok((buffer, node))
    }

    /// What the names of an indexed directory hash to.
    pub(super) fn hash_in(&self, dir: &Inode, root: &IndexNode, name: &[u8]) -> Result<NameHash> {
        let version = root.root.map_or(0, |root| root.hash_version);
        Ok(self.hash_version(version, dir)?.hash(name, &self.sb.borrow().hash_seed))
    }

    /// The way to the first block that may hold names of a hash.
    pub(super) async fn probe(&self, dir: &Inode, hash: u32) -> Result<IndexPath> {
        let (buffer, root) = self.index_root(dir).await?;
        self.probe_from(dir, buffer, root, hash).await
    }

    /// The hash of a name, and the way to the first block that may hold it.
    pub(super) async fn probe_name(&self, dir: &Inode, name: &[u8]) -> Result<(u32, IndexPath)> {
        let (buffer, root) = self.index_root(dir).await?;
        let hash = self.hash_in(dir, &root, name)?.hash;
        Ok((hash, self.probe_from(dir, buffer, root, hash).await?))
    }

    async fn probe_from(
        &self,
        dir: &Inode,
        buffer: BufferRef,
        node: IndexNode,
        hash: u32,
    ) -> Result<IndexPath> {
        let levels = node.root.map_or(0, |root| root.levels);
        let at = node.find(hash);
        let mut path = smallvec![IndexStep { buffer, node, at }];
        for _ in 0..levels {
            let (buffer, node) = self.index_node(dir, leaf_of(&path)).await?;
            let at = node.find(hash);
            path.push(IndexStep { buffer, node, at });
        }
        Ok(path)
    }

    /// Goes on to the next block of names. Returns the least hash there, or nothing at the end.
    pub(super) async fn advance(&self, dir: &Inode, path: &mut IndexPath) -> Result<Option<u32>> {
        let depth = path.len();
        let Some(level) = level_to_go_on(path) else { return Ok(None) };
        path.truncate(level + 1);
        let step = &mut path[level];
        step.at += 1;
        let hash = step.node.entries[step.at].hash;
        while path.len() < depth {
            let (buffer, node) = self.index_node(dir, leaf_of(path)).await?;
            path.push(IndexStep { buffer, node, at: 0 });
        }
        Ok(Some(hash))
    }

    /// Looks for a name through the index.
    pub(super) async fn search_indexed(&self, dir: &Inode, name: &[u8]) -> Result<Search> {
        let (hash, path) = self.probe_name(dir, name).await?;
        let buffer = self.names(dir, leaf_of(&path)).await?;
        let room = match self.search_in(&buffer, name) {
            Ok(found) => return Ok(Search::Found(found)),
            Err(room) => room.map(|room| (buffer, room)),
        };
        // Names of one hash go on in the next block if its least hash says so.
        if hash_behind(&path) == Some(hash | 1)
            && let Some(found) = Box::pin(self.find_behind(dir, hash, name)).await?
        {
            return Ok(Search::Found(found));
        }
        Ok(Search::Vacant(FreeSlot { way: Some((hash, path)), room }))
    }

    /// Finds a name in the blocks behind the first that may hold its hash.
    async fn find_behind(&self, dir: &Inode, hash: u32, name: &[u8]) -> Result<Option<Found>> {
        let mut path = self.probe(dir, hash).await?;
        while self.advance(dir, &mut path).await? == Some(hash | 1) {
            let buffer = self.names(dir, leaf_of(&path)).await?;
            if let Ok(found) = self.search_in(&buffer, name) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Changes the root of an index beside its pairs, checksum included.
    pub(super) async fn edit_root(
        &self,
        tx: &Tx,
        dir: &Inode,
        buffer: &BufferRef,
        edit: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        let (has_tail, seed) = (self.has_checksums(), dir.seed);
        let place = Place::InodeBlock { inode: dir.number, block: buffer.block() };
        tx.edit(buffer, |bytes| {
            edit(bytes);
            let root = IndexNode::parse_root(bytes, has_tail, place)?;
            root.seal(bytes, seed);
            Ok::<_, super::super::format::FormatError>(())
        })
        .await?
        .map_err(|_| corrupt("directory index", place))
    }

    /// Writes a node of the index.
    pub(super) async fn store_index(
        &self,
        tx: &Tx,
        dir: &Inode,
        buffer: &BufferRef,
        node: &IndexNode,
    ) -> Result<()> {
        let seed = dir.seed;
        tx.edit(buffer, |bytes| {
            node.encode(bytes);
            node.seal(bytes, seed);
        })
        .await
    }
}
