//! Making a record of a file, and writing it for an fsync.

use super::FileCommit;
use crate::contract::{Kind, Result};
use crate::ext4::error::corrupt;
use crate::ext4::format::{ExtentEntries, ExtentNode, Place, file_type_of};
use crate::ext4::inode::{Inode, LINKS_MAX};
use crate::ext4::journal::{FileRecord, Journal, NewName, Tid};
use crate::ext4::meta::Meta;
use crate::ext4::options::{Commit, DataMode};
use crate::ext4::orphan::Orphans;
use crate::ext4::tx::Tx;
use nandscape_block::SectorBytes;
use nandscape_rt::invariant;
use std::sync::Arc;

/// Blocks of an extent tree: address and content.
pub(crate) type Nodes = Vec<(u64, Arc<SectorBytes>)>;

/// What became of a file that was to be made durable by a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Recorded {
    /// No record can hold what it is: the running transaction must be committed.
    Not,
    /// A record was written, behind a barrier.
    Now,
    /// It is as its last record has it.
    Before,
}

impl FileCommit {
    /// Begins to take file-level records, if the mount asked for it.
    pub(crate) async fn start(&self, journal: &Journal) -> Result<()> {
        if let Commit::Ijournal { slots, slot_blocks } = self.commit {
            let files = journal.enable_files(slots, slot_blocks).await?;
            *self.journal.borrow_mut() = Some(files);
        }
        Ok(())
    }

    /// No record can hold what this transaction does to an inode.
    pub(crate) fn exclude(&self, tx: &Tx, inode: u32) {
        if self.keeps_changes() {
            self.changes.borrow_mut().exclude(inode, tx.tid());
        }
    }

    /// A new file has got its name; no record can hold a new directory.
    pub(crate) fn note_new(&self, tx: &Tx, dir: &Inode, inode: &Inode, name: &[u8]) {
        if !self.keeps_changes() {
            return;
        }
        let file_mode = inode.raw.borrow().mode;
        let kind = file_type_of(file_mode);
        let name = NewName { parent: dir.number, kind, name: name.to_vec() };
        let mut changes = self.changes.borrow_mut();
        match inode.kind() {
            Kind::File => changes.name(inode.number, tx.tid(), name),
            _ => changes.exclude(inode.number, tx.tid()),
        }
    }

    const fn keeps_changes(&self) -> bool {
        matches!(self.commit, Commit::Ijournal { .. })
    }

    /// Transactions up to `tid` are committed.
    pub(crate) fn forget(&self, tid: Tid) {
        self.changes.borrow_mut().forget(tid);
    }

    /// Makes a file durable by a record, its data having been written out.
    pub(crate) async fn commit_file(
        &self,
        meta: &Meta,
        orphans: &Orphans,
        inode: &Inode,
    ) -> Result<Recorded> {
        let Some(files) = self.journal.borrow().clone() else {
            return Ok(Recorded::Not);
        };
        if self.data == DataMode::Journal || self.names_to_record(orphans, inode).is_none() {
            return Ok(Recorded::Not);
        }
        if inode.recorded.get() == Some(inode.writes.get()) {
            invariant!(
                Some(inode.writes.get()) == inode.recorded.get(),
                "inode {} is as its last record has it",
                inode.number
            );
            return Ok(Recorded::Before);
        }
        let most = files.slot_blocks() as usize / 2;
        let Some(record) = self.record_of(meta, orphans, inode, most).await? else {
            return Ok(Recorded::Not);
        };
        let writes = inode.writes.get();
        if !files.commit(&record, inode.pages.owner()).await? {
            return Ok(Recorded::Not);
        }
        inode.recorded.set(Some(writes));
        Ok(Recorded::Now)
    }

    /// The names for a record of a file; nothing if no record can hold what the file is now.
    fn names_to_record(&self, orphans: &Orphans, inode: &Inode) -> Option<Vec<NewName>> {
        let able = inode.kind() == Kind::File && (1..=LINKS_MAX).contains(&inode.links());
        let is_orphan = orphans.holds(inode.number)?;
        if able && !is_orphan { self.changes.borrow().names_of(inode.number) } else { None }
    }

    /// The record of a file as it is now, with so many nodes at most, and nothing if none can hold it.
    async fn record_of(
        &self,
        meta: &Meta,
        orphans: &Orphans,
        inode: &Inode,
        most: usize,
    ) -> Result<Option<FileRecord>> {
        let _map = inode.extent_lock.read().await;
        let Some(nodes) = changed_nodes(meta, inode, most).await? else {
            return Ok(None);
        };
        let mut image = meta.with_slot(inode, <[u8]>::to_vec).await?;
        // From here on nothing waits: the record is of one moment, and of one transaction.
        inode.raw.borrow().encode(&mut image, inode.seed);
        let Some(names) = self.names_to_record(orphans, inode) else { return Ok(None) };
        invariant!(
            self.changes.borrow().has_parents_of(&names),
            "inode {}: the directory of a name in a record is committed",
            inode.number
        );
        let generation = inode.raw.borrow().generation;
        Ok(Some(FileRecord { inode: inode.number, generation, image, names, nodes }))
    }
}

/// The blocks of a file's extent tree that are not committed as they are, if they are not too many.
async fn changed_nodes(meta: &Meta, inode: &Inode, most: usize) -> Result<Option<Nodes>> {
    let root = ExtentNode::parse(&inode.raw.borrow().map, Place::Inode(inode.number))?;
    let mut nodes = Nodes::new();
    let mut left = vec![root];
    while let Some(node) = left.pop() {
        let ExtentEntries::Index { depth, entries } = node.entries else { continue };
        for entry in entries {
            let buffer = meta.read_block(entry.node).await?;
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
            invariant!(
                buffer.is_committed() || nodes.last().is_some_and(|(last, _)| *last == entry.node),
                "inode {}: a record has node {} of the tree, which no commit has",
                inode.number,
                entry.node
            );
            if nodes.len() >= most {
                return Ok(None);
            }
        }
    }
    Ok(Some(nodes))
}
