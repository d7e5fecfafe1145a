//! The calls under way that change a volume, for unmount: it lets none begin any more, and waits for
//! those that have begun, whether anybody still awaits them or not.

use crate::contract::{FsError, Result};
use nandscape_rt::Handle;
use nandscape_rt::sync::Notify;
use std::cell::Cell;

/// Calls under way.
pub(crate) struct Calls {
    count: Cell<u32>,
    closed: Cell<bool>,
    none_left: Notify,
}

impl Calls {
    pub(crate) fn new(rt: &Handle) -> Self {
        let none_left = Notify::new(rt, "the end of all calls");
        Self { count: Cell::new(0), closed: Cell::new(false), none_left }
    }

    /// A call begins.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`] once the volume is being unmounted.
    pub(crate) fn begin(&self) -> Result<()> {
        self.check_open()?;
        self.count.set(self.count.get() + 1);
        Ok(())
    }

    /// A call that has begun is over.
    pub(crate) fn end(&self) {
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

    /// Waits until no call is under way.
    pub(crate) async fn ended(&self) {
        while self.count.get() > 0 {
            self.none_left.notified().await;
        }
    }
}
