//! What flowops have done until now.

use super::super::model::Workload;
use super::super::ops::{Class, Op, Way};
use crate::latency::Latencies;
use nandscape_rt::Nanos;
use std::cell::{Cell, RefCell};

/// One flowop of a thread, over all instances.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Index of the thread in the workload.
    pub thread: usize,
    /// The flowop's name.
    pub name: String,
    /// What it does.
    pub op: Op,
    /// How often it was done.
    pub count: u64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// How long it took.
    pub latency: Latencies,
}

/// Sums over flowops.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sums {
    /// I/O of any kind.
    pub ops: u64,
    /// Reads of files.
    pub reads: u64,
    /// Writes to files.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes of names that were listed.
    pub listed_bytes: u64,
    /// Time that I/O took, added up.
    pub busy_ns: u128,
}

impl Sums {
    /// Of these rows: those that do I/O.
    #[must_use]
    pub fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut sums = Self::default();
        for row in rows.filter(|row| matches!(row.op.class(), Class::Io | Class::Aio)) {
            sums.ops += row.count;
            sums.busy_ns += row.latency.sum_ns();
            match row.op.way() {
                Some(Way::Read) => {
                    sums.reads += row.count;
                    sums.read_bytes += row.bytes;
                }
                Some(Way::Write) => {
                    sums.writes += row.count;
                    sums.written_bytes += row.bytes;
                }
                None => sums.listed_bytes += row.bytes,
            }
        }
        sums
    }

    /// Bytes that I/O moved.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.read_bytes + self.written_bytes + self.listed_bytes
    }

    /// What was added since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            ops: self.ops - earlier.ops,
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            read_bytes: self.read_bytes - earlier.read_bytes,
            written_bytes: self.written_bytes - earlier.written_bytes,
            listed_bytes: self.listed_bytes - earlier.listed_bytes,
            busy_ns: self.busy_ns - earlier.busy_ns,
        }
    }

    /// How long an operation took on average, in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.ops == 0 { 0.0 } else { self.busy_ns as f64 / self.ops as f64 }
    }
}

/// What limits look at: totals of I/O, of a process or of one flowop of a thread.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    pub(super) ops: u64,
    pub(super) moves: u64,
    pub(super) bytes: u64,
    pub(super) moved_bytes: u64,
}

impl Counts {
    /// One more operation.
    pub(super) const fn add(&mut self, op: Op, bytes: u64) {
        self.ops += 1;
        self.bytes += bytes;
        if op.way().is_some() {
            self.moves += 1;
            self.moved_bytes += bytes;
        }
    }
}

/// All counts of a run.
pub(super) struct Stats {
    /// By thread and flowop.
    rows: RefCell<Vec<Vec<Row>>>,
    /// By instance of a process.
    processes: Vec<Cell<Counts>>,
    /// Calls that made something durable.
    pub(super) fsyncs: Cell<u64>,
    /// What flowops that sync waited for cores and took of them.
    pub(super) fsync_thread_ns: Cell<u64>,
    /// Flowops of any kind that were done.
    done: Cell<u64>,
    /// Nothing is counted any more.
    is_closed: Cell<bool>,
}

impl Stats {
    pub(super) fn new(workload: &Workload, processes: usize) -> Self {
        let rows = workload.threads.iter().enumerate().map(|(thread, each)| {
            let row = |(name, op): &(String, Op)| Row {
                thread,
                name: name.clone(),
                op: *op,
                count: 0,
                bytes: 0,
                latency: Latencies::default(),
            };
            each.simple.iter().map(row).collect()
        });
        Self {
            rows: RefCell::new(rows.collect()),
            processes: (0..processes).map(|_| Cell::default()).collect(),
            fsyncs: Cell::default(),
            fsync_thread_ns: Cell::default(),
            done: Cell::default(),
            is_closed: Cell::default(),
        }
    }

    /// A flowop was done.
    pub(super) fn record(
        &self,
        thread: usize,
        flowop: usize,
        process: usize,
        (latency, bytes): (Nanos, u64),
    ) {
        if self.is_closed() {
            return;
        }
        self.done.set(self.done.get() + 1);
        let mut rows = self.rows.borrow_mut();
        let row = &mut rows[thread][flowop];
        row.count += 1;
        row.bytes += bytes;
        row.latency.record(latency);
        if matches!(row.op.class(), Class::Io | Class::Aio) {
            let mut counts = self.processes[process].get();
            counts.add(row.op, bytes);
            self.processes[process].set(counts);
        }
    }

    /// The run is over.
    pub(super) fn close(&self) {
        self.is_closed.set(true);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    pub(super) fn done(&self) -> u64 {
        self.done.get()
    }

    pub(super) fn process(&self, process: usize) -> Counts {
        self.processes[process].get()
    }

    pub(super) fn sums(&self) -> Sums {
        Sums::of(self.rows.borrow().iter().flatten())
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        self.rows.borrow().iter().flatten().cloned().collect()
    }

    /// Looks at the rows where they are.
    pub(super) fn with_rows<R>(&self, look: impl FnOnce(&mut dyn Iterator<Item = &Row>) -> R) -> R {
        look(&mut self.rows.borrow().iter().flatten())
    }
}
