//! Timers: a four-ary heap ordered by (time, sequence).
//!
//! The sequence is the order of registration, so timers of one instant fire in that order. A timer
//! holds the id of the task it wakes and no waker; a cancelled one leaves the heap at once, so a
//! timer that no task waits for never moves the clock.

use crate::task::TaskId;
use crate::time::Nanos;

/// Four children share a cache line and a half, and the heap is half as deep as a binary one.
const ARITY: usize = 4;

/// Names a registered timer; useless, but harmless, once that timer has fired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimerKey {
    slot: u32,
    sequence: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    at: Nanos,
    sequence: u64,
    slot: u32,
}

impl Entry {
    /// One comparison instead of two that branch.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at.0) << 64 | u128::from(self.sequence)
    }
}

/// Where the timer of a slot stands in the heap, and whom it wakes.
#[derive(Clone, Copy)]
struct Slot {
    position: u32,
    sequence: u64,
    task: TaskId,
}

/// All registered timers.
#[derive(Default)]
pub(crate) struct Timers {
    heap: Vec<Entry>,
    /// The root has fired and left its place vacant. Most often the task that it wakes sleeps again,
    /// and the next timer takes that place without the heap having closed and grown in between.
    vacant: bool,
    slots: Vec<Slot>,
    free: Vec<u32>,
    sequence: u64,
}

impl Timers {
    /// When the earliest timer fires.
    #[inline]
    pub(crate) fn next(&self) -> Option<Nanos> {
        let first = if self.vacant { self.least_child(0)? } else { 0 };
        self.heap.get(first).map(|entry| entry.at)
    }

    /// Registers a timer that wakes `task` at `at`.
    #[inline]
    pub(crate) fn register(&mut self, at: Nanos, task: TaskId) -> TimerKey {
        let sequence = self.sequence;
        self.sequence += 1;
        let slot = self.take_slot(Slot { position: 0, sequence, task });
        let entry = Entry { at, sequence, slot };
        if std::mem::take(&mut self.vacant) {
            self.fill(0, entry);
        } else {
            self.heap.push(entry);
            self.sift_up(self.heap.len() - 1, entry);
        }
        TimerKey { slot, sequence }
    }

    fn take_slot(&mut self, taken: Slot) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = taken;
            return slot;
        }
        self.slots.push(taken);
        self.slots.len() as u32 - 1
    }

    /// Takes the earliest timer if it is due at `now`: whom to wake.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<TaskId> {
        if self.next()? > now {
            return None;
        }
        self.close_vacancy();
        self.vacant = true;
        Some(self.free_slot(self.heap[0].slot))
    }

    /// Takes a timer out; nothing if it has fired.
    pub(crate) fn cancel(&mut self, key: TimerKey) {
        if self.armed(key).is_some() {
            self.close_vacancy();
            self.remove(self.slots[key.slot as usize].position as usize);
            self.free_slot(key.slot);
        }
    }

    /// Lets a timer wake another task, for a future that moved.
    pub(crate) fn reassign(&mut self, key: TimerKey, task: TaskId) {
        if let Some(slot) = self.armed(key) {
            slot.task = task;
        }
    }

    fn armed(&mut self, key: TimerKey) -> Option<&mut Slot> {
        self.slots.get_mut(key.slot as usize).filter(|slot| slot.sequence == key.sequence)
    }

    /// Frees a slot for another timer; whom its timer wakes.
    #[inline]
    fn free_slot(&mut self, slot: u32) -> TaskId {
        self.free.push(slot);
        let slot = &mut self.slots[slot as usize];
        slot.sequence = u64::MAX;
        slot.task
    }

    #[inline]
    fn close_vacancy(&mut self) {
        if std::mem::take(&mut self.vacant) {
            self.remove(0);
        }
    }

    fn remove(&mut self, position: usize) {
        if let Some(last) = self.heap.pop()
            && position < self.heap.len()
        {
            self.fill(position, last);
        }
    }

    /// Puts `entry` into the heap, where `position` is vacant. It mostly belongs near the bottom: the
    /// hole sinks there first, and the entry climbs the little that is left.
    #[inline]
    fn fill(&mut self, position: usize, entry: Entry) {
        let bottom = self.sink_hole(position);
        self.sift_up(bottom, entry);
    }

    /// Moves `entry` from `position` towards the root, to where it belongs.
    #[inline]
    fn sift_up(&mut self, mut position: usize, entry: Entry) {
        while position > 0 {
            let parent = (position - 1) / ARITY;
            if self.heap[parent].key() <= entry.key() {
                break;
            }
            self.place(position, self.heap[parent]);
            position = parent;
        }
        self.place(position, entry);
    }

    /// Moves a hole down to a leaf, the least child stepping up each time; where it came to rest.
    #[inline]
    fn sink_hole(&mut self, mut position: usize) -> usize {
        while let Some(child) = self.least_child(position) {
            self.place(position, self.heap[child]);
            position = child;
        }
        position
    }

    #[inline]
    fn least_child(&self, position: usize) -> Option<usize> {
        let first = position * ARITY + 1;
        let children = self.heap.get(first..)?;
        if let Some([a, b, c, d]) = children.first_chunk::<ARITY>() {
            // A tournament of conditional moves: which child is least is anybody's guess.
            let (left, left_key) = lesser((0, a.key()), (1, b.key()));
            let (right, right_key) = lesser((2, c.key()), (3, d.key()));
            return Some(first + lesser((left, left_key), (right, right_key)).0);
        }
        (first..self.heap.len()).min_by_key(|&child| self.heap[child].key())
    }

    #[inline]
    fn place(&mut self, position: usize, entry: Entry) {
        self.heap[position] = entry;
        self.slots[entry.slot as usize].position = position as u32;
    }
}

#[inline]
fn lesser(a: (usize, u128), b: (usize, u128)) -> (usize, u128) {
    std::hint::select_unpredictable(b.1 < a.1, b, a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use std::collections::BTreeMap;

    /// The heap agrees with an ordered map on every pop, whatever is cancelled in between.
    #[test]
    fn pops_in_order_of_time_then_registration() {
        let mut rng = Stream::new(1, "timers");
        let mut timers = Timers::default();
        let mut model = BTreeMap::new();
        let mut keys = Vec::new();
        for round in 0..20_000u32 {
            match rng.below(3) {
                0 | 1 if model.len() < 300 => {
                    let at = Nanos(rng.below(50));
                    let key = timers.register(at, TaskId::new(round, 0));
                    model.insert((at, key.sequence), round);
                    keys.push((at, key));
                }
                2 if rng.chance(0.3) && !keys.is_empty() => {
                    let (at, key) = keys.swap_remove(rng.below(keys.len() as u64) as usize);
                    timers.cancel(key);
                    model.remove(&(at, key.sequence));
                }
                _ => {
                    let expected = model.pop_first().map(|(_, id)| TaskId::new(id, 0));
                    assert_eq!(timers.pop_due(Nanos::MAX), expected);
                }
            }
            assert_eq!(timers.next(), model.keys().next().map(|key| key.0));
        }
    }

    /// A key outlives its timer without touching the one that took its slot.
    #[test]
    fn stale_keys_are_harmless() {
        let mut timers = Timers::default();
        let first = timers.register(Nanos(1), TaskId::new(1, 0));
        timers.pop_due(Nanos(1));
        timers.register(Nanos(2), TaskId::new(2, 0));
        timers.cancel(first);
        timers.reassign(first, TaskId::new(9, 0));
        assert_eq!(timers.pop_due(Nanos(2)), Some(TaskId::new(2, 0)));
    }
}
