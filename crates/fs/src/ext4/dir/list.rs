//! Listing a directory, so that a name which stays is listed exactly once whatever happens to others.
//!
//! With `dir_index`, names come in the order of their hashes, in directories of one block too, so that
//! cookies stay good when an index is made or a block is split. Other directories are listed by place:
//! their names never move.

use super::super::format::{BLOCK_BYTES, Feature, HashVersion, NameHash, Place, dir_entries};
use super::super::inode::Inode;
use super::super::meta::Meta;
use super::super::tx::BufferRef;
use super::index::leaf_of;
use super::kind_shown;
use crate::contract::{DirEntry, Ino, Kind, Result};

/// The cookie of a hash: behind those of `.` and `..`.
const fn cookie_of(hash: NameHash) -> u64 {
    (((hash.hash >> 1) as u64) << 32 | hash.minor as u64) + 3
}

/// The hash to look from for names behind a cookie.
const fn hash_of(cookie: u64) -> u32 {
    ((cookie.saturating_sub(3) >> 32) as u32) << 1
}

/// Takes the first `count` entries, and all that share the last one's cookie.
fn take_first(mut entries: Vec<DirEntry>, count: usize) -> Vec<DirEntry> {
    entries.sort_by(|a, b| a.cookie.cmp(&b.cookie).then_with(|| a.name.cmp(&b.name)));
    if let Some(last) = count.checked_sub(1).and_then(|last| entries.get(last)) {
        let end = entries.partition_point(|entry| entry.cookie <= last.cookie);
        entries.truncate(end);
    }
    entries
}

impl Meta {
    /// About `count` names behind `cookie`.
    pub(crate) async fn list(
        &self,
        dir: &Inode,
        cookie: u64,
        count: usize,
    ) -> Result<Vec<DirEntry>> {
        let count = count.max(1);
        if !self.has(Feature::DIR_INDEX) || (!self.is_indexed(dir) && Self::blocks_of(dir) > 1) {
            return self.list_by_place(dir, cookie, count).await;
        }
        let mut entries = self.dots(dir).await?;
        let version = self.sb.borrow().hash_version();
        if self.is_indexed(dir) {
            self.collect_indexed(dir, cookie, count, &mut entries).await?;
        } else if let Some(version) = version {
            let buffer = self.names(dir, 0).await?;
            self.collect(dir, &buffer, version, &mut entries)?;
        }
        entries.retain(|entry| entry.cookie > cookie);
        Ok(take_first(entries, count))
    }

    async fn dots(&self, dir: &Inode) -> Result<Vec<DirEntry>> {
        let parent = self.parent_of(dir).await?;
        let dot = |cookie, ino: u32, name: &[u8]| DirEntry {
            cookie,
            ino: Ino(ino.into()),
            kind: Kind::Directory,
            name: name.to_vec(),
        };
        Ok(vec![dot(1, dir.number, b"."), dot(2, parent, b"..")])
    }

    /// Adds the names of one block.
    fn collect(
        &self,
        dir: &Inode,
        buffer: &BufferRef,
        version: HashVersion,
        entries: &mut Vec<DirEntry>,
    ) -> Result<()> {
        let place = Place::InodeBlock { inode: dir.number, block: buffer.block() };
        let seed = self.sb.borrow().hash_seed;
        buffer.with(|bytes| {
            for entry in dir_entries(bytes, self.has_checksums(), place) {
                let entry = entry?;
                if entry.inode == 0 || entry.name == b"." || entry.name == b".." {
                    continue;
                }
                entries.push(DirEntry {
                    cookie: cookie_of(version.hash(entry.name, &seed)),
                    ino: Ino(entry.inode.into()),
                    kind: kind_shown(entry.file_type),
                    name: entry.name.to_vec(),
                });
            }
            Ok(())
        })
    }

    /// Adds the names of blocks from the cookie's on, until there are enough and the next block does
    /// not go on with the last one's hash.
    async fn collect_indexed(
        &self,
        dir: &Inode,
        cookie: u64,
        count: usize,
        entries: &mut Vec<DirEntry>,
    ) -> Result<()> {
        let mut path = self.probe(dir, hash_of(cookie)).await?;
        let version = path[0].node.root.map_or(0, |root| root.hash_version);
        let version = self.hash_version(version, dir)?;
        loop {
            let buffer = self.names(dir, leaf_of(&path)).await?;
            self.collect(dir, &buffer, version, entries)?;
            let enough = entries.iter().filter(|entry| entry.cookie > cookie).count() >= count;
            match self.advance(dir, &mut path).await? {
                None => return Ok(()),
                Some(hash) if enough && hash & 1 == 0 => return Ok(()),
                Some(_) => {}
            }
        }
    }

    async fn list_by_place(&self, dir: &Inode, cookie: u64, count: usize) -> Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for logical in cookie / BLOCK_BYTES as u64..Self::blocks_of(dir) {
            let buffer = self.names(dir, logical).await?;
            let place = Place::InodeBlock { inode: dir.number, block: buffer.block() };
            buffer.with(|bytes| {
                for entry in dir_entries(bytes, self.has_checksums(), place) {
                    let entry = entry?;
                    let at = logical * BLOCK_BYTES as u64 + entry.at as u64 + 1;
                    if entry.inode != 0 && at > cookie {
                        let (ino, kind) = (Ino(entry.inode.into()), kind_shown(entry.file_type));
                        entries.push(DirEntry { cookie: at, ino, kind, name: entry.name.to_vec() });
                    }
                }
                Ok::<_, crate::contract::FsError>(())
            })?;
            if entries.len() >= count {
                break;
            }
        }
        entries.truncate(count);
        Ok(entries)
    }
}
