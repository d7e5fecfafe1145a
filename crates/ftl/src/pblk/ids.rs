//! What lines, buffers, frontiers and files are known by.

use nandscape_block::Owner;

/// Index of a line.
pub(super) type LineId = u32;
/// No line.
pub(super) const NO_LINE: LineId = u32::MAX;

/// Number of a buffer.
pub(super) type BufferId = u8;
/// In place of a buffer: the lines of mapping blocks.
pub(super) const MAP_ORIGIN: BufferId = BufferId::MAX;

/// Number of a frontier.
pub(super) type FrontierId = u8;

/// A file's identity and generation.
pub(super) type FileKey = (u64, u32);

/// The file that a bio belongs to.
pub(super) fn file_of(owner: Option<Owner>) -> Option<FileKey> {
    owner.map(|owner| (owner.file, owner.generation))
}
