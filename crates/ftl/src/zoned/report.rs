//! A zoned SSD as an [`Ftl`]: what it reports, and how it goes off its media. Both parts of the device are counted
//! together; a flush counts once.

use super::check::Check;
use super::front::Front;
use super::{ZoneCounts, ZonedCounts, ZonedFtl};
use crate::face::{Attach, CpuSpan, DeviceSize, EraseUnit, EraseUnitState, Ftl, MemoryUse};
use crate::kind::{FtlKind, Side};
use crate::report::{FtlReport, SectorCounts};
use nandscape_block::Completion;
use nandscape_block::zone::{ZoneInfo, ZoneState};
use nandscape_media::{HostLink, OpenChannel};
use nandscape_rt::Nanos;
use nandscape_rt::counts::Counts;

impl<M: OpenChannel> ZonedFtl<M> {
    /// What only this kind counts.
    #[must_use]
    pub const fn own_counts(&self) -> ZoneCounts {
        self.store.counts.own
    }
}

impl<M: OpenChannel> Ftl for ZonedFtl<M> {
    type Media = M;

    fn kind(&self) -> FtlKind {
        FtlKind::Zoned
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.store.now
    }

    fn size(&self) -> DeviceSize {
        self.store.rules.sizes.device()
    }

    #[inline]
    fn sectors(&self) -> SectorCounts {
        let mut sectors = self.store.counts.sectors;
        if let Some(pages) = self.store.front.pages() {
            sectors.add(&pages.sectors());
        }
        sectors
    }

    fn report(&self) -> FtlReport {
        let ZonedCounts { sectors, host, erases, flush, media_errors, in_use_sum, .. } =
            self.store.counts;
        let front = self.store.front.pages().map(Ftl::report).unwrap_or_default();
        let mut report = FtlReport {
            sectors,
            host,
            erases,
            flush,
            media_errors,
            in_use_sectors_mean: in_use_sum as f64 / host.written.max(1) as f64,
            ..FtlReport::default()
        };
        report.in_use_sectors_mean += front.in_use_sectors_mean;
        report.sectors.add(&front.sectors);
        report.host.add(&front.host);
        report.erases += front.erases;
        report.gc = front.gc;
        report.media_errors.add(&front.media_errors);
        report.dropped_sectors = front.dropped_sectors;
        report
    }

    fn reset_counts(&mut self) {
        match self.store.front.pages_mut() {
            Some(pages) => pages.reset_counts(),
            None => self.store.front.parts().1.reset_counts(),
        }
        self.store.counts = ZonedCounts::default();
    }

    fn memory(&self) -> MemoryUse {
        let (tables, queues) = self.store.zones.bytes();
        let units: u64 = self.store.units.iter().map(super::units::Unit::bytes).sum();
        let port =
            self.waiters.bytes() + queues + (self.done.capacity() * size_of::<Completion>()) as u64;
        let mut parts = vec![
            ("map", tables),
            ("zones", self.store.table.bytes()),
            ("line", units),
            ("buffers", self.store.zones.pages.bytes() + port),
        ];
        let front = self.store.front.pages().map(Ftl::memory);
        for (name, bytes) in front.into_iter().flat_map(|memory| memory.parts) {
            match parts.iter_mut().find(|(part, _)| *part == name) {
                Some((_, sum)) => *sum += bytes,
                None => parts.push((name, bytes)),
            }
        }
        MemoryUse { side: Side::Device, parts, map: Vec::new() }
    }

    fn erase_units(&self) -> Vec<EraseUnit> {
        let zones = self.store.table.infos().map(erase_unit);
        let front = self.store.front.pages().map(Ftl::erase_units);
        front.into_iter().flatten().chain(zones).collect()
    }

    fn mapped_sectors(&self) -> u64 {
        let zones: u64 = self.store.table.infos().map(ZoneInfo::written).sum();
        zones + self.store.front.pages().map_or(0, Ftl::mapped_sectors)
    }

    fn attach(&mut self, attach: Attach) {
        match &mut self.store.front {
            Front::Bare { link, .. } => *link = HostLink::new(attach.link),
            Front::Pages(pages) => pages.attach(attach),
        }
    }

    fn keep_flushed(&mut self, keeps: bool) {
        self.store.flush = self.store.rules.config.pages.buffer.flush_now(keeps);
        if let Some(pages) = self.store.front.pages_mut() {
            pages.keep_flushed(keeps);
        }
    }

    fn link(&self) -> &HostLink {
        self.store.front.link()
    }

    fn cpu_spans(&mut self, _room: Option<usize>) -> Vec<CpuSpan> {
        Vec::new()
    }

    fn media(&self) -> &M {
        self.store.front.media()
    }

    fn media_mut(&mut self) -> &mut M {
        self.store.front.media_mut()
    }

    fn power_off(self) -> M {
        self.store.lose_power()
    }

    fn check_invariants(&self) -> Result<(), String> {
        Check(&self.store).all()
    }
}

/// A zone as an erase unit.
fn erase_unit(info: &ZoneInfo) -> EraseUnit {
    let state = match info.state {
        ZoneState::Empty => EraseUnitState::Free,
        ZoneState::ImplicitlyOpened | ZoneState::ExplicitlyOpened | ZoneState::Closed => {
            EraseUnitState::Open
        }
        ZoneState::Full => EraseUnitState::Full,
        ZoneState::ReadOnly => EraseUnitState::Corrupt,
        ZoneState::Offline => EraseUnitState::Bad,
    };
    let written = u32::try_from(info.written()).unwrap_or(u32::MAX);
    EraseUnit { state, valid: written, written }
}
