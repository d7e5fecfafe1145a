//! Moves that a device made by itself, from the move until the host has completed it (D2FS's
//! migration log and redirector).
//!
//! - Data lie at one address only, the last that they were moved to; the addresses before it lead there.
//!   So all of them read the same, and a discard at any of them is a discard of the data.
//! - A record is pending, then fetched as part of a batch, then completed and gone. Records are
//!   offered in the order of the moves, and are not merged: data moved twice have two records.
//! - An address that a record names is not free, whatever it reads as.
//! - A discard leaves its record: it may be lost in a power cut, and the data be there again.
//! - Records survive a power cut: what was not completed is pending again, in the same order, and will
//!   have other batch identities. Completions are durable at once.

use crate::address::Lba;
use crate::device::Reply;
use crate::error::BlockError;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// From where to where.
type Record = (Lba, Lba);

/// The moves that the host has not completed.
#[derive(Default)]
pub(super) struct Migrations {
    /// Where the data of moved addresses are.
    redirects: BTreeMap<u64, u64>,
    pending: VecDeque<Record>,
    fetched: BTreeMap<u64, Vec<Record>>,
    batches: u64,
    /// How many records name an address.
    named: BTreeMap<u64, u32>,
    /// New addresses of records that were made since the power came and not fetched.
    news: BTreeSet<u64>,
}

impl Migrations {
    /// Where the data of an address are.
    pub(super) fn resolve(&self, lba: u64) -> u64 {
        self.redirects.get(&lba).copied().unwrap_or(lba)
    }

    /// Whether an address must stay as it is because of a record that names it.
    pub(super) fn refers_to(&self, lba: u64) -> bool {
        self.named.contains_key(&lba)
    }

    /// Whether a record names an address of a range.
    pub(super) fn refer_into(&self, range: Range<u64>) -> bool {
        self.named.range(range).next().is_some()
    }

    /// Whether the host has not heard yet that data are at an address.
    pub(super) fn is_news(&self, lba: u64) -> bool {
        self.news.contains(&lba)
    }

    /// The last address of a range whose data were moved away.
    pub(super) fn last_moved(&self, range: Range<u64>) -> Option<u64> {
        self.redirects.range(range).next_back().map(|(&lba, _)| lba)
    }

    /// Whether every move is completed.
    pub(super) fn is_empty(&self) -> bool {
        self.redirects.is_empty()
    }

    /// Whether records wait to be fetched.
    pub(super) fn are_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The data at `old` were moved to `new`.
    pub(super) fn record(&mut self, old: u64, new: u64) {
        for target in self.redirects.values_mut().filter(|target| **target == old) {
            *target = new;
        }
        self.redirects.insert(old, new);
        self.pending.push_back((Lba(old), Lba(new)));
        self.news.insert(new);
        for lba in [old, new] {
            *self.named.entry(lba).or_default() += 1;
        }
    }

    /// A batch of the oldest pending records, `most` at most.
    pub(super) fn fetch(&mut self, most: u32) -> Reply {
        let count = self.pending.len().min(most as usize);
        if count == 0 {
            return Reply::None;
        }
        let batch: Vec<_> = self.pending.drain(..count).collect();
        batch.iter().for_each(|(_, new)| _ = self.news.remove(&new.0));
        self.batches += 1;
        self.fetched.insert(self.batches, batch.clone());
        Reply::Upcall(self.batches, batch)
    }

    /// The old addresses of a batch lead nowhere any more.
    pub(super) fn complete(&mut self, id: u64) -> Result<Reply, BlockError> {
        let batch = self.fetched.remove(&id);
        let batch = batch.ok_or(BlockError::Malformed("no fetched upcall has this id"))?;
        for (old, new) in batch {
            self.redirects.remove(&old.0);
            for lba in [old, new] {
                self.forget_name(lba.0);
            }
        }
        Ok(Reply::None)
    }

    fn forget_name(&mut self, lba: u64) {
        if let Some(count) = self.named.get_mut(&lba) {
            *count -= 1;
            if *count == 0 {
                self.named.remove(&lba);
            }
        }
    }

    /// Power was cut, and with it the host's knowledge of the batches.
    pub(super) fn power_cut(&mut self) {
        self.news.clear();
        for (_, batch) in std::mem::take(&mut self.fetched).into_iter().rev() {
            for record in batch.into_iter().rev() {
                self.pending.push_front(record);
            }
        }
    }
}
