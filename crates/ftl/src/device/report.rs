//! A conventional SSD as an [`Ftl`]: what it reports, and how it goes off its media.

use super::DeviceFtl;
use super::check::Check;
use super::counts::DeviceCounts;
use super::region::RegionMap;
use crate::common::lines::{Line, LineState};
use crate::face::{Attach, CpuSpan, DeviceSize, EraseUnit, EraseUnitState, Ftl, MemoryUse};
use crate::kind::{FtlKind, Side};
use crate::report::{FtlReport, SectorCounts};
use nandscape_block::Completion;
use nandscape_media::{HostLink, OpenChannel};
use nandscape_rt::Nanos;

impl<M: OpenChannel, P: RegionMap> Ftl for DeviceFtl<M, P> {
    type Media = M;

    fn kind(&self) -> FtlKind {
        P::KIND
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.flash.now
    }

    fn size(&self) -> DeviceSize {
        self.flash.rules.sizes.device()
    }

    #[inline]
    fn sectors(&self) -> SectorCounts {
        self.flash.counts.sectors
    }

    fn report(&self) -> FtlReport {
        let counts = self.flash.counts;
        let DeviceCounts { sectors, host, erases, gc, flush, media_errors, .. } = counts;
        let mean = self.flash.counts.in_use_sum as f64 / host.written.max(1) as f64;
        FtlReport {
            sectors,
            host,
            erases,
            gc,
            flush,
            media_errors,
            dropped_sectors: counts.dropped_sectors,
            firmware: Some(self.flash.firmware.counts()),
            in_use_sectors_mean: mean,
        }
    }

    fn reset_counts(&mut self) {
        self.flash.link.reset_counts();
        self.flash.reset_counts();
    }

    fn memory(&self) -> MemoryUse {
        let points = self.instances.iter().map(|i| i.host.flight.bytes() + i.gc.flight.bytes());
        let port = self.port.bytes() + (self.done.capacity() * size_of::<Completion>()) as u64;
        MemoryUse {
            side: Side::Device,
            parts: vec![
                ("map", self.flash.map.bytes()),
                ("bitmap", self.flash.lines.bitmap_bytes()),
                (
                    "line",
                    self.flash.lines.line_bytes()
                        + self.flash.victims.bytes()
                        + self.discards.bytes(),
                ),
                ("buffers", self.buffer.bytes() + port + points.sum::<u64>()),
            ],
            map: self.flash.map.parts(),
        }
    }

    fn erase_units(&self) -> Vec<EraseUnit> {
        self.flash.lines.iter().map(|(_, line)| erase_unit(line)).collect()
    }

    fn free_erase_units(&self) -> u64 {
        self.flash.lines.empty_lines()
    }

    fn mapped_sectors(&self) -> u64 {
        self.flash.map.mapped() * u64::from(self.flash.rules.sizes.unit)
    }

    fn appended_sectors(&self) -> u64 {
        self.flash.map.appended() * u64::from(self.flash.rules.sizes.unit)
    }

    fn attach(&mut self, attach: Attach) {
        self.flash.link = HostLink::new(attach.link);
        self.flash.firmware.attach(attach.times_firmware);
    }

    fn keep_flushed(&mut self, keeps: bool) {
        self.flash.flush = self.flash.rules.config.buffer.flush_now(keeps);
    }

    fn link(&self) -> &HostLink {
        &self.flash.link
    }

    fn cpu_spans(&mut self, _room: Option<usize>) -> Vec<CpuSpan> {
        Vec::new()
    }

    fn media(&self) -> &M {
        &self.flash.media
    }

    fn media_mut(&mut self) -> &mut M {
        &mut self.flash.media
    }

    fn power_off(self) -> M {
        self.lose_power()
    }

    fn check_invariants(&self) -> Result<(), String> {
        Check { device: self, flash: &self.flash }.all()
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
