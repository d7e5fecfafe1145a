//! The mailbox: what reaches the executor from outside a poll, wakes through a standard [`Waker`] and
//! calls from other threads, on whatever an executor lets them have.
//!
//! Everything sent is taken in the order it was sent. Between two polls the executor looks at one
//! flag; the lock is taken only when something was sent.
//!
//! [`Waker`]: std::task::Waker

use crate::task::TaskId;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;
use thiserror::Error;

/// One thing sent to the executor.
pub(crate) enum Message<C> {
    /// Wake this task.
    Wake(TaskId),
    /// Call this on the executor's thread.
    Call(Box<dyn FnOnce(&C) + Send>),
}

struct Messages<C> {
    queue: VecDeque<Message<C>>,
    closed: bool,
}

/// The executor's mailbox.
pub(crate) struct Mailbox<C> {
    full: AtomicBool,
    messages: Mutex<Messages<C>>,
    bell: Condvar,
}

impl<C> Default for Mailbox<C> {
    fn default() -> Self {
        let messages = Messages { queue: VecDeque::new(), closed: false };
        Self {
            full: AtomicBool::default(),
            messages: Mutex::new(messages),
            bell: Condvar::default(),
        }
    }
}

impl<C> Mailbox<C> {
    /// Whether something waits to be taken.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Takes everything sent so far.
    pub(crate) fn take(&self) -> VecDeque<Message<C>> {
        let mut messages = lock(&self.messages);
        self.full.store(false, Ordering::Release);
        std::mem::take(&mut messages.queue)
    }

    /// Refuses everything from now on.
    pub(crate) fn close(&self) -> VecDeque<Message<C>> {
        lock(&self.messages).closed = true;
        self.take()
    }

    /// Waits until something is sent, at most for `span`.
    pub(crate) fn wait(&self, span: Option<Duration>) {
        let messages = lock(&self.messages);
        let empty = |messages: &mut Messages<C>| messages.queue.is_empty();
        match span {
            Some(span) => drop(self.bell.wait_timeout_while(messages, span, empty)),
            None => drop(self.bell.wait_while(messages, empty)),
        }
    }

    pub(crate) fn send(&self, message: Message<C>) -> Result<(), Stopped> {
        let mut messages = lock(&self.messages);
        if messages.closed {
            return Err(Stopped);
        }
        messages.queue.push_back(message);
        self.full.store(true, Ordering::Release);
        self.bell.notify_one();
        Ok(())
    }
}

/// Data behind these locks is consistent between any two statements, so a panic elsewhere is no
/// reason to stop.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What stands behind a task's standard waker.
struct TaskWaker<C> {
    task: TaskId,
    mailbox: Arc<Mailbox<C>>,
}

impl<C: 'static> Wake for TaskWaker<C> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A stopped executor has no task left to wake.
        let _ = self.mailbox.send(Message::Wake(self.task));
    }
}

/// The standard waker of a task.
pub(crate) fn waker<C: 'static>(task: TaskId, mailbox: &Arc<Mailbox<C>>) -> Waker {
    Arc::new(TaskWaker { task, mailbox: Arc::clone(mailbox) }).into()
}

/// The executor is gone, or the receiving end of a channel is.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
#[error("the executor has stopped")]
pub struct Stopped;
