//! The interval map of an append-only region (IPLFS, USENIX ATC '22, "Interval Mapping"): a tree of three levels over
//! a space that is much larger than what is mapped of it.
//!
//! - The *root* is an array over the window of middle nodes in use. The window moves with them: nodes that died at its
//!   beginning are dropped when space is needed, and an array that is still too short doubles.
//! - A *middle node* has the leaves of a fixed number of aligned runs of addresses.
//! - A *leaf* (map node, `leaf.rs`) has the entries of one run.
//!
//! A leaf without entries is freed, as is a middle node without leaves, so memory follows what is mapped; lookup is
//! constant. Compaction makes leaves smaller of which at most half is mapped, and that changed since it looked last.
//!
//! Addresses are those within the region. An entry is any number but 0, which is none.
//!
//! *Accesses.* The way to a leaf is three: the root's slot, the middle node's, and the leaf's directory; it ends where there is
//! nothing. An entry is one more. A node that is made or freed is one more, the slot that names it. So is each slot of a root
//! whose window moves, and each entry of a leaf that gets its full form again. Valid bitmaps are read by compaction, whose
//! time follows from bytes, and do not count.
//!
//! Invariants: each leaf has an entry, each middle node a leaf; [`MapBytes`] and the number of entries are those that a
//! recount finds; every leaf that changed is listed once.

mod leaf;

#[cfg(test)]
mod tests;

use crate::common::firmware::Walk;
use leaf::Leaf;
use nandscape_rt::invariant;
use std::ops::Range;

/// How an interval map divides its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::device) struct MapShape {
    /// log2 of the addresses of a leaf, from 6 to 15.
    pub(in crate::device) leaf_bits: u32,
    /// log2 of the leaves of a middle node.
    pub(in crate::device) middle_bits: u32,
    /// Shortest hole, in addresses, that divides a leaf in ranges when it is compacted.
    pub(in crate::device) hole_min: u32,
}

impl Default for MapShape {
    /// A leaf for a segment of 4096 sectors, middle nodes of 1024 leaves, holes of 64.
    fn default() -> Self {
        Self { leaf_bits: 12, middle_bits: 10, hole_min: 64 }
    }
}

/// Bytes of an interval map, by part.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::device) struct MapBytes {
    /// Root arrays.
    pub(in crate::device) roots: u64,
    /// Middle nodes.
    pub(in crate::device) middles: u64,
    /// Heads of leaves: what they know of their parts.
    pub(in crate::device) leaves: u64,
    /// Valid bitmaps of leaves.
    pub(in crate::device) bitmaps: u64,
    /// Range directories of leaves.
    pub(in crate::device) directories: u64,
    /// Entry buffers of leaves.
    pub(in crate::device) entries: u64,
}

impl MapBytes {
    /// Of several maps together.
    pub(in crate::device) const fn plus(self, other: Self) -> Self {
        Self {
            roots: self.roots + other.roots,
            middles: self.middles + other.middles,
            leaves: self.leaves + other.leaves,
            bitmaps: self.bitmaps + other.bitmaps,
            directories: self.directories + other.directories,
            entries: self.entries + other.entries,
        }
    }

    /// Everything.
    #[cfg(test)]
    const fn total(&self) -> u64 {
        self.roots + self.middles + self.leaves + self.bitmaps + self.directories + self.entries
    }
}

/// What a compaction did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::device) struct Compaction {
    /// Leaves that it looked at: their bitmaps were read.
    pub(in crate::device) candidates: u64,
    /// Leaves that it made smaller.
    pub(in crate::device) compacted: u64,
    /// Bytes of bitmaps that it read.
    pub(in crate::device) read_bytes: u64,
    /// Bytes of directories and entries that it wrote.
    pub(in crate::device) copied_bytes: u64,
    /// Bytes by which leaves became smaller.
    pub(in crate::device) freed_bytes: u64,
}

impl Compaction {
    /// Of two maps together.
    pub(in crate::device) const fn plus(self, other: Self) -> Self {
        Self {
            candidates: self.candidates + other.candidates,
            compacted: self.compacted + other.compacted,
            read_bytes: self.read_bytes + other.read_bytes,
            copied_bytes: self.copied_bytes + other.copied_bytes,
            freed_bytes: self.freed_bytes + other.freed_bytes,
        }
    }
}

/// Accesses on the way to a leaf: a slot of the root, one of a middle node, the directory of the leaf.
const WAY: u64 = 3;

#[derive(Debug)]
struct Middle {
    children: Box<[Option<Box<Leaf>>]>,
    leaves: u32,
}

type Slot = Option<Box<Middle>>;

/// The map; see the head of this file.
#[derive(Debug)]
pub(in crate::device) struct IntervalMap {
    shape: MapShape,
    /// Middle nodes from number `first` on.
    root: Vec<Slot>,
    first: u64,
    mapped: u64,
    bytes: MapBytes,
    /// Numbers of leaves that changed since the last compaction.
    changed: Vec<u64>,
}

impl IntervalMap {
    /// An empty map.
    pub(in crate::device) const fn new(shape: MapShape) -> Self {
        let bytes =
            MapBytes { roots: 0, middles: 0, leaves: 0, bitmaps: 0, directories: 0, entries: 0 };
        Self { shape, root: Vec::new(), first: 0, mapped: 0, bytes, changed: Vec::new() }
    }

    /// Addresses with an entry.
    pub(in crate::device) const fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Bytes of the tree.
    pub(in crate::device) const fn bytes(&self) -> MapBytes {
        self.bytes
    }

    /// Bytes of the list of leaves that changed.
    pub(in crate::device) fn changed_bytes(&self) -> u64 {
        (self.changed.capacity() * size_of::<u64>()) as u64
    }

    /// Whether compaction has anything to look at.
    pub(in crate::device) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    const fn leaf_addresses(&self) -> u32 {
        1 << self.shape.leaf_bits
    }

    #[inline]
    const fn middle_of(&self, at: u64) -> u64 {
        at >> (self.shape.leaf_bits + self.shape.middle_bits)
    }

    #[inline]
    const fn leaf_of(&self, at: u64) -> u64 {
        at >> self.shape.leaf_bits
    }

    /// The place of an address's leaf in its middle node.
    #[inline]
    const fn child_of(&self, at: u64) -> usize {
        (self.leaf_of(at) & ((1 << self.shape.middle_bits) - 1)) as usize
    }

    /// The place of an address in its leaf.
    #[inline]
    const fn offset_of(&self, at: u64) -> u32 {
        (at & ((1 << self.shape.leaf_bits) - 1)) as u32
    }

    #[inline]
    fn middle(&self, at: u64) -> Option<&Middle> {
        let index = self.middle_of(at).checked_sub(self.first)?;
        self.root.get(index as usize)?.as_deref()
    }

    #[inline]
    fn middle_mut(&mut self, at: u64) -> Option<&mut Middle> {
        let index = self.middle_of(at).checked_sub(self.first)?;
        self.root.get_mut(index as usize)?.as_deref_mut()
    }

    #[inline]
    fn leaf(&self, at: u64) -> Option<&Leaf> {
        self.middle(at)?.children[self.child_of(at)].as_deref()
    }

    #[inline]
    fn leaf_mut(&mut self, at: u64) -> Option<&mut Leaf> {
        let child = self.child_of(at);
        self.middle_mut(at)?.children[child].as_deref_mut()
    }

    /// The entry of an address; 0 for none.
    #[inline]
    pub(in crate::device) fn get(&self, at: u64) -> u32 {
        self.leaf(at).map_or(0, |leaf| leaf.get(self.offset_of(at)))
    }

    /// The same, as an access of the firmware.
    #[inline]
    pub(in crate::device) fn look_up(&self, at: u64, walk: &mut Walk) -> u32 {
        let Some(leaf) = self.leaf(at) else {
            self.miss(at, walk);
            return 0;
        };
        let offset = self.offset_of(at);
        walk.reach(self.leaf_of(at), WAY);
        walk.access(u64::from(leaf.has_place(offset)));
        leaf.get(offset)
    }

    /// Accesses on the way to a leaf that is not there.
    fn miss(&self, at: u64, walk: &mut Walk) {
        walk.reach(self.leaf_of(at), if self.middle(at).is_some() { 2 } else { 1 });
    }

    /// Gives an address another entry, or none; the one that it had.
    pub(in crate::device) fn set(&mut self, at: u64, entry: u32, walk: &mut Walk) -> u32 {
        let (offset, number) = (self.offset_of(at), self.leaf_of(at));
        if let Some(leaf) = self.leaf_mut(at)
            && entry != 0
            && leaf.get(offset) != 0
        {
            walk.reach(number, WAY);
            walk.access(1);
            return leaf.set(offset, entry);
        }
        self.set_rare(at, entry, walk)
    }

    /// The same where an entry comes or goes.
    fn set_rare(&mut self, at: u64, entry: u32, walk: &mut Walk) -> u32 {
        if entry != 0 {
            self.grow(at, walk);
        }
        let (offset, number) = (self.offset_of(at), self.leaf_of(at));
        let Some(leaf) = self.leaf_mut(at) else {
            self.miss(at, walk);
            return 0;
        };
        walk.reach(number, WAY);
        let (has_place, entries) = (leaf.has_place(offset), leaf.count());
        walk.access(match (has_place, entry) {
            (true, _) => 1,
            (false, 0) => 0,
            (false, _) => u64::from(entries) + 1,
        });
        let before = leaf.bytes();
        let old = leaf.set(offset, entry);
        if (old == 0) == (entry == 0) {
            return old;
        }
        let (after, empty) = (leaf.bytes(), leaf.count() == 0);
        let news = !std::mem::replace(&mut leaf.changed, true);
        self.bytes.directories = self.bytes.directories - before.directory + after.directory;
        self.bytes.entries = self.bytes.entries - before.entries + after.entries;
        self.mapped = if entry == 0 { self.mapped - 1 } else { self.mapped + 1 };
        if news {
            self.changed.push(number);
        }
        if empty {
            self.free_leaf(at, walk);
        }
        old
    }

    /// Makes sure that an address has a leaf.
    fn grow(&mut self, at: u64, walk: &mut Walk) {
        if self.leaf(at).is_some() {
            return;
        }
        let index = self.reach(self.middle_of(at), walk);
        let (child, children) = (self.child_of(at), 1 << self.shape.middle_bits);
        if self.root[index].is_none() {
            let empty = std::iter::repeat_with(|| None).take(children).collect();
            self.root[index] = Some(Box::new(Middle { children: empty, leaves: 0 }));
            self.bytes.middles += middle_bytes(children);
            walk.access(1);
        }
        let addresses = self.leaf_addresses();
        invariant!(self.root[index].is_some(), "a leaf that is made has a middle node");
        let Some(middle) = &mut self.root[index] else { return };
        let leaf = Box::new(Leaf::new(addresses));
        let bytes = leaf.bytes();
        walk.access(1);
        middle.children[child] = Some(leaf);
        middle.leaves += 1;
        self.bytes.leaves += size_of::<Leaf>() as u64;
        self.bytes.bitmaps += bytes.bitmap;
        self.bytes.directories += bytes.directory;
        self.bytes.entries += bytes.entries;
    }

    /// Moves the window, or makes it longer, so that it has the middle node of this number; its place in the root.
    fn reach(&mut self, number: u64, walk: &mut Walk) -> usize {
        let window = self.first..self.first + self.root.len() as u64;
        if !window.contains(&number) {
            let used = self.root.iter().position(Option::is_some);
            let end = self.root.iter().rposition(Option::is_some);
            let (first, last) = match (used, end) {
                (Some(used), Some(end)) => (self.first + used as u64, self.first + end as u64),
                _ => (number, number),
            };
            let (first, last) = (first.min(number), last.max(number));
            let mut slots = self.root.len().max(1);
            while (slots as u64) <= last - first {
                slots *= 2;
            }
            let mut root: Vec<Slot> = std::iter::repeat_with(|| None).take(slots).collect();
            for (old, slot) in (self.first..).zip(self.root.drain(..)) {
                if slot.is_some() {
                    walk.access(1);
                    root[(old - first) as usize] = slot;
                }
            }
            (self.first, self.root) = (first, root);
            self.bytes.roots = (slots * size_of::<Slot>()) as u64;
        }
        (number - self.first) as usize
    }

    /// Frees a leaf without entries, and its middle node if it has no other.
    fn free_leaf(&mut self, at: u64, walk: &mut Walk) {
        walk.leave();
        walk.access(1);
        let child = self.child_of(at);
        let number = self.middle_of(at) - self.first;
        invariant!(self.root[number as usize].is_some(), "a leaf that is freed has a middle node");
        let Some(middle) = self.root[number as usize].as_deref_mut() else { return };
        invariant!(middle.children[child].is_some(), "a leaf that is freed is there");
        let Some(leaf) = middle.children[child].take() else { return };
        middle.leaves -= 1;
        let (bytes, children, empty) = (leaf.bytes(), middle.children.len(), middle.leaves == 0);
        self.bytes.leaves -= size_of::<Leaf>() as u64;
        self.bytes.bitmaps -= bytes.bitmap;
        self.bytes.directories -= bytes.directory;
        self.bytes.entries -= bytes.entries;
        if empty {
            self.root[number as usize] = None;
            self.bytes.middles -= middle_bytes(children);
            walk.access(1);
        }
    }

    /// The first of these addresses that has an entry, or that has none.
    pub(in crate::device) fn next(
        &self,
        range: Range<u64>,
        mapped: bool,
        walk: &mut Walk,
    ) -> Option<u64> {
        let mut at = range.start;
        while at < range.end {
            let middle = self.middle(at);
            let leaf = middle.and_then(|middle| middle.children[self.child_of(at)].as_deref());
            at = match (middle, leaf) {
                (_, Some(leaf)) => {
                    walk.reach(self.leaf_of(at), WAY);
                    let first = at - u64::from(self.offset_of(at));
                    if let Some(found) = leaf.next(self.offset_of(at), mapped) {
                        return Some(first + u64::from(found)).filter(|&at| at < range.end);
                    }
                    first + u64::from(self.leaf_addresses())
                }
                _ if !mapped => return Some(at),
                (Some(_), None) => {
                    self.miss(at, walk);
                    (self.leaf_of(at) + 1) << self.shape.leaf_bits
                }
                (None, None) => self.next_middle(self.middle_of(at), range.end, walk)?,
            };
        }
        None
    }

    /// The first address of the first middle node with a number above this one, of which there is none; nothing if that is not
    /// below `end`.
    fn next_middle(&self, number: u64, end: u64, walk: &mut Walk) -> Option<u64> {
        let bits = self.shape.leaf_bits + self.shape.middle_bits;
        let from = (number + 1).saturating_sub(self.first).min(self.root.len() as u64);
        let past = (end.div_ceil(1 << bits)).saturating_sub(self.first);
        let slots = &self.root[from as usize..past.clamp(from, self.root.len() as u64) as usize];
        let found = slots.iter().position(Option::is_some);
        // The slot of this one, and those up to what is found.
        walk.access(1 + found.map_or(slots.len(), |at| at + 1) as u64);
        Some((self.first + from + found? as u64) << bits)
    }

    /// Compacts the leaves that changed, where at most half is mapped.
    pub(in crate::device) fn compact(&mut self) -> Compaction {
        let mut done = Compaction::default();
        let hole_min = self.shape.hole_min;
        for number in std::mem::take(&mut self.changed) {
            let Some(leaf) = self.leaf_mut(number << self.shape.leaf_bits) else { continue };
            // A leaf that was freed and is there again is listed twice.
            if !std::mem::replace(&mut leaf.changed, false) || !leaf.is_sparse() {
                continue;
            }
            let before = leaf.bytes();
            let compacted = leaf.compact(hole_min);
            let after = leaf.bytes();
            done.candidates += 1;
            done.read_bytes += before.bitmap;
            if compacted {
                done.compacted += 1;
                done.copied_bytes += after.directory + after.entries;
                done.freed_bytes += before.sum() - after.sum();
                self.bytes.directories =
                    self.bytes.directories - before.directory + after.directory;
                self.bytes.entries = self.bytes.entries - before.entries + after.entries;
            }
        }
        done
    }

    /// Whether the invariants at the head of this file hold; slow.
    ///
    /// # Errors
    /// The first that does not, in words.
    pub(in crate::device) fn check(&self) -> Result<(), String> {
        let mut bytes = MapBytes { roots: size_of_val(&*self.root) as u64, ..MapBytes::default() };
        let (mut mapped, mut changed) = (0, 0);
        for middle in self.root.iter().flatten() {
            let leaves = middle.children.iter().flatten().count();
            if leaves == 0 || leaves as u32 != middle.leaves {
                return Err(format!("a middle node of {leaves} leaves counts {}", middle.leaves));
            }
            bytes.middles += middle_bytes(middle.children.len());
            for leaf in middle.children.iter().flatten() {
                if leaf.count() == 0 || !leaf.is_consistent() {
                    return Err(format!("a leaf of {} entries contradicts itself", leaf.count()));
                }
                let of_leaf = leaf.bytes();
                bytes.leaves += size_of::<Leaf>() as u64;
                bytes.bitmaps += of_leaf.bitmap;
                bytes.directories += of_leaf.directory;
                bytes.entries += of_leaf.entries;
                mapped += u64::from(leaf.count());
                changed += usize::from(leaf.changed);
            }
        }
        if changed > self.changed.len() {
            return Err(format!("{changed} leaves changed, {} are listed", self.changed.len()));
        }
        if (bytes, mapped) != (self.bytes, self.mapped) {
            let counted = (self.bytes, self.mapped);
            return Err(format!("counted {counted:?}, but there are {:?}", (bytes, mapped)));
        }
        Ok(())
    }
}

/// Bytes of a middle node of so many leaves.
const fn middle_bytes(children: usize) -> u64 {
    (children * size_of::<Option<Box<Leaf>>>() + size_of::<Middle>()) as u64
}
