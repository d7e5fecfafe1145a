//! Writing a new file system: runs of blocks, several bios in flight, the superblock last.

use super::{MkfsOptions, MkfsState};
use crate::ext4::format::*;
use crate::mkfs::{Block, discard_to_zeroes, write_blocks, zero};
use nandscape_block::{AsyncDevice, BlockError};
use std::borrow::Cow;

/// Makes an old superblock void, and what will not be written read as zeroes, by discarding it if that
/// helps and is wanted. Whether all of the volume reads as zeroes then; if not, what must be zeroes is.
pub(super) async fn clear(
    device: &AsyncDevice,
    made: &MkfsState,
    options: &MkfsOptions,
) -> Result<bool, BlockError> {
    if options.fresh {
        return Ok(true);
    }
    zero(device, 0..1).await?;
    device.flush().await?;
    if options.discard && discard_to_zeroes(device, made.sb.blocks_count).await? {
        return Ok(true);
    }
    for run in &made.contents.journal {
        zero(device, run.clone()).await?;
    }
    if !made.sb.has_group_checksums() {
        let blocks = u64::from(made.sb.inode_table_blocks());
        for group in &made.groups.descriptors {
            zero(device, group.inode_table..group.inode_table + blocks).await?;
        }
    }
    Ok(false)
}

/// Writes the file system, its superblock last.
pub(super) async fn write(device: &AsyncDevice, made: &MkfsState) -> Result<(), BlockError> {
    write_blocks(device, made.backups()).await?;
    write_blocks(device, made.bitmaps()).await?;
    write_blocks(device, made.inode_tables().into_iter()).await?;
    let contents = made.contents.blocks.iter();
    write_blocks(device, contents.map(|(at, bytes)| (*at, Cow::Borrowed(&bytes[..])))).await?;
    device.flush().await?;
    let first = (0, Cow::Owned(made.superblock_block(0)));
    write_blocks(device, std::iter::once(first)).await?;
    device.flush().await
}

impl MkfsState {
    /// The first block of a group with its superblock.
    fn superblock_block(&self, group: u32) -> Vec<u8> {
        let mut block = vec![0; BLOCK_BYTES];
        let at = if group == 0 { SUPERBLOCK_AT } else { 0 };
        let mut sb = Superblock { block_group_nr: group as u16, ..self.sb.clone() };
        if group > 0 {
            // A backup is of a file system in use, never of a clean one.
            sb.state &= !STATE_CLEAN;
        }
        sb.encode(&mut block[at..at + SUPERBLOCK_BYTES]);
        block
    }

    /// All descriptors.
    fn descriptor_blocks(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.sb.desc_blocks() as usize * BLOCK_BYTES];
        let places = bytes.chunks_exact_mut(self.sb.desc_bytes());
        for ((group, descriptor), place) in (0..).zip(&self.groups.descriptors).zip(places) {
            descriptor.encode(place, group, &self.sb);
        }
        bytes
    }

    /// Superblocks and descriptors of all groups that have them, but for the superblock in use.
    fn backups(&self) -> impl Iterator<Item = Block<'_>> {
        let descriptors = self.descriptor_blocks();
        let groups = (0..self.sb.groups()).filter(|group| self.sb.has_superblock(*group));
        groups.flat_map(move |group| {
            let first = self.sb.group_first_block(group);
            let own = (group > 0).then(|| (first, Cow::Owned(self.superblock_block(group))));
            let copies = descriptors.chunks_exact(BLOCK_BYTES);
            let copies = (first + 1..).zip(copies.map(|bytes| Cow::Owned(bytes.to_vec())));
            own.into_iter().chain(copies).collect::<Vec<_>>()
        })
    }

    fn bitmaps(&self) -> impl Iterator<Item = Block<'_>> {
        let groups = &self.groups;
        let blocks = groups.descriptors.iter().zip(&groups.block_bitmaps);
        let inodes = groups.descriptors.iter().zip(&groups.inode_bitmaps);
        let blocks = blocks.filter_map(|(g, bitmap)| Some((g.block_bitmap, bitmap.as_ref()?)));
        let inodes = inodes.filter_map(|(g, bitmap)| Some((g.inode_bitmap, bitmap.as_ref()?)));
        blocks.chain(inodes).map(|(at, bitmap)| (at, Cow::Borrowed(&bitmap[..])))
    }

    /// The blocks of inode tables that hold inodes in use.
    fn inode_tables(&self) -> Vec<Block<'_>> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        for (number, inode) in &self.contents.inodes {
            let Some(place) = self.sb.inode_place(*number) else { continue };
            let table = self.groups.descriptors[place.group as usize].inode_table;
            let at = table + place.block(&self.sb);
            if blocks.last().is_none_or(|(last, _)| *last != at) {
                blocks.push((at, Cow::Owned(vec![0; BLOCK_BYTES])));
            }
            let Some((_, block)) = blocks.last_mut() else { continue };
            let bytes = &mut block.to_mut()[place.offset(&self.sb)..][..self.sb.inode_bytes()];
            inode.encode(bytes, inode.seed(*number, &self.sb));
        }
        blocks
    }
}
