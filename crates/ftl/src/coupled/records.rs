//! Migration records, and the redirector that follows them: which address each moved page had, and which it has.
//!
//! - A record is open from the move until the host has completed the upcall that held it.
//! - A page that is moved again before its record was offered has one record still, to its last address (*merged*).
//!   Once a record was offered the host may know the new address, so the next move has a record of its own, and the
//!   redirector follows the *chain*.
//! - A page that is discarded before its record was offered has none any more (*deleted*). Later the record stays until
//!   its upcall is completed.
//! - Whether a record was offered is not known after a power cut, so every record that a mount finds counts as offered.
//! - Old addresses are those of one record each; so are new ones.
//!
//! *Accesses.* The firmware accesses the head of a bucket, and each record of its list as far as it goes; to put one in, the
//! head and the record.

use super::space::Class;
use crate::common::firmware::Walk;
use crate::kind::OmittedRule;
use nandscape_block::Lba;
use nandscape_rt::invariant;
use std::collections::{BTreeMap, VecDeque};

/// Bytes of a record as an upcall has it: two addresses of 64 bits.
pub(super) const RECORD_BYTES: u64 = 16;

/// A record.
#[derive(Clone, Copy, Debug)]
struct Record {
    old: u32,
    new: u32,
    /// The host may know the new address.
    offered: bool,
    /// Waits to be fetched.
    queued: bool,
}

/// What a move made of the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moved {
    /// Another record.
    Opened,
    /// The record of an earlier move, which had this old address.
    Merged(Lba),
}

/// A record that is not open any more, and one that takes its place in a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Closed {
    pub(super) old: Lba,
    pub(super) new: Lba,
    /// Old address of a record that led to `old`, and leads to `new` now.
    pub(super) shortened: Option<Lba>,
}

/// Most buckets of a table (D2FS artifact).
const BUCKETS_MAX: u32 = 1 << 18;
/// Length from which on a queue is tidied.
const QUEUE_LEAST: usize = 256;
/// No record.
const NONE: u32 = u32::MAX;

/// A table that finds records by one of their addresses: buckets of lists.
#[derive(Debug)]
struct Table {
    heads: Box<[u32]>,
    /// The record after each in its bucket.
    next: Vec<u32>,
    shift: u32,
}

impl Table {
    fn new(records: u32) -> Self {
        let buckets = records.next_power_of_two().clamp(64, BUCKETS_MAX);
        let heads = vec![NONE; buckets as usize].into_boxed_slice();
        Self { heads, next: Vec::new(), shift: u32::BITS - buckets.ilog2() }
    }

    /// Fibonacci hashing (Knuth, volume 3, section 6.4).
    #[inline]
    const fn bucket(&self, address: u32) -> usize {
        (address.wrapping_mul(0x9e37_79b1) >> self.shift) as usize
    }

    /// The record with an address, which `address_of` says of each.
    #[inline]
    fn find(&self, address: u32, address_of: impl Fn(u32) -> u32, walk: &mut Walk) -> Option<u32> {
        walk.access(1);
        let mut id = self.heads[self.bucket(address)];
        while id != NONE {
            walk.access(1);
            if address_of(id) == address {
                return Some(id);
            }
            id = self.next[id as usize];
        }
        None
    }

    fn insert(&mut self, address: u32, id: u32, walk: &mut Walk) {
        walk.access(2);
        let bucket = self.bucket(address);
        if self.next.len() <= id as usize {
            self.next.resize(id as usize + 1, NONE);
        }
        self.next[id as usize] = std::mem::replace(&mut self.heads[bucket], id);
    }

    /// Takes a record out, if it is in.
    fn remove(&mut self, address: u32, id: u32, walk: &mut Walk) {
        walk.access(2);
        let bucket = self.bucket(address);
        let after = self.next.get(id as usize).copied().unwrap_or(NONE);
        if self.heads[bucket] == id {
            self.heads[bucket] = after;
            return;
        }
        let mut at = self.heads[bucket];
        while at != NONE {
            walk.access(1);
            let next = self.next[at as usize];
            if next == id {
                self.next[at as usize] = after;
                return;
            }
            at = next;
        }
    }

    fn bytes(&self) -> u64 {
        ((self.heads.len() + self.next.capacity()) * size_of::<u32>()) as u64
    }
}

/// All open records.
#[derive(Debug)]
pub(super) struct Records {
    records: Vec<Record>,
    unused: Vec<u32>,
    open: u64,
    by_old: Table,
    by_new: Table,
    queues: [VecDeque<u32>; 2],
    queued: [u32; 2],
    batches: BTreeMap<u64, Vec<u32>>,
    batch: u64,
    /// A rule to leave out.
    omit: Option<OmittedRule>,
}

impl Records {
    /// No record, of as many as may be open.
    pub(super) fn new(most: u32, omit: Option<OmittedRule>) -> Self {
        Self {
            records: Vec::new(),
            unused: Vec::new(),
            open: 0,
            by_old: Table::new(most),
            by_new: Table::new(most),
            queues: Default::default(),
            queued: [0; 2],
            batches: BTreeMap::new(),
            batch: 0,
            omit,
        }
    }

    /// Open records.
    pub(super) const fn open(&self) -> u64 {
        self.open
    }

    #[inline]
    fn with_old(&self, address: u32, walk: &mut Walk) -> Option<u32> {
        self.by_old.find(address, |id| self.records[id as usize].old, walk)
    }

    #[inline]
    fn with_new(&self, address: u32, walk: &mut Walk) -> Option<u32> {
        self.by_new.find(address, |id| self.records[id as usize].new, walk)
    }

    /// Records of a class that wait to be fetched.
    pub(super) const fn queued(&self, class: Class) -> u32 {
        self.queued[class.index()]
    }

    /// Records that the host has fetched and not completed.
    pub(super) fn fetched(&self) -> u64 {
        self.open - u64::from(self.queued.iter().sum::<u32>())
    }

    /// Where the data of an address are, by all records that lead on from it: each at most once, as without
    /// [`OmittedRule::RecordReference`] they may lead back.
    pub(super) fn resolve(&self, lba: Lba, walk: &mut Walk) -> Lba {
        let mut at = lba.0 as u32;
        for _ in 0..self.open {
            let Some(id) = self.with_old(at, walk) else { break };
            at = self.records[id as usize].new;
            if self.omit == Some(OmittedRule::RedirectChain) {
                break;
            }
        }
        Lba(at.into())
    }

    /// Whether only records that the host cannot know lead to an address.
    pub(super) fn is_unknown(&self, lba: Lba, walk: &mut Walk) -> bool {
        self.with_new(lba.0 as u32, walk).is_some_and(|id| !self.records[id as usize].offered)
    }

    /// A page was moved.
    pub(super) fn moved(&mut self, class: Class, from: Lba, to: Lba, walk: &mut Walk) -> Moved {
        let (old, new) = (from.0 as u32, to.0 as u32);
        if let Some(id) = self.with_new(old, walk)
            && (!self.records[id as usize].offered || self.omit == Some(OmittedRule::OfferedMerge))
        {
            self.set_new(id, new, walk);
            return Moved::Merged(Lba(self.records[id as usize].old.into()));
        }
        self.insert(class, Record { old, new, offered: false, queued: true }, walk);
        Moved::Opened
    }

    fn insert(&mut self, class: Class, record: Record, walk: &mut Walk) {
        let id = match self.unused.pop() {
            Some(id) => {
                self.records[id as usize] = record;
                id
            }
            None => {
                self.records.push(record);
                (self.records.len() - 1) as u32
            }
        };
        invariant!(
            self.omit.is_some() || self.with_old(record.old, &mut Walk::default()).is_none(),
            "records: {} is the old address of one record",
            record.old
        );
        invariant!(
            self.omit.is_some() || self.with_new(record.new, &mut Walk::default()).is_none(),
            "records: {} is the new address of one record",
            record.new
        );
        self.open += 1;
        self.by_old.insert(record.old, id, walk);
        self.by_new.insert(record.new, id, walk);
        self.queues[class.index()].push_back(id);
        self.queued[class.index()] += 1;
    }

    fn set_new(&mut self, id: u32, new: u32, walk: &mut Walk) {
        let before = std::mem::replace(&mut self.records[id as usize].new, new);
        self.by_new.remove(before, id, walk);
        self.by_new.insert(new, id, walk);
    }

    /// The page at an address was discarded: the record that is deleted by that.
    pub(super) fn discarded(
        &mut self,
        class: Class,
        lba: Lba,
        walk: &mut Walk,
    ) -> Option<(Lba, Lba)> {
        let id = self.with_new(lba.0 as u32, walk)?;
        let record = self.records[id as usize];
        if record.offered {
            return None;
        }
        self.forget(id, walk);
        self.records[id as usize].queued = false;
        self.queued[class.index()] -= 1;
        self.tidy_queue(class);
        Some((Lba(record.old.into()), Lba(record.new.into())))
    }

    /// Takes records that are not open any more out of a queue that has mostly such.
    fn tidy_queue(&mut self, class: Class) {
        let Self { records, unused, queues, queued, .. } = self;
        let (queue, queued) = (&mut queues[class.index()], queued[class.index()] as usize);
        if queue.len() < 2 * queued + QUEUE_LEAST {
            return;
        }
        queue.retain(|id| {
            let is_open = records[*id as usize].queued;
            if !is_open {
                unused.push(*id);
            }
            is_open
        });
    }

    fn forget(&mut self, id: u32, walk: &mut Walk) {
        let Record { old, new, .. } = self.records[id as usize];
        invariant!(
            self.with_old(old, &mut Walk::default()) == Some(id),
            "records: a record is found by its old address, which is that of no other"
        );
        self.open -= 1;
        self.by_old.remove(old, id, walk);
        self.by_new.remove(new, id, walk);
    }

    /// The next batch of records, data before nodes; its identity.
    pub(super) fn fetch(&mut self, most: usize, walk: &mut Walk) -> Option<(u64, Vec<(Lba, Lba)>)> {
        let class = Class::ALL.into_iter().find(|class| self.queued(*class) > 0)?;
        let mut batch = Vec::new();
        while batch.len() < most
            && let Some(id) = self.queues[class.index()].pop_front()
        {
            walk.access(1);
            let record = &mut self.records[id as usize];
            if !std::mem::replace(&mut record.queued, false) {
                self.unused.push(id);
                continue;
            }
            record.offered = true;
            self.queued[class.index()] -= 1;
            batch.push(id);
        }
        self.batch += 1;
        let pair = |&id: &u32| {
            let Record { old, new, .. } = self.records[id as usize];
            (Lba(old.into()), Lba(new.into()))
        };
        let moves = batch.iter().map(pair).collect();
        self.batches.insert(self.batch, batch);
        Some((self.batch, moves))
    }

    /// The host completed a batch: its records, which are not open any more. `None` of a batch that is not there.
    pub(super) fn complete(&mut self, batch: u64, walk: &mut Walk) -> Option<Vec<Closed>> {
        let batch = self.batches.remove(&batch)?;
        Some(batch.into_iter().map(|id| self.close(id, walk)).collect())
    }

    fn close(&mut self, id: u32, walk: &mut Walk) -> Closed {
        let Record { old, new, offered, .. } = self.records[id as usize];
        invariant!(offered, "a record that is completed was offered: {old} to {new}");
        self.forget(id, walk);
        self.unused.push(id);
        let before = self.with_new(old, walk);
        if let Some(before) = before {
            self.set_new(before, new, walk);
        }
        invariant!(
            self.with_new(old, &mut Walk::default()).is_none(),
            "records: none leads to {old}, from which none leads on"
        );
        let shortened = before.map(|before| Lba(self.records[before as usize].old.into()));
        Closed { old: Lba(old.into()), new: Lba(new.into()), shortened }
    }

    /// The open records of a class, in the order in which they would be offered after a power cut.
    pub(super) fn list(&self, class_of: impl Fn(Lba) -> Class, class: Class) -> Vec<(Lba, Lba)> {
        let pair = |id: &u32| {
            let Record { old, new, .. } = self.records[*id as usize];
            (Lba(old.into()), Lba(new.into()))
        };
        // A batch has records of one class.
        let is_of =
            |batch: &&Vec<u32>| batch.first().is_some_and(|id| class_of(pair(id).0) == class);
        let mut list: Vec<_> = self.batches.values().filter(is_of).flatten().map(pair).collect();
        let waiting = self.queues[class.index()].iter();
        list.extend(waiting.filter(|id| self.records[**id as usize].queued).map(pair));
        list
    }

    /// A record that a mount found.
    pub(super) fn restore(&mut self, class: Class, old: Lba, new: Lba) {
        let (old, new) = (old.0 as u32, new.0 as u32);
        let record = Record { old, new, offered: true, queued: true };
        self.insert(class, record, &mut Walk::default());
    }

    /// Bytes of RAM: of the records, and of the tables that find them.
    pub(super) fn bytes(&self) -> [u64; 2] {
        let queues: usize = self.queues.iter().map(VecDeque::capacity).sum();
        let batches: usize = self.batches.values().map(Vec::capacity).sum();
        let ids = (queues + batches + self.unused.capacity()) * size_of::<u32>();
        let records = self.records.capacity() * size_of::<Record>() + ids;
        [records as u64, self.by_old.bytes() + self.by_new.bytes()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Class::{Data, Node};

    fn fetched(records: &mut Records, most: usize) -> (u64, Vec<(u64, u64)>) {
        let (id, moves) = records.fetch(most, &mut Walk::default()).unwrap();
        (id, moves.into_iter().map(|(old, new)| (old.0, new.0)).collect())
    }

    /// A page that is moved again before its record was offered has one record, from its first address to its last.
    #[test]
    fn moves_are_merged_until_they_are_offered() {
        let mut records = Records::new(8, None);
        assert_eq!(records.moved(Data, Lba(1), Lba(10), &mut Walk::default()), Moved::Opened);
        assert_eq!(
            records.moved(Data, Lba(10), Lba(20), &mut Walk::default()),
            Moved::Merged(Lba(1))
        );
        assert_eq!((records.open(), records.resolve(Lba(1), &mut Walk::default())), (1, Lba(20)));
        assert_eq!(
            records.resolve(Lba(10), &mut Walk::default()),
            Lba(10),
            "the host has never heard of it"
        );
        assert_eq!(fetched(&mut records, 9), (1, vec![(1, 20)]));
    }

    /// A page that is moved while its record is with the host has two, and every address leads to it; whichever batch is
    /// completed first.
    #[test]
    fn offered_records_make_chains() {
        for first in [1, 2] {
            let mut records = Records::new(8, None);
            records.moved(Data, Lba(1), Lba(10), &mut Walk::default());
            assert_eq!(fetched(&mut records, 9), (1, vec![(1, 10)]));
            assert_eq!(records.moved(Data, Lba(10), Lba(20), &mut Walk::default()), Moved::Opened);
            assert_eq!(
                [1, 10, 20].map(|lba| records.resolve(Lba(lba), &mut Walk::default()).0),
                [20; 3]
            );
            assert_eq!(fetched(&mut records, 9), (2, vec![(10, 20)]));
            let closed = records.complete(first, &mut Walk::default()).unwrap();
            let (old, new) = if first == 1 { (1, 10) } else { (10, 20) };
            let shortened = (first == 2).then_some(Lba(1));
            assert_eq!(closed, [Closed { old: Lba(old), new: Lba(new), shortened }]);
            assert_eq!(records.resolve(Lba(old), &mut Walk::default()), Lba(old));
            assert_eq!(
                records.resolve(Lba(11 - old), &mut Walk::default()),
                Lba(20),
                "batch {first} first"
            );
            assert_eq!(records.complete(first, &mut Walk::default()), None);
            assert!(records.complete(3 - first, &mut Walk::default()).is_some());
            assert_eq!(
                (records.open(), records.resolve(Lba(1), &mut Walk::default())),
                (0, Lba(1))
            );
        }
    }

    /// A chain of two: the head of a bucket and the record of each; no more records are followed than are open. A move finds no
    /// record of its old address, or that which it merges with, and puts one in both tables, or in one in place of another one.
    #[test]
    fn accesses_follow_the_chain() {
        let mut records = Records::new(8, None);
        let mut walk = Walk::default();
        let mut after = |records: &mut Records, step: &dyn Fn(&mut Records, &mut Walk)| {
            step(records, &mut walk);
            walk.take()
        };
        let (one, ten, twenty) = (Lba(1), Lba(10), Lba(20));
        let moves = |from, to| {
            move |of: &mut Records, walk: &mut Walk| {
                of.moved(Data, from, to, walk);
            }
        };
        let resolves = |lba| {
            move |of: &mut Records, walk: &mut Walk| {
                of.resolve(lba, walk);
            }
        };
        assert_eq!(after(&mut records, &resolves(one)), 0, "none is open");
        assert_eq!(after(&mut records, &moves(one, ten)), 1 + 2 + 2);
        assert_eq!(after(&mut records, &resolves(one)), 2);
        assert_eq!(after(&mut records, &resolves(Lba(2))), 1);
        let fetch = |of: &mut Records, walk: &mut Walk| assert!(of.fetch(9, walk).is_some());
        assert_eq!(after(&mut records, &fetch), 1);
        assert_eq!(after(&mut records, &moves(ten, twenty)), 2 + 2 + 2);
        assert_eq!(after(&mut records, &resolves(one)), 2 + 2);
        assert_eq!(after(&mut records, &moves(twenty, Lba(30))), 2 + 2 + 2);
        let discards = |of: &mut Records, walk: &mut Walk| {
            assert!(of.discarded(Data, Lba(30), walk).is_some());
        };
        assert_eq!(after(&mut records, &discards), 2 + 2 + 2);
        let completes = |of: &mut Records, walk: &mut Walk| assert!(of.complete(1, walk).is_some());
        // Out of both tables, and nothing led to it.
        assert_eq!(after(&mut records, &completes), 2 + 2 + 1);
    }

    /// Records that lead in a circle, as only a line that is written again too early makes them, do not keep a search.
    #[test]
    fn a_circle_of_records_ends() {
        let mut records = Records::new(8, None);
        for (from, to) in [(1, 10), (10, 20), (20, 1)] {
            records.moved(Data, Lba(from), Lba(to), &mut Walk::default());
            assert!(records.fetch(1, &mut Walk::default()).is_some());
        }
        assert_eq!(records.resolve(Lba(10), &mut Walk::default()), Lba(10));
    }

    /// A page that is discarded has no record any more, unless that was offered.
    #[test]
    fn discards_delete_what_was_not_offered() {
        let mut records = Records::new(8, None);
        records.moved(Data, Lba(1), Lba(10), &mut Walk::default());
        records.moved(Data, Lba(2), Lba(11), &mut Walk::default());
        records.moved(Node, Lba(3), Lba(12), &mut Walk::default());
        assert!(
            records.is_unknown(Lba(10), &mut Walk::default())
                && !records.is_unknown(Lba(1), &mut Walk::default())
        );
        assert_eq!(records.discarded(Data, Lba(10), &mut Walk::default()), Some((Lba(1), Lba(10))));
        assert_eq!((records.open(), records.queued(Data), records.queued(Node)), (2, 1, 1));
        assert_eq!(fetched(&mut records, 1), (1, vec![(2, 11)]), "data before nodes");
        assert_eq!(records.discarded(Data, Lba(11), &mut Walk::default()), None);
        assert!(!records.is_unknown(Lba(11), &mut Walk::default()));
        assert_eq!(fetched(&mut records, 9), (2, vec![(3, 12)]));
        assert_eq!(records.fetch(9, &mut Walk::default()), None);
    }

    /// What a mount finds is offered again, before what is moved later, and is not merged.
    #[test]
    fn restored_records_count_as_offered() {
        let mut records = Records::new(8, None);
        records.restore(Data, Lba(1), Lba(10));
        assert_eq!(records.moved(Data, Lba(10), Lba(20), &mut Walk::default()), Moved::Opened);
        assert_eq!(records.list(|_| Data, Data), [(Lba(1), Lba(10)), (Lba(10), Lba(20))]);
        assert_eq!(fetched(&mut records, 9).1, [(1, 10), (10, 20)]);
        assert_eq!(records.list(|_| Data, Data), [(Lba(1), Lba(10)), (Lba(10), Lba(20))]);
    }
}
