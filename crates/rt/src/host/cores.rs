//! The queues of a host's cores: one FIFO per core over all users, and one for entries that any core may
//! take. Nothing is preempted.
//!
//! # Entries
//! - An entry of a *thread* has a cost that is known when it enters. It ends at its begin plus that cost.
//! - An entry of the *state machine* has a cost that is known only when it begins (locks are taken in order
//!   of arrival at the lock). [`Cores::start`] hands it out when its core is free, and [`Cores::occupy`]
//!   answers how long the core is taken.
//!
//! # Order
//! A core takes the entry with the lowest ticket among its own queue and the queue for any core. Where
//! several cores could take one entry, the core with the lowest number takes it.
//!
//! # Invariants
//! - A thread's entry waits in a queue only while its begin is unknown: an entry of the state machine is
//!   ahead of it, or one for any core has a lower ticket. All others are placed when they enter.
//! - A core that an entry of the state machine has occupied takes no other entry of the state machine before
//!   [`Cores::release`]: the state machine handles the end of one entry before it begins the next, and
//!   handles ends of one instant in its own order. Threads begin at the end without waiting for that.
//! - The state is a function of the calls and their instants. Threads and the state machine may call in any
//!   order at one instant; only the state machine's calls hand its entries out.

use super::threads::CoreId;
use crate::shared;
use crate::task::{TaskId, Wait};
use crate::time::Nanos;
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A position in the order of all entries of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ticket(u64);

/// Which cores may take an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Affinity {
    /// This one.
    Core(CoreId),
    /// Any: one that is free when an entry of the state machine is at the head, or as it is chosen when work of a thread
    /// enters.
    Any,
}

/// For what a core was used, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CoreTimes {
    /// Work of threads.
    pub threads: Nanos,
    /// Entries of the state machine (an FTL on the host), time that it spun for locks included.
    pub ftl: Nanos,
    /// The rest of the time.
    pub idle: Nanos,
}

impl CoreTimes {
    /// What came after `before`, which was taken of the same core earlier.
    pub(super) const fn since(&self, before: &Self) -> Self {
        Self {
            threads: self.threads.saturating_sub(before.threads),
            ftl: self.ftl.saturating_sub(before.ftl),
            idle: self.idle.saturating_sub(before.idle),
        }
    }
}

/// Who uses a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum User {
    Thread,
    Machine,
}

/// A stretch of time for which a core is taken.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: Nanos,
    end: Nanos,
    user: User,
}

/// A thread's entry whose begin was unknown when it entered.
pub(super) struct Turn {
    core: CoreId,
    end: Cell<Option<Nanos>>,
    task: Cell<TaskId>,
    rt: Rc<shared::Core>,
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn").field("core", &self.core).field("end", &self.end).finish()
    }
}

/// When a thread's entry ends.
pub(super) enum End {
    /// Then.
    At(Nanos),
    /// It is not known before entries ahead of it begin.
    Unknown(TurnEnd),
}

/// Waits until the end of a thread's entry is known. Dropped, it leaves the entry in its queue.
#[must_use = "a future does nothing unless awaited"]
pub(super) struct TurnEnd(Rc<Turn>);

impl Future for TurnEnd {
    type Output = Nanos;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Nanos> {
        let turn = &self.0;
        if let Some(end) = turn.end.get() {
            return Poll::Ready(end);
        }
        turn.task.set(turn.rt.current());
        turn.rt.note(Wait::Numbered("core", turn.core.number()));
        Poll::Pending
    }
}

#[derive(Debug)]
enum Entry {
    Machine(Ticket),
    Thread(Ticket, Nanos, Rc<Turn>),
}

/// What the state machine has of a core.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Hold {
    /// Nothing.
    #[default]
    None,
    /// An entry was handed out, and it is not known yet how long it takes.
    Unanswered,
    /// An entry whose end the state machine has not handled yet.
    Occupied,
}

#[derive(Default, Debug)]
struct Core {
    /// When everything placed so far is done.
    free_at: Nanos,
    /// Whether the last work that entered is of a thread that may work anywhere.
    is_common: bool,
    hold: Hold,
    queue: VecDeque<Entry>,
    /// What is placed and was not over at the last look, in order of time.
    placed: VecDeque<Span>,
    /// What is over.
    done: CoreTimes,
}

impl Core {
    /// Takes the core until `end`, from when it is free.
    fn place(&mut self, start: Nanos, end: Nanos, user: User, now: Nanos) {
        while let Some(span) = self.placed.pop_front_if(|span| span.end <= now) {
            self.done.add(&span, span.end);
        }
        self.placed.push_back(Span { start, end, user });
        self.free_at = end;
    }

    /// Places a thread's entry; when it ends.
    fn place_thread(&mut self, now: Nanos, cost: Nanos) -> Nanos {
        let start = self.free_at.max(now);
        let end = start.saturating_add(cost);
        self.place(start, end, User::Thread, now);
        end
    }

    /// The lowest ticket of the state machine that the core may take next.
    fn candidate(&self, any: Option<Ticket>) -> Option<Ticket> {
        let own = match self.queue.front() {
            Some(Entry::Machine(ticket)) => Some(*ticket),
            _ => None,
        };
        own.into_iter().chain(any).min()
    }

    fn times(&self, now: Nanos) -> CoreTimes {
        let mut times = self.done;
        self.placed.iter().for_each(|span| times.add(span, now));
        times.idle = now.saturating_sub(times.threads.saturating_add(times.ftl));
        times
    }
}

impl CoreTimes {
    /// Adds times of the same core, of another window.
    pub fn extend(&mut self, later: &Self) {
        self.threads = self.threads.saturating_add(later.threads);
        self.ftl = self.ftl.saturating_add(later.ftl);
        self.idle = self.idle.saturating_add(later.idle);
    }

    /// Adds what of a span lies before `until`.
    fn add(&mut self, span: &Span, until: Nanos) {
        let part = span.end.min(until).saturating_sub(span.start);
        let sum = match span.user {
            User::Thread => &mut self.threads,
            User::Machine => &mut self.ftl,
        };
        *sum = sum.saturating_add(part);
    }
}

/// The cores of a host and what waits for them.
#[derive(Debug)]
pub(super) struct Cores {
    cores: Box<[Core]>,
    /// One more than the last core that ever had work: those from it on are alike.
    used: usize,
    any: VecDeque<Ticket>,
    entered: u64,
    /// Entries of the state machine that were not handed out.
    waiting: usize,
    /// The core whose entry was handed out last and not answered.
    unanswered: Option<CoreId>,
    now: Nanos,
}

impl Cores {
    /// So many idle cores, at least one.
    pub(super) fn new(cores: u16) -> Self {
        Self {
            cores: (0..cores.max(1)).map(|_| Core::default()).collect(),
            used: 0,
            any: VecDeque::new(),
            entered: 0,
            waiting: 0,
            unanswered: None,
            now: Nanos::ZERO,
        }
    }

    pub(super) fn count(&self) -> u16 {
        self.cores.len() as u16
    }

    /// Lets time reach `now`. Entries that could have begun before must have been handed out and answered.
    fn pass_time(&mut self, now: Nanos) {
        if now <= self.now {
            return;
        }
        debug_assert!(self.unanswered.is_none(), "time passes an unanswered start");
        debug_assert!(
            self.next_start().is_none_or(|at| at >= now),
            "time passes {now} and an entry could have begun at {:?}",
            self.next_start()
        );
        self.now = now;
    }

    fn ticket(&mut self) -> Ticket {
        self.entered += 1;
        Ticket(self.entered)
    }

    /// Enters work of a thread.
    pub(super) fn enter(
        &mut self,
        now: Nanos,
        on: Affinity,
        cost: Nanos,
        rt: &Rc<shared::Core>,
    ) -> End {
        self.pass_time(now);
        let ticket = self.ticket();
        let core = match on {
            Affinity::Core(core) => core,
            Affinity::Any => self.first_free(),
        };
        self.note_work(core.index());
        let this = &mut self.cores[core.index()];
        this.is_common = on == Affinity::Any;
        if this.queue.is_empty() && self.any.is_empty() && this.hold != Hold::Unanswered {
            return End::At(this.place_thread(self.now, cost));
        }
        let task = Cell::new(TaskId::NONE);
        let turn = Rc::new(Turn { core, end: Cell::new(None), task, rt: Rc::clone(rt) });
        this.queue.push_back(Entry::Thread(ticket, cost, Rc::clone(&turn)));
        End::Unknown(TurnEnd(turn))
    }

    /// Notes that a core gets work.
    fn note_work(&mut self, index: usize) {
        self.used = self.used.max(index + 1);
    }

    /// The core for work of a thread that may work anywhere: the one that is done first with what is known to wait for it,
    /// which is the one with the shortest queue, of these the one that is free first. A thread whose core is only free
    /// between two pieces of its work would queue behind what is put there: so of equals it is one that such work had last,
    /// of these the one that has been idle longest, of these the first.
    fn first_free(&self) -> CoreId {
        let key = |index: &usize| {
            let core = &self.cores[*index];
            (core.queue.len(), core.free_at.max(self.now), !core.is_common, core.free_at)
        };
        let first = (0..self.cores.len().min(self.used + 1)).min_by_key(key);
        CoreId::new(first.unwrap_or(0) as u16)
    }

    /// Enters an entry of the state machine.
    pub(super) fn enqueue(&mut self, now: Nanos, on: Affinity) -> Ticket {
        self.pass_time(now);
        let ticket = self.ticket();
        match on {
            Affinity::Core(core) => {
                self.note_work(core.index());
                self.cores[core.index()].queue.push_back(Entry::Machine(ticket));
            }
            Affinity::Any => self.any.push_back(ticket),
        }
        self.waiting += 1;
        ticket
    }

    /// The earliest instant at which an entry of the state machine can begin, as far as is known.
    pub(super) fn next_start(&self) -> Option<Nanos> {
        if self.waiting == 0 {
            return None;
        }
        let any = self.any.front().copied();
        let ready = |core: &&Core| core.hold == Hold::None && core.candidate(any).is_some();
        self.cores.iter().filter(ready).map(|core| core.free_at.max(self.now)).min()
    }

    /// Hands out the entry of the state machine that begins first, if one begins by `now`.
    pub(super) fn start(&mut self, now: Nanos) -> Option<(CoreId, Ticket)> {
        self.pass_time(now);
        debug_assert!(self.unanswered.is_none(), "an entry begins before the last was answered");
        if self.waiting == 0 {
            return None;
        }
        let any = self.any.front().copied();
        let is_free = |core: &Core| core.hold == Hold::None && core.free_at <= now;
        let free = self.cores.iter().enumerate().filter(|(_, core)| is_free(core));
        let (ticket, index) =
            free.filter_map(|(index, core)| Some((core.candidate(any)?, index))).min()?;
        let core = CoreId::new(index as u16);
        self.note_work(index);
        self.cores[index].hold = Hold::Unanswered;
        self.unanswered = Some(core);
        self.waiting -= 1;
        if any == Some(ticket) {
            self.any.pop_front();
            (0..self.cores.len()).for_each(|index| self.place_threads(index));
        } else {
            self.cores[index].queue.pop_front();
        }
        Some((core, ticket))
    }

    /// Answers [`Cores::start`]: the core is taken until then.
    pub(super) fn occupy(&mut self, core: CoreId, until: Nanos) {
        debug_assert!(self.unanswered == Some(core), "core {core:?} was not handed out");
        self.unanswered = None;
        let this = &mut self.cores[core.index()];
        this.hold = Hold::Occupied;
        this.is_common = false;
        this.place(self.now, until.max(self.now), User::Machine, self.now);
        self.place_threads(core.index());
    }

    /// The state machine has handled the end of its entry on this core.
    pub(super) fn release(&mut self, core: CoreId) {
        debug_assert!(self.cores[core.index()].hold == Hold::Occupied, "{core:?} is not occupied");
        self.cores[core.index()].hold = Hold::None;
    }

    /// Places threads at the head of a core's queue whose begin is known now.
    fn place_threads(&mut self, index: usize) {
        let any = self.any.front().copied();
        let (this, now) = (&mut self.cores[index], self.now);
        while this.hold != Hold::Unanswered
            && let Some(Entry::Thread(ticket, cost, turn)) = this.queue.front()
            && any.is_none_or(|any| any > *ticket)
        {
            let (cost, turn) = (*cost, Rc::clone(turn));
            this.queue.pop_front();
            turn.end.set(Some(this.place_thread(now, cost)));
            turn.rt.wake(turn.task.get());
        }
    }

    /// For what each core was used until `now`.
    pub(super) fn busy(&self, now: Nanos) -> Vec<CoreTimes> {
        self.cores.iter().map(|core| core.times(now)).collect()
    }
}
