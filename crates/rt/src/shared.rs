//! What the executor and its handles share: the clock, the tasks, the timers and the mailbox; and how
//! they move.
//!
//! The order in which tasks run is part of the contract (see the crate's documentation); it is
//! decided here and in [`crate::task`] and [`crate::timer`]. No borrow of this state is held while a
//! future is polled or dropped, so either may do anything a handle offers.

use crate::clock::Clock;
use crate::deadlock::Deadlock;
use crate::held::Holders;
use crate::mailbox::{Mailbox, Message};
use crate::task::{TaskId, Tasks, Wait};
use crate::time::Nanos;
use crate::timer::Timers;
use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What the executor and its handles share.
pub(crate) struct Core {
    clock: Clock,
    now: Cell<Nanos>,
    /// The task being polled.
    current: Cell<TaskId>,
    tasks: RefCell<Tasks>,
    timers: RefCell<Timers>,
    mailbox: Arc<Mailbox<Rc<Self>>>,
    holders: Rc<Holders>,
}

impl Core {
    /// Time zero, and nothing to do.
    pub(crate) fn new(clock: Clock) -> Rc<Self> {
        Rc::new(Self {
            clock,
            now: Cell::new(Nanos::ZERO),
            current: Cell::new(TaskId::NONE),
            tasks: RefCell::default(),
            timers: RefCell::default(),
            mailbox: Arc::default(),
            holders: Rc::default(),
        })
    }

    #[inline]
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.clock, Clock::Virtual)
    }

    pub(crate) fn mailbox(&self) -> &Arc<Mailbox<Rc<Self>>> {
        &self.mailbox
    }

    pub(crate) fn tasks(&self) -> RefMut<'_, Tasks> {
        self.tasks.borrow_mut()
    }

    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.now.get()
    }

    #[inline]
    pub(crate) fn current(&self) -> TaskId {
        self.current.get()
    }

    pub(crate) const fn holders(&self) -> &Rc<Holders> {
        &self.holders
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
    pub(crate) fn run(self: &Rc<Self>, over: impl Fn() -> bool) -> Result<(), Deadlock> {
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
                self.mailbox.wait(span);
            }
        }
        Ok(())
    }

    /// Does what is due up to `until`, and leaves the virtual clock there.
    pub(crate) fn run_until(self: &Rc<Self>, until: Nanos) {
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

    /// Moves the virtual clock to `t` if that passes no timer. Whether it did.
    #[inline]
    pub(crate) fn try_advance_to(&self, t: Nanos) -> bool {
        let free = self.is_virtual()
            && t >= self.now()
            && self.tasks.borrow().ready_len() == 0
            && self.timers.borrow().next().is_none_or(|next| next > t)
            && !self.mailbox.is_full();
        if free {
            self.now.set(t);
        }
        free
    }

    pub(crate) fn next_event(&self) -> Option<Nanos> {
        if self.tasks.borrow().ready_len() > 0 || self.mailbox.is_full() {
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
        if self.mailbox.is_full() {
            self.open_notes();
        }
    }

    #[cold]
    fn open_notes(self: &Rc<Self>) {
        for message in self.mailbox.take() {
            match message {
                Message::Wake(task) => self.wake(task),
                Message::Call(call) => call(self),
            }
        }
    }

    pub(crate) fn deadlock(&self) -> Deadlock {
        Deadlock { at: self.now(), waiting: self.tasks.borrow().waiting(false) }
    }
}
