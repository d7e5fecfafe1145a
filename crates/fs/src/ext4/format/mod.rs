//! The on-disk structures of ext4: parsing, encoding, checksums. Byte tables: docs/formats/ext4.md.
//!
//! - Nothing here reads a device; everything is a function of bytes. `parse` never panics, whatever
//!   the bytes, and its errors name the [`Place`].
//! - `encode` writes over the bytes that a structure was read from, and touches only what the structure
//!   knows: reserved bytes and fields of others survive an edit.
//! - Checksums are written by `encode`, or by a `seal…` beside it where blocks are edited in place;
//!   they are checked by `parse`, or by a `check…` beside it.
//! - Blocks are 4,096 bytes. Features are checked by [`Features::check`].

mod checksum;
mod dir;
mod error;
mod extent;
mod features;
mod group;
mod hash;
mod htree;
mod inode;
mod layout;
mod orphan_file;
mod pointers;
mod sums;
mod superblock;
#[cfg(test)]
mod tests;

mod xattr;

pub mod bitmap;

pub use crate::wire::Field;
pub use checksum::{CsumSeed, Editable, Summed, crc32c};
pub use dir::*;
pub use error::{FormatError, Place};
pub use extent::*;
pub use features::{Class, Feature, Features, REQUIRED, SUPPORTED};
pub use group::*;
pub use hash::{HashVersion, NameHash};
pub use htree::*;
pub use inode::*;
pub use layout::InodePlace;
pub use orphan_file::{check_orphan_block, clear_orphan, parse_orphan_block};
pub use pointers::*;
pub(crate) use sums::{BlockMut, Sums, after_block, crc32c_padded, of_pattern};
pub use superblock::*;
pub use xattr::*;

/// Bytes of a block: the only size that is supported.
pub const BLOCK_BYTES: usize = 4096;
