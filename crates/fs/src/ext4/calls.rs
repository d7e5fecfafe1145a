//! The calls under way that change a volume, for unmount: it lets none begin any more, and waits for
//! those that have begun, whether anybody still awaits them or not.

use super::volume::Volume;
use crate::contract::{FsError, Result};
use nandscape_rt::Handle;
use nandscape_rt::sync::Notify;
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

/// Calls under way.
pub(crate) struct Calls {
    count: Cell<u32>,
    closed: Cell<bool>,
    none_left: Notify,
}

/// A call under way, until it is dropped, and the volume that it changes.
pub(crate) struct Call(Rc<Volume>);

impl Call {
    /// Begins a call.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`] once the volume is being unmounted.
    pub(crate) fn begin(volume: &Rc<Volume>) -> Result<Self> {
        let calls = &volume.calls;
        calls.check_open()?;
        calls.count.set(calls.count.get() + 1);
        Ok(Self(Rc::clone(volume)))
    }
}

impl Deref for Call {
    type Target = Rc<Volume>;

    fn deref(&self) -> &Rc<Volume> {
        &self.0
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let calls = &self.0.calls;
        calls.count.set(calls.count.get() - 1);
        if calls.count.get() == 0 {
            calls.none_left.notify_waiters();
        }
    }
}

impl Calls {
    pub(crate) fn new(rt: &Handle) -> Self {
        let none_left = Notify::new(rt, "the end of all calls");
        Self { count: Cell::new(0), closed: Cell::new(false), none_left }
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

    /// Waits until no call is under way.
    pub(crate) async fn ended(&self) {
        while self.count.get() > 0 {
            self.none_left.notified().await;
        }
    }
}
