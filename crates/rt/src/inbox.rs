//! What reaches the executor from outside a poll: wakes through a standard [`Waker`], and work from
//! other threads. The only part of the runtime that is shared between threads.
//!
//! Everything sent is taken in the order it was sent. Between two polls the executor looks at one
//! flag; the lock is taken only when something was sent.
//!
//! [`Waker`]: std::task::Waker

use crate::exec::Handle;
use crate::task::TaskId;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;
use thiserror::Error;

/// One thing sent to the executor.
pub(crate) enum Note {
    /// Wake this task.
    Wake(TaskId),
    /// Call this on the executor's thread.
    Call(Box<dyn FnOnce(&Handle) + Send>),
}

#[derive(Default)]
struct Notes {
    queue: VecDeque<Note>,
    closed: bool,
}

/// The executor's letter box.
#[derive(Default)]
pub(crate) struct Inbox {
    full: AtomicBool,
    notes: Mutex<Notes>,
    bell: Condvar,
}

impl Inbox {
    /// Whether something waits to be taken.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Takes everything sent so far.
    pub(crate) fn take(&self) -> VecDeque<Note> {
        let mut notes = lock(&self.notes);
        self.full.store(false, Ordering::Release);
        std::mem::take(&mut notes.queue)
    }

    /// Refuses everything from now on.
    pub(crate) fn close(&self) -> VecDeque<Note> {
        lock(&self.notes).closed = true;
        self.take()
    }

    /// Waits until something is sent, at most for `span`.
    pub(crate) fn wait(&self, span: Option<Duration>) {
        let notes = lock(&self.notes);
        let empty = |notes: &mut Notes| notes.queue.is_empty();
        match span {
            Some(span) => drop(self.bell.wait_timeout_while(notes, span, empty)),
            None => drop(self.bell.wait_while(notes, empty)),
        }
    }

    fn send(&self, note: Note) -> Result<(), Stopped> {
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
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What stands behind a task's standard waker.
struct TaskWaker {
    task: TaskId,
    inbox: Arc<Inbox>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A stopped executor has no task left to wake.
        let _ = self.inbox.send(Note::Wake(self.task));
    }
}

/// The standard waker of a task.
pub(crate) fn waker(task: TaskId, inbox: &Arc<Inbox>) -> Waker {
    Arc::new(TaskWaker { task, inbox: Arc::clone(inbox) }).into()
}

/// The executor is gone, or the receiving end of a channel is.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
#[error("the executor has stopped")]
pub struct Stopped;

/// Gives work to an executor on the real clock, from any thread.
#[derive(Clone)]
pub struct Injector(pub(crate) Arc<Inbox>);

impl Injector {
    /// Has `call` called on the executor's thread, between two polls; typically it spawns a task.
    ///
    /// # Errors
    /// [`Stopped`] when the executor is gone.
    pub fn call(&self, call: impl FnOnce(&Handle) + Send + 'static) -> Result<(), Stopped> {
        self.0.send(Note::Call(Box::new(call)))
    }

    /// A channel from other threads to one task, unbounded. `name` appears when that task is stuck.
    #[must_use]
    pub fn channel<T: Send>(&self, name: &'static str) -> (Inlet<T>, Outlet<T>) {
        let pipe = Arc::new(Pipe { state: Mutex::new(PipeState::new()), inlets: 1.into() });
        (Inlet(Arc::clone(&pipe)), Outlet { pipe, name })
    }
}

struct PipeState<T> {
    queue: VecDeque<T>,
    reader: Option<Waker>,
    closed: bool,
}

impl<T> PipeState<T> {
    fn new() -> Self {
        Self { queue: VecDeque::new(), reader: None, closed: false }
    }
}

struct Pipe<T> {
    state: Mutex<PipeState<T>>,
    inlets: AtomicUsize,
}

/// The sending end of a channel from other threads.
pub struct Inlet<T>(Arc<Pipe<T>>);

impl<T> Inlet<T> {
    /// Sends `value`; never waits.
    ///
    /// # Errors
    /// [`Stopped`] when the receiving end is gone.
    pub fn send(&self, value: T) -> Result<(), Stopped> {
        let mut state = lock(&self.0.state);
        if state.closed {
            return Err(Stopped);
        }
        state.queue.push_back(value);
        let reader = state.reader.take();
        drop(state);
        reader.iter().for_each(Waker::wake_by_ref);
        Ok(())
    }
}

impl<T> Clone for Inlet<T> {
    fn clone(&self) -> Self {
        self.0.inlets.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Inlet<T> {
    fn drop(&mut self) {
        if self.0.inlets.fetch_sub(1, Ordering::AcqRel) == 1 {
            let reader = lock(&self.0.state).reader.take();
            reader.iter().for_each(Waker::wake_by_ref);
        }
    }
}

/// The receiving end of a channel from other threads; belongs to one task.
pub struct Outlet<T> {
    pipe: Arc<Pipe<T>>,
    name: &'static str,
}

impl<T> Outlet<T> {
    /// The next value; `None` when no sending end is left.
    pub async fn recv(&mut self, handle: &Handle) -> Option<T> {
        poll_fn(|cx| {
            let mut state = lock(&self.pipe.state);
            if let Some(value) = state.queue.pop_front() {
                return Poll::Ready(Some(value));
            }
            if self.pipe.inlets.load(Ordering::Acquire) == 0 {
                return Poll::Ready(None);
            }
            state.reader = Some(cx.waker().clone());
            handle.core().note_wait("thread channel", self.name);
            Poll::Pending
        })
        .await
    }
}

impl<T> Drop for Outlet<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.pipe.state);
        state.closed = true;
        let queue = std::mem::take(&mut state.queue);
        drop(state);
        drop(queue);
    }
}
