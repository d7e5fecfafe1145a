//! The orphan file, in which Linux keeps numbers of orphans. A kernel that was cut off leaves some there, with
//! the feature `orphan_present`: mount brings them to the superblock's list, each in a transaction that takes
//! it out of the file, and the file stays empty.

use super::format::{
    CsumSeed, Feature, Place, STATE_ERRORS, clear_orphan, extent_blocks, mode, parse_orphan_block,
};
use super::raw::Ext4Image;
use super::volume::{Volume, corrupt};
use crate::contract::Result;
use std::rc::Rc;

/// Linux takes no longer file.
const MOST_BLOCKS: u64 = 512;

/// Where the orphan file lies, if it may name orphans.
#[derive(Default)]
pub(crate) struct OrphanFile {
    number: u32,
    blocks: Vec<u64>,
    seed: Option<CsumSeed>,
}

impl OrphanFile {
    /// Of a volume whose journal is recovered.
    pub(crate) async fn find(raw: &Ext4Image) -> Result<Self> {
        let number = raw.sb.orphan_file_inum;
        if !raw.sb.has(Feature::ORPHAN_PRESENT) {
            return Ok(Self::default());
        }
        let (inode, _) = raw.inode(number).await?;
        let extents = raw.extents(number, &inode).await?;
        let blocks = extent_blocks(&extents);
        if inode.file_type() != mode::REGULAR || blocks > MOST_BLOCKS {
            return Err(corrupt("orphan file", Place::Inode(number)));
        }
        let blocks = extents.iter().flat_map(|run| run.start..run.end()).collect();
        Ok(Self { number, blocks, seed: inode.seed(number, &raw.sb) })
    }
}

impl Volume {
    /// Empties the orphan file. What it names is in the list of orphans then, but on a volume with errors,
    /// where it may name anything.
    pub(crate) async fn empty_orphan_file(self: &Rc<Self>, file: OrphanFile) -> Result<()> {
        for block in file.blocks {
            let place = Place::InodeBlock { inode: file.number, block };
            self.meta.alloc.system_zone.check(block..block + 1, place)?;
            let buffer = self.meta.read_block(block).await?;
            let named =
                buffer.with(|bytes| parse_orphan_block(&bytes[..], block, file.seed, place))?;
            for number in named {
                let tx = self.meta.begin(4, 0).await?;
                let sound = self.meta.sb.borrow().state & STATE_ERRORS == 0;
                if sound && !self.meta.is_ordinary(number) {
                    return Err(corrupt("orphan file", place));
                }
                if sound {
                    let inode = self.orphan(number).await?;
                    self.add_orphan(&tx, &inode).await?;
                    self.meta.write_inode(&tx, &inode, false).await?;
                }
                tx.edit(&buffer, |bytes| clear_orphan(bytes, number, block, file.seed)).await?;
                tx.stop();
            }
        }
        if self.meta.has(Feature::ORPHAN_PRESENT) {
            let tx = self.meta.begin(1, 0).await?;
            self.meta.sb.borrow_mut().set_feature(Feature::ORPHAN_PRESENT, false);
            self.meta.write_superblock(&tx).await?;
            tx.stop();
        }
        Ok(())
    }
}
