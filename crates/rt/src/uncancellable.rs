//! Work that is done to its end once it has begun.
//!
//! A future may be dropped at any of its waiting points: by a time limit, by the first of two, with its
//! task. What it guards may then be half changed. An [`Uncancellable`] goes on as a task of its own.

use crate::handle::Handle;
use crate::task::BoxFuture;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that goes on when it is dropped. Made by [`Handle::uncancellable`].
#[must_use = "a future does nothing unless awaited"]
pub struct Uncancellable<T: 'static> {
    handle: Handle,
    name: &'static str,
    begun: bool,
    /// It holds locks for itself.
    part: u64,
    /// Until it has ended.
    work: Option<BoxFuture<'static, T>>,
}

impl Handle {
    /// Does work as part of the task that awaits it, and, if that goes away before the end, in a task
    /// of this name. Work that has not begun is dropped as any other.
    pub fn uncancellable<T: 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + 'static,
    ) -> Uncancellable<T> {
        let part = self.core().holders().new_part();
        Uncancellable { handle: self.clone(), name, begun: false, part, work: Some(Box::pin(work)) }
    }
}

impl<T> Future for Uncancellable<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.begun = true;
        let Self { handle, part, work, .. } = &mut *self;
        let poll = work.as_mut().map_or(Poll::Pending, |work| {
            handle.core().holders().within(*part, || work.as_mut().poll(cx))
        });
        if poll.is_ready() {
            self.work = None;
        }
        poll
    }
}

impl<T> Drop for Uncancellable<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take_if(|_| self.begun) {
            drop(self.handle.spawn(self.name, work));
        }
    }
}
