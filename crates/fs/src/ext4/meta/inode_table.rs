//! Inodes in their table on disk. Their fields are written once a transaction
//! ([`DeferredMetadata`](super::deferred_metadata::DeferredMetadata)).

use super::Meta;
use crate::contract::{FsError, Result};
use crate::ext4::error::corrupt;
use crate::ext4::format::{Editable, Feature, Place};
use crate::ext4::inode::{Inode, LINKS_MAX};
use crate::ext4::rules::OmittedRule;
use crate::ext4::tx::Tx;
use std::ops::Range;

/// The longest file of a volume without `large_file`.
const SIZE_SMALL: u64 = i32::MAX as u64;

impl Meta {
    /// The block of the inode table that holds an inode, and its bytes there.
    pub(crate) fn inode_slot(&self, number: u32) -> Result<(u64, Range<usize>)> {
        let sb = self.sb.borrow();
        let place = sb.inode_place(number);
        let place = place.ok_or_else(|| corrupt("inode number", Place::Inode(number)))?;
        let table = self.alloc.groups.borrow()[place.group as usize].desc.inode_table;
        let at = place.offset(&sb);
        Ok((table + place.block(&sb), at..at + sb.inode_bytes()))
    }

    /// Whether an inode may have a name: neither the root nor one that the format keeps for itself.
    pub(crate) fn is_ordinary(&self, number: u32) -> bool {
        let sb = self.sb.borrow();
        (sb.first_ino..=sb.inodes_count).contains(&number) && !sb.is_orphan_file(number)
    }

    /// Writes an inode with this transaction. `datasync`: a reader of the content needs the change.
    pub(crate) async fn write_inode(&self, tx: &Tx, inode: &Inode, datasync: bool) -> Result<()> {
        self.write_slot(tx, inode).await?;
        inode.writes.set(inode.writes.get() + 1);
        inode.sync_tid.set(Some(tx.tid()));
        if datasync {
            inode.datasync_tid.set(Some(tx.tid()));
        }
        let large = inode.raw.borrow().size > SIZE_SMALL && !inode.is_dir();
        if large { self.need(tx, Feature::LARGE_FILE).await } else { Ok(()) }
    }

    /// Writes an inode with this transaction; a sync of the file commits it, unless the rule is left out.
    pub(crate) async fn write_synced(
        &self,
        tx: &Tx,
        inode: &Inode,
        rule: OmittedRule,
    ) -> Result<()> {
        if self.omits(rule) {
            return self.write_slot(tx, inode).await;
        }
        self.write_inode(tx, inode, true).await
    }

    /// Looks at what the table holds of an inode behind its fields; of a deferred inode these are older.
    pub(crate) async fn with_slot<R>(
        &self,
        inode: &Inode,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let (block, slot) = self.inode_slot(inode.number)?;
        let buffer = self.read_block(block).await?;
        Ok(buffer.with(|bytes| look(&bytes[slot])))
    }

    /// Changes the bytes of an inode behind its fields, and writes its fields.
    pub(crate) async fn edit_slot(
        &self,
        tx: &Tx,
        inode: &Inode,
        edit: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        let (block, slot) = self.inode_slot(inode.number)?;
        let buffer = self.read_block(block).await?;
        tx.edit_parts(&buffer, |block| edit(block.part(slot))).await?;
        if self.omits(OmittedRule::XattrSync) {
            return self.write_slot(tx, inode).await;
        }
        self.write_inode(tx, inode, false).await
    }

    /// Whether a directory may have another subdirectory.
    pub(crate) fn may_add_subdir(&self, dir: &Inode) -> Result<()> {
        if dir.links() >= LINKS_MAX && !self.has(Feature::DIR_NLINK) {
            return Err(FsError::TooManyLinks);
        }
        Ok(())
    }
}
