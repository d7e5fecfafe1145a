//! The checksums of F2FS: CRC-32 (reflected polynomial 0xEDB88320) of superblock, checkpoint and inode.
//! Follows `__f2fs_crc32` in fs/f2fs/f2fs.h, `f2fs_checkpoint_chksum` in fs/f2fs/checkpoint.c and
//! `f2fs_inode_chksum` in fs/f2fs/inode.c.
//!
//! The kernel's crc32 is the raw register: it begins with a seed, the magic of the superblock where no
//! other is named, and is not inverted at the end.

use super::{BLOCK_BYTES, SUPERBLOCK_CRC_AT, SUPERBLOCK_MAGIC};

/// Where the checksum of an inode with extra attributes stands (`i_inode_checksum`).
pub const INODE_CHECKSUM_AT: usize = 0x170;

/// The register after `bytes`, from `register` on.
#[must_use]
pub fn crc32(register: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!register);
    hasher.update(bytes);
    !hasher.finalize()
}

/// Of a superblock: of everything before its `crc`, which is at [`SUPERBLOCK_CRC_AT`].
#[must_use]
pub(super) fn superblock(bytes: &[u8]) -> u32 {
    crc32(SUPERBLOCK_MAGIC, &bytes[..bytes.len().min(SUPERBLOCK_CRC_AT)])
}

/// Of a checkpoint block whose checksum stands at `at`: of what is before it and what is after it.
#[must_use]
pub(super) fn checkpoint(block: &[u8], at: usize) -> u32 {
    let register = crc32(SUPERBLOCK_MAGIC, block.get(..at).unwrap_or(block));
    let rest = at.saturating_add(4)..BLOCK_BYTES;
    // With the checksum at the end of the block, the kernel takes no second part.
    crc32(register, block.get(rest).unwrap_or_default())
}

/// Where the checksums of inodes begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChecksumSeed(pub u32);

impl ChecksumSeed {
    /// The seed that follows from a file system's UUID (`s_chksum_seed`).
    #[must_use]
    pub fn of_uuid(uuid: &[u8; 16]) -> Self {
        Self(crc32(!0, uuid))
    }

    /// Of an inode's block of 4,096 bytes, footer included, its checksum read as 0. `ino` is the inode
    /// number that the footer names, `generation` the inode's.
    #[must_use]
    pub fn inode(self, block: &[u8], ino: u32, generation: u32) -> u32 {
        let register = crc32(crc32(self.0, &ino.to_le_bytes()), &generation.to_le_bytes());
        let (head, rest) = block.split_at(block.len().min(INODE_CHECKSUM_AT));
        let register = crc32(crc32(register, head), &[0; 4]);
        crc32(register, rest.get(4..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The register bit by bit, as the definition has it.
    fn slow(register: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(register, |register, &byte| {
            (0..8).fold(register ^ u32::from(byte), |register, _| {
                register >> 1 ^ if register & 1 == 1 { 0xedb8_8320 } else { 0 }
            })
        })
    }

    /// The register is that of the definition, from any seed, and can be continued.
    #[test]
    fn crc32_is_the_raw_register() {
        let bytes: Vec<u8> = (0..1000_u32).map(|i| (i * 7 + i / 3) as u8).collect();
        for seed in [0, 1, SUPERBLOCK_MAGIC, !0] {
            assert_eq!(crc32(seed, &bytes), slow(seed, &bytes));
            assert_eq!(crc32(crc32(seed, &bytes[..333]), &bytes[333..]), slow(seed, &bytes));
        }
        // The check value of CRC-32/JAMCRC, which is not inverted at the end either.
        assert_eq!(crc32(!0, b"123456789"), 0x340b_c6d9);
    }

    /// The checksum of an inode covers all of its block but itself, and what the inode is.
    #[test]
    fn an_inode_s_checksum_covers_its_block() {
        let (seed, block) = (ChecksumSeed::of_uuid(b"0123456789abcdef"), [7; BLOCK_BYTES]);
        let sum = seed.inode(&block, 4, 9);
        for at in [0, INODE_CHECKSUM_AT - 1, INODE_CHECKSUM_AT + 4, BLOCK_BYTES - 1] {
            let mut other = block;
            other[at] ^= 1;
            assert_ne!(seed.inode(&other, 4, 9), sum, "byte {at}");
        }
        for at in INODE_CHECKSUM_AT..INODE_CHECKSUM_AT + 4 {
            let mut other = block;
            other[at] ^= 1;
            assert_eq!(seed.inode(&other, 4, 9), sum, "byte {at}");
        }
        assert_ne!(seed.inode(&block, 5, 9), sum);
        assert_ne!(seed.inode(&block, 4, 8), sum);
        assert_ne!(ChecksumSeed(1).inode(&block, 4, 9), sum);
        let by_hand = slow(slow(seed.0, &[4, 0, 0, 0]), &[9, 0, 0, 0]);
        let mut zeroed = block;
        zeroed[INODE_CHECKSUM_AT..INODE_CHECKSUM_AT + 4].fill(0);
        assert_eq!(sum, slow(by_hand, &zeroed));
    }
}
