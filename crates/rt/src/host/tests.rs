//! The order of mixed users on cores, what is counted of them, and a random mix against its rules.

use super::{Affinity, CoreId, CoreTimes, Host, Ticket};
use crate::combine::join2;
use crate::exec::Executor;
use crate::handle::Handle;
use crate::join::JoinHandle;
use crate::rng::Stream;
use crate::sync::RwLock;
use crate::time::Nanos;
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;

const ENDS: &str = "the work of this task ends";

/// An executor and a host of so many cores.
struct Rig {
    executor: Executor,
    host: Host,
}

impl Rig {
    fn new(cores: u16) -> Self {
        Self { executor: Executor::on_virtual_clock(), host: Host::with_cores(cores) }
    }

    /// A thread that begins to work at `at`; when its work ends.
    fn work(&self, at: u64, core: u16, cost: u64) -> JoinHandle<u64> {
        let (rt, host) = (self.executor.handle(), self.host.clone());
        self.executor.handle().spawn("worker", async move {
            rt.sleep_until(Nanos(at)).await;
            let took = host.work(&rt, host.core(core), Nanos(cost)).await;
            assert_eq!(rt.now(), Nanos(at) + took);
            rt.now().0
        })
    }

    /// The same on any core.
    fn work_anywhere(&self, at: u64, cost: u64) -> JoinHandle<u64> {
        let (rt, host) = (self.executor.handle(), self.host.clone());
        self.executor.handle().spawn("worker anywhere", async move {
            rt.sleep_until(Nanos(at)).await;
            let took = host.work_anywhere(&rt, Nanos(cost)).await;
            assert_eq!(rt.now(), Nanos(at) + took);
            rt.now().0
        })
    }

    /// What threads had of each core until then.
    fn threads_ns(&self, at: u64) -> Vec<u64> {
        self.host.busy(Nanos(at)).iter().map(|core| core.threads.0).collect()
    }

    fn until(&mut self, at: u64) -> Nanos {
        self.executor.run_until(Nanos(at));
        Nanos(at)
    }

    fn on(&self, core: u16) -> Affinity {
        Affinity::Core(self.host.core(core))
    }

    /// The next entry that begins, which takes its core for so long.
    fn begin(&self, at: u64, cost: u64) -> Option<(u16, Ticket)> {
        let (core, ticket) = self.host.start(Nanos(at))?;
        self.host.occupy(core, Nanos(at + cost));
        Some((core.number(), ticket))
    }
}

fn ended(task: JoinHandle<u64>) -> u64 {
    task.take().expect(ENDS)
}

/// Work that may be done anywhere goes to the core that is free first, to the first of those that are alike, and not to
/// one where an entry waits whose length is unknown.
#[test]
fn work_of_any_core_goes_to_the_one_that_is_free_first() {
    let mut rig = Rig::new(3);
    let tasks = [rig.work(0, 0, 100), rig.work(0, 1, 50), rig.work_anywhere(0, 10)];
    rig.until(0);
    assert_eq!(rig.threads_ns(100), [100, 50, 10]);
    rig.until(20);
    rig.host.enqueue(Nanos(20), rig.on(2));
    let behind = rig.work_anywhere(20, 7);
    rig.until(20);
    assert_eq!(rig.threads_ns(100), [100, 57, 10], "core 2 has one that waits");
    assert!(rig.begin(20, 10).is_some());
    rig.until(100);
    assert_eq!(tasks.map(ended), [100, 50, 10]);
    assert_eq!(ended(behind), 57);
}

/// Work that may be done anywhere leaves alone a core that is free only between two pieces of a thread's work: it stays
/// where such work was last, or goes to the core that has been idle longest.
#[test]
fn work_of_any_core_leaves_the_cores_of_threads_alone() {
    let mut rig = Rig::new(4);
    let thread: Vec<_> = (0..4).map(|step| rig.work(step * 10, 0, 10)).collect();
    // A second thread comes to core 1 after the work that was there first.
    let other = rig.work(15, 1, 2);
    let anywhere: Vec<_> = [0, 10, 20, 30].map(|at| rig.work_anywhere(at, 3)).into();
    let beside = rig.work_anywhere(31, 3);
    rig.until(40);
    assert_eq!(thread.into_iter().map(ended).collect::<Vec<_>>(), [10, 20, 30, 40]);
    assert_eq!(anywhere.into_iter().map(ended).collect::<Vec<_>>(), [3, 13, 23, 33]);
    assert_eq!((ended(other), ended(beside)), (17, 34));
    assert_eq!(rig.threads_ns(40), [40, 3 + 3 + 2, 3 + 3, 3]);
}

/// A task may not work while it holds a lock that is to be released for work, and may while another task holds it.
#[test]
fn work_needs_locks_released() {
    for is_held in [false, true] {
        let mut executor = Executor::on_virtual_clock();
        let (rt, host) = (executor.handle(), Host::with_cores(2));
        let lock = RwLock::released_for_work(&rt, "a map", ());
        let (other, clock) = (lock.clone(), rt.clone());
        let holder = rt.spawn("holder", async move {
            let _shared = other.read().await;
            clock.sleep(Nanos(50)).await;
        });
        let work = async move {
            let guard = lock.read().await;
            let guard = is_held.then_some(guard);
            host.work(&rt, host.core(0), Nanos(10)).await;
            drop(guard);
            holder.await.expect(ENDS);
            drop(lock.write().await);
            host.work_anywhere(&rt, Nanos(10)).await;
            rt.now()
        };
        let run = AssertUnwindSafe(|| executor.block_on(work));
        let ended = std::panic::catch_unwind(run).map_err(|panic| panic.downcast::<String>());
        match ended {
            Ok(ended) => assert_eq!((ended, is_held), (Ok(Nanos(60)), false)),
            Err(panic) => {
                let message = *panic.expect("a message");
                assert!(is_held && message.contains("a map"), "{message}");
            }
        }
    }
}

/// Parts of a task hold locks each for itself.
#[test]
fn parts_of_a_task_hold_locks_each_for_itself() {
    async fn hold(lock: RwLock<()>, rt: Handle) {
        let _shared = lock.read().await;
        rt.sleep(Nanos(50)).await;
    }
    let mut executor = Executor::on_virtual_clock();
    let (rt, host) = (executor.handle(), Host::with_cores(1));
    let lock = RwLock::released_for_work(&rt, "a map", ());
    let task = rt.clone().spawn("three parts", async move {
        let apart = rt.apart(hold(lock.clone(), rt.clone()));
        let goes_on = rt.uncancellable("goes on", hold(lock, rt.clone()));
        join2(join2(apart, goes_on), host.work(&rt, host.core(0), Nanos(10))).await.1
    });
    executor.run().unwrap();
    assert_eq!(task.take().expect("its end"), Nanos(10));
}

/// Threads on one core queue, threads on another do not, and idle time is not made up for.
#[test]
fn threads_queue_for_their_core_only() {
    let mut rig = Rig::new(2);
    let tasks = [(10, 0, 5), (11, 0, 5), (11, 1, 5), (100, 0, 1), (100, 2, 1), (100, 0, 0)];
    let tasks = tasks.map(|(at, core, cost)| rig.work(at, core, cost));
    rig.executor.run().unwrap();
    assert_eq!(tasks.map(ended), [15, 20, 16, 101, 102, 102], "core 2 of 2 is core 0");
}

/// One order over all users of a core: a thread, an entry of the state machine, and threads that entered
/// after it, which do not begin before its end is known.
#[test]
fn one_queue_serves_threads_and_the_state_machine() {
    let mut rig = Rig::new(1);
    let first = rig.work(0, 0, 10);
    rig.until(2);
    let ticket = rig.host.enqueue(Nanos(2), rig.on(0));
    let (third, fourth) = (rig.work(3, 0, 5), rig.work(4, 0, 5));
    rig.until(9);
    assert_eq!((rig.host.next_start(), rig.begin(9, 1)), (Some(Nanos(10)), None));
    rig.until(10);
    assert_eq!(rig.begin(10, 20), Some((0, ticket)));
    assert_eq!(rig.host.next_start(), None);
    let last = rig.host.enqueue(Nanos(10), rig.on(0));
    let at = rig.until(30);
    rig.host.release(rig.host.core(0));
    assert_eq!((rig.host.start(at), rig.host.next_start()), (None, Some(Nanos(40))));
    rig.until(40);
    assert_eq!(rig.begin(40, 1), Some((0, last)));
    assert_eq!([first, third, fourth].map(ended), [10, 35, 40]);
}

/// A thread whose place in the queue is behind the state machine waits for `occupy`, however late the
/// question is asked at that instant; its future may be dropped, and its work is done all the same.
#[test]
fn an_entry_after_the_state_machines_waits_for_its_answer() {
    let mut rig = Rig::new(1);
    rig.host.enqueue(Nanos(0), rig.on(0));
    let (kept, dropped) = (rig.work(0, 0, 7), rig.work(0, 0, 7));
    rig.until(0);
    dropped.abort();
    let (core, _) = rig.host.start(Nanos(0)).unwrap();
    let after = rig.work(0, 0, 7);
    rig.until(0);
    assert!(!kept.is_finished() && !after.is_finished());
    rig.host.occupy(core, Nanos(50));
    rig.executor.run().unwrap();
    assert_eq!([kept, after].map(ended), [57, 71]);
}

/// Tickets for any core go to the core that is free first, of equals to the lowest number; a core takes the
/// lower ticket of its own queue and of theirs. A core that was not released takes none.
#[test]
fn any_ticket_takes_the_first_free_core() {
    let mut rig = Rig::new(3);
    let busy = [(0, 9), (1, 5), (2, 5)].map(|(core, cost)| rig.work(0, core, cost));
    rig.until(1);
    let own = rig.host.enqueue(Nanos(1), rig.on(2));
    let any: Vec<_> = (0..4).map(|_| rig.host.enqueue(Nanos(1), Affinity::Any)).collect();
    let blocked = rig.work(2, 0, 1);
    rig.until(5);
    assert_eq!(rig.host.next_start(), Some(Nanos(5)));
    let begun: Vec<_> = std::iter::from_fn(|| rig.begin(5, 10)).collect();
    assert_eq!(begun, [(2, own), (1, any[0])]);
    rig.until(9);
    assert_eq!([rig.begin(9, 1), rig.begin(9, 1)], [Some((0, any[1])), None]);
    assert!(!blocked.is_finished(), "two tickets for any core are ahead");
    rig.until(15);
    assert_eq!(rig.begin(15, 1), None, "no core was released");
    rig.host.release(rig.host.core(2));
    rig.host.release(rig.host.core(1));
    assert_eq!([rig.begin(15, 4), rig.begin(15, 4)], [Some((1, any[2])), Some((2, any[3]))]);
    rig.executor.run().unwrap();
    assert_eq!(ended(blocked), 16, "known once no ticket is ahead");
    assert_eq!(busy.map(ended), [9, 5, 5]);
}

/// Busy times are those before the instant asked for, apart for each user, and all of the time together.
#[test]
fn busy_times_are_of_the_past() {
    let mut rig = Rig::new(2);
    drop(rig.work(10, 0, 100));
    rig.until(10);
    rig.host.enqueue(Nanos(10), rig.on(1));
    assert_eq!(rig.begin(10, 30).map(|(core, _)| core), Some(1));
    drop(rig.work(20, 1, 10));
    rig.until(30);
    let of = |threads, ftl, idle| CoreTimes {
        threads: Nanos(threads),
        ftl: Nanos(ftl),
        idle: Nanos(idle),
    };
    let early = rig.host.busy(Nanos(30));
    assert_eq!(early, [of(20, 0, 10), of(0, 20, 10)]);
    rig.until(130);
    let late = rig.host.busy(Nanos(130));
    assert_eq!(late, [of(100, 0, 30), of(10, 30, 90)]);
    rig.host.reset_busy(Nanos(30));
    assert_eq!(rig.host.busy(Nanos(130)), [of(80, 0, 20), of(10, 10, 80)]);
}

/// A thread that waits for ever is reported with its core.
#[test]
fn a_deadlock_names_the_core() {
    let mut rig = Rig::new(2);
    rig.host.enqueue(Nanos(0), rig.on(1));
    drop(rig.work(0, 1, 1));
    let deadlock = rig.executor.run().unwrap_err();
    assert_eq!(deadlock.to_string(), "deadlock at 0ns: task `worker` waits for core 1");
}

/// A state machine that neglects a core is found out.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "an entry could have begun at")]
fn time_does_not_pass_an_entry_that_could_begin() {
    let rig = Rig::new(1);
    rig.host.enqueue(Nanos(5), Affinity::Any);
    rig.host.enqueue(Nanos(6), Affinity::Any);
}

/// The same for one that takes an entry and does not answer.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "time passes an unanswered start")]
fn time_does_not_pass_an_unanswered_start() {
    let rig = Rig::new(1);
    rig.host.enqueue(Nanos(5), Affinity::Any);
    assert!(rig.host.start(Nanos(5)).is_some());
    rig.host.enqueue(Nanos(6), Affinity::Any);
}

/// One piece of work of the random mix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Work {
    /// Order of entry.
    entered: u64,
    /// The core it was bound to; none: any.
    bound: Option<u16>,
    core: u16,
    at: u64,
    start: u64,
    end: u64,
    is_ftl: bool,
}

#[derive(Clone, Default)]
struct Record {
    entries: Rc<Cell<u64>>,
    done: Rc<RefCell<Vec<Work>>>,
}

impl Record {
    fn enter(&self) -> u64 {
        self.entries.set(self.entries.get() + 1);
        self.entries.get()
    }
}

/// A thread that works, pauses, and works again.
async fn worker(rt: Handle, host: Host, core: CoreId, record: Record, seed: u64) {
    let mut rng = Stream::new(seed, "worker");
    for _ in 0..20 {
        rt.sleep(Nanos(rng.below(40))).await;
        let (at, cost, entered) = (rt.now().0, rng.below(15), record.enter());
        host.work(&rt, core, Nanos(cost)).await;
        let (core, end) = (core.number(), rt.now().0);
        let bound = Some(core);
        let work = Work { entered, bound, core, at, start: end - cost, end, is_ftl: false };
        record.done.borrow_mut().push(work);
    }
}

/// A state machine with its own events, as an FTL has: arrivals, and ends of its work in order.
struct Machine {
    host: Host,
    record: Record,
    rng: Stream,
    waiting: BTreeMap<u64, (Ticket, Work)>,
    /// Ends in order of time, then of begin.
    ends: BTreeMap<(u64, u64), CoreId>,
    begun: u64,
}

impl Machine {
    fn enqueue(&mut self, now: Nanos) {
        let bound = self.rng.chance(0.5).then(|| self.rng.below(8) as u16);
        let bound = bound.map(|number| self.host.core(number));
        let entered = self.record.enter();
        let ticket = self.host.enqueue(now, bound.map_or(Affinity::Any, Affinity::Core));
        let bound = bound.map(CoreId::number);
        let work = Work { entered, bound, core: 0, at: now.0, start: 0, end: 0, is_ftl: true };
        self.waiting.insert(entered, (ticket, work));
    }

    fn start_all(&mut self, now: Nanos) {
        while let Some((core, ticket)) = self.host.start(now) {
            let entered = self.waiting.iter().find(|(_, (of, _))| *of == ticket).map(|(at, _)| *at);
            let (_, mut work) = self.waiting.remove(&entered.unwrap()).unwrap();
            (work.core, work.start) = (core.number(), now.0);
            work.end = now.0 + self.rng.below(12);
            self.host.occupy(core, Nanos(work.end));
            self.begun += 1;
            self.ends.insert((work.end, self.begun), core);
            self.record.done.borrow_mut().push(work);
        }
    }

    async fn run(mut self, rt: Handle) {
        let mut arrivals: Vec<u64> = (0..60).map(|_| self.rng.below(500)).collect();
        arrivals.sort_unstable_by(|a, b| b.cmp(a));
        loop {
            let now = rt.now();
            while let Some(entry) = self.ends.first_entry().filter(|entry| entry.key().0 <= now.0) {
                self.host.release(entry.remove());
                self.start_all(now);
            }
            while arrivals.pop_if(|at| *at <= now.0).is_some() {
                self.enqueue(now);
            }
            self.start_all(now);
            let end = self.ends.first_key_value().map(|(key, _)| Nanos(key.0));
            let arrival = arrivals.last().map(|at| Nanos(*at));
            let next = [end, arrival, self.host.next_start()].into_iter().flatten().min();
            let Some(next) = next else { break };
            rt.sleep_until(next).await;
        }
        assert!(self.waiting.is_empty(), "{:?}", self.waiting);
    }
}

/// What a random mix did, in order of completion, and the host after it.
fn mixed(seed: u64, cores: u16, threads: u16) -> (Vec<Work>, Vec<CoreTimes>, Nanos) {
    let (mut rig, record) = (Rig::new(cores), Record::default());
    let rt = rig.executor.handle();
    let machine = Machine {
        host: rig.host.clone(),
        record: record.clone(),
        rng: Stream::new(seed, "machine"),
        waiting: BTreeMap::new(),
        ends: BTreeMap::new(),
        begun: 0,
    };
    let machine = rt.spawn("machine", machine.run(rt.clone()));
    for number in 0..threads {
        let core = rig.host.thread().core;
        let seed = seed.wrapping_mul(31).wrapping_add(number.into());
        drop(rt.spawn("worker", worker(rt.clone(), rig.host.clone(), core, record.clone(), seed)));
    }
    rig.executor.run().unwrap();
    assert!(machine.is_finished());
    let now = rt.now();
    let done = record.done.borrow().clone();
    (done, rig.host.busy(now), now)
}

/// Whether a core is taken throughout.
fn is_taken(works: &[Work], core: u16, from: u64, until: u64) -> bool {
    let mut at = from;
    for work in works.iter().filter(|work| work.core == core && work.end > work.start) {
        if work.start <= at {
            at = at.max(work.end);
        }
    }
    at >= until
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However threads and a state machine share cores: all work is done, no core does two things at once
    /// or idles while something waits for it, each core is first in, first out, the times add up, and the
    /// same mix does the same.
    #[test]
    fn a_random_mix_keeps_the_rules(seed: u64, cores in 1..5_u16, threads in 0..6_u16) {
        let (mut works, times, now) = mixed(seed, cores, threads);
        prop_assert_eq!(&(works.clone(), times.clone(), now), &mixed(seed, cores, threads));
        prop_assert_eq!(works.len(), usize::from(threads) * 20 + 60);
        works.sort_by_key(|work| (work.start, work.end, work.entered));
        for core in 0..cores {
            let on: Vec<_> = works.iter().filter(|work| work.core == core).collect();
            for pair in on.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start, "{pair:?}");
            }
            let sum = |is_ftl| {
                let of = on.iter().filter(|work| work.is_ftl == is_ftl);
                Nanos(of.map(|work| work.end - work.start).sum())
            };
            let (threads, ftl) = (sum(false), sum(true));
            let idle = now - threads - ftl;
            prop_assert_eq!(times[usize::from(core)], CoreTimes { threads, ftl, idle });
            let mut bound: Vec<_> = on.iter().filter(|work| work.bound.is_some()).collect();
            bound.sort_by_key(|work| work.entered);
            prop_assert!(bound.is_sorted_by_key(|work| work.start), "{bound:?}");
        }
        for work in &works {
            let mut takers = work.bound.map_or(0..cores, |core| core..core + 1);
            let taken = takers.all(|core| is_taken(&works, core, work.at, work.start));
            prop_assert!(taken, "a core is idle while {work:?} waits");
        }
    }
}
