//! Finding the records that count after a power cut.

use super::record::{FileRecord, Stamp};
use crate::ext4::journal::disk::Superblock;
use crate::ext4::journal::error::JournalError;
use crate::ext4::journal::extents::LogExtents;
use crate::ext4::journal::superblock::read_superblock;
use nandscape_block::{AsyncDevice, SectorBytes, SectorData};
use nandscape_rt::invariant;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The last record of each file that counts, in the order in which they were written. To be called
/// after [`recover`](crate::ext4::journal::recover); nothing if no area is in use.
///
/// # Errors
/// What is wrong with the superblock or the device.
pub async fn file_records(
    device: &AsyncDevice,
    extents: &LogExtents,
) -> Result<Vec<FileRecord>, JournalError> {
    let superblock = read_superblock(device, extents).await?;
    let Some(layout) = superblock.files() else { return Ok(Vec::new()) };
    let Some(first_tid) = layout.applying else { return Err(JournalError::NeedsRecovery) };
    let mut last = BTreeMap::new();
    for slot in 0..layout.slots {
        let from = layout.first + slot * layout.slot_blocks;
        for (stamp, record) in
            records(device, extents, &superblock, from..from + layout.slot_blocks).await?
        {
            if stamp.epoch == layout.epoch && stamp.tid.reached(first_tid) {
                keep_last(&mut last, stamp, record);
            }
        }
    }
    let mut last: Vec<(Stamp, FileRecord)> = last.into_values().collect();
    last.sort_by_key(|(stamp, _)| stamp.sequence);
    Ok(last.into_iter().map(|(_, record)| record).collect())
}

fn keep_last(last: &mut BTreeMap<u32, (Stamp, FileRecord)>, stamp: Stamp, record: FileRecord) {
    let (inode, sequence) = (record.inode, stamp.sequence);
    let known = last.get(&inode).map(|(known, _)| known.sequence);
    if known.is_none_or(|known| known < stamp.sequence) {
        last.insert(record.inode, (stamp, record));
    }
    invariant!(
        last.get(&inode).is_some_and(|(known, _)| known.sequence >= sequence),
        "the last record of inode {inode} is the one that counts"
    );
}

/// Every whole record in a slot, leftovers among them.
async fn records(
    device: &AsyncDevice,
    extents: &LogExtents,
    superblock: &Superblock,
    slot: std::ops::Range<u32>,
) -> Result<Vec<(Stamp, FileRecord)>, JournalError> {
    let blocks = read(device, extents, slot).await?;
    let seed = superblock.codec().seed();
    let mut found = Vec::new();
    let mut at = 0;
    while at < blocks.len() {
        match FileRecord::parse(&blocks[at..], seed) {
            Some((stamp, record)) => {
                at += record.blocks() as usize;
                found.push((stamp, record));
            }
            None => at += 1,
        }
    }
    Ok(found)
}

async fn read(
    device: &AsyncDevice,
    extents: &LogExtents,
    range: std::ops::Range<u32>,
) -> Result<Vec<Arc<SectorBytes>>, JournalError> {
    let mut blocks = Vec::with_capacity(range.len());
    let largest = u64::from(device.caps().max_sectors.max(1));
    let mut at = range.start;
    while at < range.end {
        let (lba, in_one_piece) = extents.locate(at)?;
        let count = u64::from(range.end - at).min(in_one_piece).min(largest) as u32;
        let payload = device.read(lba, count).await?;
        blocks.extend((0..count).map(|index| bytes_of(&payload.sector(index))));
        at += count;
    }
    Ok(blocks)
}

/// The bytes of a block; a tag, which no code writes here, is as good as zeroes.
fn bytes_of(content: &SectorData) -> Arc<SectorBytes> {
    content.bytes().unwrap_or_else(|| Arc::new([0; 4096]))
}
