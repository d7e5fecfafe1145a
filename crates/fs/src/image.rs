//! A volume that is not mounted: its blocks as bytes, and what is found there, whatever its kind. For tools that examine
//! a file system, and for a mount before its own caches exist.

use nandscape_block::{AsyncDevice, BlockError, Lba, Payload, SECTOR_BYTES};
use thiserror::Error;

/// The bytes of a block: a sector of the device.
pub type BlockBytes = Box<[u8; SECTOR_BYTES as usize]>;

/// Why a volume cannot be examined.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum ImageError {
    /// There is no file system, or an unsupported one, or a structure that cannot be read.
    #[error("{0}")]
    Format(String),
    /// The request names no structure of this kind of file system.
    #[error("{0}")]
    Request(String),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
}

/// A file system that was found on a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Its label.
    pub label: String,
    /// Its size in sectors.
    pub sectors: u64,
    /// Whether it was unmounted in an orderly way.
    pub clean: bool,
    /// Whether it is marked as damaged, so that a check has to come before a mount.
    pub has_errors: bool,
    /// When it was last mounted or written, in seconds since 1970.
    pub last_write_s: i64,
}

/// A sector of a log that recovery would use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogSector {
    /// The sector.
    pub lba: Lba,
    /// The first sector of its transaction: without what it says, the log ends before the transaction.
    pub transaction: Lba,
    /// From its first byte on, so many whose change recovery must notice: a format may let others pass.
    pub checked_bytes: usize,
}

/// Reads blocks of a device that no other task changes.
#[derive(Clone)]
pub struct ImageReader {
    device: AsyncDevice,
}

impl ImageReader {
    /// A reader of this device.
    #[must_use]
    pub fn new(device: &AsyncDevice) -> Self {
        Self { device: device.clone() }
    }

    /// Blocks of the device.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.device.caps().sectors
    }

    /// Reads one block.
    ///
    /// # Errors
    /// Those of the device, and [`BlockError::Io`] if it keeps no content.
    pub async fn block(&self, block: u64) -> Result<BlockBytes, BlockError> {
        let payload = self.device.read(Lba(block), 1).await?;
        expand(&payload, 0, block)
    }

    /// Reads `count` contiguous blocks, in bios as large as the device takes.
    ///
    /// # Errors
    /// Those of [`ImageReader::block`].
    pub async fn blocks(&self, first: u64, count: u32) -> Result<Vec<u8>, BlockError> {
        let most = self.device.caps().max_sectors;
        let most = if most == 0 { count.max(1) } else { most };
        let mut bytes = Vec::with_capacity(count as usize * SECTOR_BYTES as usize);
        for from in (0..count).step_by(most as usize) {
            let first = first + u64::from(from);
            let some = most.min(count - from);
            let payload = self.device.read(Lba(first), some).await?;
            for index in 0..some {
                bytes.extend_from_slice(&expand(&payload, index, first)?[..]);
            }
        }
        Ok(bytes)
    }
}

fn expand(payload: &Payload, index: u32, first: u64) -> Result<BlockBytes, BlockError> {
    let lba = Lba(first + u64::from(index));
    let what = "the device keeps no content";
    payload.sector(index).expand().ok_or(BlockError::Io { lba, what })
}
