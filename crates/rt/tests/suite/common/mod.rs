//! One test body, two clocks; and a log that tells in which order things happened.

use nandscape_rt::{Executor, Handle};
use std::cell::RefCell;
use std::fmt::Debug;
use std::future::Future;
use std::rc::Rc;

/// Runs the same body on the virtual and on the real clock.
pub(crate) fn on_both_clocks<F: Future<Output = ()> + 'static>(body: impl Fn(Handle) -> F) {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    executor.block_on(body(handle)).expect("no deadlock on the virtual clock");
    let (mut executor, _injector) = Executor::on_real_clock();
    let handle = executor.handle();
    executor.block_on(body(handle)).expect("no deadlock on the real clock");
}

/// What happened, in order.
pub(crate) struct Log<T>(Rc<RefCell<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T: PartialEq + Debug> Log<T> {
    pub(crate) fn new() -> Self {
        Self(Rc::default())
    }

    pub(crate) fn push(&self, event: T) {
        self.0.borrow_mut().push(event);
    }

    pub(crate) fn take(&self) -> Vec<T> {
        self.0.take()
    }

    #[track_caller]
    pub(crate) fn expect(&self, events: impl AsRef<[T]>) {
        assert_eq!(self.take(), events.as_ref());
    }
}
