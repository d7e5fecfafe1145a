//! A channel for a single message.

use crate::handle::Handle;
use crate::shared::Core;
use crate::task::TaskId;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use thiserror::Error;

struct Inner<T> {
    core: Rc<Core>,
    name: &'static str,
    value: Cell<Option<T>>,
    reader: Cell<TaskId>,
    sender_gone: Cell<bool>,
    receiver_gone: Cell<bool>,
}

/// The sender was dropped without sending.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
#[error("the other end is gone")]
pub struct Closed;

/// A channel for one message.
pub fn oneshot<T>(handle: &Handle, name: &'static str) -> (OneshotSender<T>, OneshotReceiver<T>) {
    let inner = Rc::new(Inner {
        core: Rc::clone(handle.core()),
        name,
        value: Cell::new(None),
        reader: Cell::new(TaskId::NONE),
        sender_gone: Cell::new(false),
        receiver_gone: Cell::new(false),
    });
    (OneshotSender(Rc::clone(&inner)), OneshotReceiver(inner))
}

/// The sending end.
pub struct OneshotSender<T>(Rc<Inner<T>>);

impl<T> OneshotSender<T> {
    /// Sends the message; never waits.
    ///
    /// # Errors
    /// The message itself, when the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        if self.0.receiver_gone.get() {
            return Err(value);
        }
        self.0.value.set(Some(value));
        Ok(())
    }
}

impl<T> Drop for OneshotSender<T> {
    /// Sent or not, the receiver has waited long enough.
    fn drop(&mut self) {
        self.0.sender_gone.set(true);
        self.0.core.wake(self.0.reader.get());
    }
}

/// The receiving end: await the message.
#[must_use = "a future does nothing unless awaited"]
pub struct OneshotReceiver<T>(Rc<Inner<T>>);

impl<T> Future for OneshotReceiver<T> {
    type Output = Result<T, Closed>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Inner { core, name, value, reader, sender_gone, .. } = &*self.0;
        if sender_gone.get() {
            return Poll::Ready(value.take().ok_or(Closed));
        }
        reader.set(core.current());
        core.note_wait("answer", name);
        Poll::Pending
    }
}

impl<T> Drop for OneshotReceiver<T> {
    fn drop(&mut self) {
        self.0.receiver_gone.set(true);
        drop(self.0.value.take());
    }
}
