//! The queue behind semaphores, locks and bounded channels: permits, and those who wait for some.
//!
//! Invariant: the head of the queue wants more permits than there are. Tickets grow along the queue;
//! a waiter whose ticket is no longer in it has been granted what it waited for.

use crate::handle::Handle;
use crate::held::Held;
use crate::shared::Core;
use crate::task::TaskId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

struct Waiter {
    ticket: u64,
    permits: u32,
    task: TaskId,
}

#[derive(Default)]
struct State {
    permits: u32,
    waiters: VecDeque<Waiter>,
    next_ticket: u64,
}

impl State {
    fn position(&self, ticket: u64) -> Option<usize> {
        self.waiters.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()
    }
}

/// Permits that are handed out in order.
pub(super) struct Permits {
    core: Rc<Core>,
    name: &'static str,
    state: RefCell<State>,
}

impl Permits {
    pub(super) fn new(handle: &Handle, name: &'static str, permits: u32) -> Self {
        let state = RefCell::new(State { permits, ..State::default() });
        Self { core: Rc::clone(handle.core()), name, state }
    }

    /// Notes that the current task holds some.
    pub(super) fn note_held(&self) -> Held {
        Held::note(self.core.holders(), self.core.current(), self.name)
    }

    pub(super) fn available(&self) -> u32 {
        self.state.borrow().permits
    }

    /// Takes permits if no task waits and there are enough.
    pub(super) fn try_take(&self, permits: u32) -> bool {
        let mut state = self.state.borrow_mut();
        let free = state.waiters.is_empty() && state.permits >= permits;
        if free {
            state.permits -= permits;
        }
        free
    }

    /// Adds permits and grants them to those at the head of the queue.
    pub(super) fn give(&self, permits: u32) {
        let mut state = self.state.borrow_mut();
        state.permits = state.permits.saturating_add(permits);
        self.grant(&mut state);
    }

    fn grant(&self, state: &mut State) {
        while let Some(head) = state.waiters.pop_front_if(|head| head.permits <= state.permits) {
            state.permits -= head.permits;
            self.core.wake(head.task);
        }
    }

    /// Waits in line for `permits`. `kind` tells the report of a deadlock what they stand for.
    pub(super) fn take<'a>(&'a self, kind: &'static str, permits: u32) -> Take<'a> {
        Take { queue: self, kind, permits, ticket: None }
    }
}

/// Waits in line for permits; ends when they are taken.
pub(super) struct Take<'a> {
    queue: &'a Permits,
    kind: &'static str,
    permits: u32,
    /// The place in line, while waiting.
    ticket: Option<u64>,
}

impl Take<'_> {
    fn line_up(&mut self) -> Poll<()> {
        if self.queue.try_take(self.permits) {
            return Poll::Ready(());
        }
        let mut state = self.queue.state.borrow_mut();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        let task = self.queue.core.current();
        state.waiters.push_back(Waiter { ticket, permits: self.permits, task });
        self.ticket = Some(ticket);
        Poll::Pending
    }

    fn look(&mut self, ticket: u64) -> Poll<()> {
        let mut state = self.queue.state.borrow_mut();
        if let Some(position) = state.position(ticket) {
            state.waiters[position].task = self.queue.core.current();
            return Poll::Pending;
        }
        self.ticket = None;
        Poll::Ready(())
    }
}

impl Future for Take<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        let poll = match self.ticket {
            None => self.line_up(),
            Some(ticket) => self.look(ticket),
        };
        if poll.is_pending() {
            self.queue.core.note_wait(self.kind, self.queue.name);
        }
        poll
    }
}

impl Drop for Take<'_> {
    /// Leaves the line, which may let others through; gives back what was granted and not taken.
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.queue.state.borrow_mut();
        match state.position(ticket) {
            Some(position) => drop(state.waiters.remove(position)),
            None => state.permits = state.permits.saturating_add(self.permits),
        }
        self.queue.grant(&mut state);
    }
}
