//! A thread of a workload at work: its loop, its descriptors, its counts.

use super::super::model::{Arguments, Body, Flowop, QuitMode, Thread, Watched};
use super::super::ops::Op;
use super::super::resolve::DESCRIPTORS;
use super::Shared;
use super::skew::Skew;
use super::spans::FlowopSpan;
use super::stats::Counts;
use super::waiting::Semaphore;
use nandscape_fs::contract::{Caller, FsError, Ino, Io};
use nandscape_rt::host::CoreId;
use nandscape_rt::sync::Notify;
use nandscape_rt::{Handle, Nanos, Stream};
use std::cell::Cell;
use std::rc::Rc;

/// Flowops that a thread may do at one instant; one that does more gets nowhere.
const STILL_MAX: u32 = 1_000_000;

/// Why a thread does not go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// There is no file of the kind that it needs.
    NoFile(String),
    /// It has done what it was to do.
    Done,
    /// Something went wrong.
    Failed(String),
}

pub(super) type Step<T = ()> = Result<T, Stop>;

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// Threads had done what they were to do.
    Finished,
    /// Something went wrong.
    Failed(String),
}

/// An open file.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub(super) ino: Ino,
    pub(super) position: u64,
    pub(super) io: Io,
    pub(super) is_sync: bool,
}

/// A descriptor. It remembers its file when that is closed, as in Filebench.
#[derive(Clone, Copy, Default)]
pub(super) struct Descriptor {
    /// Fileset and file.
    pub(super) file: Option<(usize, u32)>,
    pub(super) open: Option<Open>,
}

/// What a flowop of a thread remembers from one time to the next.
#[derive(Clone, Copy, Default)]
pub(super) struct Memory {
    pub(super) counts: Counts,
    /// Of a limit: what it saw last, and how far ahead of its events it is.
    pub(super) seen: Option<u64>,
    pub(super) ahead: i64,
    /// `value` and `workingset`, which are drawn once.
    pub(super) value: u64,
    pub(super) workingset: u64,
}

/// Writes that were not waited for.
pub(super) struct Pending {
    pub(super) outstanding: Cell<u64>,
    pub(super) failed: Cell<Option<FsError>>,
    pub(super) ended: Notify,
}

/// One instance of a thread.
pub(super) struct Runner {
    pub(super) shared: Rc<Shared>,
    /// Index of the thread in the workload.
    pub(super) thread: usize,
    /// Instance of the process.
    pub(super) process: usize,
    /// Number of the thread, from 1.
    pub(super) id: u32,
    pub(super) caller: Caller,
    /// The core that the thread runs on.
    pub(super) core: CoreId,
    pub(super) rng: Stream,
    pub(super) descriptors: Box<[Descriptor; DESCRIPTORS]>,
    /// The descriptor that `opennext` took last.
    pub(super) rotor: usize,
    pub(super) memories: Vec<Memory>,
    /// How popular places are, by flowop.
    pub(super) skews: Vec<Option<Skew>>,
    /// What this thread waits at, by flowop.
    pub(super) gates: Vec<Option<Rc<Notify>>>,
    pub(super) semaphores: Vec<Option<Rc<Semaphore>>>,
    pub(super) pending: Rc<Pending>,
}

impl Pending {
    pub(super) fn new(rt: &Handle) -> Rc<Self> {
        Rc::new(Self {
            outstanding: Cell::default(),
            failed: Cell::default(),
            ended: Notify::new(rt, "an asynchronous write"),
        })
    }
}

/// A list of flowops that is being gone through.
struct Frame<'a> {
    list: &'a [Flowop],
    at: usize,
    /// How often the present one is still to be done; none: it has not begun.
    left: Option<u64>,
}

impl<'a> Frame<'a> {
    const fn new(list: &'a [Flowop]) -> Self {
        Self { list, at: 0, left: None }
    }
}

/// A flowop being done.
#[derive(Clone, Copy)]
pub(super) struct FlowopCall<'a> {
    /// Its number in the thread.
    pub(super) index: usize,
    pub(super) op: Op,
    pub(super) arguments: &'a Arguments,
}

impl Runner {
    /// Goes round until something stops it.
    pub(super) async fn run(mut self) {
        let shared = Rc::clone(&self.shared);
        let thread = &shared.workload.threads[self.thread];
        self.remember(&thread.flowops);
        let stop = self.go_round(thread).await;
        shared.stopped(stop);
    }

    /// Draws what is drawn once.
    fn remember(&mut self, flowops: &[Flowop]) {
        for flowop in flowops {
            match &flowop.body {
                Body::Simple(index, _, arguments) => {
                    self.memories[*index].value = arguments.value.draw(&mut self.rng);
                    self.memories[*index].workingset = arguments.workingset.draw(&mut self.rng);
                }
                Body::Composite(inner) => self.remember(inner),
            }
        }
    }

    async fn go_round(&mut self, thread: &Thread) -> Stop {
        let mut frames = vec![Frame::new(&thread.flowops)];
        let (mut still, mut last) = (0, self.now());
        loop {
            if self.shared.stats.is_closed() {
                return Stop::Done;
            }
            (still, last) = if self.now() == last { (still + 1, last) } else { (0, self.now()) };
            if still > STILL_MAX {
                let why = "goes round without taking any time; is host.syscall_ns 0?";
                return Stop::Failed(format!("thread {} {why}", thread.name));
            }
            let above = frames.len() > 1;
            let Some(frame) = frames.last_mut() else { return Stop::Done };
            let Some(flowop) = frame.list.get(frame.at) else {
                if above {
                    frames.pop();
                } else {
                    frame.at = 0;
                }
                continue;
            };
            let left = frame.left.unwrap_or_else(|| flowop.iters.draw(&mut self.rng));
            frame.left = left.checked_sub(1);
            if frame.left.is_none() {
                frame.at += 1;
                continue;
            }
            match &flowop.body {
                Body::Composite(inner) => frames.push(Frame::new(inner)),
                Body::Simple(index, op, arguments) => {
                    let doing = FlowopCall { index: *index, op: *op, arguments };
                    match self.step(doing).await {
                        Ok(()) => {}
                        Err(Stop::Failed(why)) => {
                            return Stop::Failed(format!("flowop {}: {why}", flowop.name));
                        }
                        Err(Stop::NoFile(why)) => {
                            return Stop::NoFile(format!("flowop {}: {why}", flowop.name));
                        }
                        Err(Stop::Done) => return Stop::Done,
                    }
                }
            }
        }
    }

    async fn step(&mut self, doing: FlowopCall<'_>) -> Step {
        match doing.op {
            Op::Openfile => self.open_file(doing).await,
            Op::Createfile => self.create_file(doing).await,
            Op::Closefile => self.close_file(doing).await,
            Op::Deletefile => self.delete_file(doing).await,
            Op::Statfile => self.stat_file(doing).await,
            Op::Fsync => self.fsync(doing).await,
            Op::Fsyncset => self.fsync_set(doing).await,
            Op::Makedir => self.make_directory(doing).await,
            Op::Removedir => self.remove_directory(doing).await,
            Op::Listdir => self.list_directory(doing).await,
            Op::Read => self.read(doing).await,
            Op::Readwholefile => self.read_whole(doing).await,
            Op::Write => self.write(doing).await,
            Op::Writewholefile => self.write_whole(doing).await,
            Op::Appendfile | Op::Appendfilerand => self.append(doing).await,
            Op::Aiowrite => self.write_later(doing).await,
            Op::Aiowait => self.wait_for_writes(doing).await,
            Op::Block | Op::Wakeup | Op::Semblock | Op::Sempost => self.meet(doing).await,
            Op::Hog | Op::Delay | Op::Print => self.pass_time(doing).await,
            Op::Eventlimit | Op::Bwlimit | Op::Iopslimit | Op::Opslimit => self.limit(doing).await,
            Op::Finishoncount | Op::Finishonbytes => self.finish(doing),
        }
    }

    pub(super) fn now(&self) -> Nanos {
        self.shared.rt.now()
    }

    /// Takes what a call takes of the thread's core.
    pub(super) async fn enter(&self) {
        self.work(self.shared.cost.call).await;
    }

    /// The same for a call that reads or writes so many bytes.
    pub(super) async fn enter_to_move(&self, bytes: u64, io: Io) {
        self.work(self.shared.cost.for_bytes(bytes, io)).await;
    }

    pub(super) async fn work(&self, cost: Nanos) {
        self.shared.host.work(&self.shared.rt, self.core, cost).await;
    }

    /// Notes that a flowop was done.
    pub(super) fn record(&mut self, doing: FlowopCall<'_>, began: Nanos, bytes: u64) {
        let end = self.now();
        let latency = end.saturating_sub(began);
        self.shared.spans.add(FlowopSpan {
            instance: self.id - 1,
            thread: self.thread as u32,
            flowop: doing.index as u32,
            start: began,
            end,
        });
        self.memories[doing.index].counts.add(doing.op, bytes);
        self.shared.stats.record(self.thread, doing.index, self.process, (latency, bytes));
    }

    /// The totals that a limit looks at.
    pub(super) fn watched(&self, watched: Watched) -> Counts {
        match watched {
            Watched::Process => self.shared.stats.process(self.process),
            Watched::Own(index) => self.memories[index].counts,
        }
    }
}

impl Shared {
    /// A thread has stopped; says what becomes of the run.
    fn stopped(&self, stop: Stop) {
        self.running.set(self.running.get().saturating_sub(1));
        let is_last = self.running.get() == 0;
        let ending = match (stop, self.workload.quit) {
            (Stop::Failed(why), _) => Some(RunEnd::Failed(why)),
            (_, QuitMode::FirstDone) | (Stop::Done, QuitMode::Timeout) => Some(RunEnd::Finished),
            (_, QuitMode::AllDone) => is_last.then_some(RunEnd::Finished),
            (Stop::NoFile(why), QuitMode::Timeout) => {
                let advice = "use more entries, fewer seconds, or \"set mode quit firstdone\"";
                Some(RunEnd::Failed(format!("{why}; {advice}")))
            }
        };
        if let Some(ending) = ending {
            self.end(ending);
        }
    }

    /// Ends the run, if it has not ended.
    pub(super) fn end(&self, ending: RunEnd) {
        let mut ended = self.ended.borrow_mut();
        if ended.is_none() {
            self.stats.close();
            *ended = Some((self.rt.now(), ending));
        }
    }
}
