//! What lies on disk: blocks of 4 KiB, big-endian, each but data beginning with a header of magic,
//! type and transaction id. As Linux's `include/linux/jbd2.h` lays it out; the tables are in
//! docs/formats/journal.md, which a test compares with this code.
//!
//! Parsing takes any bytes: what is nonsense is reported as such or ends the log, and never panics.

mod commit;
mod descriptor;
mod features;
mod revoke;
mod superblock;

#[cfg(test)]
mod tests;

pub use commit::Commit;
pub(super) use descriptor::sum;
pub use descriptor::{Descriptor, Tag, Tags};
pub use features::{Checksums, Features};
pub use revoke::{Revokes, encode as encode_revokes};
pub(super) use superblock::FileArea;
pub use superblock::{Position, Superblock};

use super::super::format::{crc32c, crc32c_padded};
use super::tid::Tid;
use nandscape_block::{SECTOR_BYTES, SectorBytes, SectorData};

/// Bytes of a block.
pub const BLOCK_BYTES: usize = SECTOR_BYTES as usize;
/// The first word of every block of the log but of copies.
pub const MAGIC: u32 = 0xc03b_3998;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 12;
/// Bytes of the checksum at the end of descriptor and revoke blocks.
const TAIL_BYTES: usize = 4;

/// What a block of the log is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Says where the copies that follow it belong.
    Descriptor,
    /// Ends a transaction.
    Commit,
    /// The superblock of old: no features.
    SuperblockV1,
    /// The superblock.
    SuperblockV2,
    /// Blocks whose older copies must not be replayed.
    Revoke,
}

impl Kind {
    const ALL: [Self; 5] =
        [Self::Descriptor, Self::Commit, Self::SuperblockV1, Self::SuperblockV2, Self::Revoke];

    /// Its number on disk.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Descriptor => 1,
            Self::Commit => 2,
            Self::SuperblockV1 => 3,
            Self::SuperblockV2 => 4,
            Self::Revoke => 5,
        }
    }
}

/// The first 12 bytes of a block of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What the block is.
    pub kind: Kind,
    /// Its transaction.
    pub tid: Tid,
}

impl Header {
    /// The header of a block, if it has one of a known kind.
    #[must_use]
    pub fn parse(block: &SectorBytes) -> Option<Self> {
        let number = be32(block, 4);
        let kind = Kind::ALL.into_iter().find(|kind| kind.number() == number)?;
        (be32(block, 0) == MAGIC).then_some(Self { kind, tid: Tid(be32(block, 8)) })
    }

    fn put(self, block: &mut SectorBytes) {
        put32(block, 0, MAGIC);
        put32(block, 4, self.kind.number());
        put32(block, 8, self.tid.0);
    }
}

/// How a journal with certain features lays out tags and computes checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Codec {
    /// Which checksums there are.
    pub checksums: Checksums,
    /// Whether block numbers have 64 bits.
    pub wide: bool,
    seed: u32,
}

impl Codec {
    /// The layout of a journal of these features and this UUID.
    #[must_use]
    pub fn new(features: Features, uuid: &[u8; 16]) -> Self {
        let seed = crc32c(!0, uuid);
        Self { checksums: features.checksums(), wide: features.is_wide(), seed }
    }

    /// Where checksums begin: the CRC-32C of the journal's UUID.
    #[must_use]
    pub const fn seed(&self) -> u32 {
        self.seed
    }

    /// Bytes of a tag in a descriptor. Those of the second kind of checksum are two longer than
    /// their fields, which the kernel keeps for compatibility with itself.
    #[must_use]
    pub const fn tag_bytes(&self) -> usize {
        match (self.checksums, self.wide) {
            (Checksums::V3, _) => 16,
            (Checksums::V2, true) => 14,
            (Checksums::V2, false) => 10,
            (Checksums::None, true) => 12,
            (Checksums::None, false) => 8,
        }
    }

    /// Bytes of a block number in a revoke record.
    #[must_use]
    pub const fn revoke_bytes(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// Where the checksum of a descriptor or revoke block begins, which is where its records end.
    const fn records_end(&self) -> usize {
        match self.checksums {
            Checksums::None => BLOCK_BYTES,
            Checksums::V2 | Checksums::V3 => BLOCK_BYTES - TAIL_BYTES,
        }
    }

    /// Where checksums of a transaction's copies begin, as these lie in the log, if there are any.
    #[must_use]
    pub fn copy_register(&self, tid: Tid) -> Option<u32> {
        (self.checksums != Checksums::None).then(|| crc32c(self.seed, &tid.0.to_be_bytes()))
    }

    /// Puts the checksum at the end of a descriptor or revoke block, of which `used` bytes are in use.
    fn seal_tail(&self, block: &mut SectorBytes, used: usize) {
        self.seal(block, self.records_end(), used);
    }

    /// Puts the checksum of a block at `at`, where it has zeroes, as it has behind the first `used` bytes.
    fn seal(&self, block: &mut SectorBytes, at: usize, used: usize) {
        if self.checksums != Checksums::None {
            let checksum = crc32c_padded(self.seed, block, used);
            put32(block, at, checksum);
        }
    }

    /// Whether the checksum at the end of a descriptor or revoke block holds, if there is one.
    fn tail_holds(&self, block: &SectorBytes) -> bool {
        let at = self.records_end();
        at == BLOCK_BYTES || be32(block, at) == self.block_checksum(block, at)
    }

    /// Checksum of a block whose own checksum lies at `at` and counts as zero.
    fn block_checksum(&self, block: &SectorBytes, at: usize) -> u32 {
        let (before, after) = block.split_at(at);
        let sum = crc32c(crc32c(self.seed, before), &[0; 4]);
        crc32c(sum, after.get(4..).unwrap_or_default())
    }
}

/// A copy as it lies in the log: one that begins with the magic begins with zeroes there, and its
/// tag says so.
#[must_use]
pub fn escape(content: &SectorData) -> Option<SectorData> {
    let begins = match content {
        SectorData::Absent | SectorData::Tag(_) => false,
        SectorData::Bytes(bytes) => be32(&bytes[..], 0) == MAGIC,
        SectorData::Sparse(bytes) => be32(&bytes.line(0), 0) == MAGIC,
        SectorData::Pieces(pieces) => be32(&*pieces.bytes(), 0) == MAGIC,
    };
    begins.then(|| content.patched(0, &[0; 4]))?
}

/// The content of which [`escape`] made this copy.
#[must_use]
pub fn unescape(copy: &SectorData) -> Option<SectorData> {
    copy.patched(0, &MAGIC.to_be_bytes())
}

/// The big-endian word at `at`; zero beyond the end.
pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(word) => u32::from_be_bytes(*word),
        None => 0,
    }
}

/// Writes a big-endian word at `at`, where there must be room for it.
pub(super) fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
