//! The host: cores on which the stack's work costs time, and a budget of memory. One host serves all its
//! users in one order: threads of workloads, which are tasks of the runtime, and a state machine (an FTL
//! that runs on the host), which is driven by its own events.
//!
//! A thread's work has a known cost and is awaited ([`Host::work`]). Work of the state machine has a cost
//! that is known only when it begins, because it takes locks in order of arrival at the lock. So the state
//! machine enters tickets ([`Host::enqueue`]), sleeps at most until [`Host::next_start`], and at that instant
//! takes each ticket that begins ([`Host::start`]), answers how long its core is taken ([`Host::occupy`]),
//! and reports that it has handled the end ([`Host::release`]). A host serves one state machine.

mod cores;
mod memory;
#[cfg(test)]
mod tests;
mod threads;

pub use cores::{Affinity, CoreTimes, Ticket};
pub use memory::{Lease, MemoryBudget, OverBudget};
pub use threads::{CoreId, Thread};

use crate::handle::Handle;
use crate::time::Nanos;
use cores::{Cores, End};
use std::cell::RefCell;
use std::rc::Rc;
use threads::Threads;

/// Sizes of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostConfig {
    /// Cores; a host has at least one.
    pub cores: u16,
    /// Bytes of memory; none: no limit.
    pub memory_bytes: Option<u64>,
}

#[derive(Debug)]
struct Inner {
    cores: RefCell<Cores>,
    threads: RefCell<Threads>,
    memory: MemoryBudget,
    /// The times of each core, from time zero, at the last reset.
    before: RefCell<Vec<CoreTimes>>,
}

/// A host. Clones are the same host.
#[derive(Clone, Debug)]
pub struct Host(Rc<Inner>);

impl Host {
    /// A host with all cores idle and no thread.
    #[must_use]
    pub fn new(config: HostConfig) -> Self {
        let cores = Cores::new(config.cores);
        let threads = Threads::new(cores.count());
        let memory = MemoryBudget::new(config.memory_bytes);
        let before = vec![CoreTimes::default(); cores.count().into()];
        Self(Rc::new(Inner {
            cores: RefCell::new(cores),
            threads: RefCell::new(threads),
            memory,
            before: RefCell::new(before),
        }))
    }

    /// A host with so many cores and no limit of memory.
    #[must_use]
    pub fn with_cores(cores: u16) -> Self {
        Self::new(HostConfig { cores, memory_bytes: None })
    }

    /// How many cores there are.
    #[must_use]
    pub fn cores(&self) -> u16 {
        self.0.cores.borrow().count()
    }

    /// The core that a number stands for: the number modulo cores.
    #[inline]
    #[must_use]
    pub fn core(&self, number: u16) -> CoreId {
        self.0.threads.borrow().core(number.into())
    }

    /// Creates a thread, on the core whose turn it is.
    #[must_use]
    pub fn thread(&self) -> Thread {
        self.0.threads.borrow_mut().create()
    }

    /// Waits until `core` is free and everything ahead in its queue is done, and works for `cost`. Returns
    /// how long both took. The place in the queue is taken at the first poll, and kept when the future is
    /// dropped.
    ///
    /// # Panics
    /// In debug builds, if the task holds a lock that is to be released for work
    /// ([`RwLock::released_for_work`](crate::sync::RwLock::released_for_work)).
    pub async fn work(&self, rt: &Handle, core: CoreId, cost: Nanos) -> Nanos {
        self.work_on(rt, Affinity::Core(core), cost).await
    }

    /// The same on any core: one that is free first, as far as is known now. Of several, one whose last work was such
    /// work too, so that it leaves the cores of other threads alone; of these, the one that has been idle longest.
    ///
    /// # Panics
    /// As [`Host::work`].
    pub async fn work_anywhere(&self, rt: &Handle, cost: Nanos) -> Nanos {
        self.work_on(rt, Affinity::Any, cost).await
    }

    async fn work_on(&self, rt: &Handle, on: Affinity, cost: Nanos) -> Nanos {
        rt.core().holders().check(rt.core().current());
        let entered = rt.now();
        let end = self.0.cores.borrow_mut().enter(entered, on, cost, rt.core());
        let end = match end {
            End::At(end) => end,
            End::Unknown(turn) => turn.await,
        };
        rt.sleep_until(end).await;
        rt.now().saturating_sub(entered)
    }

    /// Puts an entry of the state machine at the end of the order.
    pub fn enqueue(&self, now: Nanos, on: Affinity) -> Ticket {
        self.0.cores.borrow_mut().enqueue(now, on)
    }

    /// The earliest instant at which an entry of the state machine can begin, apart from cores that it has
    /// not released. None: no entry waits for a core that others use. Threads that enter later never make
    /// it earlier.
    #[must_use]
    pub fn next_start(&self) -> Option<Nanos> {
        self.0.cores.borrow().next_start()
    }

    /// Takes the next entry of the state machine that begins at `now`, and its core. To be answered by
    /// [`Host::occupy`] before anything else happens; to be called again until it returns none, before time
    /// passes. Debug builds panic otherwise.
    #[must_use = "the core takes no other entry before `occupy` answers"]
    pub fn start(&self, now: Nanos) -> Option<(CoreId, Ticket)> {
        self.0.cores.borrow_mut().start(now)
    }

    /// Answers [`Host::start`]: the entry takes the core until `until`.
    pub fn occupy(&self, core: CoreId, until: Nanos) {
        self.0.cores.borrow_mut().occupy(core, until);
    }

    /// The state machine has handled the end of its entry on `core`, whose next entry may begin.
    pub fn release(&self, core: CoreId) {
        self.0.cores.borrow_mut().release(core);
    }

    /// For what each core was used from the last reset, or time zero, to `now`.
    #[must_use]
    pub fn busy(&self, now: Nanos) -> Vec<CoreTimes> {
        let times = self.0.cores.borrow().busy(now);
        times.iter().zip(&*self.0.before.borrow()).map(|(now, before)| now.since(before)).collect()
    }

    /// Times of [`Host::busy`] count from `now`.
    pub fn reset_busy(&self, now: Nanos) {
        *self.0.before.borrow_mut() = self.0.cores.borrow().busy(now);
    }

    /// The host's memory.
    #[must_use]
    pub fn memory(&self) -> &MemoryBudget {
        &self.0.memory
    }
}
