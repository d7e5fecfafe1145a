//! SIT entries on their way to the device (`f2fs_flush_sit_entries`): few stay in the journal of the checkpoint pack,
//! others go to the copy of their SIT block that the last checkpoint does not use.

use super::{Block, Segments};
use crate::contract::Result;
use crate::f2fs::format::{
    BLOCK_BYTES, BlockAddr, SIT_ENTRIES_PER_BLOCK, SIT_JOURNAL_ENTRIES, SegNo, SitEntry,
    SitJournal, VersionBitmap,
};
use nandscape_rt::{defect, invariant};
use std::collections::{BTreeMap, BTreeSet};

impl Segments {
    /// Entries that the next checkpoint pack holds.
    pub(crate) const fn journal(&self) -> &SitJournal {
        &self.journal
    }

    pub(crate) const fn version_bitmap(&self) -> &VersionBitmap {
        &self.version_bitmap
    }

    /// Puts changed entries into the journal, or into SIT blocks, which are returned with their addresses. What is valid
    /// now is what the checkpoint has. `in_place` writes over the current copies, which breaks a rule.
    ///
    /// # Errors
    /// A defect: a segment without a SIT block.
    pub(crate) fn flush_entries(&mut self, in_place: bool) -> Result<Vec<(BlockAddr, Box<Block>)>> {
        let mut dirty = std::mem::take(&mut self.dirty_entries);
        let journalled: BTreeSet<u32> =
            self.journal.entries.iter().map(|(number, _)| number.0).collect();
        let fresh = dirty.iter().filter(|number| !journalled.contains(number)).count();
        if journalled.len() + fresh > SIT_JOURNAL_ENTRIES {
            dirty.extend(journalled);
            self.journal.entries.clear();
        }
        let mut by_block: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for number in dirty {
            by_block.entry(number / SIT_ENTRIES_PER_BLOCK as u32).or_default().push(number);
        }
        // Blocks with the fewest changes first: the journal spares as many as possible.
        let mut sets: Vec<_> = by_block.into_iter().collect();
        sets.sort_by_key(|(_, set)| set.len());
        let mut blocks = Vec::new();
        for (block, set) in sets {
            for &number in &set {
                self.note_void(number);
                let segment = &mut self.segments[number as usize];
                invariant!(
                    segment.is_counted(),
                    "segment {number}: the valid count is that of the bitmap"
                );
                segment.kept = segment.map;
            }
            if !self.journal_entries(&set) {
                blocks.push(self.encode_block(block, in_place)?);
            }
            invariant!(
                self.is_flushed(block, &set, &blocks),
                "SIT block {block}: changed entries are in the journal or in their block"
            );
        }
        self.section_pinned.fill(0);
        self.pinned = 0;
        blocks.sort_by_key(|(at, _)| *at);
        Ok(blocks)
    }

    /// Whether the journal has changed entries of a SIT block as they are, or the block itself is written and the journal
    /// has none of it.
    fn is_flushed(&self, block: u32, set: &[u32], blocks: &[(BlockAddr, Box<Block>)]) -> bool {
        let entries = &self.journal.entries;
        let at = self.layout.current_sit_addr(block, &self.version_bitmap);
        if at.is_some() && blocks.last().map(|(at, _)| *at) == at {
            return entries.iter().all(|(of, _)| of.0 / SIT_ENTRIES_PER_BLOCK as u32 != block);
        }
        set.iter().all(|number| entries.contains(&(SegNo(*number), self.entry_of(*number))))
    }

    /// Journals entries, if there is room for all of them.
    fn journal_entries(&mut self, set: &[u32]) -> bool {
        let entries = &self.journal.entries;
        let is_known = |number: &&u32| entries.iter().any(|(known, _)| known.0 == **number);
        if entries.len() + set.len() - set.iter().filter(is_known).count() > SIT_JOURNAL_ENTRIES {
            return false;
        }
        for &number in set {
            let entry = self.entry_of(number);
            let entries = &mut self.journal.entries;
            match entries.iter_mut().find(|(known, _)| known.0 == number) {
                Some(known) => known.1 = entry,
                None => entries.push((SegNo(number), entry)),
            }
        }
        true
    }

    /// The entry of a segment: that of a slot has the address of its segment.
    fn entry_of(&self, number: u32) -> SitEntry {
        let entry = self.segments[number as usize].entry();
        match &self.slots {
            None => entry,
            Some(_) if self.forgets_slots => SitEntry { mtime: 0, ..entry },
            Some(slots) => {
                let at = slots.block(SegNo(number), 0).unwrap_or_default();
                SitEntry { mtime: at.0.into(), ..entry }
            }
        }
    }

    /// In an append-only address space: what of a segment the last checkpoint had, or was written since, and is void now.
    fn note_void(&mut self, number: u32) {
        let Some(slots) = &mut self.slots else { return };
        let segment = &self.segments[number as usize];
        let void = segment.kept.without(&segment.map);
        if let Some(at) = slots.block(SegNo(number), 0).filter(|_| void.count() > 0) {
            slots.discards.push((at, void));
        }
    }

    /// A SIT block as it is now, at the place of its other copy, which becomes the current one.
    fn encode_block(&mut self, block: u32, in_place: bool) -> Result<(BlockAddr, Box<Block>)> {
        let mut bytes = Box::new([0; BLOCK_BYTES]);
        let first = block * SIT_ENTRIES_PER_BLOCK as u32;
        let end = (first + SIT_ENTRIES_PER_BLOCK as u32).min(self.count());
        for (index, number) in (first..end).enumerate() {
            self.entry_of(number).write_at(&mut bytes[..], index);
        }
        if !in_place {
            self.version_bitmap.flip(block);
        }
        match self.layout.current_sit_addr(block, &self.version_bitmap) {
            Some(at) => Ok((at, bytes)),
            None => Err(defect!("block {block} of segments lies in the SIT").into()),
        }
    }
}
