//! What F2FS's work takes of the host's cores (`fs.cpu`): a table of costs, who pays them, and the time they took.
//!
//! Work is paid for before it is done: by a call on the core of its thread, also for the blocks that it
//! cleans or writes back and for a checkpoint that it needs; by the flusher, the cleaner, the checkpoint timer and what handles upcalls, as
//! threads of the kernel, on a core that is free ([`Host::work_anywhere`]). A core does one thing at a time, in the order of
//! arrival.
//!
//! A place that pays is a waiting point, so none lies where nothing may wait, and none where a file's `extent_lock` is
//! held ([`crate::vfs`]): what is done under it is paid for before it is taken, or, where only a truncation finds out how
//! much that is ([`Walked`](super::node::Walked)), after it is released. The kernel locks the node page that a walk ends
//! at, so that two walks seldom meet; here they never do. Without costs, or before the volume has a
//! host, a place costs a branch.

use super::gc_parts::{GcStep, GcWithout};
use nandscape_rt::host::CoreId;
use nandscape_rt::{Handle, Host, Nanos};
use pin_project_lite::pin_project;
use std::cell::{Cell, OnceCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// How long each step keeps a core. All zero: the host's CPU costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CpuCosts {
    /// Looking for a name, or for room for one, in a block of a directory or in an inode.
    pub lookup_ns: u64,
    /// Each node page on the way to an address, each inode brought to its node page, each node page that is written.
    pub node_page_ns: u64,
    /// A block that a log gives to data or to a node: SIT entries of its segment and of the old block's, the summary.
    pub allocation_ns: u64,
    /// A block that cleaning looks at: its summary, whether it is still what that says, marking its page.
    pub move_ns: u64,
    /// A command that fetches migrations, or waits for them.
    pub upcall_ns: u64,
    /// Each record of it: the summary of the old place, whether the block is still what was moved, its node or NAT entry,
    /// SIT entries of both segments, the summary of the new place, the file's extents.
    pub record_ns: u64,
    /// A checkpoint, beside what its files and nodes take.
    pub checkpoint_ns: u64,
    /// Each block of NAT, SIT and pack that a checkpoint writes.
    pub checkpoint_block_ns: u64,
}

impl CpuCosts {
    /// The longest single cost: 10 s.
    pub const NS_MAX: u64 = 10_000_000_000;

    /// Names of [`CpuCosts::preset`].
    pub const PRESETS: [&str; 2] = ["none", "estimate"];

    /// Costs by name.
    ///
    /// - `none`: nothing costs anything.
    /// - `estimate`: not measured, but counted: cache lines that a step touches and that are unlikely to be cached, at
    ///   100 ns; locks at 25 ns; bytes read in sequence at 4 per ns (J. Dean, "Numbers Everyone Should Know", 2009; cited
    ///   from memory).
    ///   What was counted stands in docs/formats/stack.md.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::default()),
            "estimate" => Some(Self {
                lookup_ns: 1_100,
                node_page_ns: 700,
                allocation_ns: 750,
                move_ns: 800,
                upcall_ns: 1_500,
                record_ns: 900,
                checkpoint_ns: 20_000,
                checkpoint_block_ns: 2_000,
            }),
            _ => None,
        }
    }

    /// Each cost times `scale`, to the nearest nanosecond and at most [`CpuCosts::NS_MAX`].
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        let times = |ns: u64| ((ns as f64 * scale).round() as u64).min(Self::NS_MAX);
        Self {
            lookup_ns: times(self.lookup_ns),
            node_page_ns: times(self.node_page_ns),
            allocation_ns: times(self.allocation_ns),
            move_ns: times(self.move_ns),
            upcall_ns: times(self.upcall_ns),
            record_ns: times(self.record_ns),
            checkpoint_ns: times(self.checkpoint_ns),
            checkpoint_block_ns: times(self.checkpoint_block_ns),
        }
    }

    /// What work costs within a step of cleaning that is spared a part.
    #[must_use]
    const fn within(mut self, step: GcStep, without: GcWithout) -> Self {
        match step {
            GcStep::Find | GcStep::Read if without.has(GcWithout::Traversal) => {
                (self.move_ns, self.node_page_ns, self.lookup_ns) = (0, 0, 0);
            }
            GcStep::Write => {
                if without.has(GcWithout::Metadata) {
                    self.node_page_ns = 0;
                }
                if without.has(GcWithout::Allocation) {
                    self.allocation_ns = 0;
                }
            }
            GcStep::Find | GcStep::Read | GcStep::Reclaim => {}
        }
        self
    }

    /// Whether nothing costs anything.
    #[must_use]
    pub fn is_free(&self) -> bool {
        *self == Self::default()
    }
}

/// Time of cores that was paid, by part, since mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CpuTimes {
    /// Looking for names.
    pub lookup_ns: u64,
    /// Node pages.
    pub node_page_ns: u64,
    /// Blocks given by logs.
    pub allocation_ns: u64,
    /// Blocks that cleaning looked at.
    pub move_ns: u64,
    /// Upcalls and their records.
    pub upcall_ns: u64,
    /// Checkpoints.
    pub checkpoint_ns: u64,
    /// How long all of these waited for their cores.
    pub wait_ns: u64,
}

impl CpuTimes {
    /// Applies `merge` to each time and its counterpart in `other`.
    pub(crate) fn zip(&mut self, other: &Self, merge: impl Fn(&mut u64, u64)) {
        merge(&mut self.lookup_ns, other.lookup_ns);
        merge(&mut self.node_page_ns, other.node_page_ns);
        merge(&mut self.allocation_ns, other.allocation_ns);
        merge(&mut self.move_ns, other.move_ns);
        merge(&mut self.upcall_ns, other.upcall_ns);
        merge(&mut self.checkpoint_ns, other.checkpoint_ns);
        merge(&mut self.wait_ns, other.wait_ns);
    }

    /// Time that cores worked.
    #[must_use]
    pub const fn busy_ns(&self) -> u64 {
        self.lookup_ns
            + self.node_page_ns
            + self.allocation_ns
            + self.move_ns
            + self.upcall_ns
            + self.checkpoint_ns
    }

    /// The times by name.
    pub(crate) fn named(&self) -> Vec<(&'static str, u64)> {
        let mut times = vec![
            ("lookup_ns", self.lookup_ns),
            ("node_page_ns", self.node_page_ns),
            ("allocation_ns", self.allocation_ns),
            ("move_ns", self.move_ns),
            ("checkpoint_ns", self.checkpoint_ns),
            ("wait_ns", self.wait_ns),
        ];
        if self.upcall_ns > 0 {
            times.push(("upcall_ns", self.upcall_ns));
        }
        times
    }
}

/// Work that is paid for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Blocks of a directory that are looked through.
    Lookup,
    /// So many node pages.
    NodePages(u64),
    /// So many blocks that a log gives.
    Allocation(u64),
    /// Node pages that are written, each with a block that a log gives.
    NodeWrites(u64),
    /// A block that cleaning looks at.
    Move,
    /// A command that fetches migrations, or waits for them.
    Upcall,
    /// So many records of one.
    Records(u64),
    /// A checkpoint of so many blocks.
    Checkpoint(u64),
}

/// The cores that a volume's work takes.
pub(crate) struct Cpu {
    costs: CpuCosts,
    /// What is left out of cleaning.
    without: GcWithout,
    host: OnceCell<Host>,
    /// The core of the call that is running now; none: it is no call's.
    running: Cell<Option<CoreId>>,
    /// The step of cleaning that is running now.
    cleaning: Cell<Option<GcStep>>,
    times: Cell<CpuTimes>,
    of_cleaning: Cell<CpuTimes>,
}

impl Cpu {
    /// Work that costs nothing until there is a host.
    pub(crate) fn new(costs: CpuCosts, without: GcWithout) -> Self {
        let (host, running, cleaning, times, of_cleaning) = Default::default();
        Self { costs, without, host, running, cleaning, times, of_cleaning }
    }

    /// Work takes time from now on, if it costs anything.
    pub(crate) fn attach(&self, host: &Host) {
        if !self.costs.is_free() {
            let _first = self.host.set(host.clone());
        }
    }

    /// Whether work takes time.
    pub(crate) fn is_charged(&self) -> bool {
        self.host.get().is_some()
    }

    /// Time that was paid.
    pub(crate) const fn times(&self) -> CpuTimes {
        self.times.get()
    }

    /// Time among it that steps of cleaning paid, but for waits.
    pub(crate) const fn of_cleaning(&self) -> CpuTimes {
        self.of_cleaning.get()
    }

    /// What `work` costs, noted under its part.
    fn note(&self, work: Work) -> Nanos {
        let Some(step) = self.cleaning.get() else {
            return Self::add_to(&self.times, &self.costs, work);
        };
        let costs = self.costs.within(step, self.without);
        Self::add_to(&self.of_cleaning, &costs, work);
        Self::add_to(&self.times, &costs, work)
    }

    /// Adds what `work` costs to its part of `sums`.
    fn add_to(sums: &Cell<CpuTimes>, costs: &CpuCosts, work: Work) -> Nanos {
        let mut times = sums.get();
        let mut owed = 0;
        let mut add = |sum: &mut u64, ns: u64| {
            *sum += ns;
            owed += ns;
        };
        match work {
            Work::Lookup => add(&mut times.lookup_ns, costs.lookup_ns),
            Work::NodePages(pages) => add(&mut times.node_page_ns, pages * costs.node_page_ns),
            Work::Allocation(blocks) => add(&mut times.allocation_ns, blocks * costs.allocation_ns),
            Work::NodeWrites(pages) => {
                add(&mut times.node_page_ns, pages * costs.node_page_ns);
                add(&mut times.allocation_ns, pages * costs.allocation_ns);
            }
            Work::Move => add(&mut times.move_ns, costs.move_ns),
            Work::Upcall => add(&mut times.upcall_ns, costs.upcall_ns),
            Work::Records(records) => add(&mut times.upcall_ns, records * costs.record_ns),
            Work::Checkpoint(blocks) => {
                let ns = costs.checkpoint_ns + blocks * costs.checkpoint_block_ns;
                add(&mut times.checkpoint_ns, ns);
            }
        }
        sums.set(times);
        Nanos(owed)
    }

    /// Waits for a core, and until it has done `work`.
    pub(crate) async fn pay(&self, rt: &Handle, work: Work) {
        let Some(host) = self.host.get() else { return };
        let cost = self.note(work);
        if cost == Nanos::ZERO {
            return;
        }
        let took = match self.running.get() {
            Some(core) => host.work(rt, core, cost).await,
            None => host.work_anywhere(rt, cost).await,
        };
        let mut times = self.times.get();
        times.wait_ns += took.saturating_sub(cost).0;
        self.times.set(times);
    }

    /// Runs a step of cleaning, whose work is counted apart.
    pub(crate) const fn clean<F: Future>(&self, step: GcStep, work: F) -> With<'_, GcStep, F> {
        With { cell: &self.cleaning, value: Some(step), work }
    }

    /// Runs a call, whose work takes the core of this number.
    pub(crate) fn run<F: Future>(&self, core: u16, call: F) -> With<'_, CoreId, F> {
        let core = self.host.get().map(|host| host.core(core));
        With { cell: &self.running, value: core, work: call }
    }
}

pin_project! {
    /// A future during whose polls a cell has another value. No `async fn`: that would hold the future twice, as its
    /// argument and where it awaits it, and futures of calls are moved.
    pub(crate) struct With<'a, V, F> {
        cell: &'a Cell<Option<V>>,
        value: Option<V>,
        #[pin]
        work: F,
    }
}

impl<V: Copy, F: Future> Future for With<'_, V, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let before = this.cell.replace(*this.value);
        let poll = this.work.poll(cx);
        this.cell.set(before);
        poll
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_rt::Executor;
    use std::rc::Rc;

    const COSTS: CpuCosts = CpuCosts {
        lookup_ns: 1,
        node_page_ns: 10,
        allocation_ns: 100,
        move_ns: 1_000,
        upcall_ns: 2,
        record_ns: 20,
        checkpoint_ns: 10_000,
        checkpoint_block_ns: 100_000,
    };

    /// Each work costs what the table says, under its part; nothing costs anything without a host, or where the table is
    /// free.
    #[test]
    fn work_costs_what_the_table_says() {
        for (costs, has_host) in [(COSTS, true), (COSTS, false), (CpuCosts::default(), true)] {
            let mut executor = Executor::on_virtual_clock();
            let rt = executor.handle();
            let cpu = Rc::new(Cpu::new(costs, GcWithout::Nothing));
            if has_host {
                cpu.attach(&Host::with_cores(1));
            }
            let (payer, clock) = (Rc::clone(&cpu), rt.clone());
            let done = executor.block_on(async move {
                for work in [
                    Work::Lookup,
                    Work::NodePages(2),
                    Work::Allocation(3),
                    Work::NodeWrites(4),
                    Work::Move,
                    Work::Upcall,
                    Work::Records(6),
                    Work::Checkpoint(5),
                ] {
                    payer.pay(&rt, work).await;
                }
            });
            done.expect("an end");
            let expected = CpuTimes {
                lookup_ns: 1,
                node_page_ns: 60,
                allocation_ns: 700,
                move_ns: 1_000,
                upcall_ns: 122,
                checkpoint_ns: 510_000,
                wait_ns: 0,
            };
            let is_charged = has_host && costs == COSTS;
            let expected = if is_charged { expected } else { CpuTimes::default() };
            assert_eq!(cpu.times(), expected);
            assert_eq!(clock.now().0, expected.busy_ns());
        }
    }

    /// Calls on one core wait for each other, whatever else is polled between; work of no call takes the core that is
    /// free.
    #[test]
    fn calls_pay_on_their_cores() {
        let mut executor = Executor::on_virtual_clock();
        let rt = executor.handle();
        let host = Host::with_cores(2);
        let cpu = Rc::new(Cpu::new(COSTS, GcWithout::Nothing));
        cpu.attach(&host);
        let spawn = |core: Option<u16>| {
            let (cpu, rt) = (Rc::clone(&cpu), rt.clone());
            rt.clone().spawn("call", async move {
                let call = async {
                    for _ in 0..2 {
                        cpu.pay(&rt, Work::Move).await;
                    }
                };
                match core {
                    Some(core) => cpu.run(core, call).await,
                    None => call.await,
                }
                rt.now().0
            })
        };
        let calls = [spawn(Some(0)), spawn(Some(2)), spawn(None), spawn(Some(0))];
        let ends = executor.block_on(async move {
            let mut ends = Vec::new();
            for call in calls {
                ends.push(call.await.expect("it ends"));
            }
            ends
        });
        assert_eq!(ends.expect("an end"), [4_000, 5_000, 2_000, 6_000]);
        let busy = host.busy(Nanos(6_000)).iter().map(|core| core.threads.0).collect::<Vec<_>>();
        assert_eq!(busy, [6_000, 2_000]);
        assert_eq!(cpu.times().wait_ns, 2_000 + 3_000 + 4_000);
    }

    /// A scale multiplies each cost.
    #[test]
    fn costs_scale() {
        let estimate = CpuCosts::preset("estimate").expect("a preset");
        assert_eq!(estimate.scaled(1.0), estimate);
        let half = estimate.scaled(0.5);
        assert_eq!((half.lookup_ns, half.checkpoint_block_ns), (550, 1_000));
        assert!(estimate.scaled(0.0).is_free() && !half.is_free());
        assert_eq!(COSTS.scaled(1e12).lookup_ns, CpuCosts::NS_MAX);
    }

    /// A part that is left out costs nothing in its step, and all else what it cost.
    #[test]
    fn what_is_left_out_costs_nothing() {
        let whole = CpuCosts::preset("estimate").expect("a preset");
        let of = |without: GcWithout, step| whole.within(step, without);
        for step in [GcStep::Find, GcStep::Read, GcStep::Write, GcStep::Reclaim] {
            assert_eq!(of(GcWithout::Nothing, step), whole);
            assert_eq!(of(GcWithout::Checkpoint, step), whole);
        }
        let free = CpuCosts { node_page_ns: 0, ..whole };
        assert_eq!(of(GcWithout::Metadata, GcStep::Write), free);
        assert_eq!(of(GcWithout::Metadata, GcStep::Find), whole);
        assert_eq!(of(GcWithout::Traversal, GcStep::Write), whole);
        assert_eq!(of(GcWithout::Traversal, GcStep::Find).move_ns, 0);
        assert_eq!(of(GcWithout::Traversal, GcStep::Read).node_page_ns, 0);
        let moved = of(GcWithout::All, GcStep::Write);
        assert_eq!((moved.node_page_ns, moved.allocation_ns, moved.move_ns), (0, 0, 800));
        assert!(GcWithout::All.checkpoint() && !GcWithout::Allocation.checkpoint());
    }
}
