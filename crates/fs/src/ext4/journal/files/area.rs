//! The area of file-level records in use: who writes where.

use super::record::{FileRecord, Stamp};
use crate::ext4::journal::error::JournalError;
use crate::ext4::journal::state::Shared;
use crate::ext4::journal::tid::Tid;
use nandscape_block::{Bio, BlockDevice, Flags, FlushScope, Lba, Owner, Payload, SectorData};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Where the area lies, and which use of it this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ext4::journal) struct Layout {
    /// Its first block, counted as the log's are.
    pub(in crate::ext4::journal) first: u32,
    /// Rings of records.
    pub(in crate::ext4::journal) slots: u32,
    /// Blocks of each.
    pub(in crate::ext4::journal) slot_blocks: u32,
    /// Tells records of this use from leftovers.
    pub(in crate::ext4::journal) epoch: u32,
    /// Set while recovered records are applied: those count whose transaction is this or a later one.
    pub(in crate::ext4::journal) applying: Option<Tid>,
}

impl Layout {
    /// Blocks in all; none where that is beyond what a log can have.
    pub(in crate::ext4::journal) fn blocks(&self) -> Option<u32> {
        self.slots.checked_mul(self.slot_blocks)
    }
}

/// A record whose transaction is not committed.
struct Place {
    at: u32,
    blocks: u32,
    tid: Tid,
    written: bool,
}

/// A ring of records.
#[derive(Default)]
struct Slot {
    /// Oldest first.
    places: VecDeque<Place>,
    /// Where the next one goes, if it fits there.
    next: u32,
}

impl Slot {
    /// Finds room for a record, having let go what is committed.
    fn reserve(&mut self, blocks: u32, len: u32, tid: Tid, committed: Tid) -> Option<u32> {
        let is_over = |place: &mut Place| place.written && committed.reached(place.tid);
        while self.places.pop_front_if(is_over).is_some() {}
        let at = if self.next + blocks <= len { self.next } else { 0 };
        let taken = |place: &Place| at < place.at + place.blocks && place.at < at + blocks;
        if blocks > len / 2 || self.places.iter().any(taken) {
            return None;
        }
        self.places.push_back(Place { at, blocks, tid, written: false });
        self.next = at + blocks;
        Some(at)
    }

    fn note_written(&mut self, at: u32) {
        if let Some(place) = self.places.iter_mut().rfind(|place| place.at == at) {
            place.written = true;
        }
    }
}

/// Takes file-level records. Cheap to clone; clones are the same.
pub struct FileJournal<D>(Rc<Inner<D>>);

struct Inner<D> {
    shared: Rc<Shared<D>>,
    layout: Layout,
    seed: u32,
    slots: RefCell<Vec<Slot>>,
    sequence: Cell<u64>,
    records: Cell<u64>,
    blocks: Cell<u64>,
}

impl<D> Clone for FileJournal<D> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<D: BlockDevice + 'static> FileJournal<D> {
    pub(in crate::ext4::journal) fn new(shared: Rc<Shared<D>>, layout: Layout) -> Self {
        let slots = (0..layout.slots).map(|_| Slot::default()).collect();
        Self(Rc::new(Inner {
            seed: shared.codec.seed(),
            shared,
            layout,
            slots: RefCell::new(slots),
            sequence: Cell::new(0),
            records: Cell::new(0),
            blocks: Cell::new(0),
        }))
    }

    /// Makes a file durable as the record has it: everything that was acknowledged of `owner`'s data
    /// before, and then the record. False, and nothing was written, if there is no room: then the
    /// running transaction must be committed. The record must describe the file as it is now.
    ///
    /// # Errors
    /// Those of the device, which also abort the journal.
    pub async fn commit(&self, record: &FileRecord, owner: Owner) -> Result<bool, JournalError> {
        let Inner { shared, layout, slots, .. } = &*self.0;
        shared.alive()?;
        let slot = usize::from(owner.core) % layout.slots as usize;
        let (tid, committed) = shared.label();
        let reserved =
            slots.borrow_mut()[slot].reserve(record.blocks(), layout.slot_blocks, tid, committed);
        let Some(at) = reserved else { return Ok(false) };
        let sequence = self.0.sequence.replace(self.0.sequence.get() + 1);
        let stamp = Stamp { epoch: layout.epoch, tid, sequence };
        let written = match record.encode(stamp, self.0.seed) {
            Some(blocks) => self.write(slot as u32 * layout.slot_blocks + at, blocks, owner).await,
            None => Ok(false),
        };
        slots.borrow_mut()[slot].note_written(at);
        if let Err(error) = &written {
            shared.abort(error);
        }
        written
    }

    /// Records written so far, and the blocks that they took.
    #[must_use]
    pub fn written(&self) -> (u64, u64) {
        (self.0.records.get(), self.0.blocks.get())
    }

    /// Writes a record's blocks: the file's data is durable before them, and they when this ends.
    async fn write(
        &self,
        at: u32,
        blocks: Vec<Box<nandscape_block::SectorBytes>>,
        owner: Owner,
    ) -> Result<bool, JournalError> {
        let shared = &self.0.shared;
        let count = blocks.len() as u32;
        let mut pieces: Vec<(Lba, Vec<SectorData>)> = Vec::new();
        for (block, log_block) in blocks.into_iter().zip(self.0.layout.first + at..) {
            let (lba, _) = shared.extents.locate(log_block)?;
            let content = SectorData::Bytes(Arc::from(block));
            match pieces.last_mut() {
                Some((first, contents)) if first.plus(contents.len() as u64) == lba => {
                    contents.push(content);
                }
                _ => pieces.push((lba, vec![content])),
            }
        }
        let mut pending = Vec::new();
        for (index, (lba, contents)) in pieces.into_iter().enumerate() {
            let flags = if index == 0 { Flags::PREFLUSH } else { Flags::NONE };
            let bio = Bio::write(lba, contents.len() as u32, Payload::Sectors(contents.into()));
            pending.push(shared.device.submit(self.as_owners(bio, flags, owner)));
        }
        for reply in pending {
            reply.await?;
        }
        if !shared.fua {
            let flush = Bio { owner: Some(owner), scope: FlushScope::Owner, ..Bio::flush() };
            shared.device.submit(flush).await?;
        }
        self.0.records.set(self.0.records.get() + 1);
        self.0.blocks.set(self.0.blocks.get() + u64::from(count));
        Ok(true)
    }

    /// A write of a record that belongs to its file, so that only the file is flushed for it.
    fn as_owners(&self, bio: Bio, flags: Flags, owner: Owner) -> Bio {
        let fua = if self.0.shared.fua { Flags::FUA } else { Flags::NONE };
        let bio = bio.with(Flags::JOURNAL | Flags::SYNC | flags | fua);
        Bio { owner: Some(owner), scope: FlushScope::Owner, ..bio }
    }
}

impl<D> Shared<D> {
    /// The transaction whose commit will hold everything that is changed now, and the last one that
    /// is committed.
    fn label(&self) -> (Tid, Tid) {
        let state = self.state.borrow();
        let running = state.running.as_ref().map(|running| running.tid);
        let committing = state.committing.map(|committing| committing.tid);
        (running.or(committing).unwrap_or(state.next_tid), state.committed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A record never gets a place of one that still counts or is being written, and an empty
        /// slot has room for any that is short enough.
        #[test]
        fn places_that_count_are_not_given_away(
            steps in proptest::collection::vec((1..9u32, 0..3u32, any::<bool>()), 1..60),
        ) {
            let (mut slot, len) = (Slot::default(), 16);
            let (mut tid, mut committed) = (Tid(1), Tid(0));
            let mut live: Vec<(u32, u32, Tid)> = Vec::new();
            for (blocks, age, commit) in steps {
                live.retain(|(.., tid)| !committed.reached(*tid));
                match slot.reserve(blocks, len, tid, committed) {
                    Some(at) => {
                        prop_assert!(at + blocks <= len);
                        let free = live.iter().all(|(a, b, _)| at + blocks <= *a || a + b <= at);
                        prop_assert!(free, "{at} of {live:?}");
                        slot.note_written(at);
                        live.push((at, blocks, tid));
                    }
                    None => prop_assert!(!live.is_empty() || blocks > len / 2),
                }
                tid = if commit { tid.next() } else { tid };
                committed = Tid(tid.0.saturating_sub(1 + age).max(committed.0));
            }
        }
    }
}
