//! What lines, and the write points that fill them, are known by.

/// Index of a line.
pub(crate) type LineId = u32;
/// No line.
pub(crate) const NO_LINE: LineId = u32::MAX;

/// Number of what a line is filled from: a write buffer, or a write point.
pub(crate) type OriginId = u8;
/// The origin of lines that hold mapping blocks.
pub(crate) const MAP_ORIGIN: OriginId = OriginId::MAX;
