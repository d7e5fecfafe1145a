//! When a parallel unit last erased, or read and programmed for garbage collection: an account of what waits for the unit
//! needs to know.

use nandscape_rt::Nanos;
use std::ops::Range;

/// Commands that are remembered of a unit.
const REMEMBERED: usize = 32;

/// The last commands for collection of a unit, each a span of time; they do not overlap, for a unit does one thing at a
/// time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collections {
    /// A ring, the oldest at `next`. Those that have not been yet are empty.
    spans: [(u64, u64); REMEMBERED],
    next: usize,
}

impl Collections {
    /// A unit that never collected.
    pub(super) const NONE: Self = Self { spans: [(0, 0); REMEMBERED], next: 0 };

    /// The unit works for collection in this time.
    #[inline]
    pub(super) fn push(&mut self, start: u64, end: u64) {
        self.spans[self.next] = (start, end);
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// How long of a time the unit worked for collection. What was before the oldest command that is remembered counts as
    /// if it had gone on like that.
    pub(super) fn within(&self, time: Range<Nanos>) -> Nanos {
        let (from, to) = (time.start.0, time.end.0);
        let collected: u64 = self
            .spans
            .iter()
            .map(|&(start, end)| end.min(to).saturating_sub(start.max(from)))
            .sum();
        // An empty span in place of the oldest says that nothing is forgotten.
        let (oldest, oldest_end) = self.spans[self.next];
        let known_from = if oldest == oldest_end { from } else { oldest.max(from) };
        let (known, all) = (to.saturating_sub(known_from), to.saturating_sub(from));
        if known == 0 || known == all {
            return Nanos(collected);
        }
        Nanos((u128::from(collected) * u128::from(all) / u128::from(known)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_count_as_far_as_they_are_in_the_time() {
        let mut collections = Collections::NONE;
        assert_eq!(collections.within(Nanos(0)..Nanos(100)), Nanos(0));
        collections.push(10, 20);
        collections.push(40, 60);
        assert_eq!(collections.within(Nanos(0)..Nanos(100)), Nanos(30));
        assert_eq!(collections.within(Nanos(15)..Nanos(50)), Nanos(15));
        assert_eq!(collections.within(Nanos(60)..Nanos(60)), Nanos(0));
    }

    /// Half of the time that is remembered was for collection, so half of what is not was, too.
    #[test]
    fn what_is_forgotten_was_like_what_is_remembered() {
        let mut collections = Collections::NONE;
        for index in 0..2 * REMEMBERED as u64 {
            collections.push(20 * index, 20 * index + 10);
        }
        let end = Nanos(20 * 2 * REMEMBERED as u64);
        assert_eq!(collections.within(Nanos(0)..end), Nanos(end.0 / 2));
    }
}
