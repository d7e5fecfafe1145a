//! `commit = "ijournal"`: an fsync writes a record of one file instead of committing all changes.
//! The journal's side of it, and when a record will do, is in [`super::journal::files`]; here is what
//! the file system knows of its files ([`Changes`]), and how a record is made (`record.rs`). What recovery does
//! with it is in `recovery/records.rs`.
//!
//! Invariants:
//! - A record leans on nothing that is not committed but the file itself: it has all blocks of the file's tree that no
//!   commit has, and names the file in directories that records may lean on.
//! - A file counts as recorded only as long as nothing of it has changed since.

mod record;

pub(crate) use record::{Nodes, Recorded};

use super::journal::{FileJournal, NewName, Tid};
use super::options::{Commit, DataMode, MountOptions};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The file-level journal of a mount, and what its records must know.
pub(crate) struct FileCommit {
    commit: Commit,
    data: DataMode,
    /// Takes file-level records, if the mount asked for it.
    pub(crate) journal: RefCell<Option<FileJournal>>,
    changes: RefCell<Changes>,
}

impl FileCommit {
    /// Of a mount with these options; it takes records from [`FileCommit::start`] on.
    pub(crate) fn new(options: &MountOptions) -> Self {
        Self {
            commit: options.commit,
            data: options.data,
            journal: RefCell::default(),
            changes: RefCell::default(),
        }
    }
}

/// What happened to inodes in transactions that are not committed, as far as a record must know.
#[derive(Default)]
struct Changes {
    /// Inodes of which a record could not hold all, until this transaction is committed.
    excluded: BTreeMap<u32, Tid>,
    /// The name that each new file got.
    names: BTreeMap<u32, (Tid, NewName)>,
}

impl Changes {
    /// A record cannot hold what this transaction did to an inode.
    fn exclude(&mut self, inode: u32, tid: Tid) {
        self.excluded.insert(inode, tid);
    }

    /// A file is new, and has this name.
    fn name(&mut self, inode: u32, tid: Tid, name: NewName) {
        self.names.insert(inode, (tid, name));
    }

    /// Transactions up to `tid` are committed.
    fn forget(&mut self, tid: Tid) {
        self.excluded.retain(|_, of| !tid.reached(*of));
        self.names.retain(|_, (of, _)| !tid.reached(*of));
    }

    /// Whether a record may lean on the directories of these names.
    fn has_parents_of(&self, names: &[NewName]) -> bool {
        let mut parents = names.iter().map(|name| name.parent);
        parents.all(|parent| !self.excluded.contains_key(&parent))
    }

    /// The names for a record of a file; `None` if no record can hold what the file is.
    fn names_of(&self, inode: u32) -> Option<Vec<NewName>> {
        if self.excluded.contains_key(&inode) {
            return None;
        }
        match self.names.get(&inode) {
            None => Some(Vec::new()),
            Some((_, name)) if self.excluded.contains_key(&name.parent) => None,
            Some((_, name)) => Some(vec![name.clone()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(parent: u32) -> NewName {
        NewName { parent, kind: 1, name: b"new".to_vec() }
    }

    /// A file is excluded by what happened to it and, as long as it is new, to its directory; until the
    /// transaction is committed.
    #[test]
    fn changes_exclude_records_until_committed() {
        let mut changes = Changes::default();
        assert_eq!(changes.names_of(12), Some(Vec::new()));
        changes.name(12, Tid(7), name(2));
        assert_eq!(changes.names_of(12), Some(vec![name(2)]));
        changes.exclude(2, Tid(8));
        assert_eq!((changes.names_of(12), changes.names_of(13)), (None, Some(Vec::new())));
        changes.forget(Tid(7));
        assert_eq!(changes.names_of(12), Some(Vec::new()));
        changes.exclude(12, Tid(8));
        assert_eq!(changes.names_of(12), None);
        changes.forget(Tid(8));
        assert_eq!(changes.names_of(12), Some(Vec::new()));
    }
}
