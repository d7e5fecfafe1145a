//! Many readers or one writer, fair: readers that come after a waiting writer wait behind it.
//!
//! A reader takes one permit and a writer all of them. Readers share the value by count, a writer
//! has it alone, so no `RefCell` stays borrowed while a guard's task waits.

use super::permits::Permits;
use crate::handle::Handle;
use crate::held::Held;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// More readers at once than memory could hold.
const ALL: u32 = u32::MAX;

struct Inner<T> {
    permits: Permits,
    value: RefCell<Option<Rc<T>>>,
    /// Whether debug builds refuse to let its holders work.
    is_watched: bool,
}

impl<T> Inner<T> {
    fn note_held(&self) -> Option<Held> {
        self.is_watched.then(|| self.permits.note_held())
    }
}

/// A value that many tasks may read or one may change.
pub struct RwLock<T>(Rc<Inner<T>>);

impl<T> Clone for RwLock<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> RwLock<T> {
    /// An unlocked lock around `value`.
    #[must_use]
    pub fn new(handle: &Handle, name: &'static str, value: T) -> Self {
        Self::with(handle, name, value, false)
    }

    /// The same, of a lock that no task may hold while it works on a core of the host
    /// ([`Host::work`](crate::Host::work)): others, on other cores, would wait for that work. Debug builds panic
    /// where a task that took it does.
    #[must_use]
    pub fn released_for_work(handle: &Handle, name: &'static str, value: T) -> Self {
        Self::with(handle, name, value, true)
    }

    fn with(handle: &Handle, name: &'static str, value: T, is_watched: bool) -> Self {
        let permits = Permits::new(handle, name, ALL);
        let value = RefCell::new(Some(Rc::new(value)));
        Self(Rc::new(Inner { permits, value, is_watched }))
    }

    /// Waits in line for the value, to read it beside other readers.
    pub async fn read(&self) -> ReadGuard<T> {
        self.0.permits.take("rwlock (read)", 1).await;
        let (value, held) = (self.0.value.borrow().clone(), self.0.note_held());
        ReadGuard { value, owner: Rc::clone(&self.0), _held: held }
    }

    /// Waits in line for the value, alone.
    pub async fn write(&self) -> WriteGuard<T> {
        self.0.permits.take("rwlock (write)", ALL).await;
        self.write_now()
    }

    /// The value, alone, if no task has it or waits for it.
    #[must_use]
    pub fn try_write(&self) -> Option<WriteGuard<T>> {
        self.0.permits.try_take(ALL).then(|| self.write_now())
    }

    /// For who has all permits.
    fn write_now(&self) -> WriteGuard<T> {
        let (value, held) = (self.0.value.take(), self.0.note_held());
        WriteGuard { value, owner: Rc::clone(&self.0), _held: held }
    }
}

/// Shared use of a [`RwLock`]'s value; dropping ends it.
#[must_use = "dropped, it unlocks at once"]
pub struct ReadGuard<T> {
    /// Given up by `drop` before the permit, so that a writer finds itself alone.
    value: Option<Rc<T>>,
    owner: Rc<Inner<T>>,
    _held: Option<Held>,
}

impl<T> Deref for ReadGuard<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.as_ref().expect("no writer while a reader holds a permit")
    }
}

impl<T> Drop for ReadGuard<T> {
    fn drop(&mut self) {
        self.value = None;
        self.owner.permits.give(1);
    }
}

/// Sole use of a [`RwLock`]'s value; dropping ends it.
#[must_use = "dropped, it unlocks at once"]
pub struct WriteGuard<T> {
    value: Option<Rc<T>>,
    owner: Rc<Inner<T>>,
    _held: Option<Held>,
}

impl<T> Deref for WriteGuard<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.as_ref().expect("the holder of all permits holds the value")
    }
}

impl<T> DerefMut for WriteGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        let sole = self.value.as_mut().and_then(Rc::get_mut);
        sole.expect("the holder of all permits holds the value alone")
    }
}

impl<T> Drop for WriteGuard<T> {
    fn drop(&mut self) {
        self.owner.value.replace(self.value.take());
        self.owner.permits.give(ALL);
    }
}
