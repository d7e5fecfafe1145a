//! The journal's superblock on its device: the first block of the log.

use super::disk::Superblock;
use super::error::JournalError;
use super::extents::LogExtents;
use nandscape_block::{AsyncDevice, Bio, BlockError, Flags, Fua, Payload, SectorBytes, SectorData};
use std::sync::Arc;

/// Reads and checks the superblock of the journal that lies in these extents.
pub(super) async fn read_superblock(
    device: &AsyncDevice,
    extents: &LogExtents,
) -> Result<Superblock, JournalError> {
    let (at, _) = extents.locate(0)?;
    let payload = device.read(at, 1).await?;
    let raw: Box<SectorBytes> = payload
        .sector(0)
        .expand()
        .ok_or(JournalError::Io(BlockError::Unsupported("reading back content")))?;
    Superblock::parse(raw, extents.blocks())
}

/// Writes the journal's superblock, if need be so that it is durable when this ends: with FUA, or by a
/// flush where the device takes none. PREFLUSH is never set: who needs a flush before has done it.
pub(super) async fn write_superblock(
    device: &AsyncDevice,
    extents: &LogExtents,
    superblock: &Superblock,
    durably: bool,
) -> Result<(), JournalError> {
    let (at, _) = extents.locate(0)?;
    let fua = durably && device.caps().fua == Fua::Honoured;
    let content = SectorData::Bytes(Arc::new(*superblock.bytes()));
    let flags = Flags::JOURNAL | Flags::SYNC | if fua { Flags::FUA } else { Flags::NONE };
    let bio = Bio::write(at, 1, Payload::Sectors(Box::new([content]))).with(flags);
    device.submit(bio).await?;
    if durably && !fua {
        device.flush().await?;
    }
    Ok(())
}
