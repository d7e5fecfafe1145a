//! What the FTL does on the cores of its host, and its locks by reservation. The host says when a task begins
//! on a core; then the locks on the way are reserved, first come, first served, and so the end is known. A
//! task that waits for a lock spins: its core is taken meanwhile.
//!
//! A request runs on its submitter's core, a thread of the FTL on the core that is free first.

use super::ids::BufferId;
use crate::face::{CpuSpan, CpuTrack, CpuWork};
use crate::pblk::costs::{CpuCosts, CpuCounts, LockCounts, MapUpdate};
use nandscape_block::{Bio, Op, Token};
use nandscape_rt::Nanos;
use nandscape_rt::host::{Affinity, CoreId, Host, Ticket};
use std::collections::VecDeque;

/// A request on its way to the FTL.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) bio: Bio,
    pub(super) token: Token,
    /// When the host submitted it.
    pub(super) since: Nanos,
    /// The buffer that it enters, once it has taken the lock.
    pub(super) buffer: Option<BufferId>,
}

/// What a core does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Task {
    /// Brings this request in.
    Request(u32),
    /// Builds the command of this unit of a buffer, of so many sectors.
    Build(BufferId, u64, u32),
    /// Puts so many copies into a buffer.
    Copy(BufferId, u32),
    /// Builds commands for mapping blocks.
    Map(MapOrder),
}

/// What the mapping thread does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MapOrder {
    pub(super) what: MapTask,
    /// Commands, and sectors of all of them.
    pub(super) commands: u32,
    pub(super) sectors: u32,
}

/// Commands for mapping blocks that are issued together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MapTask {
    /// Reads this block into the cache.
    Load(u32),
    /// Reads the block, the second, that the write-back with the first number merges its entries into.
    Merge(u32, u32),
    /// Reads what is copied out of a mapping line next.
    Copies,
    /// Writes the unit with this number.
    Unit(u32),
}

/// What a task asks of the locks.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LockDemand {
    /// Buffers whose locks it takes, a bit each.
    pub(super) rings: u64,
    /// Sectors that enter them.
    pub(super) inserted: u32,
    /// Sectors whose mapping is looked up or changed.
    pub(super) mapped: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    ticket: Ticket,
    since: Nanos,
    task: Task,
}

/// Tasks, locks and counts of a pblk on its host.
#[derive(Debug)]
pub(super) struct CpuQueues {
    costs: CpuCosts,
    map_update: MapUpdate,
    host: Host,
    running: Vec<Option<Task>>,
    /// Tasks that wait for a core, in order of their tickets.
    waiting: VecDeque<Waiting>,
    requests: Vec<Option<Request>>,
    unused: Vec<u32>,
    /// When each buffer's lock is free.
    rings: Vec<Nanos>,
    map: Nanos,
    writing: Vec<bool>,
    collecting: bool,
    /// What the mapping thread has to do, what it does now included.
    mapping: VecDeque<MapOrder>,
    counts: CpuCounts,
    log: Option<Vec<CpuSpan>>,
    log_room: usize,
}

impl CpuQueues {
    /// No task, free locks.
    pub(super) fn new(costs: CpuCosts, map_update: MapUpdate, host: Host, buffers: usize) -> Self {
        let count = usize::from(host.cores());
        Self {
            costs,
            map_update,
            host,
            running: vec![None; count],
            waiting: VecDeque::new(),
            requests: Vec::new(),
            unused: Vec::new(),
            rings: vec![Nanos::ZERO; buffers],
            map: Nanos::ZERO,
            writing: vec![false; buffers],
            collecting: false,
            mapping: VecDeque::new(),
            counts: CpuCounts::new(count, buffers),
            log: None,
            log_room: 0,
        }
    }

    /// A request comes in and waits for its core.
    pub(super) fn enter(&mut self, now: Nanos, bio: Bio, token: Token) {
        let core = self.host.core(bio.owner.map_or(0, |owner| owner.core));
        let request = Some(Request { bio, token, since: now, buffer: None });
        let number = self.unused.pop().unwrap_or_else(|| {
            self.requests.push(None);
            self.requests.len() as u32 - 1
        });
        self.requests[number as usize] = request;
        self.enqueue(now, Affinity::Core(core), Task::Request(number));
    }

    /// A thread of the FTL has something to do and waits for a core.
    pub(super) fn wake(&mut self, now: Nanos, task: Task) {
        match task {
            Task::Build(id, ..) => self.writing[usize::from(id)] = true,
            Task::Copy(..) => self.collecting = true,
            Task::Request(_) | Task::Map(_) => {}
        }
        self.enqueue(now, Affinity::Any, task);
    }

    /// The mapping thread has one more order, and does one after the other.
    pub(super) fn order(&mut self, now: Nanos, order: MapOrder) {
        self.mapping.push_back(order);
        if self.mapping.len() == 1 {
            self.wake(now, Task::Map(order));
        }
    }

    fn enqueue(&mut self, since: Nanos, on: Affinity, task: Task) {
        let ticket = self.host.enqueue(since, on);
        self.waiting.push_back(Waiting { ticket, since, task });
    }

    /// The next task that begins now, and its core. To be answered by [`CpuQueues::begin`].
    #[must_use = "the core is taken until `begin` answers"]
    pub(super) fn next(&mut self, now: Nanos) -> Option<(CoreId, Task)> {
        let (core, ticket) = self.host.start(now)?;
        let at = self.waiting.binary_search_by_key(&ticket, |waiting| waiting.ticket);
        let waiting = at.ok().and_then(|at| self.waiting.remove(at))?;
        self.count_wait(now - waiting.since, waiting.task);
        Some((core, waiting.task))
    }

    /// The earliest instant at which a task can begin on a core that others use.
    #[inline]
    pub(super) fn next_start(&self) -> Option<Nanos> {
        self.host.next_start()
    }

    fn count_wait(&mut self, wait: Nanos, task: Task) {
        let sum = match task {
            Task::Request(_) => &mut self.counts.core_wait_ns,
            Task::Build(id, ..) => &mut self.counts.writers[usize::from(id)].wait_ns,
            Task::Copy(..) => &mut self.counts.collector.wait_ns,
            Task::Map(_) => &mut self.counts.mapper.wait_ns,
        };
        *sum += wait.0;
    }

    /// A request that has not come in yet; `None`: it was given up.
    pub(super) fn request_mut(&mut self, number: u32) -> Option<&mut Request> {
        self.requests[number as usize].as_mut()
    }

    /// A core begins a task; when it is done.
    pub(super) fn begin(
        &mut self,
        now: Nanos,
        core: CoreId,
        task: Task,
        demand: LockDemand,
    ) -> Nanos {
        let work = self.work_of(task);
        let costs = self.costs;
        let times = |ns: u64, sectors: u32| Nanos(ns.saturating_mul(u64::from(sectors)));
        let end = match task {
            Task::Request(_) => {
                let at = now.saturating_add(Nanos(costs.submit_ns));
                let at = self.pass_locks(at, core, demand, work);
                at.saturating_add(times(costs.copy_sector_ns, demand.inserted))
            }
            Task::Build(_, _, sectors) => now
                .saturating_add(Nanos(costs.writer_unit_ns))
                .saturating_add(times(costs.writer_sector_ns, sectors)),
            Task::Copy(_, sectors) => {
                let at = self.pass_locks(now, core, demand, work);
                at.saturating_add(times(costs.gc_sector_ns, sectors))
            }
            Task::Map(MapOrder { commands, sectors, .. }) => now
                .saturating_add(times(costs.map_command_ns, commands))
                .saturating_add(times(costs.map_block_sector_ns, sectors)),
        };
        self.running[core.index()] = Some(task);
        self.host.occupy(core, end);
        self.count_run(core, task, work, (now, end));
        end
    }

    fn work_of(&self, task: Task) -> CpuWork {
        match task {
            Task::Build(..) => CpuWork::Build,
            Task::Copy(..) => CpuWork::Copy,
            Task::Map(MapOrder { what: MapTask::Unit(_), .. }) => CpuWork::WriteMap,
            Task::Map(_) => CpuWork::LoadMap,
            Task::Request(number) => match &self.requests[number as usize] {
                Some(request) => work_of(&request.bio),
                None => CpuWork::Flush,
            },
        }
    }

    /// Takes the locks on the way one after the other; when the last is left.
    fn pass_locks(&mut self, now: Nanos, core: CoreId, demand: LockDemand, work: CpuWork) -> Nanos {
        let costs = self.costs;
        let mut at = now;
        let inserted = costs.ring_sector_ns.saturating_mul(u64::from(demand.inserted));
        let hold = Nanos(costs.ring_request_ns.saturating_add(inserted));
        for id in (0..self.rings.len()).filter(|&id| demand.rings & 1 << id != 0) {
            let start = at.max(self.rings[id]);
            count_lock(&mut self.counts.rings[id], start - at, hold);
            at = start.saturating_add(hold);
            self.rings[id] = at;
            self.note(CpuTrack::Ring(id as u8), work, core, (start, at));
        }
        let hold = Nanos(costs.map_sector_ns.saturating_mul(u64::from(demand.mapped)));
        if self.map_update == MapUpdate::Atomic || demand.mapped == 0 {
            return at.saturating_add(hold);
        }
        let start = at.max(self.map);
        count_lock(&mut self.counts.map, start - at, hold);
        self.map = start.saturating_add(hold);
        self.note(CpuTrack::Map, work, core, (start, self.map));
        self.map
    }

    fn count_run(&mut self, core: CoreId, task: Task, work: CpuWork, (start, end): (Nanos, Nanos)) {
        let ran = (end - start).0;
        self.counts.cores_busy_ns[core.index()] += ran;
        self.note(CpuTrack::Core(core.number()), work, core, (start, end));
        let (track, thread) = match task {
            Task::Request(_) => {
                self.counts.requests += 1;
                return;
            }
            Task::Build(id, ..) => {
                (CpuTrack::Writer(id), &mut self.counts.writers[usize::from(id)])
            }
            Task::Copy(..) => (CpuTrack::Collector, &mut self.counts.collector),
            Task::Map(_) => (CpuTrack::Mapper, &mut self.counts.mapper),
        };
        thread.jobs += 1;
        thread.busy_ns += ran;
        self.note(track, work, core, (start, end));
    }

    /// A core is done with its task, and may begin another.
    pub(super) fn end(&mut self, now: Nanos, core: CoreId) -> Option<Task> {
        let task = self.running[core.index()].take()?;
        self.host.release(core);
        match task {
            Task::Build(id, ..) => self.writing[usize::from(id)] = false,
            Task::Copy(..) => self.collecting = false,
            Task::Map(_) => {
                self.mapping.pop_front();
                if let Some(&next) = self.mapping.front() {
                    self.wake(now, Task::Map(next));
                }
            }
            Task::Request(_) => {}
        }
        Some(task)
    }

    /// A request has come in.
    pub(super) fn take(&mut self, number: u32) -> Option<Request> {
        self.unused.push(number);
        self.requests[number as usize].take()
    }

    /// Whether a buffer's writer thread has something to do already.
    #[inline]
    pub(super) fn is_writing(&self, id: BufferId) -> bool {
        self.writing[usize::from(id)]
    }

    /// Whether the collecting thread has.
    pub(super) const fn is_collecting(&self) -> bool {
        self.collecting
    }

    /// Whether no thread of the FTL has anything to do.
    pub(super) fn is_idle(&self) -> bool {
        !self.collecting && self.mapping.is_empty() && !self.writing.contains(&true)
    }

    /// Cores that bring a request in: their ends are nothing that the FTL itself waits for.
    pub(super) fn bringing_in(&self) -> usize {
        self.running.iter().filter(|task| matches!(task, Some(Task::Request(_)))).count()
    }

    /// The reads that have not come in.
    pub(super) fn take_reads(&mut self) -> Vec<(Bio, Token)> {
        let is_read = |request: &mut Request| request.bio.op == Op::Read;
        let reads = self.requests.iter_mut().filter_map(|slot| slot.take_if(is_read));
        reads.map(|request| (request.bio, request.token)).collect()
    }

    /// Every request that has not come in, given up.
    pub(super) fn abandon(&mut self) -> Vec<Token> {
        let tokens = self.requests.iter_mut().filter_map(Option::take);
        tokens.map(|request| request.token).collect()
    }

    /// What was counted.
    pub(super) const fn counts(&self) -> &CpuCounts {
        &self.counts
    }

    /// Begins to count from nothing.
    pub(super) fn reset_counts(&mut self) {
        self.counts = CpuCounts::new(self.running.len(), self.rings.len());
    }

    /// Logs with so much room from now on, or no more; what was logged so far.
    pub(super) fn relog(&mut self, room: Option<usize>) -> Vec<CpuSpan> {
        self.log_room = room.unwrap_or(0);
        std::mem::replace(&mut self.log, room.map(|_| Vec::new())).unwrap_or_default()
    }

    fn note(&mut self, track: CpuTrack, work: CpuWork, core: CoreId, (start, end): (Nanos, Nanos)) {
        let room = self.log_room;
        if let Some(log) = self.log.as_mut().filter(|log| log.len() < room && start < end) {
            log.push(CpuSpan { track, work, core: core.number(), start, end });
        }
    }
}

fn count_lock(counts: &mut LockCounts, wait: Nanos, hold: Nanos) {
    counts.taken += 1;
    counts.held_ns += hold.0;
    counts.wait_ns += wait.0;
    counts.wait_ns_max = counts.wait_ns_max.max(wait.0);
}

fn work_of(bio: &Bio) -> CpuWork {
    use nandscape_block::Op;
    match bio.op {
        Op::Read => CpuWork::Read,
        Op::Write => CpuWork::Write,
        Op::Discard => CpuWork::Discard,
        _ => CpuWork::Flush,
    }
}
