//! Where sectors lie: content and out-of-band data, below the rules and the timing.
//!
//! [`Store`] is the seam for other backends. A store receives only what the rules allow: writes of
//! free sectors, reads of written ones. It keeps what it was given until it is asked to erase it, so
//! that an interrupted erase can leave the old content intact, or to drop a content that nothing will ask for
//! again. A backend may fail: then a write is
//! refused, and a read is uncorrectable.

mod memory;
mod slab;

pub use memory::MemoryStore;
pub(crate) use memory::{Block, HeldBytes};

use crate::command::{Oob, WriteCmd};
use crate::geometry::Ppa;
use nandscape_block::SectorData;
use thiserror::Error;

/// How much of the content is kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum PayloadMode {
    /// No content but metadata, which always travels as real bytes.
    None,
    /// Tags as tags, bytes as bytes.
    #[default]
    Tags,
    /// Everything as bytes.
    Bytes,
}

/// Why a store could not keep or give back sectors.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
pub enum StoreError {
    /// The write would exceed the store's limit.
    #[error("memory cap reached")]
    Full,
    /// The backend failed.
    #[error("{0}")]
    Io(std::io::ErrorKind),
}

/// Keeper of the sectors of a device.
pub trait Store {
    /// Keeps a write whole, or nothing of it.
    ///
    /// # Errors
    /// Why nothing of it was kept.
    fn write(&mut self, cmd: &WriteCmd<'_>) -> Result<(), StoreError>;

    /// Forgets `sectors` sectors of one chunk.
    fn erase(&mut self, from: Ppa, sectors: u32);

    /// Out-of-band data of a sector that was written; anything for others.
    ///
    /// # Errors
    /// The backend lost it.
    fn oob(&self, at: Ppa) -> Result<Oob, StoreError>;

    /// Content of a sector that was written; anything for others.
    ///
    /// # Errors
    /// The backend lost it.
    fn data(&self, at: Ppa) -> Result<SectorData, StoreError>;

    /// Whether `sectors` consecutive written sectors of one chunk can be given back. The device asks
    /// at each read; sectors that cannot are uncorrectable.
    ///
    /// # Errors
    /// The backend lost one of them.
    #[inline]
    fn check(&self, _at: Ppa, _sectors: u32) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether there may be a sector of data whose content takes memory.
    fn may_drop(&self) -> bool {
        false
    }

    /// Whether dropping the content of a sector would free memory.
    fn is_droppable(&self, _at: Ppa) -> bool {
        false
    }

    /// Drops the content of a written sector; its out-of-band data stay. Whether there was any.
    fn drop_content(&mut self, _at: Ppa) -> bool {
        false
    }

    /// Whether the content of a written sector was dropped, as far as that is remembered.
    fn is_dropped(&self, _at: Ppa) -> bool {
        false
    }

    /// Makes durable what was written and erased.
    ///
    /// # Errors
    /// What the backend reports.
    fn sync(&mut self) -> Result<(), StoreError>;

    /// A hint that the sector's out-of-band data will be looked at soon.
    fn prefetch(&self, _at: Ppa) {}

    /// Bytes of RAM in use.
    fn memory_bytes(&self) -> u64;
}
