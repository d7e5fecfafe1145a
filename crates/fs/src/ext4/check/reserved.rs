//! Inodes of the format that are mapped by pointers. Inode 1 lists the blocks that mke2fs or e2fsck found bad, which belong
//! to no other inode; inode 7 keeps room for more descriptors, in blocks that belong to the superblocks' reserve.

use super::checker::Checker;
use crate::ext4::format::*;
use crate::image::BlockBytes;
use nandscape_block::BlockError;
use std::collections::BTreeSet;

impl Checker {
    /// Claims the bad blocks, and those of the pointers to them. How many the inode says that there are is
    /// not looked at: mke2fs leaves those of the pointers out.
    pub(super) async fn check_bad_blocks(&mut self, inode: &Inode) -> Result<(), BlockError> {
        let place = Place::Inode(BAD_INODE);
        let is_file = inode.mode != 0 || inode.links_count != 0 || inode.file_acl != 0;
        if is_file || inode.uid != 0 || inode.gid != 0 || inode.flags != 0 {
            self.report.find(place, "is a file, but lists bad blocks");
        }
        let levels = |index: usize| (index + 1).saturating_sub(DIRECT_POINTERS);
        let of_inode = (0..INODE_POINTERS).map(|i| (pointer(&inode.map, i), levels(i)));
        let mut waiting: Vec<(u64, usize)> = of_inode.collect();
        while let Some((block, levels)) = waiting.pop() {
            if block == 0 || !self.claim(block, 1, place) {
                continue;
            }
            if levels > 0 {
                let bytes = self.read(block).await?;
                waiting.extend(
                    (0..BLOCK_POINTERS).map(|index| (pointer(&bytes[..], index), levels - 1)),
                );
            }
        }
        Ok(())
    }

    /// Follows the pointers of inode 7.
    pub(super) async fn check_resize_inode(&mut self) -> Result<(), BlockError> {
        if !self.sb.has(Feature::RESIZE_INODE) || !self.has_table(0) {
            return Ok(());
        }
        let Some(inode) = self.resize_inode().await? else { return Ok(()) };
        let place = Place::Inode(RESIZE_INODE);
        if inode.file_type() != mode::REGULAR || inode.links_count == 0 {
            self.report.find(place, "is the resize inode, but not a regular file");
        }
        let top = pointer(&inode.map, DOUBLE_INDIRECT);
        let others = (0..INODE_POINTERS).filter(|index| *index != DOUBLE_INDIRECT);
        if others.map(|index| pointer(&inode.map, index)).any(|block| block != 0) {
            self.report.find(place, "maps other blocks than it should");
        }
        if top == 0 && self.sb.reserved_gdt_blocks == 0 {
            return Ok(());
        }
        if !self.claim(top, 1, place) {
            return Ok(());
        }
        let bytes = self.read(top).await?;
        let backups = (1..self.sb.groups()).filter(|group| self.sb.has_superblock(*group));
        let backups: Vec<u64> = backups.map(|group| self.sb.group_first_block(group)).collect();
        let (first, reserved) =
            (self.sb.desc_blocks() as usize, self.sb.reserved_gdt_blocks.into());
        for index in 0..reserved {
            let block = (1 + first + index) as u64;
            self.check_reserved(&bytes, (first + index) % BLOCK_POINTERS, block, &backups).await?;
        }
        let slots =
            (0..reserved).map(|index| (first + index) % BLOCK_POINTERS).collect::<BTreeSet<_>>();
        let others = (0..BLOCK_POINTERS).filter(|slot| !slots.contains(slot));
        if others.into_iter().any(|slot| pointer(&bytes[..], slot) != 0) {
            let place = Place::InodeBlock { inode: RESIZE_INODE, block: top };
            self.report.find(place, "refers to blocks other than the reserved ones");
        }
        self.check_pointed(&inode, slots.last().copied(), backups.len());
        let blocks = 1 + (reserved * (1 + backups.len())) as u64;
        self.check_count(RESIZE_INODE, &inode, blocks);
        Ok(())
    }

    /// The size reaches to the last block that pointers lead to, and no further than they could.
    fn check_pointed(&mut self, inode: &Inode, last_slot: Option<usize>, backups: usize) {
        let last_slot = last_slot.filter(|_| backups > 0);
        let last = last_slot.map_or(0, |slot| {
            DIRECT_POINTERS + BLOCK_POINTERS + slot * BLOCK_POINTERS + backups - 1
        });
        let sound = (last * BLOCK_BYTES) as u64..=POINTED_BYTES_MAX;
        if !sound.contains(&inode.size) {
            let what = format!("size is {} bytes, which does not match its pointers", inode.size);
            self.report.find(Place::Inode(RESIZE_INODE), what);
        }
    }

    async fn resize_inode(&mut self) -> Result<Option<Inode>, BlockError> {
        let Some(at) = self.sb.inode_place(RESIZE_INODE) else { return Ok(None) };
        let block = at.block(&self.sb);
        let bytes = self.read_table(at.group, block, block + 1).await?;
        let bytes = &bytes[at.offset(&self.sb)..][..self.sb.inode_bytes()];
        // What is unsound in it was found with the other inodes.
        Ok(Inode::parse(bytes, RESIZE_INODE, &self.sb).ok())
    }

    /// A reserved block of group 0 holds pointers to the same block of each backup.
    async fn check_reserved(
        &mut self,
        top: &BlockBytes,
        slot: usize,
        block: u64,
        backups: &[u64],
    ) -> Result<(), BlockError> {
        let place = Place::InodeBlock { inode: RESIZE_INODE, block };
        if pointer(&top[..], slot) != block || block >= self.sb.blocks_count {
            self.report.find(place, format!("slot {slot} does not refer to this block"));
            return Ok(());
        }
        let bytes = self.read(block).await?;
        let expected = backups.iter().map(|first| first + block);
        let expected = expected.chain(std::iter::repeat(0));
        let wrong = expected
            .take(BLOCK_POINTERS)
            .zip(0..)
            .find(|(e, index)| pointer(&bytes[..], *index) != *e);
        if let Some((expected, index)) = wrong {
            let is = pointer(&bytes[..], index);
            self.report.find(place, format!("pointer {index} is {is}, expected {expected}"));
        }
        Ok(())
    }
}
