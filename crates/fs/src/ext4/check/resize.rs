//! The inode that keeps room for more descriptors: mapped by pointers, to blocks that belong to the
//! superblocks' reserve.

use super::volume::Volume;
use crate::ext4::format::*;
use crate::ext4::raw::BlockBytes;
use nandscape_block::BlockError;

/// The word of a block map that leads to a block of blocks of pointers.
const DOUBLE_INDIRECT: usize = 13;
pub(super) const POINTERS: usize = BLOCK_BYTES / 4;

/// The block that pointer `index` of a block leads to.
pub(super) fn pointer(bytes: &[u8], index: usize) -> u64 {
    let word = bytes.as_chunks::<4>().0[index];
    u32::from_le_bytes(word).into()
}

impl Volume {
    /// Follows the pointers of inode 7.
    pub(super) async fn check_resize_inode(&mut self) -> Result<(), BlockError> {
        if !self.sb.has(Feature::RESIZE_INODE) || !self.has_table(0) {
            return Ok(());
        }
        let Some(inode) = self.resize_inode().await? else { return Ok(()) };
        let place = Place::Inode(RESIZE_INODE);
        let top = pointer(&inode.map, DOUBLE_INDIRECT);
        let others = (0..15).filter(|index| *index != DOUBLE_INDIRECT);
        if others.map(|index| pointer(&inode.map, index)).any(|block| block != 0) {
            self.report.find(place, "maps blocks beside those that it should");
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
            self.check_reserved(&bytes, (first + index) % POINTERS, block, &backups).await?;
        }
        let blocks = 1 + (reserved * (1 + backups.len())) as u64;
        if inode.blocks_4k() != blocks {
            let what = format!("says {} blocks, has {blocks}", inode.blocks_4k());
            self.report.find(place, what);
        }
        Ok(())
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
            self.report.find(place, format!("slot {slot} does not lead here"));
            return Ok(());
        }
        let bytes = self.read(block).await?;
        let expected = backups.iter().map(|first| first + block);
        let expected = expected.chain(std::iter::repeat(0));
        let wrong =
            expected.take(POINTERS).zip(0..).find(|(e, index)| pointer(&bytes[..], *index) != *e);
        if let Some((expected, index)) = wrong {
            let is = pointer(&bytes[..], index);
            self.report.find(place, format!("pointer {index} leads to {is}, not {expected}"));
        }
        Ok(())
    }
}
