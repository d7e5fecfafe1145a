//! The host's CPU: cores on which the stack's work costs time. A reservation model, like the media's
//! timing: work charged to a core starts when the core is next free, first in first out, and its end
//! is known at once. Nothing is pre-empted.

use crate::handle::Handle;
use crate::time::Nanos;
use std::cell::Cell;

/// One core.
#[derive(Default, Debug)]
struct Core {
    /// When everything charged so far is done.
    next_free: Cell<Nanos>,
    /// The sum of everything charged.
    charged: Cell<Nanos>,
}

impl Core {
    fn charge(&self, now: Nanos, cost: Nanos) -> Nanos {
        let end = self.next_free.get().max(now).saturating_add(cost);
        self.next_free.set(end);
        self.charged.set(self.charged.get().saturating_add(cost));
        end
    }

    /// Work done by `now`. What is left then stands without a gap between `now` and `next_free`,
    /// because nothing was charged later than `now`.
    fn done_by(&self, now: Nanos) -> Nanos {
        self.charged.get().saturating_sub(self.next_free.get().saturating_sub(now))
    }
}

/// The cores of a host.
#[derive(Debug)]
pub struct HostCpu(Box<[Core]>);

impl HostCpu {
    /// A host with this many cores, at least one, all idle.
    #[must_use]
    pub fn new(cores: u16) -> Self {
        Self((0..cores.max(1)).map(|_| Core::default()).collect())
    }

    /// How many cores there are.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.0.len()
    }

    /// Has `core` work for `cost` once it is free; when that ends. Cores that the host does not have
    /// stand for those it has, in turn.
    #[inline]
    pub fn charge(&self, core: u16, now: Nanos, cost: Nanos) -> Nanos {
        self.0[usize::from(core) % self.0.len()].charge(now, cost)
    }

    /// Has the core that is free first work for `cost`; of equals, the first. When that ends.
    pub fn charge_any(&self, now: Nanos, cost: Nanos) -> Nanos {
        let first = self.0.iter().min_by_key(|core| core.next_free.get().max(now));
        first.map_or(now, |core| core.charge(now, cost))
    }

    /// Charges `core`, and waits until the work is done.
    pub async fn work(&self, handle: &Handle, core: u16, cost: Nanos) {
        handle.sleep_until(self.charge(core, handle.now(), cost)).await;
    }

    /// Charges the core that is free first, and waits until the work is done.
    pub async fn work_anywhere(&self, handle: &Handle, cost: Nanos) {
        handle.sleep_until(self.charge_any(handle.now(), cost)).await;
    }

    /// Begins to observe the cores at `now`.
    #[must_use]
    pub fn observe(&self, now: Nanos) -> Observation {
        let done = self.0.iter().map(|core| core.done_by(now)).collect();
        Observation { since: now, done }
    }

    /// The share of the time since `begun` that each core worked, between 0 and 1.
    #[must_use]
    pub fn utilisation(&self, begun: &Observation, now: Nanos) -> Vec<f64> {
        let span = now.saturating_sub(begun.since).0.max(1) as f64;
        let worked = |(core, before): (&Core, &Nanos)| core.done_by(now).saturating_sub(*before);
        self.0.iter().zip(&begun.done).map(|pair| worked(pair).0 as f64 / span).collect()
    }
}

/// The beginning of a window over which utilisation is reported.
#[derive(Clone, Debug)]
pub struct Observation {
    since: Nanos,
    done: Box<[Nanos]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work on one core queues, work on another does not, and idle gaps are not made up for.
    #[test]
    fn cores_serve_in_order_and_apart() {
        let cpu = HostCpu::new(2);
        assert_eq!(cpu.charge(0, Nanos(10), Nanos(5)), Nanos(15));
        assert_eq!(cpu.charge(0, Nanos(11), Nanos(5)), Nanos(20));
        assert_eq!(cpu.charge(1, Nanos(11), Nanos(5)), Nanos(16));
        assert_eq!(cpu.charge(0, Nanos(100), Nanos(1)), Nanos(101));
        assert_eq!(cpu.charge(2, Nanos(100), Nanos(1)), Nanos(102), "core 2 of 2 is core 0");
    }

    /// The free core is preferred; among free ones the first, however long they have been idle.
    #[test]
    fn work_for_any_core_goes_where_it_starts_first() {
        let cpu = HostCpu::new(3);
        cpu.charge(1, Nanos(0), Nanos(7));
        let ends: Vec<_> = (0..4).map(|_| cpu.charge_any(Nanos(9), Nanos(10)).0).collect();
        assert_eq!(ends, [19, 19, 19, 29]);
    }

    /// Utilisation counts what was done inside the window: neither what was charged before it began
    /// nor what will be done after it ends.
    #[test]
    fn utilisation_is_of_the_window() {
        let cpu = HostCpu::new(2);
        cpu.charge(0, Nanos(0), Nanos(150));
        let begun = cpu.observe(Nanos(100));
        cpu.charge(1, Nanos(180), Nanos(100));
        assert_eq!(cpu.utilisation(&begun, Nanos(200)), [0.5, 0.2]);
    }
}
