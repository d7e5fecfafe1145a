//! Sectors of metadata: bytes 0..4 are the CRC-32C of the rest, bytes 4..8 a magic, little-endian.

use nandscape_block::{SectorBytes, SectorData};
use std::sync::Arc;

/// A sector with these bytes, of which the first four become their checksum.
pub(crate) fn seal(mut bytes: SectorBytes) -> SectorData {
    let crc = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    SectorData::sparse(&bytes)
}

/// The bytes of a sector that opens with this magic and the right checksum.
pub(crate) fn unseal(data: &SectorData, magic: u32) -> Option<Arc<SectorBytes>> {
    let bytes = data.bytes()?;
    (u32_at(&*bytes, 4) == magic && u32_at(&*bytes, 0) == crc32c::crc32c(&bytes[4..]))
        .then_some(bytes)
}

/// The little-endian integer at this byte.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// The little-endian integer at this byte.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}
