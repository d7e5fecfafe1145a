//! Logical addresses. Everything above the media counts in sectors of 4 KiB.

use std::fmt;

/// Bytes of a sector.
pub const SECTOR_BYTES: u64 = 4096;

/// The content of one sector.
pub type SectorBytes = [u8; SECTOR_BYTES as usize];

/// Logical block address, in sectors of 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lba(pub u64);

impl Lba {
    /// The address `sectors` further on.
    #[must_use]
    pub const fn plus(self, sectors: u64) -> Self {
        Self(self.0 + sectors)
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lba {}", self.0)
    }
}
