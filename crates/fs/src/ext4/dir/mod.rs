//! Directories in operation: names in blocks, with a hash index once there is more than one block.
//!
//! - The caller holds the directory's `i_rwsem`, shared to look and exclusive to change, and has made sure
//!   that a name to be added is not there.
//! - A directory never shrinks, as in ext4. Names move between blocks only when an indexed block is
//!   split, and listing in the order of hashes does not notice that.

mod index;
mod list;
mod split;

use super::error::corrupt;
use super::format::{
    BLOCK_BYTES, BlockMut, DirEntry, FLAG_UNSIGNED_HASH, Feature, HashVersion, NameAt, Place, Room,
    check_dir_block, check_records, dir_entries, file_type_of, flag, init_dir_block,
    init_first_dir_block, insert_at, mode, remove_at, retarget_entry, seal_dir_block, search_name,
};
use super::inode::Inode;
use super::meta::Meta;
use super::tx::{BufferRef, Holds, Tx, verify};
use crate::contract::{FsError, Kind, Result};
use index::IndexPath;

/// Where a name stands, until its directory changes.
pub(crate) struct Found {
    buffer: BufferRef,
    at: NameAt,
}

impl Found {
    fn new(buffer: &BufferRef, at: NameAt) -> Self {
        Self { buffer: buffer.clone(), at }
    }

    /// The inode that it leads to.
    pub(crate) const fn inode(&self) -> u32 {
        self.at.inode
    }
}

/// Where a name that is not there can go, until its directory changes.
#[derive(Default)]
pub(crate) struct FreeSlot {
    /// Its hash and the way to its block, in an indexed directory.
    way: Option<(u32, IndexPath)>,
    /// The record with room for it, and its block; none if a block has to be made.
    room: Option<(BufferRef, Room)>,
}

/// What a look for a name shows.
pub(crate) enum Search {
    Found(Found),
    Vacant(FreeSlot),
}

/// A name to be added: itself, its inode and type.
type NewName<'a> = (&'a [u8], u32, u8);

/// The kind that a record's type shows.
pub(super) const fn kind_shown(file_type: u8) -> Kind {
    match file_type {
        1 => Kind::File,
        2 => Kind::Directory,
        7 => Kind::Symlink,
        _ => Kind::Special,
    }
}

impl Meta {
    fn is_indexed(&self, dir: &Inode) -> bool {
        self.has(Feature::DIR_INDEX) && dir.raw.borrow().has(flag::INDEX)
    }

    /// The hash of a directory whose root says `version`.
    fn hash_version(&self, version: u8, dir: &Inode) -> Result<HashVersion> {
        let unsigned = self.sb.borrow().flags & FLAG_UNSIGNED_HASH != 0;
        let known = HashVersion::of(version, unsigned);
        known.ok_or_else(|| corrupt("directory hash", Place::Inode(dir.number)))
    }

    fn blocks_of(dir: &Inode) -> u64 {
        dir.size.get() / BLOCK_BYTES as u64
    }

    /// A block of a directory, unchecked.
    async fn dir_block(&self, dir: &Inode, logical: u64) -> Result<BufferRef> {
        let mapped = self.map_extent(dir, logical, 1).await?;
        let crate::vfs::Mapped::Blocks { start, unwritten: false, .. } = mapped else {
            return Err(corrupt("directory: hole", Place::Inode(dir.number)));
        };
        self.read_block(start).await
    }

    /// A block of names.
    async fn names(&self, dir: &Inode, logical: u64) -> Result<BufferRef> {
        let buffer = self.dir_block(dir, logical).await?;
        let place = Place::InodeBlock { inode: dir.number, block: buffer.block() };
        let seed = dir.seed;
        verify(&buffer, Holds::Names, seed, |bytes| {
            check_dir_block(bytes, seed, place)?;
            check_records(bytes, self.has_checksums(), place)
        })?;
        Ok(buffer)
    }

    /// Looks for a name in a block of names.
    fn search_in(&self, buffer: &BufferRef, name: &[u8]) -> Result<Found, Option<Room>> {
        let found = buffer.with(|bytes| search_name(bytes, name, self.has_checksums()));
        found.map(|at| Found::new(buffer, at))
    }

    /// Where a name stands, or where it can go.
    pub(crate) async fn search(&self, dir: &Inode, name: &[u8]) -> Result<Search> {
        if self.is_indexed(dir) {
            if name == b"." || name == b".." {
                let found = self.find_dot(dir, name).await?;
                return Ok(found.map_or_else(|| Search::Vacant(FreeSlot::default()), Search::Found));
            }
            return self.search_indexed(dir, name).await;
        }
        let mut free_slot = FreeSlot::default();
        for logical in 0..Self::blocks_of(dir) {
            let buffer = self.names(dir, logical).await?;
            match self.search_in(&buffer, name) {
                Ok(found) => return Ok(Search::Found(found)),
                Err(Some(room)) if free_slot.room.is_none() => {
                    free_slot.room = Some((buffer, room))
                }
                Err(_) => {}
            }
        }
        Ok(Search::Vacant(free_slot))
    }

    /// Where a name stands, if it is there.
    pub(crate) async fn find(&self, dir: &Inode, name: &[u8]) -> Result<Option<Found>> {
        match self.search(dir, name).await? {
            Search::Found(found) => Ok(Some(found)),
            Search::Vacant(_) => Ok(None),
        }
    }

    /// Where a new name can go.
    ///
    /// # Errors
    /// [`FsError::Exists`] when it is there.
    pub(crate) async fn free_slot(&self, dir: &Inode, name: &[u8]) -> Result<FreeSlot> {
        match self.search(dir, name).await? {
            Search::Found(_) => Err(FsError::Exists),
            Search::Vacant(free_slot) => Ok(free_slot),
        }
    }

    /// `.` or `..` of an indexed directory: the first two records of its root.
    async fn find_dot(&self, dir: &Inode, name: &[u8]) -> Result<Option<Found>> {
        let buffer = self.dir_block(dir, 0).await?;
        let place = Place::InodeBlock { inode: dir.number, block: buffer.block() };
        buffer.with(|bytes| {
            for entry in dir_entries(bytes, false, place).take(2) {
                let DirEntry { at, inode, name: stored, .. } = entry?;
                if stored == name {
                    return Ok(Some(Found::new(&buffer, NameAt { at, before: None, inode })));
                }
            }
            Ok(None)
        })
    }

    /// Changes a block of names, checksum included.
    async fn edit_names<R>(
        &self,
        tx: &Tx,
        dir: &Inode,
        buffer: &BufferRef,
        edit: impl FnOnce(&mut BlockMut<'_>) -> R,
    ) -> Result<R> {
        let seed = dir.seed;
        tx.edit_parts(buffer, |block| {
            let result = edit(block);
            seal_dir_block(block, seed);
            result
        })
        .await
    }

    /// Adds a name in a directory that has not changed since the slot was found.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] when the volume, or the index, is full.
    pub(crate) async fn add_name(
        &self,
        tx: &Tx,
        dir: &Inode,
        free_slot: FreeSlot,
        name: &[u8],
        inode: u32,
        file_mode: u16,
    ) -> Result<()> {
        let entry = (name, inode, file_type_of(file_mode));
        match free_slot {
            FreeSlot { room: Some((buffer, room)), .. } => {
                self.insert_into(tx, dir, &buffer, room, entry).await
            }
            FreeSlot { way, .. } => Box::pin(self.add_with_block(tx, dir, way, entry)).await,
        }
    }

    /// Adds a name for which a block has to be made.
    async fn add_with_block(
        &self,
        tx: &Tx,
        dir: &Inode,
        way: Option<(u32, IndexPath)>,
        entry: NewName<'_>,
    ) -> Result<()> {
        let mut free_slot = FreeSlot { way, room: None };
        if free_slot.way.is_none() && Self::blocks_of(dir) == 1 && self.has(Feature::DIR_INDEX) {
            self.make_index(tx, dir).await?;
            free_slot = self.free_slot(dir, entry.0).await?;
        }
        if let Some((buffer, room)) = free_slot.room {
            return self.insert_into(tx, dir, &buffer, room, entry).await;
        }
        if let Some((hash, path)) = free_slot.way {
            return self.add_by_split(tx, dir, hash, path, entry).await;
        }
        let (_, buffer) = self.append_block(tx, dir).await?;
        let has_tail = self.has_checksums();
        tx.change(&buffer, |bytes| init_dir_block(bytes, has_tail))?;
        self.insert_somewhere(tx, dir, &buffer, entry).await
    }

    /// Puts a name where its block has room for it.
    async fn insert_into(
        &self,
        tx: &Tx,
        dir: &Inode,
        buffer: &BufferRef,
        room: Room,
        (name, inode, file_type): NewName<'_>,
    ) -> Result<()> {
        let insert = |block: &mut BlockMut<'_>| insert_at(block, room, name, inode, file_type);
        self.edit_names(tx, dir, buffer, insert).await
    }

    /// Puts a name into a block that was given room for it.
    async fn insert_somewhere(
        &self,
        tx: &Tx,
        dir: &Inode,
        buffer: &BufferRef,
        entry: NewName<'_>,
    ) -> Result<()> {
        let Err(Some(room)) = self.search_in(buffer, entry.0) else {
            return Err(corrupt("directory: room", Place::Inode(dir.number)));
        };
        self.insert_into(tx, dir, buffer, room, entry).await
    }

    /// Adds an empty block to a directory; its number there, and its buffer, all zeroes.
    async fn append_block(&self, tx: &Tx, dir: &Inode) -> Result<(u64, BufferRef)> {
        let logical = Self::blocks_of(dir);
        if logical >= 1 << 31 {
            return Err(FsError::NoSpace);
        }
        if !self.map_extent(dir, logical, 1).await?.is_hole() {
            return Err(corrupt("directory: blocks behind its end", Place::Inode(dir.number)));
        }
        let goal = self.goal(dir, logical).await?;
        let taken = self.alloc.take_blocks(self, tx, goal, 1).await?;
        let buffer = tx.fresh(taken.start)?;
        self.map_blocks(tx, dir, logical, taken, false).await?;
        dir.set_size((logical + 1) * BLOCK_BYTES as u64);
        dir.raw.borrow_mut().size = dir.size.get();
        self.write_inode(tx, dir, true).await?;
        Ok((logical, buffer))
    }

    /// Makes the first block of a new directory.
    pub(crate) async fn make_dir(&self, tx: &Tx, dir: &Inode, parent: u32) -> Result<()> {
        let (_, buffer) = self.append_block(tx, dir).await?;
        let has_tail = self.has_checksums();
        self.edit_names(tx, dir, &buffer, |block| {
            init_first_dir_block(block.whole(), dir.number, parent, has_tail);
        })
        .await
    }

    /// Takes a name out, in a directory that has not changed since it was found.
    pub(crate) async fn remove_found(&self, tx: &Tx, dir: &Inode, found: &Found) -> Result<()> {
        let remove = |block: &mut BlockMut<'_>| remove_at(block, found.at);
        self.edit_names(tx, dir, &found.buffer, remove).await
    }

    /// Finds a name and takes it out.
    pub(crate) async fn remove_name(&self, tx: &Tx, dir: &Inode, name: &[u8]) -> Result<()> {
        let found = self.find(dir, name).await?.ok_or(FsError::NoEntry)?;
        self.remove_found(tx, dir, &found).await
    }

    /// Leads a name to another inode.
    pub(crate) async fn retarget(
        &self,
        tx: &Tx,
        dir: &Inode,
        name: &[u8],
        inode: u32,
        file_mode: u16,
    ) -> Result<()> {
        let found = self.find(dir, name).await?.ok_or(FsError::NoEntry)?;
        let file_type = file_type_of(file_mode);
        let in_root = self.is_indexed(dir) && name == b"..";
        let at = found.at.at;
        if in_root {
            let change = |bytes: &mut [u8]| retarget_entry(bytes, at, inode, file_type);
            return self.edit_root(tx, dir, &found.buffer, change).await;
        }
        let change = |block: &mut BlockMut<'_>| retarget_entry(block, at, inode, file_type);
        self.edit_names(tx, dir, &found.buffer, change).await
    }

    /// Leads `..` to another directory.
    pub(crate) async fn set_parent(&self, tx: &Tx, dir: &Inode, parent: u32) -> Result<()> {
        self.retarget(tx, dir, b"..", parent, mode::DIR).await
    }

    /// The directory that `..` leads to.
    pub(crate) async fn parent_of(&self, dir: &Inode) -> Result<u32> {
        let found = self.find(dir, b"..").await?;
        found
            .map(|found| found.inode())
            .ok_or_else(|| corrupt("directory without ..", Place::Inode(dir.number)))
    }

    /// Whether only `.` and `..` are there.
    pub(crate) async fn is_empty_dir(&self, dir: &Inode) -> Result<bool> {
        let names = self.list(dir, 0, 3).await?;
        Ok(names.iter().all(|entry| entry.name == b"." || entry.name == b".."))
    }
}
