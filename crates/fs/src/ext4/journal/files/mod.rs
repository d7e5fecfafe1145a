//! File-level transactions (`commit = "ijournal"`), after Park and Shin, *iJournaling: Fine-Grained
//! Journaling for Improving the Latency of Fsync System Call* (USENIX ATC 2017): an fsync writes one
//! small record of one file into a dedicated area, instead of committing all changes.
//! The paper's format is not public; this one is ours (docs/formats/journal.md).
//!
//! # The idea
//! JBD2 goes on as ever, every few seconds. A [`FileRecord`] holds what a file *is* at its fsync: its
//! inode, the blocks of its extent tree, the name that it got if it is new. It carries the id of the
//! transaction that was running, and counts only as long as that one is not committed, which says
//! the same and more. Recovery replays JBD2's log, and then applies the last record of each file.
//!
//! # When a record will do
//! A record is absolute: applied to any committed state before its own transaction's, it must give the
//! file as it was. So it may lean on nothing that is not committed but the file itself. The file system
//! commits the running transaction instead
//! - for anything but regular files, for files without a name, and with `data=journal`;
//! - if, since the last commit, the file was linked, renamed or unlinked, or its block of extended
//!   attributes changed, or its inode number was freed before it was given to this file;
//! - if the file is new and its directory is new, too, or lost a name;
//! - if the record is longer than half a slot, or the slot has no room.
//!
//! # The area
//! The end of the journal's file, which JBD2's log gives up while the area is in use
//! ([`Journal::enable_files`](super::Journal::enable_files)), divided into slots, one a core, each a ring
//! of records. A record's place is free again when its transaction is committed. No superblock is
//! written for that: recovery looks at every block of the area, and knows by checksum, epoch and
//! transaction what counts.
//!
//! While the area is in use the journal's superblock has [`Features::IJOURNAL`](super::disk::Features),
//! for which e2fsck and the kernel refuse the journal. It goes when the log is emptied for good
//! ([`Journal::stop`](super::Journal::stop)), together with the area.
//!
//! # Recovery
//! ```text
//! recover(&device, &log).await?;                  // JBD2; fixes which records count
//! let files = file_records(&device, &log).await?; // the last of each file, oldest first
//! let journal = Journal::open(...).await?;
//! // apply each in handles of the journal; applied twice they must do no harm
//! journal.files_applied().await?;                 // they are home: the area is empty
//! ```
//! If power goes before the last step, the next recovery finds the same records.

mod area;
mod enable;
mod record;
mod scan;

#[cfg(test)]
mod tests;

pub use area::FileJournal;
pub use record::{FileRecord, NewName};
pub use scan::file_records;

#[cfg(test)]
pub(super) use record::FIELDS as RECORD_FIELDS;
