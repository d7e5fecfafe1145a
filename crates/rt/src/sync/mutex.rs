//! Mutual exclusion across waiting points, fair.
//!
//! The guard carries the value itself, in a box, from lock to unlock: exclusion is plain ownership,
//! and no `RefCell` stays borrowed while the guard's task waits.

use super::permits::Permits;
use crate::handle::Handle;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

struct Inner<T> {
    permits: Permits,
    value: Cell<Option<Box<T>>>,
}

/// A value that one task at a time may use.
pub struct Mutex<T>(Rc<Inner<T>>);

impl<T> Clone for Mutex<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> Mutex<T> {
    /// An unlocked mutex around `value`.
    #[must_use]
    pub fn new(handle: &Handle, name: &'static str, value: T) -> Self {
        let permits = Permits::new(handle, name, 1);
        Self(Rc::new(Inner { permits, value: Cell::new(Some(Box::new(value))) }))
    }

    /// Waits in line for the value.
    pub async fn lock(&self) -> MutexGuard<T> {
        self.0.permits.take("mutex", 1).await;
        MutexGuard::new(&self.0)
    }

    /// The value, if no task has it or waits for it.
    #[must_use]
    pub fn try_lock(&self) -> Option<MutexGuard<T>> {
        self.0.permits.try_take(1).then(|| MutexGuard::new(&self.0))
    }
}

/// The value of a locked [`Mutex`]; dropping unlocks it.
#[must_use = "dropped, it unlocks the mutex at once"]
pub struct MutexGuard<T> {
    owner: Rc<Inner<T>>,
    /// Taken only by `drop`.
    value: Option<Box<T>>,
}

impl<T> MutexGuard<T> {
    fn new(owner: &Rc<Inner<T>>) -> Self {
        Self { owner: Rc::clone(owner), value: owner.value.take() }
    }
}

impl<T> Deref for MutexGuard<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.as_ref().expect("the holder of the permit holds the value")
    }
}

impl<T> DerefMut for MutexGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("the holder of the permit holds the value")
    }
}

impl<T> Drop for MutexGuard<T> {
    fn drop(&mut self) {
        self.owner.value.set(self.value.take());
        self.owner.permits.give(1);
    }
}
