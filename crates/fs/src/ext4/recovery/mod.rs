//! What mount does behind the journal's recovery: orphans are freed or cut, and file-level records applied (`records.rs`).

mod records;

use super::error::corrupt;
use super::format::{Feature, Place, STATE_ERRORS, clear_orphan, parse_orphan_block};
use super::inode::Inode;
use super::journal::FileRecord;
use super::orphan_file::OrphanFile;
use super::rules::OmittedRule;
use super::volume::Volume;
use crate::contract::{FsError, Kind, Result};
use crate::vfs::content;
use std::collections::BTreeSet;
use std::rc::Rc;

impl Volume {
    /// Finishes orphans, of which it returns the number, and applies file-level records.
    ///
    /// A file that grew by a direct write is an orphan until its new length is committed, which a record may hold
    /// before that. Such a file is cut to the length of its record: cut to the committed one, it would lose what
    /// the record made durable.
    pub(super) async fn complete_recovery(
        self: &Rc<Self>,
        orphan_file: OrphanFile,
        records: Vec<FileRecord>,
    ) -> Result<u32> {
        self.load_orphans().await?;
        self.empty_orphan_file(orphan_file).await?;
        let known: BTreeSet<_> =
            records.iter().map(|record| (record.inode, record.generation)).collect();
        let is_recorded = |inode: &Inode| {
            let generation = inode.raw.borrow().generation;
            inode.links() > 0 && known.contains(&(inode.number, generation))
        };
        let first = self.finish_orphans(|inode| !is_recorded(inode)).await?;
        if first > 0 {
            // File-level records begin in an empty log.
            self.meta.journal.flush().await?;
        }
        self.apply_files(records).await?;
        self.reload_orphans().await?;
        let recorded = self.finish_orphans(|_| true).await?;
        if recorded > 0 {
            self.meta.journal.flush().await?;
        }
        self.file_commit.start(&self.meta.journal).await?;
        Ok(first + recorded)
    }

    /// Reads the list at mount.
    ///
    /// On a volume with errors it may say anything: as in Linux it is dropped, and its inodes are e2fsck's to
    /// find.
    pub(crate) async fn load_orphans(&self) -> Result<()> {
        if self.meta.sb.borrow().state & STATE_ERRORS != 0 {
            return self.drop_orphans().await;
        }
        let mut found = Vec::new();
        let mut next = self.meta.sb.borrow().last_orphan;
        while next != 0 {
            let endless = found.len() as u32 > self.meta.sb.borrow().inodes_count;
            if endless || !self.meta.is_ordinary(next) {
                return Err(FsError::corrupt("list of orphans", "superblock"));
            }
            let inode = self.orphan(next).await.map_err(|error| match error {
                FsError::NoEntry => FsError::corrupt("list of orphans", format!("inode {next}")),
                other => other,
            })?;
            next = inode.raw.borrow().dtime;
            found.push(inode);
        }
        self.orphans.list.lock().await.extend(found.into_iter().rev());
        Ok(())
    }

    async fn drop_orphans(&self) -> Result<()> {
        if self.meta.sb.borrow().last_orphan == 0 {
            return Ok(());
        }
        let tx = self.meta.begin(1, 0).await?;
        self.meta.sb.borrow_mut().last_orphan = 0;
        self.meta.write_superblock(&tx).await?;
        tx.stop();
        Ok(())
    }

    /// Finishes what the list says was begun: frees files without a name, cuts the others to their
    /// length. Returns how many there were. Those that are not `wanted` wait.
    pub(crate) async fn finish_orphans(
        self: &Rc<Self>,
        wanted: impl Fn(&Inode) -> bool,
    ) -> Result<u32> {
        let mut found: Vec<_> =
            self.orphans.list.lock().await.iter().rev().map(Rc::clone).collect();
        found.retain(|inode| wanted(inode));
        let count = found.len() as u32;
        for inode in found {
            let unlinked = inode.links() == 0;
            let rule =
                if unlinked { OmittedRule::OrphanUnlink } else { OmittedRule::OrphanTruncate };
            if self.omits(rule) {
                self.leave_orphan(&inode).await?;
            } else if unlinked {
                self.delete(&inode).await?;
            } else {
                self.zero_orphan_tail(&inode).await?;
                self.cut_blocks(&inode).await?;
            }
        }
        Ok(count)
    }

    /// Reads the inodes of the list again, after file-level records were applied to some.
    pub(crate) async fn reload_orphans(&self) -> Result<()> {
        let mut orphans = self.orphans.list.lock().await;
        for inode in &mut *orphans {
            *inode = self.orphan(inode.number).await?;
        }
        Ok(())
    }

    /// Empties the orphan file. What it names is in the list of orphans then, but on a volume with errors,
    /// where it may name anything.
    pub(crate) async fn empty_orphan_file(self: &Rc<Self>, file: OrphanFile) -> Result<()> {
        for block in file.blocks {
            let place = Place::InodeBlock { inode: file.number, block };
            self.meta.alloc.system_zone.check(block..block + 1, place)?;
            let buffer = self.meta.read_block(block).await?;
            let named =
                buffer.with(|bytes| parse_orphan_block(&bytes[..], block, file.seed, place))?;
            for number in named {
                let tx = self.meta.begin(4, 0).await?;
                let sound = self.meta.sb.borrow().state & STATE_ERRORS == 0;
                if sound && !self.meta.is_ordinary(number) {
                    return Err(corrupt("orphan file", place));
                }
                if sound {
                    let inode = self.orphan(number).await?;
                    self.orphans.add(&self.meta, &tx, &inode).await?;
                    self.meta.write_inode(&tx, &inode, false).await?;
                }
                tx.edit(&buffer, |bytes| clear_orphan(bytes, number, block, file.seed)).await?;
                tx.stop();
            }
        }
        if self.meta.has(Feature::ORPHAN_PRESENT) {
            let tx = self.meta.begin(1, 0).await?;
            self.meta.sb.borrow_mut().set_feature(Feature::ORPHAN_PRESENT, false);
            self.meta.write_superblock(&tx).await?;
            tx.stop();
        }
        Ok(())
    }

    /// Without [`OmittedRule::OrphanUnlink`] or [`OmittedRule::OrphanTruncate`]: an orphan stays as it is, and leaves
    /// the list.
    async fn leave_orphan(&self, inode: &Inode) -> Result<()> {
        let tx = self.meta.begin(8, 0).await?;
        inode.deleted.set(inode.links() == 0);
        self.orphans.remove(&self.meta, &tx, inode).await?;
        self.meta.write_inode(&tx, inode, false).await?;
        tx.stop();
        Ok(())
    }

    /// Linux makes zeroes of what lies behind the new end in a transaction that may have come too late. What
    /// cannot be read shows nothing.
    async fn zero_orphan_tail(self: &Rc<Self>, inode: &Rc<Inode>) -> Result<()> {
        if inode.kind() != Kind::File {
            return Ok(());
        }
        match content::zero_tail(self, inode, inode.size.get()).await {
            Err(FsError::Io(_)) => Ok(()),
            done => done,
        }
    }
}
