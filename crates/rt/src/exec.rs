//! The executor: one thread, tasks in a slab, a first-in first-out ready queue, a timer heap, and a
//! clock.
//!
//! The order in which tasks run is part of the contract (see the crate's documentation); it is
//! decided here and in [`crate::task`] and [`crate::timer`]. No borrow of the executor's state is
//! held while a future is polled or dropped, so either may do anything a [`Handle`] offers.

use crate::clock::Clock;
use crate::inbox::{Inbox, Injector, Note, waker};
use crate::join::{JoinHandle, Outcome};
use crate::task::{Body, TaskId, Tasks, Wait};
use crate::time::Nanos;
use crate::timer::{Sleep, Timers};
use futures_util::FutureExt;
use std::borrow::Cow;
use std::cell::{Cell, RefCell, RefMut};
use std::fmt;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use thiserror::Error;

/// What the executor and its handles share.
pub(crate) struct Core {
    clock: Clock,
    now: Cell<Nanos>,
    /// The task being polled.
    current: Cell<TaskId>,
    tasks: RefCell<Tasks>,
    timers: RefCell<Timers>,
    inbox: Arc<Inbox>,
}

impl Core {
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.now.get()
    }

    #[inline]
    pub(crate) fn current(&self) -> TaskId {
        self.current.get()
    }

    #[inline]
    pub(crate) fn timers(&self) -> RefMut<'_, Timers> {
        self.timers.borrow_mut()
    }

    #[inline]
    pub(crate) fn wake(&self, task: TaskId) {
        self.tasks.borrow_mut().wake(task);
    }

    /// Notes what the current task waits for, until its next poll.
    pub(crate) fn note_wait(&self, kind: &'static str, name: &'static str) {
        self.note(Wait::On(kind, name));
    }

    pub(crate) fn note(&self, wait: Wait) {
        self.tasks.borrow_mut().note(self.current(), wait);
    }

    pub(crate) fn abort(&self, task: TaskId) {
        let body = self.tasks.borrow_mut().abort(task);
        drop(body);
    }

    /// Polls tasks in turn until `over`, moving the clock whenever none is ready.
    fn run(self: &Rc<Self>, over: impl Fn() -> bool) -> Result<(), Deadlock> {
        while !over() {
            self.fire(self.clock.reading());
            self.take_notes();
            // A batch, not the whole queue: busy tasks must not keep the real clock from its timers.
            let batch = self.tasks.borrow().ready_len();
            if batch == 0 {
                self.idle()?;
            }
            for _ in 0..batch {
                self.poll_next();
                self.take_notes();
                if over() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Sets the clock to `now`, if given, and wakes every task whose timer is due.
    #[inline]
    fn fire(&self, now: Option<Nanos>) {
        let Some(now) = now else { return };
        self.now.set(now);
        let mut timers = self.timers.borrow_mut();
        while let Some(task) = timers.pop_due(now) {
            self.wake(task);
        }
    }

    /// Waits for the next timer.
    fn idle(&self) -> Result<(), Deadlock> {
        let next = self.timers.borrow().next();
        match (&self.clock, next) {
            (Clock::Virtual, Some(at)) => self.fire(Some(at)),
            (Clock::Virtual, None) => return Err(self.deadlock()),
            (Clock::Real(_), _) => {
                let span = next.map(|at| Duration::from_nanos(at.saturating_sub(self.now()).0));
                self.inbox.wait(span);
            }
        }
        Ok(())
    }

    /// Does what is due up to `until`, and leaves the virtual clock there.
    fn run_until(self: &Rc<Self>, until: Nanos) {
        loop {
            self.take_notes();
            while self.tasks.borrow().ready_len() > 0 {
                self.poll_next();
                self.take_notes();
            }
            let next = self.timers.borrow().next().filter(|at| *at <= until);
            if next.is_none() {
                break;
            }
            self.fire(next);
        }
        self.now.set(self.now().max(until));
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.tasks.borrow().ready_len() > 0 || self.inbox.is_full() {
            return Some(self.now());
        }
        self.timers.borrow().next()
    }

    #[inline]
    fn poll_next(&self) {
        let next = self.tasks.borrow_mut().next_ready();
        let Some((id, mut body)) = next else { return };
        self.current.set(id);
        let poll = body.future.as_mut().poll(&mut Context::from_waker(&body.waker));
        self.current.set(TaskId::NONE);
        let over = match poll {
            Poll::Pending => self.tasks.borrow_mut().put_back(id, body),
            Poll::Ready(()) => {
                self.tasks.borrow_mut().remove(id);
                Some(body)
            }
        };
        drop(over);
    }

    /// Does what was sent from outside a poll.
    #[inline]
    fn take_notes(self: &Rc<Self>) {
        if self.inbox.is_full() {
            self.open_notes();
        }
    }

    #[cold]
    fn open_notes(self: &Rc<Self>) {
        for note in self.inbox.take() {
            match note {
                Note::Wake(task) => self.wake(task),
                Note::Call(call) => call(&Handle(Rc::clone(self))),
            }
        }
    }

    fn deadlock(&self) -> Deadlock {
        Deadlock { at: self.now(), waiting: self.tasks.borrow().waiting(false) }
    }
}

/// A single-threaded executor on one of the two clocks.
pub struct Executor(Rc<Core>);

impl Executor {
    fn new(clock: Clock) -> Self {
        Self(Rc::new(Core {
            clock,
            now: Cell::new(Nanos::ZERO),
            current: Cell::new(TaskId::NONE),
            tasks: RefCell::default(),
            timers: RefCell::default(),
            inbox: Arc::default(),
        }))
    }

    /// An executor whose clock stands at zero and jumps to the next timer when no task is ready.
    #[must_use]
    pub fn on_virtual_clock() -> Self {
        Self::new(Clock::Virtual)
    }

    /// An executor whose clock runs by itself from zero on, and the way to reach it from other
    /// threads. When nothing is to be done it waits for the next timer or for the injector.
    #[must_use]
    pub fn on_real_clock() -> (Self, Injector) {
        let executor = Self::new(Clock::real());
        let injector = Injector(Arc::clone(&executor.0.inbox));
        (executor, injector)
    }

    /// A handle, for tasks and primitives.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(Rc::clone(&self.0))
    }

    /// Runs `main` as a task of that name, and every other task, until `main` ends. What is left of
    /// the others stays, and goes on in the next run.
    ///
    /// # Errors
    /// [`Deadlock`], on the virtual clock, when nothing can ever happen again.
    pub fn block_on<F>(&mut self, main: F) -> Result<F::Output, Deadlock>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let join = self.handle().spawn("main", main);
        self.0.run(|| join.is_finished())?;
        join.take().map_err(|_| self.0.deadlock())
    }

    /// Runs until every task has ended but for those spawned by [`Handle::spawn_daemon`].
    ///
    /// # Errors
    /// [`Deadlock`], on the virtual clock, when nothing can ever happen again.
    pub fn run(&mut self) -> Result<(), Deadlock> {
        self.0.run(|| self.0.tasks.borrow().awaited() == 0)
    }

    /// The instant of the next thing to be done, for somebody outside who keeps the time: now if a
    /// task is ready, else when the next timer is due. `None`: nothing can ever happen again.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }

    /// What each task waits for that a run would wait for; daemons, whose timers may keep the clock going
    /// for ever, are none of them.
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        self.0.tasks.borrow().waiting(true)
    }

    /// Does everything that is to be done up to and including `until`, and leaves the clock there. The
    /// real clock is not led: nothing happens on it.
    pub fn run_until(&mut self, until: Nanos) {
        if matches!(self.0.clock, Clock::Virtual) {
            self.0.run_until(until);
        }
    }
}

impl Drop for Executor {
    /// Drops every task, which hold handles and so would keep their executor alive.
    fn drop(&mut self) {
        loop {
            let body = self.0.tasks.borrow_mut().take_any();
            match body {
                Some(body) => drop(body),
                None => break,
            }
        }
        drop(self.0.inbox.close());
    }
}

/// The way to an executor, passed to whoever spawns, waits or asks for the time. Cheap to clone.
#[derive(Clone)]
pub struct Handle(Rc<Core>);

impl Handle {
    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.0
    }

    /// The time since the run began. On the real clock: when the executor last looked.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.0.now()
    }

    /// Whether time is virtual.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        matches!(self.0.clock, Clock::Virtual)
    }

    /// Starts a task; it is polled first after everything that is ready now. The task goes on when
    /// the join handle is dropped.
    pub fn spawn<F>(&self, name: impl Into<Cow<'static, str>>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.start(name.into(), true, future)
    }

    /// Starts a task that [`Executor::run`] does not wait for, one that serves others for ever.
    pub fn spawn_daemon<F>(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: F,
    ) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.start(name.into(), false, future)
    }

    fn start<F>(&self, name: Cow<'static, str>, awaited: bool, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let outcome = Outcome::new(self);
        let finish = outcome.promise();
        // An async block would hold the future twice: as it came, and as it is awaited.
        let future = Box::pin(future.map(move |output| finish.keep(output)));
        let id = self.0.tasks.borrow_mut().reserve(name, awaited);
        let waker = waker(id, &self.0.inbox);
        self.0.tasks.borrow_mut().start(id, Body { future, waker });
        JoinHandle::new(outcome, id)
    }

    /// Waits for `span`; a span of zero does not wait at all, nor gives way.
    #[inline]
    pub fn sleep(&self, span: Nanos) -> Sleep {
        self.sleep_until(self.now().saturating_add(span))
    }

    /// Waits until `deadline`, not at all if it has passed.
    #[inline]
    pub fn sleep_until(&self, deadline: Nanos) -> Sleep {
        Sleep::new(Rc::clone(&self.0), deadline)
    }

    /// Lets every task that is ready now go first.
    pub fn yield_now(&self) -> impl Future<Output = ()> + use<> {
        let core = Rc::clone(&self.0);
        let mut yielded = false;
        poll_fn(move |_| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            core.wake(core.current());
            Poll::Pending
        })
    }

    /// Moves the virtual clock to `t` at once, without giving way, if that passes nobody over: no
    /// task is ready, no timer is due at or before `t`, and `t` is not in the past. For a task that
    /// keeps its own events. False, and nothing happened, otherwise and on the real clock.
    #[inline]
    pub fn try_advance_to(&self, t: Nanos) -> bool {
        let core = &self.0;
        let free = self.is_virtual()
            && t >= core.now()
            && core.tasks.borrow().ready_len() == 0
            && core.timers.borrow().next().is_none_or(|next| next > t)
            && !core.inbox.is_full();
        if free {
            core.now.set(t);
        }
        free
    }
}

/// Nothing is ready, no timer is left, and work is unfinished.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
pub struct Deadlock {
    /// When.
    pub at: Nanos,
    /// Every task that has not ended.
    pub waiting: Vec<Waiting>,
}

/// A task that waits for ever.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The task's name.
    pub task: String,
    /// What it waits for, for example "mutex `journal`"; several under a select, none when it waits
    /// for something from outside the runtime.
    pub on: Vec<String>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadlock at {}", self.at)?;
        for (index, waiting) in self.waiting.iter().enumerate() {
            write!(f, "{}{waiting}", if index == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, on } = self;
        let on = if on.is_empty() { "something unnamed".to_owned() } else { on.join(" or ") };
        write!(f, "task `{task}` waits for {on}")
    }
}
