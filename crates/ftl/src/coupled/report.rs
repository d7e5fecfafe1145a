//! A coupled SSD as an [`Ftl`]: what it reports, and how it goes off its media. What the firmware writes to the
//! page-mapped region is no data of the host's: it counts as mapping.

use super::check::Check;
use super::lines::LineState;
use super::space::Class;
use super::{Counts, CoupledCounts, CoupledFtl};
use crate::face::{Attach, CpuSpan, DeviceSize, EraseUnit, EraseUnitState, Ftl, MemoryUse};
use crate::kind::FtlKind;
use crate::report::{FtlReport, SectorCounts};
use nandscape_media::{HostLink, OpenChannel};
use nandscape_rt::Nanos;
use nandscape_rt::counts::Counts as _;

impl<M: OpenChannel> CoupledFtl<M> {
    /// What only this kind counts, with what is in use now.
    #[must_use]
    pub fn own_counts(&self) -> CoupledCounts {
        let (used, all) = self.lines.owned_use(Class::Data);
        let store = &self.flash.zones.store;
        CoupledCounts {
            open: self.records.open(),
            region_lines: used.into(),
            region_lines_all: all.into(),
            record_bytes: self.records.bytes().iter().sum(),
            collect_media_ns: (store.copy_ns() + self.flash.counts.erase_ns)
                / u64::from(store.pages_of_row()),
            ..self.flash.counts.own
        }
    }

    fn memory_parts(&self) -> MemoryUse {
        let below = self.flash.zones.memory();
        let [superblocks, valid, lines] = self.lines.bytes();
        let [records, tables] = self.records.bytes();
        let map = vec![
            ("pages", below.part("map")),
            ("superblocks", superblocks),
            ("valid", valid),
            ("records", records),
            ("redirector", tables),
        ];
        let buffers = self.persist.bytes() + self.writes.bytes() + self.gc.bytes();
        let parts = below.parts.iter().map(|&(name, bytes)| match name {
            "map" => (name, map.iter().map(|(_, bytes)| bytes).sum()),
            "line" => (name, bytes + lines),
            "buffers" => (name, bytes + buffers),
            _ => (name, bytes),
        });
        MemoryUse { side: below.side, parts: parts.collect(), map }
    }
}

impl<M: OpenChannel> Ftl for CoupledFtl<M> {
    type Media = M;

    fn kind(&self) -> FtlKind {
        FtlKind::Coupled
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.flash.now
    }

    fn size(&self) -> DeviceSize {
        self.rules.sizes.device(&self.rules.config)
    }

    #[inline]
    fn sectors(&self) -> SectorCounts {
        let mut sectors = self.flash.zones.sectors();
        let own = self.flash.counts.own_sectors();
        sectors.user = sectors.user.saturating_sub(own);
        sectors.map += own;
        sectors
    }

    fn report(&self) -> FtlReport {
        let mut report = self.flash.zones.report();
        report.sectors = self.sectors();
        report.host.written = report.host.written.saturating_sub(self.flash.counts.own_sectors());
        report.host.discarded += self.flash.counts.discarded;
        report.host.stall_ns_max = report.host.stall_ns_max.max(self.flash.counts.stall_ns_max);
        report.gc.add(&self.flash.counts.gc);
        report.firmware = self.flash.zones.store.firmware_counts();
        report
    }

    fn reset_counts(&mut self) {
        self.flash.zones.reset_counts();
        let own = CoupledCounts { carried: self.records.open(), ..CoupledCounts::default() };
        self.flash.counts = Counts { own, ..Counts::default() };
    }

    fn memory(&self) -> MemoryUse {
        self.memory_parts()
    }

    fn erase_units(&self) -> Vec<EraseUnit> {
        let pages = self.flash.zones.store.page_units();
        let lines = (0..self.lines.count()).map(|line| {
            let of = self.lines.get(line);
            let state = match of.state {
                LineState::Free | LineState::Leaving | LineState::Resetting => EraseUnitState::Free,
                LineState::Open => EraseUnitState::Open,
                LineState::Closed | LineState::Copying => EraseUnitState::Full,
                LineState::Failed => EraseUnitState::Bad,
            };
            EraseUnit { state, valid: of.valid, written: self.flash.zones.store.admitted(line) }
        });
        pages.into_iter().chain(lines).collect()
    }

    fn mapped_sectors(&self) -> u64 {
        self.lines.live() + self.flash.zones.store.mapped_pages()
    }

    fn appended_sectors(&self) -> u64 {
        self.lines.live()
    }

    fn attach(&mut self, attach: Attach) {
        self.flash.zones.attach(attach);
    }

    fn keep_flushed(&mut self, keeps: bool) {
        self.flash.zones.keep_flushed(keeps);
    }

    fn link(&self) -> &HostLink {
        self.flash.zones.link()
    }

    fn cpu_spans(&mut self, _room: Option<usize>) -> Vec<CpuSpan> {
        Vec::new()
    }

    fn media(&self) -> &M {
        self.flash.zones.media()
    }

    fn media_mut(&mut self) -> &mut M {
        self.flash.zones.media_mut()
    }

    fn power_off(self) -> M {
        self.flash.zones.power_off()
    }

    fn check_invariants(&self) -> Result<(), String> {
        let (store, lines) = (&self.flash.zones.store, &self.lines);
        Check { device: self, store, lines }.all()
    }
}
