//! Writing a new file system: runs of blocks, several bios in flight, the superblock last.

use super::{Made, MkfsOptions};
use crate::ext4::format::*;
use nandscape_block::{AsyncDevice, Bio, BlockError, Flags, Lba, Payload, Tag};
use nandscape_rt::combine::join_all;
use std::borrow::Cow;
use std::ops::Range;

/// Bios in flight at most.
const IN_FLIGHT: usize = 16;
/// Sectors of a bio at most, if the device takes as many.
const RUN_SECTORS: u32 = 64;

/// A block and its content.
type Block<'a> = (u64, Cow<'a, [u8]>);

/// Makes an old superblock void, and what will not be written read as zeroes, by discarding it if that
/// helps and is wanted. Whether all of the volume reads as zeroes then; if not, what must be zeroes is.
pub(super) async fn clear(
    device: &AsyncDevice,
    made: &Made,
    options: &MkfsOptions,
) -> Result<bool, BlockError> {
    if options.fresh {
        return Ok(true);
    }
    zero(device, 0..1).await?;
    device.flush().await?;
    let caps = device.caps();
    if options.discard && caps.discard_sectors > 0 && caps.discard_zeroes {
        let blocks = made.sb.blocks_count - made.sb.blocks_count % u64::from(caps.discard_sectors);
        let step = u32::MAX - u32::MAX % caps.discard_sectors;
        for run in pieces(0..blocks, step) {
            device.discard(Lba(run.start), (run.end - run.start) as u32).await?;
        }
        zero(device, blocks..made.sb.blocks_count).await?;
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
pub(super) async fn write(device: &AsyncDevice, made: &Made) -> Result<(), BlockError> {
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

/// Writes zeroes.
async fn zero(device: &AsyncDevice, blocks: Range<u64>) -> Result<(), BlockError> {
    for run in pieces(blocks, run_sectors(device)) {
        let sectors = (run.end - run.start) as u32;
        let zeroes = vec![Tag::ZERO; sectors as usize].into_boxed_slice();
        device.write(Lba(run.start), sectors, Payload::Tags(zeroes)).await?;
    }
    Ok(())
}

/// Sectors of a bio at most.
fn run_sectors(device: &AsyncDevice) -> u32 {
    match device.caps().max_sectors {
        0 => RUN_SECTORS,
        bound => bound.min(RUN_SECTORS),
    }
}

/// A run in pieces of up to `step`.
fn pieces(run: Range<u64>, step: u32) -> impl Iterator<Item = Range<u64>> {
    let end = run.end;
    run.step_by(step.max(1) as usize).map(move |start| start..(start + u64::from(step)).min(end))
}

/// Writes blocks, those that follow each other in one bio.
async fn write_blocks<'a>(
    device: &AsyncDevice,
    mut blocks: impl Iterator<Item = Block<'a>>,
) -> Result<(), BlockError> {
    let sectors_max = run_sectors(device) as usize;
    let mut next = blocks.next();
    let mut replies = Vec::with_capacity(IN_FLIGHT);
    while let Some((start, bytes)) = next.take() {
        let mut run = bytes.into_owned();
        next = blocks.next();
        while let Some((at, bytes)) = &next
            && *at == start + (run.len() / BLOCK_BYTES) as u64
            && run.len() < sectors_max * BLOCK_BYTES
        {
            run.extend_from_slice(bytes);
            next = blocks.next();
        }
        let sectors = (run.len() / BLOCK_BYTES) as u32;
        let payload = Payload::from_bytes(&run);
        let payload = payload.map_err(|_| BlockError::Malformed("half a block of metadata"))?;
        replies.push(device.submit(Bio::write(Lba(start), sectors, payload).with(Flags::META)));
        if replies.len() == IN_FLIGHT || next.is_none() {
            for reply in join_all(std::mem::take(&mut replies)).await {
                reply?;
            }
        }
    }
    Ok(())
}

impl Made {
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
