//! The GC journal in its two zones: where it goes on, and the reset of the one that it comes to.

use crate::contract::Result;
use crate::f2fs::format::GC_JOURNAL_ZONES;
use crate::f2fs::mount_info::MountInfo;
use crate::f2fs::moves::{GcJournal, Ring};
use crate::f2fs::zones::Zones;
use nandscape_block::zone::{ZoneAction, ZoneId, ZoneInfo, ZoneState};
use nandscape_block::{BlockError, Lba};

impl Zones {
    /// The zones of the GC journal, by number.
    fn journal_zones<'a>(&self, journal: &'a GcJournal) -> Option<(&'a Ring, ZoneId)> {
        let first = (journal.area.blocks().start.0 - self.geometry.first) / self.geometry.blocks;
        Some((journal.ring.as_ref()?, ZoneId(first)))
    }

    /// Learns where the GC journal goes on. No block of it counts.
    pub(in crate::f2fs) async fn place_gc_journal(
        &self,
        mount: &MountInfo,
        journal: &GcJournal,
    ) -> Result<()> {
        let Some((ring, first)) = self.journal_zones(journal) else { return Ok(()) };
        let start = Lba(journal.area.blocks().start.0.into());
        let infos = mount.env.device.report_zones(start, GC_JOURNAL_ZONES).await?;
        let [one, other] = infos[..] else {
            return Err(BlockError::Malformed("a report without all zones").into());
        };
        let written = |info: ZoneInfo| match info.state {
            ZoneState::Full => info.capacity as u32,
            _ => info.written() as u32,
        };
        ring.begin([written(one), written(other)]);
        let apart = 1 - ring.zone();
        if infos[apart as usize].state.is_active() {
            mount.env.device.manage_zone(ZoneId(first.0 + apart), ZoneAction::Reset).await?;
            ring.begin(
                [0, 1].map(|zone| if zone == apart { 0 } else { written(infos[zone as usize]) }),
            );
        }
        Ok(())
    }

    /// Resets the zone that the next blocks of the GC journal begin, if it is not empty.
    pub(in crate::f2fs) async fn empty_journal_zone(
        &self,
        mount: &MountInfo,
        journal: &GcJournal,
        blocks: u32,
    ) -> Result<()> {
        let zone = journal.ring.as_ref().and_then(|ring| ring.to_reset(blocks));
        if let (Some(zone), Some((_, first))) = (zone, self.journal_zones(journal)) {
            mount.env.device.manage_zone(ZoneId(first.0 + zone), ZoneAction::Reset).await?;
            journal.ring.iter().for_each(|ring| ring.note_reset(zone));
        }
        Ok(())
    }
}
