//! Zones of a mounted volume (`blkzoned`): each is a section of the main area, which the logs write at its write pointer
//! only.
//!
//! - *Order.* Blocks of a log are submitted in the order of their allocation. A write that comes before its turn waits
//!   ([`Writes::send`](super::sending::Writes::send)). Nothing that was allocated is left out, or the volume is stopped.
//! - *Reset in place of discard.* A section all of whose segments are free is reset as a whole, after the checkpoint, or
//!   the block of the GC journal, that made the last of them free, and before it is written again.
//! - *Mount* ([`mount`]) compares write pointers with what the checkpoint and roll-forward know, and leaves no section
//!   free that is not empty, and no zone active that is not a log's.

mod journal;
pub(super) mod mount;

use super::segment_manager::SegmentManager;
use super::zones::Zones;
use nandscape_block::zone::ZoneAction;
use nandscape_rt::combine::in_turn;
use std::collections::BTreeMap;

impl Zones {
    /// Sections that became free with a segment of theirs are kept from use until [`Zones::reset_freed`].
    pub(super) fn hold_freed(
        &self,
        segments: &SegmentManager,
        sections: impl Iterator<Item = u32>,
    ) {
        let mut segments = segments.borrow_mut();
        for section in sections {
            if self.zone_of(section).is_some() && segments.hold_section(section) {
                self.freed.borrow_mut().insert(section);
            }
        }
    }

    /// Resets the zones of sections that became free; they may be used then. One that cannot be reset is left alone.
    pub(super) async fn reset_freed(&self, segments: &SegmentManager) {
        let freed = std::mem::take(&mut *self.freed.borrow_mut());
        let resets = freed.into_iter().filter_map(|section| {
            let reset =
                segments.mount.env.device.manage_zone(self.zone_of(section)?, ZoneAction::Reset);
            Some(async move { (section, reset.await) })
        });
        for (section, ended) in in_turn(resets.collect::<Vec<_>>()).await {
            if ended.is_ok() {
                self.count(|counts| counts.resets += 1);
                segments.borrow_mut().unhold_section(section);
            }
        }
    }

    /// Resets zones of sections that the last checkpoint still refers to, which breaks a rule.
    pub(super) async fn reset_prefree(&self, segments: &SegmentManager) {
        let per_section = segments.mount.layout.segments_per_section() as usize;
        let mut prefree: BTreeMap<u32, usize> = BTreeMap::new();
        for segment in segments.borrow().prefree() {
            *prefree.entry(segments.mount.layout.section_of(segment)).or_default() += 1;
        }
        for (section, _) in prefree.into_iter().filter(|(_, count)| *count == per_section) {
            if let Some(zone) = self.zone_of(section) {
                drop(segments.mount.env.device.manage_zone(zone, ZoneAction::Reset).await);
            }
        }
    }
}
