//! What a mount keeps for its GC journal: moves of cleaning that no block has yet, how much of the area is used, and whether
//! the volume is marked.
//!
//! Invariants:
//! - Between two checkpoints a place of the area is written once, from its start on.
//! - A zone of the area is written at its write pointer.

use super::format::{
    BLOCK_BYTES, BlockAddr, GcJournalArea, GcJournalFormat, MovedBlock, PAPER_ENTRIES, PaperBlock,
    PaperEntry, SAFE_ENTRIES, SafeBlock, SafeEntry,
};
use super::options::{MountOptions, Reclaim};
use crate::contract::{FsError, Result};
use nandscape_block::SectorData;
use nandscape_rt::{Shadow, defect, invariant};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the GC journal did since mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct JournalCounts {
    /// Blocks written.
    pub(crate) blocks: u64,
    /// Moves in them.
    pub(crate) entries: u64,
    /// Segments that they made free.
    pub(crate) segments: u64,
    /// Checkpoints because there was no room for more blocks.
    pub(crate) full: u64,
    /// Times that the volume was marked.
    pub(crate) marks: u64,
}

/// Where the journal goes on in its two zones, which are written by turns. The blocks of a checkpoint fit one zone, so
/// the other one holds none of them when the journal comes to it, and is reset.
pub(crate) struct Ring {
    capacity: u32,
    /// The zone that is written, 0 or 1, and how far it is.
    at: Cell<(u32, u32)>,
    /// Zones that are not empty.
    written: Cell<[bool; 2]>,
    /// How far each zone is written, as the device has it.
    pointers: Cell<Shadow<[u32; 2]>>,
}

impl Ring {
    /// Zone and offset of a block, of those that follow.
    fn place(&self, step: u32) -> (u32, u32) {
        let (zone, at) = self.at.get();
        match (at + step).checked_sub(self.capacity) {
            None => (zone, at + step),
            Some(over) => (1 - zone, over),
        }
    }

    /// The zone that must be reset before so many blocks are written.
    pub(crate) fn to_reset(&self, blocks: u32) -> Option<u32> {
        invariant!(blocks > 0, "the journal writes blocks");
        let (first, last) = (self.place(0), self.place(blocks - 1));
        let begins = if first.1 == 0 { first.0 } else { last.0 };
        let is_begun = first.1 == 0 || first.0 != last.0;
        (is_begun && self.written.get()[begins as usize]).then_some(begins)
    }

    /// A zone was reset.
    pub(crate) fn note_reset(&self, zone: u32) {
        let mut pointers = self.pointers.get();
        pointers.note(|pointers| pointers[zone as usize] = 0);
        self.pointers.set(pointers);
    }

    /// So many blocks went to the write pointers of their zones.
    fn check_pointers(&self, blocks: u32) {
        let mut pointers = self.pointers.get();
        pointers.note(|pointers| {
            for step in 0..blocks {
                let (zone, at) = self.place(step);
                let pointer = &mut pointers[zone as usize];
                invariant!(
                    at == *pointer,
                    "zone {zone} of the journal is written at {pointer}, not {at}"
                );
                *pointer += 1;
            }
        });
        self.pointers.set(pointers);
    }

    /// So many blocks were written.
    pub(crate) fn advance(&self, blocks: u32) {
        self.check_pointers(blocks);
        let mut written = self.written.get();
        written[self.place(0).0 as usize] = true;
        let (zone, last) = self.place(blocks - 1);
        written[zone as usize] = true;
        self.at.set((zone, last + 1));
        self.written.set(written);
    }

    /// What a mount finds: how much of each zone is written. The journal goes on in the one that is begun.
    pub(crate) fn begin(&self, written: [u32; 2]) {
        let is_begun = |blocks: &u32| (1..self.capacity).contains(blocks);
        let zone = written.iter().position(is_begun).or(written.iter().position(|one| *one == 0));
        let zone = zone.unwrap_or(0);
        self.at.set((zone as u32, written[zone]));
        self.pointers.set(Shadow::new(|| written));
        self.written.set(written.map(|blocks| blocks > 0));
    }

    /// The zone that is written.
    pub(crate) const fn zone(&self) -> u32 {
        self.at.get().0
    }
}

/// The GC journal of a volume.
pub(crate) struct GcJournal {
    pub(crate) area: GcJournalArea,
    /// Where it goes on, if its area is two zones.
    pub(crate) ring: Option<Ring>,
    pub(crate) format: GcJournalFormat,
    /// Blocks after which a checkpoint is written.
    most: u32,
    /// Blocks written since the last checkpoint.
    pub(crate) used: Cell<u32>,
    /// Moves since the last checkpoint that no block has.
    pub(crate) moves: RefCell<Vec<SafeEntry>>,
    /// Inodes of which a node was written to the warm node log since the last checkpoint.
    chained: RefCell<BTreeSet<u32>>,
    /// Whether the mount has marked both copies of the superblock.
    pub(crate) is_marked: Cell<bool>,
    pub(crate) counts: Cell<JournalCounts>,
    /// Blocks that were written since the last checkpoint.
    written: RefCell<Shadow<BTreeSet<BlockAddr>>>,
}

impl GcJournal {
    /// The journal of a volume with this area; none if the mount does not use it. `zone_capacity`: blocks that can be
    /// written of a zone.
    ///
    /// # Errors
    /// [`FsError::Incompatible`] if the mount is to use one and there is no area.
    pub(crate) fn of(
        area: Option<GcJournalArea>,
        options: &MountOptions,
        zone_capacity: Option<u32>,
    ) -> Result<Option<Self>> {
        if options.reclaim != Reclaim::GcJournal {
            return Ok(None);
        }
        let none = || {
            let what = "reclaim = \"gc-journal\" needs a volume with the area of a GC journal";
            FsError::Incompatible(what.to_owned())
        };
        let area = area.ok_or_else(none)?;
        // Zones of a copy, on a device without any, are whole.
        let capacity = area.zone_blocks().map(|blocks| zone_capacity.unwrap_or(blocks));
        let ring = capacity.map(|capacity| Ring {
            capacity,
            at: Cell::default(),
            written: Cell::default(),
            pointers: Cell::default(),
        });
        Ok(Some(Self {
            area,
            format: options.gc_journal,
            most: options.gc_journal_blocks.min(capacity.unwrap_or(u32::MAX)),
            ring,
            used: Cell::new(0),
            moves: RefCell::default(),
            chained: RefCell::default(),
            is_marked: Cell::new(false),
            counts: Cell::default(),
            written: RefCell::default(),
        }))
    }

    /// A node of an inode was written to the warm node log, and fsyncs may lead to its blocks by their addresses.
    pub(crate) fn note_chained(&self, ino: u32) {
        if self.format == GcJournalFormat::Paper {
            self.chained.borrow_mut().insert(ino);
        }
    }

    /// Whether what was moved is of a file of which a node was.
    pub(crate) fn is_chained(&self, moved: MovedBlock) -> bool {
        match moved {
            MovedBlock::Data { ino, .. } => self.chained.borrow().contains(&ino.0),
            MovedBlock::Node(_) => false,
        }
    }

    /// Blocks are about to be written.
    pub(crate) fn check_places(&self, blocks: &[(BlockAddr, SectorData)]) {
        self.written.borrow_mut().note(|written| {
            invariant!(
                written.len() == self.used.get() as usize,
                "the journal goes on after the {} blocks since the last checkpoint, not {}",
                written.len(),
                self.used.get()
            );
            for (at, _) in blocks {
                let is_new = written.insert(*at);
                invariant!(is_new, "block {at:?} of the journal is written once");
            }
        });
    }

    /// A checkpoint has all moves.
    pub(crate) fn note_checkpoint(&self, keeps_moves: bool) {
        self.written.borrow_mut().note(BTreeSet::clear);
        self.used.set(0);
        self.chained.borrow_mut().clear();
        if !keeps_moves {
            self.moves.borrow_mut().clear();
        }
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut JournalCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Blocks with these moves, from the next place of the area on; none if they find no room.
    ///
    /// # Errors
    /// A defect: a place outside of the area.
    pub(crate) fn encode(
        &self,
        moves: &[SafeEntry],
        checkpoint_ver: u64,
        chain: BlockAddr,
    ) -> Result<Option<Vec<(BlockAddr, SectorData)>>> {
        let per_block = match self.format {
            GcJournalFormat::Paper => PAPER_ENTRIES,
            GcJournalFormat::Safe => SAFE_ENTRIES,
        };
        let end = self.used.get() + moves.len().div_ceil(per_block) as u32;
        if end > self.most {
            return Ok(None);
        }
        let blocks = (self.used.get()..end).zip(moves.chunks(per_block));
        let blocks = (0..).zip(blocks).map(|(step, (index, moves))| {
            let mut bytes = [0; BLOCK_BYTES];
            match self.format {
                GcJournalFormat::Paper => {
                    let entry = |entry: &SafeEntry| PaperEntry { old: entry.old, new: entry.new };
                    let entries = moves.iter().map(entry).collect();
                    PaperBlock { checkpoint_ver, entries }.encode(&mut bytes);
                }
                GcJournalFormat::Safe => {
                    let entries = moves.to_vec();
                    SafeBlock { checkpoint_ver, index, chain, entries }.encode(&mut bytes);
                }
            }
            let in_zone = self.ring.as_ref().map(|ring| ring.place(step));
            let place = match (in_zone, self.area.zone_blocks()) {
                (None, _) => index,
                (Some((zone, at)), Some(blocks)) => zone * blocks + at,
                (Some(_), None) => return Err(defect!("a ring of zones has zones").into()),
            };
            match self.area.block(place) {
                Some(at) => Ok((at, SectorData::Bytes(Arc::new(bytes)))),
                None => Err(defect!("block {place} of the journal lies in its area").into()),
            }
        });
        blocks.collect::<Result<_>>().map(Some)
    }
}
