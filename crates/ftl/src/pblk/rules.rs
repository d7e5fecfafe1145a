//! What never changes after a pblk was put together: configuration, sizes, and thresholds that follow from them.

use super::capacity::Capacity;
use crate::kind::{FtlRun, OmittedRule};
use crate::pblk::config::{Config, Discard, MapKind};
use nandscape_block::DeviceCaps;

/// Configuration and sizes.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) capacity: Capacity,
    pub(super) config: Config,
    pub(super) run: FtlRun,
    pub(super) caps: DeviceCaps,
    /// With this many writable sectors, and no victim, any user data in the buffers leaves enough.
    pub(super) ample_sectors: u64,
    /// A frontier prepares its next line when the open one has so few sectors left.
    pub(super) next_below: u32,
}

impl Rules {
    /// Whether only a part of the mapping table is in RAM.
    #[inline]
    pub(super) const fn caches_map(&self) -> bool {
        matches!(self.config.map, MapKind::Cached(_))
    }

    pub(super) fn logs_discards(&self) -> bool {
        self.config.discard == Discard::Durable && !self.run.omits(OmittedRule::LostTrims)
    }
}
