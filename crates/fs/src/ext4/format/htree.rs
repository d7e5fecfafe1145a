//! The index of a large directory: blocks of (hash, block) pairs, the root with `.` and `..` in front.
//! To who knows nothing of it, each looks like a block with hardly a name in it.
//! Source: Documentation/filesystems/ext4/directory.rst.

use super::BLOCK_BYTES;
use super::checksum::CsumSeed;
use super::error::{FormatError, Place};
use crate::wire::{put_u16, put_u32, u16_at, u32_at};

/// Levels of nodes below the root at most, without `large_dir`.
pub const INDEX_LEVELS_MAX: u8 = 1;

const ENTRY_BYTES: usize = 8;
/// The bits of a pair that hold the block; the others are kept for flags that there never were.
const BLOCK_MASK: u32 = 0x0fff_ffff;
/// Where the root has hash and depth.
const INFO_AT: usize = 0x18;
/// Where the pairs of a root and of a node begin.
const PAIRS_AT: [usize; 2] = [0x20, 0x8];

/// A pair: names with this hash and above, up to the next pair's, lie below this block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexEntry {
    /// The least hash; the lowest bit says that names of this hash lie in the block before, too. Of
    /// the first pair it is 0 and not stored.
    pub hash: u32,
    /// Block of the directory.
    pub block: u32,
}

/// What only a root has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexRoot {
    /// The hash: 0 legacy, 1 half MD4, 2 TEA.
    pub hash_version: u8,
    /// Levels of nodes between root and names.
    pub levels: u8,
}

/// A block of the index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexNode {
    /// What a root has; `None` for a node below it.
    pub root: Option<IndexRoot>,
    /// Pairs that there is room for.
    pub limit: u16,
    /// The pairs, in order of hashes; at least one.
    pub entries: Vec<IndexEntry>,
}

/// Pairs that a root, or a node below it, has room for.
#[must_use]
pub const fn index_limit(is_root: bool, has_tail: bool) -> u16 {
    let at = PAIRS_AT[if is_root { 0 } else { 1 }];
    ((BLOCK_BYTES - at) / ENTRY_BYTES) as u16 - has_tail as u16
}

impl IndexNode {
    const fn pairs_at(&self) -> usize {
        PAIRS_AT[if self.root.is_some() { 0 } else { 1 }]
    }

    /// Reads the root of a directory's index from its first block.
    ///
    /// # Errors
    /// What no sound root holds.
    pub fn parse_root(bytes: &[u8], has_tail: bool, place: Place) -> Result<Self, FormatError> {
        let corrupt = |at, what| Err(FormatError::corrupt(place, at, what));
        let info = bytes.get(INFO_AT..PAIRS_AT[0]).unwrap_or_default();
        let &[0, 0, 0, 0, hash_version, 8, levels, flags] = info else {
            return corrupt(INFO_AT, "is not the root of an htree");
        };
        if u16_at(bytes, 4) != 12 || usize::from(u16_at(bytes, 16)) != BLOCK_BYTES - 12 {
            return corrupt(4, "root's names are not . and ..");
        }
        if flags != 0 || hash_version > 2 {
            return corrupt(INFO_AT + 4, "hash is not known");
        }
        if levels > INDEX_LEVELS_MAX {
            return corrupt(INFO_AT + 6, "too deep");
        }
        Self::parse_pairs(bytes, Some(IndexRoot { hash_version, levels }), has_tail, place)
    }

    /// Reads a node below the root.
    ///
    /// # Errors
    /// What no sound node holds.
    pub fn parse_node(bytes: &[u8], has_tail: bool, place: Place) -> Result<Self, FormatError> {
        let named = bytes.get(6).is_none_or(|&name_bytes| name_bytes != 0);
        if u32_at(bytes, 0) != 0 || usize::from(u16_at(bytes, 4)) != BLOCK_BYTES || named {
            return Err(FormatError::corrupt(place, 4, "is not an htree node"));
        }
        Self::parse_pairs(bytes, None, has_tail, place)
    }

    fn parse_pairs(
        bytes: &[u8],
        root: Option<IndexRoot>,
        has_tail: bool,
        place: Place,
    ) -> Result<Self, FormatError> {
        let at = PAIRS_AT[usize::from(root.is_none())];
        let (limit, count) = (u16_at(bytes, at), u16_at(bytes, at + 2));
        if limit != index_limit(root.is_some(), has_tail) || count == 0 || count > limit {
            return Err(FormatError::corrupt(place, at, "number of pairs is out of range"));
        }
        let pairs = bytes[at..].chunks_exact(ENTRY_BYTES).take(count.into());
        let entries: Vec<_> = pairs
            .enumerate()
            .map(|(index, pair)| {
                let hash = if index == 0 { 0 } else { u32_at(pair, 0) };
                IndexEntry { hash, block: u32_at(pair, 4) & BLOCK_MASK }
            })
            .collect();
        if let Some(index) = entries.windows(2).position(|pair| pair[0].hash > pair[1].hash) {
            let byte = at + (index + 1) * ENTRY_BYTES;
            return Err(FormatError::corrupt(place, byte, "hashes are out of order"));
        }
        Ok(Self { root, limit, entries })
    }

    /// Writes the node over its bytes, but for `.` and `..` of a root, and for the checksum.
    pub fn encode(&self, bytes: &mut [u8]) {
        match self.root {
            Some(root) => {
                put_u16(bytes, 4, 12);
                put_u16(bytes, 16, (BLOCK_BYTES - 12) as u16);
                bytes[INFO_AT..PAIRS_AT[0]].copy_from_slice(&[
                    0,
                    0,
                    0,
                    0,
                    root.hash_version,
                    8,
                    root.levels,
                    0,
                ]);
            }
            None => {
                bytes[..PAIRS_AT[1]].fill(0);
                put_u16(bytes, 4, BLOCK_BYTES as u16);
            }
        }
        let at = self.pairs_at();
        for (entry, pair) in self.entries.iter().zip(bytes[at..].chunks_exact_mut(ENTRY_BYTES)) {
            put_u32(pair, 0, entry.hash);
            put_u32(pair, 4, entry.block);
        }
        put_u16(bytes, at, self.limit);
        put_u16(bytes, at + 2, self.entries.len() as u16);
    }

    /// The pair whose block holds names of this hash: the last one not above it.
    #[must_use]
    pub fn find(&self, hash: u32) -> usize {
        self.entries.partition_point(|entry| entry.hash <= hash).saturating_sub(1)
    }

    fn checksum_at(&self) -> (usize, usize) {
        let at = self.pairs_at();
        (at + self.entries.len() * ENTRY_BYTES, at + usize::from(self.limit) * ENTRY_BYTES)
    }

    /// Writes the checksum into the block that this node was encoded to; `seed` is the directory's.
    pub fn seal(&self, bytes: &mut [u8], seed: Option<CsumSeed>) {
        if let Some(seed) = seed {
            let (used, tail) = self.checksum_at();
            let computed = seed.index_block(bytes, used, tail);
            put_u32(bytes, tail + 4, computed);
        }
    }

    /// Whether the checksum of the block that this node was read from holds.
    ///
    /// # Errors
    /// [`FormatError::Checksum`].
    pub fn check(
        &self,
        bytes: &[u8],
        seed: Option<CsumSeed>,
        place: Place,
    ) -> Result<(), FormatError> {
        let Some(seed) = seed else { return Ok(()) };
        let (used, tail) = self.checksum_at();
        let computed = seed.index_block(bytes, used, tail);
        FormatError::checksum(place, u32_at(bytes, tail + 4), computed)
    }
}
