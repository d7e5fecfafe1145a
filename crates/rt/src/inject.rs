//! Work and values from other threads. With the mailbox below it, the only part of the runtime that is
//! shared between threads.

use crate::handle::Handle;
use crate::mailbox::{Mailbox, Message, Stopped, lock};
use crate::shared::Core;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

/// Gives work to an executor on the real clock, from any thread.
#[derive(Clone)]
pub struct Injector(Arc<Mailbox<Rc<Core>>>);

impl Injector {
    pub(crate) fn new(mailbox: &Arc<Mailbox<Rc<Core>>>) -> Self {
        Self(Arc::clone(mailbox))
    }

    /// Has `call` called on the executor's thread, between two polls; typically it spawns a task.
    ///
    /// # Errors
    /// [`Stopped`] when the executor is gone.
    pub fn call(&self, call: impl FnOnce(&Handle) + Send + 'static) -> Result<(), Stopped> {
        self.0.send(Message::Call(Box::new(|core| call(&Handle::new(core)))))
    }

    /// A channel from other threads to one task, unbounded. `name` appears when that task is stuck.
    #[must_use]
    pub fn channel<T: Send>(&self, name: &'static str) -> (ThreadSender<T>, ThreadReceiver<T>) {
        let pipe = Arc::new(Pipe { state: Mutex::new(PipeState::new()), inlets: 1.into() });
        (ThreadSender(Arc::clone(&pipe)), ThreadReceiver { pipe, name })
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
pub struct ThreadSender<T>(Arc<Pipe<T>>);

impl<T> ThreadSender<T> {
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

impl<T> Clone for ThreadSender<T> {
    fn clone(&self) -> Self {
        self.0.inlets.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for ThreadSender<T> {
    fn drop(&mut self) {
        if self.0.inlets.fetch_sub(1, Ordering::AcqRel) == 1 {
            let reader = lock(&self.0.state).reader.take();
            reader.iter().for_each(Waker::wake_by_ref);
        }
    }
}

/// The receiving end of a channel from other threads; belongs to one task.
pub struct ThreadReceiver<T> {
    pipe: Arc<Pipe<T>>,
    name: &'static str,
}

impl<T> ThreadReceiver<T> {
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

impl<T> Drop for ThreadReceiver<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.pipe.state);
        state.closed = true;
        let queue = std::mem::take(&mut state.queue);
        drop(state);
        drop(queue);
    }
}
