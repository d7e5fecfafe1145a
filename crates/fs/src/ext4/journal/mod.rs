//! JBD2: the journal as the kernel writes it, on disk and in the order of its writes. After Linux's
//! `fs/jbd2` (transaction.c, commit.c, checkpoint.c, revoke.c, recovery.c) of 5.11.
//!
//! # For a file system
//! ```text
//! let log = LogExtents::new([first..end, ...])?;                 // of the journal's inode
//! let recovered = recover(&device, &log).await?;                 // before anything else is read
//! let buffers = Buffers::new(&rt, device, limit);                // the metadata cache
//! let journal = Journal::open(&rt, &buffers, log, Config::of_file_system(csum, wide)).await?;
//! journal.start_commits(hook);                                   // hook: CommitHook
//!
//! let h = journal.start(credits).await?;          // may wait for a commit or for log space
//! let buffer = buffers.get(block).await?;
//! h.access(&buffer).await;                        // waits while its copy is on its way to the log
//! h.update(&buffer, |bytes| ...)?;                // changes it: logged by this transaction
//! let new = h.fresh(block)?;                      // a newly allocated block: zeroes, not read
//! h.forget(block)?;                               // a freed metadata block: dropped and revoked
//! let tid = h.stop();                             // or drop it
//! journal.commit(tid).await?;                     // fsync: commits if need be, and waits
//! ```
//! `h.extend(n)` asks for more credits and may be refused; `h.restart(n)` ends this handle and
//! begins another, perhaps in a later transaction. A handle spends one credit on each buffer that it
//! is the first to change in its transaction; one that forgets or revokes `n` blocks needs
//! [`Journal::revoke_credits`]`(n)` more. No holder of a handle may start another one or
//! await a commit.
//!
//! - `data=journal`: [`TransactionHandle::log_data`] logs a file's page, a tag or bytes. Until it is
//!   home ([`Buffers::cached`] finds it) the device holds older content.
//! - A freed block must not be used again before the transaction that freed it is committed:
//!   [`CommitHook::committed`] says when.
//! - [`Journal::write_back`] writes old dirty metadata home; the file system's flusher calls it.
//! - [`Journal::flush`] empties the log; [`Journal::stop`] does so and ends the commit task.
//! - [`files`] is the file-level journal, `commit = "ijournal"`.
//! - After an error of a log write or of a home write the journal is aborted: everything fails with
//!   [`JournalError::Aborted`], nothing is written.
//!
//! # What it guarantees
//! - After a power cut, [`recover`] brings every transaction for which [`Journal::commit`] returned, and
//!   of the others a prefix in order, each whole or not at all.
//! - Log space is used again only when the blocks it held are home and flushed, and the superblock
//!   that says so is durable.
//! - Log writes carry `JOURNAL`, home writes `META`, or their file's owner if they are data; the commit block is written with PREFLUSH and FUA
//!   once everything before it, ordered data included, is acknowledged.

mod buffer;
mod buffers;
mod checkpoint;
mod commit;
mod config;
pub mod disk;
mod error;
mod extents;
pub mod files;
mod handle;
mod home;
mod log;
mod open;
mod recovery;
mod state;
mod superblock;
mod tid;

pub use buffer::{Buffer, Verified};
pub use buffers::Buffers;
pub use commit::CommitHook;
pub use config::Config;
pub use error::{JournalError, LogPlace};
pub use extents::LogExtents;
pub use files::{FileJournal, FileRecord, NewName, file_records};
pub use handle::TransactionHandle;
pub use open::Journal;
pub use recovery::{Recovered, discard, recover, recover_omitting};
pub use state::Counts;
pub use tid::Tid;
