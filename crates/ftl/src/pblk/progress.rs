//! Whether anything can move, what was forced since anything did, and why no more bios are served.

use nandscape_block::BlockError;

/// Progress of a pblk.
#[derive(Default, Debug)]
pub(super) struct Progress {
    /// Something may be able to move.
    pub(super) needs_pump: bool,
    /// A drain was forced since a waiting bio was last admitted.
    pub(super) drained: bool,
    /// Padding units written since anything else moved.
    pub(super) pads: u32,
    /// The buffer that is padded next, if it needs that; the number behind the last stands for the first.
    pub(super) pad_turn: usize,
    pub(super) forced: Forced,
    /// Why no more bios are served: all of them after a power loss or a defect, only writes when
    /// no line can be freed.
    pub(super) stopped: Option<BlockError>,
}

/// Steps that were forced, and lines that buffers were padded for, since anything was gained.
#[derive(Default, Debug)]
pub(super) struct Forced {
    pub(super) steps: u32,
    /// What the host had been served then.
    pub(super) served: u64,
    /// The most that could be written since.
    pub(super) writable: u64,
}
