//! Inodes, spread as Orlov's allocator does it: a directory at the top goes to a group with more than
//! the average of free inodes and blocks and the fewest directories; any other directory stays near
//! its parent while that group is not crowded; a file goes to its directory's group.

use super::Allocator;
use super::bits::{self, View};
use crate::contract::{FsError, Result};
use crate::ext4::error::corrupt;
use crate::ext4::format::{GROUP_INODE_UNINIT, InodePlace, Place, ROOT_INODE};
use crate::ext4::meta::Meta;
use crate::ext4::meta::group::Bitmap;
use crate::ext4::tx::{BufferRef, Tx};
use nandscape_rt::invariant;

impl Allocator {
    /// Takes a free inode number for a file or directory in `parent`.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] when all are in use.
    pub(crate) async fn take_inode(
        &self,
        meta: &Meta,
        tx: &Tx,
        parent: u32,
        dir: bool,
    ) -> Result<u32> {
        let home = meta.sb.borrow().inode_place(parent).map_or(0, |place| place.group);
        let first = match dir {
            true if parent == ROOT_INODE => self.least_crowded(home),
            true => self.near(meta, home),
            false => home,
        };
        let groups = self.group_count();
        for step in 0..groups {
            let group = (first + step) % groups;
            while self.groups.borrow()[group as usize].desc.free_inodes_count > 0 {
                if let Some(index) = self.take_inode_in(meta, tx, group, dir).await? {
                    return Ok(meta.sb.borrow().inode_at(InodePlace { group, index }));
                }
            }
        }
        Err(FsError::NoSpace)
    }

    /// The group for a directory at the top.
    fn least_crowded(&self, home: u32) -> u32 {
        let groups = self.groups.borrow();
        let count = groups.len() as u64;
        let average_inodes = self.free_inodes.get() / count;
        let average_blocks = self.free_blocks.get() / count;
        let roomy = |group: &u32| {
            let desc = &groups[*group as usize].desc;
            desc.free_inodes_count > 0
                && u64::from(desc.free_inodes_count) >= average_inodes
                && u64::from(desc.free_blocks_count) >= average_blocks
        };
        let fewest = |group: &u32| groups[*group as usize].desc.used_dirs_count;
        (0..groups.len() as u32).filter(roomy).min_by_key(fewest).unwrap_or(home)
    }

    /// The group for a directory further down: from its parent's on, the first that is not crowded.
    fn near(&self, meta: &Meta, home: u32) -> u32 {
        let groups = self.groups.borrow();
        let count = groups.len() as u32;
        let average_inodes = self.free_inodes.get() / u64::from(count);
        let average_blocks = self.free_blocks.get() / u64::from(count);
        let sb = meta.sb.borrow();
        let least_inodes = average_inodes.saturating_sub(u64::from(sb.inodes_per_group / 4));
        let least_blocks = average_blocks.saturating_sub(u64::from(sb.blocks_per_group / 4));
        let roomy = |group: &u32| {
            let desc = &groups[*group as usize].desc;
            desc.free_inodes_count > 0
                && u64::from(desc.free_inodes_count) >= least_inodes
                && u64::from(desc.free_blocks_count) >= least_blocks
        };
        (0..count).map(|step| (home + step) % count).find(roomy).unwrap_or(home)
    }

    /// Takes the first free inode of a group; `None` if others took it meanwhile.
    async fn take_inode_in(
        &self,
        meta: &Meta,
        tx: &Tx,
        group: u32,
        dir: bool,
    ) -> Result<Option<u32>> {
        let bitmap = self.inode_bitmap(meta, tx, group).await?;
        tx.access(&bitmap).await?;
        let (per_group, first_ino) = {
            let sb = meta.sb.borrow();
            (sb.inodes_per_group, sb.first_ino)
        };
        let start = if group == 0 { first_ino - 1 } else { 0 };
        let found = bitmap.with(|bytes| View::new(bytes, None).next_run(start..per_group, 1));
        let Some(index) = found.map(|run| run.start) else {
            let full = self.groups.borrow()[group as usize].desc.free_inodes_count == 0;
            let what = "inode bitmap: fewer free inodes than counted";
            return if full { Ok(None) } else { Err(corrupt(what, Place::InodeBitmap(group))) };
        };
        self.mark_inode(meta, tx, group, index, dir, &bitmap).await?;
        Ok(Some(index))
    }

    /// Takes this inode number, if it is free.
    pub(crate) async fn claim_inode(&self, meta: &Meta, tx: &Tx, inode: u32) -> Result<()> {
        let place = meta.sb.borrow().inode_place(inode);
        let InodePlace { group, index } =
            place.ok_or_else(|| corrupt("inode number", Place::Inode(inode)))?;
        let bitmap = self.inode_bitmap(meta, tx, group).await?;
        tx.access(&bitmap).await?;
        if bitmap.with(|bytes| bits::all(bytes, index..index + 1, true)) {
            return Ok(());
        }
        self.mark_inode(meta, tx, group, index, false, &bitmap).await
    }

    /// Marks a free inode as taken.
    async fn mark_inode(
        &self,
        meta: &Meta,
        tx: &Tx,
        group: u32,
        index: u32,
        dir: bool,
        bitmap: &BufferRef,
    ) -> Result<()> {
        tx.change_parts(bitmap, |bytes| {
            bits::fill(bytes, index..index + 1, true);
            let sb = meta.sb.borrow();
            let desc = &mut self.groups.borrow_mut()[group as usize].desc;
            // Counts are the media's, which may be wrong.
            desc.free_inodes_count = desc.free_inodes_count.saturating_sub(1);
            desc.used_dirs_count += u32::from(dir);
            desc.itable_unused = desc.itable_unused.min(sb.inodes_per_group - index - 1);
            invariant!(
                index + desc.itable_unused < sb.inodes_per_group,
                "group {group}: inode {index} in use lies in the used part of its table"
            );
            desc.flags &= !GROUP_INODE_UNINIT;
        })?;
        self.free_inodes.set(self.free_inodes.get().saturating_sub(1));
        drop(self.block_bitmap(meta, tx, group).await?);
        meta.write_group(tx, group, Bitmap::Inodes, bitmap).await
    }

    /// Gives an inode number back.
    pub(crate) async fn free_inode(
        &self,
        meta: &Meta,
        tx: &Tx,
        inode: u32,
        dir: bool,
    ) -> Result<()> {
        let place = meta.sb.borrow().inode_place(inode);
        let InodePlace { group, index } =
            place.ok_or_else(|| corrupt("inode number", Place::Inode(inode)))?;
        let bitmap = self.inode_bitmap(meta, tx, group).await?;
        tx.access(&bitmap).await?;
        if !bitmap.with(|bytes| bits::all(bytes, index..index + 1, true)) {
            return Err(corrupt("inode bitmap: freed twice", Place::InodeBitmap(group)));
        }
        tx.change_parts(&bitmap, |bytes| {
            bits::fill(bytes, index..index + 1, false);
            let info = &mut self.groups.borrow_mut()[group as usize];
            info.desc.free_inodes_count += 1;
            // Counts are the media's, which may be wrong.
            info.desc.used_dirs_count = info.desc.used_dirs_count.saturating_sub(u32::from(dir));
        })?;
        self.free_inodes.set(self.free_inodes.get() + 1);
        meta.write_group(tx, group, Bitmap::Inodes, &bitmap).await
    }
}
