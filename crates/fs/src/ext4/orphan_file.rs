//! The orphan file, in which Linux keeps numbers of orphans. A kernel that was cut off leaves some there, with
//! the feature `orphan_present`: mount brings them to the superblock's list, each in a transaction that takes
//! it out of the file, and the file stays empty.

use super::error::corrupt;
use super::format::{CsumSeed, Feature, Place, extent_blocks, mode};
use super::raw::Ext4Image;
use crate::contract::Result;

/// Linux takes no longer file.
const MOST_BLOCKS: u64 = 512;

/// Where the orphan file lies, if it may name orphans.
#[derive(Default)]
pub(crate) struct OrphanFile {
    pub(super) number: u32,
    pub(super) blocks: Vec<u64>,
    pub(super) seed: Option<CsumSeed>,
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
