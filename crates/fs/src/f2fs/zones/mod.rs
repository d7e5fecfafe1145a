//! Zones of a mounted volume (`blkzoned`): each is a section of the main area, which the logs write at its write pointer
//! only.
//!
//! - *Order.* Blocks of a log are submitted in the order of their allocation. A write that comes before its turn waits
//!   here ([`Volume::send`]). Nothing that was allocated is left out, or the volume is stopped.
//! - *Reset in place of discard.* A section all of whose segments are free is reset as a whole, after the checkpoint, or
//!   the block of the GC journal, that made the last of them free, and before it is written again.
//! - *Mount* ([`mount`]) compares write pointers with what the checkpoint and roll-forward know, and leaves no section
//!   free that is not empty, and no zone active that is not a log's.

mod geometry;
pub(super) mod mount;

pub use geometry::ZoneGeometry;

use super::format::{BlockAddr, FormatError, GC_JOURNAL_ZONES, Layout, Place};
use super::moves::{GcJournal, Ring};
use super::rules::OmittedRule;
use super::segment::{Capacity, LOGS};
use super::volume::Volume;
use crate::contract::{FsError, Result};
use nandscape_block::zone::{ZoneAction, ZoneId, ZoneInfo, ZoneState};
use nandscape_block::{Bio, BlockError, Lba, Reply};
use nandscape_rt::BoxFuture;
use nandscape_rt::combine::join_all;
use nandscape_rt::sync::{OneshotReceiver, OneshotSender, oneshot};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

/// What the device answers.
type Answer = std::result::Result<Reply, BlockError>;

/// A write that waits for its turn, and who waits for its answer.
struct Parked {
    bio: Bio,
    answer: OneshotSender<BoxFuture<'static, Answer>>,
}

/// What was done with zones since mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ZoneCounts {
    /// Zones that were reset.
    pub(crate) resets: u64,
    /// Zones that were finished before they were full: a mount could not go on in them.
    pub(crate) finishes: u64,
    /// Writes that waited for their turn.
    pub(crate) waits: u64,
}

/// The zones of a volume.
pub(crate) struct Zones {
    geometry: ZoneGeometry,
    /// The first section that is a zone.
    first_section: u32,
    /// Writes before their turn, by their first blocks.
    parked: RefCell<BTreeMap<BlockAddr, Parked>>,
    /// Free sections that are held until they were reset.
    freed: RefCell<BTreeSet<u32>>,
    counts: Cell<ZoneCounts>,
}

impl Zones {
    /// The zones of a volume with this layout, if sections are zones.
    ///
    /// # Errors
    /// [`FsError::Incompatible`] if the volume does not fit the zones.
    pub(crate) fn of(geometry: Option<ZoneGeometry>, layout: &Layout) -> Result<Option<Self>> {
        let Some(geometry) = geometry else { return Ok(None) };
        let main = layout.main_start().0;
        let fits = layout.blocks_per_section() == geometry.blocks
            && main.is_multiple_of(geometry.blocks)
            && main <= geometry.first;
        if !fits {
            let what = "sections that are not the zones of the device".to_owned();
            return Err(FormatError::Incompatible { place: Place::Superblock(0), what }.into());
        }
        if geometry.max_active > 0 && (geometry.max_active as usize) < LOGS {
            let what = format!("{LOGS} logs on a device of {} active zones", geometry.max_active);
            return Err(FsError::Incompatible(what));
        }
        Ok(Some(Self {
            first_section: (geometry.first - main) / geometry.blocks,
            geometry,
            parked: RefCell::default(),
            freed: RefCell::default(),
            counts: Cell::default(),
        }))
    }

    /// How much of each section can be written.
    pub(crate) const fn capacity(&self) -> Capacity {
        let Self { geometry, first_section, .. } = self;
        Capacity::zones(geometry.segments(), *first_section, geometry.capacity)
    }

    /// Blocks of a zone of the GC journal.
    ///
    /// # Errors
    /// [`FsError::Incompatible`] if the device has too few active zones for one beside those of the logs.
    pub(crate) fn journal_capacity(&self) -> Result<u32> {
        let most = self.geometry.max_active;
        if most > 0 && (most as usize) < LOGS + 1 {
            let what = format!("{LOGS} logs and a GC journal on a device of {most} active zones");
            return Err(FsError::Incompatible(what));
        }
        Ok(self.geometry.capacity)
    }

    /// The zone of a section; none if the section is no zone.
    fn zone_of(&self, section: u32) -> Option<ZoneId> {
        section.checked_sub(self.first_section).map(ZoneId)
    }

    pub(crate) const fn counts(&self) -> ZoneCounts {
        self.counts.get()
    }

    fn count(&self, change: impl FnOnce(&mut ZoneCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// No write waits for its turn any more: the volume was stopped.
    pub(crate) fn abandon(&self) {
        self.parked.borrow_mut().clear();
    }
}

impl Volume {
    /// Submits a write of blocks of one section, now or when those before them in their log were submitted.
    pub(crate) fn send(&self, bio: Bio) -> impl Future<Output = Answer> + use<> {
        let sent = match self.park(bio) {
            Ok(waits) => Err(waits),
            Err(bio) => {
                let answer = self.env.device.submit(bio);
                self.send_parked();
                Ok(answer)
            }
        };
        async move {
            match sent {
                Ok(answer) => answer.await,
                Err(waits) => match waits.await {
                    Ok(answer) => answer.await,
                    Err(_) => Err(BlockError::ReadOnly("the volume was stopped by an error")),
                },
            }
        }
    }

    /// Keeps a write until its turn; one whose turn it is comes back.
    fn park(
        &self,
        bio: Bio,
    ) -> std::result::Result<OneshotReceiver<BoxFuture<'static, Answer>>, Bio> {
        let at = BlockAddr(bio.lba.0 as u32);
        let zones = self.zones.as_ref().filter(|_| self.layout.is_main(at));
        let Some(zones) = zones else { return Err(bio) };
        let is_turn = self.segments.borrow_mut().take_turn(at, bio.sectors);
        if is_turn || self.stopped.get() || self.omits(OmittedRule::ZoneOrder) {
            return Err(bio);
        }
        let (answer, waits) = oneshot(&self.env.rt, "turn of a write to a zone");
        zones.parked.borrow_mut().insert(at, Parked { bio, answer });
        zones.count(|counts| counts.waits += 1);
        Ok(waits)
    }

    /// Submits what waited for what was submitted now.
    fn send_parked(&self) {
        let Some(zones) = self.zones.as_ref().filter(|zones| !zones.parked.borrow().is_empty())
        else {
            return;
        };
        let next = || {
            let mut parked = zones.parked.borrow_mut();
            self.segments.borrow().turns().find_map(|at| Some((at, parked.remove(&at)?)))
        };
        while let Some((at, Parked { bio, answer })) = next() {
            self.segments.borrow_mut().take_turn(at, bio.sectors);
            drop(answer.send(Box::pin(self.env.device.submit(bio))));
        }
    }

    /// How much of each section can be written.
    pub(super) fn capacity(&self) -> Capacity {
        let whole = Capacity::whole(self.layout.segments_per_section());
        self.zones.as_ref().map_or(whole, Zones::capacity)
    }

    /// Whether a zone begins with a block, so that no write goes across.
    pub(super) fn begins_zone(&self, at: BlockAddr) -> bool {
        self.zones.as_ref().is_some_and(|zones| at.0.is_multiple_of(zones.geometry.blocks))
    }

    /// Sections that a mount after a power cut needs, so that all logs can leave their zones.
    pub(super) const fn sections_for_recovery(&self) -> u32 {
        if self.zones.is_some() { LOGS as u32 } else { 0 }
    }

    /// Sections that became free with a segment of theirs are kept from use until [`Volume::reset_freed`].
    pub(super) fn hold_freed(&self, zones: &Zones, sections: impl Iterator<Item = u32>) {
        let mut segments = self.segments.borrow_mut();
        for section in sections {
            if zones.zone_of(section).is_some() && segments.hold_section(section) {
                zones.freed.borrow_mut().insert(section);
            }
        }
    }

    /// Resets the zones of sections that became free; they may be used then. One that cannot be reset is left alone.
    pub(super) async fn reset_freed(&self) {
        let Some(zones) = &self.zones else { return };
        let freed = std::mem::take(&mut *zones.freed.borrow_mut());
        let resets = freed.into_iter().filter_map(|section| {
            let reset = self.env.device.manage_zone(zones.zone_of(section)?, ZoneAction::Reset);
            Some(async move { (section, reset.await) })
        });
        for (section, ended) in join_all(resets.collect::<Vec<_>>()).await {
            if ended.is_ok() {
                zones.count(|counts| counts.resets += 1);
                self.segments.borrow_mut().unhold_section(section);
            }
        }
    }

    /// Resets zones of sections that the last checkpoint still refers to, which breaks a rule.
    pub(super) async fn reset_prefree(&self) {
        let Some(zones) = &self.zones else { return };
        let per_section = self.layout.segments_per_section() as usize;
        let mut prefree: BTreeMap<u32, usize> = BTreeMap::new();
        for segment in self.segments.borrow().prefree() {
            *prefree.entry(self.layout.section_of(segment)).or_default() += 1;
        }
        for (section, _) in prefree.into_iter().filter(|(_, count)| *count == per_section) {
            if let Some(zone) = zones.zone_of(section) {
                drop(self.env.device.manage_zone(zone, ZoneAction::Reset).await);
            }
        }
    }

    /// The zones of the GC journal, by number.
    fn journal_zones(&self) -> Option<(&GcJournal, &Ring, ZoneId)> {
        let (zones, journal) = (self.zones.as_ref()?, self.gc_journal.as_ref()?);
        let first = (journal.area.blocks().start.0 - zones.geometry.first) / zones.geometry.blocks;
        Some((journal, journal.ring.as_ref()?, ZoneId(first)))
    }

    /// Learns where the GC journal goes on. No block of it counts.
    pub(super) async fn place_gc_journal(&self) -> Result<()> {
        let Some((journal, ring, first)) = self.journal_zones() else { return Ok(()) };
        let start = Lba(journal.area.blocks().start.0.into());
        let infos = self.env.device.report_zones(start, GC_JOURNAL_ZONES).await?;
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
            self.env.device.manage_zone(ZoneId(first.0 + apart), ZoneAction::Reset).await?;
            ring.begin(
                [0, 1].map(|zone| if zone == apart { 0 } else { written(infos[zone as usize]) }),
            );
        }
        Ok(())
    }

    /// Resets the zone that the next blocks of the GC journal begin, if it is not empty.
    pub(super) async fn empty_journal_zone(&self, journal: &GcJournal, blocks: u32) -> Result<()> {
        let zone = journal.ring.as_ref().and_then(|ring| ring.to_reset(blocks));
        if let (Some(zone), Some((.., first))) = (zone, self.journal_zones()) {
            self.env.device.manage_zone(ZoneId(first.0 + zone), ZoneAction::Reset).await?;
        }
        Ok(())
    }
}
