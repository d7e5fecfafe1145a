//! The executor: one thread, tasks in a slab, a first-in first-out ready queue, a timer heap, and a
//! clock.

use crate::clock::Clock;
use crate::deadlock::{Deadlock, Waiting};
use crate::handle::Handle;
use crate::inject::Injector;
use crate::shared::Core;
use crate::time::Nanos;
use std::future::Future;
use std::rc::Rc;

/// A single-threaded executor on one of the two clocks.
pub struct Executor(Rc<Core>);

impl Executor {
    fn new(clock: Clock) -> Self {
        Self(Core::new(clock))
    }

    /// An executor whose clock stands at zero and jumps to the next timer when no task is ready.
    #[must_use]
    pub fn on_virtual_clock() -> Self {
        Self::new(Clock::Virtual)
    }

    /// An executor whose clock runs by itself from zero on, and the way to reach it from other
    /// threads. When nothing is to be done it waits for the next timer or for the injector.
    #[must_use]
    pub fn on_real_clock() -> (Self, Injector) {
        let executor = Self::new(Clock::real());
        let injector = Injector::new(executor.0.mailbox());
        (executor, injector)
    }

    /// A handle, for tasks and primitives.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(&self.0)
    }

    /// Runs `main` as a task of that name, and every other task, until `main` ends. What is left of
    /// the others stays, and goes on in the next run.
    ///
    /// # Errors
    /// [`Deadlock`], on the virtual clock, when nothing can ever happen again.
    pub fn block_on<F>(&mut self, main: F) -> Result<F::Output, Deadlock>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let join = self.handle().spawn("main", main);
        self.0.run(|| join.is_finished())?;
        join.take().map_err(|_| self.0.deadlock())
    }

    /// Runs until every task has ended but for those spawned by [`Handle::spawn_daemon`].
    ///
    /// # Errors
    /// [`Deadlock`], on the virtual clock, when nothing can ever happen again.
    pub fn run(&mut self) -> Result<(), Deadlock> {
        self.0.run(|| self.0.tasks().awaited() == 0)
    }

    /// The instant of the next thing to be done, for a caller that keeps the time: now if a
    /// task is ready, else when the next timer is due. `None`: nothing can ever happen again.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }

    /// What each task waits for that a run would wait for; daemons, whose timers may keep the clock going
    /// for ever, are none of them.
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        self.0.tasks().waiting(true)
    }

    /// Does everything that is to be done up to and including `until`, and leaves the clock there. The
    /// real clock is not led: nothing happens on it.
    pub fn run_until(&mut self, until: Nanos) {
        if self.0.is_virtual() {
            self.0.run_until(until);
        }
    }
}

impl Drop for Executor {
    /// Drops every task, which hold handles and so would keep their executor alive.
    fn drop(&mut self) {
        loop {
            let body = self.0.tasks().take_any();
            match body {
                Some(body) => drop(body),
                None => break,
            }
        }
        drop(self.0.mailbox().close());
    }
}
