//! Extent trees: nodes of a header and 12-byte entries, the root in the inode, the others a block
//! each. Source: Documentation/filesystems/ext4/ifork.rst.

use super::BLOCK_BYTES;
use super::checksum::CsumSeed;
use super::error::{FormatError, Place};
use crate::wire::{put_u16, put_u32, put_uint, record, u16_at, u32_at, uint};
use nandscape_rt::invariant;

/// Magic of a node.
pub const EXTENT_MAGIC: u16 = 0xf30a;
/// Entries of a root.
pub const ROOT_ENTRIES: u16 = 4;
/// Entries of a node that is a block.
pub const NODE_ENTRIES: u16 = ((BLOCK_BYTES - ENTRY_BYTES) / ENTRY_BYTES) as u16;
/// Levels below a root at most.
pub const DEPTH_MAX: u16 = 5;
/// Blocks of an extent that holds data.
pub const EXTENT_BLOCKS_MAX: u16 = 32768;
/// Blocks of an extent that reads as zeroes.
pub const UNWRITTEN_BLOCKS_MAX: u16 = 32767;

const ENTRY_BYTES: usize = 12;

record! {
    /// What a node begins with.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct ExtentHeader {
        /// 0xf30a.
        magic: u16 = 0x0,
        /// Entries in use.
        entries: u16 = 0x2,
        /// Entries that there is room for.
        max: u16 = 0x4,
        /// Levels below this node; 0: its entries are extents.
        depth: u16 = 0x6,
        /// Not used by Linux.
        generation: u32 = 0x8,
    }
}

/// A run of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First block of the file.
    pub logical: u32,
    /// How many: up to 32,768, or 32,767 if unwritten.
    pub blocks: u16,
    /// First block of the file system.
    pub start: u64,
    /// Allocated, but reads as zeroes.
    pub unwritten: bool,
}

/// Blocks of so many extents.
#[must_use]
pub fn extent_blocks(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| u64::from(extent.blocks)).sum()
}

impl Extent {
    /// The first block of the file behind it.
    #[must_use]
    pub const fn logical_end(&self) -> u64 {
        self.logical as u64 + self.blocks as u64
    }

    /// The first block of the file system behind it.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start + self.blocks as u64
    }

    fn read(bytes: &[u8]) -> Self {
        let len = u16_at(bytes, 4);
        let unwritten = len > EXTENT_BLOCKS_MAX;
        Self {
            logical: u32_at(bytes, 0),
            blocks: if unwritten { len - EXTENT_BLOCKS_MAX } else { len },
            start: uint(bytes, 8, 4) | uint(bytes, 6, 2) << 32,
            unwritten,
        }
    }

    fn write(&self, bytes: &mut [u8]) {
        put_u32(bytes, 0, self.logical);
        put_u16(
            bytes,
            4,
            if self.unwritten { self.blocks + EXTENT_BLOCKS_MAX } else { self.blocks },
        );
        put_uint(bytes, 6, 2, self.start >> 32);
        put_uint(bytes, 8, 4, self.start);
    }
}

/// An entry that leads to a node further down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentIndex {
    /// First block of the file that the node maps.
    pub logical: u32,
    /// The node's block.
    pub node: u64,
}

impl ExtentIndex {
    fn read(bytes: &[u8]) -> Self {
        let node = uint(bytes, 4, 4) | uint(bytes, 8, 2) << 32;
        Self { logical: u32_at(bytes, 0), node }
    }

    fn write(&self, bytes: &mut [u8]) {
        put_u32(bytes, 0, self.logical);
        put_uint(bytes, 4, 4, self.node);
        put_uint(bytes, 8, 4, self.node >> 32);
    }
}

/// The entries of a node, in order of the file's blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExtentEntries {
    /// Of a leaf.
    Leaf(Vec<Extent>),
    /// Of a node above others, `depth` levels above the leaves.
    Index {
        /// At least 1.
        depth: u16,
        /// Where to go on.
        entries: Vec<ExtentIndex>,
    },
}

/// A node: the root in the inode, or a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtentNode {
    /// Entries that there is room for.
    pub max: u16,
    /// Not used by Linux.
    pub generation: u32,
    /// The entries.
    pub entries: ExtentEntries,
}

impl ExtentNode {
    /// An empty root.
    #[must_use]
    pub const fn empty_root() -> Self {
        Self { max: ROOT_ENTRIES, generation: 0, entries: ExtentEntries::Leaf(Vec::new()) }
    }

    /// Whether a root is that of a file without blocks, sound as it is.
    #[must_use]
    pub fn is_empty_root(bytes: &[u8]) -> bool {
        let header = ExtentHeader::read(bytes);
        let leaf = header.magic == EXTENT_MAGIC && header.depth == 0;
        leaf && header.entries == 0 && header.max == ROOT_ENTRIES
    }

    /// A node in a separate block.
    #[must_use]
    pub const fn block_of(entries: ExtentEntries) -> Self {
        Self { max: NODE_ENTRIES, generation: 0, entries }
    }

    /// Levels below this node.
    #[must_use]
    pub const fn depth(&self) -> u16 {
        match &self.entries {
            ExtentEntries::Leaf(_) => 0,
            ExtentEntries::Index { depth, .. } => *depth,
        }
    }

    /// Reads a node: 60 bytes of a root, or a block.
    ///
    /// # Errors
    /// What no sound node holds: entries out of order or overlapping, empty extents, an index without
    /// entries. Whether blocks exist is left to who follows them.
    pub fn parse(bytes: &[u8], place: Place) -> Result<Self, FormatError> {
        let header = ExtentHeader::read(bytes);
        let corrupt = |at, what| Err(FormatError::corrupt(place, at, what));
        if header.magic != EXTENT_MAGIC {
            return corrupt(0, "is not an extent node");
        }
        let room = bytes.len() / ENTRY_BYTES - 1;
        if usize::from(header.max) > room || header.entries > header.max || header.max == 0 {
            return corrupt(2, "more entries than fit");
        }
        if header.depth > DEPTH_MAX {
            return corrupt(6, "too deep");
        }
        let slots = bytes.chunks_exact(ENTRY_BYTES).skip(1).take(header.entries.into());
        let entries = match header.depth {
            0 => ExtentEntries::Leaf(slots.map(Extent::read).collect()),
            depth => {
                ExtentEntries::Index { depth, entries: slots.map(ExtentIndex::read).collect() }
            }
        };
        let node = Self { max: header.max, generation: header.generation, entries };
        node.check(place)?;
        Ok(node)
    }

    fn check(&self, place: Place) -> Result<(), FormatError> {
        let mut free_from = 0;
        let mut check = |slot: usize, logical: u32, end: u64, sound: bool| {
            let in_order = u64::from(logical) >= free_from;
            free_from = end;
            let what = "entry is empty, out of order or beyond the last block of a file";
            let at = ENTRY_BYTES * (slot + 1);
            let sound = sound && in_order && end <= 1 << 32;
            if sound { Ok(()) } else { Err(FormatError::corrupt(place, at, what)) }
        };
        match &self.entries {
            ExtentEntries::Leaf(extents) => extents.iter().enumerate().try_for_each(|(slot, e)| {
                check(slot, e.logical, e.logical_end(), e.blocks > 0 && e.start > 0)
            }),
            ExtentEntries::Index { entries, .. } if entries.is_empty() => {
                Err(FormatError::corrupt(place, 2, "index without entries"))
            }
            ExtentEntries::Index { entries, .. } => {
                entries.iter().enumerate().try_for_each(|(slot, e)| {
                    check(slot, e.logical, u64::from(e.logical) + 1, e.node > 0)
                })
            }
        }
    }

    /// Writes the node over its bytes, but for the checksum of a block ([`seal_extent_block`]).
    pub fn encode(&self, bytes: &mut [u8]) {
        let slots = bytes.len() / ENTRY_BYTES - 1;
        let entries = match &self.entries {
            ExtentEntries::Leaf(extents) => extents.len(),
            ExtentEntries::Index { entries, .. } => entries.len(),
        };
        invariant!(
            entries <= slots && entries <= usize::from(self.max),
            "a node of an extent tree holds its {entries} entries"
        );
        let header = ExtentHeader {
            magic: EXTENT_MAGIC,
            entries: entries as u16,
            max: self.max,
            depth: self.depth(),
            generation: self.generation,
        };
        header.write(bytes);
        let slots = bytes.chunks_exact_mut(ENTRY_BYTES).skip(1);
        match &self.entries {
            ExtentEntries::Leaf(extents) => {
                extents.iter().zip(slots).for_each(|(e, at)| e.write(at))
            }
            ExtentEntries::Index { entries, .. } => {
                entries.iter().zip(slots).for_each(|(e, at)| e.write(at));
            }
        }
    }
}

/// Where the checksum of a block of extents stands: behind the last entry that there is room for.
fn checksum_at(bytes: &[u8]) -> usize {
    ENTRY_BYTES * (1 + usize::from(u16_at(bytes, 4)))
}

/// Writes the checksum of a block of extents; `seed` is the inode's.
pub fn seal_extent_block(bytes: &mut [u8], seed: Option<CsumSeed>) {
    if let Some(seed) = seed {
        let at = checksum_at(bytes);
        let computed = seed.block_up_to(bytes, at);
        put_u32(bytes, at, computed);
    }
}

/// Whether the checksum of a block of extents holds.
///
/// # Errors
/// [`FormatError::Checksum`].
pub fn check_extent_block(
    bytes: &[u8],
    seed: Option<CsumSeed>,
    place: Place,
) -> Result<(), FormatError> {
    let Some(seed) = seed else { return Ok(()) };
    let at = checksum_at(bytes);
    FormatError::checksum(place, u32_at(bytes, at), seed.block_up_to(bytes, at))
}
