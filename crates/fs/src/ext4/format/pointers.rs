//! Block maps: files without extents are mapped by pointers, in the inode and in blocks of pointers. Of
//! what we write, inode 7 is; inode 1 lists its bad blocks so. Source:
//! Documentation/filesystems/ext4/blockmap.rst.

use super::BLOCK_BYTES;

/// Pointers of an inode: to blocks, then one each through one, two and three blocks of pointers.
pub const INODE_POINTERS: usize = 15;
/// Those that lead to blocks of the file.
pub const DIRECT_POINTERS: usize = 12;
/// The one that leads to a block of blocks of pointers.
pub const DOUBLE_INDIRECT: usize = 13;
/// Pointers of a block.
pub const BLOCK_POINTERS: usize = BLOCK_BYTES / 4;

/// Bytes of a file that pointers reach.
pub const POINTED_BYTES_MAX: u64 = {
    let block = BLOCK_POINTERS as u64;
    (DIRECT_POINTERS as u64 + block + block.pow(2) + block.pow(3)) * BLOCK_BYTES as u64
};

/// The block that pointer `index` of an inode's map or of a block leads to; 0: none.
///
/// # Panics
/// With an index behind the end.
#[must_use]
pub fn pointer(bytes: &[u8], index: usize) -> u64 {
    let word = bytes.as_chunks::<4>().0[index];
    u32::from_le_bytes(word).into()
}
