//! The checksums of ext4: crc32c of each structure with `metadata_csum`, crc16 of group descriptors
//! with `uninit_bg` alone. Follows Documentation/filesystems/ext4/checksums.rst.
//!
//! ext4's crc32c is the raw register: it begins with the seed, or all ones, and is not inverted at the
//! end. Everything but the superblock begins with the file system's seed, and what belongs to an
//! inode with the inode's ([`CsumSeed::of_inode`]).

use super::BLOCK_BYTES;
use std::ops::Range;

/// The register after `bytes`, from `register` on.
#[must_use]
pub fn crc32c(register: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!register, bytes)
}

/// Bytes of which a checksum can be taken.
pub trait Summed: AsRef<[u8]> {
    /// The register after the first `end` bytes, or all if there are fewer.
    fn crc32c(&self, register: u32, end: usize) -> u32;
}

/// Bytes that can be changed; what is to be changed has to be asked for.
pub trait Editable: Summed {
    /// Bytes to be changed.
    fn part(&mut self, range: Range<usize>) -> &mut [u8];
}

impl<T: AsRef<[u8]> + AsMut<[u8]> + ?Sized> Summed for T {
    fn crc32c(&self, register: u32, end: usize) -> u32 {
        let bytes = self.as_ref();
        crc32c(register, &bytes[..end.min(bytes.len())])
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]> + ?Sized> Editable for T {
    fn part(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.as_mut()[range]
    }
}

/// Where checksums begin: the file system's seed, or an inode's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CsumSeed(pub u32);

impl CsumSeed {
    /// The seed that follows from a file system's UUID.
    #[must_use]
    pub fn of_uuid(uuid: &[u8; 16]) -> Self {
        Self(crc32c(!0, uuid))
    }

    /// The seed of what belongs to an inode.
    #[must_use]
    pub fn of_inode(self, inode: u32, generation: u32) -> Self {
        let register = crc32c(self.0, &inode.to_le_bytes());
        Self(crc32c(register, &generation.to_le_bytes()))
    }

    /// `bytes`, taking the ranges in `holes` for zeroes; holes are in order.
    fn around(self, bytes: &[u8], holes: &[(usize, usize)]) -> u32 {
        const ZEROES: [u8; 4] = [0; 4];
        let (mut register, mut from) = (self.0, 0);
        for &(at, len) in holes {
            register = crc32c(register, bytes.get(from..at).unwrap_or_default());
            register = crc32c(register, &ZEROES[..len]);
            from = at + len;
        }
        crc32c(register, bytes.get(from..).unwrap_or_default())
    }

    /// Of a group's descriptor; 16 bits are kept.
    #[must_use]
    pub fn group_descriptor(self, group: u32, bytes: &[u8]) -> u16 {
        const CHECKSUM_AT: usize = 0x1e;
        let (head, rest) = bytes.split_at(bytes.len().min(CHECKSUM_AT + 2));
        let mut numbered = [0; 4 + CHECKSUM_AT + 2];
        numbered[..4].copy_from_slice(&group.to_le_bytes());
        numbered[4..][..head.len()].copy_from_slice(head);
        numbered[4 + CHECKSUM_AT..].fill(0);
        crc32c(crc32c(self.0, &numbered[..4 + head.len()]), rest) as u16
    }

    /// Of a group's block or inode bitmap: of the bits that stand for something, `bits` of them.
    #[must_use]
    pub fn bitmap(self, bytes: &(impl Summed + ?Sized), bits: u32) -> u32 {
        bytes.crc32c(self.0, bits as usize / 8)
    }

    /// Of an inode whose checksum reads as zero; `self` is the inode's.
    #[must_use]
    pub fn inode(self, bytes: &[u8]) -> u32 {
        crc32c(self.0, bytes)
    }

    /// Of a block of the inode `self` belongs to, up to where its checksum stands.
    #[must_use]
    pub fn block_up_to(self, bytes: &(impl Summed + ?Sized), end: usize) -> u32 {
        bytes.crc32c(self.0, end)
    }

    /// Of an htree index block: `used` bytes, and the reserved word before the checksum at `tail`.
    #[must_use]
    pub fn index_block(self, bytes: &[u8], used: usize, tail: usize) -> u32 {
        let register = self.block_up_to(bytes, used);
        let reserved = bytes.get(tail..tail + 4).unwrap_or_default();
        crc32c(crc32c(register, reserved), &[0; 4])
    }

    /// Of a block of extended attributes at address `block`.
    #[must_use]
    pub fn xattr_block(self, block: u64, bytes: &[u8; BLOCK_BYTES]) -> u32 {
        Self(crc32c(self.0, &block.to_le_bytes())).around(bytes, &[(0x10, 4)])
    }
}

/// Of a superblock.
#[must_use]
pub(super) fn superblock(bytes: &[u8]) -> u32 {
    crc32c(!0, &bytes[..bytes.len().min(0x3fc)])
}

/// Of a group's descriptor where only `uninit_bg` is on: CRC-16 of UUID, group and descriptor.
#[must_use]
pub(super) fn group_descriptor_crc16(uuid: &[u8; 16], group: u32, bytes: &[u8]) -> u16 {
    let register = crc16(crc16(!0, uuid), &group.to_le_bytes());
    let register = crc16(register, bytes.get(..0x1e).unwrap_or_default());
    crc16(register, bytes.get(0x20..).unwrap_or_default())
}

/// The reflected CRC-16 of polynomial 0x8005, not inverted.
fn crc16(register: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(register, |register, &byte| {
        (0..8).fold(register ^ u16::from(byte), |register, _| {
            register >> 1 ^ if register & 1 == 1 { 0xa001 } else { 0 }
        })
    })
}
