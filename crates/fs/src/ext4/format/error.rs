//! What can be wrong with a structure, and where. Nothing here depends on how it was read.

use std::fmt;
use thiserror::Error;

/// Where in a file system a structure lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// The superblock of a group; 0 is the one in use, the others are backups.
    Superblock(u32),
    /// The descriptor of a group.
    GroupDescriptor(u32),
    /// The block bitmap of a group.
    BlockBitmap(u32),
    /// The inode bitmap of a group.
    InodeBitmap(u32),
    /// An inode.
    Inode(u32),
    /// A block that belongs to an inode: extent node, directory block, extended attributes.
    InodeBlock {
        /// The inode.
        inode: u32,
        /// The block's address in the file system.
        block: u64,
    },
    /// A block of which nothing more is known.
    Block(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superblock(0) => write!(f, "superblock"),
            Self::Superblock(group) => write!(f, "backup superblock of group {group}"),
            Self::GroupDescriptor(group) => write!(f, "descriptor of group {group}"),
            Self::BlockBitmap(group) => write!(f, "block bitmap of group {group}"),
            Self::InodeBitmap(group) => write!(f, "inode bitmap of group {group}"),
            Self::Inode(inode) => write!(f, "inode {inode}"),
            Self::InodeBlock { inode, block } => write!(f, "inode {inode}, block {block}"),
            Self::Block(block) => write!(f, "block {block}"),
        }
    }
}

/// Why a structure is not taken.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum FormatError {
    /// It contradicts itself or the format.
    #[error("{place}, byte {byte}: {what}")]
    Corrupt {
        /// The structure.
        place: Place,
        /// Offset in the structure.
        byte: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Its checksum does not hold.
    #[error("{place}: checksum {stored:#010x}, computed {computed:#010x}")]
    Checksum {
        /// The structure.
        place: Place,
        /// What stands in it.
        stored: u32,
        /// What its bytes give.
        computed: u32,
    },
    /// It is sound, but asks for what is not supported.
    #[error("{place}: {what}")]
    Incompatible {
        /// The structure.
        place: Place,
        /// What it asks for.
        what: String,
    },
}

impl FormatError {
    /// A structure that contradicts the format at one of its bytes.
    pub(super) const fn corrupt(place: Place, byte: usize, what: &'static str) -> Self {
        Self::Corrupt { place, byte, what }
    }

    /// Nothing, if the checksum that is stored is the one computed.
    pub(super) fn checksum(place: Place, stored: u32, computed: u32) -> Result<(), Self> {
        match stored == computed {
            true => Ok(()),
            false => Err(Self::Checksum { place, stored, computed }),
        }
    }
}
