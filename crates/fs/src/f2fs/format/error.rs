//! What can be wrong with a structure, and where. Nothing here depends on how it was read.

use super::{BlockAddr, Nid, SegNo};
use std::fmt;
use thiserror::Error;

/// Where in a file system a structure lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// A copy of the superblock: 0 in block 0, 1 in block 1.
    Superblock(u32),
    /// A pack of the checkpoint area, 0 or 1: its checkpoint blocks.
    Checkpoint(u32),
    /// The summaries of the logs in a pack, 0 or 1.
    PackSummary(u32),
    /// The blocks of orphans in a pack, 0 or 1.
    Orphans(u32),
    /// The NAT bits in a pack, 0 or 1.
    NatBits(u32),
    /// A block of the SIT, counted in one copy.
    SitBlock(u32),
    /// The entry of a segment, in the SIT or in its journal.
    Segment(SegNo),
    /// A block of the NAT, counted in one copy.
    NatBlock(u32),
    /// The entry of a node, in the NAT or in its journal.
    NatEntry(Nid),
    /// The summary block of a segment in the SSA.
    Summary(SegNo),
    /// A node.
    Node(Nid),
    /// An inode.
    Inode(Nid),
    /// A block of a directory, or its inline entries.
    Directory {
        /// The directory.
        ino: Nid,
        /// The block's index in the directory.
        block: u32,
    },
    /// The extended attributes of an inode.
    Xattrs(Nid),
    /// A block of the GC journal, by its place in the area.
    GcJournal(u32),
    /// A block of the discard journal, by its place.
    DiscardJournal(u32),
    /// A block of which no more is known.
    Block(BlockAddr),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superblock(copy) => write!(f, "superblock {copy}"),
            Self::Checkpoint(pack) => write!(f, "checkpoint pack {pack}"),
            Self::PackSummary(pack) => write!(f, "summaries of checkpoint pack {pack}"),
            Self::Orphans(pack) => write!(f, "orphans of checkpoint pack {pack}"),
            Self::NatBits(pack) => write!(f, "NAT bits of checkpoint pack {pack}"),
            Self::SitBlock(index) => write!(f, "SIT block {index}"),
            Self::Segment(segno) => write!(f, "segment {}", segno.0),
            Self::NatBlock(index) => write!(f, "NAT block {index}"),
            Self::NatEntry(nid) => write!(f, "NAT entry of node {}", nid.0),
            Self::Summary(segno) => write!(f, "summary of segment {}", segno.0),
            Self::Node(nid) => write!(f, "node {}", nid.0),
            Self::Inode(nid) => write!(f, "inode {}", nid.0),
            Self::Directory { ino, block } => write!(f, "directory {}, block {block}", ino.0),
            Self::Xattrs(nid) => write!(f, "extended attributes of inode {}", nid.0),
            Self::GcJournal(index) => write!(f, "GC journal block {index}"),
            Self::DiscardJournal(index) => write!(f, "discard journal block {index}"),
            Self::Block(addr) => write!(f, "block {}", addr.0),
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
    pub(crate) const fn corrupt(place: Place, byte: usize, what: &'static str) -> Self {
        Self::Corrupt { place, byte, what }
    }

    /// Nothing, if the checksum that is stored is the one computed.
    pub(crate) fn checksum(place: Place, stored: u32, computed: u32) -> Result<(), Self> {
        match stored == computed {
            true => Ok(()),
            false => Err(Self::Checksum { place, stored, computed }),
        }
    }
}
