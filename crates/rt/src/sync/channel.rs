//! Channels from many tasks to one, bounded or not. Messages arrive in the order they were sent;
//! senders of a full channel wait in line.

use super::permits::Permits;
use crate::handle::Handle;
use crate::shared::Core;
use crate::task::TaskId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use thiserror::Error;

struct State<T> {
    queue: VecDeque<T>,
    senders: usize,
    closed: bool,
    reader: TaskId,
}

struct Channel<T> {
    core: Rc<Core>,
    name: &'static str,
    state: RefCell<State<T>>,
    /// Free places; of an unbounded channel never asked for.
    room: Permits,
}

impl<T> Channel<T> {
    fn new(handle: &Handle, name: &'static str, capacity: u32) -> Rc<Self> {
        let queue = VecDeque::new();
        let state = State { queue, senders: 1, closed: false, reader: TaskId::NONE };
        let room = Permits::new(handle, name, capacity);
        let core = Rc::clone(handle.core());
        Rc::new(Self { core, name, state: RefCell::new(state), room })
    }

    fn push(&self, value: T) -> Result<(), SendError<T>> {
        let mut state = self.state.borrow_mut();
        if state.closed {
            return Err(SendError(value));
        }
        state.queue.push_back(value);
        self.core.wake(state.reader);
        Ok(())
    }

    fn add_sender(self: &Rc<Self>) -> Rc<Self> {
        self.state.borrow_mut().senders += 1;
        Rc::clone(self)
    }

    /// The reader learns that the last sender is gone.
    fn remove_sender(&self) {
        let mut state = self.state.borrow_mut();
        state.senders -= 1;
        if state.senders == 0 {
            self.core.wake(state.reader);
        }
    }
}

/// The receiver is gone; the message comes back.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
#[error("the channel is closed")]
pub struct SendError<T>(pub T);

/// A channel that holds up to `capacity` messages, at least one.
#[must_use]
pub fn bounded<T>(handle: &Handle, name: &'static str, capacity: u32) -> (Sender<T>, Receiver<T>) {
    let channel = Channel::new(handle, name, capacity.max(1));
    (Sender(Rc::clone(&channel)), Receiver { channel, bounded: true })
}

/// A channel without a limit.
#[must_use]
pub fn unbounded<T>(handle: &Handle, name: &'static str) -> (UnboundedSender<T>, Receiver<T>) {
    let channel = Channel::new(handle, name, 0);
    (UnboundedSender(Rc::clone(&channel)), Receiver { channel, bounded: false })
}

/// The sending end of a bounded channel.
pub struct Sender<T>(Rc<Channel<T>>);

impl<T> Sender<T> {
    /// Sends `value`, waiting in line while the channel is full.
    ///
    /// # Errors
    /// The message itself, when the receiver is gone.
    pub async fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.room.take("room in channel", 1).await;
        self.0.push(value)
    }

    /// Sends `value` if there is room and no task waits for it.
    ///
    /// # Errors
    /// The message itself, when there is none or the receiver is gone.
    pub fn try_send(&self, value: T) -> Result<(), SendError<T>> {
        if self.0.room.try_take(1) { self.0.push(value) } else { Err(SendError(value)) }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.add_sender())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.remove_sender();
    }
}

/// The sending end of an unbounded channel.
pub struct UnboundedSender<T>(Rc<Channel<T>>);

impl<T> UnboundedSender<T> {
    /// Sends `value`; never waits.
    ///
    /// # Errors
    /// The message itself, when the receiver is gone.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.push(value)
    }
}

impl<T> Clone for UnboundedSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.add_sender())
    }
}

impl<T> Drop for UnboundedSender<T> {
    fn drop(&mut self) {
        self.0.remove_sender();
    }
}

/// The receiving end; belongs to one task at a time.
pub struct Receiver<T> {
    channel: Rc<Channel<T>>,
    bounded: bool,
}

impl<T> Receiver<T> {
    /// The next message; `None` when there is none and no sender is left.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|_| {
            if let Some(value) = self.try_recv() {
                return Poll::Ready(Some(value));
            }
            let Channel { core, name, state, .. } = &*self.channel;
            if state.borrow().senders == 0 {
                return Poll::Ready(None);
            }
            state.borrow_mut().reader = core.current();
            core.note_wait("channel", name);
            Poll::Pending
        })
        .await
    }

    /// The next message, if there is one.
    pub fn try_recv(&mut self) -> Option<T> {
        let value = self.channel.state.borrow_mut().queue.pop_front()?;
        if self.bounded {
            self.channel.room.give(1);
        }
        Some(value)
    }

    /// Messages sent and not received.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.channel.state.borrow().queue.len()
    }
}

impl<T> Drop for Receiver<T> {
    /// A closed channel has room for all: senders that wait find it closed and get their message back.
    fn drop(&mut self) {
        let mut state = self.channel.state.borrow_mut();
        state.closed = true;
        let backlog = std::mem::take(&mut state.queue);
        drop(state);
        drop(backlog);
        self.channel.room.give(u32::MAX);
    }
}
