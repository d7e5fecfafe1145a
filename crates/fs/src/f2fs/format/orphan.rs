//! Blocks of orphans in a checkpoint pack: inodes without a name that were still open. Follows
//! include/linux/f2fs_fs.h and `write_orphan_inodes` in fs/f2fs/checkpoint.c.

use super::error::{FormatError, Place};
use super::{BLOCK_BYTES, Nid};
use crate::wire::{put_u32, record, u32_at};

/// Inode numbers of a block.
pub const ORPHANS_PER_BLOCK: usize = 1020;

record! {
    /// What follows the inode numbers in a block of orphans.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct OrphanFooter {
        /// Which block of orphans this is, from 1 on.
        blk_addr: u16 = 0xff4,
        /// Blocks of orphans in the pack.
        blk_count: u16 = 0xff6,
        /// Inode numbers in this block.
        entry_count: u32 = 0xff8,
        /// A checksum that no kernel writes or reads.
        check_sum: u32 = 0xffc,
    }
}

/// Blocks that so many orphans take.
#[must_use]
pub const fn orphan_blocks(orphans: usize) -> usize {
    orphans.div_ceil(ORPHANS_PER_BLOCK)
}

/// The orphans of a block. `pack` is the pack it lies in, 0 or 1.
///
/// # Errors
/// More numbers than there is room for, or a block that is cut short.
pub fn parse_orphans(block: &[u8], pack: u32) -> Result<Vec<Nid>, FormatError> {
    let place = Place::Orphans(pack);
    if block.len() < BLOCK_BYTES {
        return Err(FormatError::corrupt(place, 0, "are cut short"));
    }
    let count = OrphanFooter::read(block).entry_count as usize;
    if count > ORPHANS_PER_BLOCK {
        return Err(FormatError::corrupt(place, 0xff8, "are more than a block has room for"));
    }
    Ok((0..count).map(|index| Nid(u32_at(block, 4 * index))).collect())
}

/// The blocks of these orphans, in order.
#[must_use]
pub fn encode_orphans(orphans: &[Nid]) -> Vec<[u8; BLOCK_BYTES]> {
    let blocks = orphan_blocks(orphans.len()) as u16;
    let encode = |(index, chunk): (u16, &[Nid])| {
        let mut block = [0; BLOCK_BYTES];
        for (at, ino) in chunk.iter().enumerate() {
            put_u32(&mut block, 4 * at, ino.0);
        }
        let entry_count = chunk.len() as u32;
        let footer = OrphanFooter { blk_addr: index, blk_count: blocks, entry_count, check_sum: 0 };
        footer.write(&mut block);
        block
    };
    (1..).zip(orphans.chunks(ORPHANS_PER_BLOCK)).map(encode).collect()
}
