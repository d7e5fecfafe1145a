//! Inode 1: the blocks that mke2fs or e2fsck found bad. They belong to no other inode, and are mapped by
//! pointers, as what the reserved inode 7 has.

use super::volume::Volume;
use crate::ext4::format::*;
use nandscape_block::BlockError;

impl Volume {
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
}
