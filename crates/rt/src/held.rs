//! Tasks that hold a lock which is to be released for work on a core of the host
//! ([`RwLock::released_for_work`](crate::sync::RwLock::released_for_work)): held while time passes, it would make
//! users of two cores take turns. Debug builds keep the tasks, and [`Host::work`](crate::Host::work) refuses to
//! serve them; release builds do nothing.

#[cfg(debug_assertions)]
pub(crate) use kept::{Held, Holders};
#[cfg(not(debug_assertions))]
pub(crate) use nothing::{Held, Holders};

#[cfg(debug_assertions)]
mod kept {
    use crate::task::TaskId;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Locks that are held, by the task that took each.
    #[derive(Default)]
    pub(crate) struct Holders(RefCell<Vec<(TaskId, &'static str)>>);

    /// A lock that a task holds, until this is dropped.
    pub(crate) struct Held {
        holders: Rc<Holders>,
        lock: (TaskId, &'static str),
    }

    impl Held {
        /// A task has taken a lock of this name.
        pub(crate) fn note(holders: &Rc<Holders>, task: TaskId, name: &'static str) -> Self {
            holders.0.borrow_mut().push((task, name));
            Self { holders: Rc::clone(holders), lock: (task, name) }
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            let mut locks = self.holders.0.borrow_mut();
            let place = locks.iter().rposition(|lock| *lock == self.lock);
            locks.swap_remove(place.expect("a lock that was noted"));
        }
    }

    impl Holders {
        /// That a task may work.
        ///
        /// # Panics
        /// If it holds a lock.
        pub(crate) fn check(&self, task: TaskId) {
            let locks = self.0.borrow();
            let held = locks.iter().find(|lock| lock.0 == task).map(|lock| lock.1);
            assert!(held.is_none(), "a task works on a core while it holds {held:?}");
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
        /// Checks nothing.
        pub(crate) const fn check(&self, _: TaskId) {}
    }
}
