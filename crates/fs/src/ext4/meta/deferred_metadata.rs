//! What a transaction writes once, when everything in it is done: the superblock, descriptors of
//! groups with the checksums of their bitmaps, and inodes. Memory holds the newest of each.
//!
//! An operation that changed one claims its block for the transaction, and notes that its encoding is deferred. The
//! commit asks for what is deferred when no handle is open any more ([`DeferredMetadata::encode`]), as jbd2's
//! triggers have it. Until then the block in memory is behind: a reader of the table
//! looks for an inode in memory first, where a deferred one stays ([`Inode::is_idle`]).
//!
//! Invariants: the block of what is deferred is claimed for the transaction; a group is deferred once; an inode that is
//! deferred stays in memory.

use super::Meta;
use super::group::{Bitmap, DeferredGroup, Group};
use crate::contract::Result;
use crate::ext4::format::{Editable, SUPERBLOCK_AT, SUPERBLOCK_BYTES};
use crate::ext4::inode::Inode;
use crate::ext4::tx::{BufferRef, Tx};
use crate::vfs::InodeCache;
use nandscape_rt::invariant;
use std::cell::RefCell;
use std::ops::Range;

/// An inode that is, or was, deferred, and where it is written.
struct DeferredInode {
    number: u32,
    buffer: BufferRef,
    slot: Range<usize>,
}

/// What the running transaction writes once it is done.
#[derive(Default)]
pub(crate) struct DeferredMetadata {
    superblock: RefCell<Option<BufferRef>>,
    /// Groups, with the blocks of their descriptors. A group is deferred once.
    groups: RefCell<Vec<(u32, BufferRef)>>,
    inodes: RefCell<Vec<DeferredInode>>,
}

impl Meta {
    /// Writes the superblock with this transaction.
    pub(crate) async fn write_superblock(&self, tx: &Tx) -> Result<()> {
        if self.deferred.superblock.borrow().is_none() {
            let buffer = self.read_block(0).await?;
            tx.claim(&buffer).await?;
            self.deferred.superblock.replace(Some(buffer));
        }
        Ok(())
    }

    /// Writes the descriptor of a group, one of whose bitmaps has changed, with this transaction.
    pub(super) async fn write_group(
        &self,
        tx: &Tx,
        group: u32,
        which: Bitmap,
        bitmap: &BufferRef,
    ) -> Result<()> {
        if self.alloc.groups.borrow()[group as usize].deferred.is_none() {
            let (block, _) = self.sb.borrow().desc_place(group);
            let buffer = self.read_block(block).await?;
            tx.claim(&buffer).await?;
            self.deferred.note_group(&self.alloc.groups, group, buffer);
        }
        if let Some(deferred) = &mut self.alloc.groups.borrow_mut()[group as usize].deferred {
            deferred.bitmaps[which as usize].get_or_insert_with(|| bitmap.clone());
        }
        Ok(())
    }

    /// Writes what an inode is into the table with this transaction.
    pub(crate) async fn write_slot(&self, tx: &Tx, inode: &Inode) -> Result<()> {
        if !inode.deferred.get() {
            let number = inode.number;
            let (block, slot) = self.inode_slot(number)?;
            let buffer = self.read_block(block).await?;
            tx.claim(&buffer).await?;
            if !inode.deferred.replace(true) {
                self.deferred.inodes.borrow_mut().push(DeferredInode { number, buffer, slot });
            }
        }
        Ok(())
    }

    /// Writes it now, if it is deferred, since memory is about to forget it. The transaction has its block.
    pub(crate) async fn write_slot_now(&self, inode: &Inode) -> Result<()> {
        let (block, slot) = self.inode_slot(inode.number)?;
        let buffer = self.read_block(block).await?;
        if inode.deferred.take() {
            encode_inode(inode, &buffer, slot);
        }
        Ok(())
    }
}

impl DeferredMetadata {
    /// Notes that a group is deferred, unless another operation did while its block was awaited.
    fn note_group(&self, groups: &RefCell<Vec<Group>>, group: u32, buffer: BufferRef) {
        let deferred = &mut groups.borrow_mut()[group as usize].deferred;
        if deferred.is_none() {
            *deferred = Some(DeferredGroup::default());
            self.groups.borrow_mut().push((group, buffer));
        }
    }

    /// Writes all that is deferred into its blocks. No handle is open: it is all of one transaction. `limit`:
    /// inodes that the cache keeps.
    pub(crate) fn encode(&self, meta: &Meta, inodes: &InodeCache<Inode>, limit: usize) {
        if let Some(buffer) = self.superblock.take() {
            encode_superblock(meta, &buffer);
        }
        for (group, buffer) in self.groups.borrow_mut().drain(..) {
            encode_group(meta, group, &buffer);
        }
        if self.inodes.borrow().len() >= limit {
            // Those that could not be removed because they were deferred now can.
            inodes.retry_eviction();
        }
        for DeferredInode { number, buffer, slot } in self.inodes.borrow_mut().drain(..) {
            if let Some(inode) = inodes.get(number).filter(|inode| inode.deferred.take()) {
                encode_inode(&inode, &buffer, slot);
            }
        }
    }
}

fn encode_superblock(meta: &Meta, buffer: &BufferRef) {
    buffer.complete(|block| {
        let mut bytes = [0; SUPERBLOCK_BYTES];
        bytes.copy_from_slice(&block.as_ref()[SUPERBLOCK_AT..][..SUPERBLOCK_BYTES]);
        meta.sb.borrow().encode(&mut bytes);
        block.put(SUPERBLOCK_AT, &bytes);
    });
}

fn encode_group(meta: &Meta, group: u32, buffer: &BufferRef) {
    let sb = meta.sb.borrow();
    let info = &mut meta.alloc.groups.borrow_mut()[group as usize];
    let deferred = info.deferred.take();
    invariant!(deferred.is_some(), "group {group} is deferred once");
    let Some(deferred) = deferred else { return };
    for (which, bitmap) in [Bitmap::Blocks, Bitmap::Inodes].into_iter().zip(deferred.bitmaps) {
        if let Some(bitmap) = bitmap {
            bitmap.complete(|bits| match which {
                Bitmap::Blocks => info.desc.seal_block_bitmap(bits, &sb),
                Bitmap::Inodes => info.desc.seal_inode_bitmap(bits, &sb),
            });
        }
    }
    let (_, at) = sb.desc_place(group);
    buffer.complete(|block| {
        info.desc.encode(block.part(at..at + sb.desc_bytes()), group, &sb);
    });
}

fn encode_inode(inode: &Inode, buffer: &BufferRef, slot: Range<usize>) {
    buffer.complete(|block| inode.raw.borrow().encode(block.part(slot), inode.seed));
}
