//! The way to an executor, for those who run on it.

use crate::held;
use crate::join::{JoinHandle, Outcome};
use crate::mailbox::waker;
use crate::shared::Core;
use crate::sleep::Sleep;
use crate::task::Body;
use crate::time::Nanos;
use futures_util::FutureExt;
use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

/// The way to an executor, passed to code that spawns, waits or asks for the time. Cheap to clone.
#[derive(Clone)]
pub struct Handle(Rc<Core>);

impl Handle {
    pub(crate) fn new(core: &Rc<Core>) -> Self {
        Self(Rc::clone(core))
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.0
    }

    /// The time since the run began. On the real clock: when the executor last looked.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.0.now()
    }

    /// Whether time is virtual.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.0.is_virtual()
    }

    /// Starts a task; it is polled first after everything that is ready now. The task goes on when
    /// the join handle is dropped.
    pub fn spawn<F>(&self, name: impl Into<Cow<'static, str>>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.start(name.into(), true, future)
    }

    /// Starts a task that [`Executor::run`](crate::Executor::run) does not wait for, one that serves
    /// others for ever.
    pub fn spawn_daemon<F>(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: F,
    ) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.start(name.into(), false, future)
    }

    fn start<F>(&self, name: Cow<'static, str>, awaited: bool, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let outcome = Outcome::new(&self.0);
        let finish = outcome.promise();
        // An async block would hold the future twice: as it came, and as it is awaited.
        let future = Box::pin(future.map(move |output| finish.keep(output)));
        let id = self.0.tasks().reserve(name, awaited);
        let waker = waker(id, self.0.mailbox());
        self.0.tasks().start(id, Body { future, waker });
        JoinHandle::new(outcome, id)
    }

    /// The same future, which may be combined with others in a task and holds locks for itself: debug builds do not take
    /// a lock that another of them holds for its own where it works
    /// ([`RwLock::released_for_work`](crate::sync::RwLock::released_for_work)).
    pub fn apart<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        held::apart(self.0.holders(), work)
    }

    /// Waits for `span`; a span of zero does not wait at all, nor gives way.
    #[inline]
    pub fn sleep(&self, span: Nanos) -> Sleep {
        self.sleep_until(self.now().saturating_add(span))
    }

    /// Waits until `deadline`, not at all if it has passed.
    #[inline]
    pub fn sleep_until(&self, deadline: Nanos) -> Sleep {
        Sleep::new(Rc::clone(&self.0), deadline)
    }

    /// Lets every task that is ready now go first.
    pub fn yield_now(&self) -> impl Future<Output = ()> + use<> {
        let core = Rc::clone(&self.0);
        let mut yielded = false;
        poll_fn(move |_| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            core.wake(core.current());
            Poll::Pending
        })
    }

    /// Moves the virtual clock to `t` at once, without giving way, if that passes no timer: no
    /// task is ready, no timer is due at or before `t`, and `t` is not in the past. For a task that
    /// keeps its own events. False, and nothing happened, otherwise and on the real clock.
    #[inline]
    pub fn try_advance_to(&self, t: Nanos) -> bool {
        self.0.try_advance_to(t)
    }
}
