//! Waiting for the end of a task, and ending it.

use crate::shared::Core;
use crate::task::{TaskId, Wait};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use thiserror::Error;

/// The task was aborted, or its executor dropped, before it ended.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
#[error("the task was aborted")]
pub struct Aborted;

/// Where a task leaves its output.
pub(crate) struct Outcome<T> {
    core: Rc<Core>,
    result: Cell<Option<Result<T, Aborted>>>,
    finished: Cell<bool>,
    joiner: Cell<TaskId>,
}

impl<T> Outcome<T> {
    pub(crate) fn new(core: &Rc<Core>) -> Rc<Self> {
        Rc::new(Self {
            core: Rc::clone(core),
            result: Cell::new(None),
            finished: Cell::new(false),
            joiner: Cell::new(TaskId::NONE),
        })
    }

    /// The duty to set the outcome, to be carried by the task.
    pub(crate) fn promise(self: &Rc<Self>) -> Promise<T> {
        Promise(Rc::clone(self))
    }

    fn set(&self, result: Result<T, Aborted>) {
        if !self.finished.replace(true) {
            self.result.set(Some(result));
            self.core.wake(self.joiner.get());
        }
    }
}

/// Dropped unkept, with an aborted task, it says so.
pub(crate) struct Promise<T>(Rc<Outcome<T>>);

impl<T> Promise<T> {
    pub(crate) fn keep(self, output: T) {
        self.0.set(Ok(output));
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.0.set(Err(Aborted));
    }
}

/// A spawned task: await its output, or end it. Dropping the handle lets the task go on.
pub struct JoinHandle<T> {
    outcome: Rc<Outcome<T>>,
    task: TaskId,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(outcome: Rc<Outcome<T>>, task: TaskId) -> Self {
        Self { outcome, task }
    }

    /// Ends the task: its future is dropped now or, if the task aborts itself, after its poll.
    /// Does nothing to a task that has ended.
    pub fn abort(&self) {
        self.outcome.core.abort(self.task);
    }

    /// Whether the task has ended, in either way.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.outcome.finished.get()
    }

    /// The outcome of a finished task, once.
    pub(crate) fn take(&self) -> Result<T, Aborted> {
        self.outcome.result.take().unwrap_or(Err(Aborted))
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, Aborted>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.is_finished() {
            return Poll::Ready(self.take());
        }
        let core = &self.outcome.core;
        self.outcome.joiner.set(core.current());
        core.note(Wait::Task(self.task));
        Poll::Pending
    }
}
