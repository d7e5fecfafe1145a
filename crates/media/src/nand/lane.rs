//! A lane (a channel, or one direction of the host's link) on which transfers are reserved.
//!
//! Invariant: the reserved spans are disjoint, sorted, and none touches the next (touching spans are
//! merged). Spans that ended are forgotten when all did or when the list grows, so it is about as
//! long as the number of gaps among transfers still to come.

use super::LinkScheduling;
use nandscape_block::SECTOR_BYTES;

/// Transfers up to this many sectors have their cost in a table.
const TABLE: usize = 64;

/// With this many spans it pays to look for ended ones.
const CROWD: usize = 16;

/// What moving `n` sectors over a lane costs.
#[derive(Clone, Debug)]
pub(crate) struct TransferCost {
    bytes_per_s: u64,
    table: [u64; TABLE + 1],
}

impl TransferCost {
    pub(crate) fn new(bytes_per_s: u64) -> Self {
        let table = std::array::from_fn(|sectors| exact_ns(sectors as u64, bytes_per_s));
        Self { bytes_per_s, table }
    }

    /// Nanoseconds on the lane, rounded up.
    #[inline]
    pub(crate) fn ns(&self, sectors: u32) -> u64 {
        match self.table.get(sectors as usize) {
            Some(ns) => *ns,
            None => exact_ns(u64::from(sectors), self.bytes_per_s),
        }
    }
}

fn exact_ns(sectors: u64, bytes_per_s: u64) -> u64 {
    let nano_bytes = u128::from(sectors) * u128::from(SECTOR_BYTES) * 1_000_000_000;
    match bytes_per_s {
        0 => 0,
        rate => u64::try_from(nano_bytes.div_ceil(u128::from(rate))).unwrap_or(u64::MAX / 4),
    }
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u64,
    end: u64,
}

/// The reservations on one lane.
#[derive(Clone, Default, Debug)]
pub(crate) struct Lane {
    placing: LinkScheduling,
    taken: Vec<Span>,
    /// Time reserved since the count was last reset.
    pub(crate) busy_ns: u64,
}

impl Lane {
    pub(crate) fn new(placing: LinkScheduling) -> Self {
        Self { placing, ..Self::default() }
    }

    /// Forgets every reservation; the time count stays.
    pub(crate) fn reset_reservations(&mut self, placing: LinkScheduling) {
        self.placing = placing;
        self.taken.clear();
    }

    /// Reserves `ns` at or after `ready`; returns when the transfer ends. Nothing will ever be placed
    /// before `now` again.
    #[inline]
    pub(crate) fn place(&mut self, now: u64, ready: u64, ns: u64) -> u64 {
        if ns == 0 {
            return ready;
        }
        self.busy_ns += ns;
        let Some(last) = self.taken.last_mut().filter(|last| last.end > now) else {
            self.taken.clear();
            self.taken.push(Span { start: ready, end: ready + ns });
            return ready + ns;
        };
        if ready > last.end {
            self.prune(now);
            self.taken.push(Span { start: ready, end: ready + ns });
            return ready + ns;
        }
        if ready == last.end || self.placing == LinkScheduling::Fifo {
            last.end += ns;
            return last.end;
        }
        self.prune(now);
        self.backfill(ready, ns)
    }

    /// Forgets spans that ended, when there are many.
    #[inline]
    fn prune(&mut self, now: u64) {
        if self.taken.len() >= CROWD && self.taken[0].end <= now {
            let ended = self.taken.partition_point(|span| span.end <= now);
            self.taken.drain(..ended);
        }
    }

    /// Places a transfer that is ready before the last one ends.
    fn backfill(&mut self, ready: u64, ns: u64) -> u64 {
        let later = self.taken.iter().rev().take_while(|span| span.end > ready).count();
        let mut next = self.taken.len() - later;
        let mut start = ready;
        while let Some(span) = self.taken.get(next).filter(|span| span.start < start + ns) {
            start = start.max(span.end);
            next += 1;
        }
        self.insert(next, Span { start, end: start + ns });
        start + ns
    }

    /// Puts a span before the one at `next`, merged with the neighbours that it touches.
    fn insert(&mut self, next: usize, span: Span) {
        let before = next.checked_sub(1).filter(|&i| self.taken[i].end == span.start);
        let after = self.taken.get(next).is_some_and(|n| n.start == span.end);
        match (before, after) {
            (Some(i), true) => {
                self.taken[i].end = self.taken[next].end;
                self.taken.remove(next);
            }
            (Some(i), false) => self.taken[i].end = span.end,
            (None, true) => self.taken[next].start = span.start,
            (None, false) => self.taken.insert(next, span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_rt::Stream;

    /// Bandwidth is rounded up, never down, and the table agrees with the long computation.
    #[test]
    fn transfer_cost_is_exact() {
        let cost = TransferCost::new(800_000_000);
        assert_eq!((cost.ns(1), cost.ns(8), cost.ns(64)), (5_120, 40_960, 327_680));
        assert_eq!(cost.ns(65), 332_800);
        assert_eq!(TransferCost::new(3_360_000_000).ns(1), 1_220);
        assert_eq!(TransferCost::new(0).ns(1_000), 0);
    }

    /// A transfer that is ready late leaves the lane to those that are ready early.
    #[test]
    fn backfill_uses_the_earliest_gap_that_fits() {
        let mut lane = Lane::new(LinkScheduling::Backfill);
        assert_eq!(lane.place(0, 1_000, 100), 1_100);
        assert_eq!(lane.place(0, 0, 300), 300);
        assert_eq!(lane.place(0, 200, 701), 1_801, "a gap of 700 is too small for 701");
        assert_eq!(lane.place(0, 200, 700), 1_000, "and just right for 700");
        assert_eq!(lane.taken.len(), 1, "touching spans are merged");
        assert_eq!(lane.busy_ns, 1_801);
    }

    /// Plain next-free placing never goes back.
    #[test]
    fn fifo_queues_behind_everything() {
        let mut lane = Lane::new(LinkScheduling::Fifo);
        assert_eq!(lane.place(0, 1_000, 100), 1_100);
        assert_eq!(lane.place(0, 0, 300), 1_400);
        assert_eq!(lane.place(0, 2_000, 10), 2_010);
    }

    /// Against a naive lane of one flag a nanosecond: same placement, nothing ever overlaps.
    #[test]
    fn backfill_agrees_with_a_naive_lane() {
        let mut rng = Stream::new(1, "link");
        let mut lane = Lane::new(LinkScheduling::Backfill);
        let mut naive = vec![false; 40_000];
        let mut now = 0;
        for _ in 0..1_000 {
            now += rng.below(20);
            let (ready, ns) = (now + rng.below(300), 1 + rng.below(20));
            let start = (ready as usize..)
                .find(|&s| naive[s..s + ns as usize].iter().all(|taken| !taken))
                .unwrap();
            naive[start..start + ns as usize].fill(true);
            assert_eq!(lane.place(now, ready, ns), start as u64 + ns);
            assert!(lane.taken.len() <= 300, "ended spans are forgotten");
        }
    }
}
