//! Making a record of a file, and writing it for an fsync.

use crate::contract::{Kind, Result};
use crate::ext4::format::{ExtentEntries, ExtentNode, Place, file_type_of};
use crate::ext4::inode::{Inode, LINKS_MAX};
use crate::ext4::journal::{FileRecord, NewName, Tid};
use crate::ext4::options::{Commit, DataMode};
use crate::ext4::tx::Tx;
use crate::ext4::volume::{Volume, corrupt};
use nandscape_block::SectorBytes;
use std::sync::Arc;

/// Blocks of an extent tree: address and content.
pub(super) type Nodes = Vec<(u64, Arc<SectorBytes>)>;

/// What became of a file that was to be made durable by a record of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Recorded {
    /// No record can tell what it is: the running transaction must be committed.
    Not,
    /// A record was written, behind a barrier.
    Now,
    /// It is as its last record tells.
    Before,
}

impl Volume {
    /// Begins to take file-level records, if the mount asked for it.
    pub(crate) async fn start_files(&self) -> Result<()> {
        if let Commit::Ijournal { slots, slot_blocks } = self.options.commit {
            let files = self.meta.journal.enable_files(slots, slot_blocks).await?;
            *self.file_commit.journal.borrow_mut() = Some(files);
        }
        Ok(())
    }

    /// No record can tell what this transaction does to an inode.
    pub(crate) fn exclude_record(&self, tx: &Tx, inode: u32) {
        if self.keeps_changes() {
            self.file_commit.changes.borrow_mut().exclude(inode, tx.tid());
        }
    }

    /// A new file has got its name; of a new directory no record can tell.
    pub(crate) fn note_new(&self, tx: &Tx, dir: &Inode, inode: &Inode, name: &[u8]) {
        if !self.keeps_changes() {
            return;
        }
        let file_mode = inode.raw.borrow().mode;
        let kind = file_type_of(file_mode);
        let name = NewName { parent: dir.number, kind, name: name.to_vec() };
        let mut changes = self.file_commit.changes.borrow_mut();
        match inode.kind() {
            Kind::File => changes.name(inode.number, tx.tid(), name),
            _ => changes.exclude(inode.number, tx.tid()),
        }
    }

    const fn keeps_changes(&self) -> bool {
        matches!(self.options.commit, Commit::Ijournal { .. })
    }

    /// Transactions up to `tid` are committed.
    pub(crate) fn forget_changes(&self, tid: Tid) {
        self.file_commit.changes.borrow_mut().forget(tid);
    }

    /// Makes a file durable by a record of its own, its data having been written out.
    pub(crate) async fn commit_file(&self, inode: &Inode) -> Result<Recorded> {
        let Some(files) = self.file_commit.journal.borrow().clone() else {
            return Ok(Recorded::Not);
        };
        if self.options.data == DataMode::Journal || self.names_to_record(inode).is_none() {
            return Ok(Recorded::Not);
        }
        if inode.recorded.get() == Some(inode.writes.get()) {
            return Ok(Recorded::Before);
        }
        let most = files.slot_blocks() as usize / 2;
        let Some(record) = self.record_of(inode, most).await? else { return Ok(Recorded::Not) };
        let writes = inode.writes.get();
        if !files.commit(&record, inode.pages.owner()).await? {
            return Ok(Recorded::Not);
        }
        inode.recorded.set(Some(writes));
        Ok(Recorded::Now)
    }

    /// The names that a record of a file tells; nothing if no record can tell what the file is now.
    fn names_to_record(&self, inode: &Inode) -> Option<Vec<NewName>> {
        let able = inode.kind() == Kind::File && (1..=LINKS_MAX).contains(&inode.links());
        let is_orphan = self.orphans.holds(inode.number)?;
        if able && !is_orphan {
            self.file_commit.changes.borrow().names_of(inode.number)
        } else {
            None
        }
    }

    /// The record of a file as it is now, with so many nodes at most, and nothing if none can tell.
    async fn record_of(&self, inode: &Inode, most: usize) -> Result<Option<FileRecord>> {
        let _map = inode.extent_lock.read().await;
        let Some(nodes) = self.changed_nodes(inode, most).await? else {
            return Ok(None);
        };
        let mut image = self.meta.with_slot(inode, <[u8]>::to_vec).await?;
        // From here on nothing waits: the record is of one moment, and of one transaction.
        inode.raw.borrow().encode(&mut image, inode.seed);
        let Some(names) = self.names_to_record(inode) else { return Ok(None) };
        let generation = inode.raw.borrow().generation;
        Ok(Some(FileRecord { inode: inode.number, generation, image, names, nodes }))
    }

    /// The blocks of a file's extent tree that are not committed as they are, if they are not too many.
    async fn changed_nodes(&self, inode: &Inode, most: usize) -> Result<Option<Nodes>> {
        let root = ExtentNode::parse(&inode.raw.borrow().map, Place::Inode(inode.number))?;
        let mut nodes = Nodes::new();
        let mut left = vec![root];
        while let Some(node) = left.pop() {
            let ExtentEntries::Index { depth, entries } = node.entries else { continue };
            for entry in entries {
                let buffer = self.meta.read_block(entry.node).await?;
                let place = Place::InodeBlock { inode: inode.number, block: entry.node };
                let bytes = buffer.with(|bytes| Arc::new(*bytes));
                if depth > 1 {
                    let below = ExtentNode::parse(&bytes[..], place)?;
                    if below.depth() + 1 != depth {
                        return Err(corrupt("extent tree: depth", place));
                    }
                    left.push(below);
                }
                if !buffer.is_committed() {
                    nodes.push((entry.node, bytes));
                }
                if nodes.len() >= most {
                    return Ok(None);
                }
            }
        }
        Ok(Some(nodes))
    }
}
