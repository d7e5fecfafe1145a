//! The on-disk structures of F2FS: parsing, encoding, checksums. Byte tables: docs/formats/f2fs.md.
//!
//! - Nothing here reads a device; everything is a function of bytes. `parse` never panics, whatever the
//!   bytes, and its errors name the [`Place`].
//! - `encode` writes over the bytes that a structure was read from, and touches only what the structure
//!   knows: reserved bytes and fields of others survive an edit.
//! - Blocks are 4,096 bytes, segments 512 blocks: the kernel refuses every other size, and so do we.
//!   Features are checked apart ([`Features::check`]).

mod bitmap;
mod checkpoint;
mod checksum;
mod dentry;
mod discard_journal;
mod error;
mod features;
mod gc_journal;
mod gc_mark;
mod gc_record;
mod hash;
mod inode;
mod layout;
mod nat;
mod node;
#[cfg(test)]
mod node_tests;
mod orphan;
mod pack;
mod sit;
mod slot_map;
mod slot_record;
mod summary;
mod superblock;
#[cfg(test)]
mod tests;
mod xattr;

pub use crate::wire::Field;
pub use bitmap::VersionBitmap;
pub use checkpoint::*;
pub use checksum::{ChecksumSeed, INODE_CHECKSUM_AT, crc32};
pub use dentry::*;
pub use discard_journal::*;
pub use error::{FormatError, Place};
pub use features::{Feature, Features, SUPPORTED};
pub use gc_journal::*;
pub use gc_mark::{is_marked, mark, unmark};
pub use gc_record::{
    GC_JOURNAL_MAGIC, GcJournalArea, GcJournalFormat, GcJournalRecord, MARKED_LOG_BLOCKSIZE,
};
pub use hash::name_hash;
pub use inode::*;
pub use layout::{Area, Layout};
pub use nat::*;
pub use node::*;
pub use orphan::*;
pub use pack::*;
pub use sit::*;
pub use slot_map::{SlotMap, SpaceSection};
pub use slot_record::{
    AddressSpace, AppendMode, SLOT_MAGIC, SPACE_REGIONS, SlotRecord, SpaceRegion,
};
pub use summary::*;
pub use superblock::*;
pub use xattr::*;

use crate::wire::Wire;

/// Bytes of a block: the only size that is supported.
pub const BLOCK_BYTES: usize = 4096;
/// Blocks of a segment: the only number that is supported.
pub const BLOCKS_PER_SEGMENT: u32 = 512;

/// Entries of a SIT block.
pub const SIT_ENTRIES_PER_BLOCK: usize = 55;
/// Entries of a NAT block.
pub const NAT_ENTRIES_PER_BLOCK: usize = 455;
/// Bytes of the journal in a summary block.
pub const JOURNAL_BYTES: usize = 507;

/// Number of a node: of an inode, the inode number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Nid(pub u32);

/// Number of a segment of the main area.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct SegNo(pub u32);

impl SegNo {
    /// No segment (`NULL_SEGNO`).
    pub const NULL: Self = Self(u32::MAX);
}

/// A block of the volume as F2FS's structures name it, or what stands in the place of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct BlockAddr(pub u32);

impl BlockAddr {
    /// No block: a hole (`NULL_ADDR`).
    pub const NULL: Self = Self(0);
    /// A block is reserved, and none is written (`NEW_ADDR`).
    pub const NEW: Self = Self(u32::MAX);
    /// The start of a compressed cluster (`COMPRESS_ADDR`).
    pub const COMPRESS: Self = Self(u32::MAX - 1);

    /// Whether it is a block, and not a mark that stands for one (`__is_valid_data_blkaddr`).
    #[must_use]
    pub const fn is_block(self) -> bool {
        self.0 != 0 && self.0 < u32::MAX - 1
    }
}

macro_rules! wired {
    ($($id:ident),*) => {$(
        impl Wire for $id {
            const BYTES: usize = 4;
            #[inline]
            fn get(bytes: &[u8]) -> Self {
                Self(u32::get(bytes))
            }
            #[inline]
            fn put(&self, bytes: &mut [u8]) {
                self.0.put(bytes);
            }
        }
    )*};
}
wired!(Nid, SegNo, BlockAddr);
