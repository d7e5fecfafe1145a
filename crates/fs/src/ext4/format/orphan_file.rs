//! Blocks of the orphan file: numbers of inodes, then a magic and a checksum.
//! Source: Documentation/filesystems/ext4/orphan.rst.

use super::BLOCK_BYTES;
use super::checksum::{CsumSeed, crc32c};
use super::error::{FormatError, Place};
use super::wire::u32_at;

/// Magic of a block.
const MAGIC: u32 = 0x0b10_ca04;
const MAGIC_AT: usize = BLOCK_BYTES - 8;
const CHECKSUM_AT: usize = BLOCK_BYTES - 4;

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
    if u32_at(bytes, MAGIC_AT) != MAGIC {
        return Err(FormatError::corrupt(place, MAGIC_AT, "is no block of the orphan file"));
    }
    if let Some(at) = bytes[..MAGIC_AT].iter().position(|&byte| byte != 0) {
        return Err(FormatError::corrupt(place, at, "names an orphan, which the features deny"));
    }
    let Some(CsumSeed(seed)) = seed else { return Ok(()) };
    let computed = crc32c(crc32c(seed, &block.to_le_bytes()), &bytes[..MAGIC_AT]);
    FormatError::checksum(place, u32_at(bytes, CHECKSUM_AT), computed)
}
