//! Bios that wait for durability, by number: each waits for one buffer or several.

use super::ids::BufferId;
use crate::common::shadow::Ledger;
use nandscape_block::{Bio, Token};
use nandscape_rt::{Nanos, Shadow, invariant};
use std::collections::BTreeMap;

/// What must be durable when something completes.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Covered {
    /// Everything before this sequence in these buffers, a bit each.
    pub(super) before: u64,
    pub(super) buffers: u64,
    /// Trim records, too.
    pub(super) records: bool,
}

impl Covered {
    /// Whether it is.
    pub(super) fn is_durable(&self, ledger: &Ledger<BufferId>) -> bool {
        let buffers = (0..64).filter(|id| self.buffers >> id & 1 != 0);
        ledger.are_durable(buffers, self.before)
            && (!self.records || ledger.are_logged(self.before))
    }
}

/// A bio that waits for durability.
#[derive(Debug)]
pub(super) struct Flush {
    pub(super) token: Token,
    pub(super) since: Nanos,
    /// Of that, on the host before the FTL learned of it.
    pub(super) cpu_ns: u32,
    /// Buffers that are not there yet.
    pub(super) missing: u32,
    /// A write with PREFLUSH goes on then; anything else is complete.
    pub(super) then: Option<Bio>,
}

/// All of them.
#[derive(Default, Debug)]
pub(super) struct Flushes {
    slots: Vec<Option<Flush>>,
    free: Vec<u32>,
    /// What must be durable when a flush ends, by number.
    covered: Shadow<BTreeMap<u32, Covered>>,
}

impl Flushes {
    pub(super) fn add(&mut self, flush: Flush) -> u32 {
        let Some(index) = self.free.pop() else {
            self.slots.push(Some(flush));
            return self.slots.len() as u32 - 1;
        };
        self.slots[index as usize] = Some(flush);
        self.covered.note(|covered| _ = covered.remove(&index));
        index
    }

    /// A flush ends when this is durable.
    #[inline(always)]
    pub(super) fn covers(&mut self, index: u32, what: Covered) {
        self.covered.note(|covered| _ = covered.insert(index, what));
    }

    /// Whether what a flush covers passes a check.
    #[inline(always)]
    pub(super) fn covered_by(&self, index: u32, check: impl FnOnce(Covered) -> bool) -> bool {
        self.covered.agrees(|covered| covered.get(&index).is_none_or(|what| check(*what)))
    }

    /// One buffer less to wait for; the flush, if that was the last.
    pub(super) fn arrive(&mut self, index: u32) -> Option<Flush> {
        let flush = self.slots[index as usize].as_mut()?;
        invariant!(flush.missing != 0, "a flush waits for a buffer until its last one is there");
        flush.missing -= 1;
        if flush.missing > 0 {
            return None;
        }
        self.free.push(index);
        self.slots[index as usize].take()
    }

    /// Whether no flush waits.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Every bio that waits, given up.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = Token> {
        self.free.clear();
        self.slots.drain(..).flatten().map(|flush| flush.token)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        (self.slots.capacity() * size_of::<Option<Flush>>()
            + self.free.capacity() * size_of::<u32>()) as u64
    }
}
