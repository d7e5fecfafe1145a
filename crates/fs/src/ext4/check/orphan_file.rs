//! The orphan file: a file of whole blocks without holes, that names no orphan.

use super::volume::Volume;
use crate::ext4::format::*;
use nandscape_block::BlockError;

impl Volume {
    pub(super) async fn check_orphan_file(
        &mut self,
        number: u32,
        inode: &Inode,
        extents: &[Extent],
    ) -> Result<(), BlockError> {
        let place = Place::Inode(number);
        let mapped = extent_blocks(extents);
        if inode.file_type() != mode::REGULAR || inode.size != mapped * BLOCK_BYTES as u64 {
            let what = format!("the orphan file has {} bytes and {mapped} blocks", inode.size);
            self.report.find(place, what);
        }
        let seed = inode.seed(number, &self.sb);
        let blocks = extents.iter().flat_map(|run| run.start..run.end());
        for block in blocks.filter(|block| *block < self.sb.blocks_count).collect::<Vec<_>>() {
            let bytes = self.read(block).await?;
            let place = Place::InodeBlock { inode: number, block };
            let sound = check_orphan_block(&bytes, block, seed, place);
            self.report.sound(place, sound);
        }
        Ok(())
    }
}
