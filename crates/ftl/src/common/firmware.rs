//! The core of an SSD's firmware: how often it accesses the maps of the device, how long that takes, and until when it is
//! busy. One core does one thing after the other.
//!
//! - A command of the host is taken up when the core is free. Its accesses keep the core busy; it completes, and what it sends
//!   to media begins, no earlier than they end. So it is with programs that collection sends.
//! - Accesses count where they are made, node by node and entry by entry. A run of addresses below one node counts the way to
//!   it once ([`Walk`]).
//! - They take no time while a device is made and prepared: until a run attaches it.
//!
//! Invariant: without time for an access, nothing but what occupies the core for a time of its own makes it busy.

use crate::report::FirmwareCounts;
use nandscape_rt::Nanos;

/// Accesses of maps for one command, or for one page that is copied or programmed, and the node that they came to last.
#[derive(Clone, Copy, Default, Debug)]
pub struct Walk {
    accesses: u64,
    /// Which of several maps.
    map: usize,
    node: Option<u64>,
}

impl Walk {
    /// So many accesses.
    #[inline]
    pub(crate) const fn access(&mut self, count: u64) {
        self.accesses += count;
    }

    /// What follows is in this one of several maps.
    #[inline]
    pub(crate) const fn enter(&mut self, map: usize) {
        if self.map != map {
            (self.map, self.node) = (map, None);
        }
    }

    /// Comes to a node by so many accesses, unless it is there.
    #[inline]
    pub(crate) fn reach(&mut self, node: u64, accesses: u64) {
        if self.node != Some(node) {
            self.node = Some(node);
            self.accesses += accesses;
        }
    }

    /// The node that it came to last is no more.
    pub(crate) const fn leave(&mut self) {
        self.node = None;
    }

    /// The accesses since this was last asked.
    #[inline]
    pub(crate) const fn take(&mut self) -> u64 {
        std::mem::replace(&mut self.accesses, 0)
    }
}

/// The core; see the head of this file.
#[derive(Debug)]
pub struct Firmware {
    /// What an access takes in a run.
    run_access_ns: u64,
    /// What it takes now.
    access_ns: u64,
    busy: Nanos,
    counts: FirmwareCounts,
}

impl Firmware {
    /// A core at rest, whose accesses take so long in a run.
    pub(crate) fn new(run_access_ns: u64) -> Self {
        let counts = FirmwareCounts::default();
        Self { run_access_ns, access_ns: 0, busy: Nanos::ZERO, counts }
    }

    /// Accesses take time from now on, or none.
    pub(crate) const fn attach(&mut self, is_timed: bool) {
        self.access_ns = if is_timed { self.run_access_ns } else { 0 };
    }

    /// When it takes up what comes now.
    #[inline]
    pub(crate) fn begins(&self, now: Nanos) -> Nanos {
        now.max(self.busy)
    }

    /// Makes the accesses of a walk that were not made yet; when it has made them, or `now` where they take no time.
    #[inline]
    pub(crate) fn access(&mut self, now: Nanos, walk: &mut Walk) -> Nanos {
        let accesses = walk.take();
        self.counts.map_accesses += accesses;
        if self.access_ns == 0 {
            return now;
        }
        self.occupy(now, Nanos(accesses.saturating_mul(self.access_ns)))
    }

    /// Works for a time from `at` on, or from when it is free; when that ends.
    pub(crate) fn occupy(&mut self, at: Nanos, time: Nanos) -> Nanos {
        self.busy = self.begins(at).saturating_add(time);
        self.counts.busy_ns = self.counts.busy_ns.saturating_add(time.0);
        self.busy
    }

    /// What was counted since the last reset.
    pub(crate) const fn counts(&self) -> FirmwareCounts {
        self.counts
    }

    /// Begins a new period of counting.
    pub(crate) fn reset_counts(&mut self) {
        self.counts = FirmwareCounts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(accesses: u64) -> Walk {
        Walk { accesses, ..Walk::default() }
    }

    /// What comes together is done one after the other, and what comes later begins later.
    #[test]
    fn one_core_does_one_thing_after_the_other() {
        let mut core = Firmware::new(100);
        core.attach(true);
        assert_eq!(core.access(Nanos(1_000), &mut walk(3)), Nanos(1_300));
        assert_eq!(core.access(Nanos(1_000), &mut walk(2)), Nanos(1_500));
        assert_eq!(core.occupy(Nanos(1_100), Nanos(70)), Nanos(1_570));
        assert_eq!([1_400, 1_600].map(|at| core.begins(Nanos(at))), [1_570, 1_600].map(Nanos));
        assert_eq!(core.access(Nanos(2_000), &mut walk(1)), Nanos(2_100));
        assert_eq!(core.counts(), FirmwareCounts { map_accesses: 6, busy_ns: 670 });
    }

    /// Accesses count where they take no time: before a run, and where the time is 0.
    #[test]
    fn untimed_accesses_count() {
        for (ns, is_timed) in [(100, false), (0, true)] {
            let mut core = Firmware::new(ns);
            core.attach(is_timed);
            assert_eq!(core.access(Nanos(5), &mut walk(3)), Nanos(5));
            assert_eq!(core.begins(Nanos(4)), Nanos(4));
            assert_eq!(core.counts(), FirmwareCounts { map_accesses: 3, busy_ns: 0 });
        }
    }

    /// The way to a node counts once while it is followed by others below the same node of the same map.
    #[test]
    fn a_run_below_a_node_counts_its_way_once() {
        let mut walk = Walk::default();
        for (map, node) in [(0, 7), (0, 7), (0, 8), (1, 8), (1, 8)] {
            walk.enter(map);
            walk.reach(node, 3);
            walk.access(1);
        }
        assert_eq!(walk.take(), 3 * 3 + 5);
        walk.reach(8, 3);
        assert_eq!(walk.take(), 0);
        walk.leave();
        walk.reach(8, 3);
        assert_eq!(walk.take(), 3);
    }
}
