//! Whether the kernel's limiter can come to rest: collection goes on while fewer chunks are free than a high mark,
//! whether or not anybody writes, and how many can be free depends on how full the device is.

use super::Pblk;
use crate::face::Rest;
use crate::pblk::config::Limiter;
use nandscape_media::OpenChannel;

impl<M: OpenChannel> Pblk<M> {
    /// What can be free at most with as many sectors mapped as now, against the limiter's high mark. A line is open
    /// for each frontier, and what is mapped fills the lines behind them.
    pub(super) fn rest_state(&self) -> Option<Rest> {
        if self.rules.config.limiter != Limiter::Kernel {
            return None;
        }
        let capacity = &self.rules.capacity;
        let mapped_sectors = self.flash.l2p.mapped();
        let lines = capacity.physical_sectors / u64::from(capacity.line_sectors);
        let full = mapped_sectors.div_ceil(capacity.line_data_sectors.into());
        let others = self.frontiers.all.len() as u64 + u64::from(capacity.map_lines);
        let free = lines.saturating_sub(full + others) * u64::from(self.flash.layout.width);
        let (wanted_chunks, line_chunks) =
            (capacity.high_chunks.into(), self.flash.layout.width.into());
        let chunks = lines * line_chunks;
        Some(Rest { wanted_chunks, free_chunks_max: free, chunks, line_chunks, mapped_sectors })
    }
}
