//! The area of file-level records in use: who writes where.
//!
//! Invariant: a place is given away only when the record there is written, and its transaction is committed.

use super::record::{FileRecord, Stamp};
use crate::ext4::journal::buffers::Runs;
use crate::ext4::journal::disk::FileArea;
use crate::ext4::journal::error::JournalError;
use crate::ext4::journal::state::Shared;
use crate::ext4::journal::tid::Tid;
use crate::ext4::rules::OmittedRule;
use nandscape_block::{Bio, BlockError, Flags, FlushScope, Owner, Reply, SectorBytes, SectorData};
use nandscape_rt::{Shadow, invariant};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

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
    /// Places whose records are on their way, with their blocks.
    in_flight: Shadow<BTreeMap<u32, u32>>,
}

impl Slot {
    /// Finds room for a record, having released what is committed.
    fn reserve(&mut self, blocks: u32, len: u32, tid: Tid, committed: Tid) -> Option<u32> {
        let is_over = |place: &mut Place| place.written && committed.reached(place.tid);
        while self.places.pop_front_if(is_over).is_some() {}
        let at = if self.next + blocks <= len { self.next } else { 0 };
        let taken = |place: &Place| at < place.at + place.blocks && place.at < at + blocks;
        if blocks > len / 2 || self.places.iter().any(taken) {
            return None;
        }
        let overlaps = |(start, len): (&u32, &u32)| at < start + len && *start < at + blocks;
        invariant!(
            self.in_flight.agrees(|on_the_way| !on_the_way.iter().any(overlaps)),
            "a record takes no place to which another one is on its way: {at}"
        );
        self.in_flight.note(|on_the_way| _ = on_the_way.insert(at, blocks));
        self.places.push_back(Place { at, blocks, tid, written: false });
        self.next = at + blocks;
        Some(at)
    }

    fn note_written(&mut self, at: u32) {
        self.in_flight.note(|on_the_way| _ = on_the_way.remove(&at));
        let place = self.places.iter_mut().rfind(|place| place.at == at);
        invariant!(place.is_some(), "a record keeps its place until it is written: {at}");
        if let Some(place) = place {
            place.written = true;
        }
    }
}

/// A record that has a place: its slot, where in the slot, where in the log.
struct Placed {
    slot: usize,
    slot_at: u32,
    at: u32,
    blocks: Vec<Box<SectorBytes>>,
}

/// Takes file-level records. Cheap to clone; clones are the same.
pub struct FileJournal(Rc<Inner>);

struct Inner {
    shared: Rc<Shared>,
    layout: FileArea,
    seed: u32,
    slots: RefCell<Vec<Slot>>,
    /// Records written so far.
    sequence: Cell<u64>,
    blocks: Cell<u64>,
}

impl Clone for FileJournal {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl FileJournal {
    pub(in crate::ext4::journal) fn new(shared: Rc<Shared>, layout: FileArea) -> Self {
        let slots = (0..layout.slots).map(|_| Slot::default()).collect();
        Self(Rc::new(Inner {
            seed: shared.codec.seed(),
            shared,
            layout,
            slots: RefCell::new(slots),
            sequence: Cell::new(0),
            blocks: Cell::new(0),
        }))
    }

    /// Makes a file durable as the record has it: everything that was acknowledged of `owner`'s data
    /// before, and then the record. False, and nothing was written, if there is no room: then the
    /// running transaction must be committed. The record is sent by the call, not by the first poll of
    /// its future, and must describe the file as it is at the call.
    ///
    /// # Errors
    /// Those of the device, which also abort the journal.
    pub fn commit(
        &self,
        record: &FileRecord,
        owner: Owner,
    ) -> impl Future<Output = Result<bool, JournalError>> + use<> {
        let sent = self.place(record, owner).and_then(|place| {
            let send = |Placed { slot, slot_at, at, blocks }| {
                self.send(at, blocks, owner).map(|pending| (pending, slot, slot_at))
            };
            place.map(send).transpose()
        });
        let files = self.clone();
        async move {
            let Some((pending, slot, slot_at)) = sent? else { return Ok(false) };
            let mut written = Ok(());
            for reply in pending {
                written = written.and(reply.await.map(drop));
            }
            let durable = files.0.shared.fua || files.0.shared.omits(OmittedRule::RecordFua);
            if written.is_ok() && !durable {
                let flush = Bio { owner: Some(owner), scope: FlushScope::Owner, ..Bio::flush() };
                written = files.0.shared.device.submit(flush).await.map(drop);
            }
            files.0.slots.borrow_mut()[slot].note_written(slot_at);
            files.0.shared.try_io(written)?;
            Ok(true)
        }
    }

    /// Finds a place for a record in its core's slot, and makes its blocks.
    fn place(&self, record: &FileRecord, owner: Owner) -> Result<Option<Placed>, JournalError> {
        let Inner { shared, layout, .. } = &*self.0;
        shared.alive()?;
        let (tid, mut committed) = shared.label();
        if shared.omits(OmittedRule::RecordPlace) {
            committed = tid;
        }
        let stamp = Stamp { epoch: layout.epoch, tid, sequence: self.0.sequence.get() };
        let Some(blocks) = record.encode(stamp, self.0.seed) else { return Ok(None) };
        let slot = usize::from(owner.core) % layout.slots as usize;
        let count = record.blocks();
        let slots = &mut self.0.slots.borrow_mut();
        let Some(slot_at) = slots[slot].reserve(count, layout.slot_blocks, tid, committed) else {
            return Ok(None);
        };
        self.0.sequence.set(stamp.sequence + 1);
        self.0.blocks.set(self.0.blocks.get() + u64::from(count));
        let at = layout.first + slot as u32 * layout.slot_blocks + slot_at;
        Ok(Some(Placed { slot, slot_at, at, blocks }))
    }

    /// Blocks that the records of a core share.
    #[must_use]
    pub fn slot_blocks(&self) -> u32 {
        self.0.layout.slot_blocks
    }

    /// Records written so far, and the blocks that they took.
    #[must_use]
    pub fn written(&self) -> (u64, u64) {
        (self.0.sequence.get(), self.0.blocks.get())
    }

    /// Sends a record's blocks off, each piece of the log in one bio. The file's data is durable
    /// before the first of them is.
    fn send(
        &self,
        at: u32,
        blocks: Vec<Box<SectorBytes>>,
        owner: Owner,
    ) -> Result<Vec<impl Future<Output = Result<Reply, BlockError>> + use<>>, JournalError> {
        let shared = &self.0.shared;
        let mut runs = Runs::new(shared.max_sectors);
        let mut pieces = Vec::new();
        for (block, log_block) in blocks.into_iter().zip(at..) {
            let (lba, _) = shared.extents.locate(log_block)?;
            let content = SectorData::Bytes(Arc::from(block));
            pieces.extend(runs.push_owned(lba, content, Some(owner)));
        }
        pieces.extend(runs.take());
        let barrier = !shared.omits(OmittedRule::MissingBarrier);
        let durable = shared.fua && barrier && !shared.omits(OmittedRule::RecordFua);
        let fua = if durable { Flags::FUA } else { Flags::NONE };
        let flushes = barrier && !shared.omits(OmittedRule::RecordPreflush);
        let preflush = if flushes { Flags::PREFLUSH } else { Flags::NONE };
        let first = std::iter::once(preflush).chain(std::iter::repeat(Flags::NONE));
        let bios = pieces.into_iter().zip(first).map(|(piece, preflush)| {
            let bio = piece.into_bio(Flags::JOURNAL | Flags::SYNC | preflush | fua);
            shared.device.submit(Bio { scope: FlushScope::Owner, ..bio })
        });
        Ok(bios.collect())
    }
}

impl Shared {
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

    /// A place is free when its transaction is committed and its record is written: an older write may land late.
    #[test]
    fn a_place_is_taken_until_its_record_is_written() {
        let mut slot = Slot::default();
        assert_eq!(slot.reserve(2, 4, Tid(1), Tid(0)), Some(0));
        assert_eq!(slot.reserve(2, 4, Tid(2), Tid(1)), Some(2));
        assert_eq!(slot.reserve(2, 4, Tid(2), Tid(1)), None, "the first one is in flight");
        slot.note_written(0);
        assert_eq!(slot.reserve(2, 4, Tid(2), Tid(1)), Some(0));
        assert_eq!(slot.reserve(2, 4, Tid(2), Tid(1)), None, "the second one is not committed");
    }

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
