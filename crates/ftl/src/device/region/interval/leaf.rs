//! A map node, the leaf of an interval map: the entries of one aligned run of addresses.
//!
//! Entries lie in ranges of equal length, from the address `start` on; the directory has the place of each range in
//! the buffer, or that it is absent. A fresh leaf has one range, which is all of it. Compaction trims what is
//! unmapped at both ends and drops ranges without an entry. A write to an address that has no place then gives the
//! leaf its full form again: in an append-only region that happens while a leaf is being filled, and hardly later.
//!
//! Invariants: a bit of `valid` is set exactly where the entry is not 0, and `count` is the number of these bits.

/// No range in the buffer.
const ABSENT: u16 = u16::MAX;

/// The entries of one run of addresses; see the head of this file. An entry of 0 is none.
#[derive(Debug)]
pub(super) struct Leaf {
    valid: Box<[u64]>,
    directory: Box<[u16]>,
    entries: Box<[u32]>,
    /// Entries that are there.
    count: u32,
    /// The first address of the first range.
    start: u32,
    /// Addresses of a range.
    range: u32,
    /// An entry came or went since the last compaction looked.
    pub(super) changed: bool,
}

/// Bytes of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct LeafBytes {
    pub(super) bitmap: u64,
    pub(super) directory: u64,
    pub(super) entries: u64,
}

impl LeafBytes {
    pub(super) const fn sum(self) -> u64 {
        self.bitmap + self.directory + self.entries
    }
}

/// The form that compaction gives a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Form {
    start: u32,
    range: u32,
    /// Ranges, of which the last one may be shorter.
    ranges: u32,
    /// Addresses of those that have an entry; the last range has one.
    kept: u32,
}

impl Leaf {
    /// A leaf of so many addresses, a multiple of 64, without entries.
    pub(super) fn new(addresses: u32) -> Self {
        Self {
            valid: vec![0; addresses as usize / 64].into(),
            directory: [0].into(),
            entries: vec![0; addresses as usize].into(),
            count: 0,
            start: 0,
            range: addresses,
            changed: false,
        }
    }

    const fn addresses(&self) -> u32 {
        self.valid.len() as u32 * 64
    }

    /// Entries that are there.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// Whether at most half of the addresses have an entry.
    pub(super) const fn is_sparse(&self) -> bool {
        2 * self.count <= self.addresses()
    }

    pub(super) fn bytes(&self) -> LeafBytes {
        LeafBytes {
            bitmap: size_of_val(&*self.valid) as u64,
            directory: size_of_val(&*self.directory) as u64,
            entries: size_of_val(&*self.entries) as u64,
        }
    }

    /// The place of an address in the buffer.
    #[inline]
    fn place(&self, at: u32) -> Option<usize> {
        let from_start = at.checked_sub(self.start)?;
        let range = *self.directory.get((from_start / self.range) as usize)?;
        (range != ABSENT)
            .then(|| u32::from(range) * self.range + from_start % self.range)
            .map(|place| place as usize)
            .filter(|&place| place < self.entries.len())
    }

    /// Whether an address has a place, and thereby an entry that can be accessed.
    #[inline]
    pub(super) fn has_place(&self, at: u32) -> bool {
        self.place(at).is_some()
    }

    /// The entry of an address.
    #[inline]
    pub(super) fn get(&self, at: u32) -> u32 {
        self.place(at).map_or(0, |place| self.entries[place])
    }

    /// Gives an address another entry, or none; the one that it had.
    #[inline]
    pub(super) fn set(&mut self, at: u32, entry: u32) -> u32 {
        let place = match self.place(at) {
            Some(place) => place,
            None if entry == 0 => return 0,
            None => {
                self.expand();
                at as usize
            }
        };
        let before = std::mem::replace(&mut self.entries[place], entry);
        if (before == 0) != (entry == 0) {
            self.valid[at as usize / 64] ^= 1 << (at % 64);
            self.count = if entry == 0 { self.count - 1 } else { self.count + 1 };
        }
        before
    }

    /// The first address from `from` on that has an entry, or that has none.
    pub(super) fn next(&self, from: u32, mapped: bool) -> Option<u32> {
        let flip = if mapped { 0 } else { u64::MAX };
        let first = from as usize / 64;
        let mut kept = u64::MAX << (from % 64);
        for (index, word) in self.valid.iter().enumerate().skip(first) {
            let found = (word ^ flip) & kept;
            if found != 0 {
                return Some(index as u32 * 64 + found.trailing_zeros());
            }
            kept = u64::MAX;
        }
        None
    }

    /// One range of all addresses.
    fn expand(&mut self) {
        let all = self.addresses();
        self.rebuild(Form { start: 0, range: all, ranges: 1, kept: all });
    }

    /// Compacts the leaf if that makes it smaller by a tenth at least, with ranges of `hole_min` addresses or more.
    /// Whether it did.
    pub(super) fn compact(&mut self, hole_min: u32) -> bool {
        let Some(form) = self.compacted(hole_min) else { return false };
        let (before, after) = (self.bytes(), LeafBytes { bitmap: 0, ..form.bytes() });
        if 10 * (before.bitmap + after.sum()) > 9 * before.sum() {
            return false;
        }
        self.rebuild(form);
        true
    }

    /// Ranges as long as the shortest hole of `hole_min` addresses or more between two entries, from the first entry
    /// to the last.
    fn compacted(&self, hole_min: u32) -> Option<Form> {
        let start = self.next(0, true)?;
        let (mut end, mut shortest) = (start, None::<u32>);
        while let Some(first) = self.next(end, true) {
            let hole = first - end;
            if hole >= hole_min && end > start {
                shortest = Some(shortest.map_or(hole, |shortest| shortest.min(hole)));
            }
            end = self.next(first, false).unwrap_or(self.addresses());
            if end == self.addresses() {
                break;
            }
        }
        let range = shortest.unwrap_or(end - start);
        let ranges = (end - start).div_ceil(range);
        let has_entry = |index: &u32| {
            let first = start + index * range;
            self.next(first, true).is_some_and(|at| at < first + range)
        };
        let kept = (0..ranges).filter(has_entry).count() as u32 * range;
        Some(Form { start, range, ranges, kept: kept - (ranges * range - (end - start)) })
    }

    /// Gives the leaf a form that has a place for every entry.
    fn rebuild(&mut self, form: Form) {
        let Form { start, range, ranges, kept } = form;
        let mut entries = vec![0; kept as usize];
        let mut directory = vec![ABSENT; ranges as usize];
        let (mut next, mut used) = (0, 0);
        while let Some(at) = self.next(next, true) {
            let index = (at - start) / range;
            let place = &mut directory[index as usize];
            if *place == ABSENT {
                *place = used;
                used += 1;
            }
            entries[(u32::from(*place) * range + (at - start) % range) as usize] = self.get(at);
            next = at + 1;
            if next == self.addresses() {
                break;
            }
        }
        // A full form without entries has its range all the same.
        if ranges == 1 {
            directory[0] = 0;
        }
        (self.start, self.range) = (start, range);
        (self.directory, self.entries) = (directory.into(), entries.into());
    }

    /// Whether the invariants at the head of this file hold.
    pub(super) fn is_consistent(&self) -> bool {
        let agrees = |at: u32| {
            let valid = self.valid[at as usize / 64] >> (at % 64) & 1 == 1;
            valid == (self.get(at) != 0)
        };
        let bits: u32 = self.valid.iter().map(|word| word.count_ones()).sum();
        (0..self.addresses()).all(agrees) && bits == self.count
    }
}

impl Form {
    /// Bytes of directory and entries.
    const fn bytes(&self) -> LeafBytes {
        LeafBytes {
            bitmap: 0,
            directory: self.ranges as u64 * size_of::<u16>() as u64,
            entries: self.kept as u64 * size_of::<u32>() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(addresses: u32, entries: impl IntoIterator<Item = u32>) -> Leaf {
        let mut leaf = Leaf::new(addresses);
        for at in entries {
            assert_eq!(leaf.set(at, at + 1), 0);
        }
        leaf
    }

    fn form(leaf: &Leaf) -> (u32, u32, Vec<u16>) {
        (leaf.start, leaf.range, leaf.directory.to_vec())
    }

    /// Ends are trimmed; ranges are as long as the shortest hole of at least 64; those without an entry go.
    #[test]
    fn compaction_keeps_ranges_with_entries() {
        let mut leaf = with(4096, [100, 101, 200, 501, 1000]);
        assert!(leaf.compact(64));
        // Holes of 98, 300 and 498: ranges of 98 from 100 on.
        let mut directory = vec![ABSENT; 10];
        (directory[0], directory[1], directory[4], directory[9]) = (0, 1, 2, 3);
        assert_eq!(form(&leaf), (100, 98, directory));
        let kept = 3 * 98 + (1000 - 100 - 9 * 98 + 1);
        assert_eq!(leaf.bytes(), LeafBytes { bitmap: 512, directory: 20, entries: kept * 4 });
        for at in 0..4096 {
            let entry = if [100, 101, 200, 501, 1000].contains(&at) { at + 1 } else { 0 };
            assert_eq!(leaf.get(at), entry);
        }
        assert!(leaf.is_consistent());
    }

    /// Shorter holes do not divide: the trimmed leaf is one range.
    #[test]
    fn short_holes_stay() {
        let mut leaf = with(4096, (0..30).map(|i| 4095 - 64 * i));
        assert!(leaf.compact(64));
        assert_eq!(form(&leaf), (4095 - 64 * 29, 64 * 29 + 1, vec![0]));
        assert!(leaf.is_consistent());
    }

    /// What does not shrink by a tenth is left alone, and what was compacted before too.
    #[test]
    fn little_gain_is_no_compaction() {
        let mut leaf = with(4096, [0, 3_900]);
        assert!(!leaf.compact(64), "a hole of 3899 leaves two ranges, the second of two entries");
        let mut full = with(4096, (0..61).map(|i| 60 * i).chain([3_700]));
        assert!(!full.compact(64), "3701 of 4096 are kept");
        assert!(full.set(3_700, 0) == 3_701 && full.compact(64), "3601 of 4096 are kept");
        assert!(!full.compact(64), "again");
    }

    /// An entry outside of the ranges gives the leaf its full form, and loses nothing.
    #[test]
    fn a_write_without_a_place_expands() {
        for at in [0, 150, 4095] {
            let mut leaf = with(4096, [100, 300]);
            assert!(leaf.compact(64));
            assert_eq!(leaf.set(at, 7), 0);
            assert_eq!([100, 300, at].map(|at| leaf.get(at)), [101, 301, 7]);
            assert!(leaf.is_consistent() && leaf.count() == 3);
        }
    }

    #[test]
    fn next_finds_both_kinds() {
        let leaf = with(128, [0, 1, 63, 64, 127]);
        let found = [0, 1, 2, 64, 65, 127].map(|from| leaf.next(from, true));
        assert_eq!(found, [0, 1, 63, 64, 127, 127].map(Some));
        let holes = [0, 2, 63, 127].map(|from| leaf.next(from, false));
        assert_eq!(holes, [Some(2), Some(2), Some(65), None]);
    }
}
