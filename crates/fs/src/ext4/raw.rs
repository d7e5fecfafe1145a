//! Reading structures straight from a device, for those who examine a file system instead of
//! mounting it, and for a mount that has no journal yet.

use super::format::*;
use nandscape_block::{AsyncDevice, BlockError, Lba, Payload};
use std::collections::BTreeSet;
use thiserror::Error;

/// A block's bytes.
pub type BlockBytes = Box<[u8; BLOCK_BYTES]>;

/// Why something cannot be examined.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum RawError {
    /// There is no file system, or none that is supported, or a structure that cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
}

/// A device with a file system that nobody changes.
pub struct Raw {
    device: AsyncDevice,
    /// Its superblock.
    pub sb: Superblock,
    /// The block that it lies in.
    pub(crate) first_block: BlockBytes,
}

impl Raw {
    /// Reads the superblock. Features are not looked at.
    ///
    /// # Errors
    /// No ext4 file system, or one larger than the device.
    pub async fn open(device: &AsyncDevice) -> Result<Self, RawError> {
        let sectors = device.caps().sectors;
        if sectors == 0 {
            let what = "is not there: no ext4 file system is so small".to_owned();
            return Err(FormatError::Incompatible { place: Place::Superblock(0), what }.into());
        }
        let block = read_block(device, 0).await?;
        let sb = Superblock::parse(&block[SUPERBLOCK_AT..], 0)?;
        if sb.blocks_count > sectors {
            let what = format!("{} blocks do not fit the volume's {sectors}", sb.blocks_count);
            return Err(FormatError::Incompatible { place: Place::Superblock(0), what }.into());
        }
        Ok(Self { device: device.clone(), sb, first_block: block })
    }

    /// Reads a block.
    ///
    /// # Errors
    /// What the device says.
    pub async fn block(&self, block: u64) -> Result<BlockBytes, BlockError> {
        read_block(&self.device, block).await
    }

    /// Reads blocks that follow each other.
    ///
    /// # Errors
    /// What the device says.
    pub async fn blocks(&self, first: u64, count: u32) -> Result<Vec<u8>, BlockError> {
        let most = self.device.caps().max_sectors;
        let most = if most == 0 { count.max(1) } else { most };
        let mut bytes = Vec::with_capacity(count as usize * BLOCK_BYTES);
        for from in (0..count).step_by(most as usize) {
            let first = first + u64::from(from);
            let some = most.min(count - from);
            let payload = self.device.read(Lba(first), some).await?;
            for index in 0..some {
                bytes.extend_from_slice(&expand(&payload, index, first)?[..]);
            }
        }
        Ok(bytes)
    }

    /// Reads the descriptor of a group, whatever its checksum.
    ///
    /// # Errors
    /// What the device says.
    pub async fn descriptor(&self, group: u32) -> Result<GroupDescriptor, BlockError> {
        let (block, at) = self.sb.desc_place(group);
        let bytes = self.block(block).await?;
        Ok(GroupDescriptor::parse_unchecked(&bytes[at..at + self.sb.desc_bytes()]))
    }

    /// Reads an inode and all its bytes.
    ///
    /// # Errors
    /// No such inode, or an unsound one.
    pub async fn inode(&self, number: u32) -> Result<(Inode, Vec<u8>), RawError> {
        let place = Place::Inode(number);
        let none = || FormatError::Incompatible { place, what: "there is no such inode".into() };
        let at = self.sb.inode_place(number).ok_or_else(none)?;
        let table = self.descriptor(at.group).await?.inode_table;
        let block = self.block(table + at.block(&self.sb)).await?;
        let bytes = &block[at.offset(&self.sb)..][..self.sb.inode_bytes()];
        Ok((Inode::parse(bytes, number, &self.sb)?, bytes.to_vec()))
    }

    /// The nodes of a file's extent tree, from the root down: place, node.
    ///
    /// # Errors
    /// A file without extents, or an unsound node.
    pub async fn extent_nodes(
        &self,
        number: u32,
        inode: &Inode,
    ) -> Result<Vec<(Place, ExtentNode)>, RawError> {
        let place = Place::Inode(number);
        if !inode.has(flag::EXTENTS) {
            let what = "is not mapped by extents".to_owned();
            return Err(FormatError::Incompatible { place, what }.into());
        }
        let mut nodes = vec![(place, ExtentNode::parse(&inode.map, place)?)];
        let (mut next, mut entered) = (0, BTreeSet::new());
        while let Some((_, node)) = nodes.get(next) {
            next += 1;
            let ExtentEntries::Index { depth, entries } = node.entries.clone() else { continue };
            for entry in entries {
                let place = Place::InodeBlock { inode: number, block: entry.node };
                let node = ExtentNode::parse(&self.block(entry.node).await?[..], place)?;
                if node.depth() + 1 != depth || !entered.insert(entry.node) {
                    let what = "is not the node that the one above leads to".to_owned();
                    return Err(FormatError::Incompatible { place, what }.into());
                }
                nodes.push((place, node));
            }
        }
        Ok(nodes)
    }

    /// The extents of a file, in order.
    ///
    /// # Errors
    /// Those of [`Raw::extent_nodes`].
    pub async fn extents(&self, number: u32, inode: &Inode) -> Result<Vec<Extent>, RawError> {
        let nodes = self.extent_nodes(number, inode).await?;
        let leaves = nodes.into_iter().filter_map(|(_, node)| match node.entries {
            ExtentEntries::Leaf(extents) => Some(extents),
            ExtentEntries::Index { .. } => None,
        });
        let mut extents: Vec<Extent> = leaves.flatten().collect();
        extents.sort_by_key(|extent| extent.logical);
        Ok(extents)
    }
}

/// Reads a block of a device.
///
/// # Errors
/// What the device says.
pub(crate) async fn read_block(device: &AsyncDevice, block: u64) -> Result<BlockBytes, BlockError> {
    let payload = device.read(Lba(block), 1).await?;
    expand(&payload, 0, block)
}

fn expand(payload: &Payload, index: u32, first: u64) -> Result<BlockBytes, BlockError> {
    let lba = Lba(first + u64::from(index));
    let what = "the device keeps no content";
    payload.sector(index).expand().ok_or(BlockError::Io { lba, what })
}
