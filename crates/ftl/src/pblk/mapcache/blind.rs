//! The buffer of blind updates: entries of sectors whose mapping block is not in RAM, by block, until they
//! are merged into it.
//!
//! The buffer gives the block with about the most entries: blocks are listed by the logarithm of their
//! count, and one that has grown since is skipped, so that no operation grows with the table.

use crate::common::bits::bit;
use nandscape_block::Lba;
use nandscape_column::Column;
use nandscape_media::Ppa;
use nandscape_rt::invariant;
use std::collections::VecDeque;

/// Parts of the buffer that are merged ahead, so that writes rarely find it full: an eighth.
const AHEAD: u64 = 8;

/// The place of a sector before its first entry in the buffer.
#[derive(Clone, Copy, Debug)]
struct Old {
    lba: u32,
    at: Option<Ppa>,
}

/// The buffer of entries.
#[derive(Debug)]
pub(in crate::pblk) struct BlindBuffer {
    /// Entries that it holds at most.
    capacity: u64,
    entry_bytes: u64,
    len: u64,
    /// A bit for each sector with an entry.
    held: Column<u64>,
    /// A bit for each of them whose old place needs no invalidation any more.
    settled: Column<u64>,
    /// The entries of each block.
    blocks: Box<[Vec<Old>]>,
    /// Blocks by the logarithm of how many entries they have; one that has grown since is skipped.
    levels: [VecDeque<u32>; 33],
    /// Entries of blocks that are to be loaded for a merge.
    merging: u64,
    /// A bit for each such block.
    chosen: Box<[u64]>,
}

impl BlindBuffer {
    /// An empty buffer of `bytes`, for a table of so many sectors in so many blocks. `None` when the
    /// process cannot have the address space.
    pub(in crate::pblk) fn new(
        bytes: u64,
        entry_bytes: u64,
        sectors: u64,
        blocks: u32,
    ) -> Option<Self> {
        Some(Self {
            capacity: bytes / entry_bytes,
            entry_bytes,
            len: 0,
            held: Column::zeroed(sectors.div_ceil(64))?,
            settled: Column::zeroed(sectors.div_ceil(64))?,
            blocks: vec![Vec::new(); blocks as usize].into_boxed_slice(),
            levels: std::array::from_fn(|_| VecDeque::new()),
            merging: 0,
            chosen: vec![0; blocks.div_ceil(64) as usize].into_boxed_slice(),
        })
    }

    /// Whether the buffer has an entry of this sector.
    #[inline]
    pub(in crate::pblk) fn holds(&self, lba: Lba) -> bool {
        let (word, mask) = bit(lba.0);
        self.held[word] & mask != 0
    }

    /// Entries that it can take.
    pub(in crate::pblk) const fn spare(&self) -> u64 {
        self.capacity.saturating_sub(self.len)
    }

    /// Whether the block has entries here.
    pub(in crate::pblk) fn has_block(&self, block: u32) -> bool {
        !self.blocks[block as usize].is_empty()
    }

    /// Takes an entry of a sector that has none; `old` is valid until the merge.
    pub(in crate::pblk) fn add(&mut self, lba: Lba, block: u32, old: Option<Ppa>) {
        let (word, mask) = bit(lba.0);
        invariant!(self.held[word] & mask == 0, "{lba} has one blind update");
        self.held[word] |= mask;
        self.settled[word] &= !mask;
        self.len += 1;
        let entries = &mut self.blocks[block as usize];
        entries.push(Old { lba: lba.0 as u32, at: old });
        let count = entries.len();
        let (word, mask) = bit(u64::from(block));
        if self.chosen[word] & mask != 0 {
            self.merging += 1;
        } else if count.is_power_of_two() {
            self.levels[count.ilog2() as usize].push_back(block);
        }
    }

    /// The old place of this sector was invalidated.
    pub(in crate::pblk) fn settle(&mut self, lba: Lba) {
        let (word, mask) = bit(lba.0);
        self.settled[word] |= mask;
    }

    /// A block with about the most entries, to be loaded; each once until it is merged.
    pub(in crate::pblk) fn choose(&mut self) -> Option<u32> {
        for level in (0..self.levels.len()).rev() {
            while let Some(block) = self.levels[level].pop_front() {
                let count = self.blocks[block as usize].len();
                let (word, mask) = bit(u64::from(block));
                let current = count > 0 && count.ilog2() as usize == level;
                if current && self.chosen[word] & mask == 0 {
                    self.chosen[word] |= mask;
                    self.merging += count as u64;
                    return Some(block);
                }
            }
        }
        None
    }

    /// Whether another block should be merged.
    pub(in crate::pblk) const fn wants_merge(&self) -> bool {
        self.len - self.merging > self.capacity - self.capacity.div_ceil(AHEAD)
    }

    /// The entries of a block leave: each sector, and the old place that is still to be invalidated.
    pub(in crate::pblk) fn take(&mut self, block: u32) -> Vec<(Lba, Option<Ppa>)> {
        let entries = std::mem::take(&mut self.blocks[block as usize]);
        let (word, mask) = bit(u64::from(block));
        if self.chosen[word] & mask != 0 {
            self.chosen[word] &= !mask;
            self.merging -= entries.len() as u64;
        }
        self.len -= entries.len() as u64;
        let taken = entries.into_iter().map(|Old { lba, at }| {
            let lba = Lba(u64::from(lba));
            let (word, mask) = bit(lba.0);
            self.held[word] &= !mask;
            (lba, at.filter(|_| self.settled[word] & mask == 0))
        });
        taken.collect()
    }

    /// Valid bits that are set although the table points elsewhere.
    pub(in crate::pblk) fn unsettled(&self) -> impl Iterator<Item = Ppa> {
        let entries = self.blocks.iter().flatten();
        entries.filter_map(|Old { lba, at }| {
            let (word, mask) = bit(u64::from(*lba));
            at.filter(|_| self.settled[word] & mask == 0)
        })
    }

    /// Bytes of the entries that it has room for.
    pub(in crate::pblk) const fn bytes(&self) -> u64 {
        self.capacity * self.entry_bytes
    }

    /// Bytes of the index by block: first entry and count.
    pub(in crate::pblk) fn index_bytes(&self) -> u64 {
        self.blocks.len() as u64 * 8
    }
}
