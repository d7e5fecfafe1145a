//! What buffers, frontiers and files are known by.

use crate::common::ids::OriginId;
use nandscape_block::Owner;

/// Number of a buffer; lines that it fills have it as their origin.
pub(super) type BufferId = OriginId;

/// Number of a frontier.
pub(super) type FrontierId = u8;

/// A file's identity and generation.
pub(super) type FileKey = (u64, u32);

/// The file that a bio belongs to.
pub(super) fn file_of(owner: Option<Owner>) -> Option<FileKey> {
    owner.map(|owner| (owner.file, owner.generation))
}
