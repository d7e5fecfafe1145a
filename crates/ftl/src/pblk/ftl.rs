//! pblk as an [`Ftl`]: what it reports, and how it goes on and off its media.

use super::buffers::Buffer;
use super::check::Checker;
use super::cpu::CpuQueues;
use super::stats::PblkReport;
use super::{Capacity, Pblk};
use crate::common::lines::{Line, LineState};
use crate::face::{Attach, CpuSpan, DeviceSize, EraseUnit, EraseUnitState, Ftl, MemoryUse, Rest};
use crate::kind::FtlKind;
use crate::report::{FtlReport, SectorCounts};
use nandscape_block::Completion;
use nandscape_media::{HostLink, Layer, LinkTiming, OpenChannel};
use nandscape_rt::Nanos;

impl<M: OpenChannel> Pblk<M> {
    /// What only this kind counts.
    #[must_use]
    pub fn own_counts(&self) -> PblkReport {
        PblkReport {
            buffers: self.stats.buffers.clone(),
            pad_units: self.stats.pad_units.clone(),
            map: self.mapping.as_ref().map(|mapping| mapping.counts()),
            cpu: self.cpu.as_ref().map(|host| host.counts().clone()),
        }
    }
}

impl<M: OpenChannel> Ftl for Pblk<M> {
    type Media = M;

    fn kind(&self) -> FtlKind {
        FtlKind::Pblk
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.flash.now
    }

    fn size(&self) -> DeviceSize {
        self.rules.capacity.size()
    }

    #[inline]
    fn sectors(&self) -> SectorCounts {
        self.flash.counts.sectors
    }

    fn report(&self) -> FtlReport {
        let (stats, flash) = (&self.stats, &self.flash.counts);
        let written = stats.host.written;
        FtlReport {
            sectors: flash.sectors,
            host: stats.host,
            erases: flash.erases,
            gc: stats.gc,
            flush: stats.flush,
            media_errors: flash.media_errors,
            dropped_sectors: flash.dropped_sectors,
            in_use_sectors_mean: match written {
                0 => 0.0,
                _ => self.in_use_sum as f64 / written as f64,
            },
            firmware: None,
        }
    }

    fn reset_counts(&mut self) {
        self.flash.media.link_mut().reset_counts();
        self.reset_stats();
    }

    fn memory(&self) -> MemoryUse {
        let (map_bytes, map) = match &self.mapping {
            None => (self.flash.l2p.bytes(), Vec::new()),
            Some(mapping) => (mapping.memory().total(), mapping.memory().parts().to_vec()),
        };
        let buffers_bytes = self.buffers.all.iter().map(Buffer::bytes).sum::<u64>()
            + self.buffers.router.bytes()
            + self.collector.bytes()
            + self.collector.thread.bytes()
            + self.buffers.flushes.bytes()
            + (self.done.capacity() * size_of::<Completion>()) as u64;
        let parts = vec![
            ("map", map_bytes),
            ("buffers", buffers_bytes),
            ("bitmap", self.flash.lines.bitmap_bytes()),
            ("line", self.flash.lines.line_bytes() + self.flash.victims.bytes()),
        ];
        MemoryUse { side: self.kind().side(), parts, map }
    }

    fn erase_units(&self) -> Vec<EraseUnit> {
        self.flash.lines.iter().map(|(_, line)| report(line)).collect()
    }

    fn free_erase_units(&self) -> u64 {
        self.flash.lines.empty_lines()
    }

    fn mapped_sectors(&self) -> u64 {
        self.flash.l2p.mapped()
    }

    fn rest(&self) -> Option<Rest> {
        self.space().rest_state()
    }

    fn attach(&mut self, attach: Attach) {
        self.flash.media.set_link(attach.link);
        self.flash.copy_ns = attach.copy_ns_per_sector.min(LinkTiming::NS_MAX);
        let (costs, update) = (self.rules.config.cpu, self.rules.config.map_update);
        let charged = attach.host.filter(|_| !costs.is_free());
        let buffers = self.buffers.all.len();
        self.cpu = charged.map(|host| Box::new(CpuQueues::new(costs, update, host, buffers)));
        self.supply().start_thread();
        self.progress.needs_pump = true;
    }

    fn cpu_spans(&mut self, room: Option<usize>) -> Vec<CpuSpan> {
        self.cpu.as_mut().map(|host| host.relog(room)).unwrap_or_default()
    }

    fn link(&self) -> &HostLink {
        self.flash.media.link()
    }

    fn media(&self) -> &M {
        self.flash.media.inner()
    }

    fn media_mut(&mut self) -> &mut M {
        self.flash.media.inner_mut()
    }

    fn power_off(self) -> M {
        self.flash.media.into_inner()
    }

    fn check_invariants(&self) -> Result<(), String> {
        Checker(self).check()
    }
}

impl Capacity {
    /// The sizes that every FTL has.
    pub(crate) const fn size(&self) -> DeviceSize {
        DeviceSize {
            physical_sectors: self.physical_sectors,
            logical_sectors: self.logical_sectors,
            live_sectors: self.logical_sectors,
            erase_units: self.lines,
            erase_unit_sectors: self.line_sectors,
            erase_unit_data_sectors: self.line_data_sectors,
        }
    }
}

/// A line as an erase unit.
fn report(line: &Line) -> EraseUnit {
    let state = match line.state {
        LineState::Free | LineState::AwaitingDurability => EraseUnitState::Free,
        LineState::Next | LineState::Open | LineState::Closing => EraseUnitState::Open,
        LineState::Closed | LineState::Garbage | LineState::Gc => EraseUnitState::Full,
        LineState::Corrupt => EraseUnitState::Corrupt,
        LineState::Bad => EraseUnitState::Bad,
    };
    EraseUnit { state, valid: line.valid, written: line.data }
}
