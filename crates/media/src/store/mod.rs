//! Where sectors lie: content and out-of-band data, below the rules and the timing.
//!
//! [`Store`] is the seam for other backends. A store is told only what the rules allow: writes of
//! free sectors, reads of written ones. It keeps what it was given until told to erase it, so that
//! an interrupted erase can leave the old content intact.

mod memory;
mod slab;

pub use memory::MemoryStore;
pub(crate) use memory::{Block, HeldBytes};

use crate::command::{Oob, WriteCmd};
use crate::geometry::Ppa;
use nandscape_block::SectorData;

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

/// Why a store could not keep a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// Keeper of the sectors of a device.
pub trait Store {
    /// Keeps a write whole, or nothing of it.
    ///
    /// # Errors
    /// [`Full`] when that would exceed the store's limit.
    fn write(&mut self, cmd: &WriteCmd<'_>) -> Result<(), Full>;

    /// Forgets `sectors` sectors of one chunk.
    fn erase(&mut self, from: Ppa, sectors: u32);

    /// Out-of-band data of a sector that was written; anything for others.
    fn oob(&self, at: Ppa) -> Oob;

    /// Content of a sector that was written; anything for others.
    fn data(&self, at: Ppa) -> SectorData;

    /// A hint that the sector's out-of-band data will be looked at soon.
    fn prefetch(&self, _at: Ppa) {}

    /// Bytes of RAM in use.
    fn memory_bytes(&self) -> u64;
}
