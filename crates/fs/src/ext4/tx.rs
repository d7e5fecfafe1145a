//! One handle of the journal, as the operations of the file system use it.

use super::format::{BlockMut, CsumSeed};
use super::journal::{Buffer, Tid, TransactionHandle};
use crate::contract::Result;
use nandscape_block::{Owner, SectorData};
use std::rc::Rc;

/// A metadata block in memory.
pub(crate) type BufferRef = Rc<Buffer>;

/// What an inode's metadata block holds, for checksums that are looked at once ([`Buffer::verify`]).
#[derive(Clone, Copy)]
pub(crate) enum Holds {
    Names,
    Index,
    Extents,
}

/// Looks at a block once after it was read: at its checksum, if blocks have any, and whatever else must
/// hold.
pub(crate) fn verify<E>(
    buffer: &Buffer,
    holds: Holds,
    seed: Option<CsumSeed>,
    check: impl FnOnce(&[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    buffer.verify((holds as u8, seed.map_or(0, |seed| seed.0)), |bytes| check(bytes))
}

/// An operation's part in the running transaction. Dropped, it ends: what it changed is committed
/// together with all else in the transaction, later.
pub(crate) struct Tx(TransactionHandle);

impl Tx {
    pub(crate) const fn new(handle: TransactionHandle) -> Self {
        Self(handle)
    }

    /// The transaction.
    pub(crate) fn tid(&self) -> Tid {
        self.0.tid()
    }

    /// Waits until the buffer may be changed. From then to the next waiting point nobody else
    /// changes it.
    pub(crate) async fn access(&self, buffer: &BufferRef) -> Result<()> {
        self.0.access(buffer).await;
        Ok(())
    }

    /// Changes a buffer that it has access to.
    pub(crate) fn change<R>(
        &self,
        buffer: &BufferRef,
        edit: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        Ok(self.0.update(buffer, |bytes| edit(bytes))?)
    }

    /// Waits for access and changes a buffer.
    pub(crate) async fn edit<R>(
        &self,
        buffer: &BufferRef,
        edit: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        self.access(buffer).await?;
        self.change(buffer, edit)
    }

    /// Changes parts of a buffer that it has access to, so that its checksums cost less.
    pub(crate) fn change_parts<R>(
        &self,
        buffer: &BufferRef,
        edit: impl FnOnce(&mut BlockMut<'_>) -> R,
    ) -> Result<R> {
        Ok(self.0.update_parts(buffer, edit)?)
    }

    /// Waits for access and changes parts of a buffer.
    pub(crate) async fn edit_parts<R>(
        &self,
        buffer: &BufferRef,
        edit: impl FnOnce(&mut BlockMut<'_>) -> R,
    ) -> Result<R> {
        self.access(buffer).await?;
        self.change_parts(buffer, edit)
    }

    /// The buffer of a newly taken block, all zeroes, with access to it.
    pub(crate) fn fresh(&self, block: u64) -> Result<BufferRef> {
        Ok(self.0.fresh(block)?)
    }

    /// Drops what the journal knows of a freed block, and keeps recovery from writing to it.
    pub(crate) fn forget(&self, block: u64) -> Result<()> {
        Ok(self.0.forget(block)?)
    }

    /// Logs a page of a file.
    pub(crate) fn log_data(&self, block: u64, data: SectorData, owner: Owner) -> Result<()> {
        self.0.log_data(block, data, owner)?;
        Ok(())
    }

    /// Ends it.
    pub(crate) fn stop(self) -> Tid {
        self.0.stop()
    }
}
