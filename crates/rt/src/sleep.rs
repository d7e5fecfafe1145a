//! The future that waits for an instant. Dropped, it takes its timer with it.

use crate::shared::Core;
use crate::task::TaskId;
use crate::time::Nanos;
use crate::timer::TimerKey;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Waits for an instant. Made by [`crate::Handle::sleep`] and [`crate::Handle::sleep_until`].
#[must_use = "a future does nothing unless awaited"]
pub struct Sleep {
    core: Rc<Core>,
    deadline: Nanos,
    /// The timer and the task it wakes, once polled.
    timer: Option<(TimerKey, TaskId)>,
}

impl Sleep {
    pub(crate) fn new(core: Rc<Core>, deadline: Nanos) -> Self {
        Self { core, deadline, timer: None }
    }

    /// When it ends.
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        self.deadline
    }
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        if self.core.now() >= self.deadline {
            return Poll::Ready(());
        }
        let task = self.core.current();
        match self.timer {
            None => {
                let key = self.core.timers().register(self.deadline, task);
                self.timer = Some((key, task));
            }
            Some((key, owner)) if owner != task => {
                self.core.timers().reassign(key, task);
                self.timer = Some((key, task));
            }
            Some(_) => {}
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    #[inline]
    fn drop(&mut self) {
        if let Some((key, _)) = self.timer {
            self.core.timers().cancel(key);
        }
    }
}
