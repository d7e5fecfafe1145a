//! What an FTL waits for: completions of media commands and of other work, in time order, then in order
//! of submission. What completes is the FTL's own type.

use nandscape_rt::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug)]
struct Event<W> {
    at: Nanos,
    order: u64,
    what: W,
}

impl<W> PartialEq for Event<W> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<W> Eq for Event<W> {}

impl<W> PartialOrd for Event<W> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<W> Ord for Event<W> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Events<W> {
    heap: BinaryHeap<Reverse<Event<W>>>,
    order: u64,
}

impl<W> Default for Events<W> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), order: 0 }
    }
}

impl<W: Copy> Events<W> {
    pub(crate) fn push(&mut self, at: Nanos, what: W) {
        self.order += 1;
        self.heap.push(Reverse(Event { at, order: self.order, what }));
    }

    #[inline]
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|event| event.0.at)
    }

    /// The number of the event pushed last.
    pub(crate) fn last(&self) -> u64 {
        self.order
    }

    /// The next event, if it is due at `now` and not younger than number `last`.
    pub(crate) fn pop_due(&mut self, now: Nanos, last: u64) -> Option<(Nanos, W)> {
        let Reverse(event) = *self.heap.peek()?;
        if event.at > now || event.order > last {
            return None;
        }
        self.heap.pop();
        Some((event.at, event.what))
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(events: &mut Events<usize>, now: Nanos, last: u64) -> Vec<(u64, usize)> {
        std::iter::from_fn(|| events.pop_due(now, last))
            .map(|(at, number)| (at.0, number))
            .collect()
    }

    fn pushed(at_ns: &[u64]) -> Events<usize> {
        let mut events = Events::default();
        for (number, &at) in at_ns.iter().enumerate() {
            events.push(Nanos(at), number);
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
        events.push(Nanos(5), 9);
        assert_eq!(drain(&mut events, Nanos(5), last), [(5, 0)]);
        assert_eq!(drain(&mut events, Nanos(5), last + 1), [(5, 9)]);
    }
}
