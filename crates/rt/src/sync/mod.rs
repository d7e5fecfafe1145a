//! Locks, semaphores, notifications and channels between tasks of one executor.
//!
//! What all of them guarantee:
//! - Waiters are served in the order in which they began to wait; no later one overtakes,
//!   not even when there would be room for them.
//! - What is granted is granted at release, to the waiter, before that waiter runs again. A waiter
//!   dropped before it could take what it was granted passes it on: no wake-up and no permit is lost.
//! - Every primitive has a name, by which a [`crate::Deadlock`] tells what a task waits for.
//! - They are cheap to clone, and clones are the same primitive.

mod channel;
mod mutex;
mod notify;
mod oneshot;
mod permits;
mod rwlock;
mod semaphore;

pub use channel::{Receiver, SendError, Sender, UnboundedSender, bounded, unbounded};
pub use mutex::{Mutex, MutexGuard};
pub use notify::Notify;
pub use oneshot::{Closed, OneshotReceiver, OneshotSender, oneshot};
pub use rwlock::{ReadGuard, RwLock, WriteGuard};
pub use semaphore::{Permit, Semaphore};
