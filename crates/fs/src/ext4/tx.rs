//! One handle of the journal, as the operations of the file system use it.

use super::format::{BlockMut, CsumSeed};
use super::journal::{Buffer, Tid, TransactionHandle};
use crate::contract::Result;
use nandscape_block::{Owner, SectorData};
use std::cell::Cell;
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

/// An operation's part in the running transaction. What it changed is committed together with all else
/// in the transaction, later. Dropped without [`Tx::stop`] after it changed something, because of an
/// error, it leaves an operation half done, and says so.
pub(crate) struct Tx {
    handle: TransactionHandle,
    changed: Cell<bool>,
    partial_update: Rc<Cell<bool>>,
}

impl Tx {
    pub(crate) const fn new(handle: TransactionHandle, partial_update: Rc<Cell<bool>>) -> Self {
        Self { handle, changed: Cell::new(false), partial_update }
    }

    /// The transaction.
    pub(crate) fn tid(&self) -> Tid {
        self.handle.tid()
    }

    /// The handle, to change something.
    fn change_with(&self) -> &TransactionHandle {
        self.changed.set(true);
        &self.handle
    }

    /// Waits until the buffer may be changed. From then to the next waiting point no other task
    /// changes it.
    pub(crate) async fn access(&self, buffer: &BufferRef) -> Result<()> {
        self.handle.access(buffer).await;
        Ok(())
    }

    /// Waits for access, and says that the buffer changes before the transaction is committed.
    pub(crate) async fn claim(&self, buffer: &BufferRef) -> Result<()> {
        self.access(buffer).await?;
        Ok(self.change_with().claim(buffer)?)
    }

    /// Changes a buffer that it has access to.
    pub(crate) fn change<R>(
        &self,
        buffer: &BufferRef,
        edit: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        Ok(self.change_with().update(buffer, |bytes| edit(bytes))?)
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
        Ok(self.change_with().update_parts(buffer, edit)?)
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
        Ok(self.change_with().fresh(block)?)
    }

    /// Drops what the journal knows of a freed block, and keeps recovery from writing to it.
    pub(crate) fn forget(&self, block: u64) -> Result<()> {
        Ok(self.change_with().forget(block)?)
    }

    /// Logs a page of a file.
    pub(crate) fn log_data(&self, block: u64, data: SectorData, owner: Owner) -> Result<()> {
        self.change_with().log_data(block, data, owner)?;
        Ok(())
    }

    /// Ends it, all done.
    pub(crate) fn stop(self) {
        self.changed.set(false);
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if self.changed.get() {
            self.partial_update.set(true);
        }
    }
}
