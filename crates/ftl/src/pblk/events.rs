//! What the FTL waits for: completions of media commands, and of its own work where the host's CPU
//! costs something, in time order, then in order of submission.

use super::ids::{BufferId, FrontierId};
use nandscape_media::Status;
use nandscape_rt::Nanos;
use nandscape_rt::host::CoreId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// The write unit of a buffer with this number.
    Unit(BufferId, u64, Status),
    /// A chunk erase of the line that a frontier prepares.
    Erase(FrontierId, Status),
    /// Start metadata of the line that a frontier prepares, on this parallel unit.
    Smeta(FrontierId, u32, Status),
    /// A unit of end metadata of a frontier's oldest closing line, on this parallel unit.
    Emeta(FrontierId, u32, Status),
    /// The garbage-collection read with this number.
    GcRead(usize),
    /// All of this mapping block has been read.
    MapLoad(u32),
    /// What the write-back with this number merges its entries into has been read.
    MapMerge(u32),
    /// The write unit of mapping blocks with this number.
    MapUnit(u32, Status),
    /// The pieces of mapping blocks that collection reads.
    MapCopies,
    /// What this core of the host did.
    Core(CoreId),
}

#[derive(Clone, Copy, Debug)]
struct Event {
    at: Nanos,
    order: u64,
    what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<Event>>,
    order: u64,
}

impl Events {
    pub(super) fn push(&mut self, at: Nanos, what: What) {
        self.order += 1;
        self.heap.push(Reverse(Event { at, order: self.order, what }));
    }

    #[inline]
    pub(super) fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|event| event.0.at)
    }

    /// The number of the event pushed last.
    pub(super) fn last(&self) -> u64 {
        self.order
    }

    /// The next event, if it is due at `now` and not younger than number `last`.
    pub(super) fn pop_due(&mut self, now: Nanos, last: u64) -> Option<(Nanos, What)> {
        let Reverse(event) = *self.heap.peek()?;
        if event.at > now || event.order > last {
            return None;
        }
        self.heap.pop();
        Some((event.at, event.what))
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(events: &mut Events, now: Nanos, last: u64) -> Vec<(u64, usize)> {
        std::iter::from_fn(|| events.pop_due(now, last))
            .map(|(at, what)| match what {
                What::GcRead(number) => (at.0, number),
                other => unreachable!("never pushed: {other:?}"),
            })
            .collect()
    }

    fn pushed(at_ns: &[u64]) -> Events {
        let mut events = Events::default();
        for (number, &at) in at_ns.iter().enumerate() {
            events.push(Nanos(at), What::GcRead(number));
        }
        events
    }

    /// Runs are reproducible: what completes at one instant is handled in order of submission.
    #[test]
    fn events_come_in_time_order_then_in_order_of_submission() {
        let mut events = pushed(&[7, 5, 7, 5, 6]);
        assert_eq!(events.next_at(), Some(Nanos(5)));
        let order = drain(&mut events, Nanos(10), u64::MAX);
        assert_eq!(order, [(5, 1), (5, 3), (6, 4), (7, 0), (7, 2)]);
        assert!(events.len() == 0 && events.next_at().is_none());
    }

    #[test]
    fn nothing_comes_before_its_time() {
        let mut events = pushed(&[5, 6]);
        assert_eq!(drain(&mut events, Nanos(4), u64::MAX), []);
        assert_eq!(drain(&mut events, Nanos(5), u64::MAX), [(5, 0)]);
        assert_eq!(events.len(), 1);
    }

    /// A round handles what was known when it began: media without timing must not keep the host
    /// from its turn.
    #[test]
    fn a_round_leaves_what_it_causes_to_the_next() {
        let mut events = pushed(&[5]);
        let last = events.last();
        events.push(Nanos(5), What::GcRead(9));
        assert_eq!(drain(&mut events, Nanos(5), last), [(5, 0)]);
        assert_eq!(drain(&mut events, Nanos(5), last + 1), [(5, 9)]);
    }
}
