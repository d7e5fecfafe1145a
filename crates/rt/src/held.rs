//! Tasks that hold a lock which is to be released for work on a core of the host
//! ([`RwLock::released_for_work`](crate::sync::RwLock::released_for_work)): held while time passes, it would make
//! users of two cores take turns. Debug builds keep the tasks, and [`Host::work`](crate::Host::work) refuses to
//! serve them; release builds do nothing.
//!
//! Futures that are combined in one task ([`combine`](crate::combine)) hold locks each for itself where each is
//! [`Handle::apart`](crate::Handle::apart) or [`Uncancellable`](crate::Uncancellable).

#[cfg(debug_assertions)]
pub(crate) use kept::{Held, Holders, apart};
#[cfg(not(debug_assertions))]
pub(crate) use nothing::{Held, Holders, apart};

#[cfg(debug_assertions)]
mod kept {
    use crate::task::TaskId;
    use std::cell::{Cell, RefCell};
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::rc::Rc;

    /// A task, or a part of one that holds locks for itself.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Holder {
        Task(TaskId),
        Part(u64),
    }

    /// Locks that are held.
    #[derive(Default)]
    pub(crate) struct Holders {
        locks: RefCell<Vec<(Holder, &'static str)>>,
        /// The part that is being polled.
        part: Cell<Option<u64>>,
        parts: Cell<u64>,
    }

    /// A lock that is held, until this is dropped.
    pub(crate) struct Held {
        holders: Rc<Holders>,
        lock: (Holder, &'static str),
    }

    impl Held {
        /// What runs now, in this task, has taken a lock of this name.
        pub(crate) fn note(holders: &Rc<Holders>, task: TaskId, name: &'static str) -> Self {
            let lock = (holders.current(task), name);
            holders.locks.borrow_mut().push(lock);
            Self { holders: Rc::clone(holders), lock }
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            let mut locks = self.holders.locks.borrow_mut();
            let place = locks.iter().rposition(|lock| *lock == self.lock);
            locks.swap_remove(place.expect("a lock that was noted"));
        }
    }

    impl Holders {
        fn current(&self, task: TaskId) -> Holder {
            self.part.get().map_or(Holder::Task(task), Holder::Part)
        }

        /// A number for a part of a task.
        pub(crate) fn new_part(&self) -> u64 {
            self.parts.set(self.parts.get() + 1);
            self.parts.get()
        }

        /// Polls a part of a task.
        pub(crate) fn within<R>(&self, part: u64, poll: impl FnOnce() -> R) -> R {
            let before = self.part.replace(Some(part));
            let result = poll();
            self.part.set(before);
            result
        }

        /// That what runs now, in this task, may work.
        ///
        /// # Panics
        /// If it holds a lock.
        pub(crate) fn check(&self, task: TaskId) {
            let (now, locks) = (self.current(task), self.locks.borrow());
            if let Some((_, name)) = locks.iter().find(|lock| lock.0 == now) {
                panic!("a task works on a core while it holds a lock: {name}");
            }
        }
    }

    /// A future that holds locks for itself.
    pub(crate) fn apart<F: Future>(
        holders: &Rc<Holders>,
        work: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let (holders, part) = (Rc::clone(holders), holders.new_part());
        async move {
            let mut work = pin!(work);
            poll_fn(|cx| holders.within(part, || work.as_mut().poll(cx))).await
        }
    }
}

#[cfg(not(debug_assertions))]
mod nothing {
    use crate::task::TaskId;
    use std::rc::Rc;

    /// Nothing.
    #[derive(Default)]
    pub(crate) struct Holders;

    /// Nothing.
    pub(crate) struct Held;

    impl Held {
        /// Does nothing.
        pub(crate) const fn note(_: &Rc<Holders>, _: TaskId, _: &'static str) -> Self {
            Self
        }
    }

    impl Holders {
        /// No number.
        pub(crate) const fn new_part(&self) -> u64 {
            0
        }

        /// Polls.
        pub(crate) fn within<R>(&self, _: u64, poll: impl FnOnce() -> R) -> R {
            poll()
        }

        /// Checks nothing.
        pub(crate) const fn check(&self, _: TaskId) {}
    }

    /// The future itself.
    pub(crate) fn apart<F>(_: &Rc<Holders>, work: F) -> F {
        work
    }
}
