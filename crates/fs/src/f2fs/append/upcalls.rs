//! Upcalls of a device that moves blocks by itself (D2FS): batches of migrations between their fetch and their completion,
//! and sections that wait for it.
//!
//! A batch is *applied* when memory has what it says, *covered* when a durable checkpoint has it, and completed when
//! moreover everything that was to be discarded by then was, and no read is on its way that began before.
//!
//! A section that lost its slot is *retired*: it may be written again when all of it was discarded, and no migration names
//! it. Which migrations there are only the device knows: so a section waits until, after its discards, the device had none
//! left to fetch, and then until all that were fetched by that time are completed.
//!
//! Invariants: batches are completed in their order, after they were fetched; a section is written again only when all
//! batches are completed that may name it.

use crate::f2fs::format::{BlockAddr, SpaceSection};
use nandscape_block::UpcallSignal;
use nandscape_rt::Handle;
use nandscape_rt::invariant;
use nandscape_rt::sync::{Mutex, Notify};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};

/// Sections that lost their slots, on their way to be written again.
#[derive(Default)]
struct Retired {
    /// Their discards wait, or are on their way.
    void: Vec<SpaceSection>,
    /// All of them was discarded.
    discarded: Vec<SpaceSection>,
    /// They are free when so many batches are completed.
    named: VecDeque<(u64, SpaceSection)>,
}

/// What a mount has fetched and not completed.
#[derive(Clone, Default)]
pub(crate) struct Fetched {
    pub(crate) ids: Vec<u64>,
    /// Where blocks lay and lie, in the order of the moves.
    pub(crate) records: Vec<(BlockAddr, BlockAddr)>,
    /// Old addresses that lead to valid blocks.
    pub(crate) kept: BTreeSet<BlockAddr>,
    /// Sections without a slot that records name.
    pub(crate) named: BTreeSet<SpaceSection>,
}

impl Fetched {
    /// A batch was applied.
    pub(crate) fn add(&mut self, id: u64, batch: Vec<(BlockAddr, BlockAddr)>) {
        self.ids.push(id);
        self.records.extend(batch);
    }
}

/// Upcalls of a mounted volume.
pub(crate) struct Upcalls {
    pub(crate) signal: UpcallSignal,
    /// Batches are fetched and applied by one task at a time.
    pub(crate) processing: Mutex<()>,
    /// They are completed by one task at a time, in their order.
    pub(crate) completing: Mutex<()>,
    /// Wakes the task that fetches.
    pub(crate) poke: Notify,
    fetched: Cell<u64>,
    completed: Cell<u64>,
    applied: RefCell<Vec<u64>>,
    covered: RefCell<Vec<u64>>,
    retired: RefCell<Retired>,
}

impl Upcalls {
    pub(crate) fn new(rt: &Handle, signal: UpcallSignal) -> Self {
        Self {
            signal,
            processing: Mutex::new(rt, "upcalls", ()),
            completing: Mutex::new(rt, "completions of upcalls", ()),
            poke: Notify::new(rt, "upcalls to fetch"),
            fetched: Cell::new(0),
            completed: Cell::new(0),
            applied: RefCell::default(),
            covered: RefCell::default(),
            retired: RefCell::default(),
        }
    }

    /// A batch was fetched.
    pub(crate) fn note_fetched(&self) {
        self.fetched.set(self.fetched.get() + 1);
    }

    /// Memory has what a batch says.
    pub(crate) fn note_applied(&self, id: u64) {
        self.applied.borrow_mut().push(id);
    }

    /// Batches that no durable checkpoint has.
    pub(crate) fn applied(&self) -> usize {
        self.applied.borrow().len()
    }

    /// Batches that are not completed.
    pub(crate) fn outstanding(&self) -> u64 {
        self.fetched.get() - self.completed.get()
    }

    /// A checkpoint is durable that has all that was applied.
    pub(crate) fn cover(&self) {
        self.covered.borrow_mut().append(&mut self.applied.borrow_mut());
    }

    /// Batches that may be completed, where all discards have ended.
    pub(crate) fn take_covered(&self) -> Vec<u64> {
        std::mem::take(&mut self.covered.borrow_mut())
    }

    /// Sections lost their slots.
    pub(crate) fn retire(&self, sections: impl IntoIterator<Item = SpaceSection>) {
        self.retired.borrow_mut().void.extend(sections);
    }

    /// Nothing waits for its discard; whether sections wait for a fetch now.
    pub(crate) fn note_drained(&self) -> bool {
        let Retired { void, discarded, .. } = &mut *self.retired.borrow_mut();
        discarded.append(void);
        !discarded.is_empty()
    }

    /// Sections of which all was discarded.
    pub(crate) fn discarded(&self) -> usize {
        self.retired.borrow().discarded.len()
    }

    /// After the first `sections` were discarded the device had no migration to be fetched. Returns those that may be written.
    pub(crate) fn note_none_left(&self, sections: usize) -> Vec<SpaceSection> {
        let Retired { discarded, named, .. } = &mut *self.retired.borrow_mut();
        let sections = sections.min(discarded.len());
        named.extend(discarded.drain(..sections).map(|section| (self.fetched.get(), section)));
        drain_free(named, self.completed.get())
    }

    /// A batch was completed. Returns sections that may be written.
    pub(crate) fn note_completed(&self) -> Vec<SpaceSection> {
        invariant!(self.outstanding() > 0, "a batch that is completed was fetched");
        self.completed.set(self.completed.get() + 1);
        drain_free(&mut self.retired.borrow_mut().named, self.completed.get())
    }

    /// Whether sections wait for anything.
    #[cfg(test)]
    pub(crate) fn has_retired(&self) -> bool {
        let Retired { void, discarded, named } = &*self.retired.borrow();
        !(void.is_empty() && discarded.is_empty() && named.is_empty())
    }
}

/// Sections that no migration names once so many batches are completed. Batches are completed in their order.
fn drain_free(named: &mut VecDeque<(u64, SpaceSection)>, completed: u64) -> Vec<SpaceSection> {
    let free = named.iter().take_while(|(fetched, _)| *fetched <= completed).count();
    invariant!(
        named.iter().take(free).all(|(fetched, _)| completed >= *fetched),
        "a section waits for all batches that may name it"
    );
    named.drain(..free).map(|(_, section)| section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_rt::Executor;

    /// A section is free after its discards, a fetch without migrations, and the completion of all that was fetched before.
    #[test]
    fn sections_wait_for_what_names_them() {
        let executor = Executor::on_virtual_clock();
        let upcalls = Upcalls::new(&executor.handle(), UpcallSignal::Piggyback);
        let section = |index| SpaceSection { region: 0, index };
        upcalls.note_fetched();
        upcalls.retire([section(1)]);
        assert!(upcalls.note_none_left(upcalls.discarded()).is_empty() && upcalls.has_retired());
        assert!(upcalls.note_drained());
        upcalls.retire([section(2)]);
        let before = upcalls.discarded();
        assert!(upcalls.note_drained());
        assert!(upcalls.note_none_left(before).is_empty());
        upcalls.note_fetched();
        assert!(upcalls.note_none_left(upcalls.discarded()).is_empty());
        assert_eq!(upcalls.note_completed(), [section(1)]);
        assert_eq!(upcalls.note_completed(), [section(2)]);
        upcalls.retire([section(3)]);
        assert!(upcalls.note_drained());
        assert_eq!(upcalls.note_none_left(1), [section(3)]);
        assert!(!upcalls.has_retired());
    }
}
