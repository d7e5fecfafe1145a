//! Blocks of the orphan file: numbers of inodes, 0 where there is none, then a magic and a checksum.
//! Source: Documentation/filesystems/ext4/orphan.rst.

use super::BLOCK_BYTES;
use super::checksum::{CsumSeed, crc32c};
use super::error::{FormatError, Place};
use crate::wire::{put_u32, u32_at};

/// Magic of a block.
const MAGIC: u32 = 0x0b10_ca04;
const MAGIC_AT: usize = BLOCK_BYTES - 8;
const CHECKSUM_AT: usize = BLOCK_BYTES - 4;

/// The orphans that the block at this address of the orphan file names; `seed` is the file's.
///
/// # Errors
/// [`FormatError`].
pub fn parse_orphan_block(
    bytes: &[u8],
    block: u64,
    seed: Option<CsumSeed>,
    place: Place,
) -> Result<Vec<u32>, FormatError> {
    check_magic(bytes, place)?;
    check_checksum(bytes, block, seed, place)?;
    let entries = (0..MAGIC_AT).step_by(4).map(|at| u32_at(bytes, at));
    Ok(entries.filter(|number| *number != 0).collect())
}

/// Takes an inode out of the block at this address.
pub fn clear_orphan(bytes: &mut [u8], number: u32, block: u64, seed: Option<CsumSeed>) {
    for at in (0..MAGIC_AT).step_by(4) {
        if u32_at(bytes, at) == number {
            put_u32(bytes, at, 0);
        }
    }
    if let Some(seed) = seed {
        put_u32(bytes, CHECKSUM_AT, checksum(bytes, block, seed));
    }
}

/// Whether the block at this address is one of the orphan file, and names no orphan; `seed` is the file's.
///
/// # Errors
/// [`FormatError`].
pub fn check_orphan_block(
    bytes: &[u8; BLOCK_BYTES],
    block: u64,
    seed: Option<CsumSeed>,
    place: Place,
) -> Result<(), FormatError> {
    check_magic(bytes, place)?;
    if let Some(at) = bytes[..MAGIC_AT].iter().position(|&byte| byte != 0) {
        return Err(FormatError::corrupt(place, at, "names an orphan, which the features deny"));
    }
    check_checksum(bytes, block, seed, place)
}

fn check_magic(bytes: &[u8], place: Place) -> Result<(), FormatError> {
    if u32_at(bytes, MAGIC_AT) == MAGIC {
        return Ok(());
    }
    Err(FormatError::corrupt(place, MAGIC_AT, "is not a block of the orphan file"))
}

fn check_checksum(
    bytes: &[u8],
    block: u64,
    seed: Option<CsumSeed>,
    place: Place,
) -> Result<(), FormatError> {
    let Some(seed) = seed else { return Ok(()) };
    FormatError::checksum(place, u32_at(bytes, CHECKSUM_AT), checksum(bytes, block, seed))
}

fn checksum(bytes: &[u8], block: u64, CsumSeed(seed): CsumSeed) -> u32 {
    crc32c(crc32c(seed, &block.to_le_bytes()), &bytes[..MAGIC_AT])
}
