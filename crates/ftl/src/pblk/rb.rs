//! A ring: the memory of a write buffer, for user data, garbage-collection copies and trim records
//! (pblk-rb.c).
//!
//! A position is never reused, and slot = position mod size. Slots are numbered through all rings of
//! the device. Each entry has its global write sequence, which grows with the position, in the only
//! ring of a device without gaps; but where a flush has brought a file's entries forward. The pointers keep the kernel's order,
//! `l2p_update <= sync <= subm <= mem <= l2p_update + size`:
//! - `mem`: next position handed to a producer;
//! - `subm`: next position for the writer;
//! - `sync`: everything before is durable;
//! - `l2p_update`: everything before has left the ring, the table points at media;
//! - `flush_point`: everything before must be submitted even if a unit needs padding.

use super::ids::FileKey;
use nandscape_block::SectorData;
use nandscape_media::KEY_EMPTY;
use nandscape_rt::invariant;
use std::collections::VecDeque;
use std::ops::Range;

/// Why an entry is in the ring.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Origin {
    /// Written by the host.
    #[default]
    User,
    /// Copied by garbage collection.
    Gc,
    /// A garbage-collection copy that turned out stale: written, but holds nothing.
    Stale,
    /// Trim records.
    Trim,
}

/// An entry that changes places.
#[derive(Debug)]
struct Entry {
    from: u64,
    key: u32,
    origin: Origin,
    data: SectorData,
    seq: u64,
    owner: Option<FileKey>,
}

/// The ring.
#[derive(Debug)]
pub(super) struct Ring {
    /// Number of the first slot.
    base: u32,
    keys: Box<[u32]>,
    origins: Box<[Origin]>,
    data: Box<[SectorData]>,
    /// Whether any slot ever held a content.
    holds_data: bool,
    /// Each entry's sequence; none where they are consecutive.
    seqs: Option<Box<[u64]>>,
    /// Sequence less position, where sequences are consecutive.
    seq_offset: u64,
    /// Files of user entries, where flushes ask for them.
    owners: Option<Box<[Option<FileKey>]>>,
    /// Positions at which a write unit must end, in order.
    cuts: VecDeque<u64>,
    /// Behind this position entries are in order of their sequences.
    ordered_from: u64,
    pub(super) mem: u64,
    pub(super) subm: u64,
    pub(super) sync: u64,
    pub(super) l2p_update: u64,
    pub(super) flush_point: u64,
}

impl Ring {
    /// An empty ring of `size` entries (a power of two) whose first slot has number `base`, and whose
    /// sequences are consecutive.
    pub(super) fn new(size: u32, base: u32) -> Self {
        let (size, first) = (size as usize, 1);
        Self {
            base,
            keys: vec![KEY_EMPTY; size].into_boxed_slice(),
            origins: vec![Origin::User; size].into_boxed_slice(),
            data: vec![SectorData::Absent; size].into_boxed_slice(),
            holds_data: false,
            seqs: None,
            seq_offset: 0,
            owners: None,
            cuts: VecDeque::new(),
            ordered_from: first,
            mem: first,
            subm: first,
            sync: first,
            l2p_update: first,
            flush_point: first,
        }
    }

    /// The same with sequences that have gaps.
    pub(super) fn with_gaps(size: u32, base: u32) -> Self {
        let seqs = vec![0; size as usize].into_boxed_slice();
        Self { seqs: Some(seqs), ..Self::new(size, base) }
    }

    /// The same, and it remembers which file an entry belongs to.
    pub(super) fn with_owners(size: u32, base: u32) -> Self {
        let owners = vec![None; size as usize].into_boxed_slice();
        Self { owners: Some(owners), ..Self::with_gaps(size, base) }
    }

    /// Entries.
    #[inline]
    pub(super) fn size(&self) -> u32 {
        self.keys.len() as u32
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        (position & (self.keys.len() as u64 - 1)) as usize
    }

    /// Where `entries` entries from `first` on lie: behind the end of the ring they go on at its start.
    #[inline]
    fn indices(&self, first: u64, entries: u32) -> [Range<usize>; 2] {
        let (from, size) = (self.index(first), self.keys.len());
        let end = from + entries as usize;
        [from..end.min(size), 0..end.saturating_sub(size)]
    }

    /// Slots and keys of `entries` entries from `first` on.
    #[inline]
    pub(super) fn run(&self, first: u64, entries: u32) -> impl Iterator<Item = (u32, u32)> {
        let [ahead, behind] = self.indices(first, entries);
        let part = |indices: Range<usize>| {
            (self.base + indices.start as u32..).zip(self.keys[indices].iter().copied())
        };
        part(ahead).chain(part(behind))
    }

    /// Copies the keys of as many entries from `first` on as there is room for.
    #[inline]
    pub(super) fn copy_keys(&self, first: u64, keys: &mut [u32]) {
        let [ahead, behind] = self.indices(first, keys.len() as u32);
        let (start, rest) = keys.split_at_mut(ahead.len());
        start.copy_from_slice(&self.keys[ahead]);
        rest.copy_from_slice(&self.keys[behind]);
    }

    /// How many of up to 255 entries from `first` on there are of each origin, in the order of
    /// [`Origin`].
    #[inline]
    pub(super) fn count(&self, first: u64, entries: u32) -> [u32; 4] {
        let [ahead, behind] = self.indices(first, entries);
        let origins = self.origins[ahead].iter().chain(&self.origins[behind]);
        // Four counters in one word.
        let counts: u32 = origins.map(|&origin| 1 << (8 * origin as u32)).sum();
        counts.to_le_bytes().map(u32::from)
    }

    /// The slot of a position.
    #[inline]
    pub(super) fn slot(&self, position: u64) -> u32 {
        self.base + self.index(position) as u32
    }

    /// The youngest position that has this slot.
    pub(super) fn position_of(&self, slot: u32) -> u64 {
        let last = self.mem - 1;
        last - self.index(last.wrapping_sub(u64::from(slot - self.base))) as u64
    }

    /// Slots that a producer may claim without recycling any.
    #[inline]
    pub(super) fn free(&self) -> u32 {
        self.size() - (self.mem - self.l2p_update) as u32
    }

    /// Entries that no write has taken yet.
    #[inline]
    pub(super) fn backlog(&self) -> u32 {
        (self.mem - self.subm) as u32
    }

    /// Whether entries wait for durability.
    #[inline]
    pub(super) fn is_dirty(&self) -> bool {
        self.sync < self.mem
    }

    /// The sequence of the oldest entry that is not durable.
    pub(super) fn oldest_seq(&self) -> Option<u64> {
        let end = self.ordered_from.clamp(self.sync + 1, self.mem.max(self.sync + 1));
        let oldest = (self.sync..end).map(|position| self.seq(position)).min();
        oldest.filter(|_| self.is_dirty())
    }

    /// Whether sequences need not be consecutive.
    #[inline]
    pub(super) const fn has_gaps(&self) -> bool {
        self.seqs.is_some()
    }

    /// Notes the file of the entry that was pushed last.
    #[inline]
    pub(super) fn owned_by(&mut self, file: Option<FileKey>) {
        let slot = self.index(self.mem - 1);
        if let Some(owners) = &mut self.owners {
            owners[slot] = file;
        }
    }

    /// The file of the entry at `position`.
    fn owner(&self, position: u64) -> Option<FileKey> {
        self.owners.as_ref().and_then(|owners| owners[self.index(position)])
    }

    /// Whether entries remember their files.
    pub(super) fn knows_owners(&self) -> bool {
        self.owners.is_some()
    }

    /// The end of a file's entries among those from `from` up to `to`.
    pub(super) fn end_of(&self, file: FileKey, from: u64, to: u64) -> Option<u64> {
        (from..to).rev().find(|&at| self.owner(at) == Some(file)).map(|at| at + 1)
    }

    /// Where entries may still change places: no write has taken them, and no cut is behind them.
    pub(super) fn movable_from(&self) -> u64 {
        self.cuts.back().map_or(self.subm, |&cut| cut.max(self.subm))
    }

    /// Cuts ahead of the writer.
    pub(super) fn cuts_len(&self) -> u32 {
        self.cuts.len() as u32
    }

    /// Entries up to the next cut.
    #[inline]
    fn to_cut(&self) -> u32 {
        self.cuts.front().map_or(u32::MAX, |&cut| (cut - self.subm) as u32)
    }

    /// Entries for the next unit: a full one, or what a flush waits for.
    #[inline]
    pub(super) fn entries_to_write(&self, ws_opt: u32) -> u32 {
        let backlog = self.backlog().min(self.to_cut());
        if backlog >= ws_opt {
            ws_opt
        } else if self.flush_point > self.subm {
            backlog
        } else {
            0
        }
    }

    /// The writer takes the next `entries` entries.
    #[inline]
    pub(super) fn take(&mut self, entries: u32) {
        self.subm += u64::from(entries);
        invariant!(self.subm <= self.mem, "the ring's pointers keep their order");
        while self.cuts.front().is_some_and(|&cut| cut <= self.subm) {
            self.cuts.pop_front();
        }
    }

    /// Moves a file's entries to the front of those that may change places, in order, and has a write
    /// unit end behind them. `moved` learns of each entry that changed places: its key, and its old
    /// and new position. How many are the file's.
    pub(super) fn prioritize_file(
        &mut self,
        file: FileKey,
        mut moved: impl FnMut(u32, u64, u64),
    ) -> u64 {
        let first = self.movable_from();
        let (ahead, behind): (Vec<u64>, Vec<u64>) =
            (first..self.mem).partition(|&at| self.owner(at) == Some(file));
        let taken: Vec<Entry> =
            ahead.iter().chain(&behind).map(|&at| self.take_entry(at)).collect();
        for (to, entry) in (first..).zip(taken) {
            if entry.from != to {
                moved(entry.key, entry.from, to);
            }
            self.put_entry(to, entry);
        }
        let count = ahead.len() as u64;
        if count > 0 {
            self.cuts.push_back(first + count);
            self.ordered_from = self.mem;
        }
        count
    }

    fn take_entry(&mut self, from: u64) -> Entry {
        let index = self.index(from);
        Entry {
            from,
            key: self.keys[index],
            origin: self.origins[index],
            data: std::mem::take(&mut self.data[index]),
            seq: self.seq(from),
            owner: self.owner(from),
        }
    }

    fn put_entry(&mut self, to: u64, entry: Entry) {
        let index = self.index(to);
        self.keys[index] = entry.key;
        self.origins[index] = entry.origin;
        self.data[index] = entry.data;
        if let Some(seqs) = &mut self.seqs {
            seqs[index] = entry.seq;
        }
        if let Some(owners) = &mut self.owners {
            owners[index] = entry.owner;
        }
    }

    /// Claims the next slot, which must be free, for an entry with sequence `seq`, and without content
    /// so far. Returns the slot.
    #[inline(always)]
    pub(super) fn push(&mut self, key: u32, origin: Origin, seq: u64) -> u32 {
        invariant!(self.free() > 0, "a slot that is claimed is free");
        let slot = self.index(self.mem);
        self.keys[slot] = key;
        self.origins[slot] = origin;
        match &mut self.seqs {
            Some(seqs) => seqs[slot] = seq,
            None => {
                invariant!(
                    !self.is_dirty() || self.seq(self.mem) == seq,
                    "sequences of the only ring are consecutive"
                );
                self.seq_offset = seq - self.mem;
            }
        }
        // Where no content is kept there is none to forget.
        if self.holds_data {
            self.data[slot] = SectorData::Absent;
        }
        self.mem += 1;
        self.base + slot as u32
    }

    /// The content of the entry that was pushed last.
    #[inline]
    pub(super) fn keep(&mut self, data: SectorData) {
        let slot = self.index(self.mem - 1);
        self.holds_data = true;
        self.data[slot] = data;
    }

    /// The copy that was pushed last is stale: it holds nothing.
    pub(super) fn mark_stale(&mut self) {
        let slot = self.index(self.mem - 1);
        (self.keys[slot], self.origins[slot]) = (KEY_EMPTY, Origin::Stale);
    }

    #[inline]
    pub(super) fn key(&self, position: u64) -> u32 {
        self.keys[self.index(position)]
    }

    /// Global sequence of the entry at `position`.
    #[inline]
    pub(super) fn seq(&self, position: u64) -> u64 {
        match &self.seqs {
            Some(seqs) => seqs[self.index(position)],
            None => position + self.seq_offset,
        }
    }

    /// Content of the entry at `position`.
    #[inline]
    pub(super) fn data(&self, position: u64) -> &SectorData {
        &self.data[self.index(position)]
    }

    /// Content of a slot that the table points at.
    #[inline]
    pub(super) fn slot_data(&self, slot: u32) -> &SectorData {
        &self.data[(slot - self.base) as usize]
    }

    /// Asks that everything inserted so far be submitted.
    pub(super) fn flush_all(&mut self) {
        self.flush_point = self.mem;
    }

    /// Bytes of the ring.
    pub(super) fn bytes(&self) -> u64 {
        let entry = size_of::<u32>() + size_of::<Origin>() + size_of::<SectorData>();
        let seqs = if self.seqs.is_some() { size_of::<u64>() } else { 0 };
        let owners = if self.knows_owners() { size_of::<Option<FileKey>>() } else { 0 };
        u64::from(self.size()) * (entry + seqs + owners) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_block::Tag;

    fn push(ring: &mut Ring, key: u32) -> u64 {
        let seq = 10 * ring.mem;
        ring.push(key, Origin::Gc, seq);
        ring.keep(SectorData::Tag(Tag::new(u64::from(key))));
        ring.mem - 1
    }

    /// An entry stays readable at its position and in its slot until the ring has gone round, and
    /// keeps its sequence.
    #[test]
    fn positions_lead_to_entries_and_slots_back_to_positions() {
        let mut ring = Ring::with_gaps(8, 64);
        for key in 0..20 {
            let position = push(&mut ring, key);
            assert_eq!(position, 1 + u64::from(key));
            assert_eq!((ring.key(position), ring.count(position, 1)), (key, [0, 1, 0, 0]));
            assert_eq!(ring.seq(position), 10 * position);
            let (slot, data) = (ring.slot(position), SectorData::Tag(Tag::new(u64::from(key))));
            assert!((64..72).contains(&slot));
            assert_eq!((ring.data(position), ring.slot_data(slot)), (&data, &data));
            assert_eq!(ring.position_of(slot), position);
            ring.l2p_update = ring.mem.saturating_sub(7).max(1);
        }
    }

    /// Entries that begin near the end of the ring go on at its start, in order.
    #[test]
    fn a_run_of_entries_goes_round() {
        let mut ring = Ring::with_gaps(8, 64);
        ring.l2p_update = 7;
        ring.mem = 7;
        for (key, origin) in (10..).zip([Origin::Gc, Origin::User, Origin::Gc, Origin::Stale]) {
            ring.push(key, origin, u64::from(key));
        }
        let run: Vec<(u32, u32)> = ring.run(7, 4).collect();
        assert_eq!(run, [(71, 10), (64, 11), (65, 12), (66, 13)]);
        let mut keys = [0; 3];
        ring.copy_keys(7, &mut keys);
        assert_eq!(keys, [10, 11, 12]);
        assert_eq!(ring.count(7, 4), [1, 2, 1, 0]);
    }

    /// Slots become free when entries leave the ring, not when they are submitted or durable: until
    /// then the table points at them.
    #[test]
    fn only_leaving_the_ring_frees_a_slot() {
        let mut ring = Ring::with_gaps(8, 0);
        for key in 0..8 {
            push(&mut ring, key);
        }
        assert_eq!((ring.free(), ring.backlog()), (0, 8));
        (ring.subm, ring.sync) = (7, 5);
        assert_eq!((ring.free(), ring.backlog()), (0, 2));
        ring.l2p_update = 4;
        assert_eq!(ring.free(), 3);
    }

    /// The oldest entry that is not durable tells what the ring has made durable.
    #[test]
    fn the_oldest_sequence_is_that_of_the_first_entry_behind_sync() {
        let mut ring = Ring::with_gaps(8, 0);
        assert_eq!(ring.oldest_seq(), None);
        let (first, second) = (push(&mut ring, 1), push(&mut ring, 2));
        assert_eq!(ring.oldest_seq(), Some(10 * first));
        ring.sync = second;
        assert_eq!(ring.oldest_seq(), Some(10 * second));
        ring.sync = ring.mem;
        assert_eq!(ring.oldest_seq(), None);
    }

    /// A flush point covers what is in the ring, and nothing that comes after.
    #[test]
    fn a_flush_point_covers_what_was_inserted_before() {
        let mut ring = Ring::with_gaps(8, 0);
        let last = push(&mut ring, 1);
        ring.flush_all();
        let later = push(&mut ring, 2);
        assert!(last < ring.flush_point && later >= ring.flush_point);
    }

    /// A file's entries come first, in order, everything else behind them in order; a unit ends between
    /// them, and the oldest sequence is found wherever it went.
    #[test]
    fn a_files_entries_are_brought_forward() {
        let mut ring = Ring::with_owners(16, 0);
        let files = [None, Some((1, 0)), Some((2, 0)), Some((1, 0)), None, Some((1, 1))];
        for (key, file) in (10..).zip(files) {
            push(&mut ring, key);
            ring.owned_by(file);
        }
        ring.take(1);
        let mut moves = Vec::new();
        assert_eq!(ring.prioritize_file((1, 0), |key, from, to| moves.push((key, from, to))), 2);
        let keys: Vec<u32> = (1..ring.mem).map(|at| ring.key(at)).collect();
        assert_eq!(keys, [10, 11, 13, 12, 14, 15]);
        assert_eq!(moves, [(13, 4, 3), (12, 3, 4)]);
        assert_eq!((ring.to_cut(), ring.movable_from(), ring.seq(3)), (2, 4, 40));
        assert_eq!(ring.data(3), &SectorData::Tag(Tag::new(13)));
        assert_eq!(ring.end_of((1, 0), 1, ring.mem), Some(4));
        ring.sync = 3;
        assert_eq!(ring.oldest_seq(), Some(30), "that of key 12, behind key 13's");
        assert_eq!(ring.prioritize_file((7, 0), |_, _, _| panic!("nothing to move")), 0);
        ring.take(2);
        assert_eq!((ring.cuts_len(), ring.to_cut()), (0, u32::MAX));
    }

    /// Consecutive sequences need no memory, wherever they begin.
    #[test]
    fn consecutive_sequences_are_known_from_positions() {
        let mut ring = Ring::new(4, 0);
        for seq in 100..110 {
            ring.push(7, Origin::User, seq);
            assert_eq!(ring.seq(ring.mem - 1), seq);
            assert_eq!(ring.oldest_seq(), Some(100.max(seq - 3)));
            ring.sync = ring.mem.saturating_sub(3).max(1);
            ring.l2p_update = ring.sync;
        }
        assert!(Ring::with_gaps(4, 0).bytes() > ring.bytes());
    }

    /// Old content never shines through an entry without content.
    #[test]
    fn a_reused_slot_forgets_its_content() {
        let mut ring = Ring::with_gaps(2, 0);
        push(&mut ring, 5);
        push(&mut ring, 6);
        ring.l2p_update = ring.mem;
        let slot = ring.push(1, Origin::Gc, 0);
        assert_eq!(ring.slot_data(slot), &SectorData::Absent);
        ring.mark_stale();
        let last = ring.mem - 1;
        assert_eq!((ring.key(last), ring.count(last, 1)), (KEY_EMPTY, [0, 0, 1, 0]));
    }
}
