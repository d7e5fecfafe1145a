//! A cache of whole mapping blocks (selective mapping-table loading, section 3; replacement LRU or
//! hotness). A slot holds a block, from the start of its load until it leaves.
//!
//! Guarantees: a pinned block neither leaves nor is written back, since it holds addresses in the
//! ring; a dirty block leaves only after its write-back; a victim that is used again before its
//! write-back is done stays.

use super::hotness::Hotness;
use super::list::{FreeList, Link, List, NIL, links};
use super::lru::{Standing, coldest, from_back};
use super::{Access, Load, Lookup};
use crate::pblk::config::{MapConfig, MapPolicy};
use crate::pblk::stats::MapCounts;
use nandscape_media::Ppa;
use nandscape_rt::{Nanos, invariant};
use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Loading,
    Loaded,
    /// A dirty victim whose write-back has not begun.
    Queued,
    Writing,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    block: u32,
    pins: u32,
    state: State,
    dirty: bool,
    /// Written back in order to leave.
    victim: bool,
    /// A victim that nobody has used since it was chosen.
    untouched: bool,
}

impl Slot {
    const fn may_leave(&self) -> bool {
        matches!(self.state, State::Loaded) && self.pins == 0
    }
}

const FREE_SLOT: Slot =
    Slot { block: NIL, pins: 0, state: State::Free, dirty: false, victim: false, untouched: false };

/// The cache.
#[derive(Debug)]
pub(super) struct BlockCache {
    /// Slot of each block; `NIL` when it is not loaded.
    slot_of: Box<[u32]>,
    slots: Box<[Slot]>,
    links: Box<[Link]>,
    /// Slots that hold a loaded block, by last use.
    recency: List,
    free: FreeList,
    hotness: Option<Hotness>,
    /// Victims whose write-back has not begun.
    queue: VecDeque<u32>,
    /// Slots whose block may leave.
    candidates: u32,
    /// Slots with a pinned block.
    pinned: u32,
    loads: u32,
    /// Victims whose write-back is not done.
    evictions: u32,
    writes: u32,
    loads_max: u32,
    evict_batch: u32,
}

impl BlockCache {
    pub(super) fn new(config: &MapConfig, blocks: u32, slots: u32) -> Self {
        let mut links = links(slots);
        let hotness = match &config.policy {
            MapPolicy::Hotness(points) => Some(Hotness::new(points, blocks)),
            _ => None,
        };
        Self {
            slot_of: vec![NIL; blocks as usize].into_boxed_slice(),
            slots: vec![FREE_SLOT; slots as usize].into_boxed_slice(),
            free: FreeList::all(&mut links),
            links,
            recency: List::EMPTY,
            hotness,
            queue: VecDeque::with_capacity(slots as usize),
            candidates: 0,
            pinned: 0,
            loads: 0,
            evictions: 0,
            writes: 0,
            loads_max: config.loads_max,
            evict_batch: config.evict_batch,
        }
    }

    #[inline]
    pub(super) fn access(&mut self, block: u32, access: Access, now: Nanos) -> Lookup {
        if let Some(hotness) = &mut self.hotness {
            hotness.access(block, access, now);
        }
        let slot = self.slot_of[block as usize];
        if slot == NIL {
            return Lookup::Miss;
        }
        let entry = &mut self.slots[slot as usize];
        if entry.state == State::Loading {
            return Lookup::Loading;
        }
        entry.untouched = false;
        self.recency.move_to_front(&mut self.links, slot);
        Lookup::Hit
    }

    #[inline]
    pub(super) fn is_loaded(&self, block: u32) -> bool {
        let slot = self.slot_of[block as usize];
        slot != NIL && self.slots[slot as usize].state != State::Loading
    }

    pub(super) fn is_loading(&self, block: u32) -> bool {
        self.slots
            .get(self.slot_of[block as usize] as usize)
            .is_some_and(|slot| slot.state == State::Loading)
    }

    pub(super) fn begin_load(
        &mut self,
        block: u32,
        at: Option<Ppa>,
        now: Nanos,
        stats: &mut MapCounts,
    ) -> Load {
        let slot = self.slot_of[block as usize];
        if slot != NIL {
            let loading = self.slots[slot as usize].state == State::Loading;
            return if loading { Load::Joined } else { Load::Ready };
        }
        if self.loads >= self.loads_max || self.evictions >= self.loads_max {
            return Load::Busy;
        }
        if self.free.len() == 0 && !self.make_room(now, stats) {
            let waits = self.loads + self.evictions + self.writes > 0;
            return if waits { Load::Busy } else { Load::NoSlot };
        }
        if self.evictions >= self.loads_max {
            return Load::WriteBack;
        }
        let Some(slot) = self.free.take(&self.links) else { return Load::WriteBack };
        self.occupy(slot, block, at, now, stats)
    }

    fn occupy(
        &mut self,
        slot: u32,
        block: u32,
        at: Option<Ppa>,
        now: Nanos,
        stats: &mut MapCounts,
    ) -> Load {
        self.slot_of[block as usize] = slot;
        self.slots[slot as usize] = Slot { block, state: State::Loading, ..FREE_SLOT };
        self.loads += 1;
        match at {
            Some(at) => Load::Read(at),
            None => {
                stats.zero_fills += 1;
                self.loaded(block, now);
                Load::Ready
            }
        }
    }

    pub(super) fn loaded(&mut self, block: u32, now: Nanos) {
        let slot = self.slot_of[block as usize];
        invariant!(
            self.slots[slot as usize].state == State::Loading,
            "block {block} that was loaded was being loaded"
        );
        self.change(slot, |entry| entry.state = State::Loaded);
        self.loads -= 1;
        self.recency.push_front(&mut self.links, slot);
        if let Some(hotness) = &mut self.hotness {
            hotness.loaded(block, now);
        }
    }

    /// Chooses victims; those that are clean leave. Whether there was one.
    fn make_room(&mut self, now: Nanos, stats: &mut MapCounts) -> bool {
        if self.candidates == 0 {
            return false;
        }
        if let Some(hotness) = &mut self.hotness {
            hotness.scan(now);
        }
        let chosen = (0..self.evict_batch).take_while(|_| self.evict_one(stats)).count();
        chosen > 0
    }

    fn evict_one(&mut self, stats: &mut MapCounts) -> bool {
        let Self { slots, hotness, .. } = self;
        let standing = |slot: u32| {
            let slot = &slots[slot as usize];
            if slot.pins > 0 {
                Standing::Pinned
            } else if slot.state != State::Loaded {
                Standing::Busy
            } else {
                Standing::May(hotness.as_ref().map_or(0, |hotness| hotness.of(slot.block)))
            }
        };
        let Some(slot) = coldest(&mut self.recency, &mut self.links, standing) else {
            return false;
        };
        if self.slots[slot as usize].dirty {
            self.queue_victim(slot);
        } else {
            stats.evictions_clean += 1;
            self.leave(slot);
        }
        true
    }

    fn queue_victim(&mut self, slot: u32) {
        let chosen = |victim: &mut Slot| {
            *victim = Slot { state: State::Queued, victim: true, untouched: true, ..*victim };
        };
        self.change(slot, chosen);
        self.queue.push_back(self.slots[slot as usize].block);
        self.evictions += 1;
    }

    fn leave(&mut self, slot: u32) {
        let block = self.slots[slot as usize].block;
        self.change(slot, |left| *left = FREE_SLOT);
        self.slot_of[block as usize] = NIL;
        self.recency.remove(&mut self.links, slot);
        self.free.put(&mut self.links, slot);
    }

    /// Changes a slot and counts on whether its block may leave.
    #[inline]
    fn change(&mut self, slot: u32, change: impl FnOnce(&mut Slot)) {
        let entry = &mut self.slots[slot as usize];
        self.candidates -= u32::from(entry.may_leave());
        change(entry);
        self.candidates += u32::from(entry.may_leave());
    }

    /// Changes the slot of a block that must be loaded.
    #[inline]
    fn change_loaded(&mut self, block: u32, change: impl FnOnce(&mut Slot)) {
        invariant!(self.is_loaded(block), "block {block} that changes is loaded");
        self.change(self.slot_of[block as usize], change);
    }

    #[inline]
    pub(super) fn dirty(&mut self, block: u32) {
        self.change_loaded(block, |slot| slot.dirty = true);
    }

    #[inline]
    pub(super) fn pin(&mut self, block: u32) {
        let mut pins = 0;
        self.change_loaded(block, |slot| {
            slot.pins += 1;
            pins = slot.pins;
        });
        self.pinned += u32::from(pins == 1);
    }

    #[inline]
    pub(super) fn unpin(&mut self, block: u32) {
        let mut pins = 0;
        self.change_loaded(block, |slot| {
            slot.pins -= 1;
            pins = slot.pins;
        });
        self.pinned -= u32::from(pins == 0);
    }

    pub(super) const fn pinned(&self) -> u32 {
        self.pinned
    }

    pub(super) fn next_write_back(&self) -> Option<u32> {
        self.queue.front().copied()
    }

    /// Whether the block is to be written; not if it is clean, pinned, or being written already.
    pub(super) fn write_back_begin(&mut self, block: u32) -> bool {
        let slot = self.slot_of[block as usize];
        let Some(&entry) = self.slots.get(slot as usize) else { return false };
        let queued = entry.state == State::Queued;
        if queued {
            self.queue.retain(|&other| other != block);
        } else if entry.state != State::Loaded {
            return false;
        }
        let begins = entry.dirty && entry.pins == 0;
        if begins {
            self.change(slot, |entry| (entry.state, entry.dirty) = (State::Writing, false));
            self.writes += 1;
        } else if queued {
            self.change(slot, |entry| (entry.state, entry.victim) = (State::Loaded, false));
            self.evictions -= 1;
        }
        begins
    }

    /// The block's write-back is durable: a victim that nobody has used since leaves.
    pub(super) fn written(&mut self, block: u32, stats: &mut MapCounts) {
        let slot = self.slot_of[block as usize];
        let entry = self.slots[slot as usize];
        invariant!(
            entry.state == State::Writing,
            "block {block} that was written back was being written"
        );
        self.change(slot, |entry| (entry.state, entry.victim) = (State::Loaded, false));
        self.writes -= 1;
        self.evictions -= u32::from(entry.victim);
        if entry.victim && entry.untouched && !entry.dirty && entry.pins == 0 {
            stats.evictions_dirty += 1;
            self.leave(slot);
        }
    }

    /// The first dirty block among the `window` used least recently that may be written.
    pub(super) fn pick_dirty(&self, window: u32) -> Option<u32> {
        let slots = from_back(&self.recency, &self.links).map(|slot| &self.slots[slot as usize]);
        let writable = |slot: &&Slot| slot.dirty && slot.pins == 0 && slot.state == State::Loaded;
        slots.take(window as usize).find(writable).map(|slot| slot.block)
    }

    pub(super) const fn has_free(&self) -> bool {
        self.free.len() > 0
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Bytes by block: cache slot and hotness.
    pub(super) fn directory_bytes(&self) -> u64 {
        size_of_val(&*self.slot_of) as u64 + self.hotness.as_ref().map_or(0, Hotness::bytes)
    }

    /// Bytes by slot: state, order of use, queue.
    pub(super) fn slot_bytes(&self) -> u64 {
        (size_of_val(&*self.slots)
            + size_of_val(&*self.links)
            + self.queue.capacity() * size_of::<u32>()) as u64
    }
}
