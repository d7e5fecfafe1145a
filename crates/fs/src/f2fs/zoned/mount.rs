//! Mount of a volume on zones: write pointers beside what the checkpoint knows (`f2fs_fix_curseg_write_pointer`,
//! `f2fs_check_write_pointer` in fs/f2fs/segment.c).
//!
//! After a power cut zones are written further than the checkpoint says. Roll-forward ends at the write pointer by itself:
//! what lies beyond reads as zeroes. Then, before anything is written:
//! 1. sections that hold nothing needed and are not empty are reset: the reset was lost in the cut, or what was written
//!    since the checkpoint was not made durable by an fsync. A log at the start of such a section goes on there;
//! 2. other sections whose zones are active and no log's to go on with are finished, so that the logs' next zones stay
//!    within the limit on active zones.
//!    They may hold fewer blocks than are valid: a checkpoint does not wait for file data in flight, which reads as zeroes
//!    then;
//! 3. the warm node log goes on in a fresh section if it cannot in its own: the next chain begins there. So does a log
//!    in whose segment roll-forward found blocks, whose summaries belong into SSA. Others do when they are written next.

use crate::contract::Result;
use crate::f2fs::format::{BlockAddr, SegNo, SegmentType};
use crate::f2fs::rules::OmittedRule;
use crate::f2fs::volume::Volume;
use crate::f2fs::zones::Zones;
use nandscape_block::zone::{ZoneAction, ZoneInfo, ZoneState};
use nandscape_block::{BlockError, Lba};
use nandscape_rt::combine::join_all;

impl Volume {
    /// Brings zones and sections together, after roll-forward and before the first write.
    ///
    /// # Errors
    /// [`FsError::NoSpace`](crate::contract::FsError::NoSpace) if no section is free for the warm node log; errors of the
    /// device.
    pub(in crate::f2fs) async fn align_zones(&self, zones: &Zones) -> Result<()> {
        let infos = self.report(zones).await?;
        self.reset_unneeded(zones, &infos).await?;
        let infos = self.report(zones).await?;
        self.find_stale_logs(zones, &infos);
        self.finish_others(zones, &infos).await?;
        self.segments.borrow_mut().begin_turns();
        for log in SegmentType::ALL {
            let leaves = {
                let segments = self.segments.borrow();
                let is_chain = log == SegmentType::WarmNode;
                segments.log(log).stale && (is_chain || segments.is_overlapped(log))
            };
            if leaves {
                let (segment, summaries) = self.segments.borrow_mut().renew(log)?;
                self.meta.keep_summaries(segment, &summaries);
            }
        }
        Ok(())
    }

    /// The zones of the main area, in order.
    async fn report(&self, zones: &Zones) -> Result<Vec<ZoneInfo>> {
        let count = self.mount.layout.sections() - zones.first_section;
        let report =
            self.mount.env.device.report_zones(Lba(zones.geometry.first.into()), count).await?;
        if report.len() as u32 == count {
            Ok(report)
        } else {
            Err(BlockError::Malformed("a report without all zones").into())
        }
    }

    /// Resets zones that are not empty, and of which nothing is needed: but for those of logs that go on there.
    async fn reset_unneeded(&self, zones: &Zones, infos: &[ZoneInfo]) -> Result<()> {
        if self.mount.omits(OmittedRule::ZoneLostReset) {
            return Ok(());
        }
        let mut resets = Vec::new();
        for (section, info) in (zones.first_section..).zip(infos) {
            let (is_written, is_failed) = (info.written() > 0, info.state.is_failed());
            if is_written && !is_failed && self.may_reset(section, info) {
                let zone = zones.zone_of(section).unwrap_or_default();
                resets.push(self.mount.env.device.manage_zone(zone, ZoneAction::Reset));
                zones.count(|counts| counts.resets += 1);
            }
        }
        for ended in join_all(resets).await {
            ended?;
        }
        Ok(())
    }

    /// Whether nothing of a section is needed. A log that is in it must be at its start, and its zone not.
    fn may_reset(&self, section: u32, info: &ZoneInfo) -> bool {
        let segments = self.segments.borrow();
        if segments.is_needed_section(section) || segments.is_held_section(section) {
            return false;
        }
        let start = self.mount.layout.section_segments(section).start;
        let logs = segments.logs().iter();
        let mut here = logs.filter(|log| self.mount.layout.section_of(log.segment) == section);
        here.all(|log| log.segment == SegNo(start) && log.next == 0 && info.written() > 0)
    }

    /// Logs whose zones are written to elsewhere than where the log goes on, and those that would write blocks that
    /// roll-forward found: of a chain, or valid although the cut took what was to be in them.
    fn find_stale_logs(&self, zones: &Zones, infos: &[ZoneInfo]) {
        if self.mount.omits(OmittedRule::ZoneStaleLog) {
            return;
        }
        let mut segments = self.segments.borrow_mut();
        for log in SegmentType::ALL {
            let next = segments.next_block(log);
            let section = self.mount.layout.section_of(segments.log(log).segment);
            // Sections before the first zone have no write pointer.
            let info = zones.zone_of(section).and_then(|zone| infos.get(zone.0 as usize));
            let is_elsewhere = info.is_some_and(|info| {
                info.state.is_failed()
                    || info.state == ZoneState::Full
                    || BlockAddr(info.write_pointer.0 as u32) != next
            });
            if is_elsewhere || segments.is_overlapped(log) {
                segments.make_stale(log);
            }
        }
    }

    /// Finishes zones that are active and no log's to go on with.
    async fn finish_others(&self, zones: &Zones, infos: &[ZoneInfo]) -> Result<()> {
        if self.mount.omits(OmittedRule::ZoneFinish) {
            return Ok(());
        }
        let mut finishes = Vec::new();
        for (section, info) in (zones.first_section..).zip(infos) {
            let segments = self.segments.borrow();
            let goes_on = segments
                .logs()
                .iter()
                .any(|log| !log.stale && self.mount.layout.section_of(log.segment) == section);
            if info.state.is_active() && !goes_on {
                let zone = zones.zone_of(section).unwrap_or_default();
                finishes.push(self.mount.env.device.manage_zone(zone, ZoneAction::Finish));
                zones.count(|counts| counts.finishes += 1);
            }
        }
        for ended in join_all(finishes).await {
            ended?;
        }
        Ok(())
    }

    /// The checkpoint of a recovery is durable: what was held for it is free, and its zones are reset.
    pub(in crate::f2fs) async fn release_held(&self, held: Vec<SegNo>) {
        for segment in &held {
            self.segments.borrow_mut().unhold(*segment);
        }
        if let Some(zones) = &self.zones {
            let sections = held.iter().map(|segment| self.mount.layout.section_of(*segment));
            self.hold_freed(zones, sections);
            self.reset_freed().await;
        }
    }
}
