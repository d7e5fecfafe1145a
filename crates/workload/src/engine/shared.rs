//! What jobs share and wait for: flows, and zones that others hold.

use super::flow::Flows;
use super::zbd::Zones;

/// The state that all jobs of a run have in common.
#[derive(Clone, Default, Debug)]
pub(super) struct Shared {
    pub(super) flows: Flows,
    pub(super) zones: Zones,
}

impl Shared {
    /// A job that need wait no longer.
    #[inline]
    pub(super) fn next_woken(&mut self) -> Option<u32> {
        self.flows.woken.pop().or_else(|| self.zones.woken.pop())
    }
}
