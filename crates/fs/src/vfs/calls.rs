//! Calls in flight that change a volume: each runs to its end even if its caller is dropped, and unmount
//! waits for them.

use super::DataPath;
use crate::contract::{FsError, Result};
use nandscape_rt::Handle;
use nandscape_rt::sync::Notify;
use std::cell::Cell;
use std::rc::Rc;

/// Counts calls in flight.
pub(crate) struct CallTracker {
    count: Cell<u32>,
    closed: Cell<bool>,
    none_left: Notify,
}

impl CallTracker {
    pub(crate) fn new(rt: &Handle) -> Self {
        let none_left = Notify::new(rt, "the end of all calls");
        Self { count: Cell::new(0), closed: Cell::new(false), none_left }
    }

    /// A call begins.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`] once the volume is being unmounted.
    fn begin(&self) -> Result<()> {
        self.check_open()?;
        self.count.set(self.count.get() + 1);
        Ok(())
    }

    /// A call that has begun is over.
    fn end(&self) {
        self.count.set(self.count.get() - 1);
        if self.count.get() == 0 {
            self.none_left.notify_waiters();
        }
    }

    /// Whether calls may begin.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`] if they may not.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.get() { Err(FsError::ReadOnly) } else { Ok(()) }
    }

    /// Lets no call begin any more.
    pub(crate) fn close(&self) {
        self.closed.set(true);
    }

    /// Waits until no call is in flight.
    pub(crate) async fn ended(&self) {
        while self.count.get() > 0 {
            self.none_left.notified().await;
        }
    }
}

/// A call in flight, until it is dropped.
struct Call<V: DataPath>(Rc<V>);

impl<V: DataPath> Call<V> {
    fn begin(volume: &Rc<V>) -> Result<Self> {
        volume.env().calls.begin()?;
        Ok(Self(Rc::clone(volume)))
    }
}

impl<V: DataPath> Drop for Call<V> {
    fn drop(&mut self) {
        self.0.env().calls.end();
    }
}

/// Runs a call that changes something to its end, even if its caller is dropped before that.
///
/// # Errors
/// [`FsError::ReadOnly`] once the volume is being unmounted; otherwise those of the call.
pub(crate) async fn run<V: DataPath, T: 'static>(
    volume: &Rc<V>,
    work: impl AsyncFnOnce(&Rc<V>) -> Result<T> + 'static,
) -> Result<T> {
    let call = Call::begin(volume)?;
    // The guard is part of the future, so that the call counts until its last lock is released.
    let whole = async move { work(&call.0).await };
    volume.env().rt.uncancellable("file system", whole).await
}
