//! Runs a workload on a file system: each instance of a thread is a task of the runtime.
//!
//! A thread runs on core *number modulo cores* of the host, and each call of the file system takes so much
//! of that core first. Other users of the host share its cores. The caller runs the executor, looks at [`Session::is_over`] and takes the
//! counts. The same workload, trees and seed on the same file system do the same.

mod content;
mod data;
mod files;
mod layout;
mod pace;
mod pool;
mod report;
mod runner;
mod skew;
mod spans;
mod stats;
mod waiting;

pub use layout::{CreatedFileset, lay_out, preload};
pub use report::{FilesetMade, Report, Snapshot, TableRow, summary_line};
pub use runner::RunEnd;
pub use spans::FlowopSpan;
pub use stats::{Row, Sums};

use super::model::{Body, Flowop, Workload};
use super::ops::{Op, Way};
use super::resolve::DESCRIPTORS;
use super::tree::Tree;
use crate::latency::LatencyTotals;
use content::Contents;
use nandscape_fs::contract::{Caller, FileSystem, Ino, SyscallCost};
use nandscape_rt::sync::Notify;
use nandscape_rt::{Handle, Host, JoinHandle, Nanos, Stream};
use pool::Pool;
use runner::{Descriptor, Memory, Pending, Runner};
use spans::Spans;
use stats::Stats;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use waiting::{Events, Semaphore};

/// What a run needs to know besides the workload.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where randomness comes from.
    pub seed: u64,
    /// The host on whose cores threads run.
    pub host: Host,
    /// What calls of the file system take of a core.
    pub cost: SyscallCost,
}

/// A fileset at work.
struct Set {
    tree: Tree,
    directories: Vec<Ino>,
    files: Pool,
    /// Directories that hold something.
    folders: Pool,
    leafdirs: Pool,
}

impl Set {
    fn new(rt: &Handle, created: CreatedFileset) -> Self {
        let CreatedFileset { tree, directories } = created;
        let files = Pool::of(rt, &tree.files);
        let folders = Pool::new(rt, tree.directories.iter().map(|_| true));
        let leafdirs = Pool::of(rt, &tree.leafdirs);
        Self { tree, directories, files, folders, leafdirs }
    }
}

/// What all threads of a run share.
struct Shared {
    rt: Handle,
    fs: Rc<dyn FileSystem>,
    workload: Rc<Workload>,
    host: Host,
    cost: SyscallCost,
    seed: u64,
    sets: Vec<Set>,
    contents: Contents,
    stats: Stats,
    spans: Spans,
    events: Events,
    /// Who waits at flowops of a name, in all threads.
    gates: BTreeMap<String, Vec<Rc<Notify>>>,
    semaphores: BTreeMap<String, Vec<Rc<Semaphore>>>,
    messages: RefCell<Vec<String>>,
    /// Threads that go on.
    running: Cell<u64>,
    ended: RefCell<Option<(Nanos, RunEnd)>>,
    /// Threads, and what they left behind.
    tasks: RefCell<Vec<JoinHandle<()>>>,
}

/// An instance of a thread before it runs.
struct ThreadInstance {
    thread: usize,
    process: usize,
    gates: Vec<Option<Rc<Notify>>>,
    semaphores: Vec<Option<Rc<Semaphore>>>,
}

/// A workload under way.
pub struct Session {
    shared: Rc<Shared>,
    seats: Vec<ThreadInstance>,
    began: Nanos,
}

impl Session {
    /// Everything in place, and nothing running.
    #[must_use]
    pub fn new(
        rt: &Handle,
        fs: Rc<dyn FileSystem>,
        workload: &Rc<Workload>,
        created: Vec<CreatedFileset>,
        settings: Settings,
    ) -> Self {
        let (seats, processes) = seats(rt, workload);
        let mut gates: BTreeMap<String, Vec<Rc<Notify>>> = BTreeMap::new();
        let mut semaphores: BTreeMap<String, Vec<Rc<Semaphore>>> = BTreeMap::new();
        for seat in &seats {
            for (index, (name, _)) in workload.threads[seat.thread].simple.iter().enumerate() {
                if let Some(gate) = &seat.gates[index] {
                    gates.entry(name.clone()).or_default().push(Rc::clone(gate));
                }
                if let Some(semaphore) = &seat.semaphores[index] {
                    semaphores.entry(name.clone()).or_default().push(Rc::clone(semaphore));
                }
            }
        }
        let shared = Shared {
            rt: rt.clone(),
            fs,
            workload: Rc::clone(workload),
            host: settings.host,
            cost: settings.cost,
            seed: settings.seed,
            sets: created.into_iter().map(|each| Set::new(rt, each)).collect(),
            contents: Contents::default(),
            stats: Stats::new(workload, processes),
            spans: Spans::default(),
            events: Events::new(rt, workload.event_rate.clone()),
            gates,
            semaphores,
            messages: RefCell::default(),
            running: Cell::new(seats.len() as u64),
            ended: RefCell::default(),
            tasks: RefCell::default(),
        };
        Self { shared: Rc::new(shared), seats, began: Nanos::ZERO }
    }

    /// Has all threads begin now.
    pub fn start(&mut self) {
        self.began = self.shared.rt.now();
        let maker = Rc::clone(&self.shared);
        let rng = Stream::new(self.shared.seed, "wml.events");
        let events = self.shared.rt.spawn_daemon("eventgen", async move {
            maker.events.make(&maker.rt, rng).await;
        });
        let mut tasks = vec![events];
        for (number, seat) in std::mem::take(&mut self.seats).into_iter().enumerate() {
            let runner = self.runner(number, seat);
            tasks.push(self.shared.rt.spawn("thread", runner.run()));
        }
        self.shared.tasks.borrow_mut().extend(tasks);
    }

    fn runner(&self, number: usize, seat: ThreadInstance) -> Runner {
        let thread = self.shared.host.thread();
        let caller = Caller { thread: thread.id, core: thread.core.number(), ..Caller::default() };
        let simple = self.shared.workload.threads[seat.thread].simple.len();
        Runner {
            shared: Rc::clone(&self.shared),
            thread: seat.thread,
            process: seat.process,
            id: number as u32 + 1,
            caller,
            core: thread.core,
            rng: Stream::new(self.shared.seed, &format!("wml.thread.{number}")),
            descriptors: Box::new([Descriptor::default(); DESCRIPTORS]),
            rotor: 0,
            memories: vec![Memory::default(); simple],
            skews: vec![None; simple],
            gates: seat.gates,
            semaphores: seat.semaphores,
            pending: Pending::new(&self.shared.rt),
        }
    }

    /// Whether the run has ended by itself.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.shared.stats.is_closed()
    }

    /// Flowops that were done until now.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.shared.stats.done()
    }

    /// The flowops that were done since the last look; from now on they are kept for the next one if `keep`.
    #[must_use]
    pub fn take_spans(&self, keep: bool) -> Vec<FlowopSpan> {
        self.shared.spans.take(keep)
    }

    /// The name of a span's flowop.
    #[must_use]
    pub fn flowop_name(&self, span: &FlowopSpan) -> &str {
        &self.shared.workload.threads[span.thread as usize].simple[span.flowop as usize].0
    }

    /// The thread of each instance, by place in the workload and by name, before they begin.
    pub fn instances(&self) -> impl Iterator<Item = (usize, String)> + '_ {
        let threads = &self.shared.workload.threads;
        self.seats.iter().map(|seat| (seat.thread, report::thread_name(&threads[seat.thread]).0))
    }

    /// Ends the run, which could not go on.
    pub fn fail(&self, why: &str) {
        self.shared.end(RunEnd::Failed(why.to_owned()));
    }

    /// Ends all threads where they are; nothing is counted any more.
    pub fn stop(&self) {
        self.shared.stats.close();
        for task in self.shared.tasks.borrow_mut().drain(..) {
            task.abort();
        }
    }

    /// Sums until now.
    #[must_use]
    pub fn sums(&self) -> Sums {
        self.shared.stats.sums()
    }

    /// Calls that made something durable, until now.
    #[must_use]
    pub fn fsyncs(&self) -> u64 {
        self.shared.stats.fsyncs.get()
    }

    /// What `fsync` and `fsyncset` waited for cores and took of them, in calls that have ended.
    #[must_use]
    pub fn fsync_thread_ns(&self) -> u64 {
        self.shared.stats.fsync_thread_ns.get()
    }

    /// Latencies of reads, writes, trims (none) and syncs, until now.
    #[must_use]
    pub fn latencies(&self) -> [LatencyTotals; 4] {
        let mut totals = <[LatencyTotals; 4]>::default();
        self.shared.stats.with_rows(|rows| {
            for row in rows {
                match (row.op, row.op.way()) {
                    (_, Some(Way::Read)) => totals[0].add(&row.latency),
                    (_, Some(Way::Write)) => totals[1].add(&row.latency),
                    (Op::Fsync | Op::Fsyncset, None) => totals[3].add(&row.latency),
                    _ => {}
                }
            }
        });
        totals
    }

    /// What was done by `now`, since the start.
    #[must_use]
    pub fn report(&self, now: Nanos) -> Report {
        let shared = &self.shared;
        let ended = shared.ended.borrow().clone();
        let end = ended.as_ref().map_or(now, |(at, _)| *at);
        Report {
            length: end.saturating_sub(self.began),
            ending: ended.map(|(_, ending)| ending),
            threads: shared.workload.threads.iter().map(report::thread_name).collect(),
            rows: shared.stats.rows(),
            snapshots: Vec::new(),
            messages: shared.messages.borrow().clone(),
            filesets: report::made(&shared.workload, shared.sets.iter().map(|set| &set.tree)),
            echoes: shared.workload.echoes.clone(),
            shows_histograms: shared.workload.latency_histograms,
        }
    }
}

/// Instances of threads in order, with what they wait at, and how many instances of processes there are.
fn seats(rt: &Handle, workload: &Workload) -> (Vec<ThreadInstance>, usize) {
    let mut seats = Vec::new();
    let mut first = 0;
    let mut previous = None;
    let mut processes = 0;
    for (index, thread) in workload.threads.iter().enumerate() {
        if previous != Some(thread.process) {
            first = processes;
            processes += thread.process_instances as usize;
            previous = Some(thread.process);
        }
        let mut waits = vec![None; thread.simple.len()];
        note_waits(&thread.flowops, &mut waits);
        for instance in 0..thread.process_instances as usize {
            for _ in 0..thread.instances {
                let is = |op: Op| move |wait: &Option<(Op, u64)>| wait.filter(|(is, _)| *is == op);
                let gates = waits.iter().map(is(Op::Block));
                let semaphores = waits.iter().map(is(Op::Semblock));
                seats.push(ThreadInstance {
                    thread: index,
                    process: first + instance,
                    gates: gates
                        .map(|gate| gate.map(|_| Rc::new(Notify::new(rt, "a wakeup"))))
                        .collect(),
                    semaphores: semaphores
                        .map(|wait| wait.map(|(_, high)| Rc::new(Semaphore::new(rt, high))))
                        .collect(),
                });
            }
        }
    }
    (seats, processes)
}

/// Flowops that wait for others, by number, with their high-water marks.
fn note_waits(flowops: &[Flowop], waits: &mut [Option<(Op, u64)>]) {
    for flowop in flowops {
        match &flowop.body {
            Body::Simple(index, op @ (Op::Block | Op::Semblock), arguments) => {
                waits[*index] = Some((*op, arguments.highwater));
            }
            Body::Simple(..) => {}
            Body::Composite(inner) => note_waits(inner, waits),
        }
    }
}
