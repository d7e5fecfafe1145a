//! Directories: blocks of names, found by hash, or names in the inode itself. After fs/f2fs/dir.c and inline.c.
//!
//! Blocks of a directory are its pages in the page cache. A new block is reserved in a node first and then written to
//! the cache; checkpoints, and cleaning, give it its place on the device. Like nodes, pages are looked at and changed by
//! closures between waiting points.
//!
//! - A name stands in a bucket of one of the levels `0..current_depth`: the first with room when it was added.
//! - A name never moves while it stays: removals leave holes, and when the names of an inode go to a block they keep
//!   their slots. So the place of a name is its cookie ([`list`]).
//! - A block that becomes empty is freed; the length of the directory stays.
//!
//! Who changes names holds the directory's `i_rwsem` alone and an [`Op`]; who may remove one also its `invalidate_lock`,
//! so that cleaning brings back no page that is gone.

mod inline;
mod list;

use super::cpu::Work;
use super::error::corrupt;
use super::format::{
    BLOCK_BYTES, DIR_LEVELS_MAX, Dentries, Nid, bucket_blocks, dir_block_index, dir_buckets,
    file_type, name_hash, slots_of,
};
use super::inode::{Dirty, Inode};
use super::nat::Nodes;
use super::operations::Op;
use super::segment::Block;
use super::segment_manager::SegmentManager;
use crate::contract::{FsError, Result};
use crate::vfs::{Mapped, PAGE};
use nandscape_block::SectorData;
use std::ops::Range;
use std::sync::Arc;

/// What holds a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    /// The inode.
    Inode,
    /// A page of the directory.
    Page(u64),
}

/// A name that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    holder: Holder,
    slot: usize,
    /// The inode that it leads to.
    pub(crate) ino: u32,
}

/// Room for a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Vacancy {
    holder: Holder,
    slot: usize,
    /// The levels that the directory has with the name.
    depth: u32,
}

/// The pages of the bucket of a level that a hash belongs to.
fn bucket(level: u32, dir_level: u8, hash: u32) -> Range<u64> {
    let first = dir_block_index(level, dir_level, hash % dir_buckets(level, dir_level));
    first..first + u64::from(bucket_blocks(level))
}

/// Pages that the length of a directory covers.
fn dir_pages(dir: &Inode) -> u64 {
    dir.size.get().div_ceil(PAGE).min(dir.max_pages())
}

impl Nodes {
    /// Looks at the names of a holder; `Err` of the inner result: there is no block for so many pages.
    async fn read_names<R>(
        &self,
        dir: &Inode,
        holder: Holder,
        look: impl FnOnce(Dentries<&[u8]>) -> R,
    ) -> Result<Result<R, u64>> {
        self.mount.pay(Work::Lookup).await;
        let Holder::Page(page) = holder else {
            let place = dir.layout.get().inline_data();
            let read = |bytes: &Block| look(Dentries::inline(&bytes[place]));
            return self.read_node(Nid(dir.number), read).await.map(Ok);
        };
        // Reading ahead keeps zeroes in memory where there is no block.
        if !dir.pages.waiting(&(page..page + 1)).0 {
            let mapped = {
                let _extents = self.lock_map(dir, page).await;
                self.map(dir, page, dir.max_pages() - page.min(dir.max_pages() - 1)).await?
            };
            if let Mapped::Hole(pages) = mapped {
                return Ok(Err(pages));
            }
        }
        if dir.pages.with_bytes(page, |_| ()).is_none() {
            self.read_pages(&dir.pages, page..page + 1).await?;
        }
        let seen = dir.pages.with_bytes(page, |bytes| look(Dentries::block(&bytes[..])));
        seen.map(Ok).ok_or_else(|| corrupt("block of a directory", dir.number))
    }

    /// Changes the names of a holder.
    async fn edit_names<R>(
        &self,
        op: &Op,
        dir: &Inode,
        holder: Holder,
        edit: impl FnOnce(Dentries<&mut [u8]>) -> R,
    ) -> Result<R> {
        let Holder::Page(page) = holder else {
            let place = dir.layout.get().inline_data();
            let write = |bytes: &mut Block| edit(Dentries::inline(&mut bytes[place]));
            return self.edit_node(op, Nid(dir.number), write).await;
        };
        let missing = || corrupt("block of a directory", dir.number);
        self.read_names(dir, holder, |_| ()).await?.map_err(|_| missing())?;
        let edited = dir.pages.edit_bytes(page, |bytes| edit(Dentries::block(&mut bytes[..])));
        edited.map(|(result, _)| result).ok_or_else(missing)
    }

    /// Looks for a name (`f2fs_find_entry`). The caller holds the directory's `i_rwsem`.
    ///
    /// # Errors
    /// Errors of reading.
    pub(crate) async fn find(&self, dir: &Inode, name: &[u8]) -> Result<Option<Found>> {
        if dir.has_inline_names() {
            return self.find_in(dir, Holder::Inode, name).await;
        }
        let (depth, dir_level) = (dir.raw.borrow().current_depth, dir.raw.borrow().dir_level);
        let end = dir_pages(dir);
        for level in 0..depth.min(DIR_LEVELS_MAX) {
            for page in bucket(level, dir_level, name_hash(name)).take_while(|page| *page < end) {
                let found = self.find_in(dir, Holder::Page(page), name).await?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    async fn find_in(&self, dir: &Inode, holder: Holder, name: &[u8]) -> Result<Option<Found>> {
        let look = |names: Dentries<&[u8]>| {
            let found = names.find(name, name_hash(name))?;
            Some(Found { holder, slot: found.slot, ino: found.ino.0 })
        };
        Ok(self.read_names(dir, holder, look).await?.unwrap_or_default())
    }

    /// Finds room for a name that the directory does not have, or makes it (`f2fs_add_dentry` up to its first change
    /// of a name). The directory is sound with that room, used or not.
    ///
    /// # Errors
    /// [`FsError::NoSpace`], also if all buckets of the name are full; errors of reading.
    pub(crate) async fn make_room(
        &self,
        op: &Op,
        segments: &SegmentManager,
        dir: &Inode,
        name: &[u8],
    ) -> Result<Vacancy> {
        let (hash, slots) = (name_hash(name), slots_of(name.len()));
        let mut depth = dir.raw.borrow().current_depth;
        if dir.has_inline_names() {
            let room = self.read_names(dir, Holder::Inode, |names| names.room_for(slots)).await?;
            if let Ok(Some(slot)) = room {
                return Ok(Vacancy { holder: Holder::Inode, slot, depth });
            }
            self.convert_inline_dir(op, segments, dir).await?;
            depth = dir.raw.borrow().current_depth;
        }
        let dir_level = dir.raw.borrow().dir_level;
        for level in 0..DIR_LEVELS_MAX {
            depth = depth.max(level + 1);
            for page in bucket(level, dir_level, hash) {
                if page >= dir.max_pages() {
                    return Err(FsError::NoSpace);
                }
                let holder = Holder::Page(page);
                match self.read_names(dir, holder, |names| names.room_for(slots)).await? {
                    Ok(Some(slot)) => return Ok(Vacancy { holder, slot, depth }),
                    Ok(None) => {}
                    Err(_) => {
                        self.add_block(op, dir, page, Box::new([0; BLOCK_BYTES])).await?;
                        return Ok(Vacancy { holder, slot: 0, depth });
                    }
                }
            }
        }
        Err(FsError::NoSpace)
    }

    /// Adds a block to a directory, or to a symbolic link.
    pub(super) async fn add_block(
        &self,
        op: &Op,
        dir: &Inode,
        page: u64,
        bytes: Box<Block>,
    ) -> Result<()> {
        self.reserve_pages_in(op, dir, &(page..page + 1)).await?;
        dir.pages.write(page, SectorData::Bytes(Arc::from(bytes)), false);
        dir.set_size(dir.size.get().max((page + 1) * PAGE));
        dir.mark(Dirty::Content);
        Ok(())
    }

    /// Writes a name where there is room for it (`f2fs_add_regular_entry`, `f2fs_add_inline_entry`). `mode` is that of
    /// the inode it leads to.
    pub(crate) async fn add_name(
        &self,
        op: &Op,
        dir: &Inode,
        vacancy: Vacancy,
        name: &[u8],
        (ino, mode): (u32, u16),
    ) -> Result<()> {
        let Vacancy { holder, slot, depth } = vacancy;
        let (hash, kind) = (name_hash(name), file_type::of_mode(mode));
        let insert =
            |mut names: Dentries<&mut [u8]>| names.insert(slot, name, hash, Nid(ino), kind);
        self.edit_names(op, dir, holder, insert).await?;
        if let Holder::Page(page) = holder {
            dir.raw.borrow_mut().current_depth = depth;
            dir.set_size(dir.size.get().max((page + 1) * PAGE));
        }
        self.note_names(dir);
        Ok(())
    }

    /// Takes a name away (`f2fs_delete_entry`).
    pub(crate) async fn remove_name(
        &self,
        op: &Op,
        segments: &SegmentManager,
        dir: &Inode,
        found: Found,
    ) -> Result<()> {
        let remove = |mut names: Dentries<&mut [u8]>| {
            names.remove(found.slot);
            names.is_empty()
        };
        let is_empty = self.edit_names(op, dir, found.holder, remove).await?;
        if let (Holder::Page(page), true) = (found.holder, is_empty) {
            self.drop_block(op, segments, dir, page).await?;
        }
        self.note_names(dir);
        Ok(())
    }

    /// Frees a block without names.
    async fn drop_block(
        &self,
        op: &Op,
        segments: &SegmentManager,
        dir: &Inode,
        page: u64,
    ) -> Result<()> {
        let pages = page..page + 1;
        // Directory pages on their way to the device hold a share of the checkpoint lock and wait for no other one.
        dir.pages.written(pages.clone()).await;
        dir.pages.discard(pages.clone());
        dir.moving.borrow_mut().remove(&page);
        let extents = dir.extent_lock.write().await;
        let walked = self.free_pages(op, segments, dir, &pages).await?;
        // Reading ahead may have brought it back.
        dir.pages.discard(pages);
        drop(extents);
        self.pay_walked(walked).await;
        Ok(())
    }

    /// Lets a name lead to another inode (`f2fs_set_link`).
    pub(crate) async fn set_link(
        &self,
        op: &Op,
        dir: &Inode,
        found: Found,
        (ino, mode): (u32, u16),
    ) -> Result<()> {
        let kind = file_type::of_mode(mode);
        let set = |mut names: Dentries<&mut [u8]>| names.set_target(found.slot, Nid(ino), kind);
        self.edit_names(op, dir, found.holder, set).await?;
        self.note_names(dir);
        Ok(())
    }

    /// The names of a directory changed.
    fn note_names(&self, dir: &Inode) {
        dir.touch(self.mount.env.now(), true);
        dir.mark(Dirty::Content);
    }

    /// Writes `.` and `..` of a new directory (`make_empty_dir`).
    pub(crate) async fn make_empty(&self, op: &Op, dir: &Inode, parent: u32) -> Result<()> {
        let init = |mut names: Dentries<&mut [u8]>| names.init_dots(Nid(dir.number), Nid(parent));
        if dir.has_inline_names() {
            self.edit_names(op, dir, Holder::Inode, init).await?;
            dir.set_size(dir.size.get().max(dir.inline_capacity()));
            dir.mark(Dirty::Content);
            return Ok(());
        }
        let mut bytes = Box::new([0; BLOCK_BYTES]);
        init(Dentries::block(&mut bytes[..]));
        self.add_block(op, dir, 0, bytes).await
    }

    /// Whether a directory has no names but `.` and `..` (`f2fs_empty_dir`).
    pub(crate) async fn is_empty_dir(&self, dir: &Inode) -> Result<bool> {
        let holder = if dir.has_inline_names() { Holder::Inode } else { Holder::Page(0) };
        let has_dots_only = |names: Dentries<&[u8]>| names.is_empty_but_dots();
        let first = self.read_names(dir, holder, has_dots_only).await?;
        if holder == Holder::Inode || first == Ok(false) {
            return Ok(first == Ok(true));
        }
        let mut page = 1;
        while page < dir_pages(dir) {
            match self.read_names(dir, Holder::Page(page), |names| names.is_empty()).await? {
                Ok(false) => return Ok(false),
                Ok(true) => page += 1,
                Err(pages) => page = page.saturating_add(pages),
            }
        }
        Ok(true)
    }

    /// The directory that a directory's `..` leads to.
    ///
    /// # Errors
    /// [`FsError::Corrupt`] if it has none, or it leads to no inode.
    pub(crate) async fn parent_of(&self, dir: &Inode) -> Result<u32> {
        let found = self.find(dir, b"..").await?.map(|found| found.ino);
        let parent = found.filter(|parent| self.is_ordinary(*parent));
        parent.ok_or_else(|| corrupt("directory without ..", dir.number))
    }

    /// The directory that `..` leads to is another one.
    pub(crate) async fn set_parent(&self, op: &Op, dir: &Inode, parent: &Inode) -> Result<()> {
        let missing = || corrupt("directory without ..", dir.number);
        let found = self.find(dir, b"..").await?.ok_or_else(missing)?;
        let mode = parent.raw.borrow().mode;
        self.set_link(op, dir, found, (parent.number, mode)).await
    }
}

#[cfg(test)]
mod tests;
