//! The sectors of the log that a recovery would use, without recovering: so that campaigns can damage one and
//! see what the recovery makes of it. Shares no code with the recovery but the formats.

use super::format::{Feature, JOURNAL_INODE};
use super::journal::disk::{BLOCK_BYTES, Commit, Header, Kind, Revokes, Superblock, Tags};
use super::journal::{JournalError, LogExtents, Tid};
use super::raw::Ext4Image;
use crate::image::{BlockBytes, ImageError, LogSector};
use nandscape_block::{AsyncDevice, Lba};
use std::collections::BTreeMap;

/// A block of a transaction.
struct LogBlock {
    /// Where it lies in the log.
    at: u32,
    /// The home block, if it is a copy.
    home: Option<u64>,
    checked_bytes: usize,
}

impl LogBlock {
    const fn new(at: u32, home: Option<u64>) -> Self {
        Self { at, home, checked_bytes: BLOCK_BYTES }
    }
}

/// A transaction that is committed.
struct Committed {
    tid: Tid,
    blocks: Vec<LogBlock>,
    revokes: Vec<u64>,
}

fn refused(error: JournalError) -> ImageError {
    match error {
        JournalError::Io(error) => ImageError::Device(error),
        other => ImageError::Format(other.to_string()),
    }
}

/// The sectors of committed transactions, in order; without copies that are revoked, which no recovery reads.
pub(crate) async fn live_log(device: &AsyncDevice) -> Result<Vec<LogSector>, ImageError> {
    let raw = Ext4Image::open(device).await?;
    if !raw.sb.has(Feature::NEEDS_RECOVERY) {
        return Ok(Vec::new());
    }
    let (inode, _) = raw.inode(JOURNAL_INODE).await?;
    let extents = raw.extents(JOURNAL_INODE, &inode).await?;
    let extents = LogExtents::new(extents.iter().map(|extent| extent.start..extent.end()));
    let extents = extents.map_err(refused)?;
    let place = |block| extents.locate(block).map(|(lba, _)| lba).map_err(refused);
    let committed = transactions(&raw, &extents, &place).await?;
    let mut revoked: BTreeMap<u64, Tid> = BTreeMap::new();
    for transaction in &committed {
        revoked.extend(transaction.revokes.iter().map(|block| (*block, transaction.tid)));
    }
    let mut sectors = Vec::new();
    for Committed { tid, blocks, .. } in &committed {
        let Some(first) = blocks.first() else { continue };
        let transaction = place(first.at)?;
        let is_used = |home: &Option<u64>| {
            let revoke = home.as_ref().and_then(|home| revoked.get(home));
            revoke.is_none_or(|revoke| !revoke.reached(*tid))
        };
        for &LogBlock { at, checked_bytes, .. } in
            blocks.iter().filter(|block| is_used(&block.home))
        {
            sectors.push(LogSector { lba: place(at)?, transaction, checked_bytes });
        }
    }
    Ok(sectors)
}

/// Walks the log from its tail on.
async fn transactions(
    raw: &Ext4Image,
    extents: &LogExtents,
    place: &impl Fn(u32) -> Result<Lba, ImageError>,
) -> Result<Vec<Committed>, ImageError> {
    let bytes = raw.reader().block(place(0)?.0).await?;
    let log = Superblock::parse(bytes, extents.blocks()).map_err(refused)?;
    let (codec, first, end) = (log.codec(), log.first(), log.blocks());
    let after = |block: u32, count: u32| {
        let at = u64::from(block - first) + u64::from(count);
        first + (at % u64::from(end - first)) as u32
    };
    let (mut at, mut tid) = (log.start().block, log.start().tid);
    let (mut committed, mut blocks, mut revokes) = (Vec::new(), Vec::new(), Vec::new());
    // A log that is in use has no more blocks than it is long.
    while at != 0 && blocks.len() < (end - first) as usize {
        let block: BlockBytes = raw.reader().block(place(at)?.0).await?;
        let header = Header::parse(&block).filter(|header| header.tid == tid);
        blocks.push(LogBlock::new(at, None));
        let mut taken = 1;
        match header.map(|header| header.kind) {
            Some(Kind::Descriptor) => {
                for tag in Tags::parse(&codec, &block) {
                    blocks.push(LogBlock::new(after(at, taken), Some(tag.block)));
                    taken += 1;
                }
            }
            Some(Kind::Revoke) => {
                revokes.extend(Revokes::parse(&codec, &block).into_iter().flatten())
            }
            Some(Kind::Commit) => {
                if let Some(commit) = blocks.last_mut() {
                    commit.checked_bytes = Commit::CHECKED_BYTES;
                }
                let (blocks, revokes) = (std::mem::take(&mut blocks), std::mem::take(&mut revokes));
                committed.push(Committed { tid, blocks, revokes });
                tid = Tid(tid.0.wrapping_add(1));
            }
            _ => break,
        }
        at = after(at, taken);
    }
    Ok(committed)
}
