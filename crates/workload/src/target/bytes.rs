//! Which bytes a request is for, and its content in the pieces that a file system or a page cache takes.

use nandscape_block::{Bio, Payload, SECTOR_BYTES};
use nandscape_fs::contract::Data;
use std::ops::Range;

/// All bytes of a request's sectors.
pub(super) fn all_bytes(bio: &Bio) -> Range<u64> {
    let first = bio.lba.0 * SECTOR_BYTES;
    first..first + u64::from(bio.sectors) * SECTOR_BYTES
}

/// The content that a write has for `bytes`, which lie in its sectors: whole sectors, and the parts of such at
/// both ends, each with its first byte.
pub(super) fn pieces(bio: &Bio, bytes: Range<u64>) -> impl Iterator<Item = (u64, Data)> {
    let head = bytes.start.next_multiple_of(SECTOR_BYTES).min(bytes.end);
    let tail = head.max(bytes.end - bytes.end % SECTOR_BYTES);
    let pieces = [bytes.start..head, head..tail, tail..bytes.end];
    let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
    pieces.map(|piece| (piece.start, content(bio, &piece)))
}

/// The content of whole sectors, or of a part of one.
fn content(bio: &Bio, piece: &Range<u64>) -> Data {
    let first = (piece.start / SECTOR_BYTES - bio.lba.0) as u32;
    if *piece == all_bytes(bio) {
        return Data::Sectors(bio.payload.clone(), bio.sectors);
    }
    let (within, bytes) = (piece.start % SECTOR_BYTES, piece.end - piece.start);
    if within > 0 || bytes < SECTOR_BYTES {
        return Data::Part(bio.payload.sector(first), within as usize..(within + bytes) as usize);
    }
    let sectors = (bytes / SECTOR_BYTES) as u32;
    let content = (first..first + sectors).map(|sector| bio.payload.sector(sector));
    Data::Sectors(Payload::collect(content.collect()), sectors)
}
