//! Notifications without a value: "look again".
//!
//! [`Notify::notify_one`] wakes the first who waits, or lets the next who comes pass at once (one
//! such token is kept, not more). [`Notify::notify_waiters`] wakes all who wait and keeps nothing;
//! [`Notify::notify_up_to`] wakes of them those who wait for no more than has been reached.
//! A task that tests its condition and then waits misses nothing, if it does not wait for anything
//! else in between.

use crate::handle::Handle;
use crate::shared::Core;
use crate::task::TaskId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

#[derive(Default)]
struct State {
    /// A notification that found no waiter.
    token: bool,
    /// Who waits, in order of their tickets.
    waiters: VecDeque<Waiter>,
    /// Tickets that hold the one notification meant for one, until they are polled.
    singled_out: Vec<u64>,
    next_ticket: u64,
}

struct Waiter {
    ticket: u64,
    task: TaskId,
    /// What must be reached before it goes on.
    level: u64,
}

struct Inner {
    core: Rc<Core>,
    name: &'static str,
    state: RefCell<State>,
}

impl Inner {
    fn notify_one(&self) {
        let mut state = self.state.borrow_mut();
        match state.waiters.pop_front() {
            Some(Waiter { ticket, task, .. }) => {
                state.singled_out.push(ticket);
                self.core.wake(task);
            }
            None => state.token = true,
        }
    }
}

/// Something that tasks wait for to happen.
#[derive(Clone)]
pub struct Notify(Rc<Inner>);

impl Notify {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(handle: &Handle, name: &'static str) -> Self {
        let core = Rc::clone(handle.core());
        Self(Rc::new(Inner { core, name, state: RefCell::default() }))
    }

    /// Wakes the task that has waited longest; if there is none, the next to wait passes at once.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes every task that waits now, in the order in which they came.
    pub fn notify_waiters(&self) {
        self.notify_up_to(u64::MAX);
    }

    /// Wakes every task that waits now for a level up to this one, in the order in which they came.
    pub fn notify_up_to(&self, level: u64) {
        self.0.state.borrow_mut().waiters.retain(|waiter| {
            let stays = waiter.level > level;
            if !stays {
                self.0.core.wake(waiter.task);
            }
            stays
        });
    }

    /// Waits for a notification; in line from the first poll on.
    pub fn notified(&self) -> Notified {
        self.notified_at(0)
    }

    /// Waits for a notification that reaches this level, or for [`Notify::notify_one`].
    pub fn notified_at(&self, level: u64) -> Notified {
        Notified { notify: Rc::clone(&self.0), level, ticket: None }
    }
}

/// Waits for a notification.
#[must_use = "a future does nothing unless awaited"]
pub struct Notified {
    notify: Rc<Inner>,
    level: u64,
    /// The place in line, while waiting.
    ticket: Option<u64>,
}

impl Notified {
    fn line_up(&mut self) -> Poll<()> {
        let mut state = self.notify.state.borrow_mut();
        if std::mem::take(&mut state.token) {
            return Poll::Ready(());
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        let (task, level) = (self.notify.core.current(), self.level);
        state.waiters.push_back(Waiter { ticket, task, level });
        self.ticket = Some(ticket);
        Poll::Pending
    }

    fn look(&mut self, ticket: u64) -> Poll<()> {
        let mut state = self.notify.state.borrow_mut();
        if let Ok(position) = state.waiters.binary_search_by_key(&ticket, |waiter| waiter.ticket) {
            state.waiters[position].task = self.notify.core.current();
            return Poll::Pending;
        }
        state.singled_out.retain(|&holder| holder != ticket);
        self.ticket = None;
        Poll::Ready(())
    }
}

impl Future for Notified {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        let poll = match self.ticket {
            None => self.line_up(),
            Some(ticket) => self.look(ticket),
        };
        if poll.is_pending() {
            self.notify.core.note_wait("notification", self.notify.name);
        }
        poll
    }
}

impl Drop for Notified {
    /// Leaves the line; passes on a notification meant for one.
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.notify.state.borrow_mut();
        state.waiters.retain(|waiter| waiter.ticket != ticket);
        let held = state.singled_out.iter().position(|&holder| holder == ticket);
        if let Some(held) = held {
            state.singled_out.swap_remove(held);
            drop(state);
            self.notify.notify_one();
        }
    }
}
