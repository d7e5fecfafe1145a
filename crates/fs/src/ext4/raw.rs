//! Reading structures straight from a device, for those who examine a file system instead of
//! mounting it, and for a mount that has no journal yet.

use super::format::*;
use crate::image::{BlockBytes, ImageError, ImageReader, Probe};
use nandscape_block::{AsyncDevice, BlockError};
use std::collections::BTreeSet;
use thiserror::Error;

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

impl From<RawError> for ImageError {
    fn from(error: RawError) -> Self {
        match error {
            RawError::Format(error) => Self::Format(error.to_string()),
            RawError::Device(error) => Self::Device(error),
        }
    }
}

/// Whether a device carries ext4's magic number.
pub(crate) async fn has_magic(device: &AsyncDevice) -> Result<bool, BlockError> {
    let reader = ImageReader::new(device);
    if reader.sectors() == 0 {
        return Ok(false);
    }
    let magic = &reader.block(0).await?[SUPERBLOCK_AT + SUPERBLOCK_MAGIC_AT..][..2];
    Ok(magic == SUPERBLOCK_MAGIC.to_le_bytes())
}

/// What the superblock says.
pub(crate) async fn identify(device: &AsyncDevice) -> Result<Probe, ImageError> {
    let sb = Ext4Image::open(device).await?.sb;
    let end = sb.volume_name.iter().position(|byte| *byte == 0).unwrap_or(sb.volume_name.len());
    Ok(Probe {
        label: String::from_utf8_lossy(&sb.volume_name[..end]).into_owned(),
        sectors: sb.blocks_count,
        clean: !sb.has(Feature::NEEDS_RECOVERY),
        has_errors: sb.state & STATE_ERRORS != 0,
        last_write_s: sb.mtime.max(sb.wtime).into(),
    })
}

/// A device with a file system that does not change.
pub struct Ext4Image {
    reader: ImageReader,
    /// Its superblock.
    pub sb: Superblock,
    /// The block that it lies in.
    pub(crate) first_block: BlockBytes,
}

impl Ext4Image {
    /// Reads the superblock. Features are not looked at.
    ///
    /// # Errors
    /// No ext4 file system, or one larger than the device.
    pub async fn open(device: &AsyncDevice) -> Result<Self, RawError> {
        let reader = ImageReader::new(device);
        let sectors = reader.sectors();
        if sectors == 0 {
            let what = "is not there: no ext4 file system is so small".to_owned();
            return Err(FormatError::Incompatible { place: Place::Superblock(0), what }.into());
        }
        let block = reader.block(0).await?;
        let sb = Superblock::parse(&block[SUPERBLOCK_AT..], 0)?;
        if sb.blocks_count > sectors {
            let what = format!("{} blocks do not fit the volume's {sectors}", sb.blocks_count);
            return Err(FormatError::Incompatible { place: Place::Superblock(0), what }.into());
        }
        Ok(Self { reader, sb, first_block: block })
    }

    /// The reader of its blocks.
    #[must_use]
    pub const fn reader(&self) -> &ImageReader {
        &self.reader
    }

    /// Reads the descriptor of a group, whatever its checksum.
    ///
    /// # Errors
    /// What the device says.
    pub async fn descriptor(&self, group: u32) -> Result<GroupDescriptor, BlockError> {
        let (block, at) = self.sb.desc_place(group);
        let bytes = self.reader.block(block).await?;
        Ok(GroupDescriptor::parse_unchecked(&bytes[at..at + self.sb.desc_bytes()]))
    }

    /// Reads an inode and all its bytes.
    ///
    /// # Errors
    /// No such inode, or an unsound one.
    pub async fn inode(&self, number: u32) -> Result<(Inode, Vec<u8>), RawError> {
        let place = Place::Inode(number);
        let none = || FormatError::Incompatible { place, what: "no such inode".into() };
        let at = self.sb.inode_place(number).ok_or_else(none)?;
        let table = self.descriptor(at.group).await?.inode_table;
        let block = self.reader.block(table + at.block(&self.sb)).await?;
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
                let node = ExtentNode::parse(&self.reader.block(entry.node).await?[..], place)?;
                if node.depth() + 1 != depth || !entered.insert(entry.node) {
                    let what = "is not the node that its parent refers to".to_owned();
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
    /// Those of [`Ext4Image::extent_nodes`].
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
