//! A conventional SSD as an [`Ftl`]: what it reports, and how it goes off its media.

use super::DeviceFtl;
use super::counts::DeviceCounts;
use super::region::RegionMap;
use crate::common::lines::{Line, LineState};
use crate::face::{Attach, DeviceSize, EraseUnit, EraseUnitState, Ftl, MemoryUse};
use crate::kind::{FtlKind, Side};
use crate::pblk::costs::CpuSpan;
use crate::report::{FtlReport, SectorCounts};
use nandscape_block::Completion;
use nandscape_media::{HostLink, OpenChannel};
use nandscape_rt::Nanos;

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// Everything counted since the last reset.
    pub const fn counts(&self) -> &DeviceCounts {
        &self.counts
    }

    /// What it stands on, and the link above it: lent to what shares them.
    #[inline]
    pub(crate) const fn media_and_link(&mut self) -> (&mut M, &mut HostLink) {
        (&mut self.media, &mut self.link)
    }

    pub(super) fn reset_all_counts(&mut self) {
        self.counts = DeviceCounts::default();
        self.in_use_sum = 0;
        self.map.reset_counts();
    }
}

impl<M: OpenChannel, P: RegionMap> Ftl for DeviceFtl<M, P> {
    type Media = M;

    fn kind(&self) -> FtlKind {
        P::KIND
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.now
    }

    fn size(&self) -> DeviceSize {
        self.sizes.device()
    }

    #[inline]
    fn sectors(&self) -> SectorCounts {
        self.counts.sectors
    }

    fn report(&self) -> FtlReport {
        let counts = self.counts;
        let DeviceCounts { sectors, host, erases, gc, flush, media_errors, .. } = counts;
        let mean = self.in_use_sum as f64 / host.written.max(1) as f64;
        FtlReport {
            sectors,
            host,
            erases,
            gc,
            flush,
            media_errors,
            dropped_sectors: counts.dropped_sectors,
            in_use_sectors_mean: mean,
            detail: self.map.detail(counts.own),
        }
    }

    fn reset_counts(&mut self) {
        self.link.reset_counts();
        self.reset_all_counts();
    }

    fn memory(&self) -> MemoryUse {
        let points = self.instances.iter().map(|i| i.host.flight.bytes() + i.gc.flight.bytes());
        let port = self.port.bytes() + (self.done.capacity() * size_of::<Completion>()) as u64;
        MemoryUse {
            side: Side::Device,
            parts: vec![
                ("map", self.map.bytes()),
                ("bitmap", self.lines.bitmap_bytes()),
                ("line", self.lines.line_bytes() + self.victims.bytes() + self.discards.bytes()),
                ("buffers", self.buffer.bytes() + port + points.sum::<u64>()),
            ],
            map: self.map.parts(),
        }
    }

    fn erase_units(&self) -> Vec<EraseUnit> {
        self.lines.iter().map(|(_, line)| erase_unit(line)).collect()
    }

    fn mapped_sectors(&self) -> u64 {
        self.map.mapped() * u64::from(self.sizes.unit)
    }

    fn appended_sectors(&self) -> u64 {
        self.map.appended() * u64::from(self.sizes.unit)
    }

    fn attach(&mut self, attach: Attach) {
        self.link = HostLink::new(attach.link);
    }

    fn link(&self) -> &HostLink {
        &self.link
    }

    fn cpu_spans(&mut self, _room: Option<usize>) -> Vec<CpuSpan> {
        Vec::new()
    }

    fn media(&self) -> &M {
        &self.media
    }

    fn media_mut(&mut self) -> &mut M {
        &mut self.media
    }

    fn power_off(self) -> M {
        self.lose_power()
    }

    fn check_invariants(&self) -> Result<(), String> {
        self.check()
    }
}

fn erase_unit(line: &Line) -> EraseUnit {
    let state = match line.state {
        LineState::Free | LineState::AwaitingDurability => EraseUnitState::Free,
        LineState::Next | LineState::Open | LineState::Closing => EraseUnitState::Open,
        LineState::Closed | LineState::Garbage | LineState::Gc => EraseUnitState::Full,
        LineState::Corrupt => EraseUnitState::Corrupt,
        LineState::Bad => EraseUnitState::Bad,
    };
    EraseUnit { state, valid: line.valid, written: line.data }
}
