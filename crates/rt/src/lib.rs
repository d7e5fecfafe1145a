//! The runtime under everything: one single-threaded executor with two clocks, timers, locks and
//! channels, seeded randomness, and the host: its cores and its memory.
//!
//! # Two clocks
//! On the *virtual* clock time stands still while any task is ready, and then jumps to the next
//! timer. Nothing reads the outside world: same inputs and seed, same order of events, same output.
//! On the *real* clock the executor sleeps to the next timer, and takes work from other threads
//! through its [`Injector`]. Code above the runtime cannot tell the two apart, and need not.
//!
//! # The order of wakes
//! Part of the contract, the same on both clocks:
//! 1. Ready tasks are polled first in, first out. A task stands in the queue at most once; a wake
//!    of the task being polled puts it behind all that are ready.
//! 2. A spawned task is queued like one that was woken.
//! 3. Timers fire in the order of (instant, registration), all that are due at once, each queueing
//!    its task; on the virtual clock only when no task is ready.
//! 4. What is released to waiters goes to them in the order in which they began to wait, and queues
//!    them in that order. No waiter overtakes another.
//! 5. Wakes through a [`std::task::Waker`], and work from other threads, are queued in the order in
//!    which they came, after the poll that is going on.
//!
//! # Rules for those who write tasks
//! - Context is passed by [`Handle`], never by thread-local.
//! - Dropping a future never retracts what it submitted elsewhere; resources return when the work
//!   completes. An operation of several steps that must not stop halfway is [`Uncancellable`].
//! - No `RefCell` borrow outlives a poll. The guards in [`sync`] hold none.
//! - The runtime's futures wake the task they were last polled in, not the waker of their context.
//!   They may be combined by anything that polls its children whenever its task is polled, as
//!   [`combine`] does, but not by collections that poll only the child whose waker was woken.
//! - Every task and every primitive has a name: when nothing can ever happen again, [`Deadlock`]
//!   tells which task waits for what.
//!
//! ```
//! use nandscape_rt::{Executor, Nanos};
//!
//! let mut executor = Executor::on_virtual_clock();
//! let handle = executor.handle();
//! let slept = executor.block_on(async move {
//!     let begun = handle.now();
//!     handle.sleep(Nanos::from_secs(3_600)).await;
//!     handle.now() - begun
//! });
//! assert_eq!(slept, Ok(Nanos::from_secs(3_600)));
//! ```

mod clock;
pub mod combine;
pub mod counts;
mod deadlock;
pub mod dist;
mod exec;
mod handle;
mod held;
pub mod host;
mod inject;
pub mod invariant;
mod join;
mod mailbox;
pub mod rng;
mod shared;
mod sleep;
pub mod sync;
mod task;
pub mod time;
mod timer;
mod uncancellable;
pub mod words;

pub use deadlock::{Deadlock, Waiting};
pub use exec::Executor;
pub use handle::Handle;
pub use host::{Host, HostConfig};
pub use inject::{Injector, ThreadReceiver, ThreadSender};
pub use invariant::Shadow;
pub use join::{Aborted, JoinHandle};
pub use mailbox::Stopped;
pub use rng::Stream;
pub use sleep::Sleep;
pub use task::BoxFuture;
pub use time::Nanos;

pub use uncancellable::Uncancellable;
