//! The letter box: what reaches the executor from outside a poll, wakes through a standard [`Waker`] and
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
pub(crate) enum Note<C> {
    /// Wake this task.
    Wake(TaskId),
    /// Call this on the executor's thread.
    Call(Box<dyn FnOnce(&C) + Send>),
}

struct Notes<C> {
    queue: VecDeque<Note<C>>,
    closed: bool,
}

/// The executor's letter box.
pub(crate) struct Inbox<C> {
    full: AtomicBool,
    notes: Mutex<Notes<C>>,
    bell: Condvar,
}

impl<C> Default for Inbox<C> {
    fn default() -> Self {
        let notes = Notes { queue: VecDeque::new(), closed: false };
        Self { full: AtomicBool::default(), notes: Mutex::new(notes), bell: Condvar::default() }
    }
}

impl<C> Inbox<C> {
    /// Whether something waits to be taken.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Takes everything sent so far.
    pub(crate) fn take(&self) -> VecDeque<Note<C>> {
        let mut notes = lock(&self.notes);
        self.full.store(false, Ordering::Release);
        std::mem::take(&mut notes.queue)
    }

    /// Refuses everything from now on.
    pub(crate) fn close(&self) -> VecDeque<Note<C>> {
        lock(&self.notes).closed = true;
        self.take()
    }

    /// Waits until something is sent, at most for `span`.
    pub(crate) fn wait(&self, span: Option<Duration>) {
        let notes = lock(&self.notes);
        let empty = |notes: &mut Notes<C>| notes.queue.is_empty();
        match span {
            Some(span) => drop(self.bell.wait_timeout_while(notes, span, empty)),
            None => drop(self.bell.wait_while(notes, empty)),
        }
    }

    pub(crate) fn send(&self, note: Note<C>) -> Result<(), Stopped> {
        let mut notes = lock(&self.notes);
        if notes.closed {
            return Err(Stopped);
        }
        notes.queue.push_back(note);
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
    inbox: Arc<Inbox<C>>,
}

impl<C: 'static> Wake for TaskWaker<C> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A stopped executor has no task left to wake.
        let _ = self.inbox.send(Note::Wake(self.task));
    }
}

/// The standard waker of a task.
pub(crate) fn waker<C: 'static>(task: TaskId, inbox: &Arc<Inbox<C>>) -> Waker {
    Arc::new(TaskWaker { task, inbox: Arc::clone(inbox) }).into()
}

/// The executor is gone, or the receiving end of a channel is.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
#[error("the executor has stopped")]
pub struct Stopped;
