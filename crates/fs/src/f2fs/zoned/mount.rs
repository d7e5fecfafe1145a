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
use crate::f2fs::segment_manager::SegmentManager;
use crate::f2fs::zones::Zones;
use nandscape_block::zone::{ZoneAction, ZoneInfo, ZoneState};
use nandscape_block::{BlockError, Lba};
use nandscape_rt::combine::in_turn;
use nandscape_rt::defect;

impl Zones {
    /// Brings zones and sections together, after roll-forward and before the first write.
    ///
    /// # Errors
    /// [`FsError::NoSpace`](crate::contract::FsError::NoSpace) if no section is free for the warm node log; errors of the
    /// device.
    pub(in crate::f2fs) async fn align_zones(&self, segments: &SegmentManager) -> Result<()> {
        let infos = self.report(segments).await?;
        self.reset_unneeded(segments, &infos).await?;
        let infos = self.report(segments).await?;
        self.find_stale_logs(segments, &infos);
        self.finish_others(segments, &infos).await?;
        segments.borrow_mut().begin_turns();
        for log in SegmentType::ALL {
            let leaves = {
                let segments = segments.borrow();
                let is_chain = log == SegmentType::WarmNode;
                segments.log(log).stale && (is_chain || segments.is_overlapped(log))
            };
            if leaves {
                let (segment, summaries) = segments.borrow_mut().renew(log)?;
                segments.meta.keep_summaries(segment, &summaries)?;
            }
        }
        Ok(())
    }

    /// The zones of the main area, in order.
    async fn report(&self, segments: &SegmentManager) -> Result<Vec<ZoneInfo>> {
        let count = segments.mount.layout.sections() - self.first_section;
        let report =
            segments.mount.env.device.report_zones(Lba(self.geometry.first.into()), count).await?;
        if report.len() as u32 == count {
            Ok(report)
        } else {
            Err(BlockError::Malformed("a report without all zones").into())
        }
    }

    /// Resets zones that are not empty, and of which nothing is needed: but for those of logs that go on there.
    async fn reset_unneeded(&self, segments: &SegmentManager, infos: &[ZoneInfo]) -> Result<()> {
        if segments.mount.omits(OmittedRule::ZoneLostReset) {
            return Ok(());
        }
        let mut resets = Vec::new();
        for (section, info) in (self.first_section..).zip(infos) {
            let (is_written, is_failed) = (info.written() > 0, info.state.is_failed());
            if is_written && !is_failed && self.may_reset(segments, section, info) {
                let zone = self.zone_of(section);
                let zone = zone.ok_or_else(|| defect!("section {section} is a zone"))?;
                resets.push(segments.mount.env.device.manage_zone(zone, ZoneAction::Reset));
                self.count(|counts| counts.resets += 1);
            }
        }
        for ended in in_turn(resets).await {
            ended?;
        }
        Ok(())
    }

    /// Whether nothing of a section is needed. A log that is in it must be at its start, and its zone not.
    fn may_reset(&self, segments: &SegmentManager, section: u32, info: &ZoneInfo) -> bool {
        let mount = &segments.mount;
        let segments = segments.borrow();
        if segments.is_needed_section(section) || segments.is_held_section(section) {
            return false;
        }
        let start = mount.layout.section_segments(section).start;
        let logs = segments.logs().iter();
        let mut here = logs.filter(|log| mount.layout.section_of(log.segment) == section);
        here.all(|log| log.segment == SegNo(start) && log.next == 0 && info.written() > 0)
    }

    /// Logs whose zones are written to elsewhere than where the log goes on, and those that would write blocks that
    /// roll-forward found: of a chain, or valid although the cut took what was to be in them.
    fn find_stale_logs(&self, segments: &SegmentManager, infos: &[ZoneInfo]) {
        let mount = &segments.mount;
        if mount.omits(OmittedRule::ZoneStaleLog) {
            return;
        }
        let mut segments = segments.borrow_mut();
        for log in SegmentType::ALL {
            let next = segments.next_block(log);
            let section = mount.layout.section_of(segments.log(log).segment);
            // Sections before the first zone have no write pointer.
            let info = self.zone_of(section).and_then(|zone| infos.get(zone.0 as usize));
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
    async fn finish_others(&self, segments: &SegmentManager, infos: &[ZoneInfo]) -> Result<()> {
        let mount = &segments.mount;
        if mount.omits(OmittedRule::ZoneFinish) {
            return Ok(());
        }
        let mut finishes = Vec::new();
        for (section, info) in (self.first_section..).zip(infos) {
            let segments = segments.borrow();
            let goes_on = segments
                .logs()
                .iter()
                .any(|log| !log.stale && mount.layout.section_of(log.segment) == section);
            if info.state.is_active() && !goes_on {
                let zone = self.zone_of(section);
                let zone = zone.ok_or_else(|| defect!("section {section} is a zone"))?;
                finishes.push(mount.env.device.manage_zone(zone, ZoneAction::Finish));
                self.count(|counts| counts.finishes += 1);
            }
        }
        for ended in in_turn(finishes).await {
            ended?;
        }
        Ok(())
    }
}
